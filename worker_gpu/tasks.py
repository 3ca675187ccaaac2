"""The doorbell of a GPU box: Celery's side of it.

A ring says only "look"; a lost one is made up for by the look that comes with the box's own
beat. The worker plays nothing and keeps no engine: agents and their engines outlive it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import celery
import structlog
from celery import signals

from orchestrator.common import errors
from orchestrator.contract import bells
from worker_gpu import seats, settings

log = structlog.get_logger()

LOOK_SECONDS = 2.0  # s: how late a lost ring is made up for

_boxes: list[seats.Box] = []  # one in a box's worker, none in any other


@celery.shared_task(name=bells.PREPARE)
def prepare() -> None:
    """Look at what halls want of this box, and answer."""
    for box in _boxes:
        box.look()


@signals.worker_ready.connect
def _open_box(**_: object) -> None:
    """Open the box; what was asked while it was away is answered now.

    A box that cannot be opened ends its worker: Celery swallows all but ``SystemExit`` here.
    """
    try:
        configured = settings.from_environment()
        box = seats.Box(configured)
    except errors.FarmError as error:
        log.critical("box.not_opened", error=str(error))
        raise SystemExit(error.exit_code) from error
    _boxes.append(box)
    box.look()
    stop = threading.Event()
    signals.worker_shutdown.connect(lambda **_: stop.set(), weak=False)
    for seconds, work in ((LOOK_SECONDS, box.look), (configured.sample_seconds, box.sample)):
        threading.Thread(target=beat, args=(seconds, work, stop), daemon=True).start()


def beat(seconds: float, work: Callable[[], None], stop: threading.Event) -> None:
    """Do a box's work again and again; what fails once, such as a full disk, is tried again."""
    while not stop.wait(seconds):
        try:
            work()
        except Exception:  # the top of a loop
            log.exception("beat.failed")
