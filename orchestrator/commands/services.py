"""What commands share that run until they are ended: where they listen, and their end."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

import click

from orchestrator.commands import common
from orchestrator.common import errors

TIDY_SECONDS: Final = 1.0  # s: between two looks at what the garbage collector would go through
START_SECONDS: Final = 0.1  # s: the same while a service reads all that there is
_COLLECTIONS: Final = 3  # of the middle generation: so many are worth a look
_FEW: Final = 6  # of them: 46,000 objects at most, gone through in less than 10 ms
_GROWN: Final = 2  # times: when so much is held as after the last look at all, all is gone through
_NEVER: Final = 1 << 30


def address(port: int) -> Callable[[common.Function], common.Function]:
    """Return the options ``--host`` and ``--port``, with a default port."""
    host = click.option(
        "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
    )
    number = click.option(
        "--port",
        default=port,
        show_default=True,
        type=click.IntRange(0, 65535),
        help="The port to listen on; 0: a free one.",
    )
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
    through again; it is freed by its last reference, as states hold no cycles. So what a service
    reads as it starts is set apart at once, without a look for garbage. A connection that was set
    apart may hold cycles: all is gone through once each time that the process holds twice as much
    as it did at the start.
    """
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)
    threading.Thread(target=_tidy_always, name="garbage", daemon=True).start()


def _tidy_always() -> None:
    quiet = 0.0
    while quiet < TIDY_SECONDS:
        time.sleep(START_SECONDS)
        quiet = 0.0 if set_apart() else quiet + START_SECONDS
    while True:
        time.sleep(TIDY_SECONDS)
        tidy()


class _Tidier:
    """Knows how much the process held when all was gone through last, or when it had started."""

    def __init__(self) -> None:
        self._blocks = 0  # of memory: objects that are set apart could only be counted one by one

    def set_apart(self) -> bool:
        """Set apart what has come, at a start; say whether it was much."""
        if gc.get_count()[2] < _COLLECTIONS:
            return False
        gc.freeze()
        self._blocks = sys.getallocatedblocks()
        return True

    def tidy(self) -> None:
        """Collect the garbage of the last moment, if it is little, and set the rest apart."""
        new = gc.get_count()[2]
        if new < _COLLECTIONS:
            return
        grown = sys.getallocatedblocks() > _GROWN * self._blocks > 0
        if grown:
            gc.unfreeze()
        if grown or new <= _FEW:
            gc.collect()
        gc.freeze()
        if grown or not self._blocks:
            self._blocks = sys.getallocatedblocks()


_tidier = _Tidier()
set_apart, tidy = _tidier.set_apart, _tidier.tidy
