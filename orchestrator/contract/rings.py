"""What a ring looks like on its way through Redis: whatever else is in a queue is no ring.

A ring says "look", and nothing more. Celery's messages could carry more: arguments, a time limit
that kills the child, tasks to be called afterwards; and one that Celery cannot read ends the
worker that takes it. Invariant: nothing but a plain ring passes, whoever has written it.
"""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any, Final

from orchestrator.contract import bells, codec

_TASKS: Final = frozenset({bells.PLAY, bells.PREPARE})
_NO_LIMITS: Final = (None, [None, None])


def is_ring(message: Any) -> bool:
    """Say whether a decoded message is a ring and nothing more."""
    try:
        return _is_envelope(message) and _is_call(message["headers"]) and _is_empty(message["body"])
    except (KeyError, TypeError, ValueError):
        return False


def _is_envelope(message: Any) -> bool:
    properties = message["properties"]
    info = properties["delivery_info"]
    return (
        message["content-type"] == "application/json"
        and message["content-encoding"] == "utf-8"
        and properties["body_encoding"] == "base64"
        and isinstance(properties["delivery_tag"], str)
        and isinstance(info["exchange"], str)
        and isinstance(info["routing_key"], str)
    )


def _is_call(headers: Any) -> bool:
    """Say whether headers call a bell's task at once, without a limit of its time."""
    expires = headers["expires"]
    return (
        headers["task"] in _TASKS
        and isinstance(headers["id"], str)
        and headers["eta"] is None
        and headers["timelimit"] in _NO_LIMITS
        and (expires is None or dt.datetime.fromisoformat(expires) is not None)
    )


def _is_empty(body: Any) -> bool:
    """Say whether a body holds no argument, and nothing to be called behind."""
    arguments, words, embedded = codec.loads(base64.b64decode(body, validate=True))
    return arguments == [] and words == {} and not any(embedded.values())
