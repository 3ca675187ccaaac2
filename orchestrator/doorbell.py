"""Ring a hall: tell its worker through Celery that there is something to look at.

A ring carries no truth and may be lost or heard twice; ``serve`` rings again as long as
a ready game stays unclaimed.
"""

from __future__ import annotations

import kombu.exceptions
import redis.exceptions
import structlog

from orchestrator import celery

log = structlog.get_logger()

EXPIRES_SECONDS = 60  # s: a bell that nobody heard for that long is worth nothing


def ring(hall: str) -> None:
    """Publish one ring to the hall's queue; a failure is logged and left to the next ring."""
    try:
        celery.app.send_task(celery.PLAY, queue=celery.queue(hall), expires=EXPIRES_SECONDS)
    except (kombu.exceptions.OperationalError, redis.exceptions.RedisError, OSError) as error:
        log.warning("doorbell.failed", hall=hall, error=str(error))
