"""The stream of our page as it is sent: packed where the listener takes that, whenever it came."""

from __future__ import annotations

import asyncio
import pathlib
import zlib

import harness
import httpx
import theatre

from orchestrator.broadcast.web import streams

PIECES = [streams.Piece(f"event: n{n}\ndata: {'e2e4 ' * n}\n\n".encode()) for n in (300, 0, 7, 90)]
NOTHING = streams.Piece(b"")


class Wire(asyncio.Transport):
    """A connection that keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep bytes."""
        self.sent += data

    def is_closing(self) -> bool:
        """Stay open."""
        return False

    def get_write_buffer_size(self) -> int:
        """Have sent everything."""
        return 0


def test_whoever_comes_later_reads_the_same_pieces() -> None:
    """Each stream is one gzip file; its pieces are packed once and shared by all."""
    for first in range(len(PIECES)):
        wire = Wire()
        stream = streams.Stream(wire, chunked=False, packs=True)
        stream.begin(PIECES[first])
        for piece in (*PIECES[first + 1 :], NOTHING):
            stream.tell(streams.Batch(piece, piece))
        reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        wanted = b"".join(piece.raw for piece in PIECES[first:])
        assert reader.decompress(bytes(wire.sent)) == wanted
        assert not reader.eof  # more may come
        assert len(wire.sent) < len(wanted) / 2
    assert PIECES[0].packed is PIECES[0].packed


def test_a_listener_gets_what_it_takes(tmp_path: pathlib.Path) -> None:
    """The same snapshot, packed for who asks for that, and as it is for who does not."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal) // 2
    told, sizes = {}, {}
    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        for takes in ("gzip", "identity"):
            head = {"Accept-Encoding": takes}
            with httpx.stream("GET", f"{url}/api/v1/live", headers=head, timeout=60) as answer:
                assert answer.headers.get("content-encoding") == {"gzip": "gzip"}.get(takes)
                told[takes] = next(theatre.events(answer))
                sizes[takes] = answer.num_bytes_downloaded
    assert {event.kind for event in told.values()} == {"snapshot"}
    assert told["gzip"].data["season"] == told["identity"].data["season"]
    assert sizes["gzip"] < sizes["identity"] / 2
