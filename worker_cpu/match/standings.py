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


@dataclasses.dataclass
class _Tally:
    """Half points of single games by value, and of whole pairs."""

    games: list[int] = dataclasses.field(default_factory=lambda: [0] * 3)
    pairs: list[int] = dataclasses.field(default_factory=lambda: [0] * 5)
    open: dict[int, int] = dataclasses.field(default_factory=dict)

    def add(self, half_points: int, pair: int | None) -> None:
        self.games[half_points] += 1
        if pair is None:
            return
        if pair in self.open:
            self.pairs[self.open.pop(pair) + half_points] += 1
        else:
            self.open[pair] = half_points

    def counts(self) -> rating.Counts:
        losses, draws, wins = self.games
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
