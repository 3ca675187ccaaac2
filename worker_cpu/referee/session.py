"""The one client of a referee: have it play an order, and learn how that ended.

An official game's attempt, a host's probe, a lane's worker, a test game and ``farm match`` want
different things of a game. What they share is here: the order is sent, frames are taken as they
come, a ply is answered with GO_ON, and a referee that says nothing although word of it is due is
given up. Invariants:

* a game has one end, which is never taken back: FINISHED, or an interruption;
* no referee is given up for what its owner has not read yet, nor while its owner keeps a ply;
* the engines of a referee that is given up are killed by their dead man.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from typing import Any, TypeAlias

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import handles
from worker_cpu.wire import frames

LIMIT_SECONDS = 60.0  # s: engines die this long after the process that feeds fell silent
QUIT_SECONDS = 10.0  # s: kept engines that are told to quit are killed long before
FROZEN_SECONDS = 10.0  # s: beyond what a living referee would have told of by then
REFEREE_SECONDS = 15.0  # s: after the dead man's end; it says so within LAST_WORDS_SECONDS
DEAD_MAN_LOG = "deadman.jsonl"
FROZEN, LOST = "referee frozen", "referee lost"  # causes of interruptions that are found here


@dataclasses.dataclass(frozen=True)
class Finished:
    """A game with a verdict: FINISHED's content."""

    content: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Interrupted:
    """A game that ended without a verdict; ``excused`` as in ``wire.errors``."""

    cause: str
    evidence: str
    excused: contract.Side | None = None


End: TypeAlias = Finished | Interrupted


class Seated:
    """A referee and a dead man that wait for a game."""

    def __init__(
        self, referee: handles.RefereeProcess, dead_man: handles.DeadMan, limit_seconds: float
    ) -> None:
        """Take both (``seat``, ``seat_together``)."""
        self.referee, self.dead_man = referee, dead_man
        self._limit_seconds = limit_seconds
        self.keeps = False  # engines of the last game may have stayed
        self._dismissed = False

    def session(self, timeouts: contract.Timeouts) -> RefereeSession:
        """Return a session for the next order."""
        return RefereeSession(self.referee, self.dead_man, timeouts, self._limit_seconds)

    @property
    def waits(self) -> bool:
        """Say whether both live and may play another order."""
        return self.keeps and not self.dead_man.ended and not self.referee.ended(0)

    def feed(self) -> None:
        """Tell the dead man that this process lives."""
        self.dead_man.feed(handles.boottime_ns())

    def dismiss(self) -> None:
        """Let both end, the engines that stayed first; ``gone`` says when all have."""
        self._dismissed = self._dismissed or self.keeps
        if self.keeps:
            self.keeps = False
            with contextlib.suppress(frames.ChannelClosedError):
                self.referee.channel.send(frames.Kind.DISMISS)
        elif not self._dismissed or self.referee.ended(0):
            self.dead_man.end()

    def gone(self) -> bool:
        """Say, without waiting, whether both are gone after ``dismiss``."""
        self.dismiss()
        if self.dead_man.ended:
            self.leave()
            return True
        return False

    def leave(self) -> None:
        """End both after a game, or without one; returns when they are gone."""
        self.dismiss()
        if self._dismissed:
            self.referee.ended(QUIT_SECONDS)
        self.dead_man.end()
        self.referee.end()
        self.dead_man.wait()


def seat(
    fork_server: handles.ForkServer,
    cores: handles.Cores,
    scratch: pathlib.Path,
    lock: int | None = None,
    limit_seconds: float = LIMIT_SECONDS,
) -> Seated:
    """Start a referee and a dead man; raise ``HostError`` when they cannot be started.

    ``lock`` is the hall's, or its lane's, where the game is played in one.
    """
    referee = fork_server.referee(cores)
    try:
        log = scratch / DEAD_MAN_LOG
        dead_man = handles.DeadMan(log, scratch, lock, limit_seconds, referee, fork_server)
    except errors.HostError:
        referee.end()
        raise
    return Seated(referee, dead_man, limit_seconds)


def seat_together(
    fork_server: handles.ForkServer, scratch: pathlib.Path, games: int
) -> list[Seated]:
    """Start one process for the referees and one for the dead men of several games.

    For games that have no cores of their own; raise ``HostError`` as ``seat``.
    """
    referees = fork_server.referees(games)
    try:
        log = scratch / DEAD_MAN_LOG
        dead_men = handles.dead_men(log, scratch, LIMIT_SECONDS, referees, fork_server)
    except errors.HostError:
        for referee in referees:
            referee.end()
        raise
    pairs = zip(referees, dead_men, strict=True)
    return [Seated(referee, dead_man, LIMIT_SECONDS) for referee, dead_man in pairs]


