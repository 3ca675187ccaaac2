"""One game of a match in flight: a small link that keeps its plies in memory.

It feeds the dead man and turns the referee's last word into a game's end, with the PGN that
the referee has written or, when somebody asks, a record; a ply of an order that waits for it
is answered with GO_ON at once. Invariants: an interruption is no result; engines of a game
that is over are gone, or idle and kept for the next, before it is said to be over.
"""

from __future__ import annotations

import contextlib
import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import handles
from worker_cpu.referee import result
from worker_cpu.wire import frames

LIMIT_SECONDS = 60.0  # s: engines die this long after the match's process fell silent
QUIT_SECONDS = 10.0  # s: kept engines that are told to quit are killed long before
FROZEN_SECONDS = 10.0  # s: beyond the stall that a living referee would have told of


@dataclasses.dataclass(frozen=True)
class Interrupted:
    """A game that ended without a verdict."""

    cause: str
    evidence: str


End: TypeAlias = result.Ended | Interrupted
Hear: TypeAlias = Callable[[frames.Chunk], None]
Watch: TypeAlias = Callable[[frames.Frame], None]


class Seated:
    """A referee and a dead man that wait for a game."""

    def __init__(
        self,
        fork_server: handles.ForkServer,
        cores: handles.Cores,
        scratch: pathlib.Path,
        lock: int | None = None,
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        """Start both; raise ``HostError`` when they cannot be started.

        ``lock`` is the hall's, or its lane's, where the game is played in one.
        """
        self.referee = fork_server.referee(cores)
        try:
            self.dead_man = handles.DeadMan(
                log=scratch / "deadman.jsonl",
                scratch=scratch,
                lock=lock,
                limit_seconds=limit_seconds,
                referee=self.referee,
                fork_server=fork_server,
            )
        except errors.HostError:
            self.referee.end()
            raise
        self.keeps = False  # engines of the last game may have stayed
        self._dismissed = False

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


class Sealed:
    """An order and its bytes: what can be done of it before its seats are free."""

    def __init__(self, order: contract.GameOrder) -> None:
        self.order = order
        self.payload = order.encode().encode()


class Game:
    """A game that is being played."""

    def __init__(
        self,
        seated: Seated,
        sealed: Sealed,
        site: str,
        hear: Hear | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Send the order; ``hear`` takes the engines' traffic, ``watch`` each frame as it comes."""
        self.order = sealed.order
        self._seated, self._site, self._hear, self._watch = seated, site, hear, watch
        self._plies: list[bytes] = []
        self._pgn: list[bytes] = []
        self._started_ms = _now_ms()
        self._verdict_due_ns = 0  # monotonic: the stall of the move in progress, 0 for none
        self._end: End | None = None
        self._channel = seated.referee.channel
        try:
            self._channel.send(frames.Kind.ORDER, sealed.payload)
        except frames.ChannelClosedError as error:
            self._end = Interrupted("referee lost", str(error))

    def fileno(self) -> int:
        """Return the descriptor of the referee's channel, for a poll loop."""
        return self._channel.fileno()

    def serve(self) -> End | None:
        """Take what the referee sent; return the end when the game has one."""
        try:
            for frame in self._channel.ready() if self._end is None else ():
                self._take(frame)
        except frames.ChannelClosedError as error:
            self._end = self._end or Interrupted("referee lost", str(error))
        return self._end

    def frozen(self) -> bool:
        """Say whether the referee has let a stall pass without a word: it is stuck."""
        late_ns = time.monotonic_ns() - self._verdict_due_ns
        return self._verdict_due_ns > 0 and late_ns > FROZEN_SECONDS * 1e9

    def drop(self, reason: str) -> None:
        """Let the dead man write down why and kill the engines."""
        self._seated.dead_man.kill(reason)

    def _take(self, frame: frames.Frame) -> None:
        if self._watch is not None:
            self._watch(frame)
        match frame.kind:
            case frames.Kind.THINK:
                self._verdict_due_ns = contract.loads(frame.payload)["stall_ns"]
            case frames.Kind.PLY:
                self._plies.append(frame.payload)
                self._verdict_due_ns = 0
                if self.order.journaled:
                    with contextlib.suppress(frames.ChannelClosedError):  # said by the next read
                        self._channel.send(frames.Kind.GO_ON)
            case frames.Kind.CHUNK:
                if self._hear is not None:
                    self._hear(frames.Chunk.decode(frame.payload))
            case frames.Kind.PGN:
                self._pgn.append(frame.payload)
            case frames.Kind.FINISHED:
                self._end = self._ended(contract.loads(frame.payload))
            case frames.Kind.INTERRUPTED:
                interruption = contract.loads(frame.payload)
                self._end = Interrupted(interruption["cause"], interruption["evidence"])
            case _:
                return

    def _ended(self, finished: dict[str, Any]) -> result.Ended:
        ended_ms = _now_ms()

        def record() -> contract.GameRecord:
            return result.game_record(
                finished,
                self.order,
                [contract.PlyRecord.decode(ply) for ply in self._plies],
                attempt=self.order.game,
                hall=self._site,
                started_ms=self._started_ms,
                ended_ms=ended_ms,
            )

        return result.Ended(
            order=self.order,
            outcome=contract.Outcome.model_validate(finished["outcome"]),
            plies=finished["plies"],
            final_fen=finished["final_fen"],
            started_ms=self._started_ms,
            ended_ms=ended_ms,
            record=record if self.order.recorded else None,
            pgn=b"".join(self._pgn).decode(),
            unmet=tuple(result.unmet(finished, self.order)),
            remarks=tuple(finished.get("remarks", ())),
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
