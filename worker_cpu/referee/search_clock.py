"""The clock's loop: from the write that starts a search to the answer.

Invariants:

* the start stamp is taken immediately before the one write that carries the position
  and starts the search, the stop stamp right after the read that completed the answer;
* nothing is parsed in between: raw bytes are searched for the line, kept and forwarded;
* one absolute deadline a move: output prolongs nothing. ``stop`` goes out at flag +
  ``stop_ms``; no answer ``stall_ms`` later is a stall.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from orchestrator import contract
from worker_cpu.engines import local
from worker_cpu.protocols import base
from worker_cpu.referee import io_loop
from worker_cpu.wire import frames

_NS = 1_000_000  # ns per ms


class Answered(NamedTuple):
    """The engine answered: ``line``, with ``output`` before and ``rest`` behind it.

    Stamps are monotonic ns.
    """

    line: bytes
    start_ns: int
    stop_ns: int
    output: bytes
    rest: bytes


class Unanswered(NamedTuple):
    """The engine did not answer until the stall; ``begun`` when it wrote half a line."""

    start_ns: int
    stop_ns: int
    begun: bool


class Left(NamedTuple):
    """An engine (not always the one on move) ended before there was a move.

    ``output`` is what it wrote last.
    """

    seat: local.LocalSeat
    output: bytes


def around(output: bytes, line: bytes) -> tuple[bytes, bytes]:
    """Return what stands before and behind the answer."""
    before, _, rest = output.rpartition(line)
    return before, rest


def timed_search(
    loop: io_loop.IoLoop,
    seat: local.LocalSeat,
    player: base.Player,
    command: bytes,
    announcement: bytes,
    allowance_ns: int,
    timeouts: contract.Timeouts,
    finder: base.Finder | None = None,
) -> Answered | Unanswered | Left:
    """Run one engine's clock; ``announcement`` is THINK's JSON, empty for none.

    What the engine wrote before has been drained, so that it is no answer. ``finder`` is that
    of a search which was begun before: the engine pondered, and ``command`` ends that.
    """
    if loop.ended:
        return Left(loop.ended[0], loop.ended[0].take_aside())
    finder = finder or player.finder(fresh=seat.at_line_start)
    tail = local.Tail()
    if announcement:  # before the write: nothing is done behind it that could delay it
        loop.channel.offer(frames.Kind.THINK, announcement)
    seat.arm(allowance_ns, player.stop)
    start_ns = loop.start(seat, command)
    deadline = stop_at = start_ns + allowance_ns + timeouts.stop_ms * _NS + seat.slack_ns
    stall_at = stop_at + timeouts.stall_ms * _NS
    while True:
        for heard in loop.hear(deadline - time.monotonic_ns(), first=seat):
            if heard.seat is not seat:
                heard.seat.set_aside(heard.data)
                continue
            tail.add(heard.data)
            line = finder.feed(heard.data)
            if line is not None:
                loop.log_answer(seat, line, heard.at_ns)
                return Answered(line, start_ns, heard.at_ns, *around(tail.text(), line))
        if loop.ended:
            left = loop.ended[0]
            return Left(left, tail.text() if left is seat else left.take_aside())
        now = time.monotonic_ns()
        if now >= stall_at or seat.gave_up:
            return Unanswered(start_ns, now, finder.begun())
        if now >= stop_at and deadline == stop_at:
            loop.say(seat, player.stop)
            deadline = stall_at
