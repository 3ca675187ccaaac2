"""``Eventcrosstable.json``: a whole Cup, as TCEC's bracket is drawn from it.

The viewer finds the pairs of later rounds by itself (match i is winner 2i-1 v winner 2i,
the losers of the semifinals play for bronze), and takes a match for finished when
``results`` holds a score for it: so a running match has none there.
"""

from __future__ import annotations

from typing import Any, TypedDict

from orchestrator.broadcast.content import tables
from orchestrator.broadcast.feeds.tcec import names
from orchestrator.season.fold import events, tally
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState


class _Match(TypedDict):
    """A match of ``tables.bracket``."""

    match: int
    status: str
    games: list[str]
    sides: list[dict[str, Any] | None]


def document(state: State) -> dict[str, Any]:
    """Return the Cup as far as it has come; its first round must have been drawn."""
    rounds = [(event, _matches(state, event)) for event in state.events.values()]
    numbered = _numbered(rounds)
    drawn = [(n, event, match) for n, event, match in numbered if all(match["sides"])]
    return {
        "EventTable": {f"Match {n}": _row(state, event, match) for n, event, match in drawn},
        "CrossTable": {f"Match {n}": _table(state, event, match) for n, event, match in drawn},
        "teams": [[_team(side, match) for side in match["sides"]] for match in rounds[0][1]],
        "matchresults": [
            [_score(side) for side in match["sides"]] for _, _, match in drawn if match["games"]
        ],
        "results": [_results(state, rounds)],
    }


def _matches(state: State, event: events.EventState) -> list[_Match]:
    bracket = tables.bracket(state, event)
    matches: list[_Match] = bracket["matches"] if bracket else []
    return matches


_Rounds = list[tuple[events.EventState, list[_Match]]]


def _numbered(rounds: _Rounds) -> list[tuple[int, events.EventState, _Match]]:
    """Number the matches through the whole Cup, in their order of play."""
    flat = [(event, match) for event, matches in rounds for match in matches]
    return [(number, event, match) for number, (event, match) in enumerate(flat, start=1)]


def _row(state: State, event: events.EventState, match: _Match) -> dict[str, Any]:
    first, second = (side for side in match["sides"] if side is not None)
    leader, runner = (second, first) if second["winner"] else (first, second)
    games = [state.games[game] for game in match["games"]]
    crashes = {first["engine"]: 0, second["engine"]: 0}
    for game in games:
        done = game.finished
        if done is not None and done.loser is not None and done.ending in tally.CRASHES:
            crashes[game.white if done.loser == "white" else game.black] += 1
    return {
        "Engines": f"{first['name']} v {second['name']}",
        "Winner": leader["name"] if leader["winner"] else "",
        "Runner": runner["name"] if leader["winner"] else "",
        "Games": sum(game.finished is not None for game in games),
        "Points": f"{first['score']:g}-{second['score']:g}",
        "Crashes": "-".join(str(count) for count in crashes.values()),
        "Score": _signs(games, first["engine"]),
        "Gamesno": ",".join(str(event.order.index(game.id) + 1) for game in games),
    }


def _signs(games: list[events.Game], engine: str) -> str:
    signs = ""
    for game in games:
        if game.finished is not None:
            white, black = tally.halves(game.finished.result)
            signs += "0=1"[white if game.white == engine else black]
    return signs


def _table(state: State, event: events.EventState, match: _Match) -> dict[str, Any]:
    """Return the crosstable of one match."""
    sides = [side for side in match["sides"] if side is not None]
    order = sorted(sides, key=lambda side: (not side["winner"], -side["score"]))
    return {
        "Event": names.title(state, event),
        "Order": [side["name"] for side in order],
        "Table": {
            side["name"]: _match_line(state, match, side, sides, rank)
            for rank, side in enumerate(order, start=1)
        },
    }


def _match_line(
    state: State,
    match: _Match,
    side: dict[str, Any],
    sides: list[dict[str, Any]],
    rank: int,
) -> dict[str, Any]:
    other = next(candidate for candidate in sides if candidate["engine"] != side["engine"])
    games = [state.games[game] for game in match["games"]]
    text = _signs(games, side["engine"])
    short = names.abbreviations(player["name"] for player in sides)
    return {
        "Rank": rank,
        "Abbreviation": short[side["name"]],
        "Rating": state.engines[side["engine"]].rating or 0,
        "Elo": 0,
        "Score": side["score"],
        "Games": len(text),
        "Seed": side["seed"],
        "Results": {other["name"]: {"H2h": side["score"], "Text": text, "Scores": []}},
    }


def _team(side: dict[str, Any] | None, match: _Match) -> dict[str, Any]:
    if side is None:
        return {"name": "bye", "winner": -1, "score": 0, "flag": "bye"}
    name = side["name"]
    won = side["winner"] or None in match["sides"]
    return {"name": name, "winner": 1 if won else -1, "score": side["score"], "flag": name}


def _score(side: dict[str, Any] | None) -> dict[str, Any]:
    assert side is not None  # only matches of two engines are asked for
    name, score = side["name"], side["score"]
    return {"name": name, "origscore": score, "lead": -1, "score": -1, "manual": 0}


def _results(state: State, rounds: _Rounds) -> list[list[list[float]]]:
    """Return the scores of finished matches, round by round; the last is final and bronze."""
    stages = names.cup_stages(state)
    by_stage = [(stages[event.id], [_final_score(m) for m in matches]) for event, matches in rounds]
    bronze = [scores for stage, scores in by_stage if stage == names.BRONZE]
    whole = [scores for stage, scores in by_stage if stage != names.BRONZE]
    size = max(1, len(rounds[0][1]))
    padded = [
        scores + [[0.0, 0.0]] * (max(1, size >> number) - len(scores))
        for number, scores in enumerate(whole)
    ]
    if bronze and padded:
        padded[-1] = [*padded[-1], *(bronze[0] or [[0.0, 0.0]])]
    return padded


def _final_score(match: _Match) -> list[float]:
    first, second = match["sides"]
    if first is None or second is None:
        return [0.0, 1.0] if first is None else [1.0, 0.0]
    over = first["winner"] or second["winner"]
    return [first["score"], second["score"]] if over else [0.0, 0.0]
