"""Count a season again from its raw journal, knowing docs/rules and nothing else.

It shares no code with the farm: it reads journal lines as JSON, and its tables of events,
promotions and tiebreak chains are typed from the rule texts, not read from season files.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

CRASHES = {"disconnect", "stall"}
POINTS = {"1-0": (2, 0), "0-1": (0, 2), "1/2-1/2": (1, 1)}

S = ("crashes", "direct", "wins", "sonneborn")
F = ("direct", "sonneborn", "mobility", "wins")
N = ("sonneborn", "black-games", "wins", "black-wins", "direct")
N1 = ("opponents", "black-games", "wins", "black-wins", "direct")


@dataclasses.dataclass(frozen=True)
class Rule:
    """An event of the table: ``games`` paired, matches as (first games, extensions …)."""

    kind: str
    games: int
    goes: tuple[tuple[str, tuple[int, ...]], ...] = ()
    chain: tuple[str, ...] = ()
    lengths: tuple[int, ...] = ()
    disqualifies: bool = False


def _top(to: str, count: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return ((to, tuple(range(1, count + 1))),)


def _league(games: int, to: str, count: int) -> Rule:
    return Rule("table", games, _top(to, count), S, disqualifies=True)


def _stage(games: int, to: str, count: int) -> Rule:
    return Rule("table", games, _top(to, count), N)


def _first(first: str, second: str) -> Rule:
    return Rule("table", 30, ((first, (1,)), (second, (2,))), F)


def _cup(matches: int, pairs: int, *goes: tuple[str, tuple[int, ...]]) -> Rule:
    return Rule("cup", matches, goes, lengths=(pairs,))


SUPERFINAL = Rule("match", 100, lengths=(100, 16, 8))
SEASONS: dict[str, dict[str, Rule]] = {
    "season16": {
        "ql": _league(240, "l2", 6),
        "l2": _league(240, "l1", 4),
        "l1": _league(240, "l1-playoff", 4),
        "l1-playoff": _league(24, "divp", 2),
        "divp": _league(168, "sufi", 2),
        "sufi": SUPERFINAL,
    },
    "season17": {
        "ql": _league(240, "l2", 6),
        "l2": _league(240, "l1-cpu", 4),
        "l1-cpu": _league(480, "playoff", 4),
        "l1-gpu": _league(720, "playoff", 2),
        "playoff": _league(60, "divp", 4),
        "divp": _league(180, "sufi", 2),
        "sufi": SUPERFINAL,
    },
    "cup": {
        "round-32": _cup(16, 2, *_top("round-16", 16)),
        "round-16": _cup(8, 3, *_top("quarterfinal", 8)),
        "quarterfinal": _cup(4, 4, *_top("semifinal", 4)),
        "semifinal": _cup(2, 6, ("bronze", (3, 4)), ("final", (1, 2))),
        "bronze": _cup(1, 8),
        "final": _cup(1, 12),
    },
    "frc": {
        "league-a": _first("semi-1", "semi-2"),
        "league-b": _first("semi-1", "semi-2"),
        "league-c": _first("semi-2", "semi-1"),
        "league-d": _first("semi-2", "semi-1"),
        "semi-1": Rule("table", 24, _top("final-league", 2), F),
        "semi-2": Rule("table", 24, _top("final-league", 2), F),
        "final-league": Rule("table", 48, _top("final", 2), F),
        "final": Rule("match", 50, lengths=(50, 2)),
    },
    "ntcec1": {
        "stage-1": Rule(
            "swiss",
            112,
            (
                ("stage-2a", (1, 4, 5, 8, 9, 12, 13, 16)),
                ("stage-2b", (2, 3, 6, 7, 10, 11, 14, 15)),
            ),
            N1,
        ),
        "stage-2a": _stage(56, "stage-3", 4),
        "stage-2b": _stage(56, "stage-3", 4),
        "stage-3": _stage(56, "stage-4", 4),
        "stage-4": _stage(36, "superfinal", 2),
        "superfinal": Rule("match", 48, lengths=(48, 4)),
    },
}


@dataclasses.dataclass
class Game:
    """A paired game; ``halves`` of White and Black once it is played."""

    white: str
    black: str
    halves: tuple[int, int] | None = None
    mobility: float = 0.0
    crashed: str = ""
    cancelled: bool = False


@dataclasses.dataclass
class Event:
    """What the journal says of an event."""

    entrants: list[str] = dataclasses.field(default_factory=list)
    games: list[Game] = dataclasses.field(default_factory=list)
    out: set[str] = dataclasses.field(default_factory=set)
    choices: list[tuple[list[str], list[str]]] = dataclasses.field(default_factory=list)
    promoted: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    seats: dict[tuple[str, int], str] = dataclasses.field(default_factory=dict)
    rows: list[dict[str, Any]] = dataclasses.field(default_factory=list)


def read(lines: Iterable[str]) -> tuple[dict[str, Event], str]:
    """Return the events of a journal, and the champion."""
    events: dict[str, Event] = defaultdict(Event)
    games: dict[str, Game] = {}
    asked: dict[str, list[str]] = {}
    champion = ""
    for line in lines:
        raw = json.loads(line)
        kind, data = raw["kind"], raw["data"]
        if kind in {"games_paired", "game_finished", "engine_excluded"}:
            _play(events, games, kind, data)
        elif kind == "decision_needed":
            asked[data["decision"]] = data["engines"]
        elif kind == "decided":
            seat = re.fullmatch(r".*:seat-(\d+)-(.+)", data["decision"])
            if seat:  # of a disqualified engine: given to another, or to nobody
                events[data["event"]].seats[seat[2], int(seat[1])] = data["choose"][0]
            else:
                events[data["event"]].choices.append((asked[data["decision"]], data["choose"]))
        elif kind == "season_finished":
            champion = data["champion"]
        elif kind in {"event_started", "event_ranked", "promoted"}:
            _turn(events[data["event"]], kind, data)
    return dict(events), champion


def _turn(event: Event, kind: str, data: dict[str, Any]) -> None:
    if kind == "event_started":
        event.entrants = data["entrants"]
    elif kind == "event_ranked":
        event.rows = data["rows"]
    else:
        event.promoted[data["to"]] = data["engines"]


def _play(
    events: dict[str, Event], games: dict[str, Game], kind: str, data: dict[str, Any]
) -> None:
    if kind == "games_paired":
        for paired in data["games"]:
            games[paired["game"]] = Game(paired["white"], paired["black"])
            events[data["event"]].games.append(games[paired["game"]])
    elif kind == "game_finished":
        _finish(games[data["game"]], data)
    else:
        events[data["event"]].out.add(data["engine"])
        for name in data["cancelled"]:
            games[name].cancelled = True


def _finish(game: Game, data: dict[str, Any]) -> None:
    assert game.halves is None, "a second result"
    assert not game.cancelled, "a cancelled game was played"
    game.halves, game.mobility = POINTS[data["result"]], data["r_mobility"]
    if data["ending"] in CRASHES:
        game.crashed = game.white if data["loser"] == "white" else game.black


def check(season: str, lines: Iterable[str]) -> dict[str, Event]:
    """Count a season again; every difference to the journal is an ``AssertionError``."""
    found, champion = read(lines)
    rules = SEASONS[season]
    assert set(found) == set(rules)
    order: list[str] = []
    for name, rule in rules.items():
        event = found[name]
        order = {"cup": _cup_order, "match": _match_order}.get(rule.kind, _table_order)(event, rule)
        for to, places in rule.goes:
            out = {(to, place) for place in places if order[place - 1] in event.out}
            assert {seat for seat in event.seats if seat[0] == to} == out, name
            takers = [event.seats.get((to, place), order[place - 1]) for place in places]
            assert event.promoted[to] == [engine for engine in takers if engine != "nobody"], name
        promoted = event.promoted
        assert set(promoted) == {to for to, _ in rule.goes}, name
        for to, engines in promoted.items():
            assert set(engines) <= set(found[to].entrants), f"{name}: who plays {to}"
    assert champion == order[0]
    return found


def _pairs(games: Iterable[Game]) -> Counter[frozenset[str]]:
    return Counter(frozenset((game.white, game.black)) for game in games)


def _table_order(event: Event, rule: Rule) -> list[str]:
    """Rank a league or Swiss by points and its chain."""
    assert len(event.games) == rule.games
    assert all((game.halves is None) == game.cancelled for game in event.games)
    if rule.kind == "swiss":
        assert set(_pairs(event.games).values()) == {1}
    else:
        size = len(event.entrants)
        assert set(_pairs(event.games).values()) == {2 * rule.games // size // (size - 1)}
    crashes = Counter(game.crashed for game in event.games if game.crashed)
    guilty = (
        {engine for engine, count in crashes.items() if count >= 3} if rule.disqualifies else ()
    )
    assert event.out == set(guilty)
    counting = [engine for engine in event.entrants if engine not in event.out]
    keys = _keys(event, rule.chain, counting, crashes)
    _check_numbers(event, rule.chain, keys)
    # S16-15c, 15d: whose results are annulled is last, among such by what stays counted: crashes.
    keys |= {engine: (Fraction(-1), Fraction(-crashes[engine])) for engine in event.out}
    everybody = sorted(keys, key=lambda engine: (keys[engine], _lot(event, engine)), reverse=True)
    _check_decisions(event, rule, everybody, keys)
    return everybody


def _lot(event: Event, engine: str) -> tuple[int, int]:
    """Order those whom the chain leaves level: as the organizers chose, then by seed."""
    chosen = [choice.index(engine) for _, choice in event.choices if engine in choice]
    return -chosen[0] if chosen else -len(event.entrants), -event.entrants.index(engine)


def _keys(
    event: Event, chain: Sequence[str], counting: Sequence[str], crashes: Counter[str]
) -> dict[str, tuple[Fraction, ...]]:
    """Return by what each engine is ordered, criterion by criterion, points first.

    "The direct encounter between the tied engines" (S16-12c) needs to know who they are: those
    with the same numbers so far.
    """
    numbers, seen = _numbers(event, counting, crashes)
    keys: dict[str, tuple[Fraction, ...]] = dict.fromkeys(counting, ())
    for name in ("points", *chain):
        found = numbers[name]
        if name == "direct":
            found = dict.fromkeys(counting, Fraction(0))
            for _, engine, other, halves in seen:
                found[engine] += Fraction(halves, 2) * (keys[engine] == keys[other])
        keys = {engine: (*key, found[engine]) for engine, key in keys.items()}
    return keys


def _numbers(
    event: Event, counting: Sequence[str], crashes: Counter[str]
) -> tuple[dict[str, dict[str, Fraction]], list[tuple[Game, str, str, int]]]:
    """Return the numbers that do not depend on who is tied, and the games from both sides."""
    numbers = {name: dict.fromkeys(counting, Fraction(0)) for name in (*S, *F, *N1, "points")}
    games = [g for g in event.games if g.halves and not {g.white, g.black} & event.out]
    seen = [(g, *half) for g in games for half in _sides(g)]
    for game, engine, _, halves in seen:
        numbers["points"][engine] += Fraction(halves, 2)
        numbers["wins"][engine] += halves == 2
        numbers["black-games"][engine] += engine == game.black
        numbers["black-wins"][engine] += engine == game.black and halves == 2
        share = Fraction(game.mobility)
        numbers["mobility"][engine] += share if engine == game.white else 1 - share
    points = numbers["points"]
    for _, engine, other, halves in seen:
        numbers["sonneborn"][engine] += Fraction(halves, 2) * points[other]
        numbers["opponents"][engine] += points[other]
    for engine in counting:
        numbers["crashes"][engine] = Fraction(-crashes[engine])
    return numbers, seen


WORDS = {
    "crashes": "crashes",
    "direct": "direct-encounter",
    "wins": "wins",
    "sonneborn": "sonneborn-berger",
    "opponents": "opponents-score",
    "black-games": "black-games",
    "black-wins": "black-wins",
}
PARTS = {"direct": 2, "sonneborn": 4, "opponents": 2}  # of a point, in which the journal counts


def _check_numbers(
    event: Event, chain: Sequence[str], keys: dict[str, tuple[Fraction, ...]]
) -> None:
    """Hold the journaled numbers, ranks and words against those of the recount."""
    groups = Counter(key[:place] for key in keys.values() for place in range(len(key) + 1))
    for row in event.rows:
        key = keys.get(row["engine"])
        if key is None:
            continue  # excluded
        assert row["half_points"] == 2 * key[0]
        by = next((at for at in range(1, len(key) + 1) if groups[key[:at]] == 1), None)
        word = (
            "" if by is None else ("points", *(WORDS.get(c, "r-mobility") for c in chain))[by - 1]
        )
        assert row["decided_by"] == word, (row, key)
        for at, name in enumerate(chain, start=1):
            if name == "mobility":
                continue  # a float there, an exact fraction here
            told = row["tiebreaks"].get(WORDS[name])
            if name == "direct" and groups[key[:at]] == 1:
                assert told is None, "a direct encounter of an engine that is level with nobody"
                continue
            number = -key[at] if name == "crashes" else key[at]
            assert told == number * PARTS.get(name, 1), (name, row, key)


def _sides(game: Game) -> list[tuple[str, str, int]]:
    white, black = game.halves or (0, 0)
    return [(game.white, game.black, white), (game.black, game.white, black)]


def _check_decisions(
    event: Event, rule: Rule, ordered: Sequence[str], keys: dict[str, tuple[Fraction, ...]]
) -> None:
    """Ties are decided by the organizers if a line runs through them, and are real ties."""
    for engines, _ in event.choices:
        assert len({keys[engine] for engine in engines}) == 1
    asked = {engine for engines, _ in event.choices for engine in engines}
    leads = {place: to for to, places in rule.goes for place in places}
    places = enumerate(ordered, start=1)
    for _, level in itertools.groupby(places, key=lambda item: keys[item[1]]):
        tied = list(level)
        if tied[0][1] in event.out:
            continue  # no claim to a promoted place
        if len({leads.get(place) for place, _ in tied}) > 1:
            assert {engine for _, engine in tied} <= asked


def _scores(games: Sequence[Game]) -> list[Counter[str]]:
    """Return the half points after each game, from none on."""
    after: list[Counter[str]] = [Counter()]
    for game in games:
        white, black = game.halves or (0, 0)
        after.append(after[-1] + Counter({game.white: white, game.black: black}))
    return after


def _level(score: Counter[str]) -> bool:
    """Say whether both have the same; a Counter leaves out who has nothing."""
    return len(set(score.values())) < 2 and len(score) != 1


def _cup_order(event: Event, rule: Rule) -> list[str]:
    """Find the winners of matches, each stopped as soon as it was decided (CUP-3)."""
    grouped: dict[frozenset[str], list[Game]] = {}
    for game in event.games:
        grouped.setdefault(frozenset((game.white, game.black)), []).append(game)
    assert len(grouped) == rule.games
    winners, losers = [], []
    for players, games in grouped.items():
        scores, most = _scores(games), 2 * rule.lengths[0]
        decided = [number for number, score in enumerate(scores) if _is_over(score, number, most)]
        assert decided[:1] == [len(games)]
        winner = max(players, key=lambda engine, score=scores[-1]: score[engine])
        winners.append(winner)
        losers += players - {winner}
    return winners + losers


def _is_over(score: Counter[str], played: int, most: int) -> bool:
    """Say whether a Cup match is decided: more than half, or ahead after a further pair."""
    if played <= most:
        return max(score.values(), default=0) > most
    return played % 2 == 0 and not _level(score)


def _match_order(event: Event, rule: Rule) -> list[str]:
    """Find the winner of a match, and that it had the sets it needed and no more."""
    scores, ends = _scores(event.games), [0]
    for length in itertools.chain(rule.lengths, itertools.repeat(rule.lengths[-1])):
        ends.append(ends[-1] + length)
        if ends[-1] >= len(event.games) or not _level(scores[ends[-1]]):
            break
    assert ends[-1] == len(event.games)
    assert not _level(scores[-1])
    return sorted(event.entrants, key=lambda engine: -scores[-1][engine])
