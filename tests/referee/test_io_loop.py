"""The referee's desk: what it no longer listens to when an engine has gone."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import hall
import pytest

from worker_cpu.engines import local, supervisor_client
from worker_cpu.referee import io_loop
from worker_cpu.wire import frames


@pytest.fixture
def desk() -> Iterator[io_loop.IoLoop]:
    """A desk whose link and dead man say nothing."""
    link, theirs = socket.socketpair()
    dead_man, other = socket.socketpair()
    with link, theirs, dead_man, other:
        yield io_loop.IoLoop(frames.Channel(link), supervisor_client.DeadMan(dead_man))


def started(desk: io_loop.IoLoop, program: str) -> tuple[local.LocalSeat, subprocess.Popen[bytes]]:
    """Start an engine and listen to it."""
    seat = local.LocalSeat("white")
    ends = seat.open()
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=ends.stdin,
        stdout=ends.stdout,
        stderr=ends.stderr,
    )
    ends.close()
    seat.born(process.pid)
    desk.seat(seat)
    return seat, process


def test_an_engine_that_has_ended_wakes_nobody_any_more(desk: io_loop.IoLoop) -> None:
    """Its last words are heard, its end is noted once, and then the desk rests."""
    seat, process = started(desk, "print('bye', flush=True)")
    process.wait(hall.PATIENCE)
    heard = b""
    while desk.runs(seat) or seat not in desk.ended:
        heard += b"".join(chunk.data for chunk in desk.hear(10**10))
    while seat.stderr in desk._err:  # it may end in a wait of its own
        desk.hear(10**10)
    assert heard == b"bye\n"
    assert desk.ended == [seat]
    assert desk._poll.poll(0) == []


IN_PIECES = """
import os, time
for piece in (b"info depth ", b"6\\n", b"best", b"move ", b"g2g3\\nrea", b"dy"):
    os.write(1, piece)
    time.sleep(0.05)
os.write(2, b"no end")
"""


def test_the_link_gets_whole_lines(desk: io_loop.IoLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However an engine writes them, each with the stamp of its end; what it never ended at last.

    Who judges hears the pieces as they come.
    """
    offered: list[tuple[frames.Kind, bytes]] = []
    monkeypatch.setattr(desk.channel, "offer", lambda *frame: offered.append(frame) or True)
    monkeypatch.setattr(desk.channel, "send", lambda *_: None)
    seat, process = started(desk, IN_PIECES)
    heard: list[io_loop.Heard] = []
    while desk.runs(seat) or seat not in desk.ended or seat.stderr in desk._err:
        heard += desk.hear(10**9)
    process.wait(hall.PATIENCE)
    assert len(heard) > 3
    desk.send(frames.Kind.FINISHED, b"{}")
    chunks = [frames.Chunk.decode(payload) for _, payload in offered]
    out = [chunk for chunk in chunks if chunk.direction == "<"]
    assert b"".join(chunk.data for chunk in out) == b"".join(each.data for each in heard)
    *whole, last = out
    assert all(chunk.data.endswith(b"\n") for chunk in whole)
    assert last.data == b"ready"
    assert whole[0].monotonic_ns in {each.at_ns for each in heard if b"6\n" in each.data}
    assert [chunk.data for chunk in chunks if chunk.direction == "!"] == [b"no end"]


@pytest.mark.parametrize("unsent", [False, True], ids=["reads", "does not read"])
def test_the_pipes_of_an_engine_that_is_replaced_are_forgotten(
    desk: io_loop.IoLoop, unsent: bool
) -> None:
    """A descriptor that is used again belongs to the new engine alone."""
    old, process = started(desk, "import time; time.sleep(600)")
    if unsent:
        desk.say(old, bytes(1 << 21))
    numbers = {old.stdin, old.stdout, old.stderr, old.pidfd}
    desk.unseat(old)
    process.kill()
    process.wait(hall.PATIENCE)
    assert desk._poll.poll(0) == []
    new = local.LocalSeat("white")
    ends = new.open()
    assert {new.stdin, new.stdout, new.stderr} & numbers
    desk.seat(new)
    os.write(ends.stdout, b"readyok\n")
    assert [(chunk.seat, chunk.data) for chunk in desk.hear(10**10)] == [(new, b"readyok\n")]
    ends.close()
    new.close()
