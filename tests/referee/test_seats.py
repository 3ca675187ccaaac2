"""A local seat: bounded, never blocking, whatever the engine writes or does not read."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_cpu.engines import local


@pytest.fixture
def seat() -> Iterator[tuple[local.LocalSeat, local.EngineEnds]]:
    """A seat whose engine is this test."""
    made = local.LocalSeat("white")
    ends = made.open()
    yield made, ends
    made.close()
    ends.close()


@given(
    lines=st.lists(st.binary(max_size=50).map(lambda b: b.replace(b"\n", b"").rstrip(b"\r"))),
    end=st.sampled_from([b"\n", b"\r\n"]),
    cut=st.integers(1, 30),
)
def test_lines_come_out_as_they_went_in(lines: list[bytes], end: bytes, cut: int) -> None:
    """Splitting knows LF and CR LF, keeps NUL bytes, and does not care for cuts."""
    stream = b"".join(line + end for line in lines)
    splitter = local.LineSplitter()
    got = [
        line for at in range(0, len(stream), cut) for line in splitter.feed(stream[at : at + cut])
    ]
    assert got == lines


def test_a_long_line_is_cut_and_the_stream_goes_on() -> None:
    """A line of 1 MiB costs 64 KiB, and the next line is whole."""
    splitter = local.LineSplitter()
    lines = list[bytes]()
    for _ in range(16):
        lines += splitter.feed(b"x" * 65_536)
    lines += splitter.feed(b"\nuciok\n")
    assert [len(line) for line in lines] == [local.LINE_LIMIT, 5]


def test_a_write_to_an_engine_that_does_not_read_never_blocks(
    seat: tuple[local.LocalSeat, local.EngineEnds],
) -> None:
    """What the pipe does not take waits, and goes out in order when it does."""
    white, ends = seat
    sent = bytes(range(256)) * 2000
    assert white.write(sent)
    assert white.unsent
    assert white.write(b"end")
    got = b""
    while len(got) < len(sent) + 3:
        got += os.read(ends.stdin, 65_536)
        assert white.resume()
    assert got == sent + b"end"
    assert not white.unsent


def test_an_engine_that_closed_its_input_is_told(
    seat: tuple[local.LocalSeat, local.EngineEnds],
) -> None:
    """A write nobody can read is False, never a signal or an exception."""
    white, ends = seat
    os.dup2(ends.stdout, ends.stdin)
    assert white.write(b"go\n") is False


def test_reads_tell_nothing_output_and_end_apart() -> None:
    """``None`` is nothing yet, ``b''`` is the end; stderr is kept by its tail."""
    white = local.LocalSeat("white")
    ends = white.open()
    assert white.read() is None
    os.write(ends.stdout, b"id name")
    assert white.read() == b"id name"
    assert white.at_line_start is False
    os.write(ends.stderr, b"a" * 5000 + b"the end")
    assert white.read_stderr() is not None
    assert len(white.stderr_tail) == local.STDERR_BYTES
    assert white.stderr_tail.endswith(b"the end")
    ends.close()
    assert white.read() == b""
    white.close()
