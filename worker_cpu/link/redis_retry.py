"""Repeat a request while Redis is away: the same wait for every verb that may be repeated.

Invariants: the request must be idempotent (all verbs of the ledger are); a wait ends, since a
worker that is to stop must stop. Two waits are handled elsewhere: a ply's, which the dead man ends
(``attempt``), and a lease renewal's, which is not repeated (``lease``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from orchestrator.common import errors

log = structlog.get_logger()

RETRY_SECONDS = 0.2  # s: between two tries while Redis is away
AWAY_SECONDS = 30.0  # s: the longest wait; the rest is left to the next look of the worker
Reply = TypeVar("Reply")


def retry(ask: Callable[[], Reply]) -> Reply:
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
