"""The messages of TCEC's viewers: socket.io 2 events, or arrays over a plain WebSocket."""

from __future__ import annotations

import enum
from typing import Any, Final

from orchestrator import contract
from orchestrator.broadcast.content import messages
from orchestrator.common import text

_VIEWERS: Final = 2  # methods of the plain protocol
_MOVES: Final = 6


class Wire(enum.Enum):
    """A push protocol of TCEC's viewers."""

    SOCKET_IO = "socket.io"
    PLAIN = "websocket"


class Frames:
    """A message as text frames: encoded once for each protocol, however many ask for it."""

    def __init__(self, message: messages.TcecFile | messages.TcecMoves) -> None:
        """Encode nothing until it is asked for."""
        self._message = message
        self._frames: dict[Wire, bytes] = {}

    def of(self, wire: Wire) -> bytes:
        """Return the text frame for a protocol."""
        if wire not in self._frames:
            self._frames[wire] = text.visible(encode(wire, self._message).decode()).encode()
        return self._frames[wire]


def encode(wire: Wire, message: messages.TcecFile | messages.TcecMoves) -> bytes:
    """Return the text frame of a message in a protocol."""
    if wire is Wire.SOCKET_IO:
        if isinstance(message, messages.TcecMoves):
            return event("pgn", message.data)
        return event(message.event, message.data)
    if isinstance(message, messages.TcecMoves):
        return contract.dumps([_MOVES, message.text]).encode()
    return _array(message.name, message.data)


def event(name: str, data: Any) -> bytes:
    """Return a socket.io event: packet 4 (message) of type 2 (event)."""
    return b"42" + _array(name, data)


def _array(name: str, data: Any) -> bytes:
    if isinstance(data, messages.Encoded):
        return b"[" + contract.dumps(name).encode() + b"," + data.rstrip() + b"]"
    return contract.dumps([name, data]).encode()


def viewers(wire: Wire, count: int) -> bytes:
    """Return the frame that tells how many watch."""
    if wire is Wire.SOCKET_IO:
        return event("users", {"count": count})
    return contract.dumps([_VIEWERS, count]).encode()
