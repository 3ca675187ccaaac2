"""Which season is meant where nobody names one: to be looked at, and to be changed.

Looked at is what is played. Of several seasons a hall plays one at a time, the first in the
order of launches that has a game to play, so between two games its season stays the same.
To be changed is only a season that is the only one that is not over: nobody pauses or
decides a season by another one's launch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.common import errors
from orchestrator.season import views
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState


def shown(states: Iterable[State]) -> State | None:
    """Return the season to be looked at, ``None`` where there is none; latest launched last.

    The one whose game is in flight, or comes next in its hall; of several halls' the latest.
    Else the latest that runs, else the latest that is not over, else the latest.
    """
    launched = list(states)
    going = [state for state in launched if not state.over]
    running = [state for state in going if views.status(state) == "running"]
    played = {state.launched.id for state in _in_play(going)}
    first = [state for state in going if state.launched.id in played]
    return next(reversed(first or running or going or launched), None)


def _in_play(going: Iterable[State]) -> Iterable[State]:
    """Return for each hall the season that it plays."""
    halls: dict[str, State] = {}
    for state in going:
        holder = halls.get(state.hall)
        if state.running is not None or (holder is None and _has_game(state)):
            halls[state.hall] = state
    return halls.values()


def _has_game(state: State) -> bool:
    """Say whether a game comes next: also while one is judged or a round is being paired."""
    if state.paused or state.held or state.current is None:
        return False
    return bool(state.lost or state.current.all_played or state.ready_game())


def only_open(states: Sequence[State]) -> State | None:
    """Return the only season that is not over, else the latest; ``UsageError`` for several."""
    going = [state for state in states if not state.over]
    if len(going) > 1:
        names = ", ".join(state.launched.id for state in going)
        raise errors.UsageError(f"several seasons are open: {names}; name one with --season")
    return next(reversed(going or states), None)
