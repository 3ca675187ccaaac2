"""Redis comes back without its last writes, emptied, or is another one: seen, told, put right."""

from __future__ import annotations

import json
import pathlib
import shutil
import signal

import aof
import checker
import harness
import pytest

from orchestrator.common import errors
from orchestrator.ledger import store

SEASON = "s"
SHORT = "{ max_moves = 25 }"  # games that are at stake, not played well


def begun(farm: harness.Farm, *words: str) -> None:
    """Launch a season of two engines: four games."""
    engines = [harness.scripted(farm.life, strength, *words) for strength in (1, 3)]
    file = harness.league(farm.root / "s.toml", engines, final_games=2, adjudication=SHORT)
    farm.launch(file, SEASON)


def played(farm: harness.Farm, games: int) -> bool:
    """Say whether so many games are over and the next one is begun, all of it in the mirror."""
    if not (farm.archive / SEASON / "journal.jsonl").exists():
        return False
    kinds = [entry.kind for entry in harness.journal(farm, SEASON)]
    return kinds.count("game_finished") >= games and kinds[-1] == "attempt_started"


def lose(farm: harness.Farm, entries: int, *, serve: bool, worker: bool = False) -> None:
    """Let Redis come back without a journal's last entries; others may be killed with it."""
    pid = farm.redis.pid
    harness.kill(pid, signal.SIGKILL)
    if serve:
        farm.serve.kill()
    if worker:
        farm.worker.kill()
    harness.wait(lambda: not harness.alive(pid), "the end of Redis")
    assert aof.cut(farm.root / "redis", SEASON, entries) == entries
    farm.redis.start()
    farm.keep_alive()


def status(farm: harness.Farm, code: int) -> str:
    """Run `farm status`, which ends with a code; return what it prints."""
    done = harness.celery_farm(farm.serve.environment, "status")
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def restore(farm: harness.Farm) -> None:
    """Do what the alarm says: stop `serve`, restore, start it again."""
    farm.serve.stop(20)
    farm.operate("restore", "--reason", "test")
    farm.serve.start()


def ends_whole(farm: harness.Farm) -> None:
    """Wait for the season's end: every game once, with its record, PGN and place."""
    farm.finish(SEASON)
    checker.check_season(farm.archive, SEASON)
    checker.check_lives(farm.life)
    with store.connect(farm.redis.url) as ledger:
        told = ledger.read(SEASON, 0, 10_000)
    assert told == harness.journal(farm, SEASON)
    assert "ALARM" not in status(farm, 0)


@pytest.mark.parametrize(
    ("entries", "serve"), [(1, False), (3, True)], ids=["1, serve alive", "3, serve restarted"]
)
def test_lost_entries_suspend_the_season_until_a_restore(
    tmp_path: pathlib.Path, entries: int, *, serve: bool
) -> None:
    """Nothing is written where facts are missing; `farm restore` brings every game, once."""
    with harness.running(tmp_path, harness.LEASE) as farm:
        begun(farm, "--delay-ms", "20")
        farm.wait(lambda: played(farm, 2), 60, "two games")
        lose(farm, entries, serve=serve)
        farm.wait(lambda: SEASON in farm.ledger.alarms(), 60, "the alarm")
        told = status(farm, 3)
        assert "farm restore" in told
        last, mirrored = farm.ledger.last(SEASON), len(harness.journal(farm, SEASON))
        assert last < mirrored, "nobody has written in the place of what was lost"
        restore(farm)
        ends_whole(farm)


def test_a_spool_brings_the_record_that_redis_has_lost(tmp_path: pathlib.Path) -> None:
    """A result that the mirror has and Redis lost: its record comes from the hall, by itself."""
    with harness.running(tmp_path, harness.LEASE) as farm:
        gate = tmp_path / "gate"
        with harness.held(gate) as words:
            begun(farm, *words)
            harness.stands(gate)
            serve = farm.serve.pid
            harness.kill(serve, signal.SIGSTOP)  # it will not archive
        spool = farm.root / "halls" / harness.HALL / "spool"
        harness.wait(lambda: list(spool.glob("*.spool")), "the spool")
        harness.wait(lambda: farm.ledger.read(SEASON)[-1].kind == "game_finished", "the result")
        attempt = next(spool.glob("*.spool")).stem
        farm.ledger.archived(attempt)  # the record is gone, its entry is not
        harness.kill(serve, signal.SIGCONT)
        ends_whole(farm)
        assert "record.given_back" in farm.worker.log.read_text()


@pytest.mark.parametrize("how", ["flushed", "fresh", "another"])
def test_an_emptied_redis_is_an_alarm(tmp_path: pathlib.Path, how: str) -> None:
    """`farm status` never says that there was no season; `farm restore` brings all back."""
    with harness.running(tmp_path, harness.LEASE) as farm:
        begun(farm, "--delay-ms", "20")
        farm.wait(lambda: played(farm, 1), 60, "a game")
        if how == "flushed":
            farm.ledger.server.client.flushall()
        else:
            farm.serve.stop(20)
            harness.kill(farm.redis.pid, signal.SIGKILL)
            harness.wait(lambda: farm.redis.pid is None or not harness.alive(farm.redis.pid), "x")
            shutil.rmtree(farm.root / "redis")
            farm.redis.start()
            emptied = status(farm, 3)  # nobody has published an alarm yet
            assert "farm restore" in emptied
            assert "No season has been launched" not in emptied
            if how == "another":
                engines = [harness.scripted(farm.life, strength) for strength in range(2)]
                path = farm.root / "o.toml"
                other = harness.league(path, engines, final_games=2, adjudication=SHORT)
                farm.launch(other, "other")
                with pytest.raises(errors.RefusedError, match="exists already"):
                    refused(farm, other)
            farm.serve.start()
        farm.wait(lambda: "farm restore" in farm.ledger.alarms().get(SEASON, ""), 60, "the alarm")
        alarms = json.loads(harness.celery_farm(farm.serve.environment, "status", "--json").stdout)
        assert "farm restore" in alarms["alarms"][SEASON]
        restore(farm)
        ends_whole(farm)
        if how == "another":
            assert farm.finish("other").finished


def refused(farm: harness.Farm, file: pathlib.Path) -> None:
    """Launch the lost season again, as its operator might."""
    farm.ledger.set_alarms({SEASON: "gone"})
    farm.launch(file, SEASON)
