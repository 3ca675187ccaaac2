"""Frames: whole, in order, bounded, and never a wait while a clock runs."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker_cpu.wire import frames

ANY_FRAMES = st.lists(
    st.builds(frames.Frame, st.sampled_from(list(frames.Kind)), st.binary(max_size=300))
)


@pytest.fixture
def pair() -> Iterator[tuple[frames.Channel, frames.Channel]]:
    """Two ends of a channel."""
    ours, theirs = socket.socketpair()
    channels = frames.Channel(ours), frames.Channel(theirs)
    yield channels
    for channel in channels:
        channel.close()


@given(sent=ANY_FRAMES, cuts=st.lists(st.integers(1, 40), min_size=1))
def test_frames_survive_any_cutting_of_the_stream(
    sent: list[frames.Frame], cuts: list[int]
) -> None:
    """However the bytes are split, the same frames come out in the same order."""
    stream = b"".join(frames.encode(frame.kind, frame.payload) for frame in sent)
    parser, got, at = frames.Parser(), list[frames.Frame](), 0
    while at < len(stream):
        step = cuts[at % len(cuts)]
        got += parser.feed(stream[at : at + step])
        at += step
    assert got == sent


@given(data=st.binary(max_size=200))
def test_garbage_is_a_clear_error_or_waits_for_more(data: bytes) -> None:
    """No bytes make the parser fail in any other way than by its own error."""
    with contextlib.suppress(frames.FrameError):
        frames.Parser().feed(data)


@given(
    seat=st.sampled_from(["w", "b"]),
    direction=st.sampled_from(["<", ">", "!"]),
    at_ns=st.integers(-(2**63), 2**63 - 1),
    data=st.binary(),
)
def test_chunks_keep_seat_direction_stamp_and_bytes(
    seat: frames.Seat, direction: frames.Direction, at_ns: int, data: bytes
) -> None:
    """A chunk reads back as it was written."""
    chunk = frames.Chunk.decode(frames.chunk(seat, direction, at_ns, data))
    assert chunk == frames.Chunk(seat, direction, at_ns, data)


@given(payload=st.binary(max_size=30) | st.binary(min_size=8, max_size=20).map(b"w<".__add__))
def test_a_bad_chunk_is_a_frame_error(payload: bytes) -> None:
    """Any payload is a chunk that writes itself back, or a ``FrameError``."""
    head = payload[:2]
    if len(payload) >= 10 and head[:1] in b"wb" and head[1:] in b"<>!":
        chunk = frames.Chunk.decode(payload)
        assert frames.chunk(*dataclasses.astuple(chunk)) == payload
        return
    with pytest.raises(frames.FrameError):
        frames.Chunk.decode(payload)


def test_a_frame_has_a_limit_on_both_sides() -> None:
    """Too long a frame is refused by the writer, and its length by the reader."""
    with pytest.raises(frames.FrameError, match="allowed"):
        frames.encode(frames.Kind.CHUNK, bytes(frames.FRAME_LIMIT))
    with pytest.raises(frames.FrameError, match="allowed"):
        frames.Parser().feed(b"\xff\xff\xff\xff\x01")


def test_offers_wait_in_the_queue_and_come_before_what_is_sent(
    pair: tuple[frames.Channel, frames.Channel],
) -> None:
    """What a full socket does not take is neither lost nor overtaken."""
    ours, theirs = pair
    for number in range(400):
        assert ours.offer(frames.Kind.CHUNK, b"%05d" % number * 1000)
        ours.push()
    assert ours.queued > 0
    assert ours.flush(0.0) is False
    got = list[bytes]()
    while len(got) < 400:
        got += [frame.payload[:5] for frame in theirs.ready()]
        ours.push()
    assert got == [b"%05d" % number for number in range(400)]
    ours.send(frames.Kind.GO_ON)
    assert theirs.receive(1.0) == frames.Frame(frames.Kind.GO_ON)


def test_the_queue_is_bounded(pair: tuple[frames.Channel, frames.Channel]) -> None:
    """A link that takes nothing costs a bounded amount of memory."""
    ours, _ = pair
    block = bytes(8 << 20)
    taken = sum(ours.offer(frames.Kind.CHUNK, block) for _ in range(20))
    assert taken * len(block) <= frames.QUEUE_LIMIT < (taken + 1) * len(block) + 100


def test_receive_gives_up_after_its_time(pair: tuple[frames.Channel, frames.Channel]) -> None:
    """Nothing there is ``None``, not an error and not a hang."""
    assert pair[0].receive(0.0) is None
    assert pair[0].ready() == []


def test_a_closed_end_is_told_after_the_last_frame(
    pair: tuple[frames.Channel, frames.Channel],
) -> None:
    """What was sent before the end arrives; then the channel is closed, both ways."""
    ours, theirs = pair
    ours.send(frames.Kind.FINISHED, b"{}")
    ours.close()
    assert theirs.receive() == frames.Frame(frames.Kind.FINISHED, b"{}")
    with pytest.raises(frames.ChannelClosedError):
        theirs.receive(1.0)
    with pytest.raises(frames.ChannelClosedError):
        theirs.send(frames.Kind.GO_ON)
