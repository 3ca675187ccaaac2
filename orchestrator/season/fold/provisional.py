"""Which ratings of a season's engines are provisional (S16-14e, S17-14e).

A new engine has the rating of its tests until it has finished an event; one that was
excluded from the event has not finished it.
"""

from __future__ import annotations

from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state


def rated_by_tests(state: season_state.SeasonState, engine: str) -> bool:
    """Say whether an engine's rating still comes from tests."""
    return state.engines[engine].provisional and not _has_finished(state, engine)


def _has_finished(state: season_state.SeasonState, engine: str) -> bool:
    return any(
        event.status is events.Status.RANKED
        and engine in event.entrants
        and engine not in event.excluded
        for event in state.events.values()
    )
