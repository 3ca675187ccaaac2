"""A host that stalls, is sick or gives up again and again: no innocent engine pays for it.

A real farm; the host is really frozen, really overloaded, really too small. What becomes of
its games is read from journal, holds and archive (RULEBOOK §3, DESIGN §3.8).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import checker
import harness
import pytest

from orchestrator import contract, processes
from orchestrator.season import state

PINNED = {
    "FARM_DEAD_MAN_SECONDS": "8",
    "FARM_LEASE_SECONDS": "10",
    "FARM_REFEREE_CPUS": "0",
    "FARM_ENGINE_CPUS": "1",
}
FREEZE_SECONDS = 3.0  # s: far beyond the clocks of these games
HOGS = 15  # processes: they leave an engine on the same core a sixteenth of it
SPIN = "while True: pass"


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Farm]:
    """Return a farm whose engines have a core of their own."""
    if os.cpu_count() == 1:
        pytest.skip("hardware: one core cannot be the engines' alone")
    with harness.running(tmp_path_factory.mktemp("pinned"), PINNED) as made:
        yield made


def launch(farm: harness.Farm, season: str, control: str, *words: str, **more: Any) -> None:
    """Launch a match of two games."""
    rows = [f'schema = 1\nid = "test"\nname = "Test"\nhold_after_attempts = {more.get("hold", 3)}']
    rows.append("[roster]")
    for strength in (1, 2):
        entry = harness.scripted(farm.life, strength, *words)
        rows += ["[[roster.engine]]", *(f"{key} = {json.dumps(entry[key])}" for key in entry)]
    rows.append(
        f"""[[event]]
id = "m"
name = "Match"
format = {{ kind = "match", games = 2 }}
entrants = "roster"
time_control = "{control}"
tiebreaks = ["seed"]
adjudication = {{ max_moves = 5 }}
interruptions = "s16"
"""
    )
    path = farm.root / f"{season}.toml"
    path.write_text("\n".join(rows))
    farm.launch(path, season)


def thinking(farm: harness.Farm, season: str, plies: int = 2) -> None:
    """Wait until a game of a season is under way."""

    def moved() -> bool:
        slot = farm.ledger.slot(harness.HALL)
        mine = slot is not None and slot.season == season
        return mine and len(farm.ledger.plies(slot.attempt)) >= plies  # type: ignore[union-attr]

    farm.wait(moved, 30, f"ply {plies} of {season}")


def ends(farm: harness.Farm, season: str) -> list[dict[str, Any]]:
    """Return how attempts of a season were given up, in their order."""
    return [e.data for e in farm.ledger.read(season) if e.kind == "attempt_ended"]


def below(pid: int) -> list[int]:
    """Return all processes below one."""
    found = harness.children(pid)
    return [*found, *(deeper for child in found for deeper in below(child))]


def unharmed(farm: harness.Farm, season: str) -> state.SeasonState:
    """Let a season end: all its games were played out, no engine has a crash or a loss by it."""
    folded = farm.finish(season)
    checker.check_season(farm.archive, season)
    endings = {game.finished.ending for game in folded.games.values() if game.finished}
    assert endings == {contract.Ending.MAX_MOVES}
    assert not any(score.crashes for score in folded.events["m"].tally.scores.values())
    return folded


def test_a_frozen_host_costs_no_engine_the_game(pinned: harness.Farm) -> None:
    """A hall that stands still longer than a clock lasts: an interruption with its evidence."""
    launch(pinned, "frozen", "1.5s+0.5s", "--delay-ms", "400")
    thinking(pinned, "frozen")
    time.sleep(0.1)  # the ply was just journaled: the next engine thinks now
    everybody = [pinned.worker.pid, *below(pinned.worker.pid)]
    for pid in everybody:
        harness.kill(pid, signal.SIGSTOP)
    time.sleep(FREEZE_SECONDS)
    for pid in reversed(everybody):  # the engine and the referee first: the link is late
        harness.kill(pid, signal.SIGCONT)
    unharmed(pinned, "frozen")
    (end,) = ends(pinned, "frozen")
    assert end["cause"] == "host stall"
    assert "frozen 2" in end["evidence"] or "frozen 3" in end["evidence"], end
    record = (pinned.archive / "frozen" / "games" / end["game"] / "record.json").read_bytes()
    assert len(contract.GameRecord.decode(record).interruptions) == 1


@contextlib.contextmanager
def overloaded(core: int) -> Iterator[None]:
    """Load one core with strangers, each in a session of its own."""
    made = [
        subprocess.Popen([sys.executable, "-I", "-S", "-c", SPIN], start_new_session=True)
        for _ in range(HOGS)
    ]
    try:
        for hog in made:
            os.sched_setaffinity(hog.pid, {core})
        yield
    finally:
        for hog in made:
            hog.kill()
        for hog in made:
            hog.wait()


@pytest.mark.long
def test_strangers_on_the_engines_core_cost_no_engine_the_game(pinned: harness.Farm) -> None:
    """Load of others on cores that are the engines' alone is proven, and told in the evidence."""
    launch(pinned, "hogged", "800ms+0.4s", "--burn-ms", "150", hold=50)
    thinking(pinned, "hogged")
    with overloaded(1):
        pinned.wait(lambda: bool(ends(pinned, "hogged")), 40, "the interruption")
    unharmed(pinned, "hogged")
    end = ends(pinned, "hogged")[0]
    assert end["cause"] == "host stall"
    assert "foreign load" in end["evidence"]


