"""The Celery application: a doorbell between orchestrator and halls, and nothing more.

No truth travels through Celery: a message may be lost or rung twice without harm
(DESIGN §3). Each setting that differs from Celery's own default says why; the
measurements are in ``docs/decisions/001-doorbell.md``.
"""

from __future__ import annotations

import os

import celery
from celery import signals

from orchestrator import logs

PLAY = "farm.play"  # the one task: look at your hall, and play what is ready there


def queue(hall: str) -> str:
    """Return the queue of a hall's doorbell."""
    return f"farm.play.{hall}"


def _broker_url() -> str:
    """Return the broker of the environment; kombu writes unix sockets its own way."""
    url = os.environ.get("FARM_REDIS_URL", "redis://localhost:6379/0")
    return url.replace("unix://", "redis+socket://", 1)


app = celery.Celery("farm", broker=_broker_url())
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    result_backend=None,
    task_ignore_result=True,  # a result that travels through Celery is lost with the link
    task_acks_late=False,  # late acks played games twice
    task_reject_on_worker_lost=False,
    task_publish_retry=False,  # a bell that fails to ring is rung again by `serve`
    task_default_queue="farm.idle",
    task_create_missing_queues=True,
    worker_prefetch_multiplier=1,
    worker_disable_prefetch=True,  # no message waits in `unacked` behind a game of hours
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_proc_alive_timeout=60.0,  # s: a new child first settles its host's old attempt
    worker_soft_shutdown_timeout=0,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": 43_200,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "global_keyprefix": "farm:celery:",
    },
    enable_utc=True,
)


@signals.setup_logging.connect
def _set_up_logging(**_: object) -> None:
    logs.configure()
