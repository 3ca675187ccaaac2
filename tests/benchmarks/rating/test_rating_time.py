"""How long a rating list takes, beside Ordo. Prints figures, asserts no time.

FARM_ORDO names Ordo's program; without it only our own figures are printed. Both read
the same file in turn. FARM_BENCH=long takes 100,000 games of 200 engines.
"""

from __future__ import annotations

import os
import pathlib
import random
import statistics
import subprocess
import sys
import time

import pytest

from orchestrator.rating import headers, ordo, pairings

LONG = os.environ.get("FARM_BENCH") == "long"
GAMES, ENGINES, RUNS = (100_000, 200, 7) if LONG else (5_000, 40, 1)
PEER = os.environ.get("FARM_ORDO")


def archive(path: pathlib.Path) -> pathlib.Path:
    """Write an archive of headers only."""
    numbers = random.Random(1)
    strength = [numbers.gauss(0, 1) for _ in range(ENGINES)]
    with path.open("w") as out:
        for number in range(GAMES):
            one, other = numbers.sample(range(ENGINES), 2)
            lead = strength[one] - strength[other] + 0.2 + numbers.gauss(0, 1)
            result = "1/2-1/2" if abs(lead) < 0.8 else "1-0" if lead > 0 else "0-1"
            out.write(
                f'[Event "bench"]\n[Site "here"]\n[Date "2026.01.01"]\n[Round "{number}"]\n'
                f'[White "Engine {one}"]\n[Black "Engine {other}"]\n[Result "{result}"]\n\n'
                f"{result}\n\n"
            )
    return path


@pytest.mark.benchmark
def test_time_of_a_rating_list(tmp_path: pathlib.Path) -> None:
    """Parsing and solving, the whole command, and Ordo's, in turn; all rate all engines."""
    file = archive(tmp_path / "games.pgn")
    times: dict[str, list[float]] = {"parse + solve": [], "farm rate": [], "ordo -W -D": []}
    start = "from orchestrator import commands; commands.main()"
    words = ["rate", str(file), "--white-advantage", "--draw-rate", "--json"]
    command = [sys.executable, "-c", start, *words]
    for _ in range(RUNS):
        begun = time.perf_counter()
        reader = headers.Reader()
        reader.take(file.read_bytes())
        counted = pairings.count(reader.table())
        rated = ordo.rate(counted, ordo.Settings(white=None, draws=None))
        times["parse + solve"].append(time.perf_counter() - begun)
        assert len(rated.ratings) == ENGINES
        times["farm rate"].append(_spent(command))
        if PEER:
            peer = [PEER, "-q", "-W", "-D", "-p", str(file), "-o", str(tmp_path / "peer.txt")]
            times["ordo -W -D"].append(_spent(peer))
    print(f"\nrating list of {GAMES} games, {ENGINES} engines, median of {RUNS}:")
    for name, spent in times.items():
        if spent:
            middle = statistics.median(spent)
            extent = f"[{min(spent):.3f}..{max(spent):.3f}]"
            print(f"  {name}: {middle:.3f} s {extent}{_beside(times, name)}")


def _spent(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=120)
    return time.perf_counter() - begun


def _beside(times: dict[str, list[float]], name: str) -> str:
    """Return how much of Ordo's time a median is, '' without Ordo."""
    theirs = times["ordo -W -D"]
    if not theirs:
        return ""
    return f", {statistics.median(times[name]) / statistics.median(theirs):.2f} of Ordo's"
