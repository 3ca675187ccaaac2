"""Check what the tables of a season file must agree on, before anything is launched."""

from __future__ import annotations

import graphlib
from collections.abc import Iterator, Mapping, Sequence

from orchestrator import contract, errors
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import limits as rules
from orchestrator.season import adjudications, model, orders, plan, problems
from orchestrator.season.formats import registry

Books = Mapping[str, Sequence[contract.Opening]]


def references(season: model.Season, engines: Sequence[str]) -> Iterator[problems.Problem]:
    """Yield names that lead nowhere, names used twice, and events that form a circle."""
    ids = [event.id for event in season.events]
    for event_id in sorted({event_id for event_id in ids if ids.count(event_id) > 1}):
        found = f"{event_id!r} for {ids.count(event_id)} events"
        yield problems.Problem(f"[event {event_id}] id", found, "one id for each event")
    for event in season.events:
        yield from _promotions(event, ids)
        yield from _listed(event, engines)
        yield from _chain(event)
        yield from _adjudication(event)
        if event.book is not None and event.book not in season.books:
            allowed = ", ".join(season.books) or "no [books] table is there"
            yield problems.Problem(f"[event {event.id}] book", repr(event.book), allowed)
    yield from _circle(season)


def _promotions(event: model.Event, ids: Sequence[str]) -> Iterator[problems.Problem]:
    where = f"[event {event.id}] promote"
    targets = [promotion.to for promotion in event.promote]
    for target in targets:
        if target not in ids or target == event.id:
            others = ", ".join(other for other in ids if other != event.id)
            allowed = others or "no other event is there"
            yield problems.Problem(f"{where}.to", repr(target), allowed)
    if len(set(targets)) < len(targets):
        yield problems.Problem(where, "two promotions to one event", "one for each event")


def _listed(event: model.Event, engines: Sequence[str]) -> Iterator[problems.Problem]:
    if event.entrants == "roster":
        return
    where = f"[event {event.id}] entrants"
    for entrant in event.entrants:
        if entrant not in engines:
            yield problems.Problem(where, repr(entrant), ", ".join(engines))
    if len(set(event.entrants)) < len(event.entrants):
        yield problems.Problem(where, "an engine twice", "each engine once")


def _chain(event: model.Event) -> Iterator[problems.Problem]:
    where = f"[event {event.id}] tiebreaks"
    if len(set(event.tiebreaks)) < len(event.tiebreaks):
        yield problems.Problem(where, "a criterion twice", "each criterion once")
    if event.tiebreaks[-1:] != (model.Criterion.SEED,):
        last = repr(str(event.tiebreaks[-1])) if event.tiebreaks else "nothing"
        yield problems.Problem(where, f"{last} at the end", '"seed" at the end: no tie stays')


def _adjudication(event: model.Event) -> Iterator[problems.Problem]:
    for rule, found, allowed in adjudications.doubts(event.adjudication, event.limits):
        yield problems.Problem(f"[event {event.id}] adjudication.{rule}", found, allowed)


def _circle(season: model.Season) -> Iterator[problems.Problem]:
    known = {event.id for event in season.events}
    arrows = {
        event.id: {p.to for p in event.promote if p.to in known and p.to != event.id}
        for event in season.events
    }
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        circle = list(reversed(error.args[1]))
        found = "a circle: " + " → ".join(circle)
        where = f"[event {circle[0]}] promote"
        yield problems.Problem(where, found, "promotions that never lead back")


def fields(season: model.Season, engines: Sequence[str]) -> Iterator[problems.Problem]:
    """Yield fields that are too small, or that one engine could enter twice."""
    sizes = plan.fields(season, len(engines))
    for event in season.events:
        size = sizes[event.id]
        allowed = registry.field_error(event.format, size)
        if allowed is not None:
            where = f"[event {event.id}] entrants"
            yield problems.Problem(where, f"a field of {size}", allowed)
        for promotion in event.promote:
            if promotion.top > size:
                found = f"top = {promotion.top} in a field of {size}"
                where = f"[event {event.id}] promote.top"
                yield problems.Problem(where, found, f"{size} or less")
        yield from _twice(season, event, engines)


def _twice(
    season: model.Season, event: model.Event, engines: Sequence[str]
) -> Iterator[problems.Problem]:
    seen: set[str] = set(_own(event, engines))
    for source in plan.sources(season, event.id):
        entering = _possible(season, source.event, engines)
        if seen & entering:
            found = f"{min(seen & entering)!r}, who may also come from {source.event}"
            allowed = "ways into the event that no engine can take twice"
            yield problems.Problem(f"[event {event.id}] entrants", found, allowed)
            return
        seen |= entering


def _possible(season: model.Season, event_id: str, engines: Sequence[str]) -> set[str]:
    """Return everybody who might play an event."""
    possible = set(_own(season.event(event_id), engines))
    for source in plan.sources(season, event_id):
        possible |= _possible(season, source.event, engines)
    return possible


def _own(event: model.Event, engines: Sequence[str]) -> Sequence[str]:
    return engines if event.entrants == "roster" else event.entrants


def openings(season: model.Season, engines: int, books: Books) -> Iterator[problems.Problem]:
    """Yield books that run out inside an event."""
    for event_id, schedule in plan.schedules(season, engines).items():
        name = season.event(event_id).book
        if name is None:
            continue
        there = len(books[name])
        if there == 0 or (schedule.openings > there and not season.books[name].repeat):
            found = f"{there} lines in {season.books[name].file}"
            allowed = f"{schedule.openings} or more for event {event_id}, or repeat = true"
            yield problems.Problem(f"[books.{name}] file", found, allowed)
        yield from _unplayable(season, season.event(event_id), name, books[name])


def _unplayable(
    season: model.Season, event: model.Event, name: str, exits: Sequence[contract.Opening]
) -> Iterator[problems.Problem]:
    """Yield the first start position that is none in the event's variant."""
    for exit_ in exits:
        if exit_.fen is None:
            continue
        try:
            boards.start_board(exit_, event.variant)
        except errors.BookError as error:
            where = f"[event {event.id}] variant"
            found = f"{event.variant!r} with {season.books[name].file} ({error})"
            yield problems.Problem(where, found, 'variant = "fischerandom", or another book')
            return


def settings(
    season: model.Season, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    """Yield authors' settings for events that the season does not have."""
    events = [event.id for event in season.events]
    for engine in engines:
        for event in engine.settings:
            if event not in events:
                where = f"[roster.engine {engine.id}] settings.{event}"
                yield problems.Problem(where, "no such event", ", ".join(events))


def limits(
    season: model.Season, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    """Yield authors' settings that break the limits of an event they may play in.

    RULEBOOK §2: refused with the option's name, value and limit.
    """
    ids = [engine.id for engine in engines]
    for event in season.events:
        possible = _possible(season, event.id, ids)
        for engine in engines:
            if engine.id in possible:
                options = orders.engine_in(engine, event.id).options
                for breach in rules.breaches(options, event.limits):
                    where = f"[roster.engine {engine.id}] option {breach.name}"
                    found = f"{breach.value} in event {event.id}"
                    yield problems.Problem(where, found, breach.limit)
