"""The doorbell: Celery's side of a hall.

A ring says only "look": the child looks at what its hall's past left behind, then at
what the hall may play now, and plays it. A child that starts looks as well, so that an
attempt lost with a killed worker is settled at once; so is one that a fault of ours cut off.
A lane's worker rings itself until the lane is known: nobody rings a lane that he does not
know.

A worker that cannot open its hall ends with the exit code of the error: what only logged it would
be a service that is active and plays nothing. Celery swallows what its signals' receivers raise,
but ``SystemExit``; so the child reports through a pipe how its opening went.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pathlib
import secrets
import signal
import threading
from multiprocessing import process
from typing import Any

import celery
import kombu.exceptions
import structlog
from celery import bootsteps, signals
from celery.worker import state

from orchestrator.common import errors
from orchestrator.contract import bells
from orchestrator.ledger import lane_store, store
from worker_cpu import settings
from worker_cpu.engines import mounts
from worker_cpu.host import heartbeat
from worker_cpu.referee import forkserver
from worker_cpu.worker import hall_worker, lane_worker

log = structlog.get_logger()

DRAIN_POLL_SECONDS = 2.0  # s: how soon an idle worker hears that it should end
LANE_RING_SECONDS = 10.0  # s: a look costs 3 s of polling the lock, beside an official game
PROBLEM_LENGTH = 1000  # characters: a line of them is written to a pipe whole
CHILD_SECONDS = 0.5  # s: how often the main process looks whether its child has ended

_keepers: list[
    hall_worker.HallWorker | lane_worker.LaneWorker
] = []  # one in a child, none in the main process
_reports: list[int] = []  # the pipe's end into which children report how their opening went


@celery.shared_task(name=bells.PLAY)
def play() -> None:
    """Look at the hall, and play what is ready there."""
    for hall_keeper in _keepers:
        try:
            hall_keeper.look()
        except Exception:
            # Nobody foresaw it, and an attempt may be left. The next child settles it at once;
            # in this one it would stand until its lease is late.
            log.exception("look.failed")
            os.kill(os.getpid(), signal.SIGKILL)


class _ChildWatch(bootsteps.StartStopStep):
    """Replace a child that has ended soon, not at the next of Celery's looks, 5 s apart.

    Celery looks as well when the child's pipe closes; but the kernel closes the files of a process
    before it can be reaped, so that look mostly comes too early, and there is no second one.
    """

    requires = ("celery.worker.components:Pool",)

    def register_with_event_loop(self, worker: Any, hub: Any) -> None:
        """Look from within Celery's loop; called again with each connection to Redis."""
        hub.call_repeatedly(CHILD_SECONDS, worker.pool.maintain_pool)


@signals.worker_init.connect
def _watch_the_child(sender: Any, **_: object) -> None:
    """Let this worker's main process watch its child."""
    sender.app.steps["worker"].add(_ChildWatch)


@signals.worker_init.connect
def _name_this_worker(**_: object) -> None:
    """Give this start of the worker a name of its own: a drain ends one start, not the next."""
    mounts.prefer_own_programs()
    try:
        hall = settings.from_environment()
    except errors.FarmError as error:
        log.critical("worker.not_configured", error=str(error))
        raise SystemExit(error.exit_code) from error
    _keep_shared_memory_in(hall.directory)
    os.environ["FARM_WORKER"] = f"{hall.host}/{hall.hall}/{secrets.token_hex(3)}"
    reading, writing = os.pipe()
    _reports.append(writing)
    threading.Thread(target=_hear_children, args=(reading, hall), daemon=True).start()


def _keep_shared_memory_in(folder: pathlib.Path) -> None:
    """Let the memory that Celery shares with its child be made in the hall's folder, not in /tmp.

    It is a file that is deleted as soon as it is open; but the folder in /tmp that would be made
    for it stays when this process is killed. There is no setting for it.
    """
    with contextlib.suppress(OSError):  # the child says what is wrong with the hall's folder
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            config = process.current_process()._config  # type: ignore[attr-defined]  # noqa: SLF001
            config["tempdir"] = str(folder)


