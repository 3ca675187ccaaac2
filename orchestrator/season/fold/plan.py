"""What can be said of a season before it is played: fields, sizes, openings, totals.

All of it follows from the model and the size of the roster alone. The events must form
no cycle (``checks`` refuses one at launch).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from orchestrator.season.formats import base, registry
from orchestrator.season.spec import model


@dataclasses.dataclass(frozen=True)
class Source:
    """Where promoted entrants of an event come from, and how many."""

    event: str
    engines: int


def sources(season: model.Season, event_id: str) -> tuple[Source, ...]:
    """Return the events that promote into an event, in the order of the file."""
    return tuple(
        Source(event.id, len(promotion.places))
        for event in season.events
        for promotion in event.promote
        if promotion.to == event_id
    )


def awaited(season: model.Season, event_id: str) -> tuple[str, ...]:
    """Return the events whose end opens the way: its sources, and before a gate one more.

    A break lies between two events (S16-2b; N1: also between 2a and 2b), so a gate waits
    for the event before in the file too, unless that one depends on this event.
    """
    promoting = tuple(source.event for source in sources(season, event_id))
    ids = [event.id for event in season.events]
    if event_id not in ids or season.event(event_id).break_ is None:  # not there: a playoff
        return promoting
    before = tuple(ids[: ids.index(event_id)][-1:])
    return promoting + tuple(
        other
        for other in before
        if other not in promoting and not _depends(season, other, event_id)
    )


def _depends(season: model.Season, event_id: str, on: str) -> bool:
    """Say whether engines reach an event, by however many steps, from another."""
    promoting = [source.event for source in sources(season, event_id)]
    return on in promoting or any(_depends(season, source, on) for source in promoting)


def listed(event: model.Event, roster: Sequence[str]) -> tuple[str, ...]:
    """Return those engines of a roster that enter an event without being promoted to it."""
    match event.entrants:
        case "roster":
            return tuple(roster)
        case model.Share(first=first, every=every):
            return tuple(roster[first - 1 :: every])
        case named:
            return tuple(named)


def fields(season: model.Season, roster: int) -> dict[str, int]:
    """Return the size of every event's field for a roster of that many engines."""
    return {event.id: _field(season, event, roster) for event in season.events}


def _field(season: model.Season, event: model.Event, roster: int) -> int:
    own = len(listed(event, [""] * roster))
    return own + sum(source.engines for source in sources(season, event.id))


def schedules(season: model.Season, roster: int) -> dict[str, base.Format]:
    """Return the schedule of every event."""
    sizes = fields(season, roster)
    return {event.id: _expected(event, sizes[event.id]) for event in season.events}


def schedule(season: model.Season, roster: int, event_id: str) -> base.Format:
    """Return the schedule of one event for a roster of that many engines."""
    event = season.event(event_id)
    return _expected(event, _field(season, event, roster))


def _expected(event: model.Event, size: int) -> base.Format:
    return registry.build(event.format, registry.expected_field(event.format, size))


def openings_needed(season: model.Season, roster: int) -> dict[str, int]:
    """Return, by book, how many exits the whole season is expected to ask for."""
    needed = dict.fromkeys(season.books, 0)
    for event_id, schedule in schedules(season, roster).items():
        event = season.event(event_id)
        if event.book is not None:
            needed[event.book] += exits_of(event, schedule)
    return needed


def exits_of(event: model.Event, schedule: base.Format) -> int:
    """Return how many exits of its book an event is expected to use."""
    return schedule.openings - int(event.start_position)


def open_ended_books(season: model.Season, roster: int) -> frozenset[str]:
    """Return the books of events that may go on: tiebreak pairs, extensions of a match."""
    return frozenset(
        book
        for event_id, schedule in schedules(season, roster).items()
        if (book := season.event(event_id).book) is not None and schedule.open_ended
    ) | {
        book
        for event in season.events
        if event.tiebreaks[-1:] == (model.Criterion.PLAYOFF,)
        and (book := event.playoff.book or event.book) is not None
    }


def first_exit(season: model.Season, roster: int, event_id: str) -> int:
    """Return how many exits of its book the events before this one use.

    Events take from a shared book one after the other in the order of the file
    (CUP-4b: none repeats before the book is exhausted).
    """
    book, before = season.event(event_id).book, 0
    for other, schedule in schedules(season, roster).items():
        if other == event_id:
            break
        spec = season.event(other)
        before += exits_of(spec, schedule) if spec.book == book else 0
    return before
