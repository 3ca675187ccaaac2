"""Knockout: one round of a Cup, its matches played one after the other (CUP-2, CUP-3).

A Cup is a chain of such rounds (CUP-2b, CUP-2d), each an event with its own book and
number of pairs; the winners enter the next round in the order of their matches, so that
match i is winner (2i-1) v winner (2i). CUP-3a: a match of k pairs ends after the game in
which a side has more than k points, also in the middle of a pair. CUP-3d, CUP-3e: at k-k
whole pairs follow until one is decisive. Games are paired as soon as they are certain to
be played; where a corrected result has decided the match before them, they are not.

The first round places its best seeds at equal distance (CUP-2c, EDPS8) and draws the
rest by lot. A smaller field leaves places empty: the best seeds have the byes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import Literal

from orchestrator.season.formats import base

FirstWhite = Literal["lower-seed", "higher-seed", "later-match", "earlier-match"]
_Sides = tuple[int, int]  # the engines of a match, White of its first game first


def equal_distance(placed: int) -> list[int]:
    """Return seeds 0 … ``placed`` - 1 in the order of the matches that they stand in.

    For 8: seeds 1, 5, 3, 7, 2, 6, 4, 8, so that quarterfinals can be 1-5, 3-7, 2-6, 4-8.
    """
    order = [0]
    while len(order) < placed:
        order = [seed for kept in order for seed in (kept, kept + len(order))]
    return order


def places(entrants: int) -> int:
    """Return the size of the bracket: the next power of two."""
    return 1 << (entrants - 1).bit_length()


def bracket(entrants: int, placed: int, lot: Sequence[int]) -> tuple[int | None, ...]:
    """Return who stands in which place of the first round; None is a bye.

    ``lot`` holds 0 … ``entrants`` - 1 (or more) in a drawn order: that in which those who
    are not placed take the open places.
    """
    size = places(entrants)
    seeds = equal_distance(min(placed, size // 2)) if placed else []
    taken = {number * size // len(seeds): seed for number, seed in enumerate(seeds)}
    empty = set(_byes(taken, size, size - entrants))
    drawn = iter([engine for engine in lot if len(seeds) <= engine < entrants])
    return tuple(
        taken[slot] if slot in taken else None if slot in empty else next(drawn)
        for slot in range(size)
    )


def _byes(taken: dict[int, int], size: int, count: int) -> Iterator[int]:
    """Yield the empty places, second in their matches: the best placed seeds', then others.

    The others lie as far from each other as they can; the lot decides who stands there.
    """
    favoured = sorted(taken, key=taken.__getitem__)
    spread = equal_distance(size // 2)
    others = sorted(set(range(0, size, 2)) - set(taken), key=lambda slot: spread[slot // 2])
    for first in [*favoured, *others][:count]:
        yield first + 1


@dataclasses.dataclass(frozen=True)
class Knockout:
    """The schedule of one round of a knockout."""

    field: base.Field
    pairs: int
    first_white: FirstWhite = "lower-seed"

    @functools.cached_property
    def matches(self) -> tuple[tuple[int | None, int | None], ...]:
        """Return the two places of every match, in their order of play."""
        listed: tuple[int | None, ...] = tuple(range(self.field.size))
        if not self.field.bracket and self.field.size % 2:
            listed = (*listed, None)
        slots = self.field.bracket or listed
        return tuple(zip(slots[::2], slots[1::2], strict=True))

    @property
    def _played_matches(self) -> list[int]:
        return [number for number, sides in enumerate(self.matches) if None not in sides]

    @property
    def games(self) -> int:
        """Return the games of all matches when each is played to its last pair."""
        return 2 * self.openings

    @property
    def openings(self) -> int:
        """Return one opening for each pair of games without tiebreaks."""
        return self.pairs * len(self._played_matches)

    @property
    def rounds(self) -> int:
        """Return the number of matches that are played."""
        return len(self._played_matches)

    @property
    def open_ended(self) -> bool:
        """Say that tiebreak pairs may take any number of exits."""
        return True

    def remaining(self, played: base.History) -> Iterator[tuple[int, int]]:
        """Yield match number and games of what is expected after the paired games."""
        for number in self._played_matches:
            games = self._games_of(number, played)
            if not games:
                yield number + 1, 2 * self.pairs
            elif not self._decided(number, played):
                left = max(0, 2 * self.pairs - len(games))
                yield from [(number + 1, left)] if left else []

    def pair(self, index: int, played: base.History) -> base.Pairing | None:
        """Draw the games that are now certain to be played, all of one match."""
        if index != played.paired or not played.all_played:
            return None
        for number in self._played_matches:
            if not self._decided(number, played):
                return self._next_games(number, played)
        return None

    def complete(self, paired: int, played: base.History) -> bool:
        """Say whether every match is decided."""
        if paired != played.paired or not played.all_played:
            return False
        return all(self._decided(number, played) for number in self._played_matches)

    def built_from(self, number: int) -> int:
        """Return the next match, which began because this one was decided."""
        return number + 1

    def decided(self, number: int, played: base.History) -> bool:
        """Say whether match ``number`` (from 1) is over, whatever becomes of its open games."""
        return self._decided(number - 1, played)

    def rival(self, engine: int) -> int | None:
        """Return whom an engine meets, None where it has a bye."""
        match = next(sides for sides in self.matches if engine in sides)
        return next((side for side in match if side not in {engine, None}), None)

    def order(self, played: base.History) -> tuple[tuple[int, ...], ...]:
        """Return winners, then losers, both in the order of their matches."""
        winners, open_matches, losers = [], [], []
        for number, sides in enumerate(self.matches):
            engines = [engine for engine in sides if engine is not None]
            winner = self._winner(number, played)
            if winner is None:
                open_matches += engines
            else:
                winners.append(winner)
                losers += [engine for engine in engines if engine != winner]
        return tuple(filter(None, (tuple(winners), tuple(open_matches), tuple(losers))))

    # -- one match -------------------------------------------------------------------

    def _sides(self, number: int) -> _Sides:
        first, second = self.matches[number]
        if first is None or second is None:
            raise ValueError(f"match {number + 1} is a bye")
        ranked = sorted((first, second), key=self.field.rank, reverse=True)
        match self.first_white:
            case "lower-seed":
                white = ranked[0]
            case "higher-seed":
                white = ranked[1]
            case "later-match":
                white = second
            case "earlier-match":
                white = first
        return white, first + second - white

    def _games_of(self, number: int, played: base.History) -> list[base.Game]:
        return [game for game in played.games if game.round == number + 1]

    def _score(self, number: int, played: base.History) -> tuple[int, int]:
        first, second = self._sides(number)
        games = self._games_of(number, played)
        return played.taken(first, games), played.taken(second, games)

    def _decided(self, number: int, played: base.History) -> bool:
        left = not played.out.isdisjoint(self._sides(number))
        return left or self._won_by(number, played) is not None

    def _won_by(self, number: int, played: base.History) -> int | None:
        """Return who has more than half the points of the match proper, or else of a pair."""
        games, start, size = self._games_of(number, played), 0, 2 * self.pairs
        while start < len(games):
            part = games[start : start + size]
            for engine in self._sides(number):
                if played.taken(engine, part) > size:
                    return engine
            if any(game.half_points is None for game in part):
                return None
            start, size = start + size, 2
        return None

    def _winner(self, number: int, played: base.History) -> int | None:
        first, second = self.matches[number]
        if first is None or second is None:
            return second if first is None else first
        staying = [engine for engine in (first, second) if engine not in played.out]
        return staying[0] if len(staying) == 1 else self._won_by(number, played)

    def _certain(self, number: int, played: base.History) -> int:
        """Return how many games will be played whatever their results are."""
        games, best = len(self._games_of(number, played)), max(self._score(number, played))
        left = 2 * self.pairs - games
        if left <= 0:
            return 2 - games % 2
        return min(left, (2 * self.pairs - best) // 2 + 1)

    def _next_games(self, number: int, played: base.History) -> base.Pairing:
        first, second = self._sides(number)
        begun = len(self._games_of(number, played))
        before = sum((len(self._games_of(m, played)) + 1) // 2 for m in range(number))
        boards = tuple(
            base.Board(
                white=second if game % 2 else first,
                black=first if game % 2 else second,
                slot=before + game // 2,
                tag=f"1.{len(played.games) + game - begun + 1}",
            )
            for game in range(begun, begun + self._certain(number, played))
        )
        return base.Pairing(cycle=1, round=number + 1, boards=boards)
