"""Redis goes away in the middle of a look: one ring is enough, and the claim stays one claim."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import hall as games
import pytest
import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import embedded_redis, store
from worker_cpu import settings
from worker_cpu.link import redis_retry
from worker_cpu.worker import hall_worker


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> Iterator[store.RedisLedger]:
    """Give a ledger on a real server of its own."""
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "redis") as running,
        store.connect(running.url) as connected,
    ):
        yield connected


@pytest.fixture
def hall(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[hall_worker.HallWorker]:
    """Give a hall that has one short game to play: White's first move is illegal."""
    order = games.order(games.scripted("--fault", "illegal@1"), games.scripted())
    ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
    ledger.open_hall("main", "h1", "w1")
    ledger.offer("main", "s", order.game, order.encode(), ledger.last("s"))
    monkeypatch.setattr(store, "connect", lambda _: ledger)
    made = hall_worker.HallWorker(
        settings.HallSettings(
            hall="main", directory=tmp_path, redis_url="", host="h1", worker="w1",
            beat_seconds=0.2, dead_man_seconds=30, lease_seconds=60,
        )
    )  # fmt: skip
    yield made
    made._fork_server.end()


def lost(verb: Callable[..., Any], times: int) -> Callable[..., Any]:
    """Let a verb be carried out, and its first replies be lost."""
    left = times

    def carried_out(*arguments: Any) -> Any:
        nonlocal left
        reply = verb(*arguments)
        if left:
            left -= 1
            raise errors.LedgerUnreachableError("the reply was lost")
        return reply

    return carried_out


@pytest.mark.parametrize("verb", ["open_hall", "offered", "claim", "now_ms", "complete"])
def test_a_lost_reply_costs_neither_a_ring_nor_an_attempt(
    verb: str,
    ledger: store.RedisLedger,
    hall: hall_worker.HallWorker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever reply is lost, the ring that was heard leads to the game, by one attempt."""
    monkeypatch.setattr(ledger, verb, lost(getattr(ledger, verb), times=2))
    hall.look()
    kinds = Counter(entry.kind for entry in ledger.read("s"))
    assert (kinds["attempt_started"], kinds["attempt_ended"], kinds["game_finished"]) == (1, 0, 1)


def test_what_an_outage_cut_off_is_settled_without_a_ring(
    ledger: store.RedisLedger, hall: hall_worker.HallWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that nobody heard of within the link's patience is given up by the same look."""
    monkeypatch.setattr(redis_retry, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(ledger, "claim", lost(ledger.claim, times=1))
    hall.look()
    kinds = [entry.kind for entry in ledger.read("s")]
    assert kinds[1:] == ["attempt_started", "attempt_ended"]
    assert ledger.slot("main") is None


def test_an_outage_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often Redis is asked in vain, the log has one line of it."""
    monkeypatch.setattr(redis_retry, "RETRY_SECONDS", 0.0)
    with structlog.testing.capture_logs() as told:
        assert redis_retry.retry(lost(lambda: "here", times=20)) == "here"
    assert [line["event"] for line in told] == ["redis.away"]


def test_a_redis_that_stays_away_ends_the_look(
    ledger: store.RedisLedger, hall: hall_worker.HallWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look waits for Redis so long and no longer: a worker that is told to end must end."""
    monkeypatch.setattr(redis_retry, "AWAY_SECONDS", 0.5)
    monkeypatch.setattr(ledger, "open_hall", lost(ledger.open_hall, times=10**6))
    for look in (hall.look, hall.open):
        with structlog.testing.capture_logs() as told:
            look()
        assert [line["event"] for line in told] == ["redis.away"] * 2  # the work, and the wait
    assert [entry.kind for entry in ledger.read("s")] == ["launched"]
    assert ledger.slot("main") is None
