"""How sure a rating list is: errors, likelihood of superiority, and their covariance.

Two ways lead to the covariance. The analytic one (sandwich) takes the information of
the games and the variance of their results under the fitted draw rate: a millisecond,
right for many games, too small for a few. Simulation plays all games again from the
fitted model and rates each run (Ordo's ``-s``): runs in which not everybody is connected
are drawn again, up to ``TRIES`` times, as Ordo does. Errors are half widths of the 95 %
interval, of ratings against the mean, or against the anchor where there is one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import statistics

import numpy as np

from orchestrator.rating import components, likelihood, logistic, ordo, ordo_iteration, pairings

CONFIDENCE = statistics.NormalDist().inv_cdf(0.975)  # standard errors in a 95 % interval
TRIES = 100  # draws of one run until everybody is connected
FEW = 150.0  # games an engine, below which the analytic errors are not trusted
WIDE = 128  # engines, above which simulation takes more than seconds
RUNS = 1_000
TINY = 100  # games, below which a third of the runs is exact enough for what is known
NAUGHT = 0.05  # points: no games are that sure, only a model that nothing contradicts
LARGE = 1_000.0  # points of white advantage: Ordo searches no further

_SEED = 1324561  # the same list twice has the same errors
_SOFT = 0.05  # of a draw added to each pair where no connected run was found
_NOBODY = np.zeros((0, 0))


@dataclasses.dataclass(frozen=True)
class Spread:
    """The covariance of the rated engines, by number; ratings have mean 0 in it."""

    rated: ordo.Rated
    covariance: logistic.Floats
    white_error: float | None

    def error(self, engine: int) -> float | None:
        """Return half the 95 % interval of an engine's rating; an anchor has 0.

        None where it has none, and where nothing in so few games varies.
        """
        row = self._index(engine)
        if row is None:
            return None
        anchor = self._anchor
        if anchor is None:
            error = CONFIDENCE * math.sqrt(max(0.0, self.covariance[row, row]))
        else:
            error = CONFIDENCE * self.deviation(engine, self.rated.core[anchor])
        return error if error >= NAUGHT or row == anchor else None

    def deviation(self, first: int, second: int) -> float:
        """Return the standard error of the difference of two rated engines."""
        i, k = self.rated.core.index(first), self.rated.core.index(second)
        table = self.covariance
        return math.sqrt(max(0.0, table[i, i] + table[k, k] - 2 * table[i, k]))

    def superiority(self, first: int, second: int) -> float | None:
        """Return the probability that the first engine is the stronger one (LOS, Ordo's CFS)."""
        if self._index(first) is None or self._index(second) is None:
            return None
        deviation = self.deviation(first, second)
        lead = self.rated.ratings[first] - self.rated.ratings[second]
        if CONFIDENCE * deviation < 2 * NAUGHT:
            return 0.5 if abs(lead) < 2 * NAUGHT else float(lead > 0)
        return statistics.NormalDist().cdf(lead / deviation)

    def _index(self, engine: int) -> int | None:
        return self.rated.core.index(engine) if engine in self.rated.core else None

    @property
    def _anchor(self) -> int | None:
        name = self.rated.settings.anchor
        return None if name is None else self._index(self.rated.counted.engines.index(name))


def of(rated: ordo.Rated, runs: int | None = None) -> Spread:
    """Return the spread; ``runs`` of None simulates where games are few, 0 never does."""
    games = rated.games
    if len(games.engines) < 2:
        return Spread(rated, _NOBODY if not games.engines else np.zeros((1, 1)), None)
    if runs is None:
        runs = (RUNS if games.games.sum() >= TINY else RUNS // 3) if _few(games) else 0
    return simulated(rated, games, runs) if runs > 1 else analytic(rated, games)


def _few(games: pairings.Pairings) -> bool:
    size = len(games.engines)
    return size <= WIDE and 2 * float(games.games.sum()) / size < FEW


def analytic(rated: ordo.Rated, games: pairings.Pairings) -> Spread:
    """Return the sandwich estimate: information⁻¹ · variance · information⁻¹."""
    ratings = np.append(rated.fit.ratings, rated.white)
    _, curvature = likelihood.slopes(games, ratings)
    scores = logistic.expected(ratings[games.white] - ratings[games.black] + rated.white)
    variance = scores * (1 - scores) - logistic.draws(scores, rated.draws) / 4
    noise = games.information(games.games * np.maximum(variance, 0.0))  # of the scores
    size = len(games.engines)
    kept = size + 1 if rated.settings.white is None and rated.fit.settled else size
    inverse = np.linalg.pinv(curvature[:kept, :kept], hermitian=True)
    table = inverse @ noise[:kept, :kept] @ inverse
    white = CONFIDENCE * math.sqrt(max(0.0, table[-1, -1])) if kept > size else None
    return Spread(rated, _centred(table[:size, :size]), white)


def _centred(table: logistic.Floats) -> logistic.Floats:
    """Return the covariance of ratings against their mean."""
    by_row = table - table.mean(axis=0, keepdims=True)
    centred: logistic.Floats = by_row - by_row.mean(axis=1, keepdims=True)
    return centred


def simulated(rated: ordo.Rated, games: pairings.Pairings, runs: int) -> Spread:
    """Return the spread of the ratings of simulated repetitions of all games."""
    draw = _Draws(rated, games)
    free = rated.settings.white is None
    start = likelihood.Fit(rated.fit.ratings, rated.white, 0, settled=True)
    fits: dict[bytes, likelihood.Fit] = {}  # few games come out alike again and again
    runs_fitted = []
    for _ in range(runs):
        drawn = draw.run()
        mark = hashlib.sha256(drawn.wins.tobytes() + drawn.draws.tobytes()).digest()
        if mark not in fits:
            fits[mark] = _run(drawn, None if free else rated.white, start)
        runs_fitted.append(fits[mark])
    table = np.array([run.ratings for run in runs_fitted])
    error = CONFIDENCE * float(np.std([run.white for run in runs_fitted])) if free else None
    return Spread(rated, np.cov(table, rowvar=False, bias=True), error)


def _run(drawn: pairings.Pairings, white: float | None, start: likelihood.Fit) -> likelihood.Fit:
    """Rate a run; by Ordo's walk where the white advantage has no likeliest value, or hardly."""
    fitted = likelihood.fit(drawn, white, start)
    sure = fitted.settled and abs(fitted.white) < LARGE
    return fitted if sure or white is not None else ordo_iteration.fit(drawn)


class _Draws:
    """Repetitions of all games from the fitted model, drawn in batches."""

    def __init__(self, rated: ordo.Rated, games: pairings.Pairings) -> None:
        lead = rated.fit.ratings[games.white] - rated.fit.ratings[games.black] + rated.white
        chances = logistic.outcomes(lead, rated.draws)
        self._chances = chances / chances.sum(axis=1, keepdims=True)
        self._games = games
        self._numbers = np.random.default_rng(_SEED)

    def run(self) -> pairings.Pairings:
        """Return one run in which everybody is connected, or the last of ``TRIES`` softened."""
        counts = self._games.games.astype(np.int64)
        for _ in range(TRIES):
            results = self._numbers.multinomial(counts, self._chances)
            drawn = self._games.redrawn(results)
            points = drawn.points()
            clean = points.min() == 0 or (points == drawn.played()).any()
            if not clean and components.is_connected(drawn):
                return drawn
        return dataclasses.replace(drawn, draws=drawn.draws + _SOFT)