class RefereeSession:
    """One order at one referee; ``end`` is how the game ended, ``None`` while it goes on.

    ``thinking`` is THINK's content while a clock runs. Frames are noted here and returned to the
    owner, who does with them what it likes: one by one (``receive``), or all that are here, in a
    poll loop (``ready``).
    """

    def __init__(
        self,
        referee: handles.RefereeProcess,
        dead_man: handles.DeadMan,
        timeouts: contract.Timeouts,
        limit_seconds: float,
    ) -> None:
        """Prepare; ``limit_seconds`` is how long the dead man waits before it kills."""
        self.end: End | None = None
        self.thinking: dict[str, Any] | None = None
        self._channel, self._dead_man = referee.channel, dead_man
        self._patience_ns = longest_silence_ns(timeouts, limit_seconds)
        self._due_ns = 0  # monotonic: the stall of the move in progress, 0 for none
        self._turned_ns = time.monotonic_ns()  # since when it is the referee's turn to speak
        self._serving = False  # the owner does its part with the last frame
        self._ply = 0  # the last one that is kept
        self._engines_seen = time.monotonic()  # when the dead man was last there

    def send(self, order: bytes) -> None:
        """Send the order, as ``contract.GameOrder`` writes it."""
        try:
            self._channel.send(frames.Kind.ORDER, order)
        except frames.ChannelClosedError as error:
            self._lose(str(error))
        self._turned_ns = time.monotonic_ns()

    def fileno(self) -> int:
        """Return the descriptor of the referee's channel, for a poll loop."""
        return self._channel.fileno()

    def receive(self, seconds: float) -> frames.Frame | None:
        """Return the next frame, ``None`` after a time without one."""
        if self._serving:
            self._serving, self._turned_ns = False, time.monotonic_ns()
        try:
            frame = self._channel.receive(seconds)
        except frames.ChannelClosedError as error:
            self._lose(str(error))
            return None
        if frame is not None:
            self._serving = True
            self._note(frame)
        return frame

    def ready(self) -> list[frames.Frame]:
        """Return the frames that are here now, without waiting."""
        if self.end is not None:
            return []
        try:
            here = self._channel.ready()
        except frames.ChannelClosedError as error:
            self._lose(str(error))
            return []
        for frame in here:
            self._note(frame)
            self._turned_ns = time.monotonic_ns()
        return here

    def go_on(self, ply: int) -> None:
        """Let both clocks run again: a ply is kept.

        Behind a game's last ply the referee waits for nothing, and may be gone before a slow
        owner has kept it: what it has said of the end is read next.
        """
        self._ply = ply
        with contextlib.suppress(frames.ChannelClosedError):
            self._channel.send(frames.Kind.GO_ON)

    def check(self) -> None:
        """End the game where the referee misses its deadline, or has lost its dead man.

        A frozen referee (SIGSTOP, a stuck host) keeps its engines until the dead man ends
        them, and is killed itself when its owner leaves it.
        """
        if self.end is not None:
            return
        late_ns = time.monotonic_ns() - (self._due_ns or self._turned_ns + self._patience_ns)
        if late_ns > FROZEN_SECONDS * 1e9:
            if self._channel.waiting():
                return  # it is the owner who is late
            evidence = f"no word {late_ns // 10**9} s after one was due"
            self.drop(f"{FROZEN}: {evidence}")
            self.end = Interrupted(FROZEN, evidence)
        elif not self._dead_man.ended:
            self._engines_seen = time.monotonic()
        elif time.monotonic() - self._engines_seen > REFEREE_SECONDS:
            self._lose("the dead man has ended, the referee says nothing")

    def drop(self, reason: str) -> None:
        """Let the dead man write down why and kill the engines."""
        self._dead_man.kill(reason)

    def _note(self, frame: frames.Frame) -> None:
        match frame.kind:
            case frames.Kind.THINK:
                self._think(contract.loads(frame.payload))
            case frames.Kind.PLY:
                self._due_ns, self.thinking = 0, None
            case frames.Kind.FINISHED:
                self.end = self.end or Finished(contract.loads(frame.payload))
            case frames.Kind.INTERRUPTED:
                content = contract.loads(frame.payload)
                excused = content.get("excused")
                self.end = self.end or Interrupted(content["cause"], content["evidence"], excused)
            case _:
                return

    def _think(self, content: dict[str, Any]) -> None:
        """Note that a clock runs, unless its ply has overtaken this word."""
        overtaken = content["ply"] <= self._ply
        self.thinking = None if overtaken else content
        if not overtaken:
            self._due_ns = content["stall_ns"]

    def _lose(self, evidence: str) -> None:
        self.end = self.end or Interrupted(LOST, evidence)


def longest_silence_ns(timeouts: contract.Timeouts, dead_man_seconds: float) -> int:
    """Return how long a living referee may say nothing while no clock runs, in ns.

    All its engines' time-outs off the clock, one after the other: a start, or an end, in silence;
    a start's twice, since a sandbox may take as long as what starts in it; and a broken link to a
    GPU box, which is waited for less long than the dead man waits.
    """
    engines_ms = 2 * (2 * timeouts.start_ms + timeouts.ready_ms + timeouts.quit_ms)
    return engines_ms * 1_000_000 + round(dead_man_seconds * 1e9)
