"""The words of notices: subject and body by kind; a directory of files may replace any.

A file ``<kind>.txt`` holds the subject in its first line and the body below; ``$name`` is
a fact of the notice (``string.Template``). An unknown name is left as it stands.
"""

from __future__ import annotations

import pathlib
import string
from typing import Final

from orchestrator.common import bounds, errors
from orchestrator.notify import notices

WORDS: Final = {
    notices.Kind.DECISION: (
        "$season_name: the organizers must decide $decision",
        "$question\n\nfarm season decisions\nfarm season decide $decision --choose A --reason ...",
    ),
    notices.Kind.CRASH: (
        "$season_name: $engine crashed in $game",
        (
            "$details\nCrashes in $event: $crashes (disqualified after $limit).\n\n"
            "farm game evidence $game --for $engine"
        ),
    ),
    notices.Kind.SECOND_CRASH: (
        "$season_name: $engine is one crash from disqualification",
        (
            "$details ($game)\nCrashes in $event: $crashes of $limit.\n\n"
            "farm game evidence $game --for $engine"
        ),
    ),
    notices.Kind.DISQUALIFIED: (
        "$season_name: $engine is out of $event",
        "$reason\n$then\n\nfarm season standings --event $event",
    ),
    notices.Kind.EVENT_OVER: (
        "$season_name: $event is over",
        "First: $best\n\nfarm season standings --event $event",
    ),
    notices.Kind.SEASON_OVER: (
        "$season_name is over",
        "Champion: $champion\n\nfarm season outcome $season\nfarm backup --to ...",
    ),
    notices.Kind.ABANDONED: (
        "$season_name is abandoned",
        (
            "$reason ($who)\nNothing more is played; what was played is kept.\n\n"
            "farm season log $season"
        ),
    ),
    notices.Kind.DEADLINE: (
        "$season_name: $event in $minutes minutes",
        "In $minutes minutes $what.\n\nfarm status",
    ),
    notices.Kind.HOST_AWAY: (
        "$season_name: $host is away",
        "$reason\n\nfarm status\ndocs: runbooks/FarmHostSilent",
    ),
    notices.Kind.HELD: (
        "$season_name is held",
        "$reason\n\nfarm status\nfarm season resume\ndocs: runbooks/FarmSeasonHeld",
    ),
    notices.Kind.FLAGGED: (
        "$season_name: $engine is flagged for a hidden book",
        "In $event.\n\nfarm engine flags\nfarm engine dismiss $engine ...",
    ),
    notices.Kind.TEST_OVER: (
        "$match: $why",
        "$engines\n$score\n\nfarm match show $match",
    ),
    notices.Kind.TEST_WAITS: (
        "$match waits for approval",
        "$about\nsubmitted by $who\n\nfarm match approve $match",
    ),
    notices.Kind.SERVICE_FAILED: (
        "$host: $service has failed",
        "systemctl status $service\njournalctl -u $service\ndocs: runbooks/FarmUnitFailed",
    ),
}


def render(notice: notices.Notice, directory: pathlib.Path | None) -> tuple[str, str]:
    """Return subject (one line) and body of a notice; raise ``UsageError`` for a bad file."""
    subject, body = _template(notice.kind, directory)
    shown = {name: value.replace("\r", " ") for name, value in notice.facts.items()}
    subject_line = string.Template(subject).safe_substitute(shown)
    return " ".join(subject_line.split()), string.Template(body).safe_substitute(shown) + "\n"


def _template(kind: notices.Kind, directory: pathlib.Path | None) -> tuple[str, str]:
    path = directory / f"{kind.value}.txt" if directory else None
    if path is None or not path.exists():
        return WORDS[kind]
    try:
        subject, _, body = bounds.text(path).partition("\n")
    except bounds.DAMAGED as error:
        raise errors.UsageError(
            f"template {path} cannot be read: {errors.reason(error)}"
        ) from error
    return subject, body.strip("\n")
