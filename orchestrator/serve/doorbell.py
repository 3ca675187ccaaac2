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
from orchestrator.queues import broker

log = structlog.get_logger()


def ring(hall: str, connection: Any = None) -> None:
    """Publish one ring to the hall's queue; a failure is logged and left to the next ring.

    Where a ring waits already, its reader will look, and another one would tell nothing more: so a
    hall that is away for weeks finds one ring, and none has to expire (by whose clock?).
    """
    queue = bells.queue(hall)
    try:
        with celery.app.connection_or_acquire(connection) as link:
            if not broker.waiting(link, queue):
                celery.app.send_task(bells.PLAY, queue=queue, connection=link)
    except (kombu.exceptions.OperationalError, redis.exceptions.RedisError, OSError) as error:
        log.warning("doorbell.failed", hall=hall, error=str(error))


def at(url: str) -> Callable[[str], None]:
    """Return how to ring at another Redis than that of this process' environment."""
    connection = celery.app.connection_for_write(address.broker(url), ssl=address.tls(url))
    return lambda hall: ring(hall, connection)
