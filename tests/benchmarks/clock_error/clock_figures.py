"""From the probes' stamps to figures: what was charged, what was used, what lay between.

Pure arithmetic; all times in ms. The *error* of a move is what its engine was charged,
read from two consecutive clocks it was told, minus what the probe knows it used (from
the read of ``go`` to the write of ``bestmove``). A clock is told in whole ms, so a single
error carries up to 1 ms of rounding; bias and drift do not.
"""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import statistics
from collections.abc import Iterable, Iterator, Sequence

NS = 1e6  # ns per ms
INCREMENT_MS = 100
DRIFT_MOVES = 60


@dataclasses.dataclass(frozen=True)
class Move:
    """One move of a probe: the clock it was told, and its own stamps in monotonic ns."""

    ply: int
    told_ms: int
    go_ns: int
    bestmove_ns: int

    @property
    def think_ns(self) -> int:
        """Return what the move took by the probe's own clock."""
        return self.bestmove_ns - self.go_ns


Side = tuple[Move, ...]


@dataclasses.dataclass(frozen=True)
class Figures:
    """One run of one runner; ``None`` where there was nothing to measure."""

    moves: int
    games: int
    p50: float
    bias: float
    p99: float
    worst: float  # the largest error by size
    lowest: float  # below -1: an engine was given time beyond the rounding
    drift: float  # over 60 moves
    beyond: float  # share of moves whose error is beyond 1 ms
    undercharged: int  # moves charged more than 1 ms too little
    overhead: float | None  # a ply: wall time minus thinking
    gap_p99: float | None  # from one engine's bestmove to the other's go


def read(directory: pathlib.Path) -> list[Side]:
    """Read the probes' logs: each engine's moves in each of its games."""
    sides: list[Side] = []
    for log in sorted(directory.glob("*.log")):
        rows = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
        for _, game in itertools.groupby(rows, key=lambda row: row[0]):
            moves = (
                Move(ply, white if ply % 2 else black, go, best)
                for _, ply, white, black, go, best in game
            )
            sides.append(tuple(moves))
    return [side for side in sides if side]


def figures(sides: Sequence[Side]) -> Figures:
    """Work out a run's figures; raise ``ValueError`` when no move can be judged."""
    errors = [list(_errors(side)) for side in sides]
    every = [error for of_side in errors for error in of_side]
    if not every:
        raise ValueError("no consecutive clocks in the probes' logs")
    games = list(_games(sides))
    overheads = [_overhead(game) for game in games]
    gaps = [gap for game in games for gap in _gaps(game)]
    return Figures(
        moves=len(every),
        games=len(games),
        p50=statistics.median(every),
        bias=statistics.fmean(every),
        p99=quantile(every, 0.99),
        worst=max(every, key=abs),
        lowest=min(every),
        drift=statistics.fmean(
            sum(of_side) * DRIFT_MOVES / len(of_side) for of_side in errors if of_side
        ),
        beyond=sum(abs(error) > 1 for error in every) / len(every),
        undercharged=sum(error < -1 for error in every),
        overhead=statistics.fmean(overheads) if overheads else None,
        gap_p99=quantile(gaps, 0.99) if gaps else None,
    )


def quantile(values: Iterable[float], share: float) -> float:
    """Return the value below which a share of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _errors(side: Side) -> Iterator[float]:
    for move, following in itertools.pairwise(side):
        charged = move.told_ms + INCREMENT_MS - following.told_ms
        yield charged - move.think_ns / NS


def _games(sides: Sequence[Side]) -> Iterator[list[Move]]:
    """Put the two sides of each game together: those whose stamps alternate."""
    blacks = [side for side in sides if side[0].ply % 2 == 0]
    for white in (side for side in sides if side[0].ply % 2):
        for black in blacks:
            game = sorted((*white, *black), key=lambda move: move.ply)
            if all(one.bestmove_ns < two.go_ns for one, two in itertools.pairwise(game)):
                yield game
                break


def _gaps(game: Sequence[Move]) -> Iterator[float]:
    for one, two in itertools.pairwise(game):
        yield (two.go_ns - one.bestmove_ns) / NS


def _overhead(game: Sequence[Move]) -> float:
    gaps = list(_gaps(game))
    return statistics.fmean(gaps) if gaps else 0.0
