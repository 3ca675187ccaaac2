"""Hold the own hall: no game begins there until the operator has looked (``farm release-hall``)."""

from __future__ import annotations

import structlog

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, store

log = structlog.get_logger()

SICK = "sick"  # the name of the hold
HELD = "hall_held"  # the fact's kind in the farm's journal
TRIES = 20  # a journal that grows between reading and writing is read again


def hold_hall(ledger: store.RedisLedger, claim: api.Claim, why: str) -> None:
    """Hold the hall of a claim and journal why; Redis away leaves it to the next failure."""
    fact = {"hall": claim.hall, "host": claim.host, "worker": claim.worker, "reason": why}
    drafts = [contract.Draft(HELD, fact)]
    effects = [api.Hold(f"hall:{claim.hall}", SICK, why)]
    log.error("hall.held", hall=claim.hall, reason=why)
    try:
        for _ in range(TRIES):
            last = ledger.last(api.FARM)
            reply = ledger.append(api.FARM, last, drafts, claim.worker, effects)
            if isinstance(reply, api.Appended):
                return
    except errors.LedgerAwayError as error:
        log.warning("redis.away", error=str(error))
