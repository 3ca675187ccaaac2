"""How long the hall stands still between two games: alone, and beside a load of twice the cores.

Prints figures, asserts no time. The load is busy loops of the same priority, two for each core
that this process may use.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import before
import harness
import pytest

from orchestrator import contract

LONG = os.environ.get("FARM_BENCH") == "long"
ENGINES, DOUBLE_ROUNDS = (4, 4) if LONG else (2, 1)
LOADS = (0, 2) if LONG else (0,)  # busy loops a core
GAMES = ENGINES * (ENGINES - 1) * DOUBLE_ROUNDS  # of the league


@pytest.mark.benchmark
@pytest.mark.parametrize("load", LOADS)
def test_the_gap_between_two_games(tmp_path: pathlib.Path, load: int) -> None:
    """Every pause between two games of a league is measured; the figures are printed."""
    print()
    _print("gap", measured(tmp_path, load), load)
    _print("gap before", before.asked(f"gap-{load}", tmp_path / "before"), load)


def _print(what: str, found: Mapping[str, Sequence[float]], load: int) -> None:
    for name, gaps in found.items():
        last = statistics.quantiles(gaps, n=100, method="inclusive")[-1]
        print(
            f"{what}, {name}, beside {load} busy loops a core: p50 {statistics.median(gaps):.0f}"
            f" ms, p99 {last:.0f} ms, max {max(gaps):.0f} ms over {len(gaps)} pauses"
        )


def measured(folder: pathlib.Path, load: int) -> dict[str, list[float]]:
    """Play a league beside so many busy loops a core; return its pauses, by what ends them."""
    with harness.running(folder) as farm, _busy(load * len(os.sched_getaffinity(0))):
        engines = [harness.scripted(farm.life, strength) for strength in range(ENGINES)]
        file = harness.league(folder / "season.toml", engines, double_rounds=DOUBLE_ROUNDS)
        farm.launch(file, "gap")
        farm.finish("gap", 300)
        offset_ms = farm.ledger.now_ms() - time.monotonic_ns() / 1e6
    claims: list[float] = []
    starts: list[float] = []
    ended_ms = 0
    for entry in harness.journal(farm, "gap"):
        if entry.kind == "attempt_started" and ended_ms:
            claims.append(entry.at_ms - ended_ms)
        elif entry.kind == "game_finished":
            if ended_ms:
                starts.append(_first_word_ms(farm, entry.data["game"]) + offset_ms - ended_ms)
            ended_ms = entry.at_ms
        elif entry.kind in {"gate_set", "event_ranked"}:
            ended_ms = 0
    assert len(claims) == len(starts) == GAMES - 1 + 3
    return {"result to next claim": claims, "result to `uci`": starts}


@contextlib.contextmanager
def _busy(loops: int) -> Iterator[None]:
    """Keep so many processes busy until the block is left."""
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()


def _first_word_ms(farm: harness.Farm, game: str) -> float:
    """Return when the referee first spoke to an engine of a game, monotonic ms."""
    log = farm.archive / "gap" / "games" / game / "protocol.log.gz"
    with gzip.open(log, "rb") as lines:
        stamps = [int(line.split()[0]) for line in lines if b"> uci" in line]
    record = contract.GameRecord.decode((log.parent / "record.json").read_bytes())
    assert stamps, f"no handshake in the log of {record.order.game}"
    return min(stamps) / 1e6
