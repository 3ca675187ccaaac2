"""The mirror: what is in it stays, what is torn is cut, what is damaged is refused."""

from __future__ import annotations

import os
import pathlib

import hypothesis
import pytest
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import journal_mirror


def entries(first: int, last: int) -> list[contract.Entry]:
    """Make the entries of a journal from ``first`` to ``last``."""
    return [
        contract.Entry(seq, 1000 + seq, "noted", "op", {"text": f"é{seq}", "x": [1.5, None]})
        for seq in range(first, last + 1)
    ]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    """Name a mirror in a directory that does not exist yet."""
    return tmp_path / "archive" / "journal.jsonl"


@pytest.fixture
def five(path: pathlib.Path) -> pathlib.Path:
    """Write a mirror of five entries."""
    with journal_mirror.Mirror(path) as written:
        written.extend(entries(1, 5))
    return path


def test_a_mirror_is_nobody_elses_to_read(path: pathlib.Path) -> None:
    """It holds the seed and coming openings; one that others could read is closed."""
    with journal_mirror.Mirror(path):
        assert path.stat().st_mode & 0o777 & ~0o640 == 0
    path.chmod(0o644)
    with journal_mirror.Mirror(path):
        assert path.stat().st_mode & 0o777 == 0o640
    assert path.parent.stat().st_mode & 0o007 == 0


def test_a_mirror_is_extended_and_read_back(path: pathlib.Path) -> None:
    """Batches add up over closings; what is read equals what was written."""
    with journal_mirror.Mirror(path) as first:
        assert (first.last, first.cut) == (0, b"")
        first.extend(entries(1, 3))
        first.extend([])
    with journal_mirror.Mirror(path) as second:
        assert second.last == 3
        second.extend(entries(4, 5))
        assert second.last == 5
    assert journal_mirror.read(path) == entries(1, 5)


@pytest.mark.parametrize("wrong", [entries(7, 8), entries(5, 6), entries(1, 1)])
def test_entries_that_do_not_follow_are_refused(
    five: pathlib.Path, wrong: list[contract.Entry]
) -> None:
    """A gap or an overlap writes nothing and names both numbers."""
    before = five.read_bytes()
    with journal_mirror.Mirror(five) as open_one:
        with pytest.raises(errors.LedgerDamagedError, match=rf"entry {wrong[0].seq} where 6"):
            open_one.extend(wrong)
        with pytest.raises(errors.LedgerDamagedError, match="entry 8 where 7"):
            open_one.extend([*entries(6, 6), *entries(8, 8)])
    assert five.read_bytes() == before


