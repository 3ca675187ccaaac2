"""Journal lines and replies of Redis by other hands: a clear error, and nothing changed."""

from __future__ import annotations

import contextlib
import json
import pathlib
from collections.abc import Callable
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import journal_mirror, replies

GOOD = contract.Entry(1, 1000, "noted", "op", {"text": "é", "x": [1.5, None]}).line()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
NAMES = st.sampled_from(["seq", "v", "at_ms", "kind", "by", "token", "data"])
REPLIES: list[Callable[[Any], Any]] = [
    replies.appended,
    replies.offered,
    replies.opened,
    replies.claimed,
    replies.written,
    replies.renewed,
    replies.completed,
    replies.given_up,
    replies.suspected,
    replies.revoked,
]
WORDS = st.sampled_from([b"appended", b"claimed", b"gap", b"refused", b"recorded", b"busy", b"x"])
RAW = st.lists(WORDS | st.binary(max_size=6) | st.integers() | st.none(), max_size=4)


@hypothesis.given(line=st.text(max_size=60))
@hypothesis.example(line="[" * 100_000)
@hypothesis.example(line='{"seq":1}')
def test_no_text_is_a_journal_line(line: str) -> None:
    """Whatever is not a line is named as such."""
    with pytest.raises(errors.LedgerDamagedError):
        contract.Entry.from_line(line)


@hypothesis.given(name=NAMES, value=JSON)
def test_a_changed_field_is_read_or_refused(name: str, value: Any) -> None:
    """A line with one field exchanged is an entry that writes itself back, or an error."""
    line = contract.dumps(contract.loads(GOOD) | {name: value})
    with contextlib.suppress(errors.LedgerDamagedError):
        entry = contract.Entry.from_line(line)
        assert contract.Entry.from_line(entry.line()) == entry


@hypothesis.given(at=st.integers(0, len(GOOD.encode()) - 1), byte=st.integers(0, 255))
@hypothesis.settings(max_examples=40, deadline=None)
def test_a_flipped_byte_in_the_middle_is_found_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, at: int, byte: int
) -> None:
    """A mirror with a damaged first line is refused with the line, and left as it is."""
    damaged = bytearray(GOOD.encode())
    damaged[at] = byte
    second = contract.Entry(2, 1000, "noted", "op", {}).line()
    path = tmp_path_factory.mktemp("flip") / "journal.jsonl"
    path.write_bytes(bytes(damaged) + b"\n" + second.encode() + b"\n")
    before = path.read_bytes()
    with contextlib.suppress(errors.LedgerDamagedError), journal_mirror.Mirror(path) as opened:
        assert opened.last == 2
    assert path.read_bytes() == before


def test_an_entry_of_a_later_version_is_refused(tmp_path: pathlib.Path) -> None:
    """A newer schema is no damage: the message says which, and to upgrade; the file stays."""
    newer = contract.dumps(contract.loads(GOOD) | {"v": contract.SCHEMA + 1})
    path = tmp_path / "journal.jsonl"
    path.write_text(f"{newer}\n", encoding="utf-8")
    for read in (lambda: journal_mirror.read(path), lambda: journal_mirror.Mirror(path)):
        with pytest.raises(errors.JournalTooNewError, match=r"line 1.*schema 2.*up to 1.*upgrade"):
            read()
    assert path.read_text(encoding="utf-8") == f"{newer}\n"


@pytest.mark.parametrize(
    "changed",
    [
        {"v": 0},
        {"v": -1},
        {"at_ms": -1},
        {"at_ms": 10**30},
        {"at_ms": 1 << 52},  # no calendar has the year 144,683
        {"seq": 1 << 53},
        {"token": "x"},
        {"token": "1"},
        {"token": "1.2.3"},
        {"token": f"{10**20}.1"},
        {"token": "\u0661.\u0661"},
        {"by": "\ud800"},
        {"data": {"reason": "\udcff"}},
    ],
    ids=lambda changed: str(ascii(changed)),
)
def test_what_no_version_has_written_is_damage(changed: dict[str, Any]) -> None:
    """Numbers that Redis' scripts would round, tokens that are none, half a character."""
    line = json.dumps(contract.loads(GOOD) | changed)
    with pytest.raises(errors.LedgerDamagedError):
        contract.Entry.from_line(line)


@pytest.mark.parametrize("reader", REPLIES, ids=lambda reader: str(reader.__name__))
@hypothesis.given(raw=RAW)
def test_a_foreign_reply_is_told_or_read(reader: Callable[[Any], Any], raw: list[Any]) -> None:
    """A reply that no script of ours gives ends in an error of the farm, never in another."""
    with contextlib.suppress(errors.LedgerForeignError):
        reader(raw)


@pytest.mark.parametrize("raw", [[], [None], [b"x"], [b"x", 1, b"0.1"], [b"", b"", b""]], ids=str)
@pytest.mark.parametrize("reader", REPLIES, ids=lambda reader: str(reader.__name__))
def test_a_word_that_no_script_says_is_refused(
    reader: Callable[[Any], Any], raw: list[Any]
) -> None:
    """The error names the reply that could not be read, and what to do."""
    with pytest.raises(errors.LedgerForeignError, match=rf"{reader.__name__}.*same version"):
        reader(raw)


@hypothesis.given(
    fields=st.dictionaries(
        st.sampled_from([b"v", b"kind", b"at", b"by", b"token", b"data"]), st.binary(max_size=8)
    ),
    entry_id=st.binary(max_size=6),
)
def test_a_foreign_entry_in_redis_is_damage(fields: dict[bytes, bytes], entry_id: bytes) -> None:
    """An entry of the stream that was not written by the farm is refused."""
    with pytest.raises(errors.LedgerDamagedError):
        replies.entry(entry_id, fields)


@hypothesis.given(raw=st.dictionaries(st.sampled_from([b"token", b"ttl"]), st.binary(max_size=6)))
def test_a_foreign_slot_is_told(raw: dict[bytes, bytes]) -> None:
    """A lease whose fields are missing is an error, an empty one is none."""
    if not raw:
        assert replies.slot("main", raw, 0) is None
        return
    with pytest.raises(errors.LedgerForeignError):
        replies.slot("main", raw, 0)
