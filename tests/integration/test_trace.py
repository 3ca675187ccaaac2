"""One game in one timeline: `farm trace`, the ids in the logs, and logs that rotate."""

from __future__ import annotations

import dataclasses
import gzip
import json
import pathlib
import sys

import harness
import pytest
import structlog

from orchestrator.ledger import api
from orchestrator.ops import supervisor
from worker_cpu.kibitz import service


def test_a_game_is_one_timeline(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journal, both services' logs and the protocol stand in the order of what happened."""
    with harness.running(tmp_path) as farm:
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        for season in ("s", "t"):
            farm.launch(harness.league(tmp_path / f"{season}.toml", engines, final_games=2), season)
        farm.finish("s")
        farm.finish("t")
        told = json.loads(farm.operate("trace", "league.1", "--season", "s", "--json"))
        log = farm.archive / "t/games/league.1/protocol.log.gz"  # as a hostile hall may pack it
        log.write_bytes(gzip.compress(b"9" * 5_000 + b" W> a\n\xb2 W> b\n" + b"x" * (4 << 20)))
        assert "game_finished" in farm.operate("trace", "league.1", "--season", "t")
        printed = farm.operate("trace", "league.1", "--season", "s")
        logs = (tmp_path / "logs" / "worker.log").read_text()
    kinds = [line["what"] for line in told if line["source"] == "journal"]
    assert kinds.index("attempt_started") < kinds.index("game_finished")
    events = [line["what"] for line in told]
    for event in ("game.offered", "game.started", "game.finished", "uci"):
        assert event in events, event
    assert [line["at_ms"] for line in told] == sorted(line["at_ms"] for line in told)
    logged = [line["facts"] for line in told if line["source"] in ("serve", "link")]
    assert {facts["season"] for facts in logged} == {"s"}, "ids repeat across seasons"
    assert {facts["game"] for facts in logged} == {"league.1"}
    assert len({facts["attempt"] for facts in logged if "attempt" in facts}) == 1
    assert "game_finished" in printed
    assert "Task farm.play" not in logs, "a ring is no line"


def test_every_line_about_a_game_can_be_found(tmp_path: pathlib.Path) -> None:
    """Whatever names a game or an attempt in the logs names its season as well."""
    with harness.running(tmp_path, {"FARM_LOG_LEVEL": "INFO"}) as farm:
        engines = [harness.scripted(farm.life, n, "--delay-ms", "20") for n in (1, 2)]
        farm.launch(harness.league(tmp_path / "s.toml", engines, final_games=2), "s")
        farm.wait(lambda: harness.link_pid(farm) is not None and _plays(farm), 60, "a game")
        harness.kill(harness.link_pid(farm), 9)
        farm.finish("s")
    for log in (tmp_path / "logs").glob("*.log"):
        for text in log.read_text().splitlines():
            line = json.loads(text) if text.startswith("{") else {}
            if line.get("game") or line.get("attempt"):
                assert line.get("season"), text


def test_a_kibitzer_names_the_game_that_it_cannot_read() -> None:
    """Season, game and attempt, as everybody who logs something of a game."""
    ids = {"season": "s", "game": "league.1", "attempt": "a-1"}
    more = {field.name: "" for field in dataclasses.fields(api.Slot)}
    kibitzer = object.__new__(service.Kibitzer)
    kibitzer._refused = ""
    with structlog.testing.capture_logs() as lines:
        assert kibitzer._begin(api.Slot(**(more | ids | {"order": "{}"}))) is None  # type: ignore[arg-type]
    (line,) = lines
    assert line.items() >= (ids | {"event": "kibitzer.game_refused"}).items()


def _plays(farm: harness.Farm) -> bool:
    slot = farm.ledger.slot(harness.HALL)
    return slot is not None and bool(farm.ledger.plies(slot.attempt))


def test_logs_are_put_aside(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that has grown is copied and emptied; its process writes on, and few are kept."""
    monkeypatch.setattr(supervisor, "LOG_BYTES", 200)
    talker = "import time\nwhile True: print('x' * 60, flush=True); time.sleep(0.01)"
    log = tmp_path / "talker.log"
    process = supervisor.Supervised("talker", [sys.executable, "-c", talker], {}, log)
    process.start()
    try:
        for _ in range(supervisor.LOGS_KEPT + 3):
            harness.wait(lambda: log.stat().st_size >= 200, "a log that grows")
            process.keep_alive()
            assert log.stat().st_size < 10_000
        names = {path.name for path in tmp_path.iterdir()}
        kept = {f"talker.log.{n}" for n in range(1, supervisor.LOGS_KEPT + 1)}
        assert names == {"talker.log"} | kept
    finally:
        process.kill()
