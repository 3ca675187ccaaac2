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

import dataclasses
import enum
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

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
        number
        for number, player in enumerate(ranked)
        if last_round_of and player.score > last_round_of - 1
    }
    pairing = next(filter(None, (_Round(ranked, top, force).pairs() for force in _Force)), [])
    bye = next((a for a, b in pairing if b == chair), None)
    pairs = sorted((a, b) for a, b in pairing if b != chair)
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
        self.qualities: dict[Pair, tuple[int, int, int, int]] = {}  # [C10] to [C13]
        places = range(len(ranked) + len(ranked) % 2)
        self.open = [[a < b and self._may_meet(a, b) for b in places] for a in places]

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
        """Say whether two places, the higher first, can be paired at all ([C1] to [C3])."""
        return self.open[a][b]

    def _may_meet(self, a: int, b: int) -> bool:
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
        first, second = self.ranked[a], self.ranked[b]
        return (
            first.strength == second.strength == colours.ABSOLUTE
            and first.preference == second.preference
        )


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
        self._criteria = _Criteria(self)
        self._known: dict[Pair, int] = {}

    def pairs(self) -> list[Pair] | None:
        """Return the pairs made in this bracket, the higher ranked first, None if none fit."""
        kept: list[Pair] = []
        halves = len(self.residents) // 2
        if (straight := self._straight()) is not None:
            return straight
        if self.floaters:
            first = self._match([], self._by_floaters())
            if first is None:
                return None
            kept = [(a, b) for a, b in first if a in self.moved]
            halves = len(first) - len(kept)
        made = self._remainder(kept, halves)
        if made is not None and not self.floaters and len(made) != halves:
            made = self._remainder(kept, len(made))
        return made

    def _straight(self) -> list[Pair] | None:
        """Return the upper half against the lower one where no criterion speaks against it.

        It is the first in the order of the rules; only the last bracket is looked at, which need
        leave nobody to others. All of a first round are paired by it.
        """
        if self.floaters or set(self.rest) - {self.round.chair} or self.round.force:
            return None
        halves = len(self.residents) // 2
        pairs = list(zip(self.residents[:halves], self.residents[halves:], strict=False))
        bye = self.residents[2 * halves :]
        fits = all(self.round.may_meet(a, b) for a, b in pairs)
        if not fits or any(self._criteria.within(a, b) for a, b in pairs):
            return None
        for player in bye:
            again = any(self._criteria.falls_again(player, ago) for ago in (1, 2))
            if again or not self.rest or not self.round.may_meet(player, self.round.chair):
                return None
        return pairs

    def _remainder(self, kept: list[Pair], halves: int) -> list[Pair] | None:
        """Pair the residents that no floater meets, the upper half against the lower."""
        taken = {b for _, b in kept}
        left = [p for p in self.residents if p not in taken]
        number = {player: at for at, player in enumerate(left)}
        made = self._match(kept, _by_halves(number, halves))
        return None if made is None else kept + made

    def _match(self, kept: list[Pair], order: _Order) -> list[Pair] | None:
        """Return the bracket's pairs of the best pairing of all who are left.

        ``order`` parts pairings of equal quality.
        """
        away = set(itertools.chain.from_iterable(kept))
        nodes = [p for p in (*self.floaters, *self.residents, *self.rest) if p not in away]
        nodes.sort()
        if len(nodes) < 2:
            return None if nodes else []
        weights: list[list[int | None]] = [[None] * len(nodes) for _ in nodes]
        qualities, quality, moved = self._known, self._criteria.quality, self.moved
        inside = sum(node in self.inside for node in nodes)
        units = math.prod(order.bases)
        for i, a in enumerate(nodes):
            row, may_meet, floats = weights[i], self.round.open[a], a in moved
            for j in range(i + 1, len(nodes)):
                b = nodes[j]
                if not may_meet[b] or (floats and b in moved):
                    continue
                weight = qualities.get((a, b))
                if weight is None:
                    weight = qualities[a, b] = quality(a, b)
                weight *= units
                if i < inside:
                    weight += order.weight(a, b)
                row[j] = weights[j][i] = weight
        partners = matching.perfect(weights)
        if partners is None:
            return None
        matched = [(nodes[i], nodes[j]) for i, j in enumerate(partners) if i < j]
        return [(a, b) for a, b in matched if b in self.inside]

    # -- the order of equals -----------------------------------------------------------

    def _by_floaters(self) -> _Order:
        """Prefer that the highest floaters are paired, each with the highest resident."""
        count, base = len(self.floaters), len(self.residents) + 2
        floater = {player: count - at for at, player in enumerate(self.floaters)}
        resident = {player: at + 1 for at, player in enumerate(self.residents)}
        powers = [base**power for power in range(count + 1)]

        def shares(a: int, b: int) -> tuple[int, ...]:
            if a not in floater or b not in resident:
                return 0, 0
            return 1 << floater[a], -resident[b] * powers[floater[a]]

        return _Order((1 << (count + 2), base ** (count + 2)), shares)


