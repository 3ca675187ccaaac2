"""The written game that every runner is given: 120 legal plies and a variation at each.

The game ends by mate at its last ply, so that every runner ends it alike and at once; no
repetition, no fifty moves and no lack of material ends it before.
"""

from __future__ import annotations

import functools
import pathlib
import random

import chess

PLIES = 120
VARIATION = 30  # moves of each principal variation
_MATE = ("f2f3", "e7e5", "g2g4", "d8h4")
# Knights stay on the queen's side: they neither block the mate nor are they in its way.
_FILES = chess.BB_FILE_A | chess.BB_FILE_B | chess.BB_FILE_C | chess.BB_FILE_D


@functools.cache
def lines() -> tuple[str, ...]:
    """Return, for every ply, the move that is played and the variation behind it."""
    board = chess.Board()
    written = []
    for number, move in enumerate(_game()):
        written.append(_variation(board, move, random.Random(number)))
        board.push(move)
    assert board.is_checkmate()
    return tuple(written)


def write(path: pathlib.Path) -> pathlib.Path:
    """Write the game as the probe reads it."""
    path.write_text("".join(f"{line}\n" for line in lines()), encoding="ascii")
    return path


def _game() -> list[chess.Move]:
    for seed in range(10_000):
        moves = _wander(random.Random(seed))
        if moves is not None:
            return moves
    raise AssertionError("no game of this shape exists")


def _wander(dice: random.Random) -> list[chess.Move] | None:
    board = chess.Board()
    while board.ply() < PLIES - len(_MATE):
        moves = [move for move in board.legal_moves if _allowed(board, move)]
        if not moves:
            return None
        board.push(dice.choice(sorted(moves, key=str)))
    for text in _MATE:
        move = chess.Move.from_uci(text)
        if not board.is_legal(move) or board.halfmove_clock >= 90:
            return None
        board.push(move)
    return list(board.move_stack) if board.is_checkmate() else None


def _allowed(board: chess.Board, move: chess.Move) -> bool:
    piece = board.piece_type_at(move.from_square)
    if piece == chess.PAWN:  # one in the middle starts the fifty-move count again
        return chess.square_file(move.from_square) == 0 and board.ply() in (58, 59)
    if piece != chess.KNIGHT or board.is_capture(move):
        return False
    return bool(chess.BB_SQUARES[move.to_square] & _FILES) and not _disturbs(board, move)


def _disturbs(board: chess.Board, move: chess.Move) -> bool:
    board.push(move)
    disturbs = board.is_repetition(2) or board.is_check()
    board.pop()
    return disturbs


def _variation(board: chess.Board, first: chess.Move, dice: random.Random) -> str:
    line = board.copy()
    line.push(first)
    while len(line.move_stack) < board.ply() + VARIATION and not line.is_game_over():
        line.push(dice.choice(sorted(line.legal_moves, key=str)))
    return " ".join(move.uci() for move in line.move_stack[board.ply() :])
