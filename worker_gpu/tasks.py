"""The doorbell of a GPU box: Celery's side of it.

A ring says only "look"; a lost one is made up for by the look that comes with the box's own
beat. The worker plays nothing and keeps no engine: agents and their engines outlive it.
"""

from __future__ import annotations

import threading

import celery
from celery import signals

from worker_gpu import box, settings

LOOK_SECONDS = 2.0  # s: how late a lost ring is made up for

_boxes: list[box.Box] = []  # one in a box's worker, none in any other


@celery.shared_task(name="farm.prepare")
def prepare() -> None:
    """Look at what halls want of this box, and answer."""
    for one in _boxes:
        one.look()


@signals.worker_ready.connect
def _open_box(**_: object) -> None:
    """Open the box; what was asked while it was away is answered now."""
    configured = settings.from_environment()
    one = box.Box(configured)
    _boxes.append(one)
    one.look()
    stop = threading.Event()
    signals.worker_shutdown.connect(lambda **_: stop.set(), weak=False)
    for seconds, work in ((LOOK_SECONDS, one.look), (configured.sample_seconds, one.sample)):
        threading.Thread(target=_beat, args=(seconds, work, stop), daemon=True).start()


def _beat(seconds: float, work: object, stop: threading.Event) -> None:
    assert callable(work)
    while not stop.wait(seconds):
        work()
