"""Check what the tables of a season file must agree on, before anything is launched."""

from __future__ import annotations

import graphlib
import itertools
from collections.abc import Iterator, Mapping, Sequence

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.common import errors
from orchestrator.engines import limits as rules
from orchestrator.season.file import entry_routes, roster
from orchestrator.season.fold import orders, plan
from orchestrator.season.formats import knockout, registry
from orchestrator.season.spec import adjudications, model, problems

Books = Mapping[str, Sequence[contract.Opening]]
_LINES = 10  # wrong lines of a book that are named one by one
_WAYS_IN = '"roster", a list of engine ids, or promotions to this event'
_RULE_TEXTS = {"s16": "S16", "s17": "S17", "cup": "CUP", "frc": "FRC", "ntcec1": "N1"}


def references(season: model.Season, engines: Sequence[str]) -> Iterator[problems.Problem]:
    """Yield names that lead nowhere, names used twice, and events that form a circle."""
    ids = [event.id for event in season.events]
    for event_id in sorted({event_id for event_id in ids if ids.count(event_id) > 1}):
        actual = f"{event_id!r} for {ids.count(event_id)} events"
        yield problems.Problem(f"[event {event_id}] id", actual, "one id for each event")
    for event in season.events:
        yield from _promotions(event, ids)
        yield from _seeding(season, event)
        yield from _listed(event, engines, season.roster)
        yield from _chain(event)
        yield from _adjudication(event)
        for key, book in (("book", event.book), ("playoff.book", event.playoff.book)):
            if book is not None and book not in season.books:
                allowed = ", ".join(season.books) or "no key `book`: the file has no [books] table"
                yield problems.Problem(f"[event {event.id}] {key}", repr(book), allowed)
    yield from _circle(season)
    yield from _boxes(season)


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


def _seeding(season: model.Season, event: model.Event) -> Iterator[problems.Problem]:
    where = f"[event {event.id}]"
    if event.start_position and event.book is None:
        actual = "start_position = true without a book"
        yield problems.Problem(f"{where} start_position", actual, "a book for the other openings")
    if event.double_random and (event.variant != "fischerandom" or event.book is not None):
        actual = "double_random = true with a book or in standard chess"
        yield problems.Problem(
            f"{where} double_random", actual, 'variant = "fischerandom", no book'
        )
    if not isinstance(event.seeding, tuple):
        return
    coming = [
        f"{other.id}.{rank}"
        for other in season.events
        for promotion in other.promote
        if promotion.to == event.id
        for rank in promotion.places
    ]
    if sorted(event.seeding) != sorted(coming):
        actual = ", ".join(event.seeding) or "nothing"
        allowed = f"each place that goes on to {event.id} once: {', '.join(coming) or 'none'}"
        yield problems.Problem(f"{where} seeding", actual, allowed)


def _listed(
    event: model.Event, engines: Sequence[str], listed: model.Roster
) -> Iterator[problems.Problem]:
    where = f"[event {event.id}] entrants"
    competitions, dropped = roster.competitions(listed), roster.dropped(listed)
    named = event.entrants if isinstance(event.entrants, tuple) else ()
    for entrant in named:
        if entrant in dropped:
            actual = f"{entrant!r}, who is dropped: {dropped[entrant]}"
            yield problems.Problem(where, actual, "engines in development (CUP-1c, FRC-1c)")
        elif entrant not in engines:
            yield problems.Problem(where, repr(entrant), ", ".join(engines))
    for entrant in named or plan.listed(event, engines):
        own = competitions.get(entrant, event.competition)
        if event.competition is not None and own != event.competition:
            actual = f"{entrant!r} of the {own} competition"
            yield problems.Problem(where, actual, f"engines of {event.competition} (S17-2)")
    if len(set(named)) < len(named):
        yield problems.Problem(where, "an engine twice", "each engine once")
    for engine in event.odds:
        if engine not in engines:
            yield problems.Problem(f"[event {event.id}] odds", repr(engine), ", ".join(engines))


