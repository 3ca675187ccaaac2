"""The audit's report: every part that applies to an archive, None for those that do not.

No tables are read, so a tablebase is taken to end every game with few men
(``replaying.Known``). A season that was played without tables, or with those of fewer men,
then disagrees game by game; a hint says so once.

The matches of a knockout (CUP-3) are told with who began, the score, and whether their length
is right. A match is a run of games between the same two engines. Its length is right when the
rule ends it after its last game and not before: more than k points of k pairs, else whole
pairs until one is decisive. The winner is who leads after the recorded games, also where
their number is wrong.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.audit import reading, replaying, rules, schedules, tables
from orchestrator.common import errors
from orchestrator.season.fold import tally
from orchestrator.season.formats import base, knockout

_RULES: Final = {
    "draw_rule": "draw rule",
    "win_rule": "win rule",
    "tablebase": "tablebase",
    replaying.BY_MOVES: "draw and resign by moves",
    replaying.BOARD: "rules of chess",
}
_SHOWN: Final = 20  # games out of order, or unreadable, that people are told of


def report(
    games: Sequence[reading.Game], held: rules.Rules, broken: Sequence[reading.Broken] = ()
) -> dict[str, Any]:
    """Hold an archive against the rules; raise ``UsageError`` for a name nobody has.

    ``broken`` games were in it, too: they are named and count nowhere.
    """
    games = _played(games)
    slots = schedules.counted(games)
    everybody = tables.engines(games)
    kind = held.kind or ("knockout" if held.name == "cup" else schedules.kind(slots))
    seeds = _names(held.seeds, everybody, "--seeds") or _seeds(slots, kind)
    if len(set(seeds)) < len(everybody):
        missing = ", ".join(sorted(set(everybody) - set(seeds)))
        raise errors.UsageError(f"--seeds: without {missing}; give all {len(everybody)} engines")
    out = _names(held.exclude, everybody, "--exclude")
    adjudication = rules.adjudication(held)
    ends = replaying.report(games, adjudication)
    return {
        "games": len(games),
        "unreadable": [dataclasses.asdict(game) for game in broken],
        "standings": _standings(games, held, kind, seeds, out),
        "adjudication": ends,
        "tablebase_hint": _tablebase_hint(games, adjudication, ends),
        "schedule": _schedule(slots, held, kind, seeds),
        "openings": None if kind == "swiss" else schedules.openings(slots),
        "results": list(_contradictions(games)),
        "copies": list(_copies(games)),
        "knockout": _knockout(slots, held) if kind == "knockout" else None,
    }


def _played(games: Sequence[reading.Game]) -> list[reading.Game]:
    """Return the games of two engines; one without names and result was never played."""
    contests = [game for game in games if game.white != game.black]
    if not contests:
        raise errors.UsageError("no game of two engines is in it: nothing can be audited")
    return contests


def sentences(audited: dict[str, Any]) -> Iterator[str]:
    """Yield the report in words: what agrees in numbers, what does not line by line."""
    yield f"{audited['games']} games"
    yield from _unreadable(audited["unreadable"])
    for row in audited["standings"] or ():
        by = f" ({row['decided_by']})" if row["decided_by"] else ""
        yield f"{row['rank']:>3}. {row['engine']}: {row['points']:g} of {row['played']}{by}"
    yield from _adjudicated(audited["adjudication"])
    if hint := audited["tablebase_hint"]:
        yield _hint_sentence(hint)
    for wrong in audited["results"]:
        results = f"tag Result {wrong['tag']}, behind the moves {wrong['moves']}"
        yield f"  game {wrong['game']}: {results}"
    yield from (
        f"  game {copy['game']}: the same as game {copy['of']}" for copy in audited["copies"]
    )
    if schedule := audited["schedule"]:
        yield f"{schedule['table']}: {schedule['matched']} of {schedule['games']} games in order"
        missing = "not played, or unreadable" if audited["unreadable"] else "not played"
        yield from _out_of_order(schedule["mismatches"], missing)
    if pairs := audited["openings"]:
        yield f"openings: {pairs['same_opening']} of {pairs['pairs']} pairs share theirs"
    for match in (audited["knockout"] or {}).get("matches", ()):
        yield _match(match)


def _unreadable(broken: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from (f"  {reading.Broken(**game)}" for game in broken[:_SHOWN])
    if len(broken) > _SHOWN:
        yield f"  and {len(broken) - _SHOWN} more (--json has all)"


def _adjudicated(ends: dict[str, Any]) -> Iterator[str]:
    for name, label in _RULES.items():
        if counts := ends.get(name):
            yield f"{label}: {counts['reproduced']} of {counts['recorded']} reproduced"
    for wrong in ends["mismatches"]:
        ply, last = wrong["computed_ply"], wrong["recorded_ply"]
        computed = "not at all" if ply is None else f"at {ply}"
        unlike = ", but otherwise than recorded" if ply == last else ""
        label = _RULES[wrong["rule"]]
        yield f"  game {wrong['game']}: ended at ply {last}; {label}: {computed}{unlike}"


def _out_of_order(mismatches: Sequence[dict[str, Any]], missing: str) -> Iterator[str]:
    for wrong in mismatches[:_SHOWN]:
        due, real = (" - ".join(wrong[key] or ("none",)) for key in ("scheduled", "played"))
        position = missing if wrong["game"] is None else f"game {wrong['game']}"
        yield f"  {position}: scheduled {due}, played {real}"
    more = len(mismatches) - _SHOWN
    if more > 0:
        yield f"  and {more} more (--json has all): another table, or other --seeds?"


def _match(match: dict[str, Any]) -> str:
    score = "-".join(f"{points:g}" for points in match["score"])
    length = "; WRONG LENGTH" if match["length_ok"] is False else ""
    sides = f"{match['white_first']} - {match['black_first']}"
    return f"{sides}: {score}, {match['games']} games, {match['winner'] or 'nobody'} wins{length}"


def _contradictions(games: Sequence[reading.Game]) -> Iterator[dict[str, Any]]:
    """Yield the games whose moves do not end with the result that their tag tells."""
    for game in games:
        if game.last_word != game.tags["Result"]:
            moves = game.last_word or "none"
            yield {"game": game.number, "tag": game.tags["Result"], "moves": moves}


def _copies(games: Sequence[reading.Game]) -> Iterator[dict[str, int]]:
    """Yield the games whose tags, with the time of day, and moves stood there before."""
    seen: dict[object, int] = {}
    for game in games:
        if not {"GameStartTime", "Time"} & game.tags.keys():
            continue  # short games of a few engines may well be alike
        moves = tuple(ply.move for ply in game.plies)
        first = seen.setdefault((frozenset(game.tags.items()), moves), game.number)
        if first != game.number:
            yield {"game": game.number, "of": first}


def _standings(
    games: Sequence[reading.Game],
    held: rules.Rules,
    kind: rules.Kind,
    seeds: Sequence[str],
    out: Sequence[str],
) -> list[dict[str, Any]] | None:
    if kind == "knockout":
        return None
    return tables.standing(games, seeds, rules.tiebreaks(held, kind), held.crashes, out)


def _schedule(
    games: Sequence[reading.Game], held: rules.Rules, kind: rules.Kind, seeds: Sequence[str]
) -> dict[str, Any] | None:
    if kind == "league":
        return schedules.league(games, seeds, rules.table(held), held.cycles)
    return schedules.duel(games, seeds) if kind == "match" else None


def _knockout(games: Sequence[reading.Game], held: rules.Rules) -> dict[str, Any]:
    matched: list[dict[str, Any]] = []
    for event, played in itertools.groupby(games, key=lambda game: game.tags.get("Event", "")):
        of_round = list(played)
        pairs = rules.pairs(held, len(tables.engines(of_round)), event)
        matched += _match_reports(of_round, pairs)
    return {"matches": matched}


def _seeds(games: Sequence[reading.Game], kind: rules.Kind) -> tuple[str, ...]:
    everybody = tables.engines(games)
    seeds = schedules.first_seeds(games) if kind == "league" else everybody
    # A first round that is not the tables' own tells no seeds.
    return seeds if sorted(seeds) == sorted(everybody) else everybody


def _names(given: Sequence[str], everybody: Sequence[str], option: str) -> tuple[str, ...]:
    return tuple(_name(text, everybody, option) for text in given)


def _name(text: str, everybody: Sequence[str], option: str) -> str:
    if text in everybody:
        return text
    matching = [name for name in everybody if name.startswith(text)]
    if len(matching) == 1:
        return matching[0]
    candidates = ", ".join(matching or everybody)
    raise errors.UsageError(
        f"{option}: {text!r} names {len(matching)} engines; known: {candidates}"
    )


def _tablebase_hint(
    games: Sequence[reading.Game], rules: contract.Adjudication, ends: Mapping[str, Any]
) -> dict[str, int] | None:
    """Count the games that a tablebase should have ended earlier; None where no hint would help.

    ``ends`` is what ``replaying.report`` says of the games. Of the ``missed`` ones ``agree``
    would be as recorded without tables; ``recorded`` games did end by one. Where there are
    such, a hint is worth giving only if some agree.
    """
    missed = {
        wrong["game"]
        for wrong in ends["mismatches"]
        if wrong["rule"] == "tablebase" and wrong["computed_ply"] is not None
    }
    again = [game for game in games if game.number in missed]
    without = replaying.report(again, rules.model_copy(update={"syzygy": None}))
    agree = len(again) - len({wrong["game"] for wrong in without["mismatches"]})
    recorded = ends["tablebase"]["recorded"] if ends["tablebase"] else 0
    if not again or (recorded and not agree):
        return None
    return {"recorded": recorded, "missed": len(again), "agree": agree}


def _hint_sentence(hint: Mapping[str, int]) -> str:
    """Return the hint in words."""
    ends = f"{hint['recorded'] or 'none'} in the record, {hint['missed']} missed by the rules"
    fewer = ", or with --tb-men where they had fewer men" if hint["recorded"] else ""
    return (
        f"hint: ends by a tablebase: {ends}, of which {hint['agree']} agree without tables:"
        f" if it was played so, audit with --no-tablebase{fewer}"
    )


def _match_reports(games: Sequence[reading.Game], pairs: int | None) -> list[dict[str, Any]]:
    """Return the matches in their order; without ``pairs`` nobody can say the length."""
    return [_match_report(match, pairs) for match in _matches(games)]


def _matches(games: Sequence[reading.Game]) -> Iterator[list[reading.Game]]:
    runs = itertools.groupby(games, key=lambda game: frozenset((game.white, game.black)))
    for _, run in runs:
        yield list(run)


def _match_report(games: list[reading.Game], pairs: int | None) -> dict[str, Any]:
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
