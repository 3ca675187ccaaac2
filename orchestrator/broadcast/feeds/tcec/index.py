"""The files that lead from one event to the others: seasons, tournament, winners, crashes."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from orchestrator.broadcast.feeds.tcec import names
from orchestrator.season import views
from orchestrator.season.fold import entries, events
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model

State = season_state.SeasonState
_GROUPS: Final = {"cup": 4, "fischerandom": 2, "swiss": 3}  # the first digit of ``dno``
_LEAGUE: Final = 5


def tournament(state: State, event: events.EventState) -> dict[str, Any]:
    """Return what is being played; ``link`` is the event's place in the list of games."""
    return {
        "startgame": 0,
        "season": state.launched.id,
        "cup": names.number(state) if names.is_cup(state) else 0,
        "twitchaccount": "",
        "link": names.link(state, event),
    }


class Seasons:
    """The lists of all seasons; of one that has not changed its part stays as it was."""

    def __init__(self) -> None:
        """Start without a season."""
        self._parts: dict[str, tuple[State, int, _Part]] = {}
        self._order: list[_Part] = []

    def update(self, states: Iterable[State]) -> None:
        """Take all seasons, in the order of their launch."""
        self._order = [self._part(state) for state in states]

    def _part(self, state: State) -> _Part:
        kept = self._parts.get(state.launched.id)
        if kept is not None and kept[0] is state and kept[1] == state.seq:
            return kept[2]
        won = _winner(state) if state.finished else None
        part = _Part(_key(state), _season(state), won)
        self._parts[state.launched.id] = (state, state.seq, part)
        return part

    def gamelist(self) -> dict[str, Any]:
        """Return all seasons with their events that have begun."""
        return {"Seasons": {part.key: part.events for part in self._order}}

    def winners(self) -> list[dict[str, str]]:
        """Return the champions of all finished seasons, the latest first."""
        return [part.winner for part in self._order if part.winner is not None][::-1]


class _Part(NamedTuple):
    key: str
    events: dict[str, Any]
    winner: dict[str, str] | None


def _key(state: State) -> str:
    match = re.fullmatch(r"season(\d+)", state.launched.id)
    return match[1] if match else names.season(state)


def _season(state: State) -> dict[str, Any]:
    begun = [event for event in state.events.values() if event.entrants]
    head: dict[str, Any] = {"download": f"{state.launched.id}.pgn", "proceed": 1}
    if names.is_cup(state):
        stem = names.stem(state, next(iter(state.events.values())))
        head |= {
            "seasonName": names.season(state),
            "eventtag": f"{stem}_event",
            "cup": names.number(state),
        }
    if any(event.spec.variant == "fischerandom" for event in begun):
        head["frc"] = 1
    return head | {"sub": [_event(state, event) for event in begun]}


def _event(state: State, event: events.EventState) -> dict[str, Any]:
    position = list(state.events).index(event.id) + 1
    entry: dict[str, Any] = {
        "id": f"s{state.launched.id}{event.id}".replace("-", ""),
        "no": str(names.number(state)),
        "dno": f"{_group(state, event)}{names.number(state):03}{position:02}",
        "menu": event.spec.name,
        "abb": names.stem(state, event),
        "url": names.link(state, event),
    }
    return entry | ({"frc": 1} if event.spec.variant == "fischerandom" else {})


def _group(state: State, event: events.EventState) -> int:
    if names.is_cup(state):
        return _GROUPS["cup"]
    if event.spec.variant == "fischerandom":
        return _GROUPS["fischerandom"]
    return _GROUPS["swiss"] if isinstance(event.spec.format, model.Swiss) else _LEAGUE


def _winner(state: State) -> dict[str, str]:
    final = state.final
    first, *others = final.rows
    runner = others[0] if others else None
    moment = dt.datetime.fromtimestamp(state.at_ms / 1000, dt.UTC)
    return {
        "name": state.launched.season.name,
        "link": f"#{names.link(state, final)}",
        "winner": views.name(state, first.engine, final.id),
        "runner": views.name(state, runner.engine, final.id) if runner else "",
        "score": f"{first.points:g}-{runner.points:g}" if runner else f"{first.points:g}",
        "date": f"{moment:%B %Y}",
    }


def crashes(
    state: State, event: events.EventState, log: Sequence[Mapping[str, Any]]
) -> list[dict[str, str]]:
    """Return the faults of an event, and what became of them."""
    out = {
        name: line
        for line in log
        if line["kind"] == entries.ENGINE_EXCLUDED and line["event"] == event.id
        for name in line["engines"]
    }
    return [
        _crash(state, event, line, out)
        for line in log
        if line["kind"] == "fault" and line["event"] == event.id and line["game"] in event.order
    ]


def _crash(
    state: State,
    event: events.EventState,
    line: Mapping[str, Any],
    out: Mapping[str, Mapping[str, Any]],
) -> dict[str, str]:
    game = state.games[line["game"]]
    excluded = out.get(line["engines"][0])
    return {
        "gameno": str(event.order.index(game.id) + 1),
        "White": views.name(state, game.white, game.event),
        "Black": views.name(state, game.black, game.event),
        "Reason": line["text"],
        "decision": "counted as a crash" if line["fault"] == "crash" else "a loss",
        "action": excluded["text"] if excluded else "",
        "Result": game.finished.result if game.finished else "*",
        "Log": "",
    }
