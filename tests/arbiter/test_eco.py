"""ECO codes: by position, transpositions included, filled in where a book is silent."""

from __future__ import annotations

import importlib.resources
import random

import chess
import chess.polyglot
import made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import eco

NAJDORF = ["e2e4", "c7c5", "g1f3", "d7d6", "d2d4", "c5d4", "f3d4", "g8f6", "b1c3", "a7a6"]
TRANSPOSED = ["g1f3", "c7c5", "e2e4", "d7d6", "d2d4", "c5d4", "f3d4", "g8f6", "b1c3", "a7a6"]


def order(opening: contract.Opening, variant: str = "standard") -> contract.GameOrder:
    """Make an order with an opening."""
    return made.order(opening=opening, variant=variant)


def test_a_line_is_named_by_the_last_known_position() -> None:
    """The name stays when the game leaves the table, and moves behind it change nothing."""
    named = eco.of_moves(chess.Board(), NAJDORF)
    assert named == ("B90", "Sicilian Defense: Najdorf Variation")
    assert eco.of_moves(chess.Board(), [*NAJDORF, "a2a4", "h7h6", "h2h4"]).eco == "B90"


def test_a_transposition_has_the_same_name() -> None:
    """Only the position counts, not the way to it."""
    assert eco.of_moves(chess.Board(), TRANSPOSED) == eco.of_moves(chess.Board(), NAJDORF)


def test_a_book_that_names_its_opening_is_believed() -> None:
    """Names and codes of the book stay; what it leaves out is filled in."""
    own = contract.Opening(moves=tuple(NAJDORF), name="Ours: line 7", eco="Z99")
    assert eco.of_order(order(own)) == ("Z99", "Ours: line 7")
    half = contract.Opening(moves=tuple(NAJDORF), name="Ours: line 7")
    assert eco.of_order(order(half)) == ("B90", "Ours: line 7")
    bare = contract.Opening(moves=tuple(NAJDORF[:4]))
    assert eco.of_order(order(bare), NAJDORF[4:]).eco == "B90"


def test_a_position_from_a_list_is_named_by_what_it_is() -> None:
    """A game that starts from a FEN gets a name when it comes by a known position."""
    board = chess.Board()
    for uci in NAJDORF[:-1]:
        board.push_uci(uci)
    assert eco.of_order(order(contract.Opening(fen=board.fen())), NAJDORF[-1:]).eco == "B90"


def test_chess960_has_no_names() -> None:
    """A Chess960 game is never named, not even from position 518."""
    assert eco.of_order(order(contract.Opening(), "fischerandom"), NAJDORF) == ("", "")


def test_the_table_names_its_licence_and_each_position_once() -> None:
    """The data file says where it is from, and no position stands in it twice."""
    source = importlib.resources.files("orchestrator.arbiter.data") / "eco.tsv"
    lines = source.read_text(encoding="utf-8").splitlines()
    assert "CC0" in "".join(lines[:2])
    keys = [line.partition("\t")[0] for line in lines[2:]]
    assert len(set(keys)) == len(keys) > 3_500


@settings(max_examples=15)
@given(st.integers(0, 1 << 32))
def test_positions_are_looked_up_by_their_polyglot_hash(seed: int) -> None:
    """What changes from ply to ply is enough: castling, captures and en passant included."""
    dice = random.Random(seed)
    board = chess.Board("r3k2r/pPpp1ppp/8/4p3/3P4/8/PPP1PPpP/R3K2R w KQkq - 0 1")
    start, moves, wanted = board.copy(), [], [chess.polyglot.zobrist_hash(board)]
    while len(moves) < eco.DEEPEST and any(board.legal_moves):
        moves.append(dice.choice(list(board.legal_moves)).uci())
        board.push_uci(moves[-1])
        wanted.append(chess.polyglot.zobrist_hash(board))
    asked: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(eco, "names", lambda: Asked(asked))
        eco.of_moves(start, moves)
    assert asked == wanted


class Asked(dict[int, eco.Name]):
    """A table that knows no position and remembers which it was asked for."""

    def __init__(self, asked: list[int]) -> None:
        super().__init__()
        self._asked = asked

    def get(self, key: int, default: eco.Name = eco.UNKNOWN) -> eco.Name:  # type: ignore[override]
        """Remember a position."""
        self._asked.append(key)
        return default
