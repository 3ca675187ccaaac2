"""Logos of engines: small PNGs that anybody may have drawn, and every spectator's browser shows.

Only PNG is taken, since SVG is a program. What is returned is put together of the parts that a
picture needs (IHDR, PLTE, tRNS, IDAT, IEND; PNG, third edition, 11.2), all of which were read: no
text, profile or animation of the file goes on, and its pixels unpack to just as many bytes as its
size asks for.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from orchestrator.common import bounds

BYTES: Final = 16 << 10  # of a file: a logo of 128 by 128 pixels has 2 to 10 KiB
SIDE: Final = 256  # pixels; the page shows them 40 high
ALL_BYTES: Final = 1 << 20  # of a season's logos together: its first journal entry holds them
ALLOWED: Final = (
    f"a PNG of at most {SIDE} by {SIDE} pixels and {BYTES >> 10} KiB, not interlaced;"
    " other formats: convert logo.svg -resize 128x128 logo.png"
)
_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_HEAD: Final = ">IIBBBBB"
_SAMPLES: Final = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by the colour type
_DEPTHS: Final = {0: {1, 2, 4, 8, 16}, 2: {8, 16}, 3: {1, 2, 4, 8}, 4: {8, 16}, 6: {8, 16}}
_NEEDED: Final = (b"PLTE", b"tRNS", b"IDAT")
_FILTERS: Final = 5  # of a row


def read(path: Path) -> bytes:
    """Return a logo, without what is no picture; raise ``ValueError`` or ``OSError``."""
    try:
        return picture(bounds.content(path, BYTES))
    except (EOFError, zlib.error) as error:
        raise ValueError(f"damaged: {error}") from error


def picture(file: bytes) -> bytes:
    """Return a PNG with the parts that a picture needs alone; raise ``ValueError`` for others."""
    if not file.startswith(_SIGNATURE):
        raise ValueError("no PNG")
    parts = list(_parts(file))
    if not parts or parts[0][0] != b"IHDR" or len(parts[0][1]) != struct.calcsize(_HEAD):
        raise ValueError("a PNG without a head")
    width, height, depth, colour, *methods = struct.unpack(_HEAD, parts[0][1])
    if not (0 < width <= SIDE and 0 < height <= SIDE):
        raise ValueError(f"{width} by {height} pixels")
    if depth not in _DEPTHS.get(colour, ()) or any(methods):
        raise ValueError("an interlaced PNG" if methods == [0, 0, 1] else "a PNG of no known kind")
    kept = {kind: b"".join(data for part, data in parts if part == kind) for kind in _NEEDED}
    if colour == 3 and not (kept[b"PLTE"] and len(kept[b"PLTE"]) % 3 == 0):
        raise ValueError("a PNG without its colours")
    row = 1 + (width * depth * _SAMPLES[colour] + 7) // 8
    _check_pixels(kept[b"IDAT"], row, height)
    chunks = [(b"IHDR", parts[0][1]), *((kind, data) for kind, data in kept.items() if data)]
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in [*chunks, (b"IEND", b"")])


def _parts(file: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield kind and data of the chunks; raise ``ValueError`` for one that is damaged."""
    at = len(_SIGNATURE)
    while at + 12 <= len(file):
        (length,) = struct.unpack_from(">I", file, at)
        whole = file[at : at + 12 + length]
        if len(whole) < 12 + length:
            break
        kind, data = whole[4:8], whole[8:-4]
        if zlib.crc32(whole[4:-4]) != struct.unpack(">I", whole[-4:])[0]:
            break
        if kind == b"IEND":
            return
        yield kind, data
        at += 12 + length
    raise ValueError("a damaged PNG")


def _check_pixels(packed: bytes, row: int, height: int) -> None:
    """Unpack the pixels, and no byte more than the size asks for."""
    unpacking = zlib.decompressobj()
    try:
        pixels = unpacking.decompress(packed, row * height + 1)
    except zlib.error:
        raise ValueError("a damaged PNG") from None
    if len(pixels) != row * height or not unpacking.eof or max(pixels[::row]) >= _FILTERS:
        raise ValueError("a PNG with other pixels than its size asks for")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
