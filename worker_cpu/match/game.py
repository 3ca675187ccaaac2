"""One game of a match in flight: its plies are kept in memory (``referee/session`` plays it).

It turns the referee's last word into a game's end, with the PGN that the referee has written or,
when somebody asks, a record; a ply of an order that waits for it is answered with GO_ON at once.
Invariant: an interruption is no result.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import Any, TypeAlias

from orchestrator import contract
from worker_cpu.referee import result, session
from worker_cpu.wire import frames

End: TypeAlias = result.Ended | session.Interrupted
Hear: TypeAlias = Callable[[frames.Chunk], None]
Watch: TypeAlias = Callable[[frames.Frame], None]


class Sealed:
    """An order and its bytes: what can be done of it before its seats are free."""

    def __init__(self, order: contract.GameOrder) -> None:
        self.order = order
        self.payload = order.encode().encode()


class Game:
    """A game that is being played."""

    def __init__(
        self,
        seated: session.Seated,
        sealed: Sealed,
        site: str,
        hear: Hear | None = None,
        watch: Watch | None = None,
    ) -> None:
        """Send the order; ``hear`` takes the engines' traffic, ``watch`` each frame as it comes."""
        self.order = sealed.order
        self._site, self._hear, self._watch = site, hear, watch
        self._plies: list[bytes] = []
        self._pgn: list[bytes] = []
        self._times = result.Times()
        self._session = seated.session(self.order.timeouts)
        self._session.send(sealed.payload)

    def fileno(self) -> int:
        """Return the descriptor of the referee's channel, for a poll loop."""
        return self._session.fileno()

    def serve(self) -> End | None:
        """Take what the referee sent; return the end when the game has one."""
        for frame in self._session.ready():
            self._take(frame)
        return self._end()

    def check(self) -> End | None:
        """Look after a referee that says nothing; return the end of one that is given up."""
        self._session.check()
        return self._end()

    def drop(self, reason: str) -> None:
        """Let the dead man write down why and kill the engines."""
        self._session.drop(reason)

    def _end(self) -> End | None:
        end = self._session.end
        return self._ended(end.content) if isinstance(end, session.Finished) else end

    def _take(self, frame: frames.Frame) -> None:
        if self._watch is not None:
            self._watch(frame)
        match frame.kind:
            case frames.Kind.PLY:
                self._plies.append(frame.payload)
                if self.order.journaled:
                    self._session.go_on(contract.loads(frame.payload)["ply"])
            case frames.Kind.CHUNK:
                if self._hear is not None:
                    self._hear(frames.Chunk.decode(frame.payload))
            case frames.Kind.PGN:
                self._pgn.append(frame.payload)
            case _:
                return

    def _ended(self, finished: dict[str, Any]) -> result.Ended:
        started_ms, ended_ms = self._times.started_ms, self._times.now_ms()
        outcome = contract.Outcome.model_validate(finished["outcome"])

        def record() -> contract.GameRecord:
            return result.game_record(
                finished,
                self.order,
                [contract.PlyRecord.decode(ply) for ply in self._plies],
                attempt=self.order.game,
                hall=self._site,
                started_ms=started_ms,
                ended_ms=ended_ms,
            )

        return result.Ended(
            order=self.order,
            outcome=outcome,
            plies=finished["plies"],
            final_fen=finished["final_fen"],
            started_ms=started_ms,
            ended_ms=ended_ms,
            record=record if self.order.recorded else None,
            pgn=b"".join(self._pgn).decode(),
            unmet=tuple(result.unmet(finished, self.order)),
            remarks=tuple(finished.get("remarks", ())),
            kept=tuple(finished.get("kept", ())),
            loser_stderr=finished[outcome.loser]["stderr_tail"] if outcome.loser else "",
        )


def play(
    seated: session.Seated,
    sealed: Sealed,
    site: str,
    rest_seconds: Callable[[], float],
    meanwhile: Callable[[], None],
) -> End:
    """See one game through; ``meanwhile`` is called when the time to rest is over, or sooner."""
    game = Game(seated, sealed, site)
    poll = select.poll()
    poll.register(game.fileno(), select.POLLIN)
    while (end := game.serve() or game.check()) is None:
        poll.poll(rest_seconds() * 1000)
        meanwhile()
    return end
