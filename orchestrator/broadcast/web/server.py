"""The web application as a process: uvicorn with an end of patience."""

from __future__ import annotations

import contextlib
import resource
from typing import Final

import uvicorn
from starlette import types

from orchestrator.broadcast.web import guard

_FILES: Final = 16_384  # descriptors wanted: spectators, files, and room for those who harm
_WS_BYTES: Final = 4_096  # what a viewer may send in one message
_KEEP_ALIVE_SECONDS: Final = 15


def make(app: types.ASGIApp, host: str, port: int) -> uvicorn.Server:
    """Return the server; ``run(sockets=…)`` serves until it is told to end."""
    _raise_limits()
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=guard.PatientProtocol,
        ws="websockets-sansio",
        ws_max_size=_WS_BYTES,
        h11_max_incomplete_event_size=guard.HEADER_BYTES,
        limit_concurrency=guard.CONNECTIONS,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=1,
        backlog=2_048,
        proxy_headers=True,
        server_header=False,
        access_log=False,
        log_config=None,
        lifespan="on",
    )
    return uvicorn.Server(config)


def _raise_limits() -> None:
    """Take as many descriptors as the host gives, up to what is wanted."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
