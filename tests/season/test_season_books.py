"""Books of a season: compressed files, the first exit, Chess960 books and events."""

from __future__ import annotations

import gzip
import pathlib

import pytest

from orchestrator import errors
from orchestrator.season import files

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
    loaded = files.load(season(tmp_path, 'variant = "fischerandom"'))
    assert loaded.books["frc"][0].fen == FRC.strip()
    assert loaded.season.events[0].variant == "fischerandom"


def test_a_chess960_book_in_a_standard_event_is_refused(tmp_path: pathlib.Path) -> None:
    """A start position that the event's variant does not know is found before the launch."""
    with pytest.raises(errors.SeasonFileError, match=r"\[event e\] variant.*fischerandom"):
        files.load(season(tmp_path))
