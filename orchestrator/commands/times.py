"""Times of day as operators write them: a date and time, or how long from now."""

from __future__ import annotations

import datetime as dt
from typing import Final

from orchestrator.common import errors
from orchestrator.season.spec import parsers

FARTHEST_MS: Final = 3650 * 86_400_000  # ms: a slip of the unit, which no calendar could show
HELP: Final = "2026-12-01T18:00 (this machine's zone, unless it names one), or +2h from now."


def read(text: str, now_ms: int) -> int:
    """Return the time of day in ms; raise ``UsageError``. A duration is from now, + or not."""
    at_ms = _moment_ms(text, now_ms)
    if at_ms is None:
        raise errors.UsageError(
            f"{text!r} is no time; allowed: 2026-12-01T18:00, with a zone such as +01:00 behind"
            " it or without, or +90m (ms, s, m, h, d) from now"
        )
    if at_ms > now_ms + FARTHEST_MS:
        raise errors.UsageError(f"{text!r} is far ahead; allowed: a time within ten years")
    return at_ms


def _moment_ms(text: str, now_ms: int) -> int | None:
    try:
        return now_ms + parsers.duration_ms(text.removeprefix("+"))
    except parsers.TooLongError:
        return now_ms + FARTHEST_MS + 1
    except ValueError:
        pass
    try:
        return round(dt.datetime.fromisoformat(text).astimezone(dt.UTC).timestamp() * 1000)
    except (ValueError, OverflowError):  # OverflowError: at the calendar's edges
        return None
