"""Watch a hall's lease: when may an attempt be given up that no longer renews?

An overdue lease is marked suspect, and revoked after a full lease time of uninterrupted looks
that have seen no renewal, measured by this process' own monotonic clock. A renewal clears the
mark and begins the looks again; so does a look that comes late (this process was frozen, Redis
was away). So neither a stepped clock nor a frozen Redis revokes anything, and a
host that is lost costs one lease time: the looks count from the last renewal, not from the
moment at which Redis calls the lease overdue. A dead man has ended the engines by then; his
limit is shorter than the lease, and counts from before that renewal was seen here.
"""

from __future__ import annotations

import secrets

import structlog

from orchestrator import contract
from orchestrator.ledger import api, attempts, store

log = structlog.get_logger()

LATE_LOOK_SECONDS = 6.0  # s: a gap beyond a socket time-out is an interruption of the looks


class LeaseMonitor:
    """The looks at one hall's lease since its last renewal."""

    def __init__(self, hall: str) -> None:
        self.hall = hall
        self.reset()

    def reset(self) -> None:
        """Forget what was seen: the looks were interrupted, or nobody holds the hall."""
        self._renewed: tuple[contract.Token, int] | None = None  # as the last look saw it
        self._chain = ""  # the mark of an overdue lease, '' before
        self._since = self._last = 0.0

    def look(
        self,
        ledger: store.RedisLedger,
        slot: api.Slot | None,
        now: float,
        *,
        suspended: bool = False,
    ) -> bool:
        """Look at the slot at monotonic second ``now``; say whether it was revoked.

        ``suspended`` is its season, if ``serve`` plays nothing of that.
        """
        if slot is None:
            self.reset()
            return False
        renewed = (slot.token, slot.deadline_ms)
        if renewed != self._renewed or now - self._last > LATE_LOOK_SECONDS:
            self._renewed, self._chain, self._since = renewed, "", now
        self._last = now
        if not slot.overdue:
            return False
        if not self._suspected(ledger, slot):
            return False
        return self._revoked(ledger, slot, now, suspended=suspended)

    def _suspected(self, ledger: store.RedisLedger, slot: api.Slot) -> bool:
        """Mark an overdue lease; False when it has been renewed meanwhile."""
        if not self._chain:
            self._chain = secrets.token_hex(8)
            log.warning("lease.overdue", hall=self.hall, **_about(slot))
        if isinstance(ledger.suspect(self.hall, slot.token, self._chain), api.Alive):
            self.reset()
            return False
        return True

    def _revoked(
        self, ledger: store.RedisLedger, slot: api.Slot, now: float, *, suspended: bool
    ) -> bool:
        if now - self._since < slot.ttl_ms / 1000:
            return False
        evidence = f"no renewal for {slot.ttl_ms / 1000:g} s"
        end = attempts.ended(slot, ledger, "host lost", evidence)
        reply = ledger.revoke(self.hall, slot.token, self._chain, end, suspended=suspended)
        self.reset()
        if isinstance(reply, api.Alive):
            return False
        log.error("lease.revoked", hall=self.hall, **_about(slot))
        return True


def _about(slot: api.Slot) -> dict[str, str]:
    return {"season": slot.season, "game": slot.game, "attempt": slot.attempt}
