"""What Celery's messages look like on their way through Redis: whatever else arrives is none.

A ring says "look", and nothing more. Celery's messages could carry more: arguments, a time limit
that kills the child, tasks to be called afterwards; and one that Celery cannot read ends the
worker that takes it. Orders, replies and events of its remote control carry JSON, and are read by
code that expects what Celery writes. Invariants: nothing but a message passes, whoever has written
it; it is made again from what was checked, so that Celery reads no other word of a stranger's.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from orchestrator.contract import bells, codec

_TASKS: Final = frozenset({bells.PLAY, bells.PREPARE})
_NO_LIMITS: Final = (None, [None, None])
_NAME: Final = re.compile(r"[0-9A-Za-z-]{1,64}")  # of a message, and of its delivery: UUIDs
_BODY: Final = base64.b64encode(  # no argument, nothing to be called behind
    b'[[], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]'
).decode()
_BIGGEST: Final = 2**53  # of a number in a header: what every reader holds exactly
_WORDS: Final = 256  # characters of a text in a header
# Everything that bytes can do to their reader: kombu's own decoder raises other errors still.
_UNREADABLE: Final = (KeyError, TypeError, ValueError, AttributeError, RecursionError)


def plain(raw: bytes, queue: str) -> bytes | None:
    """Return the ring that the bytes of a queue are, made again; None where they are none."""
    try:
        message = codec.loads(raw)
        if _is_envelope(message) and _is_call(message["headers"]) and _is_empty(message["body"]):
            ring = _ring(message["headers"], message["properties"], queue)
            return codec.dumps(ring).encode()
    except _UNREADABLE:
        pass  # it has another shape
    return None


def plain_message(raw: bytes) -> bytes | None:
    """Return the message of Celery's own that bytes are, made again; None where they are none."""
    try:
        message = codec.loads(raw)
        if _is_envelope(message):
            codec.loads(base64.b64decode(message["body"], validate=True))
            return codec.dumps(_message(message)).encode()
    except _UNREADABLE:
        pass
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
    arguments, keywords, embedded = codec.loads(base64.b64decode(body, validate=True))
    return arguments == [] and keywords == {} and not any(embedded.values())


def _ring(headers: Any, properties: Any, queue: str) -> dict[str, Any]:
    """Return a ring's message; all that Celery reads of one stands in it.

    It never expires: that would compare the clocks of two hosts, and a ring that is late harms
    nobody.
    """
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
            "expires": None,
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


def _message(message: Any) -> dict[str, Any]:
    """Return a message with its body, and of its headers what is short and plain."""
    headers, properties = message["headers"], message["properties"]
    delivery = properties["delivery_info"]
    return {
        "body": message["body"],
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {name: value for name, value in headers.items() if _is_short(value)},
        "properties": {
            "delivery_mode": 2,
            "delivery_info": {name: str(delivery[name]) for name in ("exchange", "routing_key")},
            "priority": 0,
            "body_encoding": "base64",
            "delivery_tag": properties["delivery_tag"],
        },
    }


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _WORDS
    return value is None or (isinstance(value, int | float) and abs(value) < _BIGGEST)
