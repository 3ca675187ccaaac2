"""The spool of a game that is archived: it goes while the next game is played, not behind it."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import hall as games
import harness
import pytest

from orchestrator import contract
from orchestrator.ledger import api, connection, embedded_redis, store
from worker_cpu import settings
from worker_cpu.hall import directory
from worker_cpu.worker import hall_worker

MOVES = 1


class Archiving(store.RedisLedger):
    """A ledger whose archive has the last game only when the next one is being played."""

    spool = pathlib.Path()
    left: list[str] | None = None  # spools that lie there when a game ends, before its own

    def claim(
        self, claim: api.Claim
    ) -> api.Claimed | api.Busy | api.NotReady | api.Held | api.Foreign:
        """Claim a game; behind the settling, as `serve` does, archive what was before it."""
        reply = super().claim(claim)
        self.set_mirrored("s", self.last("s"))
        return reply

    def write_ply(
        self,
        hall: str,
        token: contract.Token,
        attempt: str,
        ply: int,
        payload: str,
        first: int = 0,
    ) -> api.Written | api.Gap | api.Fenced:
        """Write the ply; at the last one look at the spools."""
        if ply == 2 * MOVES:
            self.left = [path.name for path in self.spool.iterdir()]
        return super().write_ply(hall, token, attempt, ply, payload, first)


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> Iterator[Archiving]:
    """Give such a ledger on a real server of its own."""
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "redis") as running,
        Archiving(connection.Server(running.url)) as ledger,
    ):
        ledger.spool = tmp_path / "spool"
        yield ledger


def test_a_spool_goes_while_the_next_game_is_played(
    ledger: Archiving, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`serve` offers a game before it archives the last one: no settling finds that archived."""
    configured = settings.HallSettings(
        hall=harness.HALL, directory=tmp_path, redis_url="", host="host", worker="worker",
        beat_seconds=0.2, dead_man_seconds=30, lease_seconds=60, engine_sandbox="plain",
    )  # fmt: skip
    rules = contract.Adjudication(max_moves=MOVES)
    ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
    ledger.open_hall(harness.HALL, "host", "worker")
    before = games.order(games.scripted(), games.scripted(), adjudication=rules)
    ledger.offer(harness.HALL, "s", before.game, before.encode(), ledger.last("s"))
    claim = harness.claim("s", before.game, "earlier")
    claimed = store.RedisLedger.claim(ledger, claim)
    assert isinstance(claimed, api.Claimed), claimed
    finished, packed = harness.invented(before, claim, claimed.token)
    spooled = directory.Spooled(harness.HALL, claimed.token, "s", finished, packed)
    made = directory.HallDirectory(tmp_path)
    path = made.write_spool(spooled)
    ledger.complete(harness.HALL, claimed.token, "s", finished, packed)
    order = before.model_copy(update={"game": "e.2", "number": 2})
    ledger.offer(harness.HALL, "s", order.game, order.encode(), ledger.last("s"))
    monkeypatch.setattr(store, "connect", lambda _: ledger)
    worker = hall_worker.HallWorker(configured)
    try:
        worker.look()
    finally:
        worker._fork_server.end()
    assert ledger.left == [], "of the game before"
    assert not path.exists()
    assert len(made.spooled()) == 1, "its own, which nobody has archived"
