"""The description of the read API in OpenAPI 3.1: paths by hand, answers of their types.

Tests walk it: every path answers what is described, and so does every event of the stream.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import json_schema

from orchestrator.broadcast.content import answers
from orchestrator.broadcast.subscriptions import ics, rss
from orchestrator.common import version

Parameter = tuple[str, str]  # its name, and what it is
JSON: Final = "application/json"
PGN: Final = "application/x-chess-pgn"
STREAM: Final = {
    "snapshot": (answers.Snapshot,),
    "game": (answers.GameTold, answers.NoGameTold),
    "ply": (answers.PlyTold,),
    "clock": (answers.ClockTold,),
    "search": (answers.SearchTold,),
    "kibitz": (answers.KibitzTold,),
    "result": (answers.ResultTold,),
    "season": (answers.SeasonTold,),
    "tables": (answers.TablesTold,),
    "outlook": (answers.OutlookTold,),
    "viewers": (answers.ViewersTold,),
}
_SEASON: Final = ("season", "The season's id.")
_EVENT: Final = ("event", "The event's id.")
_GAME: Final = ("game", "The game's id, such as `league.12`.")
_PLY: Final = ("ply", "The ply's number from 1, book plies included.")
_ROUND: Final = (
    "round",
    "The round's number: what stands before the point in Round, in a knockout the match.",
)
_WHICH: Final = "The season of the snapshot; default: the one that runs."
_FILTERS: Final = {
    "event": "Only games of this event.",
    "engine": "Only games of engines whose name holds this text, or whose id it is.",
    "white": "Only games in which such an engine has White.",
    "black": "Only games in which such an engine has Black.",
    "result": "Only games with this result: 1-0, 0-1 or 1/2-1/2.",
    "ending": "Only games whose ending holds this text, such as `draw rule`.",
    "eco": "Only games whose ECO code begins so.",
}
_PAGES: Final = {
    "offset": "How many to leave out at the start; default: 0.",
    "limit": "How many to give at most; default: all.",
}
_TOLD: Final = {
    200: "What was asked for",
    304: "It is as the ETag in If-None-Match says",
    400: "The question is not understood",
    404: "There is nothing of that name",
    503: "There is no room at this moment; Retry-After says when to ask again",
}
_REFERENCE: Final = "#/components/schemas/{model}"


def document(public: str = "") -> dict[str, Any]:
    """Return the description; ``public`` is the page's base address, where it is known."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tournament Farm: read API",
            "version": version.VERSION,
            "description": "Everything that spectators may know, and nothing that changes"
            " anything. Times are milliseconds since 1970 (UTC), evals White's view. Answers"
            " carry an ETag; ask again with If-None-Match.",
            "license": {"name": "GPL-3.0-or-later", "identifier": "GPL-3.0-or-later"},
        },
        "servers": [{"url": public or "/"}],
        "paths": _paths(),
        "components": {"schemas": _schemas()},
    }


