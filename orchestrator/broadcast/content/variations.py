"""Variations with the position after every move, so that no viewer needs to know chess."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, Final

import chess

from orchestrator.arbiter import board as boards

LONGEST: Final = 32  # plies of a variation that are shown


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One move of a variation; ``fen`` is the position after it."""

    san: str
    uci: str
    fen: str

    def data(self) -> dict[str, Any]:
        """Return the step as plain data."""
        return {"san": self.san, "uci": self.uci, "fen": self.fen}


def steps(board: chess.Board, moves: Iterable[str]) -> tuple[Step, ...]:
    """Return a line from ``board`` in any notation of engines, cut at its first illegal move."""
    line = board.copy(stack=False)
    taken = []
    for san in boards.variation(board, list(moves)[:LONGEST]):
        move = line.parse_san(san)
        uci = line.uci(move)
        line.push(move)
        taken.append(Step(san, uci, line.fen()))
    return tuple(taken)


def squares(board: chess.Board, uci: str) -> tuple[str, str]:
    """Return the squares a move leads between; castling is shown as the king's way."""
    move = chess.Move.from_uci(uci)
    origin, target = move.from_square, move.to_square
    if board.is_castling(move):
        rank, short = (
            chess.square_rank(origin),
            chess.square_file(target) > chess.square_file(origin),
        )
        target = chess.square(6 if short else 2, rank)
    return chess.square_name(origin), chess.square_name(target)
