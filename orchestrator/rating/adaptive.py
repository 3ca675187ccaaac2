"""Whom to let play next so that a rating list is in order after few games.

What is believed of a field is Ordo's curve (``likelihood_of_superiority``) over one first guess for
all: engines are drawn from a normal distribution, whose width the results tell (empirical
Bayes). The first guess keeps the list honest although each choice rests on the results before
it: the likeliest ratings alone are too sure then, and engines that won all have no error at
all. Two games of a pair share their opening, so the variance of pairs is measured beside that
of two independent games, towards 1 while pairs are few.

``next_couple`` takes, of all couples, the one whose next pair of games lowers the uncertainty of
the order most: the covariance after that pair is known before it is played (a rank-one change),
and what it takes off the variance of each lead is weighed with what that lead still lacks. Pairs
that are being played count as if their results were in: their information does not hang on them.

Invariants: a belief is a function of the results alone, not of the way to it; choices differ only
where gains do by more than rounding, and the caller's number decides between equals.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

import numpy as np

from orchestrator.rating import field, likelihood_of_superiority, logistic, pairings, results

CONFIDENCE = statistics.NormalDist().inv_cdf(0.975)  # standard errors in a 95 % interval
WIDTH = 150.0  # Elo: the standard deviation of a field before there are games
WIDTH_WORTH = 2.0  # engines that this first guess counts for
SPREAD_WORTH = 30.0  # pairs that "as two independent games" counts for

_ROUNDS = 3  # of width and ratings in turn; the width moves by less than 1 % after them
_WIDTHS = 60  # steps of the width for given results
_NO_WHITE = 1e-3  # points: colours change within each pair, so White's advantage says nothing
_SAME = 1e-7  # share of a gain below which two are equal
_WHOLE = 0.8  # of the variance: more is not taken for the openings' part
_SPARE = 0.25  # of a lead's variance: so uncertain is how much surer it has to become
_LONGEST = 1e6  # rounds of a round robin: beyond, it never ends
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

    def add(self, first: int, second: int, half_points: Sequence[int]) -> None:
        """Count a pair; half points (0, 1, 2) are those of ``first`` in its two games."""
        if first > second:
            first, second, half_points = second, first, [2 - half for half in half_points]
        row = self._row(first, second)
        for half in half_points:
            self.games[row, half] += 1
        points = sum(half_points)
        self.pairs[row] += 1
        self.sums[row] += points
        self.squares[row] += points**2
        self.total += 1

    def take(self, first: int, second: int, counts: results.Counts) -> None:
        """Count all games of two engines, from the first one's side."""
        if first > second:
            first, second, counts = second, first, counts.reversed()
        row = self._row(first, second)
        points = np.arange(results.PAIR_SCORES)
        self.games[row] += counts.losses, counts.draws, counts.wins
        self.pairs[row] += sum(counts.pairs)
        self.sums[row] += points @ counts.pairs
        self.squares[row] += points**2 @ counts.pairs
        self.total += sum(counts.pairs)

    def _row(self, first: int, second: int) -> int:
        return first * self.engines - first * (first + 1) // 2 + second - first - 1

    def counted(self, weights: logistic.Floats | None = None) -> pairings.Pairings:
        """Return the games of the couples that have met, each couple's times its weight."""
        met = self.games.any(axis=1)
        games = self.games if weights is None else self.games * weights[:, None]
        losses, draws, wins = games[met].T
        names = tuple(map(str, range(self.engines)))
        return pairings.Pairings(names, self.first[met], self.second[met], wins, draws, losses)

    def spread(self, ratings: logistic.Floats, even: float) -> logistic.Floats:
        """Return, for each couple, the variance of its pairs in that of two independent games.

        What the openings take off it is one number for the field, and the less the more unequal
        the engines are: 4 p (1 - p) of it, because the stronger one wins with either colour.
        """
        score = logistic.expected(ratings[self.first] - ratings[self.second])
        game = 2 * (score * (1 - score) - logistic.draws(score, even) / 4)
        level = 4 * score * (1 - score)
        free = np.maximum(self.pairs - 1, 0.0)
        seen = float((self.squares - self.sums**2 / np.maximum(self.pairs, 1.0)).sum()) / 4
        expected, affected = float(free @ game), float(free @ (game * level))
        worth = SPREAD_WORTH * float(game.max())
        share = (expected - seen) / (affected + worth)
        spread: logistic.Floats = 1 - np.clip(share, -1.0, _WHOLE) * level
        return spread


