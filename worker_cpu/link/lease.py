"""The lease of a game: the right to write of it, extended on a beat.

A hall's attempt and a lane's game have one. A renewal feeds the dead man with the time of the
request, so that it kills the engines before the lease can go to anybody else. The reply carries the
reason for which the game is to be aborted: an operator's request, or the end of a test match.
Invariants: a lost lease is never renewed again, and its engines are killed at once; while Redis is
away the dead man is not fed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from orchestrator.common import errors
from orchestrator.ledger import api
from worker_cpu.engines import handles

log = structlog.get_logger()

HURRY_SECONDS = 1.0  # s: after a renewal that failed the next one comes so soon, or sooner
FENCED = "fenced: another attempt has the lease"
NS = 1_000_000_000


class Lease:
    """The lease of one game; ``aborted`` is the reason to end it, or ''."""

    def __init__(
        self,
        renewal: Callable[[], api.Renewed | api.Fenced],
        dead_man: handles.DeadMan,
        beat_seconds: float,
    ) -> None:
        """Renew by ``renewal``, which may raise ``LedgerAwayError``."""
        self.lost = False
        self.aborted = ""
        self._renewal, self._dead_man, self._beat_seconds = renewal, dead_man, beat_seconds
        self._due = 0.0  # monotonic second of the next renewal

    @property
    def rest_seconds(self) -> float:
        """Return how long it is until the next renewal."""
        return max(0.0, self._due - time.monotonic())

    def asked_at(self, sent_ns: int) -> None:
        """Note when the lease was asked for (CLOCK_BOOTTIME): that counts as a renewal."""
        since = (handles.boottime_ns() - sent_ns) / NS
        self._due = time.monotonic() + self._beat_seconds - since
        self._dead_man.feed(sent_ns)

    def beat(self) -> None:
        """Renew the lease if it is time; does nothing for one that was lost."""
        if time.monotonic() >= self._due and not self.lost:
            self.renew()

    def renew(self) -> None:
        """Extend the lease, feed the dead man, hear whether the game is to be aborted."""
        self._due = time.monotonic() + self._beat_seconds
        sent_ns = handles.boottime_ns()
        try:
            reply = self._renewal()
        except errors.LedgerAwayError as error:
            log.warning("renewal.failed", error=str(error))
            self._due = time.monotonic() + min(HURRY_SECONDS, self._beat_seconds)
            return
        if isinstance(reply, api.Fenced):
            self.lose()
            return
        self._dead_man.feed(sent_ns)
        if reply.abort:
            log.warning("game.aborted", reason=reply.abort)
            self.aborted = reply.abort
            self._dead_man.kill(f"aborted: {reply.abort}")

    def lose(self) -> None:
        """Stop a game of which nothing may be written any more; somebody else decides over it."""
        if not self.lost:
            self.lost = True
            log.error("attempt.fenced")
            self._dead_man.kill(FENCED)
