"""What a crowd costs the clocks, and how late it sees a move. Prints figures, asserts no time.

The short form has 50 spectators at one of two games. With ``FARM_BENCH=long`` there are
2,000 at every other of twelve; ``FARM_SPECTATORS`` and ``FARM_CROWD_GAMES`` name other
numbers. Run the long form alone: what else runs on the two cores is in its figures.
"""

from __future__ import annotations

import os
import pathlib
import statistics
from collections.abc import Sequence

import clock_figures
import clock_runners
import clock_script
import clock_skips
import pytest
import watched_games

LONG = os.environ.get("FARM_BENCH") == "long"
CROWD = int(os.environ.get("FARM_SPECTATORS", "2000" if LONG else "50"))
GAMES = int(os.environ.get("FARM_CROWD_GAMES", "12" if LONG else "2"))
MOVE_US = 200_000 if LONG else 30_000  # a think: faster than blitz
LINES = 20  # info lines of a think


@pytest.mark.benchmark
def test_a_crowd_sees_every_move(tmp_path: pathlib.Path) -> None:
    """Nobody is sent away, everybody is told of every ply; errors and delays are printed."""
    clock_skips.compiler_or_skip()
    crowds = [CROWD if number % 2 else 0 for number in range(GAMES)]
    setting = clock_runners.Setting(MOVE_US, LINES, 1, GAMES)
    played = watched_games.play(tmp_path, crowds, setting)
    assert not any(window.ended for window in played.windows)
    delays, plies = played.delays(CROWD)
    assert plies == clock_script.PLIES * (GAMES // 2)  # each crowd saw a whole game
    load = f"load {os.getloadavg()[0]:.1f} at the end"
    print(f"\nspectators: every other of {GAMES} games before {CROWD}, {load}")
    print(f"move to event: {figures(delays, 'ms')}, {plies} plies to each spectator")
    for crowd in (0, CROWD):
        own, told = played.own_errors(crowd), played.told_errors(crowd)
        print(f"clock error before {crowd}, our record: {figures([1e3 * e for e in own], 'us')}")
        print(f"clock error before {crowd}, told clock: {figures(told, 'ms')}")
    quiet, loud = (clock_figures.quantile(played.own_errors(crowd), 0.99) for crowd in (0, CROWD))
    print(f"p99 of our record's error before the crowd: {loud / quiet:.2f} times that without")


def figures(values: Sequence[float], unit: str) -> str:
    """Write what is looked at of a distribution."""
    p50, p99 = statistics.median(values), clock_figures.quantile(values, 0.99)
    return f"p50 {p50:.2f}, p99 {p99:.2f}, max {max(values):.2f} {unit} of {len(values)}"
