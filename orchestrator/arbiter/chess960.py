"""Start positions of Chess960 by their numbers, alike for both sides or drawn for each.

Numbers are Scharnagl's, 0 to 959; 518 is the start position of standard chess. In double
Chess960 (DFRC) the number is ``960 * white + black``.
"""

from __future__ import annotations

import chess

from orchestrator import contract
from orchestrator.common import errors

POSITIONS = 960
DOUBLE = POSITIONS * POSITIONS


def opening(number: int) -> contract.Opening:
    """Return a Chess960 start position; raise ``BookError`` for a number out of range."""
    if not 0 <= number < POSITIONS:
        raise errors.BookError(f"Chess960 position {number}: allowed: 0 to {POSITIONS - 1}")
    return contract.Opening(fen=_fen(number, number), name=f"Chess960 {number}")


def double(number: int) -> contract.Opening:
    """Return a double Chess960 start position; raise ``BookError`` as ``opening``."""
    if not 0 <= number < DOUBLE:
        raise errors.BookError(f"double Chess960 position {number}: allowed: 0 to {DOUBLE - 1}")
    white, black = divmod(number, POSITIONS)
    return contract.Opening(fen=_fen(white, black), name=f"Chess960 {white} and {black}")


def _fen(white: int, black: int) -> str:
    first = chess.Board.from_chess960_pos(white).board_fen().rpartition("/")[2]
    last = chess.Board.from_chess960_pos(black).board_fen().partition("/")[0]
    return f"{last}/pppppppp/8/8/8/8/PPPPPPPP/{first} w KQkq - 0 1"
