"""How an attempt that holds a slot came to stand: its end, described from its plies."""

from __future__ import annotations

from orchestrator import contract
from orchestrator.ledger import api


def ended(slot: api.Slot, ledger: api.Ledger, cause: str, evidence: str) -> contract.AttemptEnded:
    """Describe the end of the slot's attempt from its last journaled ply."""
    plies = ledger.plies(slot.attempt)
    last = contract.loads(plies[-1][1]) if plies else {}
    return contract.AttemptEnded(
        game=slot.game,
        attempt=slot.attempt,
        hall=slot.hall,
        lane=slot.lane,
        host=slot.host,
        cause=cause,
        evidence=evidence,
        ply=last.get("ply", 0),
        white_clock_ns=last.get("white_clock_ns"),
        black_clock_ns=last.get("black_clock_ns"),
    )
