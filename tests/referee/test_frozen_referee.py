"""A referee that is frozen while an engine thinks: the link ends it, and blames nobody."""

from __future__ import annotations

import os
import pathlib
import signal
import threading
from collections.abc import Iterator

import hall as games
import pytest

from orchestrator import contract, embedded
from orchestrator.ledger import api, connection, store
from worker_cpu import keeper, link, processes, settings


class Freezing(store.RedisLedger):
    """A ledger that stops the referee a moment after the first ply has been written."""

    nursery_pid = -1

    def write_ply(
        self, hall: str, token: contract.Token, attempt: str, ply: int, payload: str
    ) -> api.Written | api.Gap | api.Fenced:
        """Write the ply; its answer starts the next clock, then the referee stands still."""
        children = pathlib.Path(f"/proc/{self.nursery_pid}/task/{self.nursery_pid}/children")
        referee = int(children.read_text().split()[-1])
        reply = super().write_ply(hall, token, attempt, ply, payload)
        # In the middle of the clock: a busy machine has a second on either side.
        threading.Timer(1.0, os.kill, (referee, signal.SIGSTOP)).start()
        return reply


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> Iterator[Freezing]:
    """Give such a ledger on a real server of its own."""
    with embedded.EmbeddedRedis(tmp_path / "redis") as running:
        ledger = Freezing(connection.Server(running.url))
        with ledger:
            yield ledger


def test_a_frozen_referee_is_an_interruption(
    ledger: Freezing, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word long after the stall: the dead man kills, the attempt is given up."""
    monkeypatch.setattr(link, "FROZEN_SECONDS", 0.2)
    monkeypatch.setattr(link, "REFEREE_SECONDS", 0.2)
    configured = settings.HallSettings(
        hall="main", directory=tmp_path, redis_url="", host="h1", worker="w1",
        beat_seconds=0.2, dead_man_seconds=30, lease_seconds=60,
    )  # fmt: skip
    order = games.order(
        games.scripted("--fault", "no-eval"),
        games.scripted("--fault", "sleepy@2"),
        time_control=contract.TimeControl(base_ms=2_000, increment_ms=0),
    )
    ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
    ledger.open_hall("main", "h1", "w1")
    ledger.offer("main", "s", order.game, order.encode(), ledger.last("s"))
    monkeypatch.setattr(store, "connect", lambda _: ledger)
    made = keeper.HallKeeper(configured)
    monkeypatch.setattr(processes, "END_SECONDS", 2.0)
    try:
        ledger.nursery_pid = made._nursery._process.pid
        made.look()
    finally:
        made._nursery.end()
    ended = [entry.data for entry in ledger.read("s") if entry.kind == "attempt_ended"]
    assert [(fact["cause"], fact["ply"]) for fact in ended] == [("referee lost", 1)]
    assert not games.survivors(order.game)
    log = next(tmp_path.rglob("*deadman*")).read_text()
    assert "referee frozen" in log
