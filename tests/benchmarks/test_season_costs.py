"""What a decision of a season's core costs. Prints figures, judges none."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence

import pytest

from orchestrator import contract
from orchestrator.commands import launch
from orchestrator.forecast import game_model, season_simulation
from orchestrator.season import decide
from orchestrator.season.file import load
from orchestrator.season.fold import state as season_state

LONG = os.environ.get("FARM_BENCH") == "long"
SEASON, RUNS = ("season17", 5) if LONG else ("demo", 1)


@pytest.mark.benchmark
def test_cost_of_a_decision_and_of_a_season(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every decision of simulated seasons is timed, and the seasons are."""
    loaded = load.load(launch.SEASONS / f"{SEASON}.toml")
    spent: list[float] = []
    real = decide.decide

    def timed(state: season_state.SeasonState, now_ms: int) -> Sequence[contract.Draft]:
        begun = time.perf_counter()
        drafts = real(state, now_ms)
        spent.append(time.perf_counter() - begun)
        return drafts

    seasons, games = [], 0
    for run in range(RUNS):
        begun = time.perf_counter()
        played = season_simulation.Simulation.launched(
            loaded, f"{run:02d}", game_model.Chances()
        ).run()
        seasons.append(time.perf_counter() - begun)
        games = sum(entry.kind == "game_finished" for entry in played.journal)
        assert games > 0
    monkeypatch.setattr(decide, "decide", timed)
    season_simulation.Simulation.launched(loaded, "00", game_model.Chances()).run()
    spent.sort()
    assert spent
    print(
        f"\ndecision in {SEASON}: p50 {statistics.median(spent) * 1e6:.0f} us,"
        f" p99 {spent[int(len(spent) * 0.99)] * 1e6:.0f} us, max {spent[-1] * 1e3:.1f} ms"
        f" over {len(spent)} decisions"
    )
    middle = statistics.median(seasons)
    print(f"simulator, {SEASON}: {middle:.2f} s a season, {games / middle:.0f} games/s")
