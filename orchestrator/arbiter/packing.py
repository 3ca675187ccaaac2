"""A finished game as one piece of bytes: its way from the hall to the archive."""

from __future__ import annotations

import io
import zipfile

from orchestrator import contract, errors

MEMBERS = ("record.json", "game.pgn", "protocol.log.gz")  # the log comes compressed


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
            return {name: members.read(name) for name in MEMBERS}
    except (zipfile.BadZipFile, KeyError) as error:
        raise errors.HostError(f"the game record is damaged: {error}") from error
