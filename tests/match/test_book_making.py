"""Making books: from archives, by enumeration with an engine, of Chess960 positions."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import subprocess
from typing import Any

import chess
import pytest
import table

from orchestrator import contract
from orchestrator.arbiter import openings
from worker_cpu.book import archive, enumeration, lines
from worker_cpu.match import books

GAMES = """[Event "a"]
[Result "1-0"]

1. e4 e5 2. Nf3 Nc6 3. Bb5 1-0

[Event "b"]
[Result "1/2-1/2"]

1. Nf3 (1. d4 d5) Nc6 2. e4 {transposes} e5 3. Bc4 1/2-1/2

[Event "c"]
[Result "0-1"]

1. d4 d5 2. c4 e6 0-1

[Event "short"]

1. e4 *

[Event "broken"]

1. e4 e5 2. Kxe9 Nc6 *

[Event "other"]
[Variant "fischerandom"]
[FEN "bbqnnrkr/pppppppp/8/8/8/8/PPPPPPPP/BBQNNRKR w KQkq - 0 1"]

1. e4 e5 2. d4 d5 *
"""


def asked(directory: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``farm book``, whatever becomes of it."""
    return subprocess.run(
        [*table.FARM, "book", *words],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=table.PATIENCE,
        check=False,
    )


def made(directory: pathlib.Path, *words: str) -> dict[str, Any]:
    """Run ``farm book`` and return its facts."""
    done = asked(directory, *words, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_transpositions_are_one_exit_with_the_games_of_both() -> None:
    """Exits are positions; counts and results of all ways to them are added."""
    found = archive.gather([GAMES], 4)
    first, second = found.chosen(1)
    assert (first.count, first.wins, first.draws, first.losses) == (2, 1, 1, 0)
    assert first.opening.moves == ("e2e4", "e7e5", "g1f3", "b8c6")
    assert (second.count, second.losses) == (1, 1)
    assert [line.count for line in found.chosen(2)] == [2]
    assert (found.games, found.foreign) == (6, 1)
    assert found.short + found.broken == 2


def test_what_is_left_of_a_broken_game_is_no_other_game() -> None:
    """Neither a position nor a move that cannot be makes a line of what follows it."""
    rest = "\n2. Nf3 Nc6 3. Bb5 a6 1-0\n\n"
    broken = [
        '[Event "move"]\n\n1. e4 Kxe9' + rest,
        '[Event "position"]\n[FEN "8/8/8/8/8/8/8/8 w - - 0 1"]\n\n1. e4 e5' + rest,
        '[Event "fen"]\n[FEN "nonsense"]\n\n1. e4 e5' + rest,
        '[Event "variant"]\n[Variant "unheard of"]\n\n1. e4 e5' + rest,
    ]
    found = archive.gather(["".join(broken) + "\n\n"], 2)
    assert (found.games, found.broken, found.short, found.found) == (4, 4, 0, {})


def test_chess960_games_make_a_chess960_book() -> None:
    """The variant asked for is taken, the others are only counted."""
    found = archive.gather([GAMES], 4, "fischerandom")
    assert [line.opening.moves[0] for line in found.chosen(1)] == ["e2e4"]


@pytest.mark.parametrize("form", ["pgn", "epd"])
def test_a_written_book_reads_back(form: lines.Format) -> None:
    """Positions, names and codes of a book survive writing and reading."""
    chosen = [lines.named(line) for line in archive.gather([GAMES], 4).chosen(1)]
    text = lines.written(chosen, form)
    exits = openings.parse(text, form, None, "book")
    assert [(one.name, one.eco) for one in exits] == [
        (line.opening.name, line.opening.eco) for line in chosen
    ]
    assert exits[0].eco == "C44"
    for line, one in zip(chosen, exits, strict=True):
        assert lines.Line(one).board().epd() == line.board().epd()


def test_archives_make_a_book_file(tmp_path: pathlib.Path) -> None:
    """The command reads plain and compressed archives and writes by the file's ending."""
    (tmp_path / "a.pgn").write_text(GAMES)
    (tmp_path / "b.pgn.gz").write_bytes(gzip.compress(GAMES.encode()))
    facts = made(tmp_path, "games", "a.pgn", "b.pgn.gz", "--plies", "4", "-o", "book.epd")
    assert (facts["games"], facts["exits"], facts["lines"]) == (12, 2, 2)
    assert "4 games, +2 =2 -0" in (tmp_path / "book.epd").read_text()
    assert len(books.read_book(tmp_path / "book.epd", "epd", None)) == 2


@pytest.mark.parametrize(("plies", "count"), [(1, 20), (2, 400), (3, 5362)])
def test_enumeration_finds_every_position_once(plies: int, count: int) -> None:
    """The numbers of distinct positions after n plies are the known ones."""
    found = enumeration.positions(contract.Opening(), plies, "standard")
    assert len(found) == count


def test_a_sample_is_decided_by_the_seed() -> None:
    """The same seed draws the same lines, in the order of the enumeration."""
    found = enumeration.positions(contract.Opening(), 2, "standard")
    drawn = enumeration.sample(found, 10, 1)
    assert drawn == enumeration.sample(found, 10, 1) != enumeration.sample(found, 10, 2)
    assert drawn == [line for line in found if line in drawn]


def test_an_engine_filters_unbalanced_lines(tmp_path: pathlib.Path) -> None:
    """Only lines inside the bounds are kept, with the eval; the result does not vary."""
    engine = pathlib.Path("/usr/games/stockfish")
    if not engine.exists():
        if os.environ.get("CI") == "true":
            pytest.fail("stockfish is not installed")
        pytest.skip("stockfish is not installed")
    words = ["enumerate", "--plies", "2", "--sample", "30", "--engine", str(engine)]
    bounds = ["--nodes", "500", "--lowest", "0", "--highest", "0.6", "--option", "Hash=1"]
    facts = made(tmp_path, *words, *bounds, "-o", "one.epd")
    assert 0 < facts["lines"] < facts["looked_at"] == 30
    made(tmp_path, *words, *bounds, "-o", "two.epd")
    assert (tmp_path / "one.epd").read_text() == (tmp_path / "two.epd").read_text()


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        (
            "--lowest 0.9 --highest 0.2",
            "--lowest: found 0.9; allowed: up to --highest, which is 0.2",
        ),
        ("--lowest 0.9", "--lowest: found 0.9; allowed: up to --highest, which is 0.5"),
    ],
)
def test_bounds_that_no_eval_lies_within_are_refused_before_a_search(
    tmp_path: pathlib.Path, bounds: str, said: str
) -> None:
    """Wrong bounds are named with what is allowed, and the engine is not even started."""
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\n")
    engine.chmod(0o755)
    words = ["enumerate", "--plies", "1", "--engine", str(engine), "-o", "book.epd"]
    done = asked(tmp_path, *words, *bounds.split())
    assert (done.returncode, done.stderr) == (2, f"farm: {said}\n")
    assert list(tmp_path.iterdir()) == [engine]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--lowest -1", "--lowest: nobody judges the positions; name an --engine"),
        ("--option Hash=1", "--option: nobody judges the positions; name an --engine"),
        ("--engine fa-rm --nodes 5", "--engine: found fa-rm, but no 'fa-rm' in PATH, and no file"),
        ("--engine farm --option Hash", "--option: found 'Hash'; allowed: NAME=VALUE"),
    ],
)
def test_what_no_engine_is_asked_with_is_refused(
    tmp_path: pathlib.Path, words: str, said: str
) -> None:
    """A book that nobody has judged is not passed off as a balanced one."""
    done = asked(tmp_path, "enumerate", "--plies", "1", "-o", "book.epd", *words.split())
    assert done.returncode == 2, done.stderr
    assert f"farm: {said}" in done.stderr
    assert not list(tmp_path.iterdir())


def test_bounds_that_no_position_is_within_are_named(tmp_path: pathlib.Path) -> None:
    """Who has to change them is told which they were."""
    words = ["enumerate", "--plies", "1", "-o", "book.epd", "--sample", "2", "--nodes", "10"]
    judge = ["--engine", "farm-engine", "--lowest", "40", "--highest", "50"]
    done = asked(tmp_path, *words, *judge)
    assert done.returncode != 0
    assert "of 2 positions the engine finds none between 40.0 and 50.0 pawns" in done.stderr


def test_chess960_books(tmp_path: pathlib.Path) -> None:
    """All 960 positions, or a sample of double ones, in a file that can be played from."""
    assert made(tmp_path, "chess960", "-o", "frc.epd")["lines"] == 960
    exits = books.read_book(tmp_path / "frc.epd", "epd", None)
    assert exits[518].fen is None  # the standard start position
    assert len({exit_.fen for exit_ in exits}) == 960
    made(tmp_path, "chess960", "--double", "--count", "3", "--seed", "4", "-o", "dfrc.epd")
    for line in books.read_book(tmp_path / "dfrc.epd", "epd", None):
        assert chess.Board(line.fen or "", chess960=True).is_valid()
