"""What an engine is charged beyond its own time, move by move, and what of it was the machine's.

Agent and probe stand on one clock here, so each move has four stamps: the agent's before it
writes ``go``, the probe's when it has read it, the probe's before it writes its answer, the
agent's when it has read that. Between the first two and the last two the move is handed over;
that time is charged beyond the probe's own. A sleeper on each core (``wakeups.py``) proves when
the machine stood still; no clock can be better than that, so the part of a handover in which
it stood still, and no more, is no fault of the charge.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from worker_gpu import agent

WAKEUPS = pathlib.Path(__file__).with_name("wakeups.py")

Span: TypeAlias = tuple[int, int]  # from, until: monotonic ns


class Move(NamedTuple):
    """The four stamps of a move, monotonic ns."""

    went: int
    read: int
    wrote: int
    answered: int

    @property
    def charged_ns(self) -> int:
        """Return what the engine is charged."""
        return self.answered - self.went

    @property
    def excess_ns(self) -> int:
        """Return what it is charged beyond its own time."""
        return self.charged_ns - (self.wrote - self.read)

    def still_ns(self, still: Sequence[Span]) -> int:
        """Return for how long the machine stood still while the move was handed over."""
        handovers = ((self.went, self.read), (self.wrote, self.answered))
        return sum(_shared(one, span) for one in handovers for span in still)


def _shared(one: Span, other: Span) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans that do not overlap: a moment in which two cores stood still counts once."""
    found: list[Span] = []
    for first, last in sorted(spans):
        if found and first <= found[-1][1]:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return found


@contextlib.contextmanager
def watched() -> Iterator[Callable[[], list[Span]]]:
    """Watch all cores meanwhile; the result ends it and tells when the machine stood still."""
    with contextlib.ExitStack() as stack:
        sleepers = [stack.enter_context(_sleeper(core)) for core in os.sched_getaffinity(0)]
        yield lambda: merged(span for sleeper in sleepers for span in _spans(sleeper))


def _sleeper(core: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-I", "-S", str(WAKEUPS), str(core)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _spans(sleeper: subprocess.Popen[str]) -> Iterator[Span]:
    for line in sleeper.communicate()[0].splitlines():
        due, woken = line.split()
        yield int(due), int(woken)


def moves(run: pathlib.Path, own: Iterable[Span]) -> list[Move]:
    """Return all moves: the agent's stamps from its log, the probe's own beside them."""
    stamps: dict[str, list[int]] = {"went": [], "ans": []}
    for kind, _, at_ns, _ in agent.Parser().feed((run / "log").read_bytes()):
        if kind in stamps:
            stamps[kind].append(at_ns)
    every = zip(stamps["went"], own, stamps["ans"], strict=True)
    return [Move(went, read, wrote, answered) for went, (read, wrote), answered in every]
