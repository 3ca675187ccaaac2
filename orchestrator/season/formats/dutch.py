"""FIDE (Dutch) Swiss pairing of one round (FIDE Handbook C.04.3, 2026).

Score groups are paired from the top; who stays unpaired floats down. Among all pairings
that can be completed, the best by the quality criteria is taken, and among equals the
first in the order of the rules: exchanges between the upper and the lower half, then
transpositions of the lower one. Criteria and order are sums over pairs, so each bracket
is one matching of greatest weight, in which a pair's weight holds its share of every
criterion, the most important first. An odd field has an empty chair, whose opponent has
the bye. Article numbers below are those of the FIDE text ([C6] …).
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from orchestrator.season.formats import colours, matching


class _Force(enum.IntEnum):
    """What may give way: nothing → absolute colours → rematches and second byes."""

    NOTHING = 0
    COLOURS = 1
    MEETINGS = 2


Pair = tuple[int, int]  # places in the ranking, White first


def pair(
    ranked: Sequence[colours.Player], *, last_round_of: int = 0
) -> tuple[list[Pair], int | None]:
    """Return the pairs of a round in the order of their boards, and who has the bye.

    ``ranked`` lists the players by score, then by their ranking inside it. In the last
    round ``last_round_of`` tells the number of rounds: then topscorers may get a third
    colour in a row. Where no pairing exists, colours give way, then second byes and
    rematches do: an event never stands still.
    """
    chair = len(ranked)
    top = {
        place
        for place, player in enumerate(ranked)
        if last_round_of and player.score > last_round_of - 1
    }
    found = next(filter(None, (_Round(ranked, top, force).pairs() for force in _Force)), [])
    bye = next((a for a, b in found if b == chair), None)
    pairs = sorted((a, b) for a, b in found if b != chair)
    pairs.sort(key=lambda ab: (-ranked[ab[0]].score, -ranked[ab[1]].score, ab[0]))
    return [_coloured(ranked, a, b) for a, b in pairs], bye


def _coloured(ranked: Sequence[colours.Player], a: int, b: int) -> Pair:
    """Return White and Black; ``a`` is the higher ranked."""
    return (a, b) if colours.white_is_first(ranked[a], ranked[b]) else (b, a)


# -- brackets ------------------------------------------------------------------------


class _Round:
    """The round being paired; places are indices in the ranking, the last the empty chair."""

    def __init__(
        self, ranked: Sequence[colours.Player], topscorers: Iterable[int], force: _Force
    ) -> None:
        self.ranked, self.force = ranked, force
        self.topscorers = frozenset(topscorers)
        self.chair = len(ranked)
        self.scores = sorted({player.score for player in ranked}, reverse=True)

    def pairs(self) -> list[Pair] | None:
        """Return all pairs, the higher ranked first; None where there is no pairing."""
        done: list[Pair] = []
        floaters: list[int] = []
        rest = [*range(len(self.ranked)), *([self.chair] if len(self.ranked) % 2 else [])]
        for score in self.scores:
            residents = [p for p in rest if p != self.chair and self.ranked[p].score == score]
            rest = rest[len(residents) :]
            made = _Bracket(self, floaters, residents, rest).pairs()
            if made is None:
                return None
            paired = set(itertools.chain.from_iterable(made))
            floaters = [p for p in (*floaters, *residents) if p not in paired]
            done += made
        return done + [(p, self.chair) for p in floaters]

    def may_meet(self, a: int, b: int) -> bool:
        """Say whether two places can be paired at all ([C1] to [C3])."""
        if self.met(a, b):
            return self.force is _Force.MEETINGS
        return self.force is not _Force.NOTHING or not self.clash(a, b)

    def met(self, a: int, b: int) -> bool:
        """Say whether two places have met, or one had its bye ([C1], [C2])."""
        if b == self.chair:
            return self.ranked[a].had_bye
        return self.ranked[b].number in self.ranked[a].opponents

    def clash(self, a: int, b: int) -> bool:
        """Say whether both must have the same colour ([C3]); topscorers need not."""
        if b == self.chair or a in self.topscorers or b in self.topscorers:
            return False
        one, two = self.ranked[a], self.ranked[b]
        return one.strength == two.strength == colours.ABSOLUTE and one.preference == two.preference


class _Bracket:
    """One score group with those who floated down into it, and all who come after."""

    def __init__(
        self, round_: _Round, floaters: list[int], residents: list[int], rest: list[int]
    ) -> None:
        self.round = round_
        self.floaters, self.residents, self.rest = floaters, residents, rest
        self.inside = {*floaters, *residents}
        self.moved = frozenset(floaters)
        following = [p for p in rest if p != round_.chair]
        next_score = round_.ranked[following[0]].score if following else None
        self.next = {p for p in following if round_.ranked[p].score == next_score}
        self.limit = 8 * (len(round_.ranked) + 8)

    def pairs(self) -> list[Pair] | None:
        """Return the pairs made in this bracket, the higher ranked first, None if none fit."""
        kept: list[Pair] = []
        halves = len(self.residents) // 2
        if self.floaters:
            first = self._match([], self._by_floaters)
            if first is None:
                return None
            kept = [(a, b) for a, b in first if a in self.moved]
            halves = len(first) - len(kept)
        made = self._remainder(kept, halves)
        if made is not None and not self.floaters and len(made) != halves:
            made = self._remainder(kept, len(made))
        return made

    def _remainder(self, kept: list[Pair], halves: int) -> list[Pair] | None:
        """Pair the residents that no floater meets, the upper half against the lower."""
        taken = {b for _, b in kept}
        left = [p for p in self.residents if p not in taken]
        number = {place: at for at, place in enumerate(left)}

        def order(a: int, b: int) -> Iterator[tuple[int, int]]:
            yield from _by_halves(number, halves, a, b)

        made = self._match(kept, order)
        return None if made is None else kept + made

    def _match(
        self, kept: list[Pair], order: Callable[[int, int], Iterable[tuple[int, int]]]
    ) -> list[Pair] | None:
        """Return the bracket's pairs of the best pairing of all who are left.

        ``order`` parts pairings of equal quality.
        """
        away = set(itertools.chain.from_iterable(kept))
        nodes = [p for p in (*self.floaters, *self.residents, *self.rest) if p not in away]
        nodes.sort()
        weights: list[list[int | None]] = [[None] * len(nodes) for _ in nodes]
        for (i, a), (j, b) in itertools.combinations(enumerate(nodes), 2):
            if self._possible(a, b):
                weights[i][j] = weights[j][i] = self._weight(a, b, order)
        partners = matching.perfect(weights)
        if partners is None:
            return None
        found = [(nodes[i], nodes[j]) for i, j in enumerate(partners) if i < j]
        return [(a, b) for a, b in found if b in self.inside]

    def _possible(self, a: int, b: int) -> bool:
        return not (a in self.moved and b in self.moved) and self.round.may_meet(a, b)

    def _weight(
        self, a: int, b: int, order: Callable[[int, int], Iterable[tuple[int, int]]]
    ) -> int:
        """Put a pair's share of each criterion into one number, the first most heavily."""
        weight = 0
        for part in self._quality(a, b):
            weight = weight * self.limit + part
        for part, base in order(a, b):
            weight = weight * base + part
        return weight

    # -- quality ---------------------------------------------------------------------

    def _quality(self, a: int, b: int) -> Iterator[int]:
        """Yield the criteria from [C5] on; more is better, all of one size for all pairs."""
        inside = a in self.inside and b in self.inside
        yield -int(self.round.met(a, b))  # only where it cannot be helped
        yield -int(self.round.clash(a, b))
        yield -self._score(a) if b == self.round.chair else 0  # [C5] the bye's score
        yield int(inside)  # [C6] few downfloaters
        yield from self._differences(a, b, self.inside)  # [C7]
        yield from self._next_bracket(a, b)  # [C8]
        yield from self._topscorers(a, b) if inside else (0, 0)  # [C10] [C11]
        yield from self._colours(a, b) if inside else (0, 0)  # [C12] [C13]
        for ago in (1, 2):  # [C14] to [C17]
            yield from self._floats(a, b, ago)
        for ago in (1, 2):  # [C18] to [C21]
            yield from self._float_differences(a, b, ago)

    def _score(self, place: int) -> int:
        return self.round.ranked[place].score

    def _differences(self, a: int, b: int, inside: set[int]) -> Iterator[int]:
        """Yield, for each score difference from the greatest on, that it is not there."""
        lowest = min(map(self._score, inside), default=0)
        levels = sorted({self._score(p) for p in inside}, reverse=True)
        gaps = {one - two for one in levels for two in levels} | {s - lowest + 2 for s in levels}
        gap = 0
        if a in inside:
            gap = self._score(a) - (self._score(b) if b in inside else lowest - 2)
        for size in sorted(gaps - {0}, reverse=True):
            yield -int(a in inside and gap == size)

    def _next_bracket(self, a: int, b: int) -> Iterator[int]:
        """Yield pairs and score differences of those who would meet in the next bracket."""
        floats = a in self.inside and b not in self.inside
        staying = a in self.next or (floats and b in self.next)
        yield int(staying and b in self.next)
        lowest = min(map(self._score, self.next), default=0)
        levels = {self._score(p) for p in self.inside | self.next}
        reach = {level - lowest for level in levels} | {level - lowest + 2 for level in levels}
        gap = 0
        if floats or a in self.next:
            gap = self._score(a) - (lowest if b in self.next else lowest - 2)
        for size in sorted(reach - {0}, reverse=True):
            yield -int(gap == size)

    def _topscorers(self, a: int, b: int) -> tuple[int, int]:
        """Count topscorers and their opponents with a wide difference, or a third colour."""
        if not {a, b} & self.round.topscorers:
            return 0, 0
        one, two = self.round.ranked[a], self.round.ranked[b]
        first, second = ("w", "b") if colours.white_is_first(one, two) else ("b", "w")
        after = (one.played + first, two.played + second)
        wide = sum(abs(c.count("w") - c.count("b")) > 2 for c in after)
        thrice = sum(c[-3:] in {"www", "bbb"} for c in after)
        return -wide, -thrice

    def _colours(self, a: int, b: int) -> tuple[int, int]:
        one, two = self.round.ranked[a], self.round.ranked[b]
        clash = bool(one.preference) and one.preference == two.preference
        strong = min(one.strength, two.strength) >= colours.STRONG
        return -int(clash), -int(clash and strong)

    def _floats(self, a: int, b: int, ago: int) -> Iterator[int]:
        """Count residents who float down again, and those who meet a floater again."""
        down = a in self.inside - self.moved and b not in self.inside
        yield -int(down and self.round.ranked[a].floated(colours.DOWN, ago))
        up = a in self.moved and b in self.inside
        yield -int(up and self.round.ranked[b].floated(colours.UP, ago))

    def _float_differences(self, a: int, b: int, ago: int) -> Iterator[int]:
        """Yield the score differences of those who float the same way as before."""
        again = a in self.moved and self.round.ranked[a].floated(colours.DOWN, ago)
        levels = sorted({self._score(p) for p in self.moved}, reverse=True)
        lowest = self._score(self.residents[0])
        gaps = {s - lowest for s in levels} | {s - lowest + 2 for s in levels}
        gap = self._score(a) - (lowest if b in self.inside else lowest - 2)
        for size in sorted(gaps, reverse=True):
            yield -int(again and gap == size)
        again = (
            a in self.moved and b in self.inside and self.round.ranked[b].floated(colours.UP, ago)
        )
        for size in sorted(gaps, reverse=True):
            yield -int(again and gap == size)

    # -- the order of equals -----------------------------------------------------------

    def _by_floaters(self, a: int, b: int) -> Iterator[tuple[int, int]]:
        """Prefer that the highest floaters are paired, each with the highest resident."""
        count, base = len(self.floaters), len(self.residents) + 2
        meets = a in self.moved and b in self.inside
        at = self.floaters.index(a) if meets else 0
        yield (1 << (count - at) if meets else 0), 1 << (count + 2)
        yield (
            (-(self.residents.index(b) + 1) * base ** (count - at) if meets else 0),
            base ** (count + 2),
        )


def _by_halves(number: dict[int, int], halves: int, a: int, b: int) -> Iterator[tuple[int, int]]:
    """Yield the order of exchanges and transpositions in a homogeneous bracket (4.2, 4.3).

    The higher of a pair plays in the upper half: who does not stand there by its number
    was exchanged. Yield fewest exchanges, least difference of the exchanged numbers, then
    the lowest of the upper and the highest of the lower half exchanged; last, each of the
    upper half, from the first on, meets the highest possible.
    """
    count, base = len(number) + 1, len(number) + 2
    first, second = number.get(a), number.get(b)
    risen = first is not None and second is not None and first >= halves
    fallen = None
    if second is not None and first is not None and second < halves:
        fallen = second
    elif second is None and first is not None and first < halves:
        fallen = first
    yield -int(fallen is not None), base
    difference = (fallen or 0) - (first or 0 if risen else 0)
    yield difference, 4 * base * base
    yield (0 if fallen is None else 1 << fallen), 1 << (count + 1)
    yield (1 << (count - (first or 0)) if risen else 0), 1 << (count + 2)
    meets = first is not None and second is not None
    share = (second or 0) * base ** (count - (first or 0)) if meets else 0
    yield -share, base ** (count + 2)
