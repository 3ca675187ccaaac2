"""How far a season is, and how long the rest will take by the games played so far.

An event without finished games is estimated from the season's mean, scaled by the time
controls; before the first game each side is taken to use what 60 moves give it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Final

from orchestrator import contract
from orchestrator.season import events, pairing
from orchestrator.season import state as season_state

_MOVES: Final = 60  # moves a side of a usual engine game


@dataclasses.dataclass(frozen=True)
class Progress:
    """Games played and expected; times in seconds, breaks between events included."""

    played: int
    total: int
    mean_seconds: float
    remaining_seconds: float

    @property
    def share(self) -> float:
        """Return the part that is done, 0 to 1."""
        return self.played / self.total if self.total else 1.0


def of_event(state: season_state.SeasonState, event_id: str) -> Progress:
    """Return the progress of one event."""
    return _progress(state, event_id, _pace(state))


def of_season(state: season_state.SeasonState) -> Progress:
    """Return the progress of the whole season."""
    pace = _pace(state)
    parts = [_progress(state, event_id, pace) for event_id in state.events]
    played = sum(part.played for part in parts)
    spent = sum(part.played * part.mean_seconds for part in parts)
    return Progress(
        played=played,
        total=sum(part.total for part in parts),
        mean_seconds=spent / played if played else 0.0,
        remaining_seconds=sum(part.remaining_seconds for part in parts),
    )


def break_seconds(state: season_state.SeasonState, event: events.EventState) -> float:
    """Return what is left of the break before an event, from the last journaled moment on."""
    if event.entrants:
        return 0.0
    if event.status is events.Status.GATE and event.opens_at_ms is not None:
        return max(0, event.opens_at_ms - state.at_ms) / 1000
    return (event.spec.break_ms or 0) / 1000


def _progress(state: season_state.SeasonState, event_id: str, pace: float) -> Progress:
    event = state.events[event_id]
    played, total = event.tally.games, _total(state, event)
    if played:
        mean = event.tally.duration_ms / played / 1000
    else:
        mean = pace * _nominal_ms(event.spec.time_control) / 1000
    if state.over:
        return Progress(played, total, mean, 0.0)
    left = break_seconds(state, event) + mean * (total - played)
    return Progress(played, total, mean, left)


def _total(state: season_state.SeasonState, event: events.EventState) -> int:
    dropped = sum(state.games[game].cancelled for game in event.order)
    expected = sum(games for _, games in pairing.remaining(state, event))
    return len(event.order) - dropped + expected


def _nominal_ms(control: contract.TimeControl) -> int:
    return 2 * control.nominal_ms(_MOVES)


def _pace(state: season_state.SeasonState) -> float:
    """Return how long games last against the nominal length of their time controls."""
    spent = sum(event.tally.duration_ms for event in state.events.values())
    nominal = sum(_nominal(state.events.values()))
    return spent / nominal if nominal else 1.0


def _nominal(all_events: Iterable[events.EventState]) -> Iterable[int]:
    return (event.tally.games * _nominal_ms(event.spec.time_control) for event in all_events)
