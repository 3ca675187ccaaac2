"""TCEC's two push protocols, driven message by message without a network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from starlette import types, websockets

from orchestrator.broadcast.content import documents, messages
from orchestrator.broadcast.web import hub, sockets, tcecwire

REFRESH = '42["refreshdata"]'


class Viewer:
    """A viewer that says all it has to say at once, and then only listens.

    ``others`` counts the turns that the event loop gave to somebody else meanwhile.
    """

    def __init__(self, center: hub.Hub, wire: tcecwire.Wire, says: Sequence[str | bytes]) -> None:
        self._center, self._wire, self._says = center, wire, list(says)
        self.told: list[str | bytes] = []
        self.close_code: int | None = None
        self.others = 0
        self.heard_all = asyncio.Event()

    async def receive(self) -> types.Message:
        """Give the next message; one that has arrived is given without waiting."""
        if self._says:
            said = self._says.pop(0)
            return {
                "type": "websocket.receive",
                "bytes" if isinstance(said, bytes) else "text": said,
            }
        self.heard_all.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(self, message: types.Message) -> None:
        """Take what the server says."""
        if message["type"] == "websocket.send":
            text = message.get("text")
            self.told.append(message.get("bytes", b"") if text is None else text)
        if message["type"] == "websocket.close":
            self.close_code = message["code"]
            self.heard_all.set()

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.others += 1

    async def watch(self) -> None:
        """Be served until all has been heard, or the server has had enough."""
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": "/",
            "query_string": b"",
            "headers": [],
            "client": ("192.0.2.1", 1),
        }
        accepted = {"type": "websocket.connect"}

        async def receive() -> types.Message:
            nonlocal accepted
            if accepted:
                first, accepted = accepted, {}
                return first
            return await self.receive()

        socket = websockets.WebSocket(scope, receive, self.send)
        protocol = (
            sockets.SocketIo(self._center)
            if self._wire is tcecwire.Wire.SOCKET_IO
            else sockets.Plain(self._center)
        )
        serving = asyncio.ensure_future(protocol.socket(socket))
        counting = asyncio.ensure_future(self._count())
        hearing = asyncio.ensure_future(self.heard_all.wait())
        await asyncio.wait([serving, hearing], return_when=asyncio.FIRST_COMPLETED)
        for _ in range(3):
            await asyncio.sleep(0)
        for task in (serving, counting, hearing):
            task.cancel()
        await asyncio.gather(serving, counting, hearing, return_exceptions=True)


def watched(
    says: Sequence[str | bytes], wire: tcecwire.Wire = tcecwire.Wire.SOCKET_IO, viewers: int = 1
) -> list[Viewer]:
    """Serve viewers, all at once, beside a game whose moves have been pushed."""

    async def run() -> list[Viewer]:
        center = hub.Hub(documents.Library())
        center.take([messages.TcecMoves("1. e4", {"Moves": ["e4"]})])
        all_of_them = [Viewer(center, wire, says) for _ in range(viewers)]
        await asyncio.gather(*(viewer.watch() for viewer in all_of_them))
        assert center.count == 0
        return all_of_them

    return asyncio.run(run())


def pushes(viewer: Viewer) -> int:
    """Count the pushes of moves that a viewer was sent."""
    return sum(str(frame).startswith('42["pgn"') for frame in viewer.told)


def test_moves_asked_for_again_and_again_are_sent_once_a_second() -> None:
    """A burst of requests is one refresh; the viewer stays."""
    (viewer,) = watched([REFRESH] * 30)
    assert pushes(viewer) == 1
    assert viewer.close_code is None


def test_a_push_is_encoded_once_however_many_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty viewers that ask for the last moves cost one encoding."""
    encoded = []
    real = tcecwire.encode

    def encode(wire: tcecwire.Wire, message: messages.TcecFile | messages.TcecMoves) -> bytes:
        encoded.append(wire)
        return real(wire, message)

    monkeypatch.setattr(tcecwire, "encode", encode)
    assert [pushes(viewer) for viewer in watched([REFRESH], viewers=50)] == [1] * 50
    assert encoded == [tcecwire.Wire.SOCKET_IO]


@pytest.mark.parametrize(
    ("wire", "message"),
    [
        (tcecwire.Wire.SOCKET_IO, REFRESH),
        (tcecwire.Wire.SOCKET_IO, "2"),
        (tcecwire.Wire.SOCKET_IO, "rubbish"),
        (tcecwire.Wire.PLAIN, b"\0"),
        (tcecwire.Wire.PLAIN, "rubbish"),
        (tcecwire.Wire.PLAIN, b""),
    ],
)
def test_a_viewer_that_floods_is_disconnected(wire: tcecwire.Wire, message: str | bytes) -> None:
    """It is told why (1008), after a bounded number of answers, and everybody else had turns."""
    (viewer,) = watched([message] * 5_000, wire)
    assert viewer.close_code == sockets.FLOODING
    assert len(viewer.told) < sockets.MESSAGES_AT_ONCE + 10
    assert viewer.others >= sockets.MESSAGES_AT_ONCE


def test_a_packet_without_a_length_ends_what_was_posted() -> None:
    """No digits of other scripts, none beside the ASCII ones, no number of thousands of digits."""
    for length in ("\u00b2", "\u0661", "x", "", "-1", "9" * 5_000):
        assert sockets._packets(f"1:2{length}:40") == ["2"], length[:10]


def test_what_a_viewer_of_tcecs_page_says_is_answered() -> None:
    """Pings, the number of viewers and the last moves, in one breath."""
    (viewer,) = watched(["2", '42["getusers"]', REFRESH])
    said = [str(frame) for frame in viewer.told]
    assert "3" in said
    assert any(frame.startswith('42["users"') for frame in said[2:])
    assert pushes(viewer) == 1
