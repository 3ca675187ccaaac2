"""Framed messages between link and referee over their unix socket.

A frame is a 4-byte big-endian length (of kind and payload), a 1-byte kind, the payload.
Invariants:

* whole frames, in order, nothing lost: what the socket does not take is queued; only
  ``overtake`` puts one before those that are queued;
* ``offer`` never blocks, so that a slow link delays no stamp of a clock;
* a frame is at most ``FRAME_LIMIT`` bytes; a peer that sends more is an error, at once;
* the queue is at most ``QUEUE_LIMIT`` bytes while a clock runs; ``offer`` says no beyond.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import select
import socket
import struct
import time
from typing import Literal, TypeAlias

from orchestrator.common import errors

FRAME_LIMIT = 16 << 20  # bytes: far above any message; a length beyond is a broken stream
QUEUE_LIMIT = 64 << 20  # bytes of queued frames: a spamming engine must not eat the memory
READ_BYTES = 1 << 16  # bytes: one read of the socket
SEND_BYTES = 1 << 18  # bytes: one write to it

_HEAD = struct.Struct(">IB")
_CHUNK = struct.Struct(">ccq")

Direction: TypeAlias = Literal["<", ">", "!"]
Seat: TypeAlias = Literal["w", "b"]


class Kind(enum.IntEnum):
    """What a frame carries, and who sends it."""

    ORDER = 1  # link: contract.GameOrder
    GO_ON = 2  # link: the ply is journaled, both clocks may run again; no payload
    READY = 3  # referee: {"white": EngineReport, "black": EngineReport}, clocks not started;
    # not sent where an order has neither traffic nor a journal nor is shown
    THINK = 4  # referee: a clock starts: ply, side, both clocks, monotonic_ns, stall_ns. For
    # display, and to find a referee that is stuck; an order that nobody looks on gets few of them.
    CHUNK = 5  # referee: traffic of an engine in whole lines, see ``Chunk``
    PLY = 6  # referee: contract.PlyRecord; it waits for GO_ON unless the game has ended, or
    # its order is not journaled. It may overtake chunks that were read before it.
    FINISHED = 7  # referee: {"outcome", "white", "black", "final_fen", "plies"}
    INTERRUPTED = 8  # referee: {"cause", "evidence"}
    DISMISS = 9  # link: no more orders, kept engines may quit; no payload
    PGN = 10  # referee: a piece of the game's PGN, before FINISHED, where its order wants one


class FrameError(errors.HostError):
    """What came over the socket is no frame; the stream cannot be used any more."""


class ChannelClosedError(errors.HostError):
    """The other end of the socket is gone."""


@dataclasses.dataclass(frozen=True)
class Frame:
    """One message."""

    kind: Kind
    payload: bytes = b""


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Bytes of an engine: ``<`` it wrote, ``>`` it was sent, ``!`` its stderr."""

    seat: Seat
    direction: Direction
    monotonic_ns: int
    data: bytes

    @classmethod
    def decode(cls, payload: bytes) -> Chunk:
        """Read a CHUNK frame's payload; raise ``FrameError``."""
        if len(payload) < _CHUNK.size:
            raise FrameError(f"a chunk of {len(payload)} bytes has no head")
        seat, direction, stamp = _CHUNK.unpack_from(payload)
        if seat not in (b"w", b"b") or direction not in (b"<", b">", b"!"):
            raise FrameError(f"not a chunk: {payload[: _CHUNK.size]!r}")
        return cls(seat.decode(), direction.decode(), stamp, payload[_CHUNK.size :])


def chunk(seat: Seat, direction: Direction, monotonic_ns: int, data: bytes) -> bytes:
    """Write the payload of a CHUNK frame."""
    return _CHUNK.pack(seat.encode(), direction.encode(), monotonic_ns) + data


def encode(kind: Kind, payload: bytes = b"") -> bytes:
    """Write a frame; raise ``FrameError`` when it is too long."""
    length = len(payload) + 1
    if length > FRAME_LIMIT:
        raise FrameError(f"a {kind.name} frame of {length} bytes; allowed: {FRAME_LIMIT}")
    return _HEAD.pack(length, kind) + payload


