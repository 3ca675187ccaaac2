"""A completed engine ply as the link gets it: at once, or with all others at the game's end.

A journaled order's plies go out one by one, because the link makes each durable before the
next clock starts. Of any other order nothing is written between two plies: what a ply
needs is kept as it is, and read and written down when both clocks have stopped for good
(decision 021). Invariant: the content of a ply does not depend on when it is written.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, NamedTuple

from orchestrator import contract
from orchestrator.arbiter import clock
from orchestrator.arbiter import score as scores
from worker_cpu.protocols import base

KEPT_BYTES = 1 << 16  # bytes of a search's output kept with a ply: its end has the last score


class Played(NamedTuple):
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

    def kept(self) -> Played:
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


def record(played: Played, found: base.Search) -> contract.PlyRecord:
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
        score=found.score,
        depth=found.depth,
        seldepth=found.seldepth,
        nodes=found.nodes,
        nps=found.nps,
        tbhits=found.tbhits,
        hashfull=found.hashfull,
        wdl=found.wdl,
        pv=found.pv,
        ponder=played.reply.ponder,
        counters=played.counters,
        pondered=played.pondered,
        pondered_ns=played.pondered_ns,
    )


def payload(played: Played, san: str, found: base.Search) -> bytes:
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
        "score": None if found.score is None else _score(found.score),
        "depth": found.depth,
        "seldepth": found.seldepth,
        "nodes": found.nodes,
        "nps": found.nps,
        "tbhits": found.tbhits,
        "hashfull": found.hashfull,
        "wdl": found.wdl,
        "pv": found.pv,
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
