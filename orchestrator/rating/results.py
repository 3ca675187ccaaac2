"""What a match has brought so far: wins, draws, losses, and pairs of games.

A pair is two games of one opening with colours swapped. Its five possible scores are
counted from the first engine's side, worst first: 0, ½, 1, 1½, 2 points. Pairs share
their opening, so their games are no independent draws: errors and tests rest on the pairs
(the pentanomial; Van den Bergh, "Normalized Elo and the pentanomial model"). Games that
belong to no pair are counted beside them, each a draw of its own; where there is no pair, all
are. A pair whose second game is missing waits for it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

PAIR_SCORES = 5  # a pair brings 0, 1, 2, 3 or 4 half points


@dataclasses.dataclass(frozen=True)
class Counts:
    """Results from one engine's side; ``pairs`` counts whole pairs by their half points.

    ``singles`` are the losses, draws and wins of games that belong to no pair.
    """

    wins: int = 0
    draws: int = 0
    losses: int = 0
    pairs: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    singles: tuple[int, int, int] = (0, 0, 0)

    @property
    def games(self) -> int:
        """Return the number of games."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Return the points won."""
        return self.wins + self.draws / 2

    @property
    def score(self) -> float:
        """Return the share of the points, ½ when nothing was played."""
        return self.points / self.games if self.games else 0.5

    @property
    def draw_ratio(self) -> float:
        """Return the share of drawn games."""
        return self.draws / self.games if self.games else 0.0

    def reversed(self) -> Counts:
        """Return the same results from the opponent's side."""
        first, second, third, fourth, fifth = self.pairs
        lost, drawn, won = self.singles
        turned = (fifth, fourth, third, second, first)
        return Counts(self.losses, self.draws, self.wins, turned, (won, drawn, lost))

    def distribution(self) -> Distribution:
        """Return the pairs once there are any, else the games: what fastchess counts."""
        if any(self.pairs):
            return Distribution(self.pairs)
        return Distribution((self.losses, self.draws, self.wins))

    def observed(self) -> Observed:
        """Return what errors and tests rest on: pairs and games that are in none, else games."""
        if not any(self.pairs) or not any(self.singles):
            return Observed([self.distribution()])
        return Observed([Distribution(self.pairs), Distribution(self.singles)])


def total(counts: Iterable[Counts]) -> Counts:
    """Add up results of one engine against several opponents."""
    wins = draws = losses = 0
    pairs, singles = [0] * PAIR_SCORES, [0] * 3
    for row in counts:
        wins, draws, losses = wins + row.wins, draws + row.draws, losses + row.losses
        pairs = [sum(both) for both in zip(pairs, row.pairs, strict=True)]
        singles = [sum(both) for both in zip(singles, row.singles, strict=True)]
    first, second, third, fourth, fifth = pairs
    lost, drawn, won = singles
    return Counts(wins, draws, losses, (first, second, third, fourth, fifth), (lost, drawn, won))


class Distribution:
    """How often each score was seen: three counts of games, or five of pairs.

    Scores are evenly spaced from 0 to 1 per game. ``scale`` turns the deviation of one
    observation into that of one game: a pair is two games.
    """

    def __init__(self, counts: Sequence[float]) -> None:
        """Take the counts, worst score first."""
        last = len(counts) - 1
        self.total = float(sum(counts))
        self.values = [at / last for at in range(last + 1)]
        self.counts = [float(count) for count in counts]
        self.scale = math.sqrt(last / 2)

    @property
    def seen(self) -> list[float]:
        """Return the scores that were seen."""
        return [value for value, count in zip(self.values, self.counts, strict=True) if count]

    @property
    def mean(self) -> float:
        """Return the mean score, ½ of nothing."""
        return self.points / self.games if self.total else 0.5

    @property
    def variance(self) -> float:
        """Return the variance of one observation."""
        return self.spread(self.mean) / self.total if self.total else 0.0

    @property
    def games(self) -> float:
        """Return how many games were seen: two in a pair."""
        return self.total * self.scale**2

    @property
    def points(self) -> float:
        """Return the points of all games."""
        weighed = zip(self.values, self.counts, strict=True)
        return sum(value * count for value, count in weighed) * self.scale**2

    def spread(self, mean: float) -> float:
        """Return the sum of the squared deviations of all observations from a mean."""
        weighed = zip(self.values, self.counts, strict=True)
        return sum((value - mean) ** 2 * count for value, count in weighed)


class Observed:
    """What was seen of two engines: pairs, or games, or pairs and games that are in none."""

    def __init__(self, parts: Sequence[Distribution]) -> None:
        """Take the kinds of observations, each with its own counts."""
        self.parts = tuple(parts)
        self.games = sum(part.games for part in parts)
        self.observations = sum(part.total for part in parts)  # a pair is one

    @property
    def mean(self) -> float:
        """Return the mean score of a game, ½ of nothing."""
        return sum(part.points for part in self.parts) / self.games if self.games else 0.5

    @property
    def deviation(self) -> float:
        """Return the standard deviation of one game."""
        if len({value for part in self.parts for value in part.seen}) < 2:
            return 0.0  # exactly: a mean that is rounded would leave a spread of nothing
        mean = self.mean
        spread = sum(part.scale**4 * part.spread(mean) for part in self.parts)
        return math.sqrt(spread / self.games)

    @property
    def error(self) -> float:
        """Return the standard error of the mean, 0 when nothing is known of it."""
        return self.deviation / math.sqrt(self.games) if self.games else 0.0
