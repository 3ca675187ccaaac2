"""kill -9 of every process of a running farm, at random moments: nothing is lost or doubled.

The short form kills each a few times; ``make chaos`` kills each 20 times or as often as
``KILLS`` says and prints what happened.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import time
from collections import Counter
from collections.abc import Callable

import checker
import harness
import pytest

KILLS = int(os.environ.get("FARM_CHAOS_KILLS", "2"))
SEED = int(os.environ.get("FARM_CHAOS_SEED", "7"))

TARGETS: dict[str, Callable[[harness.Farm], int | None]] = {
    "link": harness.link_pid,
    "referee": harness.referee_pid,
    "nursery": lambda farm: harness.game_process(farm, "worker_cpu.nursery"),
    "dead man": lambda farm: harness.game_process(farm, "deadman.py"),
    "worker main": lambda farm: farm.worker.pid if farm.worker.running else None,
    "serve": lambda farm: farm.serve.pid if farm.serve.running else None,
    "redis": lambda farm: farm.redis.pid,
}


def _season(farm: harness.Farm) -> pathlib.Path:
    engines = [harness.scripted(farm.life, strength) for strength in range(4)]
    return harness.league(
        farm.root / "season.toml", engines, double_rounds=2, hold_after_attempts=1000
    )


def _between_spool_and_record(farm: harness.Farm) -> int | None:
    """Wait for the moment a finished game is spooled, and return the link then."""
    spool = farm.root / "halls" / harness.HALL / "spool"
    known = {path.name for path in spool.glob("*.spool")}
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if {path.name for path in spool.glob("*.spool")} - known:
            return harness.link_pid(farm)
        time.sleep(0.0005)
    return None


@pytest.mark.chaos
def test_no_kill_loses_doubles_or_overlaps_a_game(tmp_path: pathlib.Path) -> None:
    """After kills of every kind each season ends with the table of an undisturbed one."""
    dice = random.Random(SEED)
    wanted = [name for name in [*TARGETS, "spool"] for _ in range(KILLS)]
    dice.shuffle(wanted)
    done: Counter[str] = Counter()
    games = attempts = 0
    with harness.running(tmp_path) as farm:
        file = _season(farm)
        farm.launch(file, "calm")
        farm.finish("calm")
        calm = checker.check_season(farm.archive, "calm")
        assert len({points for _, points, _ in checker.table(calm)}) > 2, "results are all alike"
        number = 0
        while wanted:
            number += 1
            season = f"storm-{number}"
            farm.launch(file, season)
            _storm(farm, season, wanted, dice, done)
            farm.finish(season, 300)
            after = checker.check_season(farm.archive, season)
            assert checker.table(after) == checker.table(calm)
            games += len(after.games)
        attempts = checker.check_lives(farm.life)
    print(
        f"\nkills {dict(done)}, seed {SEED}: {games} games in {number} seasons,"
        f" {attempts} attempts with engines, 0 lost, 0 doubled, 0 overlapping"
    )


def _storm(
    farm: harness.Farm,
    season: str,
    wanted: list[str],
    dice: random.Random,
    done: Counter[str],
) -> None:
    """Kill what is wanted, one after the other, until the season is over."""
    while wanted:
        farm.keep_alive()
        time.sleep(dice.uniform(0.05, 1.2))
        with_redis = farm.redis_answers()
        if with_redis and farm.state(season).finished:
            return
        name = wanted[-1]
        pid = _between_spool_and_record(farm) if name == "spool" else TARGETS[name](farm)
        if harness.kill(pid, signal.SIGKILL):
            wanted.pop()
            done[name] += 1


@pytest.mark.chaos
def test_the_checker_sees_a_broken_fence(tmp_path: pathlib.Path) -> None:
    """Engines of two attempts at the same time, made by breaking slot and lock, are found."""
    with harness.running(tmp_path) as farm:
        slow = [harness.scripted(farm.life, n, "--delay-ms", "30") for n in range(4)]
        farm.launch(harness.league(tmp_path / "season.toml", slow), "broken")
        farm.wait(lambda: harness.game_process(farm, "deadman.py") is not None, 20, "a game")
        farm.wait(farm.life.exists, 20, "engines")
        guards = [harness.game_process(farm, "deadman.py"), harness.link_pid(farm)]
        intruder = farm.second_worker(tmp_path / "elsewhere")  # a lock file of its own
        try:
            for pid in guards:
                harness.kill(pid, signal.SIGSTOP)  # nobody ends the first game's engines
            farm.delete_slot()  # the fence: nobody seems to hold the hall
            farm.wait(lambda: _overlap(farm.life), 30, "an overlap")
        finally:
            for pid in guards:
                harness.kill(pid, signal.SIGCONT)
            intruder.kill()
    with pytest.raises(AssertionError, match="overlap"):
        checker.check_lives(farm.life)


def _overlap(life: pathlib.Path) -> bool:
    try:
        checker.check_lives(life)
    except AssertionError:
        return True
    except json.JSONDecodeError:
        pass  # a line is being written
    return False


@pytest.mark.chaos
def test_the_checker_sees_a_game_counted_twice(tmp_path: pathlib.Path) -> None:
    """A second result of a game in the journal, written past the scripts, is found."""
    with harness.running(tmp_path) as farm:
        engines = [harness.scripted(farm.life, strength) for strength in range(4)]
        farm.launch(harness.league(tmp_path / "season.toml", engines), "twice")
        farm.finish("twice")
    checker.check_season(farm.archive, "twice")
    mirror = farm.archive / "twice" / "journal.jsonl"
    lines = mirror.read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if '"game_finished"' in line)
    doubled = [*lines[: place + 1], *lines[place:]]
    renumbered = [json.loads(line) | {"seq": n} for n, line in enumerate(doubled, start=1)]
    mirror.write_text("".join(json.dumps(line) + "\n" for line in renumbered))
    with pytest.raises(Exception, match=r"result already|counted twice"):
        checker.check_season(farm.archive, "twice")
