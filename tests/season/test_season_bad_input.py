"""Season files, books and journals as strangers and broken disks write them: a clear error."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import math
import pathlib
from typing import Any

import driver
import hypothesis
import make_fixture
import pytest
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import openings
from orchestrator.common import errors
from orchestrator.season import decide, views
from orchestrator.season.file import load as file_load
from orchestrator.season.fold import orders, state

TEXT = driver.season_text()
LINES = TEXT.splitlines()
VALUES = [number for number, line in enumerate(LINES) if " = " in line]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from([99_999, -1, 10**30, math.nan, math.inf, "nobody", "../..", "league"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=5,
)
LITERALS = st.sampled_from(
    ["-1", "0", "1e400", "nan", '""', "[]", "{}", "true", "1979-05-27", '"\\u0000"', "9" * 30]
) | st.integers().map(str)
PIECES = st.sampled_from(
    ["1. e4 e5 2. Nf3", "[Event", '"]', "{", "}", "(", ")", "$", "1-0", "*", "\n\n", "\0", "é"]
)


def load(folder: pathlib.Path, text: str) -> None:
    """Load a season file; an error of the farm is right, any other is not."""
    with contextlib.suppress(errors.FarmError):
        driver.load(folder, text)


@hypothesis.given(at=st.sampled_from(VALUES), literal=LITERALS)
@hypothesis.example(at=LINES.index('file = "short.epd"'), literal='"\\u0000"')
@hypothesis.settings(max_examples=60, deadline=None)
def test_any_value_in_a_season_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, literal: str
) -> None:
    """One value exchanged for another kind of value never ends in a traceback."""
    lines = list(LINES)
    lines[at] = f"{lines[at].partition(' = ')[0]} = {literal}"
    load(tmp_path_factory.mktemp("value"), "\n".join(lines))


@hypothesis.given(at=st.integers(0, len(TEXT) - 1), size=st.integers(0, 9), new=st.text(max_size=4))
@hypothesis.settings(max_examples=60, deadline=None)
def test_any_damage_to_a_season_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, at: int, size: int, new: str
) -> None:
    """Text cut out or put in anywhere never ends in a traceback."""
    with contextlib.suppress(UnicodeEncodeError):  # a lone surrogate is in no file
        load(tmp_path_factory.mktemp("damage"), TEXT[:at] + new + TEXT[at + size :])


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"= = =", b"[" * 5_000, b"a" * 10_000])
def test_what_is_no_season_file_is_refused_by_its_name(
    tmp_path: pathlib.Path, content: bytes
) -> None:
    """Bytes of any kind are refused as a season file, with the file's name."""
    path = tmp_path / "season.toml"
    path.write_bytes(content)
    with pytest.raises(errors.SeasonFileError, match=r"season\.toml"):
        file_load.load(path)


@hypothesis.given(text=st.text(max_size=80) | st.lists(PIECES, max_size=8).map(" ".join))
@hypothesis.settings(max_examples=80, deadline=None)
def test_any_text_is_a_book_or_refused(text: str) -> None:
    """EPD and PGN readers end in openings or a book's error that names the source."""
    for kind in ("epd", "pgn"):
        try:
            read = openings.parse(text, kind, None, "the-book")  # type: ignore[arg-type]
        except errors.BookError as error:
            assert "the-book" in str(error)  # noqa: PT017 - most texts are none, some are
        else:
            assert all(isinstance(opening, contract.Opening) for opening in read)


@pytest.fixture(scope="module")
def journal() -> list[contract.Entry]:
    """Read the frozen journal ``league``."""
    lines = (make_fixture.FOLDER / "journal.jsonl").read_text().splitlines()
    return [contract.Entry.from_line(line) for line in lines]


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of everything in a piece of JSON."""
    inner = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = enumerate(value[:2])
    found = [path] if path else []
    for key, below in inner:
        found += _places(below, (*path, key))
    return found


@hypothesis.given(data=st.data())
@hypothesis.settings(max_examples=150, deadline=None)
def test_a_changed_fact_folds_or_is_damage(
    journal: list[contract.Entry], data: st.DataObject
) -> None:
    """One value of one fact exchanged: it is damage, or the season is decided and shown on."""
    firsts = list({entry.kind: entry.seq for entry in reversed(journal)}.values())
    seq = data.draw(st.sampled_from(sorted(firsts)))
    changed: dict[str, Any] = copy.deepcopy(dict(journal[seq - 1].data))
    *way, last = data.draw(st.sampled_from(_places(changed)))
    place: Any = changed
    for key in way:
        place = place[key]
    place[last] = data.draw(JSON)
    json.dumps(changed)
    entries = list(journal[: seq + data.draw(st.sampled_from([0, 1, 12]))])
    entries[seq - 1] = contract.Entry(
        seq, entries[seq - 1].at_ms, entries[seq - 1].kind, entries[seq - 1].by, changed
    )
    with contextlib.suppress(errors.LedgerDamagedError):
        _go_on(state.fold(entries))


def _go_on(folded: state.SeasonState) -> None:
    """Do what `serve` and `farm status` do with a season."""
    decide.decide(folded, folded.at_ms + 10**9)
    if (game := folded.ready_game()) is not None:
        orders.game_order(folded, game).encode()
    views.season(folded)
    for event in folded.events:
        views.schedule(folded, event, 0)
        views.standings(folded, event)


POISON = [
    ("games_paired", ("games", 0, "opening"), 99_999),
    ("games_paired", ("games", 0, "opening"), -1),
    ("games_paired", ("games", 0, "white"), "nobody"),
    ("event_started", ("entrants", 0), "nobody"),
    ("event_started", ("entrants",), []),
    ("promoted", ("engines", 0), "nobody"),
    ("event_ranked", ("rows",), []),
    ("game_finished", ("r_mobility",), math.nan),
    ("game_finished", ("r_mobility",), math.inf),
    ("game_finished", ("game",), "../../../x"),
    ("game_finished", ("ended_ms",), 10**18),
    ("game_finished", ("started_ms",), -(10**18)),
    ("game_finished", ("plies",), -1),
    ("game_finished", ("white_clock_ns",), 10**30),
    ("attempt_started", ("attempt",), "../../../../x"),
    ("attempt_started", ("attempt",), "x\0y"),
    ("attempt_started", ("attempt",), "*"),
    ("attempt_started", ("worker",), "h/../../x"),
    ("season_finished", ("champion",), "nobody"),
]


@pytest.mark.parametrize(("kind", "way", "value"), POISON)
def test_a_fact_of_another_hand_is_damage_in_the_fold(
    journal: list[contract.Entry], kind: str, way: tuple[Any, ...], value: object
) -> None:
    """What only a later step would stumble over is refused where it is read."""
    seq = next(entry.seq for entry in journal if entry.kind == kind)
    changed: Any = copy.deepcopy(dict(journal[seq - 1].data))
    place = changed
    for key in way[:-1]:
        place = place[key]
    place[way[-1]] = value
    entries = [*journal[: seq - 1], dataclasses.replace(journal[seq - 1], data=changed)]
    with pytest.raises(errors.LedgerDamagedError, match=f"entry {seq}"):
        state.fold(entries)


def test_a_journal_with_a_hole_or_a_doubled_entry_is_damage(journal: list[contract.Entry]) -> None:
    """The fold says which entry follows which."""
    for broken in ([*journal[:5], *journal[6:]], [*journal[:5], journal[4], *journal[5:]]):
        with pytest.raises(errors.LedgerDamagedError, match="follows entry 5"):
            state.fold(broken)
