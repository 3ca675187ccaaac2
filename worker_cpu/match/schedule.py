"""The games of a match, numbered: who plays whom, with which colours and opening.

A function of the settings alone, so that a match that is resumed finds the same games.
Round robins follow the circle method, the encounters of a round one after the other;
two engines simply meet once a round. fastchess pairs in the order of the list (``listed``):
each encounter is a round. Invariants: colours change with every game of the
same two engines (unless told not to); the games of a pair share their opening; no two
encounters share one; a longer match begins with the same games.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Hashable, Iterator
from typing import Literal, TypeAlias

from orchestrator.testmatch import openings as testmatch_openings

Kind: TypeAlias = Literal["round-robin", "gauntlet", "adaptive"]
Policy: TypeAlias = Literal["default", "encounter", "round"]


@dataclasses.dataclass(frozen=True)
class Plan:
    """The shape of a match; ``games`` are those of one encounter, ``repeat`` of an opening.

    An adaptive match has at most ``budget`` games; it ends earlier when its list is in order
    with this ``confidence`` (0: it does not) or closer than ``within`` Elo.
    """

    engines: int
    kind: Kind = "round-robin"
    seeds: int = 1
    rounds: int = 1
    games: int = 1
    repeat: int = 1
    swap: bool = True
    reverse: bool = False
    policy: Policy = "default"
    listed: bool = False
    budget: int = 0
    confidence: float = 0.0
    within: float = 0.0


@dataclasses.dataclass(frozen=True)
class Slot:
    """One game: engines by position from 0, its opening, its pair (``None``: in none)."""

    number: int
    round: int
    encounter: int
    white: int
    black: int
    opening: int
    pair: int | None

    @property
    def engines(self) -> tuple[int, int]:
        """Return both engines, the earlier in the list first."""
        return min(self.white, self.black), max(self.white, self.black)


@dataclasses.dataclass(frozen=True)
class _Game:
    round: int
    encounter: int
    white: int
    black: int
    meeting: int  # how often these two have played before

    @property
    def engines(self) -> tuple[int, int]:
        return min(self.white, self.black), max(self.white, self.black)


def slots(plan: Plan) -> tuple[Slot, ...]:
    """Return the games of a match in their order of play; an adaptive one deals its own."""
    if plan.kind == "adaptive":
        return ()
    games = list(_games(plan))
    openings = testmatch_openings.deal([_share(plan, game) for game in games])
    pairs = _pairs(games, openings)
    return tuple(
        Slot(number, game.round, game.encounter, game.white, game.black, opening, pair)
        for number, (game, opening, pair) in enumerate(
            zip(games, openings, pairs, strict=True), start=1
        )
    )


def _games(plan: Plan) -> Iterator[_Game]:
    met: collections.Counter[tuple[int, int]] = collections.Counter()
    for encounter, (number, first, second) in enumerate(_encounters(plan), start=1):
        for _ in range(plan.games):
            key = min(first, second), max(first, second)
            turned = (plan.swap and met[key] % 2 == 1) != plan.reverse
            white, black = (second, first) if turned else (first, second)
            yield _Game(number, encounter, white, black, met[key])
            met[key] += 1


def _encounters(plan: Plan) -> Iterator[tuple[int, int, int]]:
    """Yield round, first and second engine of every encounter."""
    number = 0
    for _ in range(plan.rounds):
        for pairings in _rounds(plan):
            number += 1
            for first, second in pairings:
                yield number, first, second


def _rounds(plan: Plan) -> Iterator[list[tuple[int, int]]]:
    if plan.listed:
        first = plan.seeds if plan.kind == "gauntlet" else plan.engines
        pairings = itertools.combinations(range(plan.engines), 2)
        yield from ([pairing] for pairing in pairings if pairing[0] < first)
    elif plan.kind == "gauntlet":
        yield from _gauntlet(plan)
    else:
        yield from _circle(plan.engines)


def _circle(engines: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the rounds of a round robin; with an odd number one engine rests in each."""
    size = engines + engines % 2
    top, bottom = list(range(size // 2)), list(range(size - 1, size // 2 - 1, -1))
    for _ in range(size - 1):
        pairings = zip(top, bottom, strict=True)
        yield [(a, b) for a, b in pairings if a < engines and b < engines]
        top.insert(1, bottom.pop(0))
        bottom.append(top.pop())


def _gauntlet(plan: Plan) -> Iterator[list[tuple[int, int]]]:
    for opponent in range(plan.seeds, plan.engines):
        yield [(seed, opponent) for seed in range(plan.seeds)]


def _share(plan: Plan, game: _Game) -> Hashable:
    """Return what the games of one opening have in common."""
    if plan.policy == "round":
        return game.round
    if plan.policy == "encounter":
        return game.encounter
    return game.engines, game.meeting // plan.repeat


def _pairs(games: list[_Game], openings: list[int]) -> list[int | None]:
    """Number the pairs: two games running of the same engines and opening, colours changed."""
    pair_numbers: list[int | None] = [None] * len(games)
    waiting: dict[tuple[int, int], int] = {}
    count = 0
    for at, game in enumerate(games):
        before = waiting.pop(game.engines, None)
        if (
            before is not None
            and openings[before] == openings[at]
            and games[before].white == game.black
        ):
            pair_numbers[before] = pair_numbers[at] = count
            count += 1
        else:
            waiting[game.engines] = at
    return pair_numbers
