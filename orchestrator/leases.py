"""Watch a hall's lease: when may an attempt be given up that no longer renews?

An overdue lease is first marked suspect and revoked only after a full lease time of
uninterrupted looks, measured by this process' own monotonic clock; a renewal clears the
mark, and a look that comes late (this process was frozen, Redis was away) begins the
chain anew. So neither a stepped clock nor a frozen Redis revokes anything (DESIGN §3.7).
"""

from __future__ import annotations

import secrets

import structlog

from orchestrator import contract
from orchestrator.ledger import api, attempts

log = structlog.get_logger()

LATE_LOOK_SECONDS = 6.0  # s: a gap beyond a socket time-out is an interruption of the looks


class Lookout:
    """The chain of looks at one hall's overdue lease."""

    def __init__(self, hall: str) -> None:
        self.hall = hall
        self.reset()

    def reset(self) -> None:
        """Forget the chain: the looks were interrupted, or the lease is alive."""
        self._chain = ""
        self._token: contract.Token | None = None
        self._since = self._last = 0.0

    def look(self, ledger: api.Ledger, slot: api.Slot | None, now: float) -> bool:
        """Look at the slot at monotonic second ``now``; say whether it was revoked."""
        if slot is None or not slot.overdue:
            self.reset()
            return False
        if slot.token != self._token or now - self._last > LATE_LOOK_SECONDS:
            self._chain, self._token, self._since = secrets.token_hex(8), slot.token, now
            log.warning("lease.overdue", hall=self.hall, game=slot.game, attempt=slot.attempt)
        self._last = now
        if isinstance(ledger.suspect(self.hall, slot.token, self._chain), api.Alive):
            self.reset()
            return False
        if now - self._since < slot.ttl_ms / 1000:
            return False
        return self._revoke(ledger, slot)

    def _revoke(self, ledger: api.Ledger, slot: api.Slot) -> bool:
        evidence = f"no renewal for {2 * slot.ttl_ms / 1000:g} s"
        end = attempts.ended(slot, ledger, "host lost", evidence)
        reply = ledger.revoke(self.hall, slot.token, self._chain, end)
        self.reset()
        if isinstance(reply, api.Alive):
            return False
        log.error("lease.revoked", hall=self.hall, game=slot.game, attempt=slot.attempt)
        return True
