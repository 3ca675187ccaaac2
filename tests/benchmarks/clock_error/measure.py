"""Measure the clock of every runner in one go, in alternating runs; write Markdown.

``FARM_FASTCHESS`` and ``FARM_CUTECHESS`` are the paths of the peers. The figures of a
busy machine are those of its other work: run it alone.
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator, Sequence

import clock_figures
import clock_own
import clock_report
import clock_runners
import clock_script

JUDGED = clock_script.PLIES - 2  # moves of a game whose charge can be read


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark as a program."""
    parser = argparse.ArgumentParser(prog="measure", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="alternating runs of each runner")
    parser.add_argument("--moves", type=int, default=1000, help="judged moves a run, at least")
    parser.add_argument("--think", type=_numbers, default=[2000, 20000], help="µs a move")
    parser.add_argument("--lines", type=_numbers, default=[0, 50, 200], help="info lines a move")
    parser.add_argument("--concurrency", type=_numbers, default=sorted({1, clock_runners.cores()}))
    parser.add_argument("--games", type=int, default=100, help="games of a whole run; 0: none")
    parser.add_argument("--nice", type=int, default=0, help="priority of all runners; < 0: root")
    parser.add_argument("--out", type=pathlib.Path, help="write the Markdown here")
    options = parser.parse_args(arguments)
    os.nice(options.nice)
    settings = [
        clock_runners.Setting(think, lines, at_a_time, _games(options.moves, at_a_time))
        for at_a_time in options.concurrency
        for think in options.think
        for lines in options.lines
    ]
    with tempfile.TemporaryDirectory(prefix="farm-clock-") as folder:
        results = run(settings, options.runs, options.games, pathlib.Path(folder))
    text = clock_report.markdown(results, options.nice)
    sys.stdout.write(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")
    return 0


def run(
    settings: Sequence[clock_runners.Setting], runs: int, games: int, folder: pathlib.Path
) -> clock_report.Results:
    """Measure all settings, then whole runs of ``games`` games; Ctrl-C keeps what is there."""
    results = clock_report.Results(clock_runners.available())
    try:
        _measure(results, settings, runs, games, folder)
    except KeyboardInterrupt:
        _say("stopped; what is measured is written")
    return results


def _measure(
    results: clock_report.Results,
    settings: Sequence[clock_runners.Setting],
    runs: int,
    games: int,
    folder: pathlib.Path,
) -> None:
    probe = clock_runners.build(folder)
    scratch = _scratches(folder)
    for setting in settings:
        _say(clock_report.title(setting))
        of_setting = results.clock.setdefault(setting, {})
        for _ in range(runs):
            for runner in results.runners:
                played = clock_runners.play(runner, probe, setting, next(scratch))
                figures = clock_figures.figures(played.sides)
                measured = clock_report.Measured(figures, played.foreign)
                of_setting.setdefault(runner.name, []).append(measured)
            if setting.concurrency == 1:
                own = clock_own.errors_ms(probe, setting, next(scratch))
                results.own.setdefault(setting, []).append(own)
    for at_a_time in sorted({setting.concurrency for setting in settings}) if games else ():
        _say(f"whole runs, {at_a_time} at a time")
        setting = clock_runners.Setting(0, 0, at_a_time, games)
        for _ in range(runs):
            for runner in results.runners:
                played = clock_runners.play(runner, probe, setting, next(scratch))
                rate = games * 60 / played.seconds
                speed = clock_report.Throughput(at_a_time, rate, played.foreign)
                results.speed.setdefault(runner.name, []).append(speed)


def _games(moves: int, at_a_time: int) -> int:
    """Return how many games have that many judged moves; whole rounds of all lanes."""
    return math.ceil(math.ceil(moves / JUDGED) / at_a_time) * at_a_time


def _scratches(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    number = 0
    while True:
        number += 1
        path = folder / f"run-{number}"
        path.mkdir()
        yield path


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _say(text: str) -> None:
    sys.stderr.write(f"measuring: {text}\n")


if __name__ == "__main__":
    sys.exit(main())
