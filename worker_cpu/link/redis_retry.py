"""How the hall waits for Redis when it is away: one way for every verb that may be repeated.

Invariants: what is waited for is asked again and again, so it must be idempotent (all verbs of
the ledger are); a wait ends, since a worker that is told to end must end. Two waits
are others: a ply's, which the dead man ends (``link``), and a beat's, which is not repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from orchestrator.common import errors

log = structlog.get_logger()

RETRY_SECONDS = 0.2  # s: between two tries while Redis is away
AWAY_SECONDS = 30.0  # s: so long is waited; then the next settling, or the next ring, has the rest
Reply = TypeVar("Reply")


def patiently(ask: Callable[[], Reply]) -> Reply:
    """Ask the ledger, and again while Redis is away; raise ``LedgerAwayError`` if it stays away.

    The outage is logged when it begins, not at each try.
    """
    deadline, logged = time.monotonic() + AWAY_SECONDS, False
    while True:
        try:
            return ask()
        except errors.LedgerAwayError as error:
            if not logged:
                log.warning("redis.away", error=str(error))
            logged = True
            if time.monotonic() >= deadline:
                raise
        time.sleep(RETRY_SECONDS)
