"""The schedule of a season as a calendar (RFC 5545): games played, in flight and ahead, stages.

What lies ahead is estimated by the pace so far, so it is ``TENTATIVE`` and moves; an entry keeps
its ``UID``, and calendars move theirs. Text is escaped and lines are folded as in sections 3.3.11
and 3.1; times are UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from typing import Any, Final

from orchestrator.broadcast.subscriptions import listing

MEDIA_TYPE: Final = "text/calendar"
PLAYED: Final = 100  # the last games that are listed, and the next ones
AHEAD: Final = 200
LINE_BYTES: Final = 75  # of a line without its end
_LEAST_SECONDS: Final = 1.0  # s: an entry of no length is shown nowhere
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def calendar(listed: listing.Listing) -> bytes:
    """Return the calendar."""
    name = listed.season["name"]
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Tournament Farm//Schedule//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"NAME:{text(name)}",
        f"X-WR-CALNAME:{text(name)}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT15M",
        "X-PUBLISHED-TTL:PT15M",
        *_entries(listed),
        "END:VCALENDAR",
    ]
    return "".join(f"{fold(line)}\r\n" for line in lines).encode()


def text(value: str) -> str:
    """Escape a TEXT value."""
    plain = _CONTROL.sub("", value.replace("\r\n", "\n"))
    escaped = plain.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return escaped.replace("\n", "\\n")


def fold(line: str) -> str:
    """Fold a line that is too long, between characters; what follows begins with a space."""
    parts, part, size = [], "", 0
    for character in line:
        width = len(character.encode())
        if size + width > LINE_BYTES:
            parts.append(part)
            part, size = " ", 1
        part, size = part + character, size + width
    return "\r\n".join([*parts, part])


def _entries(listed: listing.Listing) -> Iterator[str]:
    for game in reversed(listed.finished[:PLAYED]):
        summary = f"{listing.players(game)} {game['result']}"
        description = f"{listed.event_and_round(game)}: {listing.summary(game)}."
        seconds = float(game["duration_seconds"])
        yield from _game(
            listed, game, game["started_ms"], seconds, (summary, description), "CONFIRMED"
        )
    for game in listed.coming[:AHEAD]:
        running = game["running"]
        summary = listing.players(game)
        description = f"{listed.event_and_round(game)}, {'in flight' if running else 'estimated'}."
        start_ms = game["started_ms"] if running else game["estimated_start_ms"]
        seconds = listed.mean_seconds(game["event"])
        status = "CONFIRMED" if running else "TENTATIVE"
        yield from _game(listed, game, start_ms, seconds, (summary, description), status)
    for event in listed.season["events"]:
        yield from _stage(listed, event)


def _game(
    listed: listing.Listing,
    game: listing.Row,
    start_ms: int,
    seconds: float,
    said: tuple[str, str],
    status: str,
) -> Iterator[str]:
    yield from _entry(listed, game["game"], start_ms, seconds, said, status)
    yield from (f"URL:{listed.link_of(game)}", "END:VEVENT")


def _stage(listed: listing.Listing, event: dict[str, Any]) -> Iterator[str]:
    """Yield an event that has not begun: when it is expected, and for how long."""
    start_ms = event["opens_at_ms"] or event["estimated_start_ms"]
    if start_ms is None or event["status"] not in {"waiting", "gate", "open"}:
        return
    fixed = event["opens_at_ms"] is not None
    said = (f"{event['name']} begins", "At this time." if fixed else "Estimated.")
    seconds = float(event["remaining_seconds"])
    status = "CONFIRMED" if fixed else "TENTATIVE"
    yield from _entry(listed, f"event-{event['event']}", start_ms, seconds, said, status)
    yield from ("TRANSP:TRANSPARENT", f"URL:{listed.link}/event/{event['event']}", "END:VEVENT")


def _entry(
    listed: listing.Listing,
    name: str,
    start_ms: int,
    seconds: float,
    said: tuple[str, str],
    status: str,
) -> Iterator[str]:
    """Yield the begin of an entry: what all entries have."""
    summary, description = said
    end_ms = start_ms + round(1000 * max(seconds, _LEAST_SECONDS))
    yield "BEGIN:VEVENT"
    yield f"UID:{listed.id}-{listed.season['launched_ms']}-{name}@tournament-farm"
    yield f"DTSTAMP:{_moment(listed.at_ms)}"
    yield f"DTSTART:{_moment(start_ms)}"
    yield f"DTEND:{_moment(end_ms)}"
    yield f"SUMMARY:{text(summary)}"
    yield f"DESCRIPTION:{text(description)}"
    yield f"STATUS:{status}"


def _moment(at_ms: int) -> str:
    return f"{dt.datetime.fromtimestamp(at_ms // 1000, dt.UTC):%Y%m%dT%H%M%SZ}"
