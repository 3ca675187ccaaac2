"""The picture of the position that is shown with a link to the page."""

from __future__ import annotations

import pathlib
import struct
import zlib

import httpx
import theatre

from orchestrator.broadcast.content import documents
from orchestrator.broadcast.web import app, page_files, preview

START = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"


def square(rows: list[bytes], name: str) -> bytes:
    """Return the pixels of a square."""
    left, top = 3 * preview.SIDE * (ord(name[0]) - ord("a")), preview.SIDE * (8 - int(name[1]))
    return b"".join(row[left : left + 3 * preview.SIDE] for row in rows[top : top + preview.SIDE])


def test_the_picture_is_a_png_of_the_position() -> None:
    """Equal pieces on equal squares look equal, others differ; chunks have their checksums."""
    tiles = preview.Tiles(app.PAGE / preview.TILES)
    picture = tiles.draw(START, ["e2", "e4"])
    assert struct.unpack_from(">II", picture, 16) == (512, 512)
    at = 8
    while at < len(picture):
        (length,) = struct.unpack_from(">I", picture, at)
        body = picture[at + 4 : at + 8 + length]
        assert struct.unpack_from(">I", picture, at + 8 + length) == (zlib.crc32(body),)
        at += 12 + length
    rows = preview.rows_of(picture)
    assert square(rows, "a1") == square(rows, "a1")
    assert square(rows, "a2") == square(rows, "c2") != square(rows, "b2")
    assert square(rows, "a1") != square(rows, "h8")
    assert square(rows, "e2") != square(rows, "g2")
    assert square(rows, "e4") not in {square(rows, "c4"), square(rows, "d4")}
    seen = {square(rows, f"{file}{rank}") for file in "abcdefgh" for rank in "1278"}
    assert len(seen) == 2 * (4 * 2 + 2) + 1  # king and queen on one colour; the marked pawn
    empty = {square(rows, f"{file}{rank}") for file in "abcdefgh" for rank in "3456"}
    assert {colours(one) for one in empty} == {frozenset([bytes.fromhex(c[1:])]) for c in MARKS}


MARKS = preview.COLOURS[:3]  # e4 is a light one


def colours(pixels: bytes) -> frozenset[bytes]:
    """Return the colours of a square."""
    return frozenset(pixels[at : at + 3] for at in range(0, len(pixels), 3))


def test_the_picture_follows_the_game() -> None:
    """It is the game's that is shown; without one it is the start, and is drawn once."""
    shelf = documents.Library()
    shown = preview.Preview(shelf, app.PAGE)
    tiles = preview.Tiles(app.PAGE / preview.TILES)
    assert shown._draw(None) == tiles.draw(START)
    ply = {"fen": "8/8/8/8/8/8/8/K6k w - - 0 1", "squares": ["b1", "a1"]}
    live = documents.of_json({"plies": [ply]})
    assert shown._draw(live) == tiles.draw("8/8/8/8/8/8/8/K6k", ["b1", "a1"])


def test_links_name_the_picture_by_its_public_address(tmp_path: pathlib.Path) -> None:
    """A preview needs the whole address; the picture is served under it."""
    page = page_files.PageFiles(app.PAGE, "https://chess.example.org")
    assert 'content="https://chess.example.org/preview.png"' in page.index
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal) // 2
    with theatre.served(tape, tmp_path) as url:
        answer = httpx.get(f"{url}/preview.png")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content.startswith(b"\x89PNG")
