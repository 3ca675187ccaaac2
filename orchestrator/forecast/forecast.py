"""What the rest of a season may bring: a thousand branches of it, drawn and counted.

Each branch draws ratings that may be the true ones (``rating.posterior``: the roster's
figures with their error, corrected by the games played), plays the rest by them
(``fast_simulation``) and notes places, promotions, relegations, the champion and how long it took.
Run k of a seed is the same whatever processes share the work. No crash, loss on time or
interruption is drawn.
"""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import multiprocessing
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import processor
from orchestrator.forecast import fast_simulation
from orchestrator.rating import likelihood_of_superiority, logistic
from orchestrator.season.fold import progress
from orchestrator.season.fold import state as season_state

UNRATED: Final = likelihood_of_superiority.Guess(3000.0, 250.0)
RATING_ERROR: Final = 60.0  # points: standard error of a roster's rating
CHUNK: Final = 10  # runs between two reports of progress

_DAY: Final = 86_400.0
_RESULTS: Final = (verdict.checkmate("black"), verdict.eval_draw(), verdict.checkmate("white"))


@dataclasses.dataclass(frozen=True)
class Odds:
    """How often each thing happened in ``runs`` branches.

    ``places`` counts by event, engine and place from 1; ``sent`` by event, engine and the
    event it was promoted to; ``seconds`` are how long the rest took.
    """

    runs: int = 0
    places: collections.Counter[tuple[str, str, int]] = dataclasses.field(
        default_factory=collections.Counter
    )
    sent: collections.Counter[tuple[str, str, str]] = dataclasses.field(
        default_factory=collections.Counter
    )
    relegated: collections.Counter[tuple[str, str]] = dataclasses.field(
        default_factory=collections.Counter
    )
    champions: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)
    seconds: tuple[float, ...] = ()

    def with_(self, other: Odds) -> Odds:
        """Return the counts of both."""
        return Odds(
            self.runs + other.runs,
            self.places + other.places,
            self.sent + other.sent,
            self.relegated + other.relegated,
            self.champions + other.champions,
            self.seconds + other.seconds,
        )


class Strengths:
    """What a branch's results are drawn from: ratings, white advantage, draw rate."""

    def __init__(
        self,
        engines: Sequence[str],
        strengths: logistic.Floats,
        draws: float,
        numbers: random.Random,
    ) -> None:
        """Take ratings in the order of the engines, the white advantage last."""
        self._number = {engine: at for at, engine in enumerate(engines)}
        lead = strengths[:-1, None] - strengths[None, :-1] + strengths[-1]
        self._bounds = np.cumsum(logistic.outcomes(lead, draws)[..., :2], axis=-1).tolist()
        self._random = numbers.random

    def __call__(self, event: str, white: str, black: str) -> contract.GameFinished:
        """Draw the result of a game."""
        del event
        won, drawn = self._bounds[self._number[white]][self._number[black]]
        fallen = self._random()
        return finished(0 if fallen < won else 1 if fallen < drawn else 2)


@functools.cache
def finished(result: int) -> contract.GameFinished:
    """Return a game that White won (0), drew (1) or lost (2) and of which no more is known."""
    return verdict.untold(_RESULTS[result], "forecast")


class Forecast:
    """A season of which the rest is to be forecast, and what is known of its engines."""

    def __init__(
        self,
        state: season_state.SeasonState,
        seed: int,
        rating_error: float = RATING_ERROR,
        *,
        standings_only: bool = False,
    ) -> None:
        """Learn from the games played; ``standings_only`` takes all engines for equal.

        Raise ``RefusedError`` for a season that was abandoned: it has no rest.
        """
        state.require_not_abandoned()
        self.state, self.seed = state, seed
        self._paces = {name: _pace(state, name) for name in state.events}
        self._breaks = progress.of_season(state).break_seconds
        posterior = likelihood_of_superiority.after(games_of(state), _guesses(state, rating_error))
        if standings_only:
            size = len(posterior.engines)
            level = np.append(np.zeros(size), posterior.place[-1])
            posterior = dataclasses.replace(
                posterior, place=level, covariance=1e-9 * np.eye(size + 1)
            )
        self.known = posterior

    def run(self, number: int) -> fast_simulation.Branch:
        """Play branch ``number``."""
        numbers = random.Random(f"{self.seed}:{number}")
        noise = np.random.default_rng([self.seed, number])
        strengths = self.known.drawn(noise)
        play = Strengths(self.known.engines, strengths, self.known.draws, numbers)
        return fast_simulation.Branch(self.state, play, _lots(numbers)).run()

    def odds(self, numbers: Sequence[int]) -> Odds:
        """Play some branches and count."""
        total = Odds()
        seconds = []
        for number in numbers:
            played = self.run(number)
            _count(total, played)
            seconds.append(self._seconds(played, number))
        return dataclasses.replace(total, runs=len(numbers), seconds=tuple(seconds))

    def _seconds(self, played: fast_simulation.Branch, number: int) -> float:
        """Return how long the branch took: games at the pace of their event, and breaks."""
        noise = np.random.default_rng([self.seed, number, 1])
        spent = 0.0
        for event, games in played.games.items():
            mean, error = self._paces[event]
            spent += games * max(0.0, mean + error * float(noise.standard_normal()))
        return spent + self._breaks


