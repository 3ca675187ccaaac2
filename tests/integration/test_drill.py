"""The restore drill and an upgrade, with the real programs: Redis, serve, a worker, engines."""

from __future__ import annotations

import json
import pathlib
import shutil
import signal
import subprocess
import tarfile

import checker
import harness

from orchestrator import contract

PLAIN = {"FARM_SANDBOX": "plain"}  # engines record their lives in a file outside any sandbox


def command(farm: harness.Farm, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the group against a farm."""
    own = {"FARM_REDIS_URL": farm.redis.url_of(harness.OPERATOR), "FARM_DATA": str(farm.root)}
    done = harness.run_farm(harness.without_farm() | own, *words)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def launch(farm: harness.Farm, *seasons: str) -> None:
    """Launch seasons of two engines: two games, and a final of four.

    A game stands while there is a gate of its name.
    """
    hold = ("--fault", f"hold:{gate(farm, 'GAME')}")
    engines = [harness.scripted(farm.life, n, *hold) for n in (0, 3)]
    file = harness.league(
        farm.root / "season.toml", engines, control="30m+1s", hold_after_attempts=99
    )
    for season in seasons:
        farm.launch(file, season)


def gate(farm: harness.Farm, game: str) -> pathlib.Path:
    """Return the file that holds a game."""
    return farm.root / f"gate-{game}"


def stands(farm: harness.Farm, game: str) -> None:
    """Wait until a held game is in flight."""

    def there() -> bool:
        slot = farm.ledger.slot(harness.HALL)
        return slot is not None and slot.game == game

    farm.wait(there, 60, f"{game} in flight")


def played(farm: harness.Farm, season: str) -> int:
    """Return how many games of a season are finished."""
    return sum(game.finished is not None for game in farm.state(season).games.values())


def test_backup_wipe_restore_and_the_season_goes_on(tmp_path: pathlib.Path) -> None:
    """Redis and the archive are gone, the old worker still plays: the table is as undisturbed.

    The worker of before is alive with the token of a game that the backup does not know; it
    is fenced, and no entry stands behind the restore under a token of the older epoch.
    """
    with harness.running(tmp_path, PLAIN) as farm:
        launch(farm, "calm")
        calm = checker.table(farm.finish("calm"))
        for game in ("final.1", "final.2"):
            gate(farm, game).touch()
        launch(farm, "storm")
        stands(farm, "final.1")
        assert played(farm, "storm") == 2
        backup = tmp_path / "elsewhere"
        made = command(farm, "backup", "--to", str(backup), "--json")
        assert made.returncode == 0, made.stderr
        known = json.loads(made.stdout)["journals"]["storm"]
        gate(farm, "final.1").unlink()
        stands(farm, "final.2")
        assert farm.ledger.last("storm") > known, "a lag"

        harness.kill(farm.serve.pid, signal.SIGKILL)
        farm.serve.wait(10)
        farm.redis.stop()
        shutil.rmtree(tmp_path / "redis")
        shutil.rmtree(tmp_path / "archive")
        farm.redis.start()
        worker = farm.worker.pid
        restored = command(farm, "restore", "--from", str(backup), "--reason", "drill", "--json")
        assert restored.returncode == 0, restored.stderr
        epoch = json.loads(restored.stdout)["epoch"]
        last = farm.ledger.last("storm")
        gate(farm, "final.2").unlink()

        after = farm.finish("storm")
        assert checker.table(after) == calm
        checker.check_season(farm.archive, "storm")
        checker.check_lives(farm.life)
        assert farm.worker.pid == worker, "the worker of before went on"
        later = [one.token for one in harness.journal(farm, "storm")[last:] if one.token]
        assert {contract.Token.parse(token).epoch for token in later} == {epoch}
        checked = command(farm, "fsck", "--json")
        assert (checked.returncode, json.loads(checked.stdout)["findings"]) == (0, [])
        _evidence(farm, tmp_path / "evidence")


def _evidence(farm: harness.Farm, target: pathlib.Path) -> None:
    """Assert that the packs of a real game hold the own lines and none of the rival's."""
    words = ("evidence", "league.1", "--season", "storm", "--to", str(target), "--json")
    packs = json.loads(command(farm, *words).stdout)["packs"]
    assert len(packs) == 2
    row = json.loads(command(farm, "game", "list", "--season", "storm", "--json").stdout)[0]
    said, *_ = command(farm, *words[:-1]).stdout.splitlines()
    assert said.startswith(f"league.1: {row['white']} - {row['black']}  {row['result']}  "), said
    for path in packs:
        with tarfile.open(path) as tar:
            root = pathlib.Path(path).name.removesuffix(".tar.gz")
            names = {name.removeprefix(f"{root}/") for name in tar.getnames()}
            log = tar.extractfile(f"{root}/protocol.log")
            assert log is not None
            seats = {line.split(b" ")[1][:1] for line in log.read().splitlines()}
        assert {"game.pgn", "engine.json", "plies.jsonl", "host.json"} < names
        assert len(seats) == 1


def test_a_drained_worker_is_upgraded_and_the_season_goes_on(tmp_path: pathlib.Path) -> None:
    """Drain: the game is finished, the worker ends by itself; a new one plays on, no game twice."""
    with harness.running(tmp_path, PLAIN) as farm:
        gate(farm, "league.2").touch()
        launch(farm, "s")
        stands(farm, "league.2")
        drained = command(farm, "drain", harness.HALL, "--reason", "upgrade")
        assert drained.returncode == 0, drained.stderr
        gate(farm, "league.2").unlink()
        assert farm.worker.wait(180), "the drained worker does not end"
        before = farm.state("s")
        assert farm.ledger.slot(harness.HALL) is None
        assert before.running is None
        farm.finish("s")  # starts a new worker, as its unit does after the upgrade
        folded = checker.check_season(farm.archive, "s")
        attempts = [one for one in harness.journal(farm, "s") if one.kind == "attempt_started"]
        assert len(attempts) == len(folded.games), "a drain interrupts nothing"
        assert len({one.data["worker"] for one in attempts}) == 2
