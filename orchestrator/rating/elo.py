"""Elo difference of two engines, its error, and the likelihood of superiority.

Logistic Elo: a score ``s`` is worth ``400 log10(s / (1 - s))``. Normalized Elo measures
the score in standard deviations of a game, so it does not depend on how drawish openings
and time control are; its unit is chosen so that it equals logistic Elo where no game is
drawn. Errors are half widths of the 95 % interval, from the spread that was observed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics

from orchestrator.rating import results

CONFIDENCE = statistics.NormalDist().inv_cdf(0.975)  # standard errors in a 95 % interval
FEWEST = 2  # observations that an estimate needs
NORMALIZED = 800 / math.log(10)  # normalized Elo per standard deviation of a game


@dataclasses.dataclass(frozen=True)
class Estimate:
    """A difference and its error; ``inf`` where the results set no bound."""

    elo: float
    error: float


def expected(elo: float) -> float:
    """Return the score that an advantage in logistic Elo brings."""
    return 1 / (1 + math.pow(10, -elo / 400))


def difference(score: float) -> float:
    """Return the logistic Elo that a score (0 to 1) is worth, infinite at the ends."""
    if not 0 < score < 1:
        return math.copysign(math.inf, score - 0.5)
    return 400 * math.log10(score / (1 - score))


def logistic(counts: results.Counts) -> Estimate:
    """Estimate the Elo difference from results."""
    seen = counts.observed()
    reach = CONFIDENCE * seen.error
    low, high = difference(seen.mean - reach), difference(seen.mean + reach)
    bounded = math.isfinite(low) and math.isfinite(high) and seen.deviation > 0
    return Estimate(difference(seen.mean), (high - low) / 2 if bounded else math.inf)


def normalized(counts: results.Counts) -> Estimate:
    """Estimate the normalized Elo difference from results."""
    seen = counts.observed()
    if seen.deviation == 0:
        return Estimate(0.0 if seen.mean == 0.5 else difference(seen.mean), math.inf)
    unit = NORMALIZED / seen.deviation
    return Estimate((seen.mean - 0.5) * unit, CONFIDENCE * seen.error * unit)


def is_estimated(counts: results.Counts) -> bool:
    """Say whether there are results to estimate from: one pair, or one game, has no spread."""
    return counts.observed().observations >= FEWEST


def superiority(counts: results.Counts) -> float | None:
    """Return the probability that the first engine is the stronger one (LOS), if it is estimated.

    Where all pairs, or games, have the same score no spread was seen: the probability is then that
    of as many tosses of a coin with an unknown bias, which is certain only in the end.
    """
    seen = counts.observed()
    if not is_estimated(counts):
        return None
    if seen.error == 0:
        lower = 0.5 ** (seen.observations + 1)
        return 0.5 if seen.mean == 0.5 else 1 - lower if seen.mean > 0.5 else lower
    return statistics.NormalDist().cdf((seen.mean - 0.5) / seen.error)
