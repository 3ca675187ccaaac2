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


def superiority(counts: results.Counts) -> float:
    """Return the probability that the first engine is the stronger one (LOS)."""
    seen = counts.observed()
    if seen.error == 0:
        return 0.5 if seen.mean == 0.5 else float(seen.mean > 0.5)
    return statistics.NormalDist().cdf((seen.mean - 0.5) / seen.error)
