"""The evaluation of the farm's own engine: material and piece placement, by game phase."""

from __future__ import annotations

from typing import Final

import chess

VALUES: Final = (0, 100, 320, 330, 500, 950, 0)
_PHASE: Final = (0, 0, 1, 1, 2, 4, 0)
_FULL_PHASE: Final = 24


def _placement(kind: int, square: int, *, endgame: bool) -> int:
    """Return the worth of a white piece on a square, in centipawns."""
    file, rank = chess.square_file(square), chess.square_rank(square)
    off_centre = max(3 - file, file - 4) + max(3 - rank, rank - 4)  # 0 to 6
    if kind == chess.PAWN:
        advance = (0, 0, 2, 8, 16, 34, 60, 0) if endgame else (0, 0, 3, 10, 16, 24, 40, 0)
        return advance[rank] + (0 if endgame else 4 * (file in (3, 4)) * (rank in (3, 4)))
    if kind == chess.ROOK:
        return (12 if rank == 6 else 0) + (3 if file in (3, 4) else 0)
    if kind == chess.KING:
        shelter = 8 * (rank == 0) * (file in (1, 2, 6)) - 14 * rank
        return -10 * off_centre if endgame else shelter
    weight = {chess.KNIGHT: 9, chess.BISHOP: 5, chess.QUEEN: 2}[kind]
    back = 6 if rank == 0 and kind != chess.QUEEN else 0
    return -weight * off_centre + 2 * weight - back


def _table(kind: int, *, endgame: bool) -> tuple[list[int], list[int]]:
    white = [VALUES[kind] + _placement(kind, square, endgame=endgame) for square in range(64)]
    return white, [-white[square ^ 56] for square in range(64)]


_MIDDLE: Final = [_table(kind, endgame=False) for kind in range(1, 7)]
_ENDING: Final = [_table(kind, endgame=True) for kind in range(1, 7)]


def evaluate(board: chess.Board) -> int:
    """Return the static value of a position for the side to move, in centipawns."""
    middle = ending = phase = 0
    white, black = board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK]
    masks = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    for kind, mask in enumerate(masks):
        for side, own in enumerate((mask & white, mask & black)):
            middle_table, ending_table = _MIDDLE[kind][side], _ENDING[kind][side]
            left = own
            while left:
                square = left.bit_length() - 1
                left ^= 1 << square
                middle += middle_table[square]
                ending += ending_table[square]
                phase += _PHASE[kind + 1]
    phase = min(phase, _FULL_PHASE)
    value = (middle * phase + ending * (_FULL_PHASE - phase)) // _FULL_PHASE
    pairs = (chess.popcount(board.bishops & white) > 1) - (
        chess.popcount(board.bishops & black) > 1
    )
    value += 30 * pairs
    return (value if board.turn else -value) + 8
