"""What commands share that run until they are ended: where they listen, and their end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import click

from orchestrator.commands import common
from orchestrator.common import errors


def address(port: int) -> Callable[[common.Function], common.Function]:
    """Return the options ``--host`` and ``--port``, with a default port."""
    host = click.option(
        "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
    )
    number = click.option("--port", default=port, show_default=True, type=click.IntRange(0, 65535))
    return lambda function: host(number(function))


def taken(
    what: str, host: str, port: int, error: OSError, option: str = "--host or --port"
) -> errors.HostError:
    """Return the error of a service that cannot listen at its address, which ``option`` chose."""
    return errors.HostError(
        f"the {what} cannot listen on {host}:{port}: {error.strerror}; choose another {option}"
    )


def until_ended() -> threading.Event:
    """Return an event that is set when somebody ends the process: SIGTERM, Ctrl-C."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    return ended
