"""Dealing openings: order by seed, start, sharing; Chess960 positions by number."""

from __future__ import annotations

import chess
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.arbiter import board as boards
from orchestrator.arbiter import chess960
from orchestrator.common import errors
from orchestrator.testmatch import openings


@given(st.integers(1, 200), st.integers(), st.integers(1, 300))
def test_every_order_holds_every_opening_once(count: int, seed: int, start: int) -> None:
    """No opening is left out or dealt twice before the book is exhausted."""
    for kind in ("sequential", "random"):
        assert sorted(openings.order(count, kind, seed, start)) == list(range(count))


def test_the_seed_alone_decides_a_random_order() -> None:
    """The same seed gives the same order, another seed another one."""
    assert openings.order(50, "random", 7) == openings.order(50, "random", 7)
    assert openings.order(50, "random", 7) != openings.order(50, "random", 8)


def test_a_sequential_book_begins_at_start() -> None:
    """Start counts from 1 and what lies before it comes last."""
    assert openings.order(5, "sequential", 0) == [0, 1, 2, 3, 4]
    assert openings.order(5, "sequential", 0, 4) == [3, 4, 0, 1, 2]


def test_games_that_share_get_one_opening() -> None:
    """Openings are numbered in the order in which their first game is played."""
    assert openings.deal(["a", "b", "a", "c", "b"]) == [0, 1, 0, 2, 1]


def test_position_518_is_the_start_position() -> None:
    """Chess960 numbers are Scharnagl's."""
    assert chess960.opening(518).fen == chess.STARTING_FEN
    assert (chess960.opening(0).fen or "").startswith("bbqnnrkr/")


@given(st.integers(0, chess960.DOUBLE - 1))
def test_every_double_position_is_a_chess960_position(number: int) -> None:
    """A DFRC position is valid, with all castling rights, each side by its own number."""
    board = boards.start_board(chess960.double(number), "fischerandom")
    white, black = divmod(number, 960)
    assert board.clean_castling_rights().bit_count() == 4
    rows = board.board_fen().split("/")
    for row, own in ((rows[7].lower(), white), (rows[0], black)):
        assert chess.Board.from_chess960_pos(own).board_fen().startswith(row)


@pytest.mark.parametrize("number", [-1, 960])
def test_a_number_out_of_range_is_refused(number: int) -> None:
    """There are 960 positions."""
    with pytest.raises(errors.BookError, match="allowed: 0 to 959"):
        chess960.opening(number)
