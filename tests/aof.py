"""Redis' append-only file, cut by a test: a server that comes back without its last writes."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

from orchestrator.ledger import keys


def newest(directory: pathlib.Path) -> pathlib.Path:
    """Return the file that Redis appends to, of all in its data directory."""
    manifest = next(directory.glob("appendonlydir/*.manifest"))
    names = [line.split()[1] for line in manifest.read_text().splitlines() if " type i" in line]
    return manifest.with_name(names[-1])


def commands(content: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """Yield each whole command of the file with the offset at which it begins."""
    at = 0
    while at < len(content):
        began, words = at, []
        head, at = _line(content, at)
        if head[:1] != b"*":
            continue  # a comment with a time
        for _ in range(int(head[1:])):
            size, at = _line(content, at)
            words.append(content[at : at + int(size[1:])])
            at += int(size[1:]) + 2
        if at <= len(content):
            yield began, words


def _line(content: bytes, at: int) -> tuple[bytes, int]:
    end = content.index(b"\r\n", at)
    return content[at:end], end + 2


def cut(directory: pathlib.Path, season: str, entries: int) -> int:
    """Cut the last entries of a season's journal away, and all that was written since.

    The server must be down. Return how many entries have gone: none where the file has fewer.
    """
    path = newest(directory)
    content = path.read_bytes()
    journal, began = keys.Keys().journal(season).encode(), 0
    places = []
    for offset, words in commands(content):
        if words[0].upper() == b"MULTI":
            began = offset
        elif words[0].upper() == b"EXEC":
            began = 0
        elif words[0].upper() == b"XADD" and words[1] == journal:
            places.append(began or offset)  # a script's writes are one transaction
    if len(places) < entries:
        return 0
    with path.open("r+b") as file:
        file.truncate(places[-entries])
    return entries
