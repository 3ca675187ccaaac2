"""How strong engines are, as far as is known: a first guess, corrected by their games.

For forecasts a rating needs an error that is honest from the first game on. So the
likelihood of Ordo's curve is joined with a first guess of every rating (from the
roster) and of the white advantage, each with its standard error; the curvature at the
maximum gives the covariance (Laplace). Unlike a rating list this has numbers for
everybody: perfect scorers, and engines that have not played.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from orchestrator.rating import logistic, pairings

WHITE = (35.0, 25.0)  # points: what the first move is worth in engine chess, and its error
DRAWS = 0.55  # of equal engines, before there are games
DRAWS_WORTH = 20.0  # games that the first guess of the draw rate counts for

_STEPS = 50
_CLOSE = 1e-6  # points


@dataclasses.dataclass(frozen=True)
class Guess:
    """What is thought of an engine before its games."""

    rating: float
    error: float


@dataclasses.dataclass(frozen=True)
class Posterior:
    """Ratings and, last, the white advantage; their covariance; the draw rate of equals."""

    engines: tuple[str, ...]
    place: logistic.Floats
    covariance: logistic.Floats
    draws: float

    def drawn(self, numbers: np.random.Generator) -> logistic.Floats:
        """Draw ratings and white advantage that may be the true ones."""
        root = np.linalg.cholesky(self.covariance)
        shifted: logistic.Floats = self.place + root @ numbers.standard_normal(len(self.place))
        return shifted


def after(
    games: Mapping[tuple[str, str, str], int],
    guesses: Mapping[str, Guess],
    white: tuple[float, float] = WHITE,
) -> Posterior:
    """Correct first guesses by games (White, Black, result); all engines need a guess."""
    counted = _counted(games, tuple(guesses))
    first = np.array([*(guess.rating for guess in guesses.values()), white[0]])
    errors = np.array([*(guess.error for guess in guesses.values()), white[1]])
    return correct(counted, first, errors)


def correct(
    counted: pairings.Pairings,
    first: logistic.Floats,
    errors: logistic.Floats,
    start: logistic.Floats | None = None,
) -> Posterior:
    """Correct first guesses and their errors, the white advantage last, by games.

    From ``start``, an earlier place, fewer steps lead there.
    """
    sure = 1 / errors**2
    ratings = (first if start is None else start).copy()
    curvature = np.diag(sure)
    for _ in range(_STEPS):
        gradient, information = _slopes(counted, ratings)
        curvature = information + np.diag(sure)
        move = np.linalg.solve(curvature, gradient - sure * (ratings - first))
        longest = float(np.abs(move).max())
        ratings = ratings + move * min(1.0, 200.0 / longest if longest else 1.0)
        if longest < _CLOSE:
            break
    covariance: logistic.Floats = np.linalg.inv(curvature).astype(np.float64)
    return Posterior(counted.engines, ratings, covariance, _draws(counted, ratings))


def _counted(
    games: Mapping[tuple[str, str, str], int], engines: tuple[str, ...]
) -> pairings.Pairings:
    """Count the games of known engines, numbered in the order of the guesses."""
    guessed = set(engines)
    kept = {key: times for key, times in games.items() if key[0] in guessed and key[1] in guessed}
    counted = pairings.count(kept)
    numbers = {engine: number for number, engine in enumerate(engines)}
    new_numbers = np.array([numbers[engine] for engine in counted.engines], dtype=np.int64)
    return dataclasses.replace(
        counted, engines=engines, white=new_numbers[counted.white], black=new_numbers[counted.black]
    )


def _slopes(
    counted: pairings.Pairings, ratings: logistic.Floats
) -> tuple[logistic.Floats, logistic.Floats]:
    """Return gradient and information of the games' likelihood, without a gauge."""
    scores = logistic.expected(ratings[counted.white] - ratings[counted.black] + ratings[-1])
    missing = logistic.BETA * (counted.taken - counted.games * scores)
    weight = logistic.BETA**2 * counted.games * scores * (1 - scores)
    gradient = np.append(counted.sums(missing, -missing), missing.sum())
    narrowing = _narrowing(counted, scores)
    return gradient * narrowing, counted.information(weight) * narrowing


def _narrowing(counted: pairings.Pairings, scores: logistic.Floats) -> float:
    """Return how much more draws tell than wins and losses of the same score would.

    The curve counts a draw as half a win and half a loss; its results vary less, and so
    tell more, by the ratio of the variances.
    """
    if not counted.games.sum():
        return 1.0
    even = _draw_rate(counted, scores)
    spread = float(counted.games @ (scores * (1 - scores)))
    left = spread - float(counted.games @ logistic.draws(scores, even)) / 4
    return spread / left if left > 0.05 * spread else 1.0


def _draws(counted: pairings.Pairings, ratings: logistic.Floats) -> float:
    scores = logistic.expected(ratings[counted.white] - ratings[counted.black] + ratings[-1])
    return _draw_rate(counted, scores)


def _draw_rate(counted: pairings.Pairings, scores: logistic.Floats) -> float:
    """Return the draw rate that fits, pulled to the first guess while games are few."""
    guess = np.append(scores, 0.5)
    games = np.append(counted.games, DRAWS_WORTH)
    return logistic.draw_rate(guess, games, float(counted.draws.sum()) + DRAWS_WORTH * DRAWS)
