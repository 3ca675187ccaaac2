"""Defence: headers of every answer, time-outs, and what happens to clients that misbehave.

There is no way to write: every method but GET, HEAD and OPTIONS is refused (socket.io's
polling posts its pings). A connection that says nothing, or reads nothing, is cut, so
that nobody holds what others need (how many there may be: ``doors``); behind nginx these
limits come second.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from starlette import datastructures, responses, types
from uvicorn.protocols.http import h11_impl
from uvicorn.protocols.websockets import websockets_sansio_impl

from orchestrator.broadcast.web import connection_limits
from orchestrator.common import allowance

READ: Final = frozenset({"GET", "HEAD"})
OPEN: Final = (
    "/api/",
    "/pgn/",
    "/feeds/",
    "/tcec/",
    "/lichess/",
    "/socket.io/",
)  # for pages elsewhere too
HEADER_BYTES: Final = 16_384  # request line and headers together
SILENT_SECONDS: Final = 10.0  # s: from the connection to the end of its first request's head
STALLED_SECONDS: Final = 20.0  # s: a client that takes nothing for so long is cut
VIEWER_BYTES_A_SECOND: Final = 2_048  # B/s over a WebSocket; TCEC's own page sends 1 B/s
VIEWER_BYTES_AT_ONCE: Final = 16_384  # B: more than these, saved up, and it is cut
_OF_BODIES: Final = frozenset({b"transfer-encoding", b"content-length"})
_WITHOUT_BODY: Final = frozenset({b"GET", b"HEAD", b"OPTIONS"})
_CONNECTION: Final = "farm.connection"  # in the state of a request: what it came by

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
# For what other sites may show in a frame; all else is shown by nobody else.
FRAMED: Final = {
    "Content-Security-Policy": _POLICY.replace("frame-ancestors 'none'", "frame-ancestors *")
}
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), interest-cohort=()",
}
_CORS: Final = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "Last-Event-ID, If-None-Match",
    "Access-Control-Expose-Headers": "ETag, Link, X-Total-Count",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


def _cors(scope: types.Scope) -> dict[str, str]:
    """Return what lets pages elsewhere read an answer.

    Viewers made with socket.io 2 poll with credentials (there are none here): to them browsers
    show only an answer that names their own origin, as TCEC's server does.
    """
    origin = datastructures.Headers(scope=scope).get("origin")
    if origin is None or not scope["path"].startswith("/socket.io/"):
        return _CORS
    named = {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Credentials": "true"}
    return {**_CORS, **named, "Vary": "Origin"}


class Guard:
    """ASGI middleware: refuses what is no reading, adds the headers of every answer."""

    def __init__(self, app: types.ASGIApp) -> None:
        """Stand before an application."""
        self._app = app

    async def __call__(self, scope: types.Scope, receive: types.Receive, send: types.Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path, method = scope["path"], scope["method"]
        open_to_all = path.startswith(OPEN)

        async def send_guarded(message: types.Message) -> None:
            if message["type"] == "http.response.start":
                headers = datastructures.MutableHeaders(scope=message)
                for name, value in (_HEADERS | (_cors(scope) if open_to_all else {})).items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refusal(path, method)
        await (answer or self._app)(scope, receive, send_guarded)

    @staticmethod
    def _refusal(path: str, method: str) -> responses.Response | None:
        if method in READ or (method == "POST" and path.startswith("/socket.io/")):
            return None
        if method == "OPTIONS":
            return responses.Response(status_code=204)
        return responses.PlainTextResponse(
            "read-only server: use GET, HEAD or OPTIONS\n",
            405,
            headers={"Allow": "GET, HEAD, OPTIONS"},
        )


class _Bodies(h11.Connection):
    """A connection that takes only bodies whose length is told, and none behind a GET.

    A body in chunks of one byte costs its reader 50 µs a byte, before any bound of ours is asked;
    all others wait while one piece of it, as the kernel hands it over, is parsed.
    """

    _head_asked = False

    def next_event(self) -> Any:
        """Return what comes next; raise ``RemoteProtocolError`` for a head that is refused."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._head_asked = event.method == b"HEAD"
            body_headers = {name: value for name, value in event.headers if name in _OF_BODIES}
            if b"transfer-encoding" in body_headers:
                raise h11.RemoteProtocolError("a body needs its length", error_status_hint=411)
            if event.method in _WITHOUT_BODY and int(body_headers.get(b"content-length", b"0")):
                raise h11.RemoteProtocolError("a request to read has no body")
        return event

    def send(self, event: Any) -> Any:
        """Return the bytes of an event; the answer to a HEAD has no body.

        uvicorn sends one with its answer 400, and h11 raises an error for it.
        """
        if self._head_asked and isinstance(event, h11.Data):
            return b""
        return super().send(event)


class TimeoutProtocol(h11_impl.H11Protocol):
    """HTTP/1.1 with time-outs for slow request heads and for clients that stop reading."""

    _silent: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def __init__(
        self, *arguments: Any, limits: connection_limits.ConnectionLimits, **named: Any
    ) -> None:
        """Serve a connection that is not accepted yet."""
        super().__init__(*arguments, **named)
        self._limits, self._refused = limits, False
        self.conn = _Bodies(h11.SERVER, HEADER_BYTES)
        self.app_state = {**self.app_state, _CONNECTION: self}  # uvicorn: the scope's ``state``

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request, if there is room."""
        self._refused = not self._limits.enter(transport)
        self.transport = transport
        if not self._refused:
            super().connection_made(transport)
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; a whole request head ends the waiting."""
        if self._refused:
            return
        before = self.cycle
        super().data_received(data)
        if self.transport.get_protocol() is not self or self.cycle is not before:
            _cancel(self._silent)
            self._silent = None
        elif self._between_requests and self._silent is None:
            self._await_head()

    @property
    def _between_requests(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._silent = self.loop.call_later(SILENT_SECONDS, self._cut_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers, and the place that was taken."""
        self._limits.leave(self.transport)
        if self._refused:
            return
        _cancel(self._silent)
        _cancel(self._stalled)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Begin to wait for the client to read."""
        super().pause_writing()
        self._stalled = self.loop.call_later(STALLED_SECONDS, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        _cancel(self._stalled)
        super().resume_writing()

    def _cut_silent(self) -> None:
        if self._between_requests:
            self.transport.abort()


class CountedWebSocket(websockets_sansio_impl.WebSocketsSansIOProtocol):
    """A WebSocket that gives its place back, and is cut when it sends a flood."""

    def __init__(
        self, *arguments: Any, limits: connection_limits.ConnectionLimits, **named: Any
    ) -> None:
        """Take over a connection that was accepted."""
        super().__init__(*arguments, **named)
        self._limits = limits
        self._allowance = allowance.Allowance(VIEWER_BYTES_A_SECOND, VIEWER_BYTES_AT_ONCE)

    def data_received(self, data: bytes) -> None:
        """Take bytes; too many are not even parsed, since parsing keeps all others waiting."""
        if self._allowance.take(len(data)):
            super().data_received(data)
        else:
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the place that was taken."""
        self._limits.leave(self.transport)
        super().connection_lost(exc)


def transport(scope: types.Scope) -> asyncio.Transport:
    """Return the connection that a request came by, to be written to directly."""
    connection: TimeoutProtocol = scope["state"][_CONNECTION]
    return connection.transport


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
