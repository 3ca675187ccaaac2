"""The description of the read API in OpenAPI 3.1, written by hand beside the routes.

A test walks it: every path answers, and answers what is described.
"""

from __future__ import annotations

from typing import Any, Final

from orchestrator.common import version

_SEASON: Final = ("season", "The season's id.")
_EVENT: Final = ("event", "The event's id.")
_GAME: Final = ("game", "The game's id, such as `league.12`.")
_PLY: Final = ("ply", "The ply's number from 1, book plies included.")
_FILTERS: Final = {
    "event": "Only games of this event.",
    "engine": "Only games of engines whose name holds this text, or whose id it is.",
    "white": "Only games in which such an engine has White.",
    "black": "Only games in which such an engine has Black.",
    "result": "Only games with this result: 1-0, 0-1 or 1/2-1/2.",
    "ending": "Only games whose ending holds this text, such as `draw rule`.",
    "eco": "Only games whose ECO code begins so.",
}


def document() -> dict[str, Any]:
    """Return the description."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tournament Farm: read API",
            "version": version.VERSION,
            "description": "Everything that spectators may know, and nothing that changes"
            " anything. Times are milliseconds since 1970 (UTC), evals White's view. Answers"
            " carry an ETag; ask again with If-None-Match.",
        },
        "paths": {
            "/api/v1/seasons": _get("All seasons in the order of their launch", "array"),
            "/api/v1/seasons/{season}": _get("Where a season stands, with its events", _SEASON),
            "/api/v1/seasons/{season}/live": _get(
                "The game in flight, else the one that was finished last", _SEASON
            ),
            "/api/v1/seasons/{season}/events/{event}": _get(
                "Standings with every tiebreak, crosstable, bracket, statistics", _SEASON, _EVENT
            ),
            "/api/v1/seasons/{season}/events/{event}/schedule": _get(
                "Games in their order of play; starts ahead are estimated", _SEASON, _EVENT, "array"
            ),
            "/api/v1/seasons/{season}/graph": _get("The graph of the season", _SEASON),
            "/api/v1/seasons/{season}/log": _get("Faults and decisions", _SEASON, "array"),
            "/api/v1/seasons/{season}/statistics": _get("Results of all its games", _SEASON),
            "/api/v1/seasons/{season}/forecast": _get(
                "Chances of places, promotion, relegation and title; `absent` says why not", _SEASON
            ),
            "/api/v1/ratings": _get("The rating list of all seasons; `absent` says why not"),
            "/api/v1/seasons/{season}/games/{game}": _get(
                "A game with all its plies", _SEASON, _GAME
            ),
            "/api/v1/seasons/{season}/games/{game}/plies/{ply}": _get(
                "A ply with the positions of its variation", _SEASON, _GAME, _PLY
            ),
            "/api/v1/live": _stream(),
            "/pgn/{season}.pgn": _pgn("The games of a season, filtered", _SEASON, filtered=True),
            "/pgn/{season}/{event}.pgn": _pgn("The games of an event", _SEASON, _EVENT),
            "/pgn/{season}/games/{game}.pgn": _pgn("One game", _SEASON, _GAME),
            "/lichess/live.pgn": _pgn("The game in flight, for Lichess' broadcaster"),
            "/lichess/{season}/games/{game}.pgn": _pgn(
                "One game for Lichess' broadcaster", _SEASON, _GAME
            ),
            "/lichess/{season}/{event}/{round}.pgn": _pgn(
                "A round for Lichess' broadcaster",
                _SEASON,
                _EVENT,
                ("round", "The round's number: what stands before the point in Round."),
            ),
        },
    }


def _parameters(places: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": text,
            "schema": {"type": "integer" if name == "ply" else "string"},
        }
        for name, text in places
    ]


def _get(summary: str, *places: tuple[str, str] | str) -> dict[str, Any]:
    kind = "array" if "array" in places else "object"
    named = tuple(place for place in places if not isinstance(place, str))
    answer = {"application/json": {"schema": {"type": kind}}}
    return _operation(summary, _parameters(named), answer)


def _pgn(summary: str, *places: tuple[str, str], filtered: bool = False) -> dict[str, Any]:
    asked: list[dict[str, Any]] = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in (_FILTERS if filtered else {}).items()
    ]
    answer = {"application/x-chess-pgn": {"schema": {"type": "string"}}}
    return _operation(summary, [*_parameters(places), *asked], answer)


def _stream() -> dict[str, Any]:
    asked = {
        "name": "season",
        "in": "query",
        "description": "The season of the snapshot; default: the one that runs.",
        "schema": {"type": "string"},
    }
    text = "Server-sent events: `snapshot`, then `game`, `ply`, `clock`, `search`, `kibitz`,"
    text += " `result`, `season`, `tables`, `outlook`, `viewers`. Come back with Last-Event-ID for"
    text += " what was missed."
    answer = {"text/event-stream": {"schema": {"type": "string"}}}
    return _operation(text, [asked], answer)


def _operation(
    summary: str, parameters: list[dict[str, Any]], content: dict[str, Any]
) -> dict[str, Any]:
    found = {"description": "What was asked for", "content": content}
    lost = {"description": "There is nothing of that name"}
    return {
        "get": {
            "summary": summary,
            "parameters": parameters,
            "responses": {"200": found, "404": lost},
        }
    }
