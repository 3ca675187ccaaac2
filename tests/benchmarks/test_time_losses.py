"""Losses on time in 20,000 games, so many at once, beside fastchess: prints, asserts no time.

Engines sleep 5 ms a move and have 0.5 s and 5 ms a move: each has to be charged 8 ms a move too
much, on average, to lose. All losses on time are the runner's.
"""

from __future__ import annotations

import os
import pathlib
import re
import time

import clock_runners
import pytest

LONG = os.environ.get("FARM_BENCH") == "long"
GAMES = int(os.environ.get("FARM_LOSSES_GAMES", "20000" if LONG else "8"))
AT_A_TIME = (64, 250) if LONG else (4,)
THINK_US, CONTROL = -5_000, "0.5+0.005"  # a negative think is slept, on no core
RUNNERS = {"farm match", "fastchess"}


@pytest.mark.benchmark
@pytest.mark.parametrize("at_a_time", AT_A_TIME)
def test_losses_on_time(tmp_path: pathlib.Path, at_a_time: int) -> None:
    """Each game is in the runner's PGN; those that a clock has ended are counted."""
    if clock_runners.compiler() is None:
        pytest.skip("gcc is not installed (scripts/system-packages.txt)")
    probe = clock_runners.build(tmp_path)
    print()
    for runner in clock_runners.available():
        if runner.name not in RUNNERS:
            continue
        here = tmp_path / runner.name.replace(" ", "-")
        here.mkdir()
        setting = clock_runners.Setting(THINK_US, 0, at_a_time, GAMES)
        words = runner.command(probe, here / "no-logs", setting)
        clock = {f"tc={clock_runners.CLOCK}": f"tc={CONTROL}"}
        words = [clock.get(word, word) for word in words]
        words += ["-force-concurrency", "-pgnout", "file=games.pgn"]
        begun = time.monotonic()
        clock_runners.ended(clock_runners.started(words, here), here)
        seconds = time.monotonic() - begun
        pgn = (here / "games.pgn").read_text(encoding="utf-8")
        played = len(re.findall(r"^\[Result ", pgn, re.MULTILINE))
        lost = len(re.findall(r"^\[Termination \"time forfeit\"\]", pgn, re.MULTILINE))
        assert played == GAMES, f"{runner.name}: {played} of {GAMES} games in {here}"
        print(
            f"losses on time, {at_a_time} at a time: {runner.name} {lost} of {played} games,"
            f" {seconds:.0f} s"
        )