class Belief:
    """What results say of a field: ratings with mean 0 in Ordo's points, and how sure they are."""

    def __init__(self, results: Results, before: Belief | None = None) -> None:
        """Fit the results; from ``before``, an earlier belief, fewer steps lead there."""
        self.results = results
        size = results.engines
        width, ratings = WIDTH / field.UNIT, np.zeros(size + 1) if before is None else before.place
        first, spread = np.zeros(size + 1), np.ones(len(results.first))
        for _ in range(_ROUNDS):
            errors = np.append(np.full(size, width), _NO_WHITE)
            counted = results.counted(1 / spread)
            posterior = likelihood_of_superiority.correct(counted, first, errors, ratings)
            ratings, table = posterior.place, posterior.covariance[:-1, :-1]
            spread = results.spread(ratings[:-1], posterior.draws)
            width = _width(ratings[:-1], table, width)
        self.place: logistic.Floats = ratings
        self._covariance: logistic.Floats = table
        self.ratings: logistic.Floats = ratings[:-1] - ratings[:-1].mean()
        self.width = width
        score = logistic.expected(ratings[results.first] - ratings[results.second])
        slope = score * (1 - score)
        game = np.maximum(slope - logistic.draws(score, posterior.draws) / 4, logistic.TINY)
        information = 2 * (logistic.BETA * slope) ** 2 / game / spread  # of a pair of games
        self._information = np.zeros((size, size))
        self._information[results.first, results.second] = information
        self._information += self._information.T

    def elo(self, engine: int) -> float:
        """Return a rating in logistic Elo around the field's mean."""
        return float(self.ratings[engine]) * field.UNIT

    def error(self, engine: int) -> float:
        """Return half the 95 % interval of a rating in Elo.

        Student's, with a degree of freedom for each engine but one: the field's width is known
        from them alone.
        """
        table = self._covariance
        variance = table[engine, engine] - 2 * table[engine].mean() + table.mean()
        reach = _student(self.results.engines - 1) * math.sqrt(max(0.0, float(variance)))
        return reach * field.UNIT

    def superiority(self, first: int, second: int) -> float:
        """Return the probability that the first engine is the stronger one."""
        lead = float(self.ratings[first] - self.ratings[second])
        return statistics.NormalDist().cdf(
            lead / math.sqrt(_variances(self._covariance)[first, second])
        )

    def ranked(self) -> list[int]:
        """Return the engines, best first."""
        return [int(engine) for engine in np.argsort(-self.ratings, kind="stable")]

    def unsure(self, target: Target) -> int:
        """Return how many neighbours of the list are not in order yet."""
        lead, variance = self._neighbours(self._covariance)
        return int(
            (lead + target.within / field.UNIT < target.deviations * np.sqrt(variance)).sum()
        )

    def next_couple(
        self, playing: Iterable[tuple[int, int]], target: Target | None, number: int
    ) -> tuple[int, int]:
        """Return the couple that should play the next pair; ``number`` decides between equals.

        ``playing`` are the couples of the pairs that have no result yet. Without a target the
        order as a whole counts, each two engines of the field.
        """
        table = self._covariance
        for first, second in playing:
            table = self._after(table, first, second)
        variances = _variances(table)
        weights = self._weights(variances) if target is None else self._lacks(table, target)
        table = table @ (np.diag(weights.sum(axis=1)) - weights) @ table
        gains = (_variances(table) * self._shrinking(variances))[
            self.results.first, self.results.second
        ]
        best = np.flatnonzero(gains >= gains.max() * (1 - _SAME))
        row = best[number % len(best)]
        return int(self.results.first[row]), int(self.results.second[row])

    def wrong(self) -> float:
        """Return the share of all couples that stand in the wrong order, by expectation."""
        return self._wrong(_variances(self._covariance))

    def round_robin_pairs(self, target: Target | None) -> int:
        """Return after how many pairs a round robin of these ratings would be in order.

        Without a target, as much in order as the list is now.
        """
        weight = self._information
        table = np.linalg.inv(np.diag(weight.sum(axis=1)) - weight + weight.max())  # any gauge
        if target is None:
            wanted = self.wrong()
            low, high = 0.0, _LONGEST
            while high - low > 0.01 * high:
                times = math.sqrt(max(1.0, low) * high)
                low, high = (
                    (low, times)
                    if self._wrong(_variances(table) / times) <= wanted
                    else (times, high)
                )
            times = high
        else:
            lead, variance = self._neighbours(table)
            within = np.maximum(lead + target.within / field.UNIT, logistic.TINY)
            times = min(_LONGEST, float((target.deviations**2 * variance / within**2).max()))
        return math.ceil(times * len(self.results.first))

    def _wrong(self, variances: logistic.Floats) -> float:
        z = np.abs(self.ratings[:, None] - self.ratings[None, :]) / np.sqrt(2 * variances)
        upside_down = (1 - _erf(z)) / 2
        return float(upside_down[self.results.first, self.results.second].mean())

    def _neighbours(self, table: logistic.Floats) -> tuple[logistic.Floats, logistic.Floats]:
        order = np.argsort(-self.ratings, kind="stable")
        variance = _variances(table)[order[:-1], order[1:]]
        return self.ratings[order[:-1]] - self.ratings[order[1:]], variance

    def _after(self, table: logistic.Floats, first: int, second: int) -> logistic.Floats:
        """Return the covariance after one more pair of two engines."""
        shift = table[:, first] - table[:, second]
        share = self._information[first, second]
        lost: logistic.Floats = (
            np.outer(shift, shift) * share / (1 + share * (shift[first] - shift[second]))
        )
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


