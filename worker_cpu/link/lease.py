"""An attempt's lease: the right to write of its game, extended on a beat.

A renewal carries the last journaled ply and when it was made. It feeds the dead man with the time
of the request, so that it kills the engines before the lease can go to anybody else. The reply
carries an operator's request to abort the game. Invariants: a lost lease is never renewed again,
and its engines are killed at once; while Redis is away the dead man is not fed.
"""

from __future__ import annotations

import time

import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api
from worker_cpu.engines import handles

log = structlog.get_logger()

HURRY_SECONDS = 1.0  # s: after a renewal that failed the next one comes so soon, or sooner
OPERATOR = "operator"  # the cause of an abort: it says nothing about engines or host
FENCED = "fenced: another attempt has the hall"


class Lease:
    """The lease of one attempt; ``aborted`` is the operator's reason to end it, or ''."""

    def __init__(
        self,
        ledger: api.Ledger,
        claim: api.Claim,
        token: contract.Token,
        dead_man: handles.DeadMan,
        beat_seconds: float,
    ) -> None:
        self.lost = False
        self.aborted = ""
        self._ledger, self._claim, self._token = ledger, claim, token
        self._dead_man, self._beat_seconds = dead_man, beat_seconds
        self._due = 0.0  # monotonic second of the next renewal
        self._ply, self._moved_ms = 0, 0

    @property
    def rest_seconds(self) -> float:
        """Return how long it is until the next renewal."""
        return max(0.0, self._due - time.monotonic())

    def carry(self, ply: int, moved_ms: int) -> None:
        """Let the next renewals carry a ply that is journaled."""
        self._ply, self._moved_ms = ply, moved_ms

    def beat(self) -> None:
        """Renew the lease if it is time; does nothing for one that was lost."""
        if time.monotonic() >= self._due and not self.lost:
            self.renew()

    def renew(self) -> None:
        """Extend the lease, feed the dead man, hear the wishes."""
        self._due = time.monotonic() + self._beat_seconds
        asked = handles.boottime_ns()
        try:
            reply = self._ledger.renew(
                self._claim.hall, self._token, self._claim.attempt, self._ply, self._moved_ms
            )
        except errors.LedgerAwayError as error:
            log.warning("renewal.failed", error=str(error))
            self._due = time.monotonic() + min(HURRY_SECONDS, self._beat_seconds)
            return
        if isinstance(reply, api.Fenced):
            self.lose()
            return
        self._dead_man.feed(asked)
        if reply.abort:
            log.warning("game.aborted", reason=reply.abort)
            self.aborted = reply.abort
            self._dead_man.kill(f"{OPERATOR}: {reply.abort}")

    def lose(self) -> None:
        """Stop an attempt that may not write any more; somebody else decides over the game."""
        if not self.lost:
            self.lost = True
            log.error("attempt.fenced")
            self._dead_man.kill(FENCED)