def _chain(event: model.Event) -> Iterator[problems.Problem]:
    where = f"[event {event.id}] tiebreaks"
    if len(set(event.tiebreaks)) < len(event.tiebreaks):
        yield problems.Problem(where, "a criterion twice", "each criterion once")
    last_word = (model.Criterion.ORGANIZERS, model.Criterion.PLAYOFF)
    if event.tiebreaks[-1:] not in {(last,) for last in (model.Criterion.SEED, *last_word)}:
        last = repr(str(event.tiebreaks[-1])) if event.tiebreaks else "nothing"
        allowed = '"seed", "playoff" or "organizers" at the end: no tie stays'
        yield problems.Problem(where, f"{last} at the end", allowed)
    for criterion in last_word:
        if criterion in event.tiebreaks[:-1]:
            actual = f'"{criterion}" before the end'
            yield problems.Problem(where, actual, "it as the last criterion")


def _adjudication(event: model.Event) -> Iterator[problems.Problem]:
    for rule, actual, allowed in adjudications.doubts(event.adjudication, event.limits):
        yield problems.Problem(f"[event {event.id}] adjudication.{rule}", actual, allowed)


def unboxed(entry: model.EngineEntry) -> str:
    """Say what is wrong with a GPU engine that would run in the hall (S17-2b), '' if nothing."""
    if entry.competition == "cpu" or entry.box or entry.dropped:
        return ""
    return 'competition = "gpu" without a box'


def _boxes(season: model.Season) -> Iterator[problems.Problem]:
    for entry in (*season.roster.engines, *season.roster.fill):
        if wrong := unboxed(entry):
            where = f"[roster.engine {roster.id_of(entry)}] box"
            yield problems.Problem(where, wrong, "the name of the GPU box it runs on (S17-2b)")
        if entry.box and season.sandbox:
            where = f"[roster.engine {roster.id_of(entry)}] box"
            actual = f"{entry.box!r} in a season with sandbox = {season.sandbox!r}"
            yield problems.Problem(where, actual, "no box: none gives its engines a sandbox")


def _circle(season: model.Season) -> Iterator[problems.Problem]:
    event_ids = {event.id for event in season.events}
    arrows = {
        event.id: {p.to for p in event.promote if p.to in event_ids and p.to != event.id}
        for event in season.events
    }
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        circle = list(reversed(error.args[1]))
        actual = "a circle: " + " → ".join(circle)
        where = f"[event {circle[0]}] promote"
        yield problems.Problem(where, actual, "promotions that never lead back")


def size(season: model.Season, engines: int) -> Iterator[problems.Problem]:
    """Yield the event with which a season has more games than one can have."""
    games = 0
    for event_id, schedule in plan.schedules(season, engines).items():
        games += schedule.games
        if games > model.GAMES:
            allowed = f"at most {model.GAMES:,} games in a season"
            yield problems.Problem(
                f"[event {event_id}] format", f"{schedule.games:,} games", allowed
            )
            return


def fields(season: model.Season, engines: Sequence[str]) -> Iterator[problems.Problem]:
    """Yield fields that are too small, or that one engine could enter twice."""
    sizes, ways = plan.fields(season, len(engines)), entry_routes.Routes(season, engines)
    for event in season.events:
        size = sizes[event.id]
        allowed = registry.field_error(event.format, size)
        if allowed is not None:
            where = f"[event {event.id}] entrants"
            actual = f"a field of {size}" if size else "nobody"
            yield problems.Problem(where, actual, allowed if size else _WAYS_IN)
        for promotion in event.promote:
            if max(promotion.places) > size > 0:
                key = "ranks" if promotion.ranks else "top"
                actual = f"{key} = {max(promotion.places)} in a field of {size}"
                where = f"[event {event.id}] promote.{key}"
                yield problems.Problem(where, actual, f"{size} or less")
        yield from winners(season, event, size)
        clash = ways.clash(event.id)
        if clash is not None:
            actual = f"{clash.engine!r}, who may also come from {clash.source}"
            allowed = "ways into the event that no engine can take twice"
            yield problems.Problem(f"[event {event.id}] entrants", actual, allowed)
        yield from _relegated(event, size)


