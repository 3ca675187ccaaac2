"""Where the white advantage has no likeliest value: the place at which Ordo stops.

Ordo 1.2.6 turns between two searches: the white advantage that gives White its score
with the ratings held, and steps of all ratings towards their scores with the white
advantage held. Where one maximum exists both ways of searching meet there, and
``likelihood`` is the quicker one. Where none exists, or many, the figures that people
know are those of this walk; it is repeated here so that our lists agree with theirs.
Constants are Ordo's. Such sets are small: a few engines that always had the same colour.
"""

from __future__ import annotations

import math

import numpy as np

from orchestrator.rating import likelihood, logistic, pairings

_FIRST_STEP = 100.0  # points
_SATURATION = 0.05  # score per game at which a step has half its length
_ROUNDS = 10_000
_PHASES = 1_000
_CYCLES = 4
_FINE = 1e-6  # points
_CLOSE = 1e-7  # of the deviation, a thousand times its root a game
_WIDEST = 1_000.0  # points: beyond it the white advantage is searched no further


class _Walk:
    """One walk: the ratings, the white advantage, and how far both are from the scores."""

    def __init__(self, counted: pairings.Pairings, white: float) -> None:
        self.counted = counted
        self.ratings = np.zeros(len(counted.engines))
        self.white = white
        self.reach = 10.0  # how far a bracket of the white advantage reaches at first
        self._points, self._played = counted.points(), counted.played()
        self._short, self.deviation = self._look(self.ratings)

    def _look(self, ratings: logistic.Floats) -> tuple[logistic.Floats, float]:
        """Return how much each engine's expected score is above its score, and the deviation."""
        lead = ratings[self.counted.white] - ratings[self.counted.black] + self.white
        won = self.counted.games * logistic.expected(lead)
        over = self.counted.sums(won, self.counted.games - won) - self._points
        return over, float((over**2 / self._played).sum())

    def phase(self, step: float) -> bool:
        """Let all ratings go towards their scores until that worsens; say whether all is done."""
        damping = 1.0
        self.white = self._white()
        for _ in range(_ROUNDS):
            off = np.abs(self._short) / self._played
            share = off / (_SATURATION * damping + off)
            tried = self.ratings - np.sign(self._short) * step * share
            self.reach = float(share.max()) * step
            short, deviation = self._look(tried)
            worse = deviation >= self.deviation
            if not worse:
                self.ratings, self._short, self.deviation = tried, short, deviation
                damping *= 0.999
            else:
                self._short, self.deviation = self._look(self.ratings)
            if self._close() and self.reach < _FINE:
                return True
            if worse:
                return False
        return False

    def _close(self) -> bool:
        return 1000 * math.sqrt(self.deviation / float(self.counted.games.sum())) < _CLOSE

    def cycle(self) -> float:
        """Walk with ever shorter steps; return how far the white advantage moved at the end."""
        step = _FIRST_STEP
        self._short, self.deviation = self._look(self.ratings)
        for _ in range(_PHASES):
            if self.phase(step):
                break
            step /= 1.1
        before, self.white = self.white, self._white()
        return abs(before - self.white)

    def _white(self) -> float:
        """Return the white advantage that gives White its score, searched from the last one."""
        white, reach = self.white, self.reach
        while True:
            below, here, above = (self._miss(white + by) for by in (-reach, 0.0, reach))
            if below >= here <= above:
                return self._between(white - reach, white + reach)
            white += -reach if below <= above else reach
            reach *= 1.5
            if reach <= _FINE or not -_WIDEST < white < _WIDEST:
                return white

    def _miss(self, white: float) -> float:
        return self._surplus(white) ** 2

    def _surplus(self, white: float) -> float:
        lead = self.ratings[self.counted.white] - self.ratings[self.counted.black] + white
        won = self.counted.games @ logistic.expected(lead)
        return float(won - self.counted.taken.sum())

    def _between(self, low: float, high: float) -> float:
        while high - low > _FINE / 100:
            middle = (low + high) / 2
            if self._surplus(middle) > 0:
                high = middle
            else:
                low = middle
        return (low + high) / 2


def fit(counted: pairings.Pairings) -> likelihood.Fit:
    """Return where Ordo's walk ends, with mean 0; its white advantage is no estimate."""
    walk = _Walk(counted, 0.0)
    cycles, moved = 0, _FIRST_STEP
    while walk.reach > _FINE or (cycles < _CYCLES and moved > 0.01):
        moved = walk.cycle()
        cycles += 1
        if cycles > 4 * _CYCLES:
            break
    ratings = walk.ratings - walk.ratings.mean()
    return likelihood.Fit(ratings, walk.white, cycles, settled=False)
