"""SAN that is written fast is python-chess' SAN, and what is legal is what it says."""

from __future__ import annotations

import random
import sys

import chess
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.arbiter import san

SQUARES = chess.SQUARE_NAMES
POSITIONS = (
    chess.STARTING_FEN,
    "r3k2r/1P4P1/8/3Pp3/8/8/1p4p1/R3K2R w KQkq e6 0 1",  # castling, promotions, en passant
    "4k3/8/8/Q6Q/8/8/8/Q2QK3 w - - 0 1",  # four queens
    "k7/8/1N3N2/8/8/1N3N2/8/K7 w - - 0 1",
    "1k6/8/8/r2pP2K/8/8/8/8 w - d6 0 1",  # a pinned capture en passant
    "4k3/4r3/8/8/8/4N3/8/1N2K3 w - - 0 1",  # of two knights one is pinned
    "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1",  # mate on the back rank
)


@settings(max_examples=25)
@given(st.integers(0, 1 << 32), st.sampled_from(POSITIONS))
def test_every_move_is_written_as_python_chess_writes_it(seed: int, fen: str) -> None:
    """Along a random game, all legal moves of each position have the same SAN and board."""
    dice = random.Random(seed)
    board = chess.Board(fen)
    for _ in range(12):
        moves = list(board.legal_moves)
        for move in moves:
            for play in (san.push, lambda own, one: san.push_uci(own, board.uci(one))):
                own, theirs = board.copy(stack=False), board.copy(stack=False)
                assert play(own, move) == theirs.san_and_push(move)
                assert own == theirs
        if not moves:
            break
        board.push(dice.choice(moves))


@pytest.mark.parametrize("fen", [POSITIONS[at] for at in (1, 4, 5)])
def test_every_other_text_is_no_move(fen: str) -> None:
    """Of all that looks like a move the legal ones are played, and nothing else changes."""
    board = chess.Board(fen)
    texts = [a + b + c for a in SQUARES for b in SQUARES for c in ("", "q")]
    for text in [*texts, "", "b7a8k", "b7b8p", "0000", "e2", "P@e4", "e9e4", "(none)"]:
        try:
            legal = bool(board.parse_uci(text))
        except ValueError:
            legal = False
        own = board.copy(stack=False)
        assert (san.push_uci(own, text) is not None) == legal, text
        assert legal or own == board


@settings(max_examples=25)
@given(st.integers(0, 959), st.integers(0, 1 << 32))
def test_castling_in_chess960_is_that_of_python_chess(number: int, seed: int) -> None:
    """King takes own rook is castling, whatever lies between them."""
    dice = random.Random(seed)
    board = chess.Board.from_chess960_pos(number)
    for _ in range(30):
        moves = list(board.legal_moves)
        if not moves:
            break
        move = dice.choice([one for one in moves if board.is_castling(one)] or moves)
        own = board.copy(stack=False)
        assert san.push_uci(own, board.uci(move)) == board.san_and_push(move)
        assert own == board


def test_a_strangers_long_text_is_not_kept() -> None:
    """What is too long for a move is read, and leaves nothing in memory."""
    text = "e2e4" * 100
    held = sys.getrefcount(text)
    assert san.read_uci(text) is None
    assert sys.getrefcount(text) == held
