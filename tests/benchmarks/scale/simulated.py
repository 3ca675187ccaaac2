"""Simulated workers: they claim, sleep and complete, through real Celery and real Redis.

Loaded into Celery worker processes with ``--include simulated``. A ring comes by its lane's
queue; its game is a short sleep; the end of a game rings the lane again, so that every game is
one dispatch through Celery, as ``serve`` and ``farm test`` dispatch.
"""

from __future__ import annotations

import os
import secrets
import time

import celery

from orchestrator import celery as app
from orchestrator import contract
from orchestrator.contract import bells
from orchestrator.ledger import api, lane_store, lanes

SLEEP_SECONDS = float(os.environ.get("SCALE_SLEEP", "0.05"))  # s: what stands for a game
RESULT = contract.dumps({"result": "1/2-1/2", "ending": "stalemate", "pgn": "x" * 2000})

_lanes: list[lane_store.RedisLanes] = []


def empty_lanes() -> lane_store.RedisLanes:
    """Return this process' lanes; its client serves all threads."""
    if not _lanes:
        _lanes.append(lane_store.connect(os.environ["FARM_REDIS_URL"]))
    return _lanes[0]


def ring(hall: str, lane: str) -> None:
    """Send one dispatch."""
    app.app.send_task(bells.PLAY, queue=queue(hall, lane))


def queue(hall: str, lane: str) -> str:
    """Return the queue of a lane's bell."""
    return bells.queue(f"{hall}.{lane}")


@celery.shared_task(name=bells.PLAY, bind=True)
def play(self: celery.Task) -> None:
    """Play one game of sleep in the lane that was rung, and ring for the next."""
    rung = self.request.delivery_info["routing_key"].removeprefix(bells.queue(""))
    hall, _, lane = rung.rpartition(".")
    ledger = empty_lanes()
    attempt = f"{hall}.{lane}-{secrets.token_hex(8)}"
    claim = lanes.LaneClaim(hall, lane, attempt, f"w-{hall}-{lane}", hall, 600_000)
    dealt = ledger.claim_lane(claim)
    if not isinstance(dealt, lanes.Dealt):
        if not isinstance(dealt, api.NotReady) or dealt_out(ledger):
            return
        time.sleep(0.2)  # the mirror is behind: results may wait no further
        ring(hall, lane)
        return
    time.sleep(SLEEP_SECONDS)
    lease = lanes.Lease(
        hall, lane, attempt, dealt.token, dealt.match, dealt.games, claim.worker, hall, 0
    )
    place = {"game": dealt.game, "host": hall, "lane": lane, "loser": None, "note": ""}
    facts = contract.loads(RESULT) | place | {"details": "", "attempt": attempt}
    reply = ledger.complete_lane(lease, contract.dumps(facts))
    assert isinstance(reply, api.Recorded), reply
    ring(hall, lane)


def dealt_out(ledger: lane_store.RedisLanes) -> bool:
    """Say whether every game has been dealt."""
    return all(match.next > match.games and not match.again for match in ledger.matches().values())
