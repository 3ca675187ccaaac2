"""The Celery application: a doorbell between orchestrator and halls, and nothing more.

No truth travels through Celery: a message may be lost or rung twice without harm.
Celery's own commands and Flower see the workers by it (``docs/celery.md``). Each
setting that differs from Celery's own default says why; the measurements are in
``docs/decisions/001-doorbell.md`` and ``031-recovery-times.md``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import celery
import click
from celery import signals

from orchestrator.common import logs
from orchestrator.contract import bells
from orchestrator.ledger import address, embedded_redis
from orchestrator.queues import broker

NOWHERE = "redis://localhost:6379/0"  # Redis' own default: where nothing else is known


def _route(name: str, args: Any, kwargs: Any, options: Mapping[str, Any], **_: Any) -> None:
    """Refuse what no worker would hear: another task, another queue, arguments.

    ``serve`` and the halls name a queue; a person at ``celery call`` forgets it, and what goes to
    Celery's default queue nobody ever reads.
    """
    if name not in (bells.PLAY, bells.PREPARE):
        raise click.UsageError(f"there is no task {name}; there are {bells.PLAY}, {bells.PREPARE}")
    if args or kwargs:
        raise click.UsageError(f"{name} takes no arguments: a ring says only that there is news")
    queue = getattr(options.get("queue"), "name", "")
    if not queue.startswith(f"{name}."):
        raise click.UsageError(
            f"{name} needs a queue: add --queue {name}.NAME, as in --queue {name}.hall-1 "
            "(`farm status` names the halls). Without it nothing is sent; serve rings by itself."
        )


_address = address.url() or embedded_redis.running_here() or NOWHERE
app = celery.Celery(bells.APP, broker=address.broker(_address), amqp=broker.Amqp)
app.conf.update(
    broker_use_ssl=address.tls(_address),
    accept_content=["json"],
    task_serializer="json",
    result_backend=None,
    task_ignore_result=True,  # a result that travels through Celery is lost with the link
    task_acks_late=False,  # late acks played games twice
    task_reject_on_worker_lost=False,
    task_publish_retry=False,  # a bell that fails to ring is rung again by `serve`
    task_default_queue="farm.idle",
    task_create_missing_queues=True,
    task_routes=(_route,),
    imports=("orchestrator.queues.remote_control",),  # of workers
    worker_disable_prefetch=True,  # no message waits behind a game of hours
    # 0: no limit beside the one above. A limit counts a message whose acknowledgement was lost
    # with its connection as unacknowledged for good: a limit of one is then never free again.
    worker_prefetch_multiplier=0,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_proc_alive_timeout=60.0,  # s: a new child first settles its host's old attempt
    worker_soft_shutdown_timeout=0,
    worker_redirect_stdouts=False,
    worker_send_task_events=True,  # `celery events` and Flower; who may publish, Redis' users say
    event_serializer="json",
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        # A ring that is lost is rung again, so nothing has to remember the ones under way; and no
        # key of that memory can be spoilt.
        "ack_emulation": False,
        "priority_steps": [0],  # one key a queue
        "socket_timeout": 5,  # s: as the ledger's; an answer lost in silence is noticed so soon
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        # s: a worker that hears nothing for so much longer than a wait lasts (1 s) connects again.
        # With kombu's own 25 s it was deaf for up to 51 s after one answer had been lost.
        "health_check_interval": 2,
        "global_keyprefix": bells.KEYS,
    },
    enable_utc=True,
)


@signals.setup_logging.connect
def _set_up_logging(**_: object) -> None:
    logs.configure()
    # A ring is two lines otherwise, one every five seconds at a hall that waits.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