class _Criteria:
    """The quality criteria of a bracket from [C5] on, packed into one number a pair.

    Each criterion has a unit, the first the greatest: no sum of shares reaches the next unit.
    Most pairs share in few of them, so a pair's number is made from those alone.
    """

    def __init__(self, bracket: _Bracket) -> None:
        self.round, self.inside, self.moved = bracket.round, bracket.inside, bracket.moved
        self.next = bracket.next
        score = self._score
        self._lowest = min(map(score, self.inside), default=0)
        self._lowest_next = min(map(score, self.next), default=0)
        self._lowest_resident = score(bracket.residents[0])
        levels = {score(p) for p in self.inside}
        gaps = {high - low for high in levels for low in levels}
        gaps |= {level - self._lowest + 2 for level in levels}
        both = levels | {score(p) for p in self.next}
        reach = {level - self._lowest_next for level in both}
        reach |= {level - self._lowest_next + 2 for level in both}
        floated = {score(p) for p in self.moved}
        falls = {level - self._lowest_resident for level in floated}
        falls |= {level - self._lowest_resident + 2 for level in floated}
        self._floated = {
            (player, direction, ago): self.round.ranked[player].floated(direction, ago)
            for player in self.inside
            for direction in (colours.DOWN, colours.UP)
            for ago in (1, 2)
        }
        keys = [
            *("met", "clash", "bye", "inside"),  # [C5] is the bye's score, [C6] few downfloaters
            *(("gap", size) for size in sorted(gaps - {0}, reverse=True)),  # [C7]
            "next",  # [C8]: pairs and score differences in the next bracket
            *(("reach", size) for size in sorted(reach - {0}, reverse=True)),
            *("wide", "thrice", "colour", "strong"),  # [C10] to [C13]
            *((way, ago) for ago in (1, 2) for way in ("down", "up")),  # [C14] to [C17]
            *(  # [C18] to [C21]
                (way, ago, size)
                for ago in (1, 2)
                for way in ("down", "up")
                for size in sorted(falls, reverse=True)
            ),
        ]
        units = [bracket.limit**power for power in reversed(range(len(keys)))]
        self._unit: dict[object, int] = dict(zip(keys, units, strict=True))

    def _score(self, player: int) -> int:
        return self.round.ranked[player].score

    def quality(self, a: int, b: int) -> int:
        """Return a pair's number, ``a`` being the higher ranked; more is better."""
        unit, round_ = self._unit, self.round
        total = 0
        if round_.force is not _Force.NOTHING:  # only where it cannot be helped
            total -= round_.met(a, b) * unit["met"] + round_.clash(a, b) * unit["clash"]
        if b == round_.chair:
            total -= self._score(a) * unit["bye"]
        if a not in self.inside:
            return total + self._of_next(a, b) if a in self.next else total
        if b in self.inside:
            total += unit["inside"] + self.within(a, b)
            gap = self._score(a) - self._score(b)
        else:
            total += self._of_next(a, b) - unit["down", 1] * self.falls_again(a, 1)
            total -= unit["down", 2] * self.falls_again(a, 2)
            gap = self._score(a) - self._lowest + 2
        if gap:
            total -= unit["gap", gap]
        return total - self._float_differences(a, b) if a in self.moved else total

    def _of_next(self, a: int, b: int) -> int:
        """Return the share in the next bracket, of one who floats there or is there."""
        stays = b in self.next
        gap = self._score(a) - (self._lowest_next if stays else self._lowest_next - 2)
        return stays * self._unit["next"] - (self._unit["reach", gap] if gap else 0)

    def falls_again(self, a: int, ago: int) -> bool:
        """Say whether a resident who floats down did so that many rounds ago ([C14], [C16])."""
        return a not in self.moved and self._floated[a, colours.DOWN, ago]

    def within(self, a: int, b: int) -> int:
        """Return the shares of a pair inside the bracket that colours and floats have."""
        qualities, unit = self.round.qualities, self._unit
        if (a, b) not in qualities:
            qualities[a, b] = (*self._topscorers(a, b), *self._colours(a, b))
        wide, thrice, clash, strong = qualities[a, b]
        total = wide * unit["wide"] + thrice * unit["thrice"]
        total += clash * unit["colour"] + strong * unit["strong"]
        if a in self.moved:
            for ago in (1, 2):
                total += self._floated[b, colours.UP, ago] * unit["up", ago]
        return -total

    def _topscorers(self, a: int, b: int) -> tuple[int, int]:
        """Count topscorers and their opponents with a wide difference, or a third colour."""
        if not {a, b} & self.round.topscorers:
            return 0, 0
        player, opponent = self.round.ranked[a], self.round.ranked[b]
        first, second = ("w", "b") if colours.white_is_first(player, opponent) else ("b", "w")
        after = (player.played + first, opponent.played + second)
        wide = sum(abs(c.count("w") - c.count("b")) > 2 for c in after)
        thrice = sum(c[-3:] in {"www", "bbb"} for c in after)
        return wide, thrice

    def _colours(self, a: int, b: int) -> tuple[int, int]:
        player, opponent = self.round.ranked[a], self.round.ranked[b]
        clash = bool(player.preference) and player.preference == opponent.preference
        strong = min(player.strength, opponent.strength) >= colours.STRONG
        return int(clash), int(clash and strong)

    def _float_differences(self, a: int, b: int) -> int:
        """Return the score differences of a floater and its opponent who float as before."""
        meets = b in self.inside
        gap = self._score(a) - (self._lowest_resident if meets else self._lowest_resident - 2)
        total = 0
        for ago in (1, 2):
            total += self._floated[a, colours.DOWN, ago] * self._unit["down", ago, gap]
            if meets:
                total += self._floated[b, colours.UP, ago] * self._unit["up", ago, gap]
        return total


