"""A completed engine ply as the link gets it: at once, or with all others at the game's end.

A journaled order's plies go out one by one, because the link makes each durable before the
next clock starts. Of any other order nothing is written between two plies: what a ply
needs is kept as it is, and read and written down when both clocks have stopped for good
(decision 021). Invariant: the content of a ply does not depend on when it is written or told.
"""

from __future__ import annotations

import dataclasses
import gc
import time
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

from orchestrator import contract
from orchestrator.arbiter import board, clock
from orchestrator.arbiter import score as scores
from worker_cpu.protocols import base
from worker_cpu.referee import io_loop, result
from worker_cpu.wire import frames

KEPT_BYTES = 1 << 16  # bytes of a search's output kept with a ply: its end has the last score
PIECE_BYTES = 1 << 20  # bytes of a PGN in a frame: far below the limit of one
Search: TypeAlias = Callable[[contract.Side, bytes], base.Search]  # reads a search's output


class StampedPly(NamedTuple):
    """A completed ply before it is written down; ``output`` is the whole search's.

    Clocks are those after the ply; ``start_ns`` is monotonic.
    """

    ply: int
    side: contract.Side
    move: str
    reply: base.Reply
    output: bytes
    charge: clock.Charge
    start_ns: int
    gap_ns: int
    waited_ns: int
    white_clock_ns: int
    black_clock_ns: int
    counters: contract.Counters
    offers_draw: bool
    network_ns: int | None = None  # of a remote seat: what the network took
    pondered: Literal["", "hit", "miss", "early"] = ""
    pondered_ns: int | None = None

    def kept(self) -> StampedPly:
        """Return the ply with no more of the output than is read later."""
        if len(self.output) <= KEPT_BYTES:
            return self
        return self._replace(output=self.output[-KEPT_BYTES:])


def search(
    player: base.Player, output: bytes, side: contract.Side, spec: contract.EngineSpec
) -> base.Search:
    """Read what an engine said of its search, its score and chances from the mover's side."""
    info = player.search(output)
    if info.score is None or side == "white" or not spec.white_pov:
        return info
    wdl = info.wdl and scores.white_wdl(info.wdl, "black")
    return dataclasses.replace(info, score=scores.white_view(info.score, "black"), wdl=wdl)


def record(played: StampedPly, info: base.Search) -> contract.PlyRecord:
    """Return a ply as its PGN wants it: without its SAN, which is worked out along the game."""
    return contract.PlyRecord(
        ply=played.ply,
        side=played.side,
        move=played.move,
        san="",
        overhead_ns=0,
        think_ns=played.charge.think_ns,
        margin_ns=played.charge.margin_ns,
        white_clock_ns=played.white_clock_ns,
        black_clock_ns=played.black_clock_ns,
        score=info.score,
        depth=info.depth,
        seldepth=info.seldepth,
        nodes=info.nodes,
        nps=info.nps,
        tbhits=info.tbhits,
        hashfull=info.hashfull,
        wdl=info.wdl,
        pv=info.pv,
        ponder=played.reply.ponder,
        counters=played.counters,
        pondered=played.pondered,
        pondered_ns=played.pondered_ns,
    )


def payload(played: StampedPly, san: str, info: base.Search) -> bytes:
    """Write a PLY frame's payload, a ``contract.PlyRecord``."""
    ply: dict[str, Any] = {
        "schema_version": contract.SCHEMA,
        "ply": played.ply,
        "side": played.side,
        "move": played.move,
        "san": san,
        "think_ns": played.charge.think_ns,
        "margin_ns": played.charge.margin_ns,
        "overhead_ns": max(0, played.gap_ns - played.waited_ns),
        "waited_ns": played.gap_ns,
        "white_clock_ns": played.white_clock_ns,
        "black_clock_ns": played.black_clock_ns,
        "score": None if info.score is None else _score(info.score),
        "depth": info.depth,
        "seldepth": info.seldepth,
        "nodes": info.nodes,
        "nps": info.nps,
        "tbhits": info.tbhits,
        "hashfull": info.hashfull,
        "wdl": info.wdl,
        "pv": info.pv,
        "ponder": played.reply.ponder,
        "counters": played.counters.model_dump(),
        "said": "offers a draw" if played.offers_draw else "",
        "network_ns": played.network_ns,
        "pondered": played.pondered,
        "pondered_ns": played.pondered_ns,
    }
    return contract.dumps(ply).encode(errors="replace")


def _score(score: contract.Score) -> dict[str, int | None]:
    return {"cp": score.cp, "mate": score.mate}


class PlyReporter:
    """Tells one game's link of its plies; ``waited_ns`` is how long it was waited for last.

    Of plies that only a PGN is wanted of, nothing but the PGN is sent. Where somebody looks on
    (``shown``) plies are queued as they come, while no clock runs, and sent when the channel is
    tried next: nobody waits for them.
    """

    def __init__(self, loop: io_loop.IoLoop, order: contract.GameOrder) -> None:
        self._loop, self._order = loop, order
        self._kept: list[StampedPly] = []
        self._sent_ns = 0
        self.waited_ns = 0

    def take(self, ply: StampedPly, san: str, search: base.Search | None) -> None:
        """Send a journaled ply at once; keep any other, queued first where somebody looks on."""
        if self._order.journaled:
            assert search is not None
            written = payload(ply, san, search)
            self._sent_ns = time.monotonic_ns()
            self._loop.send_ply(written)
            return
        if self._order.shown:
            assert search is not None
            self._loop.show_ply(payload(ply, san, search))
        self._kept.append(ply.kept())

    def wait_for_link(self) -> None:
        """Wait for GO_ON with both clocks stopped; the young garbage goes meanwhile."""
        gc.collect(0)
        self._loop.wait_for_go_on()
        self.waited_ns = time.monotonic_ns() - self._sent_ns

    def tell_kept(self, game: board.GameBoard, search: Search) -> None:
        """Write down the plies that were kept, and send them."""
        if not self._order.recorded or self._order.shown:
            return
        sans = game.sans
        for ply in self._kept:
            info = search(ply.side, ply.output)
            self._loop.send(frames.Kind.PLY, payload(ply, sans[ply.ply - 1], info))

    def tell_pgn(
        self,
        outcome: contract.Outcome,
        reports: result.Reports,
        game: board.GameBoard,
        search: Search,
        times: result.Times,
    ) -> None:
        """Write the game as PGN, and send it in pieces."""
        bare = self._order.pgn is not None and self._order.pgn.minimal
        records = [
            record(ply, base.SAID_NOTHING if bare else search(ply.side, ply.output))
            for ply in self._kept
        ]
        begun = game.ply - len(records)
        played = list(zip(game.sans[begun:], game.reached[begun:], strict=True))
        text = result.pgn(self._order, outcome, reports, records, played, times)
        data = text.encode(errors="replace")
        for at in range(0, len(data), PIECE_BYTES):
            self._loop.send(frames.Kind.PGN, data[at : at + PIECE_BYTES])
