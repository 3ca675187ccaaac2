"""The last ply of a game: the referee waits for nothing behind it, however slow Redis is."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import hall as games
import harness
import pytest

from orchestrator import contract
from orchestrator.ledger import api, connection, embedded_redis, store
from worker_cpu import settings
from worker_cpu.worker import hall_worker

MOVES = 1
LAST = 2 * MOVES


class Slow(store.RedisLedger):
    """A ledger that takes the last ply only when the referee has ended."""

    fork_server_pid = -1

    def write_ply(
        self,
        hall: str,
        token: contract.Token,
        attempt: str,
        ply: int,
        payload: str,
        first: int = 0,
    ) -> api.Written | api.Gap | api.Fenced:
        """Write the ply."""
        if ply == LAST:
            referee = harness.children(self.fork_server_pid)[-1:]
            harness.wait(lambda: not any(map(harness.alive, referee)), "the referee's end")
        return super().write_ply(hall, token, attempt, ply, payload, first)


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> Iterator[Slow]:
    """Give such a ledger on a real server of its own."""
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "redis") as running,
        Slow(connection.Server(running.url)) as ledger,
    ):
        yield ledger


def test_a_referee_that_has_ended_before_its_last_ply_is_kept_has_finished_the_game(
    ledger: Slow, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody hears the word to go on: the result that was sent before is recorded all the same."""
    configured = settings.HallSettings(
        hall="main", directory=tmp_path, redis_url="", host="h1", worker="w1",
        beat_seconds=0.2, dead_man_seconds=30, lease_seconds=60, engine_sandbox="plain",
    )  # fmt: skip
    order = games.order(
        games.scripted(),
        games.scripted(),
        adjudication=contract.Adjudication(max_moves=MOVES),
    )
    ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
    ledger.open_hall("main", "h1", "w1")
    ledger.offer("main", "s", order.game, order.encode(), ledger.last("s"))
    monkeypatch.setattr(store, "connect", lambda _: ledger)
    made = hall_worker.HallWorker(configured)
    try:
        ledger.fork_server_pid = made._fork_server._process.pid
        made.look()
    finally:
        made._fork_server.end()
    kinds = [entry.kind for entry in ledger.read("s")]
    assert kinds == ["launched", "attempt_started", "game_finished"]
    assert not games.survivors(order.game)
