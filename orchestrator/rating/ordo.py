"""A rating list by the model of Ordo 1.2.6 (S16-14: all games of all engines).

The list is made in these steps: engines that won or lost everything (perfect scorers)
are set aside; the largest part that wins and draws connect both ways is rated by
likelihood; the draw rate of equal engines is fitted after it; perfect scorers get the
rating at which their perfect score has a chance of one half. Everybody else has a
provisional place and no number: games say nothing of how far apart two parts are.

Fields of up to ``SMALL`` games with an estimated white advantage are rated by Ordo's own
walk (``alternating``): there it may stop up to 0.05 points from the maximum, and people
compare lists. ``exact`` turns that off.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from orchestrator.common import errors
from orchestrator.rating import components, likelihood, logistic, ordo_iteration, pairings

AVERAGE = 2300.0  # of the engines that have numbers, as in Ordo
SMALL = 5_000  # games; beyond, Ordo's own stopping error is below 0.005 points

_WIDEST = 20_000.0  # points between which a perfect scorer's rating is sought
_HALVINGS = 60


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is estimated and where the scale lies.

    ``white`` and ``draws`` of None are estimated from the games. ``anchor`` is the engine
    whose rating is ``average``; without one the mean of the rated engines is.
    """

    white: float | None = 0.0
    draws: float | None = logistic.EVEN_DRAWS
    average: float = AVERAGE
    anchor: str | None = None
    exact: bool = False


@dataclasses.dataclass(frozen=True)
class Rated:
    """What came of it; ``core`` are the numbers of the engines that were rated by likelihood.

    ``ratings`` holds them and the perfect scorers by number; who is missing is provisional.
    """

    counted: pairings.Pairings
    settings: Settings
    core: tuple[int, ...]
    fit: likelihood.Fit
    white: float
    draws: float
    ratings: Mapping[int, float]
    perfect: Mapping[int, bool]

    @property
    def games(self) -> pairings.Pairings:
        """Return the games among the engines rated by likelihood."""
        return self.counted.among(self.core)

    def rating(self, engine: str) -> float | None:
        """Return an engine's rating, None where it is provisional or unknown."""
        if engine not in self.counted.engines:
            return None
        return self.ratings.get(self.counted.engines.index(engine))


def rate(
    counted: pairings.Pairings, settings: Settings | None = None, before: Rated | None = None
) -> Rated:
    """Rate all engines; ``before`` is an earlier list from which a few steps lead here.

    Raise ``UsageError`` for an anchor that has no games.
    """
    wanted = settings or Settings()
    if wanted.anchor is not None and wanted.anchor not in counted.engines:
        raise errors.UsageError(
            f"--anchor: found {wanted.anchor!r}; no game of it was read; allowed:"
            f" {', '.join(sorted(counted.engines))}"
        )
    perfect = _perfect(counted)
    core = _core(counted, perfect, wanted.anchor)
    games = counted.among(core)
    fit = _fit(games, wanted, _start(before, games))
    white = fit.white if wanted.white is None else wanted.white
    draws = wanted.draws if wanted.draws is not None else _draws(games, fit, white)
    ratings = {engine: float(at) for engine, at in zip(core, fit.ratings, strict=True)}
    bounded = _comparable(counted, perfect, core, wanted.anchor)
    _rate_perfect(counted, bounded, ratings, white, draws)
    shift = _shift(counted, wanted, ratings)
    placed = {engine: at + shift for engine, at in ratings.items()}
    return Rated(counted, wanted, core, fit, white, draws, placed, perfect)


def _perfect(counted: pairings.Pairings) -> dict[int, bool]:
    """Return who won everything (True) or lost everything (False)."""
    points, played = counted.points(), counted.played()
    clean = np.flatnonzero((played > 0) & ((points == 0) | (points == played)))
    return {int(engine): bool(points[engine] > 0) for engine in clean}


def _core(
    counted: pairings.Pairings, perfect: Mapping[int, bool], anchor: str | None
) -> tuple[int, ...]:
    """Return the part to be rated: the anchor's, else the largest, else that with most games."""
    staying = [engine for engine in range(len(counted.engines)) if engine not in perfect]
    parts = components.connected(counted.among(staying))
    played = counted.played()

    def merit(part: list[int]) -> tuple[bool, int, float, int]:
        named = [staying[engine] for engine in part]
        anchored = anchor in {counted.engines[engine] for engine in named}
        return anchored, len(part), float(played[named].sum()), -part[0]

    return tuple(staying[engine] for engine in max(parts, key=merit, default=[]))


