"""Celery's way to Redis: what may arrive over it, and how long a read may take.

Three kinds of messages travel: rings through the queues of halls and GPU boxes, orders and replies
of Celery's remote control, and events. Invariants: whatever bytes arrive, and whatever type a key
has, no worker ends by it: what is no message is dropped, counted and logged; no read waits without
an end, so that a dead control channel leaves a hall's ears alone.

kombu has no setting for any of it, so its classes are extended where bytes come in. Plain ones were
tried: 13 of 15 malformed messages ended the worker (``docs/decisions/001-doorbell.md``).
"""

# kombu has no types.
# mypy: disable-error-code="no-untyped-call,misc,attr-defined"

from __future__ import annotations

import contextlib
import queue as queue_module
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import structlog
from celery.app import amqp
from kombu import connection
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as redis_transport
from kombu.utils import objects
from redis import exceptions

from orchestrator.common import logs
from orchestrator.contract import bells, rings
from orchestrator.ledger import connection as ledger_connection

log = structlog.get_logger()
Result = TypeVar("Result")

READ_SECONDS = 1.0  # s: a subscription is read when bytes are there; the rest of them is near
LOG_SECONDS = 60.0  # s: between two lines about dropped messages; each is counted
EVENTS = "celeryev"  # Celery's exchange of events
RECONNECT = {  # s: Redis that restarts is away for less than Celery's own first wait, 2 s
    "interval_start": 0.2,
    "interval_step": 0.3,
    "interval_max": 2.0,  # Celery's own waits grow to 30 s
}


class _Dropped:
    """The messages that this process has dropped."""

    def __init__(self) -> None:
        self._unlogged, self._logged = 0, 0.0

    def add(self, client: _Client, queue: str, why: str) -> None:
        """Count one, and log it unless a line has just been logged."""
        with contextlib.suppress(exceptions.RedisError):
            client.hincrby(bells.DROPPED, queue, 1)
        self._unlogged += 1
        now = time.monotonic()
        if not self._logged or now - self._logged > LOG_SECONDS:
            log.error("message.dropped", queue=queue, why=why, count=self._unlogged)
            self._unlogged, self._logged = 0, now


_dropped = _Dropped()


class _Subscription(redis_transport.PrefixedRedisPubSub):
    """A subscription whose reads end, and that passes on nothing but messages."""

    client: _Client

    def parse_response(self, *_: Any, **__: Any) -> Any:
        """Return what has arrived; None where it is no message, or none is there.

        redis-py's own read of a subscription has no time-out, and connects again within the read
        when the link breaks: there nothing waits to be read, and the worker's loop stood for good.
        """
        reply = super().parse_response(block=False, timeout=READ_SECONDS)
        if reply and reply[0] in (b"message", b"pmessage"):
            *kind, channel, raw = reply
            plain = rings.plain_message(raw)
            if plain is None:
                _dropped.add(self.client, _text(channel), "no message of Celery's")
                return None
            return [*kind, channel, plain]
        return reply


class _Client(redis_transport.PrefixedStrictRedis):
    """A client that takes nothing but messages from a queue."""

    def pubsub(self, **options: Any) -> _Subscription:
        """Return a subscription of this client."""
        made = _Subscription(
            self.connection_pool, global_keyprefix=self.global_keyprefix, **options
        )
        made.client = self
        return made

    def parse_response(self, connection: Any, command_name: str, **options: Any) -> Any:
        """Return the reply to a command; None for a message that is dropped."""
        reply = super().parse_response(connection, command_name, **options)
        if command_name != "BRPOP" or not reply:
            return reply
        queue, raw = reply
        name = _text(queue)
        plain = rings.plain(raw, name) if bells.is_queue(name) else rings.plain_message(raw)
        if plain is None:
            _dropped.add(self, name, "no ring" if bells.is_queue(name) else "no message")
            return None
        return queue, plain


