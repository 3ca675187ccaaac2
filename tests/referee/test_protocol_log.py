"""The protocol log: whole while it is small, bounded whatever an engine writes."""

from __future__ import annotations

import gzip
import os
import pathlib

from worker_cpu.link import attempt
from worker_cpu.wire import frames


def lines(log: attempt.ProtocolLog) -> list[bytes]:
    """Close a log and return its lines."""
    log.close()
    return gzip.decompress(log.content()).splitlines()


def test_each_line_has_its_stamp(tmp_path: pathlib.Path) -> None:
    """Lines of one chunk share its stamp, seat and direction."""
    log = attempt.ProtocolLog(tmp_path / "log.gz")
    log.write(frames.Chunk("w", ">", 5, b"uci\n"))
    log.write(frames.Chunk("w", "<", 7, b"id name X\nuciok\n"))
    assert lines(log) == [b"5 w> uci", b"7 w< id name X", b"7 w< uciok"]


def test_an_engine_that_writes_without_end_fills_no_disk(tmp_path: pathlib.Path) -> None:
    """Noise that no compression makes smaller ends at the bound; what was sent goes on."""
    limit = 1 << 20
    log = attempt.ProtocolLog(tmp_path / "log.gz", limit)
    for number in range(64):
        log.write(frames.Chunk("b", "<", number, os.urandom(1 << 16)))
        log.write(frames.Chunk("b", "!", number, os.urandom(1 << 16)))
    log.write(frames.Chunk("b", ">", 99, b"quit\n"))
    found = lines(log)
    assert (tmp_path / "log.gz").stat().st_size < limit + (1 << 18)
    assert found[-1] == b"99 b> quit"
    assert sum(attempt.FULL in line for line in found) == 1
