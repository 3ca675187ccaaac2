"""Legal moves and their SAN, many a game: python-chess' words at a quarter of their cost.

The general way looks for all legal moves to a square, twice a move. Of most moves it is
enough that no second piece of the kind reaches the square, and that the own king is not
attacked afterwards; everything else (castling, en passant, a king's moves, two pieces of a
kind) is left to python-chess. Invariant: what is legal, and its SAN, is what python-chess
says.
"""

from __future__ import annotations

import functools
from typing import TypeAlias

import chess

_MOVES = 1 << 15  # different texts of moves that are kept: there are some 5,000 real ones
_LONGEST = 5  # characters of a move; a stranger's longer text is never kept
_NO_PROMOTION = (chess.PAWN, chess.KING)
_LETTERS = {2: "N", 3: "B", 4: "R", 5: "Q"}
# By square: all lines through it. A piece on none of its king's is never pinned.
_LINES = tuple(
    chess.BB_RANK_ATTACKS[square][0] | chess.BB_FILE_ATTACKS[square][0] | diagonals[0]
    for square, diagonals in enumerate(chess.BB_DIAG_ATTACKS)
)
_Move: TypeAlias = chess.Move | None


def push(board: chess.Board, move: chess.Move) -> str:
    """Play a legal move and return its SAN."""
    written = stem(board, move)
    board.push(move)
    return _checked(board, written)


def stem(board: chess.Board, move: chess.Move) -> str:
    """Return a legal move's SAN without + and #."""
    return _stem(board, move) or board.san(move).rstrip("+#")


def is_legal(board: chess.Board, move: chess.Move, *, in_check: bool) -> bool:
    """Say what ``chess.Board.is_legal`` says; ``in_check`` of the side to move is known."""
    origin = chess.BB_SQUARES[move.from_square]
    if board.kings & origin or (board.pawns & origin and move.to_square == board.ep_square):
        return board.is_legal(move)
    if not _reaches(board, move, origin):
        return False
    if in_check or origin & _king_lines(board):
        return board.is_legal(move)
    return True


def is_stuck(board: chess.Board, *, in_check: bool) -> bool:
    """Say whether no move is legal; ``in_check`` of the side to move is known."""
    if not in_check:  # most positions have a pawn or a knight that is not pinned and can move
        free = board.occupied_co[board.turn] & ~_king_lines(board)
        pawns = board.pawns & free
        if (pawns << 8 if board.turn else pawns >> 8) & ~board.occupied & chess.BB_ALL:
            return False
        own = board.occupied_co[board.turn]
        for square in chess.scan_forward(board.knights & free):
            if chess.BB_KNIGHT_ATTACKS[square] & ~own:
                return False
    return not any(board.generate_legal_moves())


def _king_lines(board: chess.Board) -> int:
    king = board.king(board.turn)
    return chess.BB_ALL if king is None else _LINES[king]


def push_uci(board: chess.Board, text: str) -> str | None:
    """Play a move in UCI notation and return its SAN; ``None`` when it is not legal."""
    move = read_uci(text)
    if move is None:
        return None
    origin = chess.BB_SQUARES[move.from_square]
    if board.kings & origin or (board.pawns & origin and move.to_square == board.ep_square):
        try:
            return push(board, board.parse_uci(text))
        except ValueError:
            return None
    if not _reaches(board, move, origin):
        return None
    written = _stem(board, move)
    if written is None:
        return push(board, move) if board.is_legal(move) else None
    board.push(move)
    if board.was_into_check():
        board.pop()
        return None
    return _checked(board, written)


def read_uci(text: str) -> _Move:
    """Read a move in UCI notation, ``None`` for what is none; it is kept, so never change it."""
    return _kept(text) if len(text) <= _LONGEST else None


@functools.lru_cache(_MOVES)
def _kept(text: str) -> _Move:
    try:
        move = chess.Move.from_uci(text)
    except chess.InvalidMoveError:
        return None
    return None if move.drop or move.promotion in _NO_PROMOTION else move or None


def _reaches(board: chess.Board, move: chess.Move, origin: int) -> bool:
    """Say whether a piece of the mover's, no king, may go so if its king is safe then."""
    own = board.occupied_co[board.turn]
    target = chess.BB_SQUARES[move.to_square]
    if not own & origin or own & target:
        return False
    if not board.pawns & origin:
        return not move.promotion and bool(board.attacks_mask(move.from_square) & target)
    if bool(move.promotion) != bool(target & chess.BB_BACKRANKS):
        return False
    if board.occupied & target:
        return bool(chess.BB_PAWN_ATTACKS[board.turn][move.from_square] & target)
    forward = 8 if board.turn else -8
    if move.to_square == move.from_square + forward:
        return True
    second = chess.BB_RANK_2 if board.turn else chess.BB_RANK_7
    return bool(
        move.to_square == move.from_square + 2 * forward
        and origin & second
        and not board.occupied & chess.BB_SQUARES[move.from_square + forward]
    )


def _stem(board: chess.Board, move: chess.Move) -> str | None:
    """Return a pseudo-legal move's SAN without + and #, ``None`` for the general case."""
    start, end = move.from_square, move.to_square
    origin = chess.BB_SQUARES[start]
    name = chess.SQUARE_NAMES[end]
    if board.pawns & origin:
        if (end - start) % 8:
            name = f"{chess.FILE_NAMES[start % 8]}x{name}"
        if move.promotion:
            return f"{name}={_LETTERS[move.promotion]}"
        return name
    own = board.occupied_co[board.turn]
    if board.kings & origin:
        if own & chess.BB_SQUARES[end] or abs(end - start) == 2:
            return None  # castling
        letter, others = "K", 0
    else:
        letter, pieces = _kind(board, origin)
        others = pieces & own & _attackers(board, letter, end)
    if others & ~origin or not own & origin:
        return None
    return f"{letter}{'x' if board.occupied & chess.BB_SQUARES[end] else ''}{name}"


def _kind(board: chess.Board, origin: int) -> tuple[str, int]:
    if board.knights & origin:
        return "N", board.knights
    if board.bishops & origin:
        return "B", board.bishops
    return ("R", board.rooks) if board.rooks & origin else ("Q", board.queens)


def _attackers(board: chess.Board, letter: str, end: int) -> int:
    """Return the squares from which a piece of this kind reaches another square."""
    if letter == "N":
        return chess.BB_KNIGHT_ATTACKS[end]
    squares, occupied = 0, board.occupied
    if letter != "R":
        squares |= chess.BB_DIAG_ATTACKS[end][chess.BB_DIAG_MASKS[end] & occupied]
    if letter != "B":
        squares |= chess.BB_RANK_ATTACKS[end][chess.BB_RANK_MASKS[end] & occupied]
        squares |= chess.BB_FILE_ATTACKS[end][chess.BB_FILE_MASKS[end] & occupied]
    return squares


def _checked(board: chess.Board, written: str) -> str:
    if not board.is_check():
        return written
    return f"{written}{'+' if any(board.generate_legal_moves()) else '#'}"
