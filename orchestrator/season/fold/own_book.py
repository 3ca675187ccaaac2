"""Engines that seem to play from a book of their own, told to the organizers.

S16-16: an engine that answers with no search in positions out of book, again
and again, is flagged. Halls count such moves game by game (``arbiter.unsearched``); here
the journaled counts become a flag, once for an engine and event. A flag stops nothing: the
organizers disqualify or replace the engine, or dismiss the flag with their reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season.fold import amendment_entries, events
from orchestrator.season.fold import state as season_state

MOVES: Final = 3  # in a row, right after the book: one or two may be chance
GAMES: Final = 3  # of one event: "again and again"


def flagged(state: season_state.SeasonState) -> list[contract.Draft]:
    """Return the fact of the first engine that is to be flagged, [] without one."""
    for event in state.events.values():
        if event.status is events.Status.RUNNING:
            for engine, games in event.unsearched.items():
                seen = {game: moves for game, moves in games.items() if moves >= MOVES}
                if len(seen) >= GAMES and engine not in event.flags:
                    fact = amendment_entries.EngineFlagged(
                        event=event.id, engine=engine, games=seen
                    )
                    return [contract.Draft.of(amendment_entries.ENGINE_FLAGGED, fact)]
    return []


def standing(state: season_state.SeasonState) -> Iterator[amendment_entries.EngineFlagged]:
    """Yield the flags that wait for the organizers: the engine still plays its event."""
    if state.abandoned:
        return
    for event in state.events.values():
        for engine, flag in event.flags.items():
            if flag is not None and engine in set(event.entrants) - event.excluded.keys():
                yield flag


def dismiss(
    state: season_state.SeasonState, event_id: str, engine: str, name: str, reason: str
) -> list[contract.Draft]:
    """Let a flagged engine play on; raise ``RefusedError``, ``UsageError``."""
    if not reason:
        raise errors.UsageError("to dismiss a flag needs --reason")
    flagged_pairs = [(flag.event, flag.engine) for flag in standing(state)]
    if (event_id, engine) not in flagged_pairs:
        flags = ", ".join(f"{flag} in {event}" for event, flag in flagged_pairs) or "nobody"
        raise errors.RefusedError(f"{engine!r} is not flagged in {event_id!r}; flagged: {flags}")
    fact = amendment_entries.FlagDismissed(event=event_id, engine=engine, reason=reason, name=name)
    return [contract.Draft.of(amendment_entries.FLAG_DISMISSED, fact)]
