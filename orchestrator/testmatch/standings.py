"""The score of a match as it grows: each pair of engines, each engine, colours, faults."""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import os
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from orchestrator import contract
from orchestrator.rating import elo
from orchestrator.rating import results as rating
from orchestrator.testmatch import match_journal

HALF_POINTS: dict[contract.Result, int] = {"1-0": 2, "1/2-1/2": 1, "0-1": 0}
FAULTS = {
    contract.Ending.TIME: "time",
    contract.Ending.DISCONNECT: "disconnect",
    contract.Ending.STALL: "stall",
    contract.Ending.ILLEGAL: "illegal",
    contract.Ending.FALSE_CLAIM: "illegal",
}


class Game(Protocol):
    """One game of a schedule: engines by their position, and its pair (``None``: in none)."""

    @property
    def white(self) -> int:
        """Return the engine with White."""

    @property
    def black(self) -> int:
        """Return the engine with Black."""

    @property
    def engines(self) -> tuple[int, int]:
        """Return both engines, the earlier in the list first."""

    @property
    def pair(self) -> int | None:
        """Return the number of the pair."""


@dataclasses.dataclass(frozen=True)
class Pairs:
    """What whole pairs have brought; ``decisive`` of those with one point had no draw."""

    counts: rating.Counts
    decisive: int

    def reversed(self) -> Pairs:
        """Return the same pairs from the opponent's side."""
        return Pairs(self.counts.reversed(), self.decisive)


@dataclasses.dataclass
class _Tally:
    """Half points of single games by value, and of whole pairs."""

    games: list[int] = dataclasses.field(default_factory=lambda: [0] * 3)
    pairs: list[int] = dataclasses.field(default_factory=lambda: [0] * 5)
    open: dict[int, int] = dataclasses.field(default_factory=dict)
    paired: list[int] = dataclasses.field(default_factory=lambda: [0] * 3)
    singles: list[int] = dataclasses.field(default_factory=lambda: [0] * 3)
    decisive: int = 0

    def add(self, half_points: int, pair: int | None) -> None:
        self.games[half_points] += 1
        if pair is None:
            self.singles[half_points] += 1
            return
        if pair not in self.open:
            self.open[pair] = half_points
            return
        before = self.open.pop(pair)
        self.pairs[before + half_points] += 1
        self.paired[before] += 1
        self.paired[half_points] += 1
        self.decisive += before + half_points == 2 and half_points != 1

    def counts(self) -> rating.Counts:
        lost, drawn, won = self.singles
        return dataclasses.replace(self._counts(self.games), singles=(lost, drawn, won))

    def whole(self) -> Pairs:
        return Pairs(self._counts(self.paired), self.decisive)

    def _counts(self, games: Sequence[int]) -> rating.Counts:
        losses, draws, wins = games
        first, second, third, fourth, fifth = self.pairs
        return rating.Counts(wins, draws, losses, (first, second, third, fourth, fifth))


class Standings:
    """The results so far; engines by their position in the match."""

    def __init__(self, names: Sequence[str], *, adaptive: bool = False) -> None:
        """Begin; ``adaptive`` is a match whose couples are chosen by the results before them."""
        self.names, self.adaptive = tuple(names), adaptive
        self.played = 0
        self.white_points: dict[int, int] = {}  # half points of White by the game's number
        self._tallies: dict[tuple[int, int], _Tally] = collections.defaultdict(_Tally)
        self._whites: dict[tuple[int, int], _Tally] = collections.defaultdict(_Tally)
        self._faults: collections.Counter[tuple[int, str]] = collections.Counter()

    def add(self, slot: Game, result: match_journal.Result) -> None:
        """Count a finished game."""
        self.played += 1
        white = self.white_points[result.number] = HALF_POINTS[result.result]
        key = slot.engines
        self._tallies[key].add(white if slot.white == key[0] else 2 - white, slot.pair)
        self._whites[slot.white, slot.black].add(white, None)
        if result.loser is not None and result.ending in FAULTS:
            loser = slot.white if result.loser == "white" else slot.black
            self._faults[loser, FAULTS[result.ending]] += 1

    def between(self, first: int, second: int) -> rating.Counts:
        """Return the results of two engines from the first one's side."""
        if first > second:
            return self.between(second, first).reversed()
        return self._tallies[first, second].counts()

    def pairs(self, first: int, second: int) -> Pairs:
        """Return the whole pairs of two engines from the first one's side."""
        if first > second:
            return self.pairs(second, first).reversed()
        return self._tallies[first, second].whole()

    def pairs_of(self, engine: int) -> Pairs:
        """Return the whole pairs of an engine with all others."""
        met = [self.pairs(engine, other) for other in range(len(self.names)) if other != engine]
        counts = rating.total(pairs.counts for pairs in met)
        return Pairs(counts, sum(pairs.decisive for pairs in met))

    def is_whole(self, slot: Game) -> bool:
        """Say whether the pair of a game that was counted has no game missing."""
        return slot.pair is None or slot.pair not in self._tallies[slot.engines].open

    def as_white(self, first: int, second: int) -> rating.Counts:
        """Return the games of two engines in which the first had White, from its side."""
        return self._whites[first, second].counts()

    def of(self, engine: int) -> rating.Counts:
        """Return all results of an engine."""
        others = (other for other in range(len(self.names)) if other != engine)
        return rating.total(self.between(engine, other) for other in others)

    def faults(self, engine: int) -> dict[str, int]:
        """Return how often an engine lost by a fault, by kind."""
        kinds = dict.fromkeys(FAULTS.values(), 0)
        return {kind: self._faults[engine, kind] for kind in kinds}

    def ranked(self) -> list[int]:
        """Return the engines, best share of the points first; equals as they were named."""
        engines: Iterable[int] = range(len(self.names))
        return sorted(engines, key=lambda engine: -self.of(engine).score)


