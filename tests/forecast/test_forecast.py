"""Forecasts: seeded, the same on any number of cores, certain of what is over, calibrated."""

from __future__ import annotations

import collections
import math
import os
import pathlib
import random

import pytest
from click import testing

from orchestrator import commands
from orchestrator.forecast import forecast, game_model, season_simulation
from orchestrator.season.file import load
from orchestrator.season.fold import state

LONG = os.environ.get("FARM_LONG") == "1"
SEASONS = 600 if LONG else 40
RUNS = 200 if LONG else 60
ERROR = 60.0  # points: how far true strengths lie from the roster's
ENGINES = 8
GUESS = {f"engine-{number}": 3000 + 25 * number for number in range(ENGINES)}

TEXT = """
schema = 1
id = "league"
name = "A League"

[roster]
engine = [
{engines}
]

[books.short]
file = "short.epd"
repeat = true

[[event]]
id = "league"
name = "League"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = "roster"
time_control = "30+5"
book = "short"
tiebreaks = ["direct-encounter", "wins", "sonneborn-berger", "organizers"]
promote = [{{ top = 2, to = "final" }}]
relegate = 2

[[event]]
id = "final"
name = "Final"
break = "2h"
time_control = "30+5"
book = "short"

[event.format]
kind = "match"
games = 8
extensions = [{{ games = 2, openings = "book", repeat = true }}]
"""


def league(folder: pathlib.Path) -> load.Loaded:
    """Return a small season: a league of eight and a final of its first two."""
    lines = [
        f'  {{ id = "{name}", name = "{name}", command = ["x"], rating = {rating} }},'
        for name, rating in GUESS.items()
    ]
    (folder / "short.epd").write_text("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\n")
    file = folder / "league.toml"
    file.write_text(TEXT.format(engines="\n".join(lines)))
    return load.load(file)


QUIET = game_model.Chances(crash=0.0, time_loss=0.0)