@signals.worker_before_create_process.connect
def _share_memory(**_: object) -> None:
    """Let the child share this process's memory: a look for garbage would write to all of it."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@signals.worker_process_init.connect
def _open_hall(**_: object) -> None:
    """Open the hall in a new child; what an earlier one left behind is settled first."""
    # The children end when their worker ends: Celery asks the kernel for that. Ctrl-C is
    # the main process' business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        hall = settings.from_environment()
        of_lane = hall.lane != settings.WHOLE
        hall_keeper: hall_worker.HallWorker | lane_worker.LaneWorker
        if of_lane:  # it has no thread; a host has many lanes, and one memory
            hall_keeper = lane_worker.LaneWorker(hall, forkserver.forked)
        else:
            hall_keeper = hall_worker.HallWorker(hall)
        hall_keeper.open()
    except Exception as error:
        log.critical("hall.not_opened", error=str(error), exc_info=True)
        code = error.exit_code if isinstance(error, errors.FarmError) else 1
        _report(str(error) or type(error).__name__, code)
    else:
        _keepers.append(hall_keeper)
        _report("", 0)


def _report(problem: str, code: int) -> None:
    """Tell the main process how the opening went; one line is written whole."""
    text = json.dumps({"problem": problem[:PROBLEM_LENGTH], "exit": code})
    os.write(_reports[0], text.encode() + b"\n")


def _hear_children(reading: int, hall: settings.HallSettings) -> None:
    """Publish how this host is once a child has opened the hall; end when one cannot."""
    stop, beats = threading.Event(), False
    for line in os.fdopen(reading, "rb"):
        outcome = json.loads(line)
        if outcome["problem"]:
            stop.set()
            if hall.lane == settings.WHOLE:  # what a host with a hall tells is its hall's
                heartbeat.publish_problem(hall, outcome["problem"])
            state.should_stop = outcome["exit"]  # Celery's loop looks at it twice a second
        elif not beats:
            beats = True
            threading.Thread(target=heartbeat.beat, args=(hall, stop), daemon=True).start()


@signals.worker_ready.connect
def _watch_for_drain(**_: object) -> None:
    """End this worker when the operator drains it, also when no game runs."""
    hall = settings.from_environment()
    threading.Thread(target=_end_when_drained, args=(hall,), daemon=True).start()


@signals.worker_ready.connect
def _make_lane_known(**_: object) -> None:
    """Let the lane be opened as soon as it can be: its child found the hall taken, or no Redis."""
    hall = settings.from_environment()
    if hall.lane != settings.WHOLE:
        threading.Thread(target=_ring_until_known, args=(hall,), daemon=True).start()


def _end_when_drained(hall: settings.HallSettings) -> None:
    ledger = store.connect(hall.redis_url)
    pause = threading.Event()
    while True:
        try:
            reason = "" if _plays(ledger, hall) else ledger.drained(hall.hall, hall.worker)
        except errors.LedgerAwayError:
            reason = ""
        if reason:
            log.info("worker.drained", worker=hall.worker, reason=reason)
            os.kill(os.getpid(), signal.SIGTERM)  # Celery's warm end: the game is finished
            return
        pause.wait(DRAIN_POLL_SECONDS)


def _plays(ledger: store.RedisLedger, hall: settings.HallSettings) -> bool:
    """Say whether this worker has a game in flight: so long a drain may be taken back."""
    slot = ledger.slot(hall.hall) if hall.lane == settings.WHOLE else None
    return slot is not None and slot.worker == hall.worker


def _ring_until_known(hall: settings.HallSettings) -> None:
    lanes, pause = lane_store.connect(hall.redis_url), threading.Event()
    while True:
        try:
            if lane_worker.is_known(lanes, hall):
                return
            queue = bells.queue(f"{hall.hall}.{hall.lane}")
            play.apply_async(queue=queue)
        except (errors.LedgerAwayError, kombu.exceptions.OperationalError) as error:
            log.warning("redis.away", error=str(error))
        pause.wait(LANE_RING_SECONDS)