def test_an_engine_that_burns_its_own_time_loses(pinned: harness.Farm) -> None:
    """On its own core nobody else took: its own work is no load of others."""
    launch(pinned, "burnt", "300ms", "--burn-ms", "700")
    folded = pinned.finish("burnt")
    first = folded.game("m.1").finished
    assert first is not None
    assert (first.ending, first.loser) == (contract.Ending.TIME, "white"), ends(pinned, "burnt")


def test_a_sick_host_is_set_aside_and_no_crash_is_counted(tmp_path: pathlib.Path) -> None:
    """The farm's own engine fails in the same place: the hall is held, with the reason.

    Mended and released, the season is played to its end as if nothing had been.
    """
    with harness.running(tmp_path, {"FARM_ENGINE_MEMORY_MB": "2"}) as farm:
        launch(farm, "sick", "20s+1s")
        holds = f"hall:{harness.HALL}"
        farm.wait(lambda: bool(farm.ledger.holds(holds)), 60, "the hold")
        (reason,) = farm.ledger.holds(holds).values()
        assert "failed before it was ready" in reason
        assert "the farm's own engine fails here, too" in reason
        farm.wait(lambda: bool(ends(farm, "sick")), 20, "the end of the attempt")
        assert [end["cause"] for end in ends(farm, "sick")] == ["host sick"]
        healthy = {**farm.worker.environment, "FARM_ENGINE_MEMORY_MB": ""}
        farm.worker.kill()
        command = processes.worker_command(harness.HALL)
        farm.worker = processes.Supervised("worker", command, healthy, farm.worker.log)
        farm.worker.start()
        words = ["release-hall", harness.HALL, "--by", "ann", "--reason", "more memory"]
        said = harness.farm(*words, env={"FARM_REDIS_URL": farm.redis.url})
        assert "may play again" in said
        unharmed(farm, "sick")


@pytest.mark.long
def test_a_host_that_fails_again_and_again_holds_the_season(tmp_path: pathlib.Path) -> None:
    """Three attempts without a ply: the season stands, says why, and goes on when resumed."""
    with harness.running(tmp_path) as farm:
        launch(farm, "fails", "20s+1s", "--delay-ms", "2000")

        def given_up(times: int) -> bool:
            return len(ends(farm, "fails")) >= times

        for number in range(1, 4):
            farm.wait(lambda: farm.ledger.slot(harness.HALL) is not None, 30, "an attempt")
            assert harness.kill(harness.link_pid(farm), signal.SIGKILL)
            farm.wait(functools.partial(given_up, number), 30, "its end")
        farm.wait(lambda: bool(farm.state("fails").held), 20, "the hold")
        assert "3 attempts at m.1 in a row" in str(farm.state("fails").held)
        assert farm.ledger.offered(harness.HALL) == {}
        words = ["resume", "fails", "--by", "ann", "--reason", "another board"]
        harness.farm(*words, env={"FARM_REDIS_URL": farm.redis.url})
        unharmed(farm, "fails")
