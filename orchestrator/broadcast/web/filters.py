"""The filters of a download of many games, and the errors for wrong ones.

An engine is named by any part of a name it plays under, or by its whole id; upper and lower
case are one. Words that name nothing of the season are told instead of answered by an empty
file (an ending is one that a game has had); what exists and no finished game has (yet), such as
a result, gives an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, get_args

from orchestrator import contract
from orchestrator.broadcast.content import season_view
from orchestrator.season import published, views
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

NAMES: Final = ("event", "engine", "white", "black", "result", "ending", "eco")
_ENGINES: Final = ("engine", "white", "black")
_ECO: Final = re.compile(r"[A-E]\d{0,2}")


def wrong(asked: Mapping[str, str]) -> str:
    """Return what cannot be understood in any season, '' where there is nothing."""
    if unknown := sorted(set(asked) - set(NAMES)):
        return f"unknown filter {unknown[0]!r}; filters: {', '.join(NAMES)}"
    result, eco = asked.get("result"), asked.get("eco")
    if result and result not in get_args(contract.Result):
        return f"result {result!r} is none; results: {', '.join(get_args(contract.Result))}"
    if eco and not _ECO.fullmatch(eco.upper()):
        return f"{eco!r} begins no ECO code; codes: A00 to E99, or their beginning"
    return ""


def missing(season: season_view.Season, asked: Mapping[str, str]) -> str:
    """Return what is asked for and not in a season, '' where all is."""
    event, by_id = asked.get("event"), season.state.events
    if event and event not in by_id:
        return f"event {event!r} in season {season.id!r}; events: {', '.join(by_id)}"
    for name in _ENGINES:
        text = asked.get(name)
        if text and not any(_called(*named, text) for named in _engines(season.state)):
            engine_names = ", ".join(
                f"{spec.name} ({spec.id})" for spec in season.state.engines.values()
            )
            return f"engine {text!r} in season {season.id!r}; engines: {engine_names}"
    ending, details = asked.get("ending", ""), sorted({_details(season, g) for g in played(season)})
    if ending and not any(ending.lower() in text.lower() for text in details):
        endings = ", ".join(details) or "none yet"
        return f"game of season {season.id!r} that ended by {ending!r}; endings: {endings}"
    return ""


def chosen(season: season_view.Season, asked: Mapping[str, str]) -> list[events.Game]:
    """Return the finished games that pass, in their order of play."""
    return [game for game in played(season) if _passes(season, game, asked)]


def played(season: season_view.Season) -> list[events.Game]:
    """Return the finished games of a season in their order of play."""
    in_order = (
        season.state.games[name] for event in season.state.events.values() for name in event.order
    )
    return [game for game in in_order if game.finished is not None]


def _engines(state: season_state.SeasonState) -> Iterator[tuple[str, str]]:
    """Yield id and name of every engine, as it is now and as events have pinned it."""
    for engine in tuple(state.engines.values()):
        yield engine.id, engine.name
    for event in state.events.values():
        yield from ((engine.id, engine.name) for engine in tuple(event.pinned.values()))


def _called(engine: str, name: str, text: str) -> bool:
    """Say whether an engine of this id and name is meant by a text."""
    return text.lower() in name.lower() or text.lower() == engine.lower()


def _passes(season: season_view.Season, game: events.Game, asked: Mapping[str, str]) -> bool:
    def sits(engine: str, text: str) -> bool:
        return _called(engine, views.name(season.state, engine, game.event), text)

    checks: dict[str, Callable[[str], bool]] = {
        "event": lambda text: game.event == text,
        "engine": lambda text: sits(game.white, text) or sits(game.black, text),
        "white": lambda text: sits(game.white, text),
        "black": lambda text: sits(game.black, text),
        "result": lambda text: published.result(season.state, game) == text,
        "ending": lambda text: text.lower() in _details(season, game).lower(),
        "eco": lambda text: _eco(season, game).startswith(text.upper()),
    }
    return all(checks[name](text) for name, text in asked.items() if text)


def _details(season: season_view.Season, game: events.Game) -> str:
    return published.details(season.state, game)


def _eco(season: season_view.Season, game: events.Game) -> str:
    brief = season.brief(game)
    return brief.eco if brief else ""