class Parser:
    """Cuts a byte stream into frames, however it was split on its way."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """Take bytes and return the frames that are complete now; raise ``FrameError``."""
        self._buffer += data
        complete: list[Frame] = []
        at = 0
        while len(self._buffer) - at >= _HEAD.size:
            length, number = _HEAD.unpack_from(self._buffer, at)
            kind = _kind(length, number)
            end = at + _HEAD.size + length - 1
            if len(self._buffer) < end:
                break
            complete.append(Frame(kind, bytes(self._buffer[at + _HEAD.size : end])))
            at = end
        del self._buffer[:at]
        return complete


def _kind(length: int, number: int) -> Kind:
    if not 1 <= length <= FRAME_LIMIT:
        raise FrameError(f"a frame of {length} bytes; allowed: 1 to {FRAME_LIMIT}")
    try:
        return Kind(number)
    except ValueError:
        raise FrameError(f"a frame of unknown kind {number}") from None


class Channel:
    """One end of the socket: frames out, blocking or not, and frames in.

    Every verb raises ``ChannelClosedError`` when the other end is gone.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(0)
        self._socket = sock
        self._parser = Parser()
        self._frames: list[Frame] = []
        self._queue: collections.deque[bytes] = collections.deque()
        self._begun = b""  # what is left of the frames that the socket has taken a part of
        self._queued = 0

    def fileno(self) -> int:
        """Return the socket's descriptor, for a poll loop."""
        return self._socket.fileno()

    @property
    def queued(self) -> int:
        """Return the bytes that the socket has not taken yet."""
        return self._queued

    def send(self, kind: Kind, payload: bytes = b"") -> None:
        """Send a frame after all that is queued, waiting until the socket has it all."""
        self._append(encode(kind, payload))
        self.flush()

    def overtake(self, kind: Kind, payload: bytes) -> None:
        """Send a frame before all that is queued, waiting until the socket has it."""
        frame = encode(kind, payload)
        self._begun += frame
        self._queued += len(frame)
        while self._begun and self._wait(select.POLLOUT, None):
            self._push_begun()

    def offer(self, kind: Kind, payload: bytes = b"") -> bool:
        """Queue a frame without any system call; False when the queue is full."""
        if self._queued + len(payload) > QUEUE_LIMIT:
            return False
        self._append(encode(kind, payload))
        return True

    def push(self) -> None:
        """Send as much of the queue as the socket takes now, without waiting."""
        while self._queued:
            if not self._begun:
                self._begun = self._batch()
            if not self._push_begun():
                return

    def _append(self, frame: bytes) -> None:
        self._queue.append(frame)
        self._queued += len(frame)

    def _batch(self) -> bytes:
        """Take whole frames off the queue, as much as one write should carry."""
        taken, size = list[bytes](), 0
        while self._queue and size < SEND_BYTES:
            taken.append(self._queue.popleft())
            size += len(taken[-1])
        return b"".join(taken)

    def _push_begun(self) -> bool:
        """Write once; return whether the socket took all that was begun."""
        try:
            sent = self._socket.send(self._begun, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ChannelClosedError(f"the channel is closed: {error}") from error
        self._begun = self._begun[sent:]
        self._queued -= sent
        return not self._begun

    def flush(self, timeout: float | None = None) -> bool:
        """Send the whole queue, waiting up to ``timeout`` seconds; say whether it is empty."""
        deadline = _deadline(timeout)
        while True:
            self.push()
            if not self._queued or not self._wait(select.POLLOUT, deadline):
                return not self._queued

    def receive(self, timeout: float | None = None) -> Frame | None:
        """Return the next frame, ``None`` after ``timeout`` seconds without a whole one."""
        deadline = _deadline(timeout)
        while not self._frames:
            if not self._wait(select.POLLIN, deadline):
                return None
            self._read()
        return self._frames.pop(0)

    def waiting(self) -> bool:
        """Say whether something is here that was not read yet."""
        return bool(self._frames) or self._wait(select.POLLIN, 0.0)

    def ready(self) -> list[Frame]:
        """Return the frames that are here now, without waiting: for a poll loop."""
        if self._wait(select.POLLIN, 0.0):
            self._read()
        frames, self._frames = self._frames, []
        return frames

    def close(self) -> None:
        """Close the socket; what is queued is not sent."""
        self._socket.close()

    def _read(self) -> None:
        try:
            data = self._socket.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            raise ChannelClosedError(f"the channel is closed: {error}") from error
        if not data:
            raise ChannelClosedError("the other end of the channel is gone")
        self._frames += self._parser.feed(data)

    def _wait(self, event: int, deadline: float | None) -> bool:
        poll = select.poll()
        poll.register(self._socket, event)
        left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
        return bool(poll.poll(left))


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout
