"""What commands share that run until they are ended: where they listen, and their end."""

from __future__ import annotations

import gc
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

import click

from orchestrator.commands import common
from orchestrator.common import errors

TIDY_SECONDS: Final = 1.0  # s: between two looks at what the garbage collector would go through
_COLLECTIONS: Final = 10  # of the middle generation: after so many CPython would go through all
_OBJECTS: Final = 80_000  # gone through in 10 ms
_GROWN: Final = 2  # times: when so much has been set apart, all is gone through once
_NEVER: Final = 1 << 30


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


def shorten_pauses() -> None:
    """Keep the garbage collector from going through all that a long life has kept.

    A season of 10,000 games holds it for 44 ms at a time, one of 100,000 for 1.4 s, in which no
    lease is looked at and no move shown. What has lived for a second is set apart and not gone
    through again; it is freed by its last reference, as states hold no cycles. A connection that
    was set apart does, so all is gone through once each time that what is set apart has doubled.
    """
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    threading.Thread(target=_tidy_always, name="garbage", daemon=True).start()


def _tidy_always() -> None:
    while True:
        time.sleep(TIDY_SECONDS)
        tidy()


class _Tidier:
    """Knows how much was set apart when all was gone through last."""

    def __init__(self) -> None:
        self._settled = 0

    def tidy(self) -> None:
        """Collect the garbage of the last moment, if it is little, and set the rest apart."""
        if gc.get_count()[2] < _COLLECTIONS:
            return
        grown = gc.get_freeze_count() > _GROWN * max(self._settled, _OBJECTS)
        if grown:
            gc.unfreeze()
        if grown or len(gc.get_objects(generation=2)) < _OBJECTS:
            gc.collect()
        gc.freeze()
        if grown or not self._settled:
            self._settled = gc.get_freeze_count()


tidy = _Tidier().tidy
