"""Other people's files are read within bounds; every error names the limit."""

from __future__ import annotations

import contextlib
import gzip
import os
import pathlib
import threading

import pytest

from orchestrator.common import bounds

LIMIT = 1 << 20


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_within_its_limit_is_read_whole(tmp_path: pathlib.Path, *, packed: bool) -> None:
    """Plain or packed, up to the last byte that is allowed."""
    content = os.urandom(LIMIT)
    path = tmp_path / "f"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert bounds.content(path, LIMIT) == content
    with pytest.raises(bounds.TooLargeError, match="more than"):
        bounds.content(path, LIMIT - 1)


def test_a_bomb_is_unpacked_no_further_than_its_limit(tmp_path: pathlib.Path) -> None:
    """Zeros packed a thousand to one are no book, however large a book may be."""
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"\0" * (64 << 20)))
    with pytest.raises(bounds.TooLargeError, match="unpacks to more than 16 MiB"):
        bounds.content(path, bounds.BOOK_BYTES)


def test_a_log_is_read_to_its_bound_whatever_was_packed(tmp_path: pathlib.Path) -> None:
    """Lines up to damage or limit; one without an end is none, and those behind it are read."""
    path = tmp_path / "log.gz"
    lines = b"1 W> uci\n", b"x" * (3 << 20) + b"\n", b"2 W< uciok\n"
    path.write_bytes(gzip.compress(b"".join(lines)))
    assert list(bounds.packed_lines(path, LIMIT * 4)) == [lines[0], lines[2]]
    path.write_bytes(gzip.compress(lines[0] * 3)[:-9] + b"damage")
    assert set(bounds.packed_lines(path, LIMIT)) <= {lines[0]}
    path.write_bytes(gzip.compress(b"\0" * (64 << 20)))
    assert not list(bounds.packed_lines(path, LIMIT))
    path.write_bytes(gzip.compress(lines[0] * 1_000))
    assert len(list(bounds.packed_lines(path, 90))) == 10


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/random", "/dev/null"])
def test_a_device_is_no_file(device: str) -> None:
    """What never ends, or is nothing, is not read at all."""
    with pytest.raises(bounds.TooLargeError, match="device"):
        bounds.content(pathlib.Path(device), LIMIT)


def test_a_pipe_is_read_to_its_limit(tmp_path: pathlib.Path) -> None:
    """A shell's `<(zcat games.pgn.gz)` is read; one that never ends is not."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for size, whole in ((LIMIT, True), (LIMIT + 1, False)):
        writer = threading.Thread(target=_write, args=(pipe, size))
        writer.start()
        if whole:
            assert len(bounds.content(pipe, LIMIT)) == LIMIT
        else:
            with pytest.raises(bounds.TooLargeError, match="1 MiB"):
                bounds.content(pipe, LIMIT)
        writer.join()


def _write(pipe: pathlib.Path, size: int) -> None:
    with contextlib.suppress(BrokenPipeError):
        pipe.write_bytes(b"x" * size)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 5_000 + "]" * 5_000,
        "a = " + "[" * 40 + "]" * 40,
        ".".join("a" * 3_000) + " = 1",
        "[" + ".".join("a" * 50) + "]",
    ],
    ids=["lists", "just too deep", "keys", "tables"],
)
def test_tables_nested_too_deeply_are_refused(tmp_path: pathlib.Path, text: str) -> None:
    """Deep tables end in an error that says so, never in a traceback."""
    path = tmp_path / "deep.toml"
    path.write_text(text)
    with pytest.raises(bounds.TooLargeError, match="nested more than 32 deep"):
        bounds.toml(path)
    path.write_text("a = " + "9" * 5_000)  # Python's own bound, in words of its own
    with pytest.raises(bounds.TooLargeError, match="thousands of digits"):
        bounds.toml(path)


def test_windows_marks_and_ends_are_no_matter(tmp_path: pathlib.Path) -> None:
    """A file as Notepad saves it is TOML."""
    path = tmp_path / "w.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\r\n[b]\r\nc = 'x'\r\n")
    assert bounds.toml(path) == {"a": 1, "b": {"c": "x"}}
