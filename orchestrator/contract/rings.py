"""What a ring looks like on its way through Redis: whatever else is in a queue is no ring.

A ring says "look", and nothing more. Celery's messages could carry more: arguments, a time limit
that kills the child, tasks to be called afterwards; and one that Celery cannot read ends the
worker that takes it. Invariants: nothing but a plain ring passes, whoever has written it; it is
made anew, so that Celery reads no word of a stranger's but a name that was checked.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from typing import Any, Final

from orchestrator.contract import bells, codec

_TASKS: Final = frozenset({bells.PLAY, bells.PREPARE})
_NO_LIMITS: Final = (None, [None, None])
_NAME: Final = re.compile(r"[0-9A-Za-z-]{1,64}")  # of a ring, and of its delivery: UUIDs
_YEARS: Final = range(2000, 3000)  # of an expiry: at the calendar's edges a time zone overflows
_BODY: Final = base64.b64encode(  # no argument, nothing to be called behind
    b'[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
).decode()


def plain(message: Any, queue: str) -> dict[str, Any] | None:
    """Return the ring that a decoded message of a queue is, made anew; None where it is none."""
    try:
        if _is_envelope(message) and _is_call(message["headers"]) and _is_empty(message["body"]):
            return _anew(message["headers"], message["properties"], queue)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        pass  # it has another shape
    return None


def _is_envelope(message: Any) -> bool:
    properties = message["properties"]
    return (
        message["content-type"] == "application/json"
        and message["content-encoding"] == "utf-8"
        and properties["body_encoding"] == "base64"
        and bool(_NAME.fullmatch(properties["delivery_tag"]))
    )


def _is_call(headers: Any) -> bool:
    """Say whether headers call a bell's task at once, without a limit of its time."""
    return (
        headers["task"] in _TASKS
        and bool(_NAME.fullmatch(headers["id"]))
        and headers["eta"] is None
        and headers["timelimit"] in _NO_LIMITS
    )


def _is_empty(body: Any) -> bool:
    """Say whether a body holds no argument, and nothing to be called behind."""
    arguments, words, embedded = codec.loads(base64.b64decode(body, validate=True))
    return arguments == [] and words == {} and not any(embedded.values())


def _anew(headers: Any, properties: Any, queue: str) -> dict[str, Any]:
    """Return a ring's message; all that Celery reads of one stands in it."""
    name = headers["id"]
    return {
        "body": _BODY,
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": headers["task"],
            "id": name,
            "root_id": name,
            "expires": _expiry(headers["expires"]),
            "eta": None,
            "timelimit": [None, None],
            "retries": 0,
            "argsrepr": "()",
            "kwargsrepr": "{}",
        },
        "properties": {
            "correlation_id": name,
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": queue},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": properties["delivery_tag"],
        },
    }


def _expiry(told: Any) -> str | None:
    """Return an expiry as Celery reads it, in UTC; raise ``ValueError`` for one that is none."""
    if told is None:
        return None
    at = dt.datetime.fromisoformat(told)
    if at.year not in _YEARS:
        raise ValueError(told)
    return (at if at.tzinfo else at.replace(tzinfo=dt.UTC)).astimezone(dt.UTC).isoformat()
