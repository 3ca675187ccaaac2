"""Order of games and colours against the tables, and the openings of reverse games.

The first round of both tables is 1 v n, 2 v n-1, … with White first, so the seeds can be
read from it; an odd field's first has a bye there. ``game`` is a game's number in the
archive, from 1, None for one that the table has and the archive has not.
"""

from __future__ import annotations

import collections
import difflib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from orchestrator.audit import reading, reasons, rules, tables
from orchestrator.season.formats import base, match, round_robin

_Pair = tuple[str, str]


def kind(games: Sequence[reading.Game]) -> rules.Kind:
    """Return what an archive looks like: a match, a league, rounds of a Swiss, or a pool.

    A pool has no order of play: gauntlets, games of a rating list.
    """
    everybody = tables.engines(games)
    field = len(everybody)
    pairs = field * (field - 1) // 2
    met = collections.Counter(frozenset((game.white, game.black)) for game in games)
    if field == 2:
        return "match"
    if any(all(engine in pair for pair in met) for engine in everybody):
        return "pool"  # one engine plays all games
    if len(met) < pairs and max(met.values()) == 1:
        return "swiss"
    return "league" if 2 * len(met) > pairs else "pool"


def first_seeds(games: Sequence[reading.Game]) -> tuple[str, ...]:
    """Return the seeds as the first round of a round robin tells them."""
    everybody = tables.engines(games)
    pairs = dict.fromkeys((game.white, game.black) for game in games)
    first = list(pairs)[: len(everybody) // 2]
    white, black = [pair[0] for pair in first], [pair[1] for pair in first]
    bye = [engine for engine in everybody if engine not in white and engine not in black]
    return (*bye, *white, *reversed(black))


def counted(games: Sequence[reading.Game]) -> list[reading.Game]:
    """Leave out games that broke off and were begun again, at once or later in their round."""
    again = {(game.white, game.black, game.tags.get("Round", "?")): game.number for game in games}

    def dropped(game: reading.Game, after: reading.Game | None) -> bool:
        sides, round_tag = (game.white, game.black), game.tags.get("Round", "?")
        at_once = after is not None and sides == (after.white, after.black)
        later = round_tag != "?" and again[*sides, round_tag] > game.number
        return game.result is None and not reasons.annulled(game) and (at_once or later)

    nexts = itertools.zip_longest(games, games[1:])
    return [game for game, after in nexts if game and not dropped(game, after)]


def league(
    games: Sequence[reading.Game], seeds: Sequence[str], table: rules.Table, cycles: int | None
) -> dict[str, Any]:
    """Compare a round robin with its table; cycles are found from the games if not given.

    Games beyond whole cycles begin another one if they are its first, or so many that it
    can be nothing else; a game that stands there twice, or a playoff, begins none.
    """
    field = len(seeds)
    begun = -(-len(games) // (field * (field - 1) // 2))
    boards = _boards(field, table, cycles or begun)
    due = [(seeds[board.white], seeds[board.black]) for board in boards[: len(games)]]
    if cycles is None and due != [(game.white, game.black) for game in games]:
        boards = _boards(field, table, min(begun, _met(games, field)))
    return _compared(games, seeds, table, boards)


def _boards(field: int, table: rules.Table, cycles: int) -> list[base.Board]:
    ours = round_robin.RoundRobin(field, -(-cycles // 2), table)
    rounds = cycles * ours.rounds // (2 * ours.double_rounds)
    return [board for index in range(rounds) for board in ours.pair(index, base.History()).boards]


def _met(games: Sequence[reading.Game], field: int) -> int:
    """Return how often more pairs met than play in one round."""
    met = collections.Counter(frozenset((game.white, game.black)) for game in games)
    return sorted(met.values(), reverse=True)[min(field // 2, len(met) - 1)]


def duel(games: Sequence[reading.Game], seeds: Sequence[str]) -> dict[str, Any]:
    """Compare a match with its order: colours turn with every game (S16-8a)."""
    ours = match.Match(len(games) + len(games) % 2, seeds.index(games[0].white))
    pairings = [ours.pair(index, base.History()) for index in range(ours.rounds)]
    boards = [board for pairing in pairings if pairing for board in pairing.boards]
    return _compared(games, seeds, "match", boards[: len(games)])


def openings(games: Sequence[reading.Game]) -> dict[str, int] | None:
    """Count the pairs of a game and its reverse, and those that share their opening.

    None where no game tells its opening. A game that was decided without a move has none.
    """
    if not any(any(game.opening.line) for game in games):
        return None
    begun = [pair for pair in _reverse(games) if all(game.plies for game in pair)]
    shared = [first.opening.line == second.opening.line for first, second in begun]
    return {"pairs": len(shared), "same_opening": sum(shared)}


def _compared(
    games: Sequence[reading.Game], seeds: Sequence[str], table: str, boards: Sequence[base.Board]
) -> dict[str, Any]:
    due = [(seeds[board.white], seeds[board.black]) for board in boards]
    wrong = list(_differences(due, games))
    unlike = {difference["game"] for difference in wrong if difference["game"] is not None}
    return {
        "table": table,
        "seeds": list(seeds),
        "matched": len(games) - len(unlike),
        "games": len(games),
        "mismatches": wrong,
    }


def _differences(due: Sequence[_Pair], games: Sequence[reading.Game]) -> Iterator[dict[str, Any]]:
    """Yield where the order differs; after games left out or added the rest still counts."""
    played = [(game.white, game.black) for game in games]
    if len(due) == len(played):
        aside = zip(due, games, strict=True)
        yield from (_difference(d, g) for d, g in aside if d != (g.white, g.black))
        return
    aligned = difflib.SequenceMatcher(None, due, played, autojunk=False)
    for _, first, last, begin, end in (
        code for code in aligned.get_opcodes() if code[0] != "equal"
    ):
        missed, other = due[first:last], games[begin:end]
        for planned, real in itertools.zip_longest(missed, other):
            yield _difference(planned, real)


def _difference(planned: _Pair | None, real: reading.Game | None) -> dict[str, Any]:
    if real is None:
        return {"game": None, "scheduled": planned, "played": None}
    return {"game": real.number, "scheduled": planned, "played": (real.white, real.black)}


def _reverse(games: Sequence[reading.Game]) -> Iterator[tuple[reading.Game, reading.Game]]:
    waiting: dict[_Pair, reading.Game] = {}
    for game in games:
        first = waiting.pop((game.black, game.white), None)
        if first is not None:
            yield first, game
        else:
            waiting[game.white, game.black] = game
