"""Books of a season: compressed files, the first exit, Chess960 books and events."""

from __future__ import annotations

import gzip
import pathlib
import shutil

import driver
import pytest

from orchestrator.common import errors
from orchestrator.season.file import describe, load

FRC = "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1\n"
SEASON = """
schema = 1
id = "s"
name = "S"
[roster]
engine = [{ id = "a", name = "A", command = ["a"] }, { id = "b", name = "B", command = ["b"] }]
[books.frc]
file = "frc.epd.gz"
repeat = true
[[event]]
id = "e"
name = "E"
format = { kind = "match", games = 2 }
entrants = "roster"
time_control = "1+1"
book = "frc"
"""


def season(directory: pathlib.Path, *lines: str) -> pathlib.Path:
    """Write a season file with a compressed Chess960 book."""
    (directory / "frc.epd.gz").write_bytes(gzip.compress(FRC.encode()))
    path = directory / "s.toml"
    path.write_text("\n".join([SEASON, *lines]), encoding="utf-8")
    return path


def test_a_compressed_book_is_read(tmp_path: pathlib.Path) -> None:
    """A .gz book is read as what its name says before that."""
    loaded = load.load(season(tmp_path, 'variant = "fischerandom"'))
    assert loaded.books["frc"][0].fen == FRC.strip()
    assert loaded.season.events[0].variant == "fischerandom"


def test_a_chess960_book_in_a_standard_event_is_refused(tmp_path: pathlib.Path) -> None:
    """A start position that the event's variant does not know is found before the launch."""
    with pytest.raises(errors.SeasonFileError, match=r"\[event e\] variant.*fischerandom"):
        load.load(season(tmp_path))


# -- what stands in a book (S16-8a; S16-3c, 4b, 5b, 6b, 7b; S17-3d to 7b; N1 Opening Book) ----

MOVES = (
    "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O",
    "1. d4 d5 2. c4 e6 3. Nc3 Nf6 4. Bg5 Be7 5. e3 O-O 6. Nf3 h6 7. Bh4 b6 8. cxd5 Nxd5",
    "1. c4 e5 2. Nc3 Nf6 3. Nf3 Nc6 4. g3 d5 5. cxd5 Nxd5 6. Bg2 Nb6 7. O-O Be7 8. d3 O-O",
    "1. Nf3 d5 2. g3 Nf6 3. Bg2 e6 4. O-O Be7 5. d3 O-O 6. Nbd2 c5 7. e4 Nc6 8. Re1 b5",
)
SHORT = "1. e4 c5 2. Nf3 d6"


def bundled(directory: pathlib.Path, name: str, book: str, *lines: str) -> pathlib.Path:
    """Copy a bundled season and its books, with other lines under the name of one book."""
    path = pathlib.Path(shutil.copytree(driver.SEASONS, directory / "seasons")) / f"{name}.toml"
    text = "".join(f'[Event "{n}"]\n\n{line} *\n\n' for n, line in enumerate(lines, start=1))
    (path.parent / "books" / book).write_text(text, encoding="utf-8")
    return path


def many(count: int, *instead: str) -> list[str]:
    """Return so many different lines of eight moves, the last ones as given."""
    first = [file + rank for file in "bcdefg" for rank in "34"]
    reply = [file + rank for file in "bcdefg" for rank in "65"]
    opened = [f"1. {one} {other}" for one in first for other in reply]
    kept = opened[: count - len(instead)]
    knights = " 2. a4 a5 3. h4 h5 4. Ra2 Ra7 5. Rhh2 Rhh7 6. Ra1 Ra8 7. Rhh1 Rhh8 8. Ra2 Ra7"
    return [line + knights for line in kept] + list(instead)


def refusal(path: pathlib.Path) -> str:
    """Return what a season file is refused with."""
    with pytest.raises(errors.SeasonFileError) as refused:
        load.load(path)
    return str(refused.value)


@pytest.mark.parametrize(("season_", "clause"), [("season16", "S16-8a"), ("season17", "S16-8a")])
def test_a_superfinal_has_fifty_different_openings(
    tmp_path: pathlib.Path, season_: str, clause: str
) -> None:
    """S16-8a, S17-8a: sixty equal lines are one opening."""
    told = refusal(bundled(tmp_path, season_, "superfinal.pgn", *[MOVES[0]] * 60))
    assert "1 different lines (60 with their repetitions)" in told
    assert "opening 2" in told
    assert "the same as opening 1" in told
    assert clause in told


def test_a_superfinal_s_line_that_comes_twice_is_named(tmp_path: pathlib.Path) -> None:
    """S16-8a: also where the book has enough other lines."""
    told = refusal(bundled(tmp_path, "season16", "superfinal.pgn", *many(60, MOVES[1], MOVES[1])))
    assert "opening 60" in told
    assert "the same as opening 59" in told


def test_the_start_position_is_played_once(tmp_path: pathlib.Path) -> None:
    """S16-8a: an empty line of the book would be the start position a second time."""
    told = refusal(bundled(tmp_path, "season16", "superfinal.pgn", *many(55, "")))
    assert "opening 55" in told
    assert "the start position, which event sufi has already" in told


@pytest.mark.parametrize(
    ("season_", "book", "plies"),
    [
        ("season16", "2-moves.pgn", 4),  # S16-3c
        ("season16", "4-moves.pgn", 8),  # S16-4b
        ("season16", "6-moves.pgn", 12),  # S16-5b
        ("season16", "8-moves.pgn", 16),  # S16-6b, S16-7b
        ("season17", "8-moves-divp.pgn", 16),  # S17-7b
        ("ntcec1", "8-moves.pgn", 16),  # N1 Opening Book
    ],
)
def test_each_line_has_the_book_s_length(
    tmp_path: pathlib.Path, season_: str, book: str, plies: int
) -> None:
    """S16-3c, 4b, 5b, 6b, 7b, S17-7b, N1: a line that ends before is named, one by one."""
    short = " ".join(SHORT.split()[: 2 if plies == 4 else 6])
    told = refusal(bundled(tmp_path, season_, book, *many(80, short)))
    assert "opening 80" in told
    assert f"plies = {plies}" in told
    told = refusal(bundled(tmp_path / "all", season_, book, *[short] * 70))
    assert "60 more such lines" in told


def test_a_book_may_be_said_to_hold_shorter_lines(tmp_path: pathlib.Path) -> None:
    """``shorter = true``: ``plies`` then only cuts."""
    path = bundled(tmp_path, "season16", "2-moves.pgn", *many(140 - 60, "1. e4"))
    assert "opening 80" in refusal(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("plies = 4 ", "plies = 4\nshorter = true\nrepeat = true "))
    assert load.load(path).season.books["two"].shorter


def test_lines_that_come_twice_are_warned_of(tmp_path: pathlib.Path) -> None:
    """A league may do with them; `farm check` names them, and a book that is another's (S17-7b)."""
    path = bundled(tmp_path, "season17", "8-moves-divp.pgn", *many(80))
    again = path.parent / "books" / "8-moves-divp.pgn"
    again.write_bytes((path.parent / "books" / "8-moves.pgn").read_bytes())
    found = describe.explain(load.load(path))["warnings"]
    assert "[books.divp] holds the same openings as [books.eight]" in found
    lines = (path.parent / "books" / "4-moves.pgn").read_text(encoding="utf-8")
    (path.parent / "books" / "4-moves.pgn").write_text(lines + "\n" + lines, encoding="utf-8")
    found = describe.explain(load.load(path))["warnings"]
    assert any("[books.four]" in one and "is the same as opening 1" in one for one in found)