def _student(free: int) -> float:
    """Return the 97.5 % point of Student's distribution (Abramowitz and Stegun 26.7.5)."""
    z = CONFIDENCE
    second = (5 * z**5 + 16 * z**3 + 3 * z) / (96 * free**2)
    return z + (z**3 + z) / (4 * free) + second


def _width(ratings: logistic.Floats, table: logistic.Floats, width: float) -> float:
    """Return the likeliest standard deviation of the field, for what the games alone say of it.

    Expectation and maximization on the eigenvectors of the games' information. A common shift of
    all ratings is no part of it, and the divisor is smaller by one, so that few engines do not
    seem closer than they are.
    """
    values, vectors = np.linalg.eigh(table)
    precision = np.maximum(1 / values - 1 / width**2, 0.0)  # the games' information
    pull = vectors.T @ ratings / values
    guess = WIDTH_WORTH * (WIDTH / field.UNIT) ** 2
    for _ in range(_WIDTHS):
        left = 1 / (precision + 1 / width**2)
        total = float(((pull * left) ** 2 + left).sum()) + guess
        width = math.sqrt(total / (len(ratings) + WIDTH_WORTH - 1))
    return width


def _erf(values: logistic.Floats) -> logistic.Floats:
    """Return the error function (Abramowitz and Stegun 7.1.26; off by at most 1.5e-7)."""
    step = 1 / (1 + 0.3275911 * np.abs(values))
    terms = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
    tail = sum(term * step ** (at + 1) for at, term in enumerate(terms)) * np.exp(-values * values)
    erf: logistic.Floats = np.sign(values) * (1 - tail)
    return erf
