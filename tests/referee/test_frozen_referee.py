"""A referee that is frozen, while an engine thinks or none: the link ends it, and blames nobody."""

from __future__ import annotations

import os
import pathlib
import signal
from collections.abc import Callable, Iterator

import hall as games
import harness
import pytest

from orchestrator import contract
from orchestrator.ledger import api, connection, embedded_redis, store
from worker_cpu import settings
from worker_cpu.engines import handles
from worker_cpu.link import live_status
from worker_cpu.referee import session
from worker_cpu.worker import hall_worker

BEATS = 3  # renewals for which an engine says nothing at its start


class Freezing(store.RedisLedger):
    """A ledger that stops the referee: when it hears that Black's clock runs, or of a ply."""

    fork_server_pid = -1
    gate = pathlib.Path()
    frozen = False
    at_ply = False
    when_frozen: Callable[[], None] = staticmethod(lambda: None)

    def set_live(self, hall: str, payload: str, ttl_ms: int) -> None:
        """Show the board; when Black thinks, the referee stands still from then on."""
        if not (self.frozen or self.at_ply) and contract.loads(payload)["thinking"] == "black":
            harness.stands(self.gate)
            self._freeze()
        super().set_live(hall, payload, ttl_ms)

    def write_ply(
        self,
        hall: str,
        token: contract.Token,
        attempt: str,
        ply: int,
        payload: str,
        first: int = 0,
    ) -> api.Written | api.Gap | api.Fenced:
        """Write the ply; the referee, which waits for that, may not hear of it."""
        if self.at_ply:
            self._freeze()
        return super().write_ply(hall, token, attempt, ply, payload, first)

    def _freeze(self) -> None:
        self.frozen = True
        os.kill(harness.children(self.fork_server_pid)[-1], signal.SIGSTOP)
        self.when_frozen()


@pytest.fixture
def ledger(tmp_path: pathlib.Path) -> Iterator[Freezing]:
    """Give such a ledger on a real server of its own."""
    with embedded_redis.EmbeddedRedis(tmp_path / "redis") as running:
        ledger = Freezing(connection.Server(running.url))
        with ledger:
            yield ledger


@pytest.mark.parametrize("at_ply", [False, True], ids=["clock runs", "between plies"])
def test_a_frozen_referee_is_an_interruption(
    at_ply: bool, ledger: Freezing, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word long after one was due: the dead man kills, the attempt is given up."""
    ledger.at_ply = at_ply
    ledger.when_frozen = lambda: monkeypatch.setattr(session, "FROZEN_SECONDS", 0.2)
    monkeypatch.setattr(session, "longest_silence_ns", lambda *_: 0)
    monkeypatch.setattr(session, "FROZEN_SECONDS", 60.0)
    monkeypatch.setattr(live_status, "PUBLISH_SECONDS", 0)
    configured = settings.HallSettings(
        hall="main", directory=tmp_path, redis_url="", host="h1", worker="w1",
        beat_seconds=0.2, dead_man_seconds=30, lease_seconds=60, engine_sandbox="plain",
    )  # fmt: skip
    ledger.gate = tmp_path / "gate"
    with harness.held(ledger.gate, 2) as hold:
        order = games.order(
            games.scripted("--fault", "no-eval"),
            games.scripted(*hold),
            time_control=contract.TimeControl(base_ms=2_000, increment_ms=0),
        )
        ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
        ledger.open_hall("main", "h1", "w1")
        ledger.offer("main", "s", order.game, order.encode(), ledger.last("s"))
        monkeypatch.setattr(store, "connect", lambda _: ledger)
        made = hall_worker.HallWorker(configured)
        monkeypatch.setattr(handles, "END_SECONDS", 2.0)
        try:
            ledger.fork_server_pid = made._fork_server._process.pid
            made.look()
        finally:
            made._fork_server.end()
    ended = [entry.data for entry in ledger.read("s") if entry.kind == "attempt_ended"]
    assert [(fact["cause"], fact["ply"]) for fact in ended] == [(session.FROZEN, 1)]
    assert not games.survivors(order.game)
    log = next(tmp_path.rglob("*deadman*")).read_text()
    assert "referee frozen" in log


def test_the_patience_before_a_silent_referee_is_all_that_its_engines_may_take() -> None:
    """Both engines' sandbox, start, answer and end, one by one, and the longest broken link."""
    timeouts = contract.Timeouts(start_ms=60_000, ready_ms=10_000, quit_ms=5_000)
    seconds = session.longest_silence_ns(timeouts, 90.5) / 1e9
    assert seconds == 2 * (60 + 60 + 10 + 5) + 90.5


class Counting(store.RedisLedger):
    """A ledger that opens a gate at the first renewals of an attempt."""

    gate = pathlib.Path()
    renewals = 0

    def renew(
        self, hall: str, token: contract.Token, attempt: str, ply: int, last_move_ms: int
    ) -> api.Renewed | api.Fenced:
        """Renew the lease."""
        self.renewals += 1
        if self.renewals == BEATS:
            self.gate.touch()
        return super().renew(hall, token, attempt, ply, last_move_ms)


def test_an_engine_that_starts_for_longer_than_a_beat_is_waited_for(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease is renewed meanwhile, nobody takes its referee for frozen, and it plays."""
    gate = tmp_path / "gate"
    slow = f"""
import os, time
while not os.path.exists({str(gate)!r}):
    time.sleep(0.02)
"""
    configured = settings.HallSettings(
        hall="main", directory=tmp_path, redis_url="", host="h1", worker="w1",
        beat_seconds=0.1, dead_man_seconds=30, lease_seconds=60, engine_sandbox="plain",
    )  # fmt: skip
    order = games.order(
        games.program(slow + games.TALK + '        say("bestmove e2e4")\n'),
        games.answers('say("bestmove e7e5")'),
        adjudication=contract.Adjudication(max_moves=1),
    )
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "redis") as running,
        Counting(connection.Server(running.url)) as ledger,
    ):
        ledger.gate = gate
        ledger.append("s", 0, [contract.Draft("launched", {})], by="op")
        ledger.open_hall("main", "h1", "w1")
        ledger.offer("main", "s", order.game, order.encode(), ledger.last("s"))
        monkeypatch.setattr(store, "connect", lambda _: ledger)
        made = hall_worker.HallWorker(configured)
        try:
            made.look()
        finally:
            made._fork_server.end()
        facts = [entry.kind for entry in ledger.read("s")]
    assert ledger.renewals >= BEATS
    assert facts == ["launched", "attempt_started", "game_finished"]
