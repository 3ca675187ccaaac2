"""Every fault at every moment of a season: nothing is lost, doubled, overlapping or reordered.

The short form strikes each fault once; ``make chaos`` (``KILLS=n``) strikes each n times,
prints what happened and how soon the farm played on. ``FARM_CHAOS_HASTE`` is the share of
faults that are followed by the next before the farm plays on, ``FARM_CHAOS_PART`` (``2/3``)
the part of them that this process strikes: ``run_chaos.py`` lets storms rage side by side.
Faults strike alone, in pairs and in threes (``FARM_CHAOS_COMPANIONS``, ``0,1,2,2``: how many more
strike with one, drawn each time); ``FARM_CHAOS_SECONDS`` ends a storm early.
``FARM_CHAOS_FAULTS`` (``kill *,restart Redis``) chooses faults by name. With
``FARM_CHAOS_LEASE=production`` leases last as in real halls, so that what waits for one shows.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import os
import pathlib
import random
import time

import checker
import faults
import harness
import pytest
import stage as stages
import storm

from orchestrator.contract import bells
from orchestrator.season.fold import state

WITHOUT_PROXY = 0.9  # of the time that a storm may last
TIMES = int(os.environ.get("FARM_CHAOS_KILLS", "1"))
WOUNDS = 3 * max(TIMES, 2)  # killed engines
HASTE = float(os.environ.get("FARM_CHAOS_HASTE", storm.LONG.haste))
COMPANIONS = os.environ.get("FARM_CHAOS_COMPANIONS")
PACE = storm.SHORT if TIMES <= 2 else dataclasses.replace(storm.LONG, haste=HASTE)
if COMPANIONS:
    PACE = dataclasses.replace(PACE, companions=tuple(map(int, COMPANIONS.split(","))))
SEED = int(os.environ.get("FARM_CHAOS_SEED", "7"))
FAULTS = os.environ.get("FARM_CHAOS_FAULTS", "*").split(",")
SECONDS = float(os.environ.get("FARM_CHAOS_SECONDS", "inf"))
PART, PARTS = map(int, os.environ.get("FARM_CHAOS_PART", "1/1").split("/"))


def wanted(farm: stages.Stage, dice: random.Random, *, proxy: bool) -> list[storm.Wanted]:
    """Return each fault of a set so many times, its moments in turn, in a drawn order."""
    able = [fault for fault in faults.possible(farm) if (fault.needs == "proxy") == proxy]
    chosen = [fault for fault in able if any(fnmatch.fnmatch(fault.name, one) for one in FAULTS)]
    start = itertools.count(dice.randrange(len(storm.MOMENTS)))
    found = [
        (fault, storm.MOMENTS[next(start) % len(storm.MOMENTS)])
        for fault in chosen
        for _ in range(TIMES)
    ]
    dice.shuffle(found)
    return found[PART - 1 :: PARTS]


@pytest.mark.chaos
def test_no_fault_loses_doubles_or_overlaps_a_game() -> None:
    """After faults of every kind each season ends with the table of an undisturbed one."""
    dice, tally, began = random.Random(SEED), storm.Tally(), time.monotonic()
    with stages.built() as farm:
        file = farm.season_file()
        farm.launch(file, "calm")
        farm.finish("calm")
        calm = checker.check_season(farm.archive, "calm")
        assert len({points for _, points, _ in checker.table(calm)}) > 2, "results are all alike"
        for proxy in (False, True):
            farm.use_proxy(wanted=proxy)
            left = wanted(farm, dice, proxy=proxy)
            until = began + SECONDS * (1.0 if proxy else WITHOUT_PROXY)
            while left and time.monotonic() < until:
                tally.seasons += 1
                season = f"storm-{tally.seasons}"
                farm.launch(file, season)
                storm.Storm(farm, left, dice, tally, PACE).strike(season)
                _check(farm, season, calm, tally)
                if path := os.environ.get("FARM_CHAOS_FIGURES"):
                    tally.save(pathlib.Path(path))  # what was checked counts, whatever comes
                seconds = time.monotonic() - began
                print(
                    f"{seconds:6.0f} s: {tally.injections} injections, {tally.games} games",
                    flush=True,
                )
        tally.attempts = checker.check_lives(farm.life)
    print(f"\n{tally.report(SEED, time.monotonic() - began)}")
    if not farm.rooted:
        print("not root: no namespaces and no full disk, their faults were left out")
    if path := os.environ.get("FARM_CHAOS_FIGURES"):
        tally.save(pathlib.Path(path))


def _check(farm: stages.Stage, season: str, calm: state.SeasonState, tally: storm.Tally) -> None:
    farm.skew("redis", 0)
    farm.finish(season, 300)
    places = {path.name for path in farm.archive.iterdir()}
    strays = {name for name in places if not name.startswith(("calm", "storm-", "poison-"))}
    assert strays <= {"farm", "serve.lock"}, f"files outside their place: {strays}"
    pwned = [*farm.root.glob("*pwned*"), *farm.root.parent.glob("*pwned*")]
    assert not pwned, f"files outside their place: {pwned}"
    after = checker.check_season(farm.archive, season)
    assert checker.table(after) == checker.table(calm)
    tally.games += len(after.games)


@pytest.mark.chaos
def test_a_hall_hears_its_bell_after_lost_rings() -> None:
    """A worker that rings have not reached hears the next one, without being started anew."""
    with stages.built() as farm:
        farm.use_proxy(wanted=True)
        farm.wait(lambda: harness.HALL in farm.ledger.halls(), 30, "the hall")
        worker = farm.worker.pid
        farm.lose_replies("BRPOP")  # a ring is its reply, and then no longer in the queue
        farm.launch(farm.season_file(final=False), "deaf")
        farm.wait(lambda: bells.PLAY in farm.proxy.log.read_text(), 30, "a lost ring")
        assert farm.ledger.slot(harness.HALL) is None
        farm.lose_replies("")
        farm.wait(lambda: farm.ledger.slot(harness.HALL) is not None, 60, "the first game")
        assert farm.worker.pid == worker


@pytest.mark.chaos
def test_a_killed_engine_loses_its_game_and_no_other() -> None:
    """Each killed engine has crashed in just its game; all other results stay as they were."""
    dice, killed = random.Random(SEED), dict[str, faults.Killed]()
    with stages.built() as farm:
        file = farm.season_file(final=False, delay_ms=5)
        farm.launch(file, "calm")
        farm.finish("calm")
        calm = checker.check_season(farm.archive, "calm")
        wounds = games = number = 0
        while wounds < WOUNDS:
            number += 1
            season = f"wounded-{number}"
            farm.launch(file, season)
            killed.clear()
            while wounds + len(killed) < WOUNDS and not farm.state(season).finished:
                farm.keep_alive()
                time.sleep(dice.uniform(0.1, 1.0))
                spared = [one.attempt for one in killed.values()]
                if (one := faults.kill_engine(farm, dice, spared)) is not None:
                    killed[one.game] = one
            farm.finish(season, 120)
            wounded = checker.check_season(farm.archive, season)
            wounds += checker.check_wounds(calm, wounded, killed.values())
            games += len(wounded.games)
        checker.check_lives(farm.life)
    print(f"\n{wounds} engines killed in {games} games, seed {SEED}: each lost its game, no other")
