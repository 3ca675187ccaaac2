"""All that was said between referee and engines, compressed on the hall's disk."""

from __future__ import annotations

import gzip
import pathlib

from worker_cpu import frames


class ProtocolLog:
    """One game's log: lines of ``<monotonic ns> <seat><direction> <text>``."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path = path
        self._file: gzip.GzipFile | None = gzip.GzipFile(path, "wb", compresslevel=1)

    def write(self, chunk: frames.Chunk) -> None:
        """Add the lines of one chunk."""
        if self._file is not None:
            head = f"{chunk.monotonic_ns} {chunk.seat}{chunk.direction} ".encode()
            text = chunk.data.rstrip(b"\n").replace(b"\n", b"\n" + head)
            self._file.write(head + text + b"\n")

    def close(self) -> None:
        """Write what is buffered and close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def content(self) -> bytes:
        """Return the compressed log; it must be closed."""
        return self._path.read_bytes()
