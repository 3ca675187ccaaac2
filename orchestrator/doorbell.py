"""Ring a hall: tell its worker through Celery that there is something to look at.

A ring carries no truth and may be lost or heard twice; ``serve`` rings again as long as
a ready game stays unclaimed, and a test match rings lanes that play nothing. A lane is
rung as ``HALL.LANE``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kombu.exceptions
import redis.exceptions
import structlog

from orchestrator import celery
from orchestrator.contract import bells
from orchestrator.ledger import address

log = structlog.get_logger()

EXPIRES_SECONDS = 60  # s: a bell that nobody heard for that long is worth nothing


def ring(hall: str, connection: Any = None) -> None:
    """Publish one ring to the hall's queue; a failure is logged and left to the next ring."""
    try:
        celery.app.send_task(
            bells.PLAY, queue=bells.queue(hall), expires=EXPIRES_SECONDS, connection=connection
        )
    except (kombu.exceptions.OperationalError, redis.exceptions.RedisError, OSError) as error:
        log.warning("doorbell.failed", hall=hall, error=str(error))


def at(url: str) -> Callable[[str], None]:
    """Return how to ring at another Redis than that of this process' environment."""
    connection = celery.app.connection_for_write(address.broker(url), ssl=address.tls(url))
    return lambda hall: ring(hall, connection)
