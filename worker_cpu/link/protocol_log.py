"""The protocol log of a game, compressed on the hall's disk.

Bounded: an engine that writes without end fills neither the disk nor the record. Beyond the
bound only what engines were sent is still kept, behind a line that says so.
"""

from __future__ import annotations

import gzip
import pathlib

from worker_cpu.wire import frames

LOG_BYTES = 64 << 20  # bytes, compressed: a long game of talkative engines has 10 MiB
FULL = b"from here on the engines' output is left out: the log has reached its bound"


class ProtocolLog:
    """One game's log: lines of ``<monotonic ns> <seat><direction> <text>``."""

    def __init__(self, path: pathlib.Path, limit: int = LOG_BYTES) -> None:
        self._path, self._limit = path, limit
        self._raw = path.open("wb")
        self._file: gzip.GzipFile | None = gzip.GzipFile(
            mode="wb", fileobj=self._raw, compresslevel=1
        )
        self._full = False

    def write(self, chunk: frames.Chunk) -> None:
        """Add the lines of one chunk."""
        if self._file is None or (self._full and chunk.direction != ">"):
            return
        data = chunk.data
        if chunk.direction != ">" and self._raw.tell() > self._limit:
            self._full, data = True, FULL
        head = f"{chunk.monotonic_ns} {chunk.seat}{chunk.direction} ".encode()
        text = data.rstrip(b"\n").replace(b"\n", b"\n" + head)
        self._file.write(head + text + b"\n")

    def close(self) -> None:
        """Write what is buffered and close the file."""
        if self._file is not None:
            self._file.close()
            self._raw.close()
            self._file = None

    def content(self) -> bytes:
        """Return the compressed log; it must be closed."""
        return self._path.read_bytes()
