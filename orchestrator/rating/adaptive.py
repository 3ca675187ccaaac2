"""Whom to let play next so that a rating list is in order after few games.

What is believed of a field is Ordo's curve (``likelihood_of_superiority``) over a common first guess:
all engines are drawn from one normal distribution, whose width the results tell (empirical Bayes).
A first guess makes the list honest although each choice rests on the results before it: the
likeliest ratings alone are too sure then, and engines that won all have no error at all.
Two games of a pair share their opening, so the variance of pairs is measured beside that of two
independent games (as ``field`` does), towards 1 while pairs are few.

``next_couple`` takes, of all couples, the one whose next pair of games lowers the uncertainty of the order most:
the covariance after that pair is known before it is played (a rank-one change), and what it
takes off the variance of each lead is weighed with what that lead still lacks. Pairs
that are being played count as if their results were in, since their information does not hang on them.

Invariants: a belief is a function of the results alone, not of the way to it; choices differ only
where gains do by more than rounding, and the caller's number decides between equals.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from orchestrator.rating import field, likelihood_of_superiority, logistic, pairings

CONFIDENCE = statistics.NormalDist().inv_cdf(0.975)  # standard errors in a 95 % interval
WIDTH = 150.0  # Elo: the standard deviation of a field before there are games
WIDTH_WORTH = 2.0  # engines that this first guess counts for
SPREAD_WORTH = 30.0  # pairs that "as two independent games" counts for

_ROUNDS = 3  # of width and ratings in turn; the width moves by less than 1 % after them
_WIDTHS = 60  # steps of the width for given results
_NO_WHITE = 1e-3  # points: colours change within each pair, so White's advantage says nothing
_SAME = 1e-7  # share of a gain below which two are equal
_SPARE = 0.25  # of a lead's variance: so uncertain is how much surer it has to become
_SURE = 0.02  # weight of leads that are sure already, beside 1 of one that is not


@dataclasses.dataclass(frozen=True)
class Target:
    """When a list is in order: every two neighbours are ordered with this confidence (0.5 to 1).

    A lead may be wrong by less than ``within`` Elo.
    """

    confidence: float = 0.95
    within: float = 0.0

    @property
    def deviations(self) -> float:
        """Return how many standard errors a sure lead has."""
        return statistics.NormalDist().inv_cdf(self.confidence)


class Results:
    """Whole pairs of games by couple, from the side of the engine that is named first."""

    def __init__(self, engines: int) -> None:
        self.engines = engines
        self.first, self.second = np.triu_indices(engines, 1)
        size = len(self.first)
        self.games = np.zeros((size, 3))  # losses, draws, wins
        self.pairs, self.sums, self.squares = np.zeros((3, size))  # half points of a pair
        self.total = 0

    def add(self, one: int, other: int, half_points: Sequence[int]) -> None:
        """Count a pair; half points (0, 1, 2) are those of ``one`` in its two games."""
        if one > other:
            one, other, half_points = other, one, [2 - half for half in half_points]
        row = one * self.engines - one * (one + 1) // 2 + other - one - 1
        for half in half_points:
            self.games[row, half] += 1
        points = sum(half_points)
        self.pairs[row] += 1
        self.sums[row] += points
        self.squares[row] += points**2
        self.total += 1

    def counted(self) -> pairings.Pairings:
        """Return the games of the couples that have met."""
        met = self.pairs > 0
        losses, draws, wins = self.games[met].T
        names = tuple(map(str, range(self.engines)))
        return pairings.Pairings(names, self.first[met], self.second[met], wins, draws, losses)

    def spread(self, ratings: logistic.Floats, even: float) -> float:
        """Return the variance of pairs in that of two independent games of these ratings."""
        several = self.pairs >= 2
        pairs, sums, squares = self.pairs[several], self.sums[several], self.squares[several]
        score = logistic.expected(
            ratings[self.first[several]] - ratings[self.second[several]]
        )
        game = score * (1 - score) - logistic.draws(score, even) / 4
        expected = float(((pairs - 1) * 2 * game).sum())
        seen = float((squares - sums**2 / pairs).sum()) / 4
        worth = SPREAD_WORTH * expected / max(1.0, float((pairs - 1).sum()))
        return (seen + worth) / (expected + worth) if expected > 0 else 1.0


class Belief:
    """What results say of a field: ratings with mean 0, and how sure they are (in Ordo's points)."""

    def __init__(self, results: Results, before: Belief | None = None) -> None:
        """Fit the results; from ``before``, an earlier belief, fewer steps lead there."""
        self.results = results
        size, counted = results.engines, results.counted()
        width, spread, start = WIDTH / field.UNIT, 1.0, None if before is None else before._place
        first = np.zeros(size + 1)
        for _ in range(_ROUNDS):
            errors = np.append(np.full(size, width), _NO_WHITE)
            found = likelihood_of_superiority.correct(counted, first, errors, start, spread)
            start = found.place
            table, place = found.covariance[:-1, :-1], found.place[:-1]
            spread, width = results.spread(place, found.draws), _width(place, table, width)
        self._place, self._covariance = found.place, table
        self.ratings = place - place.mean()
        self.width = width
        score = logistic.expected(place[:, None] - place[None, :])
        slope = score * (1 - score)
        game = np.maximum(slope - logistic.draws(score, found.draws) / 4, logistic.TINY)
        self._information = 2 * (logistic.BETA * slope) ** 2 / game / spread  # of a pair of games
        np.fill_diagonal(self._information, 0.0)

    def elo(self, engine: int) -> float:
        """Return a rating in logistic Elo around the field's mean."""
        return float(self.ratings[engine]) * field.UNIT

    def error(self, engine: int) -> float:
        """Return half the 95 % interval of a rating in Elo."""
        table = self._covariance
        variance = table[engine, engine] - 2 * table[engine].mean() + table.mean()
        return CONFIDENCE * math.sqrt(max(0.0, float(variance))) * field.UNIT

    def superiority(self, one: int, other: int) -> float:
        """Return the probability that the first engine is the stronger one."""
        lead = float(self.ratings[one] - self.ratings[other])
        return statistics.NormalDist().cdf(lead / math.sqrt(_variances(self._covariance)[one, other]))

    def ranked(self) -> list[int]:
        """Return the engines, best first."""
        return [int(engine) for engine in np.argsort(-self.ratings, kind="stable")]

    def unsure(self, target: Target) -> int:
        """Return how many neighbours of the list are not in order yet."""
        lead, variance = self._neighbours(self._covariance)
        return int((lead + target.within / field.UNIT < target.deviations * np.sqrt(variance)).sum())

    def next_couple(
        self, playing: Iterable[tuple[int, int]], target: Target | None, number: int
    ) -> tuple[int, int]:
        """Return the couple that should play the next pair; ``number`` decides between equals.

        ``playing`` are the couples of the pairs that have no result yet. Without a target the
        order as a whole counts, each two engines of the field.
        """
        table = self._covariance
        for one, other in playing:
            table = self._after(table, one, other)
        variances = _variances(table)
        weights = self._weights(variances) if target is None else self._lacks(table, target)
        table = table @ (np.diag(weights.sum(axis=1)) - weights) @ table
        gains = (_variances(table) * self._shrinking(variances))[self.results.first, self.results.second]
        best = np.flatnonzero(gains >= gains.max() * (1 - _SAME))
        row = best[number % len(best)]
        return int(self.results.first[row]), int(self.results.second[row])

    def round_robin_pairs(self, target: Target) -> int:
        """Return after how many pairs a round robin of these ratings would be in order."""
        weight = self._information
        table = np.diag(weight.sum(axis=1)) - weight + weight.max()  # any gauge: leads have none
        lead, variance = self._neighbours(np.linalg.inv(table))
        within = np.maximum(lead + target.within / field.UNIT, logistic.TINY)
        times = float((target.deviations**2 * variance / within**2).max())
        return math.ceil(times) * len(self.results.first)

    def _neighbours(self, table: logistic.Floats) -> tuple[logistic.Floats, logistic.Floats]:
        order = np.argsort(-self.ratings, kind="stable")
        variance = _variances(table)[order[:-1], order[1:]]
        return self.ratings[order[:-1]] - self.ratings[order[1:]], variance

    def _after(self, table: logistic.Floats, one: int, other: int) -> logistic.Floats:
        """Return the covariance after one more pair of two engines."""
        shift = table[:, one] - table[:, other]
        share = self._information[one, other]
        lost: logistic.Floats = np.outer(shift, shift) * share / (1 + share * (shift[one] - shift[other]))
        return table - lost

    def _shrinking(self, variances: logistic.Floats) -> logistic.Floats:
        shrinking: logistic.Floats = self._information / (1 + self._information * variances)
        return shrinking

    def _weights(self, variances: logistic.Floats) -> logistic.Floats:
        """Return what less variance of a lead is worth to the order of the whole field.

        The derivative of the chance that two engines stand in the wrong order, for the true lead,
        which is as uncertain as the variance says: with z leads in standard errors,
        exp(-z²/4) E|N(z/2, 1/2)| / variance.
        """
        z = np.abs(self.ratings[:, None] - self.ratings[None, :]) / np.sqrt(variances)
        folded = np.exp(-z * z / 4) / math.sqrt(math.pi) + z / 2 * _erf(z / 2)
        weights: logistic.Floats = np.exp(-z * z / 4) * folded / variances
        np.fill_diagonal(weights, 0.0)
        return weights

    def _lacks(self, table: logistic.Floats, target: Target) -> logistic.Floats:
        """Return what less variance of neighbours' leads is worth: the more the closer they are."""
        lead, variance = self._neighbours(table)
        wanted = ((lead + target.within / field.UNIT) / target.deviations) ** 2
        lacking = variance > wanted
        weight = np.where(lacking, 1 / (wanted + _SPARE * variance), _SURE / variance)
        order = np.argsort(-self.ratings, kind="stable")
        weights = np.zeros_like(table)
        weights[order[:-1], order[1:]] = weights[order[1:], order[:-1]] = weight
        return weights


def _variances(table: logistic.Floats) -> logistic.Floats:
    """Return the variance of each lead; 1 of an engine over itself, which no one asks for."""
    own = np.diag(table)
    variances: logistic.Floats = np.maximum(own[:, None] + own[None, :] - 2 * table, logistic.TINY)
    np.fill_diagonal(variances, 1.0)
    return variances


def _width(place: logistic.Floats, table: logistic.Floats, width: float) -> float:
    """Return the likeliest standard deviation of the field, for what the games alone say of it.

    Expectation and maximization on the eigenvectors of the games' information; a common shift of
    all ratings is no part of it, and one engine's worth less is divided by than there is, so that few
    engines do not seem closer than they are.
    """
    values, vectors = np.linalg.eigh(table)
    known = np.maximum(1 / values - 1 / width**2, 0.0)  # the games' information
    pull = vectors.T @ place / values
    guess = WIDTH_WORTH * (WIDTH / field.UNIT) ** 2
    for _ in range(_WIDTHS):
        left = 1 / (known + 1 / width**2)
        total = float(((pull * left) ** 2 + left).sum()) + guess
        width = math.sqrt(total / (len(place) + WIDTH_WORTH - 1))
    return width


def _erf(values: logistic.Floats) -> logistic.Floats:
    """Return the error function (Abramowitz and Stegun 7.1.26; off by at most 1.5e-7)."""
    step = 1 / (1 + 0.3275911 * np.abs(values))
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    tail = sum(term * step ** (at + 1) for at, term in enumerate(terms)) * np.exp(-values * values)
    found: logistic.Floats = np.sign(values) * (1 - tail)
    return found
