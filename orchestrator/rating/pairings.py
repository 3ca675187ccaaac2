"""Results, counted by who had White and who had Black: all that the ratings rest on.

A family (versions of one engine, S16-14c) is one engine: a mapping from names to the
family's name says so. Games within a family, and games without a result, tell nothing
and are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from orchestrator.rating import curve

RESULTS = {"1-0": 0, "1/2-1/2": 1, "0-1": 2}


@dataclasses.dataclass(frozen=True)
class Pairings:
    """One row for each pair of White and Black that met; engines in order of appearance."""

    engines: tuple[str, ...]
    white: curve.Ints
    black: curve.Ints
    wins: curve.Floats
    draws: curve.Floats
    losses: curve.Floats

    @property
    def games(self) -> curve.Floats:
        """Return the games of each pair."""
        return self.wins + self.draws + self.losses

    @property
    def taken(self) -> curve.Floats:
        """Return White's points in each pair."""
        return self.wins + self.draws / 2

    def points(self) -> curve.Floats:
        """Return every engine's points."""
        return self.sums(self.taken, self.games - self.taken)

    def played(self) -> curve.Floats:
        """Return every engine's games."""
        return self.sums(self.games, self.games)

    def sums(self, white: curve.Floats, black: curve.Floats) -> curve.Floats:
        """Add up, for every engine, a number of each pair: White's and Black's."""
        size = len(self.engines)
        as_white: curve.Floats = np.bincount(self.white, white, size).astype(np.float64)
        as_black: curve.Floats = np.bincount(self.black, black, size).astype(np.float64)
        return as_white + as_black

    def among(self, engines: Iterable[int]) -> Pairings:
        """Return the games that these engines played against each other."""
        chosen = np.fromiter(engines, dtype=np.int64)
        place = np.full(len(self.engines), -1)
        place[chosen] = np.arange(len(chosen))
        kept = (place[self.white] >= 0) & (place[self.black] >= 0)
        return Pairings(
            tuple(self.engines[engine] for engine in chosen),
            place[self.white[kept]],
            place[self.black[kept]],
            self.wins[kept],
            self.draws[kept],
            self.losses[kept],
        )

    def redrawn(self, results: curve.Ints) -> Pairings:
        """Return the same games with other results: wins, draws and losses of each pair."""
        wins, draws, losses = results.astype(np.float64).T
        return dataclasses.replace(self, wins=wins, draws=draws, losses=losses)


def count(
    games: Mapping[tuple[str, str, str], int], families: Mapping[str, str] | None = None
) -> Pairings:
    """Count games given as (White, Black, result) with their number."""
    named = families or {}
    numbers: dict[str, int] = {}
    cells: dict[tuple[int, int], list[float]] = {}
    for (white, black, result), times in games.items():
        column = RESULTS.get(result)
        if column is None:
            continue
        first = numbers.setdefault(named.get(white, white), len(numbers))
        second = numbers.setdefault(named.get(black, black), len(numbers))
        if first != second:
            cells.setdefault((first, second), [0.0, 0.0, 0.0])[column] += times
    sides = np.array(list(cells), dtype=np.int64).reshape(-1, 2)
    table = np.array(list(cells.values()), dtype=np.float64).reshape(-1, 3)
    return Pairings(tuple(numbers), sides[:, 0], sides[:, 1], *table.T)
