"""What keeps a season's next game from being played: what is waited for, and until when.

Told to spectators and operators alike, as plain data. It follows from the state alone, so it
says since when something stands (``since_ms``, the last journaled moment) and never how long.
There is nothing to tell while a game is in flight, or once the season is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.season import decisions, interruption
from orchestrator.season.fold import events, orders, seeding
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState
PLAYERS = 2  # so many are named before their event has begun


def waits(state: State) -> list[dict[str, Any]]:
    """Return what is waited for; ``for`` is one of the kinds below, in their order.

    ``hold`` (the farm), ``pause`` (the operator), ``verdict`` on an interruption, ``hall``,
    ``organizers``, ``host`` that is away, ``gate`` before an event: it opens at ``until_ms``
    (None: when the operator says so).
    """
    if state.over or state.running is not None:
        return []
    return [_EMPTY | {"since_ms": state.at_ms} | blocker for blocker in _reasons(state)]


_EMPTY = {"event": "", "game": "", "reason": "", "until_ms": None}


def _reasons(state: State) -> Iterator[dict[str, Any]]:
    if state.held:
        yield {"for": "hold", "reason": state.held}
    elif state.paused:
        yield {"for": "pause", "reason": state.paused}
    if state.lost is not None:
        yield {"for": "verdict", "game": state.lost.ended.game}
    elif (game := state.next_game()) is None:
        yield from _between_games(state)
    elif state.ready_game() is not None:
        yield {"for": "hall", "game": game, "event": state.games[game].event}


def _between_games(state: State) -> Iterator[dict[str, Any]]:
    """Yield what must happen before a game can come next."""
    for question in interruption.outstanding(state):
        game = question.removesuffix(interruption.ASKED)
        yield {"for": "organizers", "game": game, "reason": f"how {game} goes on"}
    for asked in decisions.outstanding(state):
        yield {"for": "organizers", "event": asked.event, "reason": asked.about}
    if any(not event.all_played for event in state.events.values()):
        yield from ({"for": "host", "reason": host.reason} for host in state.away.values())
    for event in state.events.values():
        if event.status is events.Status.GATE:
            yield {"for": "gate", "event": event.id, "until_ms": event.opens_at_ms}


def coming(state: State) -> dict[str, Any] | None:
    """Return the game that comes next, behind the one in flight, else the event; None without one.

    ``engines`` are names: the players of the game, White first, or the two of a match to come.
    """
    if state.over:
        return None
    name = state.next_game() if state.running is None else _behind(state, state.running.game)
    if name is not None:
        game = state.games[name]
        event = state.events[game.event]
        players = [orders.pinned(state, event, engine).name for engine in (game.white, game.black)]
        return _coming(event, game.id, game.round, players)
    coming = _coming_event(state)
    return None if coming is None else _coming(coming, "", "", _players(state, coming))


def _behind(state: State, running: str) -> str | None:
    """Return the first open game that is paired behind the one in flight, of its event."""
    event = state.events[state.games[running].event]
    waiting = (state.games[name] for name in event.order[event.cursor :])
    return next((game.id for game in waiting if game.open and game.id != running), None)


def _coming(event: events.EventState, game: str, round_: str, engines: list[str]) -> dict[str, Any]:
    next_game = {"event": event.id, "event_name": event.spec.name, "game": game, "round": round_}
    return next_game | {"engines": engines}


def _coming_event(state: State) -> events.EventState | None:
    """Return the event that begins next: of those behind a gate the first to open."""
    gates = [event for event in state.events.values() if event.status is events.Status.GATE]
    never = float("inf")  # of a gate that only the operator opens
    return min(
        gates,
        key=lambda event: never if event.opens_at_ms is None else event.opens_at_ms,
        default=None,
    )


def _players(state: State, event: events.EventState) -> list[str]:
    begun = seeding.started(state, event)
    if begun is None or len(begun.entrants) != PLAYERS:
        return []
    return [state.engines[engine].name for engine in begun.entrants]
