"""A host that stalls, is sick or gives up again and again: no innocent engine pays for it.

A real farm; the host is really frozen, really overloaded, really too small. What becomes of
its games is read from journal, holds and archive (docs/rules).
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import groups
import harness
import interrupted
import pytest

from orchestrator import contract
from orchestrator.ops import supervisor

FREEZE_SECONDS = 4.5  # s: far beyond the clocks of these games
HOGS = 15  # processes: they leave an engine on the same core a sixteenth of it
SPIN = "while True: pass"


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Farm]:
    """Return a farm whose engines have a core of their own."""
    if len(harness.CORES) == 1:
        pytest.skip("hardware: one core cannot be the engines' alone")
    with harness.running(tmp_path_factory.mktemp("pinned"), harness.pinned(1)) as made:
        yield made


def ends(farm: harness.Farm, season: str) -> list[dict[str, Any]]:
    """Return how attempts of a season were given up, in their order."""
    return [e.data for e in farm.ledger.read(season) if e.kind == "attempt_ended"]


def test_a_frozen_host_costs_no_engine_the_game(pinned: harness.Farm) -> None:
    """A hall that stands still longer than a clock lasts: an interruption with its evidence."""
    groups.need_proof_of_stalls(of_engines=True)
    gate = pinned.root / "frozen.gate"
    with harness.held(gate, 3) as hold:
        interrupted.launch(pinned, "frozen", *hold, control="3s+0.5s")
        harness.stands(gate)
        everybody = [pinned.worker.pid, *harness.descendants(pinned.worker.pid)]
        with harness.frozen(everybody):  # engine and referee go on first: the link is late
            time.sleep(FREEZE_SECONDS)
    interrupted.unharmed(pinned, "frozen")
    (end,) = ends(pinned, "frozen")
    assert end["cause"] == "host stall"
    told = re.search(r"frozen (\d+) ms", end["evidence"])
    assert told is not None, end
    assert int(told[1]) > 1000 * (FREEZE_SECONDS - 1), "the link wakes up more than once a second"
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
    interrupted.launch(
        pinned, "hogged", "--burn-ms", "150", control="800ms+0.4s", hold_after_attempts=50
    )
    interrupted.reached(pinned, "hogged")
    with overloaded(harness.CORES[1]):
        pinned.wait(lambda: bool(ends(pinned, "hogged")), 40, "the interruption")
    interrupted.unharmed(pinned, "hogged")
    end = ends(pinned, "hogged")[0]
    assert end["cause"] == "host stall"
    assert "foreign load" in end["evidence"]


def test_an_engine_that_burns_its_own_time_loses(pinned: harness.Farm) -> None:
    """On its own core nobody else took: its own work is no load of others."""
    interrupted.launch(pinned, "burnt", "--burn-ms", "700", control="300ms")
    folded = pinned.finish("burnt")
    first = folded.game("m.1").finished
    assert first is not None
    assert (first.ending, first.loser) == (contract.Ending.TIME, "white"), ends(pinned, "burnt")


def test_a_sick_host_is_set_aside_and_no_crash_is_counted(tmp_path: pathlib.Path) -> None:
    """The farm's own engine fails in the same place: the hall is held, with the reason.

    Mended and released, the season is played to its end as if nothing had been.
    """
    with harness.running(tmp_path, {"FARM_ENGINE_MEMORY_MB": "2"}) as farm:
        interrupted.launch(farm, "sick")
        holds = f"hall:{harness.HALL}"
        farm.wait(lambda: bool(farm.ledger.holds(holds)), 60, "the hold")
        (reason,) = farm.ledger.holds(holds).values()
        assert "failed before it was ready" in reason
        assert "the farm's own engine fails here, too" in reason
        farm.wait(lambda: bool(ends(farm, "sick")), 20, "the end of the attempt")
        assert [end["cause"] for end in ends(farm, "sick")] == ["host sick"]
        healthy = {**farm.worker.environment, "FARM_ENGINE_MEMORY_MB": ""}
        farm.worker.kill()
        command = supervisor.worker_command(harness.HALL)
        farm.worker = supervisor.Supervised("worker", command, healthy, farm.worker.log)
        farm.worker.start()
        words = ["release-hall", harness.HALL, "--by", "ann", "--reason", "more memory"]
        said = harness.farm(*words, env={"FARM_REDIS_URL": farm.redis.url_of(harness.OPERATOR)})
        assert "may play again" in said
        interrupted.unharmed(farm, "sick")


@pytest.mark.long
def test_a_host_that_fails_again_and_again_holds_the_season(tmp_path: pathlib.Path) -> None:
    """Three attempts without a ply: the season stands, says why, and goes on when resumed."""
    with harness.running(tmp_path) as farm:
        interrupted.launch(farm, "fails", "--delay-ms", "2000")

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
        harness.farm(*words, env={"FARM_REDIS_URL": farm.redis.url_of(harness.OPERATOR)})
        interrupted.unharmed(farm, "fails")
