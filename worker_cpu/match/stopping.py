"""Ctrl-C and other signals of a match that waits in a poll, or has not come so far yet.

Invariant: a signal is counted the moment it comes, and wakes the poll by a byte in a pipe;
the handlers that stood before stand again when the match is over.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

import click

STOPPED = 130  # exit code: what shells say of a program that Ctrl-C ended
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FINISH, DROP = 1, 2  # how often the match was asked to stop: running games end, or are dropped


def heeded(*numbers: signal.Signals) -> list[signal.Signals]:
    """Return these signals without a hangup that ``nohup`` has this process ignore."""
    deaf = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in numbers if number != signal.SIGHUP or not deaf]


@contextlib.contextmanager
def _handled(handler: Callable[[int, Any], None], *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in heeded(*numbers)}
    try:
        yield
    finally:
        for number, handler_before in before.items():
            signal.signal(number, handler_before)


@contextlib.contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Hear SIGTERM and a closed terminal as Ctrl-C is heard: as a ``KeyboardInterrupt``."""
    with _handled(signal.default_int_handler, signal.SIGTERM, signal.SIGHUP):
        yield


@contextlib.contextmanager
def ending() -> Iterator[None]:
    """End in order by a signal outside of ``Stop.heard``, with its exit code (``SystemExit``).

    So before the first game nothing is left behind, and a job hears what it hears later.
    """
    try:
        with as_ctrl_c():
            yield
    except KeyboardInterrupt:
        click.echo("farm: stopped", err=True)
        raise SystemExit(STOPPED) from None


class Stop:
    """How urgently a match was asked to stop: the first Ctrl-C is 1, any other word is more."""

    def __init__(self) -> None:
        self.urgency = 0

    @contextlib.contextmanager
    def heard(self) -> Iterator[int]:
        """Count signals; yield the descriptor that becomes readable with each."""
        reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        wakeup = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            with _handled(self._count, *SIGNALS):
                yield reader
        finally:
            signal.set_wakeup_fd(wakeup)
            os.close(reader)
            os.close(writer)

    def _count(self, number: int, _: Any) -> None:
        self.urgency += FINISH if number == signal.SIGINT else DROP
