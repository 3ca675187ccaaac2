"""The board: endings by the rules of chess, legality of any text, and the UCI position."""

from __future__ import annotations

import random

import chess
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.common import errors

SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8")
ENDGAMES = (
    None,
    "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1",
    "8/8/4k3/8/8/3K4/8/6QR w - - 60 90",
    "8/1P1k4/8/8/8/8/4Kp2/8 w - - 0 1",
    "8/8/8/3k4/8/3K4/8/2B2n2 b - - 90 120",
)


def play(game: boards.GameBoard, *ucis: str) -> contract.Outcome | None:
    """Push moves that must be legal; return the ending after the last one."""
    for uci in ucis:
        move = game.legal(uci)
        assert move is not None, uci
        game.push(move)
    return game.ending()


def from_fen(fen: str, variant: boards.Variant = "standard") -> boards.GameBoard:
    """Start a game from a position without book moves."""
    return boards.GameBoard(contract.Opening(fen=fen), variant)


@pytest.mark.parametrize(
    ("fen", "move", "ending", "result"),
    [
        ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 0 1", "a1a8", "checkmate", "1-0"),
        ("7k/5K2/8/8/8/8/8/6Q1 w - - 0 1", "g1g6", "stalemate", "1/2-1/2"),
        ("8/8/8/3k4/8/3K4/4n3/8 w - - 0 1", "d3e2", "insufficient", "1/2-1/2"),
        ("8/8/8/3kb3/8/3K4/4n3/5B2 w - - 3 1", "d3e2", None, None),
        ("8/8/8/3k4/8/3K4/4n2R/8 w - - 99 90", "d3e3", "fifty-moves", "1/2-1/2"),
        ("8/8/8/3k4/8/3K4/4n2R/8 w - - 98 90", "d3e3", None, None),
        ("6k1/5ppp/8/8/8/8/8/R5K1 w - - 99 90", "a1a8", "checkmate", "1-0"),
        ("7k/5K2/8/8/8/8/8/6Q1 w - - 99 90", "g1g6", "stalemate", "1/2-1/2"),
    ],
)
def test_the_first_rule_that_applies_names_the_ending(
    fen: str, move: str, ending: str | None, result: str | None
) -> None:
    """Mate, stalemate, material and fifty moves end a game in this order; mate on ply 100 wins."""
    outcome = play(from_fen(fen), move)
    assert (outcome and outcome.ending.value, outcome and outcome.result) == (ending, result)


def test_two_knights_can_still_mate() -> None:
    """King and two knights against king is no draw by material."""
    assert play(from_fen("8/8/8/3k4/8/3K4/4p3/1N4N1 w - - 0 1"), "g1e2") is None


def test_a_position_is_drawn_when_it_stands_for_the_third_time() -> None:
    """The start position counts as the first of three."""
    game = boards.GameBoard(contract.Opening())
    assert play(game, *SHUFFLE) is None
    outcome = play(game, *SHUFFLE)
    assert outcome is not None
    assert outcome.ending is contract.Ending.THREEFOLD


def test_book_plies_count_in_repetitions_but_never_end_a_game() -> None:
    """A repetition completed by the book is a draw only with an engine's next repetition."""
    game = boards.GameBoard(contract.Opening(moves=SHUFFLE * 2))
    assert (game.ply, game.book_plies, game.ending()) == (8, 8, None)
    assert play(game, "g1f3") is not None


def test_lost_castling_rights_make_another_position() -> None:
    """A position repeated without the castling rights it had is counted anew."""
    game = from_fen("4k3/8/8/8/8/8/4P3/4K2R w K - 0 1")
    cycle = ("h1g1", "e8d8", "g1h1", "d8e8")
    assert play(game, *cycle, *cycle) is None
    assert play(game, *cycle) is not None


@pytest.mark.parametrize(
    ("fen", "cycle", "thrice"),
    [
        # pinned on the file, pinned along the rank: the capture was never possible
        ("4k3/8/8/8/3Pp3/8/8/K3R3 b - d3 0 1", ("e8e7", "a1a2", "e7e8", "a2a1"), True),
        ("8/8/8/8/k2Pp2R/8/8/4K3 b - d3 0 1", ("a4a5", "e1e2", "a5a4", "e2e1"), True),
        ("8/8/8/8/k2Pp3/8/8/4K2R b - d3 0 1", ("a4a5", "h1h2", "a5a4", "h2h1"), False),
    ],
)
def test_only_a_legal_en_passant_capture_makes_another_position(
    fen: str, cycle: tuple[str, ...], thrice: bool
) -> None:
    """En passant counts in a repetition only where the capture is legal (FIDE 9.2.3)."""
    outcome = play(from_fen(fen), *cycle, *cycle)
    assert (outcome is not None) is thrice


def test_castling_is_written_as_the_variant_demands() -> None:
    """Standard chess takes e1g1, Chess960 takes king-takes-rook, neither takes the other."""
    fen = "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1"
    standard, shuffled = from_fen(fen), from_fen(fen, "fischerandom")
    assert standard.legal("e1h1") is None
    assert shuffled.legal("e1g1") is None
    assert play(standard, "e1g1") is None
    assert play(shuffled, "e1a1") is None
    assert standard.fen().startswith("4k3/8/8/8/8/8/8/R4RK1 b")
    assert shuffled.fen().startswith("4k3/8/8/8/8/8/8/2KR3R b")
    assert (standard.moves, shuffled.moves) == (("e1g1",), ("e1a1",))


