"""Celery's remote control at a farm's workers: what could end or double a game is refused.

A worker plays one game at a time under the ledger's rules. Celery's orders know nothing of them:
one more child, a time limit or another queue would break a game or leave a hall deaf. Each such
order is answered with the farm's own command for it. Workers load this module (``imports`` in
``orchestrator.celery``); ``docs/celery.md`` has the table for people.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog
from celery.worker import control

log = structlog.get_logger()

_ONE = "a worker has one child and plays one game; more halls or lanes play more"
_LIMIT = (
    "a game lasts as long as its clocks; `farm season pause` begins no other, `farm game abort`"
    " ends one"
)
_QUEUE = (
    "a worker hears its own queue; `farm season pause` and `farm host drain` stop it from playing"
)
_GAME = "it would break the game off; `farm game abort SEASON` ends it under the rules"
REFUSED = {
    **dict.fromkeys(("pool_grow", "pool_shrink", "pool_restart", "autoscale"), _ONE),
    **dict.fromkeys(("time_limit", "rate_limit"), _LIMIT),
    **dict.fromkeys(("add_consumer", "cancel_consumer"), _QUEUE),
    **dict.fromkeys(("revoke", "revoke_by_stamped_headers", "terminate"), _GAME),
}


def _refusal(name: str, reason: str) -> Callable[..., dict[str, str]]:
    def refuse(_state: Any, **_: Any) -> dict[str, str]:
        log.warning("control.refused", order=name)
        return {"error": f"{name} is refused: {reason}"}

    return refuse


for _name, _reason in REFUSED.items():
    control.Panel.data[_name] = _refusal(_name, _reason)
