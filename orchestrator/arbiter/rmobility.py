"""r-mobility: who restricted whom the most in a game (FRC-3).

G of a position is the number of legal moves of the side to move, plus one half when it is
not in check: mate 0, stalemate 0.5. Among the positions since the last capture or pawn
move, its own included, the smallest G wins; whoever reached it first, by moving there,
holds it. The holder of a drawn game gets 1/2 + (1/2)^(1 + 2G) of its point. A game that
was won, on the board or by a verdict, counts as mate. Book plies are plies like others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import verdict


def goal(board: chess.Board) -> float:
    """Return G of a position, in moves of the side to move."""
    return board.legal_moves.count() + (0.0 if board.is_check() else 0.5)


def share(g: float) -> float:
    """Return the holder's share of the point of a drawn game."""
    return 0.5 + math.pow(0.5, 1 + 2 * g)


def of_game(
    start: chess.Board, moves: Iterable[chess.Move], loser: contract.Side | None
) -> contract.RMobility:
    """Measure a game from its start position and all its plies; ``start`` is played on."""
    if loser is not None:
        return _won(verdict.opponent(loser))
    last = [start.copy(stack=False)]
    for move in moves:
        zeroing = start.is_zeroing(move)
        start.push(move)
        if zeroing:
            last.clear()
        last.append(start.copy(stack=False))
    # min takes the first of equals
    smallest, position = min(((goal(board), board) for board in last), key=lambda pair: pair[0])
    holder: contract.Side = "black" if position.turn else "white"
    points = share(smallest)
    white = points if holder == "white" else 1 - points
    return contract.RMobility(g=smallest, holder=holder, white_points=white)


def of_record(
    order: contract.GameOrder, plies: Iterable[contract.PlyRecord], outcome: contract.Outcome
) -> contract.RMobility:
    """Measure a game that a hall has played.

    Raise ``BookError`` for an opening that cannot be played.
    """
    if outcome.loser is not None:
        return _won(verdict.opponent(outcome.loser))
    start = boards.start_board(order.opening, order.variant)
    board = start.copy(stack=False)
    moves = []
    for move in boards.book_moves(board, order.opening):
        board.push(move)
        moves.append(move)
    moves.extend(board.push_uci(ply.move) for ply in plies)
    return of_game(start, moves, outcome.loser)


def text(mobility: contract.RMobility) -> str:
    """Write the PGN tag RMobilityResult: ``G2.5``, with a minus sign where Black holds it."""
    return f"{'-' if mobility.holder == 'black' else ''}G{mobility.g:.1f}"


def _won(winner: contract.Side) -> contract.RMobility:
    return contract.RMobility(g=0.0, holder=winner, white_points=1.0 if winner == "white" else 0.0)
