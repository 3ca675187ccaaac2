"""What can be said of a season before it is played: fields, sizes, openings, totals.

All of it follows from the model and the size of the roster alone. The events must form
no cycle (``checks`` refuses one at launch).
"""

from __future__ import annotations

import dataclasses

from orchestrator.season import model
from orchestrator.season.formats import base, registry


@dataclasses.dataclass(frozen=True)
class Source:
    """Where promoted entrants of an event come from, and how many."""

    event: str
    top: int


def sources(season: model.Season, event_id: str) -> tuple[Source, ...]:
    """Return the events that promote into an event, in the order of the file."""
    return tuple(
        Source(event.id, promotion.top)
        for event in season.events
        for promotion in event.promote
        if promotion.to == event_id
    )


def awaited(season: model.Season, event_id: str) -> tuple[str, ...]:
    """Return the events whose end opens the way: sources, else the one before in the file.

    The event before counts only for a gate: a break lies between two events (S16-2b).
    """
    promoting = tuple(source.event for source in sources(season, event_id))
    if promoting or season.event(event_id).break_ is None:
        return promoting
    ids = [event.id for event in season.events]
    return tuple(ids[: ids.index(event_id)][-1:])


def fields(season: model.Season, roster: int) -> dict[str, int]:
    """Return the size of every event's field for a roster of that many engines."""
    return {event.id: _field(season, event, roster) for event in season.events}


def _field(season: model.Season, event: model.Event, roster: int) -> int:
    listed = roster if event.entrants == "roster" else len(event.entrants)
    return listed + sum(source.top for source in sources(season, event.id))


def schedules(season: model.Season, roster: int) -> dict[str, base.Format]:
    """Return the schedule of every event."""
    sizes = fields(season, roster)
    return {event.id: registry.build(event.format, sizes[event.id]) for event in season.events}


def openings_needed(season: model.Season, roster: int) -> dict[str, int]:
    """Return, by book, how many exits the whole season asks for."""
    needed = dict.fromkeys(season.books, 0)
    for event_id, schedule in schedules(season, roster).items():
        book = season.event(event_id).book
        if book is not None:
            needed[book] += schedule.openings
    return needed


def first_exit(season: model.Season, roster: int, event_id: str) -> int:
    """Return how many exits of its book the events before this one use.

    Events take from a shared book one after the other in the order of the file
    (CUP-4b: none repeats before the book is exhausted).
    """
    book, used = season.event(event_id).book, 0
    for other, schedule in schedules(season, roster).items():
        if other == event_id:
            break
        used += schedule.openings if season.event(other).book == book else 0
    return used