@pytest.mark.parametrize("text", ["O-O", "0-0", "o-o", "e1g1", "O-O+"])
def test_castling_is_read_in_every_notation(text: str) -> None:
    """XBoard engines write it in small letters, too."""
    assert from_fen("5k2/8/8/8/8/8/8/4K2R w K - 0 1").read(text) == chess.Move.from_uci("e1g1")


def test_a_chess960_king_castles_without_moving() -> None:
    """A king on g1 castles with the rook beside it by taking it."""
    game = from_fen("6k1/8/8/8/8/8/8/6KR w H - 0 1", "fischerandom")
    move = game.legal("g1h1")
    assert move is not None
    assert game.push(move) == "O-O"
    assert game.fen().startswith("6k1/8/8/8/8/8/8/5RK1 b")


@pytest.mark.parametrize(
    "text",
    [
        "0000",
        "(none)",
        "",
        "e2e5",
        "e7e5",
        "a1a1",
        "E2E4",
        "e2e4q",
        "e2e4 ",
        "e1h1",
        "P@e4",
        "é2é4",
    ],
)
def test_what_is_no_legal_move_is_none(text: str) -> None:
    """The null move, garbage and moves of the other side are not legal."""
    assert boards.GameBoard(contract.Opening()).legal(text) is None


@given(st.text() | st.from_regex(r"[a-h][1-8][a-h][1-8][a-z]?", fullmatch=True))
@example("\x00")
def test_legality_agrees_with_python_chess_on_any_text(text: str) -> None:
    """Any text is either one of the legal moves or None, and nothing raises."""
    game = from_fen("r3k2r/1P6/8/3pP3/8/8/8/R3K2R w KQkq d6 0 1")
    legal = {move.uci() for move in chess.Board(game.fen()).legal_moves}
    assert (game.legal(text) is not None) == (text in legal)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(ENDGAMES))
def test_endings_agree_with_python_chess_in_random_games(seed: int, fen: str | None) -> None:
    """At every ply of random games the ending is the one python-chess finds."""
    choice = random.Random(seed)
    game = boards.GameBoard(contract.Opening(fen=fen))
    reference = chess.Board(fen or chess.STARTING_FEN)
    for _ in range(160):
        move = choice.choice(sorted(reference.legal_moves, key=chess.Move.uci))
        assert game.push(move) == reference.san_and_push(move)
        outcome = game.ending()
        assert (outcome and outcome.ending.value) == expected_ending(reference)
        assert game.fen() == reference.fen()
        if outcome is not None:
            assert outcome.result == (reference.outcome() or DRAWN).result()
            break


DRAWN = chess.Outcome(chess.Termination.THREEFOLD_REPETITION, None)


def expected_ending(board: chess.Board) -> str | None:
    """Return the ending by python-chess' own slow functions, in the rule texts' order."""
    tests = {
        "checkmate": board.is_checkmate(),
        "stalemate": board.is_stalemate(),
        "insufficient": board.is_insufficient_material(),
        "fifty-moves": board.is_fifty_moves(),
        "threefold": board.is_repetition(3),
    }
    return next((name for name, applies in tests.items() if applies), None)


def test_the_position_command_carries_start_and_all_moves() -> None:
    """Engines get the start position and every ply, book plies included."""
    game = boards.GameBoard(contract.Opening(moves=("e2e4",)))
    play(game, "e7e5")
    assert game.position_command() == "position startpos moves e2e4 e7e5"
    assert boards.GameBoard(contract.Opening()).position_command() == "position startpos"
    fen = "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1"
    assert from_fen(fen).position_command() == f"position fen {fen}"
    assert (game.turn, game.ply, game.start_fen) == ("white", 2, None)


@pytest.mark.parametrize(
    ("opening", "words"),
    [
        (contract.Opening(fen="what"), "not a FEN"),
        (contract.Opening(fen="8/8/8/8/8/8/8/K7 w - - 0 1"), "no black king"),
        (contract.Opening(moves=("e2e4", "e2e4")), "ply 2, 'e2e4'"),
        (contract.Opening(moves=("0000",)), "ply 1, '0000'"),
        (contract.Opening(moves=("f2f3", "e7e5", "g2g4", "d8h4"), name="Fool"), "ends the game"),
    ],
)
def test_a_bad_opening_is_refused_with_its_place(opening: contract.Opening, words: str) -> None:
    """An opening that cannot be played names the position or the move."""
    with pytest.raises(errors.BookError, match=words):
        boards.GameBoard(opening)


def test_books_of_either_castling_notation_are_read() -> None:
    """A Chess960 game takes e1g1 from a book and passes it on as king-takes-rook."""
    book = contract.Opening(moves=("e2e4", "e7e5", "g1f3", "g8f6", "f1c4", "f8c5", "e1g1"))
    assert boards.GameBoard(book, "fischerandom").moves[-1] == "e1h1"
    assert boards.GameBoard(book).moves[-1] == "e1g1"


def test_a_line_is_cut_at_its_first_illegal_move() -> None:
    """A principal variation becomes SAN as far as it is legal."""
    game = boards.GameBoard(contract.Opening())
    assert game.variation(["e2e4", "e7e5", "e2e4", "g8f6"]) == ("e4", "e5")
    assert game.variation(["0000"]) == ()
    assert game.variation(["e2-e4", "d7-d5", "e4-d5", "e2-e4"]) == ("e4", "d5", "exd5")