@dataclasses.dataclass(frozen=True)
class _Order:
    """Which of two pairings of equal quality is the better one: the first share counts most.

    Each share of a pair comes with its base: no sum of shares reaches the next one's unit.
    """

    bases: tuple[int, ...]
    shares: Callable[[int, int], tuple[int, ...]]

    def weight(self, a: int, b: int) -> int:
        """Return a pair's shares in one number."""
        weight = 0
        for share, base in zip(self.shares(a, b), self.bases, strict=True):
            weight = weight * base + share
        return weight


def _by_halves(number: dict[int, int], halves: int) -> _Order:
    """Return the order of exchanges and transpositions in a homogeneous bracket (4.2, 4.3).

    The higher of a pair plays in the upper half: who does not stand there by its number
    was exchanged. It is by fewest exchanges, least difference of the exchanged numbers, then
    the lowest of the upper and the highest of the lower half exchanged; last, each of the
    upper half, from the first on, meets the highest possible.
    """
    count, base = len(number) + 1, len(number) + 2
    powers = [base**power for power in range(count + 1)]
    bases = (base, 4 * base * base, 1 << (count + 1), 1 << (count + 2), base ** (count + 2))

    def shares(a: int, b: int) -> tuple[int, ...]:
        first, second = number.get(a), number.get(b)
        if first is None:
            return 0, 0, 0, 0, 0
        fallen = second if second is not None and second < halves else None
        if second is None and first < halves:
            fallen = first
        risen = second is not None and first >= halves
        return (
            -int(fallen is not None),
            (fallen or 0) - (first if risen else 0),
            0 if fallen is None else 1 << fallen,
            1 << (count - first) if risen else 0,
            0 if second is None else -second * powers[count - first],
        )

    return _Order(bases, shares)
