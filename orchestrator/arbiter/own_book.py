"""Moves that an engine played out of the book without a search: the sign of a hidden book.

S16-16: an engine that answers with no search (no nodes, no time) where the
opening book is left plays from a book of its own. Counted are its moves in a row from the
first one on, so that no tablebase and no quick move late in the game is taken for one.
Forced moves are neither: every engine may answer them at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards

AT_ONCE_NS: Final = 20_000_000  # 20 ms: reading a book takes less, the first search takes more
LEAST_CLOCK_MS: Final = 60_000  # below a minute a side an honest engine may answer as fast

_SIDES: Final[tuple[contract.Side, contract.Side]] = ("white", "black")


def counts(
    order: contract.GameOrder, plies: Sequence[contract.PlyRecord]
) -> dict[contract.Side, int]:
    """Return for each side how many moves in a row it played without a search."""
    moves: dict[contract.Side, int] = dict.fromkeys(_SIDES, 0)
    open_sides = {side for side in _SIDES if order.control(side).start_ms >= LEAST_CLOCK_MS}
    for ply, forced in _played(order, plies):
        if not open_sides:
            break
        if ply.side in open_sides and not forced:
            if _searched(ply):
                open_sides.discard(ply.side)
            else:
                moves[ply.side] += 1
    return moves


def _searched(ply: contract.PlyRecord) -> bool:
    return bool(ply.nodes) or ply.think_ns > AT_ONCE_NS


def _played(
    order: contract.GameOrder, plies: Sequence[contract.PlyRecord]
) -> Iterator[tuple[contract.PlyRecord, bool]]:
    """Yield each ply and whether it was the only legal move."""
    board = boards.start_board(order.opening, order.variant)
    for move in boards.book_moves(board, order.opening):
        board.push(move)
    for ply in plies:
        yield ply, board.legal_moves.count() == 1
        board.push(chess.Move.from_uci(ply.move))