def winners(season: model.Season, event: model.Event, size: int) -> Iterator[problems.Problem]:
    """Yield ways from round to round of a Cup that leave winners out, or take losers with them."""
    format_ = registry.build(event.format, registry.expected_field(event.format, size))
    if not isinstance(format_, knockout.Knockout):
        return
    rounds = {other.id for other in season.events if other.format.kind == "knockout"}
    wins = len(format_.matches)
    for promotion in event.promote:
        best, last = min(promotion.places), max(promotion.places)
        wrong = best <= wins < last or promotion.top not in {0, wins}
        if wrong and promotion.to in rounds and last <= size:
            actual = str(promotion.top) if promotion.top else f"ranks {list(promotion.ranks)}"
            yield problems.Problem(
                f"[event {event.id}] promote.{'top' if promotion.top else 'ranks'}",
                f"{actual} to {promotion.to}, of a field of {size}",
                f"the {wins} winners, or losers alone (CUP-2b, CUP-2e)",
            )


def _relegated(event: model.Event, size: int) -> Iterator[problems.Problem]:
    """Yield a field too small for those who leave it above and below."""
    above = max((max(promotion.places) for promotion in event.promote), default=0)
    if event.relegate and above + event.relegate > size:
        actual = f"{event.relegate} below place {above} in a field of {size}"
        where = f"[event {event.id}] relegate"
        yield problems.Problem(where, actual, f"{max(0, size - above)} or less")


def openings(season: model.Season, engines: int, books: Books) -> Iterator[problems.Problem]:
    """Yield books that run out inside an event, begin behind their end, or hold wrong lines."""
    for book, lines in books.items():
        yield from _first(too_short(book, season.books[book], lines))
    for event_id, schedule in plan.schedules(season, engines).items():
        name = season.event(event_id).book
        if name is None:
            continue
        there = len({exit_.line for exit_ in books[name]})
        needed = plan.exits_of(season.event(event_id), schedule)
        if there == 0 or (needed > there and not season.books[name].repeat):
            every = len(books[name])
            same = f" ({every} with their repetitions)" if there < every else ""
            actual = f"{there} different lines{same} in {season.books[name].file}"
            allowed = f"{needed} or more for event {event_id}, or repeat = true"
            yield problems.Problem(f"[books.{name}] file", actual, allowed)
        elif (start := season.books[name].start) > there:
            yield problems.Problem(f"[books.{name}] start", str(start), f"1 to {there}, its lines")
        yield from _unplayable(season, season.event(event_id), name, books[name])
        yield from _first(_not_different(season, season.event(event_id), name, books[name]))


def repeated(exits: Sequence[contract.Opening]) -> Iterator[tuple[int, int]]:
    """Yield each opening of a book that stood there before, and the first of its kind, from 1."""
    first: dict[tuple[str | None, tuple[str, ...]], int] = {}
    for number, exit_ in enumerate(exits, start=1):
        before = first.setdefault(exit_.line, number)
        if before != number:
            yield number, before


def named(number: int, exit_: contract.Opening) -> str:
    """Name a line of a book for people, by its place in the file, from 1."""
    return f"opening {number} ({exit_.name})" if exit_.name else f"opening {number}"


def _first(wrong: Iterator[problems.Problem]) -> Iterator[problems.Problem]:
    """Yield the first wrong lines of a book, and how many more there are."""
    yield from itertools.islice(wrong, _LINES)
    more = list(wrong)
    if more:
        where = more[0].where.partition(",")[0]
        yield problems.Problem(where, f"{len(more)} more such lines", more[0].allowed)


