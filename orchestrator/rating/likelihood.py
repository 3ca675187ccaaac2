"""The ratings under which what happened is likeliest (Ordo's model, Bradley-Terry).

Newton's method on the counts of the pairs: each engine's expected score becomes its
score, and with a free white advantage White's expected score becomes White's. The
likelihood is concave, and its maximum is unique where the engines are connected; only
the white advantage may have none (all its evidence points one way), or be no fact at all
(every engine always had the same colour against the same opponents). ``settled`` says
so. From the last solution one more game takes two or three steps.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from orchestrator.rating import logistic, pairings

STEPS = 60  # Newton steps; connected fields need 5 to 12
REACH = 400.0  # points: the longest step
CLOSE = 1e-4  # points: after a step so short the next is a millionth of it
WEAK = 1e-6  # share of the games' information that must speak of the white advantage


@dataclasses.dataclass(frozen=True)
class Fit:
    """Ratings with mean 0; ``steps`` is how many Newton steps they took."""

    ratings: logistic.Floats
    white: float
    steps: int
    settled: bool


def fit(counted: pairings.Pairings, white: float | None, start: Fit | None = None) -> Fit:
    """Return the likeliest ratings; a white advantage of None is estimated.

    All engines must be connected (``components``).
    """
    free = white is None
    ratings = np.zeros(len(counted.engines) + 1)
    ratings[-1] = white or 0.0
    if start is not None:
        ratings[:-1] = start.ratings
        ratings[-1] = start.white if free else ratings[-1]
    likely = _log_likelihood(counted, ratings)
    for step in range(1, STEPS + 1):
        gradient, curvature = slopes(counted, ratings)
        try:
            move = _move(gradient, curvature, free=free)
        except np.linalg.LinAlgError:
            return _fit(ratings, step, settled=False)
        ratings, likely = _along(counted, ratings, move, likely)
        if np.abs(move).max() < CLOSE:
            return _fit(ratings, step, settled=not free or _speaks(curvature))
    return _fit(ratings, STEPS, settled=False)


def slopes(
    counted: pairings.Pairings, ratings: logistic.Floats
) -> tuple[logistic.Floats, logistic.Floats]:
    """Return gradient and information of the likelihood, the white advantage last.

    The gauge (a common shift of all ratings) is fixed by adding a constant to the block
    of the ratings; inverses then speak of ratings with mean 0.
    """
    size = len(counted.engines)
    scores = _scores(counted, ratings)
    missing = counted.taken - counted.games * scores
    weight = logistic.BETA * counted.games * scores * (1 - scores)
    gradient = np.append(counted.sums(missing, -missing), missing.sum())
    table = counted.information(weight)
    table[:size, :size] += counted.sums(weight, weight).sum() / size**2
    return gradient, table


def _scores(counted: pairings.Pairings, ratings: logistic.Floats) -> logistic.Floats:
    return logistic.expected(ratings[counted.white] - ratings[counted.black] + ratings[-1])


def _log_likelihood(counted: pairings.Pairings, ratings: logistic.Floats) -> float:
    scores = np.clip(_scores(counted, ratings), logistic.TINY, 1 - 1e-16)
    lost = counted.games - counted.taken
    return float(counted.taken @ np.log(scores) + lost @ np.log1p(-scores))


def _move(gradient: logistic.Floats, curvature: logistic.Floats, *, free: bool) -> logistic.Floats:
    size = len(gradient) - 1
    move = np.zeros(size + 1)
    kept = size + 1 if free else size
    move[:kept] = np.linalg.solve(curvature[:kept, :kept], gradient[:kept])
    move[:size] -= move[:size].mean()
    longest = float(np.abs(move).max())
    if not np.isfinite(longest):
        raise np.linalg.LinAlgError
    shortened: logistic.Floats = move * min(1.0, REACH / longest) if longest else move
    return shortened


def _along(
    counted: pairings.Pairings, ratings: logistic.Floats, move: logistic.Floats, likely: float
) -> tuple[logistic.Floats, float]:
    """Go as far along a move as the likelihood grows; rounding may stop it at the top."""
    for halving in range(30):
        tried = ratings + move / 2**halving
        reached = _log_likelihood(counted, tried)
        if reached >= likely - 1e-9 * abs(likely):
            return tried, reached
    return ratings, likely


def _speaks(curvature: logistic.Floats) -> bool:
    """Say whether the games tell the white advantage apart from the ratings."""
    own, shared = curvature[-1, -1], curvature[:-1, -1]
    try:
        left = own - shared @ np.linalg.solve(curvature[:-1, :-1], shared)
    except np.linalg.LinAlgError:
        return False
    return bool(left > WEAK * own)


def _fit(solution: logistic.Floats, steps: int, *, settled: bool) -> Fit:
    ratings = solution[:-1] - solution[:-1].mean()
    return Fit(ratings, float(solution[-1]), steps, settled)
