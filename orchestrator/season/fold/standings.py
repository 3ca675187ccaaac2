"""Standings: points first, then the event's tiebreak chain.

Each criterion is computed among those whom the ones before have left level, and so orders
them; the chain then goes on with the next criterion for each group that is still level
(S16-12c, S17-12c, FRC-3, N1 Tiebreaks: direct encounter "between the tied engines").
Engines that the whole chain leaves level share a rank and stand in the order of their
seeds. Excluded engines rank last (S16-15c, S17-15c), among themselves by the chain too: their
crashes stay counted (S16-15d, S17-15d), all else of them is annulled. Each row names what
gave it its own place: ``points``, the last criterion that was needed to part it from the
others of its tie, ``excluded``, or nothing where the tie stands.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from orchestrator import contract
from orchestrator.season.fold import tally, tiebreaks
from orchestrator.season.spec import model

POINTS = "points"
EXCLUDED = "excluded"
MATCHES = "match"

_Numbers = Mapping[str, dict[model.Criterion, int]]


class Row(contract.DeferredMessage):
    """One engine's line; ``tiebreaks`` are in the units of ``tiebreaks.numbers``.

    Direct encounter is among them where the chain came to it, and counts the games among those
    who were level then. (In journals of earlier versions: among all of equal points.)
    """

    rank: int
    engine: str
    half_points: int
    games: int
    wins: int
    draws: int
    losses: int
    tiebreaks: Mapping[model.Criterion, int]
    decided_by: str

    @property
    def points(self) -> float:
        """Return the points as people write them."""
        return self.half_points / 2


def rank(played: tally.Tally, chain: Sequence[model.Criterion]) -> tuple[Row, ...]:
    """Return the table of an event, best first, from the games played so far."""
    seeds = {engine: number for number, engine in enumerate(played.engines, start=1)}
    rows: list[Row] = []
    counting = [engine for engine in played.engines if engine not in played.excluded]
    numbers = {engine: tiebreaks.numbers(played, engine, seeds[engine]) for engine in seeds}
    for tied in _levels(counting, lambda engine: played.scores[engine].half_points):
        for level, decided_by in _split(played, tied, chain, POINTS, numbers):
            position = len(rows) + 1
            rows += [_row(position, e, played.scores[e], numbers[e], decided_by) for e in level]
    last = [engine for engine in played.engines if engine in played.excluded]
    for level, _ in _split(played, last, chain, EXCLUDED, numbers) if last else ():
        position = len(rows) + 1
        rows += [_row(position, e, played.scores[e], numbers[e], EXCLUDED) for e in level]
    return tuple(rows)


def by_matches(played: tally.Tally, levels: Sequence[Sequence[str]]) -> tuple[Row, ...]:
    """Return the table of a knockout round, whose levels the matches have decided."""
    seeds = {engine: number for number, engine in enumerate(played.engines, start=1)}
    rows: list[Row] = []
    for level in levels:
        position = len(rows) + 1
        for engine in level:
            numbers = tiebreaks.numbers(played, engine, seeds[engine])
            rows.append(_row(position, engine, played.scores[engine], numbers, MATCHES))
    return tuple(rows)


def _levels(engines: Sequence[str], merit: Callable[[str], int]) -> Iterator[list[str]]:
    """Group engines of equal merit, best first; equals keep their order."""
    ordered = sorted(engines, key=merit, reverse=True)
    for _, level in itertools.groupby(ordered, key=merit):
        yield list(level)


def _split(
    played: tally.Tally,
    tied: list[str],
    chain: Sequence[model.Criterion],
    parted_by: str,
    numbers: _Numbers,
) -> Iterator[tuple[list[str], str]]:
    """Part a tie by the chain; yield those who stay level, and what parted them.

    Direct encounter is added to the numbers of those who are level when its turn comes.
    """
    if len(tied) == 1 or not chain:
        yield tied, parted_by if len(tied) == 1 else ""
        return
    criterion, rest = chain[0], chain[1:]
    if criterion is model.Criterion.DIRECT_ENCOUNTER:
        for engine in tied:
            numbers[engine][criterion] = tiebreaks.direct_encounter(played, engine, tied)
    for level in _levels(tied, lambda e: tiebreaks.merit(criterion, numbers[e].get(criterion, 0))):
        yield from _split(played, level, rest, criterion.value, numbers)


def _row(
    position: int,
    engine: str,
    score: tally.Score,
    numbers: Mapping[model.Criterion, int],
    decided_by: str,
) -> Row:
    return Row(
        rank=position,
        engine=engine,
        half_points=score.half_points,
        games=score.games,
        wins=score.wins,
        draws=score.draws,
        losses=score.losses,
        tiebreaks=numbers,
        decided_by=decided_by,
    )
