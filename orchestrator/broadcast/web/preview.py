"""A picture of the position on the board, for links that are shown elsewhere.

Programs that show a preview of a link run no script and take no SVG. So the picture is a PNG, put
together of tiles (`page/preview-tiles.png`, every piece on every colour of a square), which
`scripts/preview_tiles.py` draws. It is made again when the position has changed, at most once
for all who ask.
"""

from __future__ import annotations

import json
import pathlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

from starlette import concurrency, requests, responses, routing

from orchestrator.broadcast.content import documents
from orchestrator.broadcast.web import responses as web_responses

SIDE: Final = 64  # pixels of a square
PIECES: Final = ".PNBRQKpnbrqk"  # the tiles of a row, an empty square first
COLOURS: Final = ("#eadfc8", "#8aa38c", "#edcb87", "#c0b56a")  # light, dark; of the last move, too
PLACE: Final = "preview.png"
TILES: Final = "preview-tiles.png"  # of the pieces, and under their licence: CC BY-SA 3.0
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_START: Final = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR"
_CACHE: Final = "public, max-age=5"


def png(rows: Sequence[bytes]) -> bytes:
    """Return rows of RGB pixels as a PNG."""
    head = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    chunks = ((b"IHDR", head), (b"IDAT", pixels), (b"IEND", b""))
    return _SIGNATURE + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def rows_of(picture: bytes) -> list[bytes]:
    """Return the rows of RGB pixels of a PNG that `png` has made."""
    width, height = struct.unpack_from(">II", picture, 16)
    (length,) = struct.unpack_from(">I", picture, 33)
    pixels = zlib.decompress(picture[41 : 41 + length])
    step = 3 * width + 1
    return [pixels[at * step + 1 : (at + 1) * step] for at in range(height)]


class Tiles:
    """Every piece on every colour of a square, as rows of pixels."""

    def __init__(self, path: pathlib.Path) -> None:
        """Read the tiles."""
        rows = rows_of(path.read_bytes())
        self._tiles = {
            (piece, colour): [
                rows[colour * SIDE + down][3 * SIDE * along : 3 * SIDE * (along + 1)]
                for down in range(SIDE)
            ]
            for along, piece in enumerate(PIECES)
            for colour in range(len(COLOURS))
        }

    def draw(self, placement: str, marked: Sequence[str] = ()) -> bytes:
        """Return the PNG of a placement as FEN writes it, with the squares of the last move."""
        rows: list[bytes] = []
        for down, rank in enumerate(placement.split("/")):
            signs = "".join("." * int(sign) if sign.isdigit() else sign for sign in rank)
            tiles = [
                self._tiles[
                    sign, (along + down) % 2 + 2 * (f"{'abcdefgh'[along]}{8 - down}" in marked)
                ]
                for along, sign in enumerate(signs)
            ]
            rows += [b"".join(tile[at] for tile in tiles) for at in range(SIDE)]
        return png(rows)


class Preview:
    """The answer with the picture of the game that is shown."""

    def __init__(self, shelf: documents.Library, page: pathlib.Path) -> None:
        """Draw what is in the library."""
        self._shelf = shelf
        self._tiles = Tiles(page / TILES)
        self._last: tuple[documents.Document | None, documents.Document] | None = None

    def routes(self) -> list[routing.BaseRoute]:
        """Return the route of the picture."""
        return [routing.Route(f"/{PLACE}", self.picture)]

    async def picture(self, request: requests.Request) -> responses.Response:
        """Return the picture of the position that is on the board now."""
        live = self._shelf.get(f"seasons/{self._shelf.shown}/live")
        if self._last is None or self._last[0] is not live:
            drawn = await concurrency.run_in_threadpool(self._draw, live)
            self._last = (live, documents.Document(drawn, "image/png"))
        return web_responses.of_document(request, self._last[1], _CACHE)

    def _draw(self, live: documents.Document | None) -> bytes:
        game: dict[str, Any] = {} if live is None else json.loads(live.body)
        plies = game.get("plies") or []
        if not plies:
            return self._tiles.draw(str(game.get("start_fen", _START)).partition(" ")[0])
        return self._tiles.draw(plies[-1]["fen"].partition(" ")[0], plies[-1]["squares"])
