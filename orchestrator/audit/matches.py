"""The matches of a knockout (CUP-3): who began, the score, and whether its length is right.

A match is a run of games between the same two engines. Its length is right when the rule
ends it after its last game and not before: more than k points of k pairs, else whole
pairs until one is decisive. The winner is who leads after the recorded games, also where
their number is wrong.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.audit import reading
from orchestrator.season.fold import tally
from orchestrator.season.formats import base, knockout


def report(games: Sequence[reading.Game], pairs: int | None) -> list[dict[str, Any]]:
    """Return the matches in their order; without ``pairs`` nobody can say the length."""
    return [_match(match, pairs) for match in _matches(games)]


def _matches(games: Sequence[reading.Game]) -> Iterator[list[reading.Game]]:
    runs = itertools.groupby(games, key=lambda game: frozenset((game.white, game.black)))
    for _, run in runs:
        yield list(run)


def _match(games: list[reading.Game], pairs: int | None) -> dict[str, Any]:
    first, second = games[0].white, games[0].black
    played = [_game(game, first) for game in games]
    scores = [base.History().taken(engine, played) for engine in (0, 1)]
    leader = None if scores[0] == scores[1] else (first, second)[scores[1] > scores[0]]
    over = None if pairs is None else _over(played, pairs)
    return {
        "white_first": first,
        "black_first": second,
        "score": [score / 2 for score in scores],
        "games": len(games),
        "winner": leader,
        "length_ok": None if over is None else over[-1] and not any(over[:-1]),
    }


def _over(played: list[base.Game], pairs: int) -> list[bool]:
    """Return after each game whether the rule ends the match there."""
    rule = knockout.Knockout(base.Field(2), pairs)
    begun = (played[:number] for number in range(1, len(played) + 1))
    return [rule.complete(len(games), base.History(len(games), games.copy)) for games in begun]


def _game(game: reading.Game, first: str) -> base.Game:
    white = 0 if game.white == first else 1
    halves = None if game.result is None else tally.halves(game.result)
    return base.Game(white, 1 - white, 1, halves)