def _paths() -> dict[str, Any]:
    season = "/api/v1/seasons/{season}"
    return {
        "/api/v1/seasons": _list(
            "listSeasons", "All seasons in the order of their launch", answers.SeasonOverview
        ),
        season: _get(
            "getSeason", "Where a season stands, with its events", answers.Season, _SEASON
        ),
        f"{season}/live": _get(
            "getLiveGame",
            "The game in flight, else the one that was finished last",
            answers.Game,
            _SEASON,
        ),
        f"{season}/events/{{event}}": _get(
            "getEvent",
            "Standings with every tiebreak, crosstable, bracket, statistics",
            answers.Event,
            _SEASON,
            _EVENT,
        ),
        f"{season}/events/{{event}}/schedule": _list(
            "listSchedule",
            "Games in their order of play; starts ahead are estimated",
            answers.ScheduledGame,
            _SEASON,
            _EVENT,
        ),
        f"{season}/test": _get(
            "getMatchTest",
            "Of a match (`farm match -live`, `farm match test`): Elo, pairs, sequential test",
            answers.MatchTest,
            _SEASON,
        ),
        "/api/v1/tests": _list(
            "listTests",
            "Test matches of `farm match test`, the newest first",
            answers.TestMatchOverview,
        ),
        f"{season}/graph": _get("getGraph", "The graph of the season", answers.Graph, _SEASON),
        f"{season}/log": _list("listLog", "Faults and decisions", answers.LogLine, _SEASON),
        f"{season}/statistics": _get(
            "getStatistics", "Results of all its games", answers.Statistics, _SEASON
        ),
        f"{season}/forecast": _get(
            "getForecast",
            "Chances of places, promotion, relegation and title; `absent` says why not",
            answers.Forecast,
            _SEASON,
        ),
        "/api/v1/ratings": _get(
            "getRatings", "The rating list of all seasons; `absent` says why not", answers.Ratings
        ),
        f"{season}/games/{{game}}": _get(
            "getGame", "A game with all its plies", answers.Game, _SEASON, _GAME
        ),
        f"{season}/games/{{game}}/plies/{{ply}}": _get(
            "getPly", "A ply with the positions of its variation", answers.Ply, _SEASON, _GAME, _PLY
        ),
        "/api/v1/snapshot": _snapshot(),
        "/api/v1/live": _stream(),
        "/pgn/{season}.pgn": _text(
            "getSeasonPgn", "The games of a season, filtered", PGN, _SEASON, asked=_FILTERS
        ),
        "/pgn/{season}/{event}.pgn": _text(
            "getEventPgn", "The games of an event", PGN, _SEASON, _EVENT
        ),
        "/pgn/{season}/games/{game}.pgn": _text("getGamePgn", "One game", PGN, _SEASON, _GAME),
        "/feeds/results.rss": _results("getResults", "the season that is shown"),
        "/feeds/{season}/results.rss": _results("getSeasonResults", "a season", _SEASON),
        "/feeds/schedule.ics": _calendar("getCalendar", "the season that is shown"),
        "/feeds/{season}/schedule.ics": _calendar("getSeasonCalendar", "a season", _SEASON),
        "/lichess/live.pgn": _text(
            "getLichessLive", "The game in flight, for Lichess' broadcaster", PGN
        ),
        "/lichess/{season}/games/{game}.pgn": _text(
            "getLichessGame", "One game for Lichess' broadcaster", PGN, _SEASON, _GAME
        ),
        "/lichess/{season}/{event}/{round}.pgn": _text(
            "getLichessRound",
            "A round for Lichess' broadcaster: of many games the newest 64",
            PGN,
            *(_SEASON, _EVENT, _ROUND),
        ),
    }


def _schemas() -> dict[str, Any]:
    """Return the schemas of all answers, by their types' names."""
    types = [
        answer
        for name, answer in vars(answers).items()
        if isinstance(answer, type) and issubclass(answer, answers.Answer)
        if answer is not answers.Answer and not name.startswith("_")
    ]
    _, made = json_schema.models_json_schema(
        [(answer, "validation") for answer in types], ref_template=_REFERENCE
    )
    schemas: dict[str, Any] = made["$defs"]
    return {name: _plain(schema) for name, schema in schemas.items()}


