"""Files that other people wrote, read within bounds: no device, no bomb, no endless text.

Invariant: what is returned is no longer than the limit, however small the file looked; nothing
beyond it was held in memory. Every error names the file and the limit.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import pathlib
import stat
import tomllib
import zlib
from collections.abc import Iterator
from typing import Any, Final

SECRET_BYTES: Final = 1 << 16  # a password, a token, an address
SETTINGS_BYTES: Final = 4 << 20  # a season, a roster, settings: a hundred times the largest known
BOOK_BYTES: Final = 256 << 20  # an opening book, unpacked: the largest known has 180 MB
ARCHIVE_BYTES: Final = 8 << 30  # an archive of games, unpacked
RATIO: Final = 100  # times its packed size may a file have unpacked; PGN has 4 to 20
SMALL_BYTES: Final = 16 << 20  # up to here nobody asks for the ratio
DEPTH: Final = 32  # tables within tables of a TOML file; a season has 6
_GZIP: Final = b"\x1f\x8b"
_PIECE: Final = 1 << 20  # bytes: one read


class TooLargeError(ValueError):
    """A file is longer than it may be, packed like a bomb, nested too deeply, or no file at all."""


def content(path: pathlib.Path, limit: int) -> bytes:
    """Return a file's bytes, unpacked when gzip has packed them.

    Raises:
        TooLargeError: it is a device, or more than ``limit`` bytes.
        OSError: it cannot be read; ``EOFError`` and ``zlib.error``: it is damaged.
        ValueError: the name is none.
    """
    return b"".join(pieces(path, limit))


def pieces(path: pathlib.Path, limit: int) -> Iterator[bytes]:
    """Yield what ``content`` returns piece by piece, never an empty one; raise as it does."""
    with path.open("rb") as file:
        status = os.fstat(file.fileno())
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
            raise TooLargeError("no file: a device, a socket or a folder")
        packed = file.peek(len(_GZIP))[: len(_GZIP)] == _GZIP
        if not packed:
            yield from _bounded(file, limit, f"more than {_size(limit)}")
            return
        most = limit
        if stat.S_ISREG(status.st_mode):
            most = min(limit, max(SMALL_BYTES, RATIO * status.st_size))
        with gzip.open(file, "rb") as unpacked:
            yield from _bounded(unpacked, most, f"unpacks to more than {_size(most)}")


def text(path: pathlib.Path, limit: int = SETTINGS_BYTES) -> str:
    """Return a file's text in UTF-8, with or without a mark; raise as ``content`` does."""
    return content(path, limit).decode("utf-8-sig")


def toml(path: pathlib.Path, limit: int = SETTINGS_BYTES) -> dict[str, Any]:
    """Return the tables of a TOML file; raise as ``content`` does, and ``TOMLDecodeError``."""
    plain = text(path, limit).replace("\r\n", "\n")
    try:
        tables = tomllib.loads(plain)
    except RecursionError:
        raise TooLargeError(f"tables nested more than {DEPTH} deep") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # Python reads no number of more than 4,300 digits
        raise TooLargeError("a number of thousands of digits") from None
    if _depth(tables) > DEPTH:
        raise TooLargeError(f"tables nested more than {DEPTH} deep")
    return tables


def packed_lines(path: pathlib.Path, limit: int, longest: int = _PIECE) -> Iterator[bytes]:
    """Yield the lines of a packed log, up to any damage and to ``limit`` bytes.

    Whoever packed it may have packed anything: a line of more than ``longest`` bytes is left out.
    """
    within = False  # a line that is too long
    with contextlib.suppress(OSError, EOFError, zlib.error), gzip.open(path, "rb") as log:
        while limit > 0 and (line := log.readline(longest + 1)):
            limit -= len(line)
            ends = line.endswith(b"\n")
            if not within and len(line) <= longest + ends:
                yield line
            within = not ends


def _bounded(file: Any, limit: int, otherwise: str) -> Iterator[bytes]:
    left = limit
    while piece := file.read(min(_PIECE, left + 1)):
        left -= len(piece)
        if left < 0:
            raise TooLargeError(otherwise)
        yield piece


def _size(limit: int) -> str:
    return f"{limit >> 20} MiB" if limit >= 1 << 20 else f"{limit} bytes"


def _depth(tables: Any) -> int:
    """Return how deeply lists and tables are nested, without a call for each level."""
    level, depth = [tables], 0
    while level and depth <= DEPTH:
        depth += 1
        inner = (table.values() if isinstance(table, dict) else table for table in level)
        level = [value for table in inner for value in table if isinstance(value, dict | list)]
    return depth


DAMAGED: Final = (OSError, EOFError, zlib.error, ValueError)  # what ``content`` raises