def season(
    loaded: load.Loaded, number: int
) -> tuple[state.SeasonState, season_simulation.Simulation]:
    """Play a season of true strengths; return the first half, as its forecaster sees it."""
    numbers = random.Random(number)
    true = {name: round(numbers.gauss(rating, ERROR)) for name, rating in GUESS.items()}
    whole = season_simulation.Simulation.launched(loaded, number, QUIET)
    _rate(whole.state, true)
    whole.run()
    ends = [at for at, entry in enumerate(whole.journal) if entry.kind == "game_finished"]
    half = state.fold(whole.journal[: ends[len(ends) // 2] + 1])
    _rate(half, GUESS)
    return half, whole


def _rate(season: state.SeasonState, ratings: dict[str, int]) -> None:
    for name, engine in season.engines.items():
        season.engines[name] = engine.model_copy(update={"rating": ratings[name]})


def test_the_same_seed_forecasts_the_same_on_any_number_of_cores(tmp_path: pathlib.Path) -> None:
    """Odds follow from state and seed alone, and another seed draws others."""
    half, _ = season(league(tmp_path), 1)
    alone = forecast.forecast(forecast.Forecast(half, 3), 40, processes=1)
    heard: list[int] = []
    shared = forecast.forecast(forecast.Forecast(half, 3), 40, 2, heard.append)
    assert alone == shared
    assert sum(heard) == alone.runs == 40
    assert forecast.forecast(forecast.Forecast(half, 4), 40, 1) != alone


def test_chances_add_up(tmp_path: pathlib.Path) -> None:
    """Every place is taken once, two go on and two are relegated, one is champion."""
    half, _ = season(league(tmp_path), 1)
    asked = forecast.Forecast(half, 3)
    facts = forecast.as_json(asked, forecast.forecast(asked, 40, 1), 0)
    lines = facts["events"][0]["engines"]
    for place in range(ENGINES):
        assert math.fsum(line["places"][place] for line in lines) == pytest.approx(1)
    assert math.fsum(line["promoted"]["final"] for line in lines) == pytest.approx(2)
    assert math.fsum(line["relegated"] for line in lines) == pytest.approx(2)
    assert math.fsum(one["chance"] for one in facts["champion"]) == pytest.approx(1)
    assert 0 < facts["remaining_days"]["early"] <= facts["remaining_days"]["late"]


def forecast_of(file: pathlib.Path, text: str) -> str:
    """Return what `farm season forecast` says of a season file."""
    file.write_text(text)
    words = ["forecast", str(file), "--runs", "4", "--seed", "1", "--processes", "1"]
    told = testing.CliRunner().invoke(commands.farm, words)
    assert told.exit_code == 0, told.output
    return " ".join(told.output.split())


def test_breaks_and_waits_are_told_apart_from_play(tmp_path: pathlib.Path) -> None:
    """A gate of the operator has no time that could be forecast; an event of two no third place."""
    league(tmp_path)
    file = tmp_path / "league.toml"
    text = file.read_text()
    told = forecast_of(file, text)
    assert ", 2h of it breaks; 9 in 10: " in told
    assert "Besides" not in told
    final = told.partition("Champion")[0].rpartition("Final")[2]
    assert ("Plays ┃ 1 ┃ 2 ┃" in final, "┃ 3 ┃" in final) == (True, False)
    assert "┃ 3 ┃" in told, "of the league"
    waiting = forecast_of(file, text.replace('break = "2h"', 'break = "operator"'))
    assert "breaks" not in waiting
    assert "Besides, the wait until an operator opens the gate of final, however" in waiting
    timed = forecast_of(file, text.replace('break = "2h"\n', ""))
    assert "Besides" not in timed


def test_what_is_over_is_certain(tmp_path: pathlib.Path) -> None:
    """A finished season has one outcome, and nothing left to wait for."""
    _, whole = season(league(tmp_path), 2)
    odds = forecast.forecast(forecast.Forecast(whole.state, 1), 5, 1)
    assert odds.champions == {whole.state.champion: 5}
    assert set(odds.seconds) == {0.0}


def test_the_forecast_is_calibrated_and_beats_the_standings(tmp_path: pathlib.Path) -> None:
    """Promotions come as often as forecast, by deciles; strengths tell more than points.

    Each season has engines whose strengths are off the roster's, and is played by the
    core; it is forecast at half time. A decile's band is the binomial one of 95 %. With
    few seasons (without FARM_LONG=1) one decile of the ten may lie outside.
    """
    loaded = league(tmp_path)
    seen: dict[int, list[tuple[float, bool]]] = collections.defaultdict(list)
    scores = {"forecast": 0.0, "standings": 0.0}
    for number in range(SEASONS):
        half, whole = season(loaded, number)
        promoted = whole.state.events["final"].entrants
        for name, level in (("forecast", False), ("standings", True)):
            asked = forecast.Forecast(half, number, ERROR, standings_only=level)
            odds = forecast.forecast(asked, RUNS, 1)
            for engine in GUESS:
                chance = odds.sent["league", engine, "final"] / RUNS
                scores[name] += (chance - (engine in promoted)) ** 2
                if name == "forecast":
                    seen[min(9, int(10 * chance))].append((chance, engine in promoted))
    outside = [decile for decile, cases in sorted(seen.items()) if not _within(cases)]
    if LONG:
        print({d: (len(c), sum(p for p, _ in c), sum(h for _, h in c)) for d, c in seen.items()})
        print({name: score / SEASONS / ENGINES for name, score in scores.items()})
    assert len(seen) == 10
    assert len(outside) <= (0 if LONG else 1), outside
    assert scores["forecast"] < scores["standings"]


def _within(cases: list[tuple[float, bool]]) -> bool:
    """Say whether as many came true as a binomial band of 95 % around the forecast allows."""
    mean = math.fsum(chance for chance, _ in cases) / len(cases)
    true = sum(came for _, came in cases)
    below = _binomial(true, len(cases), mean)
    above = 1 - _binomial(true - 1, len(cases), mean)
    return min(below, above) >= 0.025


def _binomial(most: int, cases: int, chance: float) -> float:
    """Return the probability of at most so many successes."""
    if most < 0:
        return 0.0
    return math.fsum(
        math.comb(cases, k) * chance**k * (1 - chance) ** (cases - k) for k in range(most + 1)
    )
