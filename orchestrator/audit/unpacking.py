"""An archive's file as plain text, however it is packed, encoded and broken into lines.

Apart from ``reading`` because the rating list needs no chess.
"""

from __future__ import annotations

import codecs
import pathlib
from collections.abc import Iterator
from typing import Final

from orchestrator.common import bounds, errors

_FOREIGN: Final = (
    (b"PK\x03\x04", "zip"),
    (b"7z\xbc\xaf", "7-Zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
    (b"\x28\xb5\x2f\xfd", "Zstandard"),
)
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def content(path: pathlib.Path) -> bytes:
    """Return a file's bytes, gzip unpacked, never in UTF-16; raise ``UsageError``."""
    return b"".join(blocks(path))


def blocks(path: pathlib.Path) -> Iterator[bytes]:
    """Yield what ``content`` returns block by block, of some MiB at most; raise as it does.

    Rare files come in one: those in UTF-16, and those without a line feed in their first block.
    """
    try:
        pieces = bounds.pieces(path, bounds.ARCHIVE_BYTES)
        first = next(pieces, b"")
        for head, name in _FOREIGN:
            if first.startswith(head):
                raise errors.UsageError(f"{path}: packed by {name}: unpack it first, or use gzip")
        if b"\n" in first and not first.startswith(_UTF16):
            yield first
            yield from pieces
        else:
            yield _plain(first + b"".join(pieces))
    except FileNotFoundError:
        raise errors.UsageError(f"{path}: no such PGN file") from None
    except bounds.DAMAGED as error:
        raise errors.UsageError(f"{path}: cannot be read: {errors.reason(error)}") from None


def _plain(raw: bytes) -> bytes:
    if raw.startswith(_UTF16):
        raw = raw.decode("utf-16", errors="replace").encode()
    return raw if b"\n" in raw else raw.replace(b"\r", b"\n")


def text(path: pathlib.Path) -> str:
    """Return a file's text with plain line ends; raise ``UsageError``.

    UTF-8; a line that is none is taken for Latin-1, as older files have it.
    """
    plain = content(path).removeprefix(codecs.BOM_UTF8).replace(b"\r\n", b"\n")
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return "\n".join(map(_line, plain.split(b"\n")))


def _line(plain: bytes) -> str:
    try:
        return plain.decode()
    except UnicodeDecodeError:
        return plain.decode("latin-1")
