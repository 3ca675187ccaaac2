"""Opening books: PGN and EPD texts become exits in order, errors name their place."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import openings
from orchestrator.common import errors

PGN = """[Event "a"]
[ECO "B00"]
[Opening "King's pawn"]
[Variation "quiet \\"line\\""]

1. e4 {good [%eval 0.1]} (1. d4 Kxx9 2. nonsense) e5 $1 2. Nf3 Nc6 *

[Event "b"]
[FEN "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1"]
[SetUp "1"]

1. O-O Ke7 1-0

[Event "a again"]

1. e4 e5 *
"""


def test_pgn_main_lines_are_cut_and_keep_their_order() -> None:
    """Each game gives one exit, cut to the wanted plies; a shorter line stays short.

    The tags are the whole line's: what is cut is named by its last known position.
    """
    first, second, third = openings.parse(PGN, "pgn", 3, "book.pgn")
    assert first.moves == ("e2e4", "e7e5", "g1f3")
    assert (first.fen, first.eco, first.name) == (None, "C40", "King's Knight Opening")
    assert second.fen == "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1"
    assert second.moves == ("e1g1", "e8e7")
    assert third.moves == ("e2e4", "e7e5")


def test_whole_games_are_read_without_a_number_of_plies() -> None:
    """``None`` keeps every ply, 0 keeps the start position."""
    whole = openings.parse(PGN, "pgn", None, "b")[0]
    assert len(whole.moves) == 4
    assert (whole.eco, whole.name) == ("B00", 'King\'s pawn: quiet "line"')
    assert openings.parse(PGN, "pgn", 4, "b")[0] == whole
    assert openings.parse(PGN, "pgn", 0, "b")[0] == contract.Opening()


def test_duplicates_are_kept() -> None:
    """The book's own weighting by repetition survives."""
    assert len(openings.parse('[Event "x"]\n\n1. e4 *\n\n' * 3, "pgn", 2, "b")) == 3


def test_chess960_books_castle_by_taking_the_rook() -> None:
    """A game tagged as Chess960 gives its castling in Chess960 notation."""
    text = '[FEN "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1"]\n[Variant "fischerandom"]\n\n1. O-O *\n'
    (exit_,) = openings.parse(text, "pgn", None, "b")
    assert exit_.moves == ("e1h1",)
    assert boards.GameBoard(exit_, "fischerandom").moves == ("e1h1",)


def test_epd_and_fen_lists_may_be_mixed() -> None:
    """EPD with operations, FEN with counters, comments and blank lines are read."""
    text = """# a comment
rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1

; another
rnbqkbnr/pppppppp/8/8/4P3/8/PPPP1PPP/RNBQKBNR b KQkq - id "King's pawn; x"; eco "B00";
nqrknrbb/pppppppp/8/8/8/8/PPPPPPPP/NQRKNRBB w FCfc - 0 1
8/8/8/3k4/8/3K4/8/7R w - - 40 71 id "rook";
"""
    start, pawn, shuffled, rook = openings.parse(text, "epd", 8, "book.epd")
    assert start == contract.Opening()
    assert (pawn.name, pawn.eco) == ("King's pawn; x", "B00")
    assert shuffled.fen is not None
    assert boards.GameBoard(shuffled, "fischerandom").legal("d1f1") is None
    assert (rook.fen, rook.name) == ("8/8/8/3k4/8/3K4/8/7R w - - 40 71", "rook")


@pytest.mark.parametrize(
    ("kind", "text", "words"),
    [
        ("pgn", '[Event "a"]\n\n1. e4 *\n\n[Event "b"]\n\n1. e4 Ke3 *\n', r"b: game 2 .*Ke3"),
        ("pgn", '[FEN "what"]\n\n1. e4 *\n', r"b: game 1 \(from line 1\)"),
        ("pgn", "1. f3 e5 2. g4 Qh4# 0-1\n", "no legal move is left"),
        ("pgn", "1. e4 -- *\n", "null move at ply 2"),
        ("pgn", "not a game\n", "neither tags nor moves"),
        ("pgn", "\n\n", "holds no opening"),
        ("epd", "# nothing\n", "holds no opening"),
        ("epd", "\nwhat\n", "b: line 2"),
        ("epd", "8/8/8/8/8/8/8/K7 w - -\n", "b: line 1: impossible position"),
        ("epd", "k7/2Q5/2K5/8/8/8/8/8 b - -\n", "no legal move is left"),
    ],
)
def test_a_bad_book_is_refused_with_its_place(kind: openings.Kind, text: str, words: str) -> None:
    """The message names the source and the game or line."""
    with pytest.raises(errors.BookError, match=words):
        openings.parse(text, kind, None, "b")


PREFIXES = ("", "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - ", '[FEN "', "1. e4 ")


@given(st.sampled_from(PREFIXES), st.text(), st.sampled_from(["pgn", "epd"]))
def test_no_text_raises_anything_but_a_book_error(
    prefix: str, text: str, kind: openings.Kind
) -> None:
    """Garbage is refused as a bad book or read as one, never a crash."""
    with contextlib.suppress(errors.BookError):
        assert openings.parse(prefix + text, kind, 4, "b")