def _plain(schema: Any) -> Any:
    """Leave out what misleads clients: titles of fields, defaults, that nothing may be added."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {key: _plain(value) for key, value in schema.items() if key != "default"}
    if cleaned.get("additionalProperties") is False:
        del cleaned["additionalProperties"]  # a later farm may tell more
    if isinstance(cleaned.get("title"), str):
        del cleaned["title"]
    return cleaned


def _reference(answer: type[answers.Answer]) -> dict[str, str]:
    return {"$ref": _REFERENCE.format(model=answer.__name__)}


def _get(
    operation: str, summary: str, answer: type[answers.Answer], *places: Parameter
) -> dict[str, Any]:
    content = {JSON: {"schema": _reference(answer)}}
    return _operation(operation, summary, _parameters(places), content, 304, 404)


def _list(
    operation: str, summary: str, answer: type[answers.Answer], *places: Parameter
) -> dict[str, Any]:
    content = {JSON: {"schema": {"type": "array", "items": _reference(answer)}}}
    asked = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "integer"}}
        for name, text in _PAGES.items()
    ]
    made = _operation(operation, summary, [*_parameters(places), *asked], content, 304, 400, 404)
    made["get"]["responses"]["200"]["headers"] |= {
        "X-Total-Count": _header(
            "How many there are in all, where a page was asked for", "integer"
        ),
        "Link": _header('The address of the next page, `rel="next"`'),
    }
    return made


def _text(
    operation: str,
    summary: str,
    media_type: str,
    *places: Parameter,
    asked: dict[str, str] | None = None,
) -> dict[str, Any]:
    filters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}
        for name, text in (asked or {}).items()
    ]
    content = {media_type: {"schema": {"type": "string"}}}
    parameters = [*_parameters(places), *filters]
    codes = (304, 400, 404, 503) if filters else (304, 404)
    return _operation(operation, summary, parameters, content, *codes)


def _results(operation: str, whose: str, *places: Parameter) -> dict[str, Any]:
    summary = f"The last {rss.ITEMS} results of {whose}, for feed readers"
    return _text(operation, summary, rss.MEDIA_TYPE, *places)


def _calendar(operation: str, whose: str, *places: Parameter) -> dict[str, Any]:
    summary = f"Games played and ahead of {whose}, and its stages ahead, for calendars"
    return _text(operation, summary, ics.MEDIA_TYPE, *places)


def _asked(name: str, description: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "description": description,
        "schema": {"type": "string"},
    }


def _snapshot() -> dict[str, Any]:
    content = {JSON: {"schema": _reference(answers.Snapshot)}}
    return _operation(
        "getSnapshot",
        "Where things stand now, as the stream begins; go on from its `id` by the stream's `after`",
        [_asked("season", _WHICH)],
        content,
        *(304, 404),
    )


def _stream() -> dict[str, Any]:
    asked = [
        _asked("season", _WHICH),
        _asked("after", "The `id` of a snapshot: what came after it is told, and no snapshot."),
    ]
    kinds = ", ".join(f"`{name}`" for name in STREAM if name != "snapshot")
    text = f"Server-sent events: `snapshot`, then {kinds}. Come back with Last-Event-ID for"
    text += " what was missed. `x-events` names the type of each event's data."
    events = {
        name: {"anyOf": [_reference(kind) for kind in types]} if types[1:] else _reference(types[0])
        for name, types in STREAM.items()
    }
    answer = {"text/event-stream": {"schema": {"type": "string"}, "x-events": events}}
    made = _operation("listen", text, asked, answer, 404, 503)
    del made["get"]["responses"]["200"]["headers"]
    return made


def _parameters(places: tuple[Parameter, ...]) -> list[dict[str, Any]]:
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


def _header(text: str, kind: str = "string") -> dict[str, Any]:
    return {"description": text, "schema": {"type": kind}}


def _operation(
    operation: str,
    summary: str,
    parameters: list[dict[str, Any]],
    content: dict[str, Any],
    *codes: int,
) -> dict[str, Any]:
    error = {JSON: {"schema": _reference(answers.Error)}}
    answered: dict[str, Any] = {
        "200": {
            "description": _TOLD[200],
            "headers": {"ETag": _header("What tells this answer from other versions of it")},
            "content": content,
        }
    }
    for code in codes:
        answered[str(code)] = {"description": _TOLD[code]}
        if code >= 400:
            answered[str(code)]["content"] = error
    return {
        "get": {
            "operationId": operation,
            "summary": summary,
            "parameters": parameters,
            "responses": answered,
        }
    }
