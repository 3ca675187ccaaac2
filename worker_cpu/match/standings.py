"""The score of a match as it grows: each pair of engines, each engine, colours, faults."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence

from orchestrator import contract
from orchestrator.rating import results as rating
from worker_cpu.match import journal, schedule

HALF_POINTS: dict[contract.Result, int] = {"1-0": 2, "1/2-1/2": 1, "0-1": 0}
FAULTS = {
    contract.Ending.TIME: "time",
    contract.Ending.DISCONNECT: "disconnect",
    contract.Ending.STALL: "stall",
    contract.Ending.ILLEGAL: "illegal",
    contract.Ending.FALSE_CLAIM: "illegal",
}


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

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.played = 0
        self._tallies: dict[tuple[int, int], _Tally] = collections.defaultdict(_Tally)
        self._whites: dict[tuple[int, int], _Tally] = collections.defaultdict(_Tally)
        self._faults: collections.Counter[tuple[int, str]] = collections.Counter()

    def add(self, slot: schedule.Slot, result: journal.Result) -> None:
        """Count a finished game."""
        self.played += 1
        white = HALF_POINTS[result.result]
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

    def is_whole(self, slot: schedule.Slot) -> bool:
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