def forecast(
    asked: Forecast, runs: int, processes: int = 0, done: Callable[[int], None] | None = None
) -> Odds:
    """Play ``runs`` branches on all cores (``processes`` of 0); ``done`` hears of progress."""
    chunks = [range(first, min(first + CHUNK, runs)) for first in range(0, runs, CHUNK)]
    total = Odds()
    for part in _parts(asked, chunks, processes or processor.usable()):
        total = total.with_(part)
        if done is not None:
            done(part.runs)
    return total


def _parts(asked: Forecast, chunks: Sequence[range], processes: int) -> Iterator[Odds]:
    """Yield the odds of each chunk, in order: the sum does not depend on who was quicker."""
    if processes == 1 or len(chunks) < 2:
        yield from map(asked.odds, chunks)
        return
    context = multiprocessing.get_context("fork")  # the state need not travel
    with concurrent.futures.ProcessPoolExecutor(
        processes, context, initializer=_remember, initargs=(asked,)
    ) as pool:
        yield from pool.map(_odds, chunks)


_ASKED: list[Forecast] = []


def _remember(asked: Forecast) -> None:
    _ASKED[:] = [asked]


def _odds(numbers: range) -> Odds:
    return _ASKED[0].odds(numbers)


def _count(total: Odds, played: fast_simulation.Branch) -> None:
    for name, event in played.state.events.items():
        for rank, row in enumerate(event.rows, start=1):
            total.places[name, row.engine, rank] += 1
        for source, arrival in event.arrivals.items():
            total.sent.update((source, engine, name) for engine in arrival.engines)
        if event.spec.relegate:
            lowest = event.rows[-event.spec.relegate :]
            total.relegated.update((name, row.engine) for row in lowest)
    total.champions[played.champion] += 1


def _lots(numbers: random.Random) -> fast_simulation.Lot:
    def lot(_decision: str, count: int) -> list[int]:
        return numbers.sample(range(count), count)

    return lot


def games_of(
    state: season_state.SeasonState,
) -> collections.Counter[tuple[str, str, str]]:
    """Count the results of a season by engine ids, annulled ones included (S16-14d)."""
    counts: collections.Counter[tuple[str, str, str]] = collections.Counter()
    for game in state.games.values():
        if game.finished is not None:
            counts[(*game.players, game.finished.result)] += 1
    return counts


def _guesses(
    state: season_state.SeasonState, rating_error: float
) -> Mapping[str, likelihood_of_superiority.Guess]:
    return {
        name: UNRATED
        if engine.rating is None
        else likelihood_of_superiority.Guess(float(engine.rating), rating_error)
        for name, engine in state.engines.items()
    }


def _pace(state: season_state.SeasonState, event: str) -> tuple[float, float]:
    """Return seconds a game in an event, and their standard error while games are few.

    Games vary by about half their mean; before the first one the time control is a guess
    that may be wrong by a quarter.
    """
    mean = progress.of_event(state, event).mean_seconds
    played = state.events[event].tally.games
    return mean, mean * (0.25 if not played else min(0.25, 0.5 / played**0.5))


def as_json(asked: Forecast, odds: Odds, now_ms: int) -> dict[str, Any]:
    """Return the forecast as plain data; chances are from 0 to 1."""
    state = asked.state
    waits = sorted(odds.seconds)
    return {
        "season": state.launched.id,
        "runs": odds.runs,
        "seed": asked.seed,
        "champion": [
            {"engine": engine, "chance": times / odds.runs}
            for engine, times in odds.champions.most_common()
        ],
        "events": [_event(asked, odds, name) for name in state.events],
        "remaining_days": _quantiles([wait / _DAY for wait in waits]),
        "end_ms": {
            name: round(now_ms + days * _DAY * 1000)
            for name, days in _quantiles([wait / _DAY for wait in waits]).items()
        },
    }


def _quantiles(waits: Sequence[float]) -> dict[str, float]:
    low, middle, high = np.quantile(waits, (0.05, 0.5, 0.95)).tolist()
    return {"early": low, "expected": middle, "late": high}


def _event(asked: Forecast, odds: Odds, event: str) -> dict[str, Any]:
    size = max((rank for name, _, rank in odds.places if name == event), default=0)
    engines = dict.fromkeys(engine for name, engine, _ in odds.places if name == event)
    targets = {p.to: None for p in asked.state.events[event].spec.promote}
    lines = [_line(odds, event, engine, size, tuple(targets)) for engine in engines]
    lines.sort(key=lambda line: -_worth(line["places"]))
    return {"id": event, "name": asked.state.events[event].spec.name, "engines": lines}


def _worth(places: Sequence[float]) -> float:
    """Order by the chances of places, a place worth one more than the next."""
    return sum(chance * (len(places) - at) for at, chance in enumerate(places))


def _line(odds: Odds, event: str, engine: str, size: int, targets: Sequence[str]) -> dict[str, Any]:
    places = [odds.places[event, engine, rank] / odds.runs for rank in range(1, size + 1)]
    return {
        "engine": engine,
        "plays": sum(odds.places[event, engine, rank] for rank in range(1, size + 1)) / odds.runs,
        "places": places,
        "promoted": {to: odds.sent[event, engine, to] / odds.runs for to in targets},
        "relegated": odds.relegated[event, engine] / odds.runs,
    }
