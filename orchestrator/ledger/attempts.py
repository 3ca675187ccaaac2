"""How an attempt that holds a slot came to stand: its end, described from its plies."""

from __future__ import annotations

from orchestrator import contract
from orchestrator.ledger import api, store


def ended(
    slot: api.Slot, ledger: store.RedisLedger, cause: str, evidence: str
) -> contract.AttemptEnded:
    """Describe the end of the slot's attempt from its last journaled ply."""
    last = _last(ledger, slot.attempt)
    return contract.AttemptEnded(
        game=slot.game,
        attempt=slot.attempt,
        hall=slot.hall,
        lane=slot.lane,
        host=slot.host,
        cause=cause,
        evidence=evidence,
        ply=last.ply if last else 0,
        white_clock_ns=last.white_clock_ns if last else None,
        black_clock_ns=last.black_clock_ns if last else None,
    )


def _last(ledger: store.RedisLedger, attempt: str) -> contract.PlyRecord | None:
    """Return the last ply that can be read: what stands behind it is judged as unreadable."""
    for _, payload in reversed(ledger.plies(attempt)):
        try:
            return contract.PlyRecord.decode(payload)
        except ValueError:
            continue
    return None
