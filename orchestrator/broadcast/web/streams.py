"""The stream of our page, one listener at a time: bytes straight to its connection.

An event is rendered once and written to every connection in one go. No task wakes and no
queue is filled for it: with 2,000 listeners those were most of an event's way
(``docs/decisions/020-broadcast.md``). What a listener has not taken yet waits in its
connection, and its length says how far behind it is: first it loses what is worthless
soon, then its place.

Who takes gzip gets it: the positions of a variation repeat each other. Each piece is packed once
for all. It refers to nothing before it, so pieces may follow each other as they will: a listener's
stream is one gzip file that never ends, whenever it came.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import socket
import zlib
from typing import Final

SPARING: Final = 16_384  # bytes: behind by more, a listener is told nothing volatile
MOST: Final = 262_144  # bytes: behind by more than that and its snapshot, it is sent away
KERNEL_BYTES: Final = 65_536  # of a listener's socket; the kernel would take megabytes
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"  # no name, no time (RFC 1952, 2.3)


@dataclasses.dataclass(frozen=True)
class Piece:
    """Bytes of the stream, shared by all who are sent them."""

    raw: bytes

    @functools.cached_property
    def packed(self) -> bytes:
        """Return the bytes deflated, to the end of a byte and without an end of the file."""
        if not self.raw:
            return b""
        packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return packer.compress(self.raw) + packer.flush(zlib.Z_FULL_FLUSH)

    @functools.cached_property
    def chunk(self) -> bytes:
        """Return the bytes as a chunk of HTTP/1.1."""
        return _chunk(self.raw)

    @functools.cached_property
    def packed_chunk(self) -> bytes:
        """Return the packed bytes as a chunk of HTTP/1.1."""
        return _chunk(self.packed)

    def sent(self, *, chunked: bool, packs: bool) -> bytes:
        """Return the bytes in the form of a connection."""
        if packs:
            return self.packed_chunk if chunked else self.packed
        return self.chunk if chunked else self.raw


def _chunk(data: bytes) -> bytes:
    """Return bytes as a chunk (RFC 9112, 7.1); nothing is no chunk, which would be the end."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""


@dataclasses.dataclass(frozen=True)
class Batch:
    """What is told at one moment: ``whole``, and ``lasting`` for those who are behind."""

    whole: Piece
    lasting: Piece


class Stream:
    """One listener; ``chunked`` is the form of its HTTP, ``packs`` whether it is sent gzip."""

    def __init__(self, transport: asyncio.Transport, *, chunked: bool, packs: bool) -> None:
        """Write to a connection that has been sent the head of its answer."""
        self._transport, self._chunked, self._packs = transport, chunked, packs
        self._most = MOST
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, KERNEL_BYTES)

    def begin(self, first: Piece) -> None:
        """Send what a listener is told first, however long it is."""
        self._most = MOST + len(first.raw)
        if self._packs:
            self._transport.write(_chunk(_GZIP_HEAD) if self._chunked else _GZIP_HEAD)
        self._write(first)

    def tell(self, batch: Batch) -> None:
        """Send what is told to all; one that is too far behind is cut."""
        if self._transport.is_closing():
            return
        behind = self._transport.get_write_buffer_size()
        if behind > self._most:
            self._transport.abort()
        else:
            self._write(batch.lasting if behind > SPARING else batch.whole)

    def _write(self, piece: Piece) -> None:
        data = piece.sent(chunked=self._chunked, packs=self._packs)
        if data:
            self._transport.write(data)