def _start(before: Rated | None, games: pairings.Pairings) -> likelihood.Fit | None:
    """Carry an earlier solution over; a new engine starts at the mean."""
    if before is None or not before.core or not before.fit.settled:
        return None
    earlier = dict(zip(before.games.engines, before.fit.ratings.tolist(), strict=True))
    ratings = np.array([earlier.get(engine, 0.0) for engine in games.engines])
    return dataclasses.replace(before.fit, ratings=ratings - ratings.mean())


def _fit(
    games: pairings.Pairings, settings: Settings, start: likelihood.Fit | None
) -> likelihood.Fit:
    if len(games.engines) < 2:
        return likelihood.Fit(np.zeros(len(games.engines)), settings.white or 0.0, 0, settled=True)
    estimated = settings.white is None
    if estimated and not settings.exact and games.games.sum() <= SMALL:
        return ordo_iteration.fit(games)
    fitted = likelihood.fit(games, settings.white, start)
    if not fitted.settled and start is not None:
        fitted = likelihood.fit(games, settings.white)
    return ordo_iteration.fit(games) if estimated and not fitted.settled else fitted


def _draws(games: pairings.Pairings, fit: likelihood.Fit, white: float) -> float:
    if not len(games.white):
        return logistic.EVEN_DRAWS
    lead = fit.ratings[games.white] - fit.ratings[games.black] + white
    return logistic.draw_rate(logistic.expected(lead), games.games, float(games.draws.sum()))


def _comparable(
    counted: pairings.Pairings,
    perfect: Mapping[int, bool],
    core: tuple[int, ...],
    anchor: str | None,
) -> dict[int, bool]:
    """Return the perfect scorers whom games lead to the core, through each other at most.

    The others stay provisional: nothing says where they stand to the core. Where all are
    perfect scorers one group of them takes its place: the anchor's, else the largest.
    """
    met = {engine: [other for other, _, _ in _met(counted, engine)] for engine in perfect}
    reached = _reached(core, met)
    if not core:
        groups = [_reached((engine,), met) for engine in perfect]

        def merit(group: set[int]) -> tuple[bool, int]:
            return anchor in {counted.engines[engine] for engine in group}, len(group)

        reached = max(groups, key=merit, default=set())
    return {engine: won for engine, won in perfect.items() if engine in reached}


def _reached(begin: tuple[int, ...], met: Mapping[int, list[int]]) -> set[int]:
    """Return who is reached from some engines by the games of those in ``met``."""
    reached, size = set(begin), 0
    while size < len(reached):
        size = len(reached)
        reached |= {engine for engine, others in met.items() if not reached.isdisjoint(others)}
    return reached


def _rate_perfect(
    counted: pairings.Pairings,
    perfect: Mapping[int, bool],
    ratings: dict[int, float],
    white: float,
    draws: float,
) -> None:
    """Rate perfect scorers in order of appearance, as Ordo does.

    One who met another not rated yet finds it at the mean.
    """
    start = dict.fromkeys(perfect, 0.0) | ratings
    for engine, won in perfect.items():
        met = [pair for pair in _met(counted, engine) if pair[0] in start]
        if met:
            leads = np.array([start[other] - colour * white for other, colour, _ in met])
            games = np.array([count for _, _, count in met])
            start[engine] = ratings[engine] = _half(leads, games, draws, won=won)


def _met(counted: pairings.Pairings, engine: int) -> list[tuple[int, int, float]]:
    """Return opponent, colour (1: White) and games of each pair an engine was in."""
    games = counted.games
    as_white = [(int(counted.black[at]), 1, at) for at in np.flatnonzero(counted.white == engine)]
    as_black = [(int(counted.white[at]), -1, at) for at in np.flatnonzero(counted.black == engine)]
    return [(other, colour, float(games[at])) for other, colour, at in as_white + as_black]


def _half(opponents: logistic.Floats, games: logistic.Floats, draws: float, *, won: bool) -> float:
    """Return the rating at which all wins (or all losses) have a chance of one half."""
    low, high = float(opponents.min()) - _WIDEST, float(opponents.max()) + _WIDEST
    column = 0 if won else 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        chance = games @ np.log(logistic.outcomes(middle - opponents, draws)[:, column])
        if (chance < np.log(0.5)) == won:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _shift(counted: pairings.Pairings, settings: Settings, ratings: Mapping[int, float]) -> float:
    """Return what lifts ratings with mean 0 to the anchor, or to the average wanted."""
    if settings.anchor is None:
        return settings.average
    anchor_rating = ratings.get(counted.engines.index(settings.anchor))
    if anchor_rating is None:
        raise errors.UsageError(
            f"--anchor: {settings.anchor!r} is provisional: too few games connect it with others"
        )
    return settings.average - anchor_rating
