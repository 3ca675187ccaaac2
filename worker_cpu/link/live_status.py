"""What spectators see of the game in flight: published a few times a second, never the truth.

Parsing happens here, in the link, so that nothing is parsed beside a running clock in
the referee. Publishing may fail; the game does not care (S16-15b i).
"""

from __future__ import annotations

import time

import structlog

from orchestrator import contract
from orchestrator.arbiter import live_picture
from orchestrator.common import errors
from orchestrator.ledger import api, store
from worker_cpu.protocols import registry
from worker_cpu.wire import frames

log = structlog.get_logger()

PUBLISH_SECONDS = 0.25  # s: at most this often while an engine thinks
BACKOFF_SECONDS = 2.0  # s: no publishing for that long after Redis failed to take one
FRESH_MS = 30_000  # ms: what is older than that is not live any more

SEATS: dict[frames.Seat, contract.Side] = {"w": "white", "b": "black"}


class LiveStatus:
    """The public picture of one game."""

    def __init__(
        self, ledger: store.RedisLedger, order: contract.GameOrder, claim: api.Claim, now_ms: int
    ) -> None:
        self._ledger = ledger
        self._order = order
        self._hall = claim.hall
        self._offset_ms = now_ms - time.monotonic_ns() // 1_000_000
        self._picture = live_picture.LivePicture(order, claim.attempt, now_ms)
        self._quiet_until = 0.0

    def now_ms(self) -> int:
        """Return Redis' time of day, carried on by this host's monotonic clock."""
        return self._offset_ms + time.monotonic_ns() // 1_000_000

    def ready(self, payload: bytes) -> None:
        """Both engines are ready."""
        self._picture.ready(payload)
        self._publish(force=True)

    def think(self, payload: bytes) -> None:
        """An engine's clock starts."""
        self._picture.think(payload, self.now_ms())
        self._publish(force=False)

    def chunk(self, chunk: frames.Chunk) -> None:
        """Take what an engine printed; parse it only if it is time to publish."""
        if chunk.direction != "<" or time.monotonic() < self._quiet_until:
            return
        side = SEATS[chunk.seat]
        search = registry.last_search(self._order.engine(side).protocol, chunk.data)
        if search.score is not None:
            self._picture.search(side, registry.public(search))
            self._publish(force=False)

    def ply(self, ply: contract.PlyRecord) -> None:
        """A ply is complete and journaled."""
        self._picture.ply(ply)

    def _publish(self, *, force: bool) -> None:
        now = time.monotonic()
        if now < self._quiet_until and not force:
            return
        self._quiet_until = now + PUBLISH_SECONDS
        try:
            self._ledger.set_live(self._hall, contract.dumps(self._picture.data), FRESH_MS)
        except errors.LedgerAwayError as error:
            self._quiet_until = now + BACKOFF_SECONDS
            log.debug("live.failed", error=str(error))