@dataclasses.dataclass(frozen=True)
class Rank:
    """An engine's place: Elo, its error, LOS; ``None`` where too few games tell of it."""

    engine: int
    elo: float | None
    error: float | None
    superiority: float | None


def ranks(table: Standings) -> list[Rank]:
    """Return the engines, best first: of two by their score, of more by the list of all games.

    LOS is that of the score, in a list that over the next engine.
    """
    if table.adaptive:
        return _believed(table)
    if len(table.names) > 2:
        return _rated(table)
    listed = []
    for engine in table.ranked():
        counts = table.of(engine)
        estimate = elo.logistic(counts)
        shown = elo.is_estimated(counts)
        elo_shown, error = (estimate.elo, estimate.error) if shown else (None, None)
        listed.append(Rank(engine, elo_shown, error, elo.superiority(counts)))
    return listed


def _rated(table: Standings) -> list[Rank]:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a small table needs no threads
    from orchestrator.rating import field  # noqa: PLC0415 - numpy takes 0.25 s, two need no list

    couples = itertools.combinations(range(len(table.names)), 2)
    met = {(first, second): table.between(first, second) for first, second in couples}
    rated = field.Field(table.names, {key: counts for key, counts in met.items() if counts.games})
    order = rated.ranked()
    return [
        Rank(
            engine,
            rated.elo(engine),
            rated.error(engine),
            None if below is None else rated.superiority(engine, below),
        )
        for engine, below in zip(order, [*order[1:], None], strict=True)
    ]


def _believed(table: Standings) -> list[Rank]:
    """Return the list of an adaptive match: errors hold although each choice rests on results."""
    belief = believed(table)
    order = belief.ranked()
    return [
        Rank(
            engine,
            belief.elo(engine),
            belief.error(engine),
            None if below is None else belief.superiority(engine, below),
        )
        for engine, below in zip(order, [*order[1:], None], strict=True)
    ]


def believed(table: Standings) -> Any:
    """Return what all games of a table say of the field's order."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a small table needs no threads
    from orchestrator.rating import adaptive  # noqa: PLC0415 - numpy takes 0.25 s, few need it

    results = adaptive.Results(len(table.names))
    for first, second in itertools.combinations(range(len(table.names)), 2):
        results.take(first, second, table.between(first, second))
    return adaptive.Belief(results)


def numbers(counts: rating.Counts) -> dict[str, Any]:
    """Return results as plain data, with Elo and its error; ``None`` where it is infinite."""
    logistic, normalized = elo.logistic(counts), elo.normalized(counts)
    return {
        "games": counts.games,
        "wins": counts.wins,
        "draws": counts.draws,
        "losses": counts.losses,
        "points": counts.points,
        "score": counts.score,
        "draw_ratio": counts.draw_ratio,
        "elo": finite(logistic.elo),
        "elo_error": finite(logistic.error),
        "nelo": finite(normalized.elo),
        "nelo_error": finite(normalized.error),
        "los": elo.superiority(counts),
        "pentanomial": list(counts.pairs),
    }


def finite(value: float | None) -> float | None:
    """Return a number that JSON can hold, else ``None``."""
    return value if value is not None and math.isfinite(value) else None
