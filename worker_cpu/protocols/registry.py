"""The protocols by their names in ``contract.EngineSpec``."""

from __future__ import annotations

from typing import Any

from orchestrator import contract
from orchestrator.arbiter import board
from worker_cpu.protocols import base, uci, uci_engine, xboard, xboard_engine


def handshake(
    order: contract.GameOrder, side: contract.Side, now_ns: int, game: board.GameBoard
) -> base.Handshake:
    """Return the handshake of one side's engine, begun at ``now_ns`` (monotonic)."""
    if order.engine(side).protocol == "xboard":
        return xboard_engine.XboardHandshake(order, side, now_ns, game)
    return uci_engine.UciHandshake(order, side, now_ns, game)


def last_search(protocol: contract.ProtocolName, output: bytes) -> base.Search:
    """Read the last exact score and the newest counters in an engine's output."""
    return xboard.last_search(output) if protocol == "xboard" else uci.last_search(output)


def public(search: base.Search) -> dict[str, Any]:
    """Return an engine's last word on its search as spectators get it; the score is the mover's."""
    score = search.score
    return {
        "cp": None if score is None else score.cp,
        "mate": None if score is None else score.mate,
        "depth": search.depth,
        "seldepth": search.seldepth,
        "nodes": search.nodes,
        "nps": search.nps,
        "tbhits": search.tbhits,
        "hashfull": search.hashfull,
        "wdl": search.wdl,
        "pv": list(search.pv),
    }
