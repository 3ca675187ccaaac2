"""How far a season is, and how long the rest will take by the games played so far.

An event without finished games is estimated from the season's mean, scaled by the time
controls; before the first game each side is taken to use what 60 moves give it. Events are
taken to follow each other in the order of the file, so what a gate with a time of its own
leaves of a break depends on when the events before it end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from orchestrator import contract
from orchestrator.season.fold import events, pairing
from orchestrator.season.fold import state as season_state

_MOVES: Final = 60  # moves a side of a usual engine game


@dataclasses.dataclass(frozen=True)
class Progress:
    """Games played and expected; times in seconds, breaks between events included.

    ``break_seconds`` is the part of the rest that no game is played in.
    """

    played: int
    total: int
    mean_seconds: float
    remaining_seconds: float
    break_seconds: float

    @property
    def share(self) -> float:
        """Return the part that is done, 0 to 1."""
        return self.played / self.total if self.total else 1.0


def of_event(state: season_state.SeasonState, event_id: str) -> Progress:
    """Return the progress of one event."""
    return of_events(state)[event_id]


def of_events(
    state: season_state.SeasonState, from_ms: int | None = None
) -> Mapping[str, Progress]:
    """Return the progress of every event, in their order.

    Gates are waited for from ``from_ms`` on, which is the last journaled moment if not given.
    """
    pace, at_ms = _pace(state), float(state.at_ms if from_ms is None else from_ms)
    by_event = {}
    for event_id, event in state.events.items():
        by_event[event_id] = _progress(state, event, pace, at_ms)
        at_ms += by_event[event_id].remaining_seconds * 1000
    return by_event


def of_season(state: season_state.SeasonState) -> Progress:
    """Return the progress of the whole season."""
    return whole(of_events(state).values())


def whole(parts: Collection[Progress]) -> Progress:
    """Return the progress of events together."""
    played = sum(part.played for part in parts)
    spent = sum(part.played * part.mean_seconds for part in parts)
    return Progress(
        played=played,
        total=sum(part.total for part in parts),
        mean_seconds=spent / played if played else 0.0,
        remaining_seconds=sum(part.remaining_seconds for part in parts),
        break_seconds=sum(part.break_seconds for part in parts),
    )


def _progress(
    state: season_state.SeasonState, event: events.EventState, pace: float, before_ms: float
) -> Progress:
    """Return an event's progress; the events before it are expected to end at ``before_ms``."""
    played, total = event.tally.games, _total(state, event)
    if played:
        mean = event.tally.duration_ms / played / 1000
    else:
        mean = pace * _nominal_ms(event.spec.time_control) / 1000
    if state.over:
        return Progress(played, total, mean, 0.0, 0.0)
    pause = _break_seconds(event, before_ms)
    return Progress(played, total, mean, pause + mean * (total - played), pause)


def _break_seconds(event: events.EventState, before_ms: float) -> float:
    """Return what is left of the break before an event, by its gate's time where it has one."""
    if event.status not in {events.Status.WAITING, events.Status.GATE}:
        return 0.0
    opens_at_ms = event.opens_at_ms or event.moved_to_ms
    if opens_at_ms is None:
        return (event.spec.break_ms or 0) / 1000
    return max(0.0, opens_at_ms - before_ms) / 1000


def untimed_gates(state: season_state.SeasonState) -> list[str]:
    """Return the events whose gates an operator has yet to open: no estimate counts the wait."""
    shut = {events.Status.WAITING, events.Status.GATE}
    return [
        event.id
        for event in state.events.values()
        if event.status in shut
        and event.spec.gated
        and event.spec.break_ms is None
        and (event.opens_at_ms or event.moved_to_ms) is None
    ]


def _total(state: season_state.SeasonState, event: events.EventState) -> int:
    expected = sum(games for _, games in pairing.remaining(state, event))
    return len(event.order) - state.cancelled(event) + expected


def _nominal_ms(control: contract.TimeControl) -> int:
    return 2 * control.nominal_ms(_MOVES)


def _pace(state: season_state.SeasonState) -> float:
    """Return how long games last against the nominal length of their time controls."""
    spent = sum(event.tally.duration_ms for event in state.events.values())
    nominal = sum(_nominal(state.events.values()))
    return spent / nominal if nominal else 1.0


def _nominal(all_events: Iterable[events.EventState]) -> Iterable[int]:
    return (event.tally.games * _nominal_ms(event.spec.time_control) for event in all_events)
