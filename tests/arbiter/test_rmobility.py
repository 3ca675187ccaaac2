"""r-mobility: G of a position, who holds it, and the points it is worth."""

from __future__ import annotations

import chess
import made
import pytest

from orchestrator import contract
from orchestrator.arbiter import rmobility, verdict

SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8")


@pytest.mark.parametrize(
    ("fen", "g"),
    [
        (chess.STARTING_FEN, 20.5),
        ("R5k1/5ppp/8/8/8/8/8/6K1 b - - 0 1", 0.0),  # mate
        ("7k/5K2/6Q1/8/8/8/8/8 b - - 0 1", 0.5),  # stalemate
        ("R6k/6pp/8/8/8/8/8/2K3R1 b - - 0 1", 0.0),
        ("6rk/6pp/8/8/8/8/8/R5K1 b - - 0 1", 10.5),
        ("7k/R7/8/8/8/8/8/6KQ b - - 0 1", 1.0),  # one move out of check
    ],
)
def test_g_counts_replies_and_half_a_point_without_check(fen: str, g: float) -> None:
    """Mate is 0, stalemate 0.5, one legal move in check 1, the start position 20.5."""
    assert rmobility.goal(chess.Board(fen)) == g


@pytest.mark.parametrize(
    ("g", "points"),
    [(0.0, 1), (0.5, 0.75), (1.0, 0.625), (1.5, 0.5625), (2.0, 0.53125), (20.5, 0.5 + 2**-42)],
)
def test_the_holder_gets_more_the_smaller_his_g(g: float, points: float) -> None:
    """Half a point and (1/2)^(1 + 2G) more."""
    assert rmobility.share(g) == points


def measured(fen: str, *ucis: str, loser: contract.Side | None = None) -> contract.RMobility:
    """Measure a game from a position."""
    return rmobility.of_game(chess.Board(fen), map(chess.Move.from_uci, ucis), loser)


def test_only_positions_since_the_last_capture_or_pawn_move_count() -> None:
    """A check before a pawn move is forgotten, the pawn move's own position is not."""
    fen = "4k3/7p/8/8/8/8/7P/Q3K3 w - - 0 1"
    early = measured(fen, "a1a8", "e8d7", "a8a1", "d7e8")
    assert (early.holder, early.g) == ("white", 3.0)
    late = measured(fen, "a1a8", "e8d7", "a8a1", "d7e8", "h2h3")
    assert (late.holder, late.g) == ("white", 7.5)


def test_who_comes_first_to_the_smallest_g_keeps_it() -> None:
    """The same G later, by the other side, changes nothing."""
    found = measured(chess.STARTING_FEN, *SHUFFLE, *SHUFFLE)
    assert (found.holder, found.g) == ("black", 20.5)  # the start position is Black's "move"
    assert found.white_points == 0.5 - 2**-42


def test_a_won_game_counts_as_mate() -> None:
    """Whoever wins, on the board or by a verdict, holds G 0 and the whole point."""
    assert measured(chess.STARTING_FEN, "e2e4", loser="white") == contract.RMobility(
        g=0, holder="black", white_points=0
    )


def test_a_record_is_measured_with_its_book_and_chess960() -> None:
    """Start position and book plies belong to the game; the tag shows holder and G."""
    order = made.order(
        opening=contract.Opening(fen="6k1/5ppp/8/8/8/8/8/4K2R w H - 0 1", moves=("e1h1",)),
        variant="fischerandom",
    )
    found = rmobility.of_record(order, [made.ply(2, "g8h8", "Kh8")], verdict.threefold())
    assert (found.holder, found.g) == ("white", 8.5)
    assert rmobility.text(found) == "G8.5"
    assert rmobility.text(found.model_copy(update={"holder": "black", "g": 0.0})) == "-G0.0"
