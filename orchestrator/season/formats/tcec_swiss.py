"""TCEC's Swiss: the best engine left meets the best that it has not met (TCEC Swiss System).

Engines are ordered by points, then by seed. From the top, each takes the first below it whom
it has not met and who leaves a complete pairing of the others possible. Where no complete
pairing is possible, the meetings of round 1 count no longer, then those of round 2, and so on.
An odd field gives a bye, a win for each game of the round, to the last of those who had the
fewest.

Rounds are of single games or of game pairs. In a pair the better engine begins with Black and
the reverse game with the same opening follows at once. In single games nobody may have more
than two games of one colour beyond those of the other; who had White less often gets it, then
the engine with fewer points, then the round decides. The last pair plays first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from orchestrator.season.formats import base, matching

_MOST_COLOURS: Final = 2  # games with one colour beyond those with the other
_FIRST_IS_WHITE: Final = (False, True, True, False)  # level in points and colours, by round

_Partners: TypeAlias = dict[int, int]


@dataclasses.dataclass(frozen=True)
class TcecSwiss:
    """The schedule of a Swiss of ``rounds`` rounds; a meeting is ``each`` games, one or two."""

    entrants: int
    rounds: int
    each: int = 2

    @property
    def games(self) -> int:
        """Return the games of all rounds."""
        return self.openings * self.each

    @property
    def openings(self) -> int:
        """Return one opening for each meeting."""
        return self.rounds * (self.entrants // 2)

    @property
    def open_ended(self) -> bool:
        """Say that no game is ever added."""
        return False

    def remaining(self, played: base.History) -> Iterator[tuple[int, int]]:
        """Yield the rounds that are not paired yet."""
        staying = self.entrants - len(played.out)
        for index in range(played.paired, self.rounds):
            yield index + 1, staying // 2 * self.each

    def pair(self, index: int, played: base.History) -> base.Pairing | None:
        """Draw a round once the one before is played."""
        if index != played.paired or not played.all_played:
            return None
        standing = _Standing(self, played, index)
        staying, bye = standing.staying()
        pairs = _pairs(staying, standing, self._forgotten(played))
        byes = () if bye is None else (bye,) * self.each
        boards = tuple(self._boards(index, pairs, standing))
        return base.Pairing(cycle=1, round=index + 1, boards=boards, byes=byes)

    def _forgotten(self, played: base.History) -> int:
        """Return how many of the first rounds no longer keep engines from meeting again."""
        forgotten = 0
        for index in range(played.paired + 1):
            standing = _Standing(self, played, index)
            staying, _ = standing.staying()
            while _all_paired(staying, standing, forgotten) is None:
                forgotten += 1
        return forgotten

    def _boards(
        self, index: int, pairs: Sequence[tuple[int, int]], standing: _Standing
    ) -> Iterator[base.Board]:
        for number, (first, second) in enumerate(reversed(pairs)):
            first_is_white = self.each == 1 and standing.first_is_white(first, second)
            sides = (first, second) if first_is_white else (second, first)
            for game in range(self.each):
                yield base.Board(
                    white=sides[game % 2],
                    black=sides[1 - game % 2],
                    slot=index * (self.entrants // 2) + number,
                    tag=f"{index + 1}.{number * self.each + game + 1}",
                )

    def complete(self, paired: int, played: base.History) -> bool:
        """Say whether the last round is paired, or nobody is left to be paired."""
        return paired >= self.rounds or self.entrants - len(played.out) < 2

    def built_from(self, number: int) -> int:
        """Return the next round."""
        return number + 1

    def order(self, played: base.History) -> None:
        """Leave the places to points and tiebreaks."""
        del played


class _Standing:
    """What the first rounds have left: points, meetings, colours, byes."""

    def __init__(self, swiss: TcecSwiss, played: base.History, rounds: int) -> None:
        """Count the history before round ``rounds`` (from 0)."""
        self.rounds, self._out = rounds, played.out
        self.scores, self._byes, self._whites = ([0] * swiss.entrants for _ in range(3))
        self._met: dict[frozenset[int], int] = {}  # the last round in which two met
        for number, engine in played.byes:
            if number <= rounds:
                self.scores[engine] += 2
                self._byes[engine] += 1
        for game in played.games:
            if game.round <= rounds:
                self._count(game, swiss.each, played)

    def _count(self, game: base.Game, each: int, played: base.History) -> None:
        pair = frozenset((game.white, game.black))
        self._met[pair] = max(game.round, self._met.get(pair, 0))
        if each == 1:
            self._whites[game.white] += 1
            self._whites[game.black] -= 1
        if played.out.isdisjoint(pair):
            for engine in pair:
                self.scores[engine] += played.taken(engine, (game,))

    def staying(self) -> tuple[list[int], int | None]:
        """Return who is to be paired, best first, and who has the bye."""
        order = sorted(range(len(self.scores)), key=lambda engine: (-self.scores[engine], engine))
        staying = [engine for engine in order if engine not in self._out]
        if len(staying) % 2 == 0:
            return staying, None
        bye = min(reversed(staying), key=self._byes.__getitem__)
        return [engine for engine in staying if engine != bye], bye

    def may_meet(self, engine: int, other: int, forgotten: int) -> bool:
        """Say whether two may meet; the first ``forgotten`` rounds count no longer."""
        if abs(self._whites[engine] + self._whites[other]) > _MOST_COLOURS:
            return False
        return self._met.get(frozenset((engine, other)), 0) <= forgotten

    def first_is_white(self, first: int, second: int) -> bool:
        """Say whether the better of two has White in a Swiss of single games."""
        if self._whites[first] != self._whites[second]:
            return self._whites[first] < self._whites[second]
        level = self.scores[first] == self.scores[second]
        return level and _FIRST_IS_WHITE[self.rounds % len(_FIRST_IS_WHITE)]


def _pairs(staying: list[int], standing: _Standing, forgotten: int) -> list[tuple[int, int]]:
    """Pair from the top: each with the first that leaves the others a complete pairing."""
    partners = _all_paired(staying, standing, forgotten)
    rest, pairs = list(staying), []
    while rest:
        assert partners is not None  # ``forgotten`` leaves a complete pairing
        first, others = rest[0], rest[1:]
        for second in others:
            if not standing.may_meet(first, second, forgotten):
                continue
            left = [engine for engine in others if engine != second]
            without = _without(partners, first, second, left, standing, forgotten)
            if without is not None:
                pairs.append((first, second))
                partners, rest = without, left
                break
    return pairs


def _all_paired(staying: Sequence[int], standing: _Standing, forgotten: int) -> _Partners | None:
    """Return a partner for everybody, None where no complete pairing is possible."""
    weights = [
        [int(standing.may_meet(engine, other, forgotten)) or None for other in staying]
        for engine in staying
    ]
    for number in range(len(staying)):
        weights[number][number] = None
    partners = matching.perfect(weights)
    if partners is None:
        return None
    return {staying[engine]: staying[other] for engine, other in enumerate(partners)}


def _without(
    partners: _Partners,
    first: int,
    second: int,
    left: Sequence[int],
    standing: _Standing,
    forgotten: int,
) -> _Partners | None:
    """Return a complete pairing of who is left when two meet, None where there is none.

    Mostly a pairing from before needs a new partner for two engines, or for four.
    """
    kept = {engine: partners[engine] for engine in left}
    opponent, other = partners[first], partners[second]
    if opponent == second:
        return kept
    if standing.may_meet(opponent, other, forgotten):
        return kept | {opponent: other, other: opponent}
    for third in left:
        fourth = partners[third]
        if {third, fourth}.isdisjoint((opponent, other)) and (
            standing.may_meet(opponent, third, forgotten)
            and standing.may_meet(other, fourth, forgotten)
        ):
            return kept | {opponent: third, third: opponent, other: fourth, fourth: other}
    return _all_paired(left, standing, forgotten)
