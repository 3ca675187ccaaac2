"""Results, counted by who had White and who had Black: all that the ratings rest on.

A family (versions of one engine, S16-14d) is one engine: a mapping from names to the
family's name says so. Games within a family, and games without a result, tell nothing
and are left out.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping

import numpy as np

from orchestrator.rating import logistic

RESULTS = {"1-0": 0, "1/2-1/2": 1, "0-1": 2}
_NO_RESULT = -1


@dataclasses.dataclass(frozen=True)
class Table:
    """Games as they were read, a row each, ``times`` over.

    ``white``, ``black`` and ``result`` are places in ``texts``.
    """

    texts: tuple[str, ...]
    white: logistic.Ints
    black: logistic.Ints
    result: logistic.Ints
    times: logistic.Floats

    @classmethod
    def of(cls, games: Mapping[tuple[str, str, str], int]) -> Table:
        """Make the table of games given as (White, Black, result) with their number."""
        places: dict[str, int] = {}
        indexes = [places.setdefault(text, len(places)) for game in games for text in game]
        white, black, result = np.array(indexes, dtype=np.int64).reshape(-1, 3).T
        times = np.fromiter(games.values(), np.float64, len(games))
        return cls(tuple(places), white, black, result, times)

    def columns(self) -> logistic.Ints:
        """Return, for each row, the number of its result in ``RESULTS``, -1 for none."""
        numbers = [RESULTS.get(text, _NO_RESULT) for text in self.texts]
        return np.array(numbers, dtype=np.int64)[self.result]

    def unfinished(self) -> int:
        """Return the number of games without a result."""
        return int(self.times[self.columns() == _NO_RESULT].sum())


@dataclasses.dataclass(frozen=True)
class Pairings:
    """One row for each pair of White and Black that met; engines in order of appearance."""

    engines: tuple[str, ...]
    white: logistic.Ints
    black: logistic.Ints
    wins: logistic.Floats
    draws: logistic.Floats
    losses: logistic.Floats

    @property
    def games(self) -> logistic.Floats:
        """Return the games of each pair."""
        return self.wins + self.draws + self.losses

    @property
    def taken(self) -> logistic.Floats:
        """Return White's points in each pair."""
        return self.wins + self.draws / 2

    def points(self) -> logistic.Floats:
        """Return every engine's points."""
        return self.sums(self.taken, self.games - self.taken)

    def played(self) -> logistic.Floats:
        """Return every engine's games."""
        return self.sums(self.games, self.games)

    def sums(self, white: logistic.Floats, black: logistic.Floats) -> logistic.Floats:
        """Add up, for every engine, a number of each pair: White's and Black's."""
        size = len(self.engines)
        as_white: logistic.Floats = np.bincount(self.white, white, size).astype(np.float64)
        as_black: logistic.Floats = np.bincount(self.black, black, size).astype(np.float64)
        return as_white + as_black

    def information(self, weight: logistic.Floats) -> logistic.Floats:
        """Return what games of these weights tell of each engine, the white advantage last.

        Of a shift of all ratings they tell nothing: no gauge is fixed.
        """
        size = len(self.engines)
        met = np.bincount(self.white * size + self.black, weight, size * size)
        met = met.reshape(size, size)
        table = np.empty((size + 1, size + 1))
        table[:size, :size] = np.diag(self.sums(weight, weight)) - (met + met.T)
        table[:size, size] = table[size, :size] = self.sums(weight, -weight)
        table[size, size] = weight.sum()
        return table

    def among(self, engines: Iterable[int]) -> Pairings:
        """Return the games that these engines played against each other."""
        chosen = np.fromiter(engines, dtype=np.int64)
        new_index = np.full(len(self.engines), -1)
        new_index[chosen] = np.arange(len(chosen))
        kept = (new_index[self.white] >= 0) & (new_index[self.black] >= 0)
        return Pairings(
            tuple(self.engines[engine] for engine in chosen),
            new_index[self.white[kept]],
            new_index[self.black[kept]],
            self.wins[kept],
            self.draws[kept],
            self.losses[kept],
        )

    def redrawn(self, results: logistic.Ints) -> Pairings:
        """Return the same games with other results: wins, draws and losses of each pair."""
        wins, draws, losses = results.astype(np.float64).T
        return dataclasses.replace(self, wins=wins, draws=draws, losses=losses)


def count(
    games: Mapping[tuple[str, str, str], int] | Table, families: Mapping[str, str] | None = None
) -> Pairings:
    """Count games: a table, or (White, Black, result) with their number."""
    table = games if isinstance(games, Table) else Table.of(games)
    column = table.columns()
    finished = column != _NO_RESULT
    engines, numbers = _engines(table, finished, families or {})
    white, black = numbers[table.white], numbers[table.black]
    kept = finished & (white != black)
    return _cells(engines, white[kept], black[kept], column[kept], table.times[kept])


def _engines(
    table: Table, finished: logistic.Mask, families: Mapping[str, str]
) -> tuple[tuple[str, ...], logistic.Ints]:
    """Return the engines in order of appearance, and the engine of each text.

    Engines appear in games with a result, White first; what is no engine has number -1.
    """
    joined: dict[str, int] = {}
    named = [families.get(text, text) for text in table.texts]
    group = np.array([joined.setdefault(name, len(joined)) for name in named], dtype=np.int64)
    seen = np.stack([group[table.white[finished]], group[table.black[finished]]], axis=1).ravel()
    first = np.full(len(joined), len(seen))
    np.minimum.at(first, seen, np.arange(len(seen)))
    order = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(seen))]
    numbers = np.full(len(joined), -1)
    numbers[order] = np.arange(len(order))
    names = list(joined)
    return tuple(names[at] for at in order), numbers[group]


def _cells(
    engines: tuple[str, ...],
    white: logistic.Ints,
    black: logistic.Ints,
    column: logistic.Ints,
    times: logistic.Floats,
) -> Pairings:
    """Add up the games of each pair; pairs in order of appearance."""
    size = max(1, len(engines))
    pairs, first, cell = np.unique(white * size + black, return_index=True, return_inverse=True)
    order = np.argsort(first)
    counts = np.bincount(3 * cell + column, times, 3 * len(pairs)).reshape(-1, 3)
    wins, draws, losses = np.ascontiguousarray(counts[order].T, dtype=np.float64)
    return Pairings(engines, pairs[order] // size, pairs[order] % size, wins, draws, losses)
