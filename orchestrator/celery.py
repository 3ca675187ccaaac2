"""The Celery application: a doorbell between orchestrator and halls, and nothing more.

No truth travels through Celery: a message may be lost or rung twice without harm
(DESIGN §3), and what is no ring is dropped before Celery sees it. Each setting that differs
from Celery's own default says why; the measurements are in ``docs/decisions/001-doorbell.md``
and ``031-recovery-times.md``.
"""

from __future__ import annotations

import json
from typing import Any

import celery
import structlog
from celery import signals
from celery.app import amqp
from kombu import connection as kombu_connection
from kombu.transport import redis as redis_transport

from orchestrator import logs
from orchestrator.contract import bells, rings
from orchestrator.ledger import address, connection

log = structlog.get_logger()

RECONNECT = {  # s: Redis that restarts is away for less than Celery's own first wait, 2 s
    "interval_start": 0.2,
    "interval_step": 0.3,
    "interval_max": 2.0,  # Celery's own waits grow to 30 s
}


class _Channel(redis_transport.Channel):
    """A queue's end that outlives bytes that are no message at all, and a new password."""

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - kombu's
        options = super()._connparams(asynchronous)  # type: ignore[no-untyped-call]
        return connection.with_fresh_credentials(options)

    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            log.error("ring.unreadable", error=type(error).__name__)  # noqa: TRY400 - no bug
            return True


class _Rings(redis_transport.Transport):
    """Redis as it is, but that only rings are delivered."""

    Channel = _Channel

    def _deliver(self, message: Any, queue: str) -> None:
        ring = rings.plain(message, queue)
        if ring is None:
            log.error("ring.foreign", queue=queue)
        else:
            super()._deliver(ring, queue)  # type: ignore[no-untyped-call]


class _Connection(kombu_connection.Connection):
    """A connection to Redis that delivers rings, and whose waits are short: one worker waits."""

    def get_transport_cls(self) -> type[_Rings]:
        """Return what reads the queues."""
        return _Rings

    def ensure_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connect, and try again while Redis is away."""
        return super().ensure_connection(*args, **(RECONNECT | kwargs))  # type: ignore[no-untyped-call]


class _Transport(amqp.AMQP):
    """What Celery makes its connections with."""

    Connection = _Connection


_address = address.url() or "redis://localhost:6379/0"
app = celery.Celery(bells.APP, broker=address.broker(_address), amqp=_Transport)
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
    worker_disable_prefetch=True,  # no message waits in `unacked` behind a game of hours
    # 0: no limit beside the one above. A limit counts a message whose acknowledgement was lost
    # with its connection as unacknowledged for good: a limit of one is then never free again.
    worker_prefetch_multiplier=0,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_proc_alive_timeout=60.0,  # s: a new child first settles its host's old attempt
    worker_soft_shutdown_timeout=0,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    # Nobody uses it, one word of it ends every worker, and its subscription is read without a
    # time-out in Celery's own loop: a hall whose link came back in that read stayed deaf for good.
    worker_enable_remote_control=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "visibility_timeout": 43_200,
        "socket_timeout": 5,  # s: as the ledger's; an answer lost in silence is noticed so soon
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        # s: a worker that hears nothing for so much longer than a wait lasts (1 s) connects anew.
        # With kombu's own 25 s it was deaf for up to 51 s after one answer had been lost.
        "health_check_interval": 2,
        "global_keyprefix": bells.KEYS,
    },
    enable_utc=True,
)


@signals.setup_logging.connect
def _set_up_logging(**_: object) -> None:
    logs.configure()
