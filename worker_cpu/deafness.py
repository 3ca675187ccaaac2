"""A worker that no longer hears its bell ends, and is started anew by its supervisor.

When the connection is lost in the moment of an acknowledgement, Celery 5.7 logs it and goes
on, but counts the message as unacknowledged; with a prefetch of one it asks for no other
ever again: rings pile up in the queue, the hall is idle, and nothing fails.

Invariant: a worker that plays, or opens its hall for less than ``deaf_seconds``, is not ended.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import kombu.exceptions
import redis.exceptions
import structlog
from celery.worker import state

log = structlog.get_logger()

LOOK_SECONDS = 1.0  # s: how often the queue is looked at
_AWAY = (kombu.exceptions.OperationalError, redis.exceptions.RedisError, OSError)


def watch(app: Any, queue: str, deaf_seconds: float) -> None:
    """End this worker when rings have waited that long while it played nothing."""
    pause, since = threading.Event(), time.monotonic()
    while True:
        pause.wait(LOOK_SECONDS)
        now = time.monotonic()
        if state.active_requests or not _rings(app, queue):
            since = now
        elif now - since >= deaf_seconds:
            log.warning("worker.deaf", queue=queue, seconds=round(now - since, 1))
            os.kill(os.getpid(), signal.SIGTERM)  # Celery's warm end
            return


def _rings(app: Any, queue: str) -> int:
    """Return how many rings wait; none when nobody can say."""
    connection = app.connection_for_read()  # a thread has no current app
    try:
        found = connection.default_channel.queue_declare(queue=queue, passive=True)
    except connection.channel_errors:  # in Redis an empty queue does not exist
        return 0
    except _AWAY:
        return 0
    finally:
        connection.release()
    return int(found.message_count)
