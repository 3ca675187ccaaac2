"""The web application as a process: uvicorn with time-outs and limits."""

from __future__ import annotations

import contextlib
import functools
import logging
import resource
import socket
from typing import Final

import uvicorn
from starlette import types

from orchestrator.broadcast.web import connection_limits, guard

BACKLOG: Final = 2_048  # connections that wait while all others are served
_ACCEPTED: Final = 64  # connections taken from the backlog at once: between, others are served
_FILES: Final = 16_384  # descriptors wanted: spectators, files, and room for those who harm
_WS_BYTES: Final = 4_096  # what a viewer may send in one message
_KEEP_ALIVE_SECONDS: Final = 15
_STRANGERS: Final = (  # how uvicorn's lines about what a client has sent begin
    "Invalid UTF-8 sequence received from client",
    "Invalid HTTP request received",
    "Unsupported upgrade request",
)


class Server(uvicorn.Server):
    """A uvicorn that takes few of those who come at once, while all may wait."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to serve; uvicorn's ``backlog`` means both numbers."""
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)


def make(
    app: types.ASGIApp,
    host: str,
    port: int,
    limits: connection_limits.ConnectionLimits | None = None,
) -> Server:
    """Return the server; ``run(sockets=…)`` serves until it is told to end.

    ``limits`` says how many may come in, and which reverse proxies may say whose a request is.
    """
    _raise_limits()
    _quieten()
    limits = limits or connection_limits.ConnectionLimits()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=functools.partial(guard.TimeoutProtocol, limits=limits),  # type: ignore[arg-type]
        ws=functools.partial(guard.CountedWebSocket, limits=limits),  # type: ignore[arg-type]
        ws_max_size=_WS_BYTES,
        h11_max_incomplete_event_size=guard.HEADER_BYTES,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
        backlog=_ACCEPTED,
        proxy_headers=True,
        forwarded_allow_ips=list(limits.proxies),
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
    )
    return Server(config)


def _quieten() -> None:
    """Keep what strangers send from filling the log: uvicorn has a line for each of it."""
    log = logging.getLogger("uvicorn.error")
    if _of_strangers not in log.filters:
        log.addFilter(_of_strangers)


def _of_strangers(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_STRANGERS)


def _raise_limits() -> None:
    """Take as many descriptors as the host gives, up to what is wanted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
