"""Explain a season in words and numbers before it is launched (``farm check``).

Days are those of games in which each side uses the time of 60 moves, breaks included. Seasons
are mostly shorter; long games and tied matches may take more, so no bound is promised.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.season.file import checks, load, wording
from orchestrator.season.fold import plan
from orchestrator.season.formats import base
from orchestrator.season.spec import model

_MOVES: Final = 60  # moves a side of a usual engine game
_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


def explain(loaded: load.Loaded) -> dict[str, Any]:
    """Return what a season will be: its events, games, days, promotions and warnings."""
    season, engines = loaded.season, len(loaded.engines)
    schedules, fields = plan.schedules(season, engines), plan.fields(season, engines)
    rows = [_event(season, e, fields[e.id], schedules[e.id]) for e in season.events]
    return {
        "season": season.id,
        "name": season.name,
        "engines": engines,
        "games": sum(row["games"] for row in rows),
        "days": round(sum(row["days"] for row in rows), 1),
        "hours": round(sum(row["hours"] for row in rows), 2),
        "champion": f"the winner of {season.events[-1].name}",
        "events": rows,
        "warnings": list(_warnings(loaded)),
    }


def _event(
    season: model.Season, event: model.Event, size: int, schedule: base.Format
) -> dict[str, Any]:
    per_game_ms = 2 * event.time_control.nominal_ms(_MOVES)
    total_ms = schedule.games * per_game_ms + (event.break_ms or 0)
    return {
        "event": event.id,
        "name": event.name,
        "engines": size,
        "from": list(_sources(season, event, size)),
        "format": wording.game_format(event.format),
        "goes_on": wording.going_on(event.format),
        "games": schedule.games,
        "open_ended": schedule.open_ended or bool(wording.going_on(event.format)),
        "ends_early": isinstance(event.format, model.Knockout),  # a match when it is decided
        "time_control": wording.control(event.time_control),
        "clock": event.time_control.spoken,
        "days": round(total_ms / _DAY_MS, 2),
        "hours": round(total_ms / _HOUR_MS, 2),
        "book": event.book,
        "openings": wording.openings(event, season.books.get(event.book or "")),
        "adjudication": {
            "rules": wording.preset(event.adjudication),
            "ends": wording.early_ends(event.adjudication, event.limits),
        },
        "break": event.break_,
        "tiebreaks": [criterion.value for criterion in event.tiebreaks],
        "promotions": [_promotion(promotion) for promotion in event.promote],
        "relegated": event.relegate,
        "disqualified_after": event.disqualify_after or None,
    }


def _sources(season: model.Season, event: model.Event, size: int) -> Iterator[str]:
    promoted = plan.sources(season, event.id)
    own = size - sum(source.engines for source in promoted)
    if own:
        yield f"{own} of the roster"
    yield from (f"{source.engines} from {source.event}" for source in promoted)


def _promotion(promotion: model.Promotion) -> str:
    if promotion.top:
        return f"first {promotion.top} to {promotion.to}"
    places = "place" if len(promotion.ranks) == 1 else "places"
    return f"{places} {', '.join(map(str, promotion.ranks))} to {promotion.to}"


def sentences(explained: dict[str, Any]) -> Iterator[str]:
    """Write the explanation for people."""
    most = _more_or_less(explained["events"])
    yield (
        f"{explained['name']}: {explained['engines']} engines, {events(explained['events'])},"
        f" {explained['games']} games{most}, about {_about(explained['hours'])} if each game takes"
        f" {_MOVES} moves and all their time"
    )
    for row in explained["events"]:
        yield from _event_sentences(row)
    yield f"Champion: {explained['champion']}"
    yield from (f"Warning: {warning}" for warning in explained["warnings"])


def events(listed: Sequence[object]) -> str:
    """Say how many events there are."""
    return "1 event" if len(listed) == 1 else f"{len(listed)} events"


def _more_or_less(rows: Sequence[Mapping[str, Any]]) -> str:
    if any(row["ends_early"] for row in rows):
        return " (fewer or more, as matches go)"
    return " or more" if any(row["open_ended"] for row in rows) else ""


def _about(hours: float) -> str:
    return wording.duration(60 * max(1, round(hours * 60)))  # seconds would say too much


def _event_sentences(row: dict[str, Any]) -> Iterator[str]:
    most = _more_or_less([row])
    played = "; ".join([f"{row['format']} at {row['clock']}", *row["goes_on"]])
    gap = " with its break" if row["break"] else ""
    yield f"{row['event']}: {row['name']}, {row['engines']} engines ({', '.join(row['from'])})"
    yield (
        f"  {played}: {row['games']} games"
        f"{most}, about {_about(row['hours'])}{gap}; openings: {row['openings']}"
    )
    if row["break"]:
        opened = row["break"] == "operator"  # and by nothing else
        wait = f"`farm season open-gate {row['event']}`" if opened else f"a break of {row['break']}"
        yield f"  before it {wait}"
    if row["promotions"] or row["relegated"]:
        down = [f"last {row['relegated']} relegate"] if row["relegated"] else []
        yield f"  {'; '.join([*row['promotions'], *down])}"
    yield from _early_ends(row["adjudication"])
    if not row["ends_early"]:  # a knockout's places are those of its matches, never level
        yield f"  ties: {', '.join(row['tiebreaks'])}"
    if row["disqualified_after"]:
        yield f"  disqualified after {row['disqualified_after']} crashes"


def _early_ends(event: Mapping[str, Any]) -> Iterator[str]:
    if not event["ends"]:
        yield "  no adjudication: games end by the rules of chess alone"
        return
    yield f"  adjudication{' by ' + event['rules'] if event['rules'] else ''}:"
    yield from (f"    {end}" for end in event["ends"])


def _warnings(loaded: load.Loaded) -> Iterator[str]:
    """Yield what is allowed and yet seldom meant."""
    season = loaded.season
    used = {event.book for event in season.events}
    for book in season.books:
        if book not in used:
            yield f"[books.{book}] is used by no event"
    yield from _size_warnings(loaded)
    yield from _book_warnings(loaded)
    listed = {e for event in season.events for e in plan.listed(event, _ids(loaded))}
    for engine in _ids(loaded):
        if engine not in listed:
            yield f"engine {engine} enters no event"
    low = [e.id for e in loaded.engines if e.rating is not None and e.rating < season.rating_floor]
    if low:
        yield f"rated below {season.rating_floor}: {', '.join(low)} (S16-1a, S17-1a)"


def _size_warnings(loaded: load.Loaded) -> Iterator[str]:
    """Yield fields that are larger than the rule text has them, and an odd number of engines."""
    season, engines = loaded.season, len(loaded.engines)
    for event_id, size in plan.fields(season, engines).items():
        most = season.event(event_id).max_engines
        if most is not None and size > most:
            yield f"[event {event_id}] has {size} engines; max_engines = {most}"
    if season.roster.even and engines % 2:
        yield f"{engines} engines are an odd number; [roster] even = true asks for one more"


def _book_warnings(loaded: load.Loaded) -> Iterator[str]:
    """Yield lines that a book has twice, and books that are another's (S17-7b)."""
    lines = {name: {exit_.line for exit_ in exits} for name, exits in loaded.books.items()}
    for name, exits in loaded.books.items():
        for number, before in checks.repeated(exits):
            line = checks.named(number, exits[number - 1])
            yield f"[books.{name}] {line} is the same as opening {before}"
    for book, other in itertools.combinations(lines, 2):
        if lines[book] == lines[other]:
            yield f"[books.{other}] holds the same openings as [books.{book}]"


def _ids(loaded: load.Loaded) -> tuple[str, ...]:
    return tuple(engine.id for engine in loaded.engines)