@hypothesis.given(cut=st.integers(1, 400))
@hypothesis.settings(deadline=None, max_examples=60)
def test_a_torn_last_line_is_cut(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """Wherever the file ends, every whole line is kept and only the torn one goes."""
    path = tmp_path_factory.mktemp("torn") / "journal.jsonl"
    whole = "".join(f"{entry.line()}\n" for entry in entries(1, 5)).encode()
    left = whole[: max(0, len(whole) - cut)]
    path.write_bytes(left)
    kept = left.count(b"\n")
    assert journal_mirror.read(path) == entries(1, kept)
    assert path.read_bytes() == left
    with journal_mirror.Mirror(path) as repaired:
        assert repaired.last == kept
        assert repaired.cut == left[left.rfind(b"\n") + 1 :]
        repaired.extend(entries(kept + 1, 5))
    assert path.read_bytes() == whole


@pytest.mark.parametrize("tail", [b"\0" * 64, b'{"seq":6', b"\0\0\n", b'{"se\0\0\0}\n'])
def test_an_unwritten_tail_is_cut(five: pathlib.Path, tail: bytes) -> None:
    """Zero blocks and half lines, with a line end or without, are what power cuts leave."""
    whole = five.read_bytes()
    five.write_bytes(whole + tail)
    with journal_mirror.Mirror(five) as repaired:
        assert (repaired.last, repaired.cut) == (5, tail)
    assert five.read_bytes() == whole


@pytest.mark.parametrize(
    ("number", "damage"),
    [
        (2, b"garbage"),
        (3, b'{"seq":3}'),
        (4, b""),
        (1, b"\xff\xfe"),
        (5, b'{"seq":5}'),
        (5, b"[" * 100_000),
        (5, entries(5, 5)[0].line().replace(":5,", ";5,").encode()),
        (2, entries(3, 3)[0].line().encode()),
        (5, entries(9, 9)[0].line().encode()),
    ],
)
def test_other_damage_is_refused_and_left_alone(
    five: pathlib.Path, number: int, damage: bytes
) -> None:
    """The error names the line; the file stays as it is."""
    lines = five.read_bytes().split(b"\n")
    lines[number - 1] = damage
    five.write_bytes(b"\n".join(lines))
    before = five.read_bytes()
    with pytest.raises(errors.LedgerDamagedError, match=f"line {number} "):
        journal_mirror.Mirror(five)
    with pytest.raises(errors.LedgerDamagedError, match=f"line {number} "):
        journal_mirror.read(five)
    assert five.read_bytes() == before


def test_a_whole_last_line_with_one_letter_changed_is_no_torn_one(five: pathlib.Path) -> None:
    """A fact stands there that nothing else may have: it is told of, not cut."""
    five.write_bytes(five.read_bytes()[:-2] + b"]\n")
    before = five.read_bytes()
    assert not journal_mirror.is_torn(before.splitlines(keepends=True)[-1])
    with pytest.raises(errors.LedgerDamagedError, match=r"line 5 is damaged.*`farm restore`"):
        journal_mirror.Mirror(five)
    assert five.read_bytes() == before


def test_one_process_extends_a_mirror(five: pathlib.Path) -> None:
    """A second one is refused until the first has closed."""
    with journal_mirror.Mirror(five):
        with pytest.raises(errors.RefusedError, match="another process"):
            journal_mirror.Mirror(five)
        assert journal_mirror.read(five) == entries(1, 5)
    journal_mirror.Mirror(five).close()


@pytest.mark.parametrize(
    "journal", [[], entries(1, 3), entries(1, 5), entries(1, 9), entries(4, 7)]
)
def test_a_prefix_agrees(five: pathlib.Path, journal: list[contract.Entry]) -> None:
    """Mirror and journal agree when one goes on where the other has ended."""
    with journal_mirror.Mirror(five) as open_one:
        open_one.verify_against(journal)
        open_one.verify_against(iter(entries(6, 7)))


def test_the_place_where_they_part_is_named(five: pathlib.Path) -> None:
    """The first differing entry is named, whatever part of it differs."""
    with journal_mirror.Mirror(five) as open_one:
        for other in (
            contract.Entry(3, 1003, "noted", "op", {"text": "é3", "x": [1.5, 0]}),
            contract.Entry(3, 1003, "noted", "op", {"text": "é3", "x": [1.5, None]}, "1.1"),
            contract.Entry(3, 1004, "noted", "op", {"text": "é3", "x": [1.5, None]}),
        ):
            with pytest.raises(errors.LedgerDamagedError, match="differ from entry 3"):
                open_one.verify_against([*entries(1, 2), other, *entries(4, 9)])


def test_a_journal_that_comes_in_pieces_costs_each_line_once(
    path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long season opens in a time that grows with its journal, not with its square."""
    read: list[int] = []
    parse = journal_mirror._parse

    def counted(place: pathlib.Path, number: int, line: bytes) -> contract.Entry:
        read.append(number)
        return parse(place, number, line)

    with journal_mirror.Mirror(path) as open_one:
        open_one.extend(entries(1, 40))
        monkeypatch.setattr(journal_mirror, "_parse", counted)
        for seq in range(1, 40):
            open_one.verify_against(entries(seq, seq))
        assert len(read) < 2 * 40
        other = contract.Entry(40, 1040, "noted", "op", {})
        with pytest.raises(errors.LedgerDamagedError, match="differ from entry 40"):
            open_one.verify_against([other])
        open_one.verify_against(entries(1, 45))


def test_a_disk_that_refuses_leaves_the_mirror_whole(five: pathlib.Path) -> None:
    """A batch that the disk does not take is not half in the file."""
    before = five.read_bytes()
    with journal_mirror.Mirror(five) as open_one:
        writable, open_one._fd = open_one._fd, os.open(five, os.O_RDONLY)
        with pytest.raises(errors.HostError, match="cannot write"):
            open_one.extend(entries(6, 7))
        assert open_one.last == 5
        os.close(writable)
    assert five.read_bytes() == before
