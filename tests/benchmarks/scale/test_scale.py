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
