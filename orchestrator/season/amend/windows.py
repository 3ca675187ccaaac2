"""When an engine may be updated (S16-13, S17-13, CUP-8a, FRC-8a, N1 Engine Updates).

An update is for events that have not started: what plays in a running one is pinned. It
is judged by the events that the engine can play next, each by its ``updates``. Invariants:

* nothing changes in a running event, whatever anybody allows (S16-13e);
* the director's deadline goes before the file's, but opens no event that is closed;
* an event waits for the latest deadline of its field, with or without a gate of its own
  (S16-13c, S17-13c: an author who was given a deadline plays with what came before it);
* every refusal names the clause that the season file gives.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

from orchestrator.common import errors
from orchestrator.season.fold import apply_engine_updates, events, plan
from orchestrator.season.fold import state as season_state
from orchestrator.season.spec import model


def rule(state: season_state.SeasonState, event: events.EventState) -> model.Updates:
    """Return the update rule of an event."""
    return event.spec.updates or state.launched.season.updates


def playing(state: season_state.SeasonState, engine: str) -> events.EventState | None:
    """Return the running event that an engine plays in."""
    for event in state.events.values():
        if event.status is events.Status.RUNNING and _takes_part(event, engine):
            return event
    return None


def _takes_part(event: events.EventState, engine: str) -> bool:
    return engine in event.entrants and engine not in event.excluded


def upcoming(state: season_state.SeasonState, engine: str) -> list[events.EventState]:
    """Return the events that have not started and that an engine may play next."""
    waiting = (e for e in state.events.values() if e.status in apply_engine_updates.NOT_STARTED)
    return [event for event in waiting if engine in set(_next_field(state, event))]


def _next_field(state: season_state.SeasonState, event: events.EventState) -> Iterator[str]:
    """Yield who enters an event, and who plays now for a place in it."""
    roster = [engine.id for engine in state.launched.engines]
    yield from map(event.seat, (*plan.listed(event.spec, roster), *event.added))
    for source in plan.sources(state.launched.season, event.id):
        arrival, before = event.arrivals.get(source.event), state.events[source.event]
        if arrival is not None:
            yield from map(event.seat, arrival.engines)
        else:
            yield from (engine for engine in before.entrants if _takes_part(before, engine))


def require_open(
    state: season_state.SeasonState, engine: str, event_id: str | None, now_ms: int
) -> list[events.EventState]:
    """Return the events that an update of an engine is for; raise ``RefusedError``.

    An engine that plays now may be updated for an event to come only when that is named:
    nobody shall believe that the running games change.
    """
    now, coming = playing(state, engine), upcoming(state, engine)
    names = ", ".join(event.id for event in coming)
    if now is not None and event_id in {None, now.id}:
        later = f"; for an event to come say --event: {names}" if names else ""
        text = f"{engine} plays {now.id}: no update while it is played"
        seat = "; for its seat there, a substitute: `farm season amend engine`"
        raise errors.RefusedError(f"{text}{_clause(rule(state, now).playing)}{later}{seat}")
    if not coming:
        raise errors.RefusedError(f"{engine} plays no event that is still to come")
    if event_id is not None and event_id not in {event.id for event in coming}:
        text = f"{engine} cannot be updated for {event_id!r}: what it can play next is {names}"
        raise errors.RefusedError(text)
    for event in coming:
        require_window(state, event, engine, now_ms)
    return coming


def require_window(
    state: season_state.SeasonState, event: events.EventState, engine: str, now_ms: int
) -> None:
    """Raise ``RefusedError`` when the window of an event is shut for an engine."""
    asked = rule(state, event)
    if event.status not in apply_engine_updates.NOT_STARTED:
        text = f"event {event.id} has started: no update while it is played"
        raise errors.RefusedError(text + _clause(asked.playing))
    why = _never(state, event, asked) or _too_late(state, event, engine, now_ms, asked)
    if why:
        raise errors.RefusedError(f"{engine or 'no engine'}: {why}{_clause(asked.clause)}")


def latest_deadline_ms(state: season_state.SeasonState, event: events.EventState) -> int:
    """Return the director's last deadline for an event's field, 0 without one.

    One for an engine that cannot enter the event any more counts no longer.
    """
    field = {"", *_next_field(state, event)} if event.deadlines else set()
    return max((at_ms for name, at_ms in event.deadlines.items() if name in field), default=0)


def require_no_deadline_after(
    state: season_state.SeasonState, event: events.EventState, at_ms: int
) -> None:
    """Raise ``RefusedError`` where a gate would open before a deadline that was promised."""
    latest_ms = latest_deadline_ms(state, event)
    if latest_ms > at_ms:
        moment = dt.datetime.fromtimestamp(latest_ms / 1000, dt.UTC).isoformat(timespec="minutes")
        raise errors.RefusedError(
            f"the director's deadline for submissions to {event.id} is {moment}"
            f"{_clause(rule(state, event).clause)}; to begin before, set an earlier one first"
            f" (`farm engine deadline {event.id} --at 1s`)"
        )


def movable(state: season_state.SeasonState, event: events.EventState) -> None:
    """Raise ``RefusedError`` for an event whose submissions no deadline can open."""
    asked = rule(state, event)
    if event.status is events.Status.OPEN:
        raise errors.RefusedError(
            f"the gate before {event.id} is open: it begins as soon as no other event is played,"
            " and waits for no deadline any more"
        )
    why = _never(state, event, asked)
    if why:
        raise errors.RefusedError(f"no deadline can be set: {why}{_clause(asked.clause)}")


def _never(state: season_state.SeasonState, event: events.EventState, asked: model.Updates) -> str:
    if asked.window == "closed":
        return f"no update is allowed before {event.id}; its engines play as they did"
    begun = any(
        other.status not in apply_engine_updates.NOT_STARTED for other in state.events.values()
    )
    if asked.window == "season-start" and begun:
        return f"no update is allowed after the start of {state.launched.season.name}"
    return ""


def _too_late(
    state: season_state.SeasonState,
    event: events.EventState,
    engine: str,
    now_ms: int,
    asked: model.Updates,
) -> str:
    deadline_ms = event.deadlines.get(engine, event.deadlines.get(""))
    if deadline_ms is not None:
        late = now_ms >= deadline_ms
        return f"the director's deadline for {event.id} has passed" if late else ""
    now = playing(state, engine)
    if asked.window == "start" and now is not None:
        return f"it plays {now.id}; it may be updated for {event.id} when that is over"
    if asked.window == "last-game" and _last_game_played(state, event):
        return (
            f"the submission deadline of {event.id} was the last game before it; the director"
            " may set another with `farm engine deadline`"
        )
    return ""


def _last_game_played(state: season_state.SeasonState, event: events.EventState) -> bool:
    before = [state.events[name] for name in plan.awaited(state.launched.season, event.id)]
    return bool(before) and all(other.status is events.Status.RANKED for other in before)


def _clause(clause: str) -> str:
    return f" ({clause})" if clause else ""
