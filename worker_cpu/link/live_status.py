"""What spectators see of the game in flight: published a few times a second, never the truth.

Parsing happens here, in the link, so that nothing is parsed beside a running clock in
the referee. Publishing may fail; the game does not care (S16-15b i).
"""

from __future__ import annotations

import time
from typing import Any

import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api
from worker_cpu.protocols import base, registry
from worker_cpu.wire import frames

log = structlog.get_logger()

PUBLISH_SECONDS = 0.25  # s: at most this often while an engine thinks
BACKOFF_SECONDS = 2.0  # s: no publishing for that long after Redis failed to take one
FRESH_MS = 30_000  # ms: what is older than that is not live any more

SEATS: dict[frames.Seat, contract.Side] = {"w": "white", "b": "black"}


class LiveBoard:
    """The public picture of one game."""

    def __init__(
        self, ledger: api.Ledger, order: contract.GameOrder, claim: api.Claim, now_ms: int
    ) -> None:
        self._ledger = ledger
        self._order = order
        self._hall = claim.hall
        self._offset_ms = now_ms - time.monotonic_ns() // 1_000_000
        self._picture: dict[str, Any] = {
            "v": contract.SCHEMA,
            "season": order.season,
            "event": order.event,
            "game": order.game,
            "attempt": claim.attempt,
            "started_ms": now_ms,
            "ply": len(order.opening.moves),
            "thinking": None,
            "since_ms": None,
            "counters": None,
            "white": _player(order, "white"),
            "black": _player(order, "black"),
        }
        self._quiet_until = 0.0

    def now_ms(self) -> int:
        """Return Redis' time of day, carried on by this host's monotonic clock."""
        return self._offset_ms + time.monotonic_ns() // 1_000_000

    def ready(self, payload: bytes) -> None:
        """Both engines are ready."""
        for side, report in contract.loads(payload).items():
            self._picture[side]["engine"] = report.get("id_name", "")
            self._picture[side]["author"] = report.get("id_author", "")
            options = report.get("options", ())
            told = [[one["name"], one["set"]] for one in options if one["set"] is not None]
            self._picture[side]["options"] = told
        self._publish(force=True)

    def think(self, payload: bytes) -> None:
        """An engine's clock starts."""
        told = contract.loads(payload)
        self._picture["thinking"] = told["side"]
        self._picture[told["side"]].pop("search", None)  # it was about the move before
        self._picture["since_ms"] = self.now_ms()
        self._picture["white"]["clock_ms"] = told["white_clock_ns"] // 1_000_000
        self._picture["black"]["clock_ms"] = told["black_clock_ns"] // 1_000_000
        self._publish(force=False)

    def chunk(self, chunk: frames.Chunk) -> None:
        """Take what an engine printed; parse it only if it is time to publish."""
        if chunk.direction != "<" or time.monotonic() < self._quiet_until:
            return
        side = SEATS[chunk.seat]
        search = registry.last_search(self._order.engine(side).protocol, chunk.data)
        if search.score is not None:
            self._picture[side]["search"] = _public(search)
            self._publish(force=False)

    def ply(self, ply: contract.PlyRecord) -> None:
        """A ply is complete and journaled."""
        self._picture["ply"] = ply.ply
        self._picture["thinking"] = None
        self._picture["counters"] = ply.counters and ply.counters.model_dump()
        self._picture["white"]["clock_ms"] = ply.white_clock_ns // 1_000_000
        self._picture["black"]["clock_ms"] = ply.black_clock_ns // 1_000_000

    def _publish(self, *, force: bool) -> None:
        now = time.monotonic()
        if now < self._quiet_until and not force:
            return
        self._quiet_until = now + PUBLISH_SECONDS
        try:
            self._ledger.set_live(self._hall, contract.dumps(self._picture), FRESH_MS)
        except errors.LedgerAwayError as error:
            self._quiet_until = now + BACKOFF_SECONDS
            log.debug("live.failed", error=str(error))


def _player(order: contract.GameOrder, side: contract.Side) -> dict[str, Any]:
    engine = order.engine(side)
    return {"id": engine.id, "name": engine.name, "clock_ms": order.control(side).start_ms}


def _public(search: base.Search) -> dict[str, Any]:
    """Return an engine's last word on its search; the score is the mover's."""
    score = search.score
    return {
        "cp": None if score is None else score.cp,
        "mate": None if score is None else score.mate,
        "depth": search.depth,
        "seldepth": search.seldepth,
        "nodes": search.nodes,
        "nps": search.nps,
        "tbhits": search.tbhits,
        "pv": list(search.pv),
    }
