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
from typing import Final

from starlette import requests, responses, websockets

from orchestrator import contract
from orchestrator.broadcast.web import hub, tcecwire

PING_MS: Final = 25_000  # ms: the client pings this often
SILENCE_SECONDS: Final = 60.0  # s: a session without any request for so long is over
POLL_SECONDS: Final = 20.0  # s: a poll without news is answered after that
SESSIONS: Final = 1_000  # long-polling sessions at once
_TOO_LONG: Final = 4_096  # bytes: viewers say little
POST_SECONDS: Final = 10.0  # s: what a viewer posts has come by then

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
            await _first_to_end(_send_all(socket, listener), self._answer(socket))
        finally:
            self._hub.leave(listener)

    @staticmethod
    async def _answer(socket: websockets.WebSocket) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            if message.get("bytes"):
                await socket.send_bytes(b"\0")


class Session:
    """One socket.io viewer, while it polls."""

    def __init__(self, listener: hub.Listener) -> None:
        """Begin with nothing said."""
        self.listener = listener
        self.seen = time.monotonic()
        self.upgraded = False
        self.polling: asyncio.Task[bytes | None] | None = None


class SocketIo:
    """engine.io 3 and socket.io 2."""

    def __init__(self, center: hub.Hub) -> None:
        """Send what the hub tells."""
        self._hub = center
        self._sessions: dict[str, Session] = {}

    def _open(self) -> tuple[str, Session]:
        self._forget_silent()
        if sum(not one.upgraded for one in self._sessions.values()) >= SESSIONS:
            raise hub.FullError("too many viewers that poll; try again in a minute")
        session = Session(self._hub.open_socket(tcecwire.Wire.SOCKET_IO))
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
            return self._handshake()
        session = self._sessions.get(name)
        if session is None:
            return responses.JSONResponse({"code": 1, "message": "Session ID unknown"}, 400)
        session.seen = time.monotonic()
        if request.method == "POST":
            return await self._posted(request, session)
        return _payload(*await self._news(session))

    def _handshake(self) -> responses.Response:
        name, _ = self._open()
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
            self._answer(packet, session)
        return responses.PlainTextResponse("ok")

    def _answer(self, packet: str, session: Session) -> None:
        if packet.startswith(PING):
            session.listener.offer((PONG + packet[1:]).encode(), volatile=False)
        elif '"getusers"' in packet:
            session.listener.offer(self._users().encode(), volatile=False)
        elif '"refreshdata"' in packet:
            moves = self._hub.last_moves(tcecwire.Wire.SOCKET_IO)
            if moves is not None:
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
            name, session = self._open()
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
        try:
            while (text := await socket.receive_text()) != UPGRADE:
                if text == "2probe":
                    await socket.send_text(PROBE_REPLY)
                    if session.polling is not None:
                        session.polling.cancel()
        except (websockets.WebSocketDisconnect, KeyError):
            return False
        return True

    async def _listen(self, socket: websockets.WebSocket, session: Session) -> None:
        while True:
            try:
                text = await socket.receive_text()
            except (websockets.WebSocketDisconnect, KeyError):
                return
            session.seen = time.monotonic()
            self._answer(text, session)


async def _send_all(socket: websockets.WebSocket, listener: hub.Listener) -> None:
    while (frame := await listener.get_one()) is not None:
        await socket.send_text(frame.decode())


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
    tasks = [asyncio.ensure_future(one) for one in running]  # type: ignore[call-overload]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _hello(name: str, upgrades: list[str]) -> str:
    told = {
        "sid": name,
        "upgrades": upgrades,
        "pingInterval": PING_MS,
        "pingTimeout": round(SILENCE_SECONDS * 1000),
    }
    return "0" + contract.dumps(told)


def _payload(*packets: str) -> responses.Response:
    """Return packets as a polling answer: each behind its length in UTF-16 units."""
    text = "".join(f"{len(one.encode('utf-16-le')) // 2}:{one}" for one in packets)
    return responses.PlainTextResponse(text)


def _packets(text: str) -> list[str]:
    """Read a polling request's packets; what is not well formed is left out."""
    found = []
    while text:
        length, _, rest = text.partition(":")
        if not length.isdigit() or len(length) > 6:
            break
        found.append(rest[: int(length)])
        text = rest[int(length) :]
    return found