class _Channel(redis_transport.Channel):
    """A channel that outlives keys of another type, forbidden subscriptions and a new password."""

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002 - kombu's
        options: dict[str, Any] = super()._connparams(asynchronous)
        return ledger_connection.with_fresh_credentials(options)

    def _get_client(self) -> Callable[..., _Client]:
        super()._get_client()  # checks redis-py's version
        return lambda **options: _Client(global_keyprefix=self.global_keyprefix, **options)

    @objects.cached_property
    def subclient(self) -> _Subscription:
        """Return the link that listens to remote control and events."""
        client: _Client = self._create_client(asynchronous=True)
        return client.pubsub()

    def _brpop_read(self, **options: Any) -> Any:
        read = super()._brpop_read
        names = dict.fromkeys(self.active_queues, b"list")
        return self._cleaned(names, lambda: read(**options), again=False)

    def _put(self, queue: str, message: Any, **options: Any) -> Any:
        put = super()._put
        return self._cleaned({queue: b"list"}, lambda: put(queue, message, **options))

    def _size(self, queue: str) -> int:
        size = super()._size
        return self._cleaned({queue: b"list"}, lambda: int(size(queue)))

    def waiting(self, queue: str) -> int:
        """Return how many messages wait in a queue."""
        return self._size(queue)

    def get_table(self, exchange: str) -> Any:
        """Return the queues that are bound to an exchange."""
        table = super().get_table
        return self._cleaned(self._tables(exchange), lambda: table(exchange))

    def _queue_bind(self, exchange: str, *rest: Any) -> Any:
        bind = super()._queue_bind
        return self._cleaned(self._tables(exchange), lambda: bind(exchange, *rest))

    def _refresh_bindings(self, queues: list[str]) -> None:
        refresh = super()._refresh_bindings
        exchanges = {binding[0] for queue in queues for binding in self.state.queue_bindings(queue)}
        names = {
            name: kind for exchange in exchanges for name, kind in self._tables(exchange).items()
        }
        self._cleaned(names, lambda: refresh(queues))

    def _tables(self, exchange: str) -> dict[str, bytes]:
        return {
            self.keyprefix_queue % exchange: b"set",
            self.keyprefix_binding_permanent % exchange: b"set",
            self.keyprefix_binding_deadlines: b"zset",
        }

    def _cleaned(
        self, names: Mapping[str, bytes], act: Callable[[], Result], *, again: bool = True
    ) -> Result:
        """Do it; keys of another type than Celery gives them are deleted, and it is done again."""
        try:
            return act()
        except exceptions.ResponseError as error:
            if "WRONGTYPE" not in str(error):
                raise
        client = self._create_client()
        for name, ours in names.items():
            kind = client.type(self.global_keyprefix + name)
            if kind not in (ours, b"none"):
                client.delete(name)
                _dropped.add(client, name, f"a key of another type: {_text(kind)}")
        if not again:
            raise queue_module.Empty
        return act()

    def _receive(self) -> Any:
        try:
            return super()._receive()
        except exceptions.NoPermissionError as error:
            # The hall plays all the same: its queue is another link.
            log.error(  # noqa: TRY400 - no bug
                "control.forbidden", error=str(error), do="make Redis' users again (farm acl)"
            )
            self.active_fanout_queues.clear()
            raise queue_module.Empty from error

    def _put_fanout(self, exchange: str, *rest: Any, **options: Any) -> None:
        try:
            super()._put_fanout(exchange, *rest, **options)
        except exceptions.NoPermissionError:
            if exchange != EVENTS:
                raise  # who may not give orders is told so; events that nobody may hear are none


class Transport(redis_transport.Transport):
    """Redis as Celery knows it, but with the channels above."""

    Channel = _Channel


# By kombu's table of transports every link of this process is one, those of Celery's pools too.
TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), "orchestrator.queues.broker:Transport"))


class _Connection(connection.Connection):
    """A connection to Redis with short waits, that tells its password to nobody."""

    def ensure_connection(self, *args: Any, **kwargs: Any) -> Any:
        """Connect, and try again while Redis is away."""
        return super().ensure_connection(*args, **(RECONNECT | kwargs))

    def info(self) -> dict[str, Any]:
        """Return what ``inspect stats`` tells of it: a socket's address holds the password."""
        connection_info: dict[str, Any] = super().info()
        return connection_info | {"hostname": logs.mask(str(connection_info["hostname"]))}


class Amqp(amqp.AMQP):
    """What Celery makes its connections with."""

    Connection = _Connection


def waiting(link: connection.Connection, queue: str) -> int:
    """Return how many messages wait in a queue."""
    return int(link.default_channel.waiting(queue))


def _text(raw: Any) -> str:
    return raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
