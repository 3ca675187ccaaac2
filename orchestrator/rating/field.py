"""Ratings of a field of engines that played each other, in logistic Elo around its mean.

Every engine's opponents count: the likeliest ratings of all games together (``ordo``), so the
list of a gauntlet compares engines that never met. Errors are half widths of the 95 % interval.
Two games of a pair share their opening, so their results are no independent draws: where
there are pairs enough, errors are scaled by how much pairs spread beside what single games
of these ratings and draws would (one number for the whole field, because each couple's own
would rest on too few pairs).

Invariants: ratings of engines rated by likelihood have mean 0; an engine that won or lost
all its games has a rating and no error; one that no chain of wins and draws connects with
the rest has neither.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from orchestrator.rating import elo, error_bars, logistic, ordo, pairings, results

UNIT = logistic.BETA * 400 / math.log(10)  # logistic Elo in a point of Ordo's
ENOUGH = 30  # pairs beyond one a couple, from which their spread is known


class Field:
    """The ratings of engines by their position."""

    def __init__(self, names: Sequence[str], met: Mapping[tuple[int, int], results.Counts]) -> None:
        """Take the results of each couple from the first one's side."""
        games: dict[tuple[str, str, str], int] = {}
        for (first, second), counts in met.items():
            outcomes = ("1-0", counts.wins), ("1/2-1/2", counts.draws), ("0-1", counts.losses)
            for result, number in outcomes:
                if number:
                    games[f"{first}", f"{second}", result] = number
        self._names = names
        self._rated: ordo.Rated | None = None
        if games:
            counted = pairings.count(pairings.Table.of(games), {})
            self._rated = ordo.rate(counted, ordo.Settings(draws=None, average=0.0, exact=True))
            self._spread = error_bars.of(self._rated, runs=0)
            self._scale = math.sqrt(_spread_of_pairs(met, self._ratings(), self._rated.draws))

    def elo(self, engine: int) -> float | None:
        """Return an engine's rating, ``None`` where too few games connect it with others."""
        rating = None if self._rated is None else self._rated.rating(f"{engine}")
        return None if rating is None else rating * UNIT

    def error(self, engine: int) -> float | None:
        """Return half the 95 % interval of its rating, ``None`` where it has none."""
        row = self._index(engine)
        error = None if row is None else self._spread.error(row)
        return None if error is None else error * UNIT * self._scale

    def superiority(self, one: int, other: int) -> float | None:
        """Return the probability that the first engine is the stronger one."""
        first, second = self._index(one), self._index(other)
        lead = (self.elo(one) or 0.0) - (self.elo(other) or 0.0)
        if first is None or second is None:
            return None
        core = self._spread.rated.core
        if first not in core or second not in core:
            return None
        if None in (self._spread.error(first), self._spread.error(second)):
            return None
        deviation = self._spread.deviation(first, second)
        return statistics.NormalDist().cdf(lead / (deviation * UNIT * self._scale))

    def ranked(self) -> list[int]:
        """Return the engines, best first; those without a rating last, as they were named."""
        ratings = [self.elo(engine) for engine in range(len(self._names))]
        keys = [math.inf if rating is None else -rating for rating in ratings]
        return sorted(range(len(keys)), key=lambda engine: keys[engine])

    def _index(self, engine: int) -> int | None:
        if self._rated is None or f"{engine}" not in self._rated.counted.engines:
            return None
        return self._rated.counted.engines.index(f"{engine}")

    def _ratings(self) -> dict[int, float]:
        rated = ((engine, self.elo(engine)) for engine in range(len(self._names)))
        return {engine: rating for engine, rating in rated if rating is not None}


def _spread_of_pairs(
    met: Mapping[tuple[int, int], results.Counts], ratings: Mapping[int, float], even: float
) -> float:
    """Return the variance of pairs' points, in that of two independent games; 1 if unknown."""
    seen = expected = 0.0
    freedom = 0
    for (first, second), counts in met.items():
        pairs = results.Distribution(counts.pairs)
        if pairs.total < 2 or first not in ratings or second not in ratings:
            continue
        free = pairs.total - 1
        score = np.array([elo.expected(ratings[first] - ratings[second])])
        drawn = logistic.draws(score, even)
        expected += free * 2 * float((score * (1 - score) - drawn / 4)[0])
        seen += 4 * pairs.variance * pairs.total  # a pair's points are twice its mean score
        freedom += round(free)
    return seen / expected if freedom >= ENOUGH and expected > 0 else 1.0
