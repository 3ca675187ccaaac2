"""A finished game as one piece of bytes: its way from the hall to the archive."""

from __future__ import annotations

import io
import zipfile
import zlib

from orchestrator import contract
from orchestrator.common import errors

MEMBERS = ("record.json", "game.pgn", "protocol.log.gz")  # the log comes compressed
MEMBER_BYTES = 256 << 20  # bytes: four times the longest protocol log; what says more is damaged
_DAMAGED = (  # what zipfile raises for bytes that are no archive, or not all of one
    *(zipfile.BadZipFile, zlib.error, KeyError, EOFError, OSError),
    *(ValueError, RuntimeError, OverflowError, IndexError),
)


def pack(record: contract.GameRecord, pgn: str, protocol: bytes) -> bytes:
    """Pack record, PGN and protocol log; the same game gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        contents = (record.encode().encode(), pgn.encode(), protocol)
        for name, content in zip(MEMBERS, contents, strict=True):
            packed.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def unpack(packed: bytes) -> dict[str, bytes]:
    """Return the members by name; raise ``HostError`` when the bytes are damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as members:
            return {name: _member(members, name) for name in MEMBERS}
    except _DAMAGED as error:
        raise errors.HostError(f"the game record is damaged: {error}") from error


def _member(members: zipfile.ZipFile, name: str) -> bytes:
    size = members.getinfo(name).file_size
    if size > MEMBER_BYTES:
        raise ValueError(f"{name} of {size} bytes; allowed: {MEMBER_BYTES}")
    return members.read(name)
