"""The two push protocols of TCEC's viewers, served beside our own stream.

``/api/`` is the plain WebSocket. ``/socket.io/`` is engine.io 3 with socket.io 2, as far as
those viewers use it: long polling, the upgrade to a WebSocket, events. python-socketio 4
speaks it too, but not on Python 3.11 and later (``docs/decisions/020-broadcast.md``).
Nothing that a viewer sends reaches the farm.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from typing import Final

from starlette import requests, responses, websockets

from orchestrator import contract
from orchestrator.broadcast.web import hub, tcecwire
from orchestrator.common import allowance as allowances
from orchestrator.common import text as texts

PING_MS: Final = 25_000  # ms: the client pings this often
SILENCE_SECONDS: Final = 60.0  # s: a session without any request for so long is over
POLL_SECONDS: Final = 20.0  # s: a poll without news is answered after that
SESSIONS: Final = 1_000  # long-polling sessions at once
_LENGTH_DIGITS: Final = 6  # of a packet's length
_TOO_LONG: Final = 4_096  # bytes: viewers say little
POST_SECONDS: Final = 10.0  # s: what a viewer posts has come by then
POLLING_EACH: Final = 64  # long-polling sessions of one address
REFRESH_SECONDS: Final = 1.0  # s: a viewer is sent the last moves again at most this often
MESSAGES_A_SECOND: Final = 20.0  # of one viewer; TCEC's own page sends one in 25 s
MESSAGES_AT_ONCE: Final = 60.0  # more than these, saved up, and the viewer is disconnected
FLOODING: Final = 1008  # WebSocket close code: policy violation (RFC 6455, 7.4.1)

NOOP, PING, PONG, PROBE_REPLY, UPGRADE = "6", "2", "3", "3probe", "5"


class Plain:
    """The plain WebSocket: JSON arrays ``[method, data]``, a zero byte keeps it alive."""

    def __init__(self, center: hub.Hub) -> None:
        """Send what the hub tells."""
        self._hub = center

    async def socket(self, socket: websockets.WebSocket) -> None:
        """Serve one viewer until it leaves."""
        await socket.accept()
        listener = self._hub.open_socket(tcecwire.Wire.PLAIN)
        listener.offer(tcecwire.viewers(tcecwire.Wire.PLAIN, self._hub.count), volatile=False)
        try:
            await _first_to_end(_send_all(socket, listener), self._answer(socket, listener))
        finally:
            self._hub.leave(listener)

    @staticmethod
    async def _answer(socket: websockets.WebSocket, listener: hub.Listener) -> None:
        async for message in _messages(socket, listener, allowance()):
            if isinstance(message, bytes) and message:
                await socket.send_bytes(b"\0")


class Session:
    """One socket.io viewer; ``address`` is where it comes from."""

    def __init__(self, listener: hub.Listener, address: str) -> None:
        """Begin with nothing said."""
        self.listener, self.address = listener, address
        self.seen = time.monotonic()
        self.upgraded = False
        self.polling: asyncio.Task[bytes | None] | None = None
        self.allowance = allowance()
        self.refreshed = -REFRESH_SECONDS  # s, monotonic


def allowance() -> allowances.Allowance:
    """Return what a viewer may say: it is counted in messages."""
    return allowances.Allowance(MESSAGES_A_SECOND, MESSAGES_AT_ONCE)


class SocketIo:
    """engine.io 3 and socket.io 2."""

    def __init__(self, center: hub.Hub) -> None:
        """Send what the hub tells."""
        self._hub = center
        self._sessions: dict[str, Session] = {}

    def _open(self, address: str, *, polls: bool) -> tuple[str, Session]:
        self._forget_silent()
        polling = [
            session_open.address
            for session_open in self._sessions.values()
            if not session_open.upgraded
        ]
        if polls and len(polling) >= SESSIONS:
            raise hub.FullError("too many viewers that poll; try again in a minute")
        if polls and polling.count(address) >= POLLING_EACH:
            raise hub.FullError("too many viewers that poll from your address; close some")
        session = Session(self._hub.open_socket(tcecwire.Wire.SOCKET_IO), address)
        name = secrets.token_urlsafe(15)
        self._sessions[name] = session
        return name, session

    def _forget_silent(self) -> None:
        limit = time.monotonic() - SILENCE_SECONDS
        for name, session in list(self._sessions.items()):
            if session.seen < limit and not session.upgraded:
                self._close(name)

    def _close(self, name: str) -> None:
        session = self._sessions.pop(name, None)
        if session is not None:
            self._hub.leave(session.listener)
            session.listener.dismiss()

    # -- long polling ------------------------------------------------------------------

    async def poll(self, request: requests.Request) -> responses.Response:
        """Answer a request of the polling transport."""
        name = request.query_params.get("sid", "")
        if not name:
            return self._handshake(_address(request))
        session = self._sessions.get(name)
        if session is None:
            return responses.JSONResponse({"code": 1, "message": "Session ID unknown"}, 400)
        session.seen = time.monotonic()
        if request.method == "POST":
            return await self._posted(request, session)
        return _payload(*await self._news(session))

    def _handshake(self, address: str) -> responses.Response:
        name, _ = self._open(address, polls=True)
        return _payload(_hello(name, ["websocket"]), "40", self._users())

    def _users(self) -> str:
        return tcecwire.viewers(tcecwire.Wire.SOCKET_IO, self._hub.count).decode()

    async def _posted(self, request: requests.Request, session: Session) -> responses.Response:
        try:
            async with asyncio.timeout(POST_SECONDS):
                body = await _body(request)
        except TimeoutError:
            return responses.PlainTextResponse("too slow", 408)
        if body is None:
            return responses.PlainTextResponse("too long", 413)
        for packet in _packets(body.decode(errors="replace")):
            if not session.allowance.take():
                session.listener.dismiss()
                return responses.PlainTextResponse("too many messages", 429)
            self._answer(packet, session)
        return responses.PlainTextResponse("ok")

    def _answer(self, packet: str, session: Session) -> None:
        if packet.startswith(PING):
            session.listener.offer((PONG + packet[1:]).encode(), volatile=False)
        elif '"getusers"' in packet:
            session.listener.offer(self._users().encode(), volatile=False)
        elif '"refreshdata"' in packet:
            self._refresh(session)

    def _refresh(self, session: Session) -> None:
        """Send the last moves again; who asks faster than they can change has them already."""
        moves = self._hub.last_moves(tcecwire.Wire.SOCKET_IO)
        if moves is None or time.monotonic() - session.refreshed < REFRESH_SECONDS:
            return
        session.refreshed = time.monotonic()
        session.listener.offer(moves, volatile=False)

    async def _news(self, session: Session) -> list[str]:
        """Wait for something to tell; an upgrade ends the waiting with a no-op."""
        if session.upgraded or session.polling is not None:
            return [NOOP]
        session.polling = asyncio.ensure_future(session.listener.get_one())
        try:
            frame = await asyncio.wait_for(session.polling, POLL_SECONDS)
        except (TimeoutError, asyncio.CancelledError):
            return [NOOP]
        finally:
            session.polling = None
        return [NOOP] if frame is None else [frame.decode()]

    # -- WebSocket ---------------------------------------------------------------------

    async def socket(self, socket: websockets.WebSocket) -> None:
        """Serve a viewer over a WebSocket, from the start or after polling."""
        name = socket.query_params.get("sid", "")
        session = self._sessions.get(name)
        if name and session is None:
            await socket.close()
            return
        await socket.accept()
        if session is None:
            name, session = self._open(_address(socket), polls=False)
            await socket.send_text(_hello(name, []))
            await socket.send_text("40")
            session.listener.offer(self._users().encode(), volatile=False)
        elif not await self._probe(socket, session):
            self._close(name)
            return
        session.upgraded = True
        try:
            await _first_to_end(_send_all(socket, session.listener), self._listen(socket, session))
        finally:
            self._close(name)

    @staticmethod
    async def _probe(socket: websockets.WebSocket, session: Session) -> bool:
        """Take over from polling; say whether the viewer went through with it."""
        async for text in _messages(socket, session.listener, session.allowance):
            if text == UPGRADE:
                return True
            if text == "2probe":
                await socket.send_text(PROBE_REPLY)
                if session.polling is not None:
                    session.polling.cancel()
        return False

    async def _listen(self, socket: websockets.WebSocket, session: Session) -> None:
        async for text in _messages(socket, session.listener, session.allowance):
            if isinstance(text, bytes):
                return  # no viewer of socket.io 2 sends bytes
            session.seen = time.monotonic()
            self._answer(text, session)


async def _messages(
    socket: websockets.WebSocket, listener: hub.Listener, allowed: allowances.Allowance
) -> AsyncIterator[str | bytes]:
    """Yield what a viewer says, until it leaves, is sent away, or says too much.

    Between two messages everybody else has a turn: a burst that has arrived already is
    received without waiting, and would keep the event loop to itself.
    """
    while not listener.gone:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return
        if not allowed.take():
            await socket.close(FLOODING, "too many messages")
            return
        text = message.get("text")
        yield text if text is not None else message.get("bytes") or b""
        await asyncio.sleep(0)


async def _send_all(socket: websockets.WebSocket, listener: hub.Listener) -> None:
    while (frame := await listener.get_one()) is not None:
        await socket.send_text(frame.decode())


def _address(connection: requests.HTTPConnection) -> str:
    return connection.client.host if connection.client else ""


async def _body(request: requests.Request) -> bytes | None:
    """Return what was posted; None when it is too long, however much more would come."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _TOO_LONG:
            return None
    return body


async def _first_to_end(*running: object) -> None:
    """Run coroutines until one of them ends; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in running]  # type: ignore[call-overload]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _hello(name: str, upgrades: list[str]) -> str:
    handshake = {
        "sid": name,
        "upgrades": upgrades,
        "pingInterval": PING_MS,
        "pingTimeout": round(SILENCE_SECONDS * 1000),
    }
    return "0" + contract.dumps(handshake)


def _payload(*packets: str) -> responses.Response:
    """Return packets as a polling answer: each behind its length in UTF-16 units."""
    text = "".join(f"{len(packet.encode('utf-16-le')) // 2}:{packet}" for packet in packets)
    return responses.PlainTextResponse(text)


def _packets(text: str) -> list[str]:
    """Read a polling request's packets; what is not well formed is left out."""
    packets = []
    while text:
        head, _, rest = text.partition(":")
        length = texts.whole(head, _LENGTH_DIGITS)
        if length is None:
            break
        packets.append(rest[:length])
        text = rest[length:]
    return packets