def too_short(
    name: str, book: model.Book, exits: Sequence[contract.Opening]
) -> Iterator[problems.Problem]:
    """Yield the lines that end before the book's ``plies`` (S16-3c to 7b, S17-3d to 7b, N1)."""
    if book.plies is None or book.shorter or all(not exit_.moves for exit_ in exits):
        return  # positions have no length
    for number, exit_ in enumerate(exits, start=1):
        if len(exit_.moves) < book.plies:
            yield problems.Problem(
                f"[books.{name}] file, {named(number, exit_)}",
                f"{len(exit_.moves)} plies",
                f"plies = {book.plies}, a shorter one for all, or shorter = true",
            )


def _not_different(
    season: model.Season, event: model.Event, name: str, exits: Sequence[contract.Opening]
) -> Iterator[problems.Problem]:
    """Yield lines of a match's book that would not be different openings (S16-8a, N1)."""
    where = f"[books.{name}] file"
    for number, exit_ in enumerate(exits, start=1):
        if event.start_position and exit_.line == (None, ()):
            actual = f"the start position, which event {event.id} has already"
            allowed = "other openings: it is played once (start_position, S16-8a)"
            yield problems.Problem(f"{where}, {named(number, exit_)}", actual, allowed)
    if event.format.kind == "match" and not season.books[name].repeat:
        for number, before in repeated(exits):
            actual = f"the same as opening {before}"
            allowed = f"different openings for event {event.id} (S16-8a), or repeat = true"
            yield problems.Problem(f"{where}, {named(number, exits[number - 1])}", actual, allowed)


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
            actual = f"{event.variant!r} with {season.books[name].file} ({error})"
            yield problems.Problem(where, actual, 'variant = "fischerandom", or another book')
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


def frozen(
    season: model.Season, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    """Yield settings that an event, before which nothing changes, would have for itself alone.

    S16-13f: in the playoff the League 1 versions compete; settings are a part of them (S16-13b).
    """
    for event in season.events:
        updates = event.updates or season.updates
        if updates.window != "closed":
            continue
        for source, engine in itertools.product(plan.sources(season, event.id), engines):
            if _asked(engine, event.id) != _asked(engine, source.event):
                where = f"[roster.engine {engine.id}] settings.{event.id}"
                actual = f"other settings than in {source.event}"
                clause = f" ({updates.clause})" if updates.clause else ""
                allowed = f"the same as settings.{source.event}: nothing changes between them"
                yield problems.Problem(where, actual, allowed + clause)


def _asked(engine: contract.EngineSpec, event: str) -> dict[str, str]:
    """Return what an author asks for an event; option names are the same in any case."""
    options = orders.engine_in(engine, event).options
    return {name.lower(): rules.text(value) for name, value in options.items()}


def limits(
    season: model.Season, engines: Sequence[contract.EngineSpec]
) -> Iterator[problems.Problem]:
    """Yield authors' settings that break the limits of an event they may play in.

    A value is refused with the option's name, value and limit.
    """
    ways = entry_routes.Routes(season, [engine.id for engine in engines])
    for event in season.events:
        possible = ways.possible(event.id)
        for engine in engines:
            if engine.id in possible:
                options = orders.engine_in(engine, event.id).options
                for breach in rules.breaches(options, event.limits):
                    where = f"[roster.engine {engine.id}] option {breach.name}"
                    actual = f"{breach.value} in event {event.id}"
                    allowed = f"{breach.limit} ({limits_clause(event)})"
                    yield problems.Problem(where, actual, allowed)


def limits_clause(event: model.Event) -> str:
    """Return where the limits of an event stand: in its rule text, else in its file alone."""
    text = _RULE_TEXTS.get(event.adjudication.rules)
    return f"{text} Engine configuration" if text else f"limits of event {event.id}"
