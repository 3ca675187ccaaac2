"""Simulated workers through real Redis and Celery. Prints figures, asserts no time."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

MEASURE = pathlib.Path(__file__).with_name("scale_run.py")
LONG = os.environ.get("FARM_BENCH") == "long"
GAMES = os.environ.get("FARM_BENCH_GAMES", "1000")  # of each worker, in the long form
RUN = ("--workers", "200", "--games", GAMES) if LONG else ("--workers", "20", "--games", "10")


@pytest.mark.benchmark
@pytest.mark.parametrize("what", [RUN, ("--ledger", "2000" if LONG else "50")])
def test_every_game_of_many_workers_is_played(what: tuple[str, ...]) -> None:
    """All games are dealt, recorded and mirrored; the figures are printed."""
    command = [sys.executable, str(MEASURE), *what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr
    print(f"\nscale: {json.dumps(json.loads(done.stdout))}")


@pytest.mark.benchmark
def test_what_a_gateway_acknowledges_is_in_its_journal_once() -> None:
    """Simulated remote workers, the rest is real; ``make cores`` is the long form."""
    command = [sys.executable, str(MEASURE.with_name("remote_run.py")), "--cores", "8"]
    command += ["--seconds", "1", "--game-seconds", "0.5", "--gateways", "1", "--matches", "2"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout.rpartition("}")[0] + "}")
    assert figures["acknowledged"] > 0
