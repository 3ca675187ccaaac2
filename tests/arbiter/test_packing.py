"""A finished game's bytes, as broken disks and strangers write them: read whole or refused."""

from __future__ import annotations

import contextlib
import io
import zipfile

import hypothesis
import made
import pytest
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import game_zip, record, verdict
from orchestrator.common import errors

GAME = contract.GameRecord(
    order=made.order(),
    attempt="a",
    started_ms=1,
    ended_ms=2,
    white=contract.EngineReport(),
    black=contract.EngineReport(),
    plies=(made.ply(1, "e2e4", "e4"),),
    outcome=verdict.disconnect("black"),
    final_fen="",
)
PACKED = game_zip.pack(GAME, record.pgn(GAME), b"log" * 300)


def test_what_was_packed_is_unpacked() -> None:
    """Record, PGN and log come back as they were, and the same game gives the same bytes."""
    found = game_zip.unpack(PACKED)
    assert contract.GameRecord.decode(found["record.json"]) == GAME
    assert found["protocol.log.gz"] == b"log" * 300
    assert game_zip.pack(GAME, record.pgn(GAME), b"log" * 300) == PACKED


@hypothesis.given(at=st.integers(0, len(PACKED) - 1), byte=st.integers(0, 255))
@hypothesis.settings(max_examples=150, deadline=None)
def test_a_flipped_byte_is_found_or_harmless(at: int, byte: int) -> None:
    """The three members are whole, or the host is told; no other error comes out."""
    damaged = bytearray(PACKED)
    damaged[at] = byte
    with contextlib.suppress(errors.HostError):
        assert game_zip.unpack(bytes(damaged)) == game_zip.unpack(PACKED)


@hypothesis.given(packed=st.binary(max_size=60), cut=st.integers(0, len(PACKED)))
@hypothesis.settings(max_examples=60, deadline=None)
def test_what_is_cut_or_no_game_at_all_is_told(packed: bytes, cut: int) -> None:
    """Half a game and anything else are damage."""
    for wrong in (packed, PACKED[:cut], PACKED[cut:]):
        if wrong != PACKED:
            with pytest.raises(errors.HostError, match="damaged"):
                game_zip.unpack(wrong)


def test_a_member_beyond_all_measure_is_refused_unread() -> None:
    """A few bytes that say to be gigabytes do not eat the memory."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in game_zip.MEMBERS:
            packed.writestr(name, b"x")
    told = bytearray(buffer.getvalue())
    size = told.index(b"PK\x01\x02") + 24  # of the first member, in the list of members
    told[size : size + 4] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(errors.HostError, match="of 2147483648 bytes"):
        game_zip.unpack(bytes(told))
