"""The board of one game: start position, book, legality, and endings by the rules of chess.

Endings in their order on one ply: mate, stalemate, insufficient
material, fifty moves, threefold (S16-11a, S17-11a, CUP-6a, FRC-6a). Invariants:

* nothing an engine writes raises: text that is no legal move is ``None``;
* endings are looked for after engine plies only; book plies count in the ply number and
  in repetitions, but never end a game;
* two positions are the same when pieces, side to move, castling rights and *legal* en
  passant captures are the same (FIDE 9.2.3), counted since the last irreversible move.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, TypeAlias

import chess

from orchestrator import contract
from orchestrator.arbiter import san, verdict
from orchestrator.common import errors

_COORDINATES = re.compile(r"([a-h][1-8])-?([a-h][1-8])=?([qrbnQRBN]?)[+#]?")

Variant: TypeAlias = Literal["standard", "fischerandom"]
_Key: TypeAlias = tuple[int, int, int, int, int, int, int, int, bool, int, int | None]
Reached: TypeAlias = tuple[_Key, int]  # a position, and plies since a capture or a pawn move


class GameBoard:
    """A game's moves and the position they lead to.

    ``start_fen`` is ``None`` for the normal start position, ``book_plies`` the number
    of plies that the referee plays out, ``moves`` all plies in UCI notation.
    """

    def __init__(self, opening: contract.Opening, variant: Variant = "standard") -> None:
        """Set up the opening; raise ``BookError`` naming the bad position or move."""
        self._board = start_board(opening, variant)
        self.start_fen = None if self._board.fen() == chess.STARTING_FEN else self._board.fen()
        start = "startpos" if self.start_fen is None else f"fen {self.start_fen}"
        self._command = f"position {start}"
        self._moves: list[str] = []
        self._sans: list[str] = []
        self._reached: list[Reached] = []
        self._given = 0  # plies that engines are told of before their first turn
        self._positions: dict[_Key, int] = {}
        self._in_check = self._board.is_check()
        self._is_stuck = san.is_stuck(self._board, in_check=self._in_check)
        self._seen = self._count_position(_key(self._board))
        for move in book_moves(self._board, opening):
            self.push(move)
        self.book_plies = self._given = len(self._moves)
        if self._is_stuck:
            raise errors.BookError(f"{_name(opening)} ends the game: no legal move is left")

    @property
    def ply(self) -> int:
        """Return the number of plies played, book plies included."""
        return len(self._moves)

    @property
    def chess960(self) -> bool:
        """Say whether castling is king takes own rook."""
        return self._board.chess960

    def book(self) -> tuple[tuple[str, str], ...]:
        """Return the plies before the engines' first turn, in UCI notation and in SAN.

        They are the book's, and those of a resumed game.
        """
        return tuple(zip(self._moves[: self._given], self._sans, strict=False))

    def resume(self, uci: str) -> None:
        """Play a ply of an interrupted game again; raise ``LedgerDamagedError``.

        It counts as a ply of an engine, and engines are told of it before their first turn.
        """
        self.push(self._read_played(uci))
        self._given += 1

    def _read_played(self, uci: str) -> chess.Move:
        move = self.legal(uci)
        if move is None or self._given != self.ply:
            text = f"ply {self.ply + 1}: {uci!r} is not legal in {self.fen()}"
            raise errors.LedgerDamagedError(text)
        return move

    @property
    def turn(self) -> contract.Side:
        """Return the side to move."""
        return "white" if self._board.turn else "black"

    @property
    def moves(self) -> tuple[str, ...]:
        """Return all plies in UCI notation (king takes own rook for Chess960 castling)."""
        return tuple(self._moves)

    @property
    def last_move(self) -> str:
        """Return the last ply in UCI notation; there is one."""
        return self._moves[-1]

    @property
    def sans(self) -> tuple[str, ...]:
        """Return all plies in SAN."""
        return tuple(self._sans)

    @property
    def reached(self) -> tuple[Reached, ...]:
        """Return the position after each ply; ``put`` sets it up again."""
        return tuple(self._reached)

    @property
    def halfmove_clock(self) -> int:
        """Return the plies since the last capture or pawn move."""
        return self._board.halfmove_clock

    def legal(self, uci: str) -> chess.Move | None:
        """Read a move as an engine wrote it, ``None`` when it is not a legal move.

        Castling is ``e1g1`` in standard chess and king takes own rook in Chess960; the
        null move and ``(none)`` are no moves. Never raises.
        """
        move = san.read_uci(uci)
        if move is None or not san.is_legal(self._board, move, in_check=self._in_check):
            return None
        own = self._board.occupied_co[self._board.turn]
        if not self._board.chess960 and own & chess.BB_SQUARES[move.to_square]:
            return None  # python-chess also takes e1h1 for castling in standard chess
        return move

    def read(self, text: str) -> chess.Move | None:
        """Read a move in UCI notation, in coordinates such as ``e7e8=Q``, or in SAN.

        Castling is ``O-O``, ``0-0``, ``e1g1`` or king takes own rook; ``None`` when it is
        not a legal move. Never raises.
        """
        return _read(self._board, text)

    def push(self, move: chess.Move) -> str:
        """Play a legal move and return its SAN."""
        self._note_move(move)
        written = san.stem(self._board, move)
        self._board.push(move)
        self._in_check = self._board.is_check()
        self._is_stuck = san.is_stuck(self._board, in_check=self._in_check)
        if self._board.halfmove_clock == 0:
            self._positions.clear()
        key = _key(self._board)
        self._reached.append((key, self._board.halfmove_clock))
        self._seen = self._count_position(key)
        if self._in_check:
            written += "#" if self._is_stuck else "+"
        self._sans.append(written)
        return written

    def ending(self) -> contract.Outcome | None:
        """Return how the last engine ply ended the game, ``None`` while it goes on."""
        return None if self.ply == self.book_plies else self._ending()

    def bears_out(self, result: contract.Result) -> contract.Outcome | None:
        """Return the ending that gives an engine's claim right, ``None`` for a false one."""
        ending = self._ending()
        return ending if ending is not None and ending.result == result else None

    def _ending(self) -> contract.Outcome | None:
        board = self._board
        if self._is_stuck:
            return verdict.checkmate(self.turn) if self._in_check else verdict.stalemate()
        if board.is_insufficient_material():
            return verdict.insufficient()
        if board.halfmove_clock >= 100:
            return verdict.fifty_moves()
        return verdict.threefold() if self._seen >= 3 else None

    def position_command(self) -> str:
        """Return UCI's ``position`` command for the position reached, without line end."""
        return self._command

    def fen(self) -> str:
        """Return the position's FEN."""
        return self._board.fen()

    def position(self) -> chess.Board:
        """Return the position reached, to be looked at before the next move, not changed."""
        return self._board

    def variation(self, ucis: Iterable[str]) -> tuple[str, ...]:
        """Return a line from this position in SAN, cut at its first illegal move."""
        return variation(self._board, ucis)

    def _note_move(self, move: chess.Move) -> None:
        castles = self._board.kings & chess.BB_SQUARES[move.from_square]
        uci = self._board.uci(move) if castles else move.uci()
        self._command += f" {uci}" if self._moves else f" moves {uci}"
        self._moves.append(uci)

    def _count_position(self, key: _Key) -> int:
        seen = self._positions[key] = self._positions.get(key, 0) + 1
        return seen


def start_board(opening: contract.Opening, variant: Variant) -> chess.Board:
    """Return the opening's start position; raise ``BookError`` when there is none."""
    fen = opening.fen or chess.STARTING_FEN
    try:
        board = chess.Board(fen, chess960=variant == "fischerandom")
    except ValueError as error:
        raise errors.BookError(f"{_name(opening)}: not a FEN: {fen!r} ({error})") from error
    status = board.status()
    if status is not chess.STATUS_VALID:
        names = ", ".join(flag.name or "" for flag in chess.Status if flag & status)
        problem = names.lower().replace("_", " ")
        raise errors.BookError(f"{_name(opening)}: not a {variant} position: {fen!r} ({problem})")
    return board


def book_moves(board: chess.Board, opening: contract.Opening) -> Iterable[chess.Move]:
    """Yield the book's moves; the caller plays each on ``board`` before the next.

    Both notations of castling are read. Raise ``BookError`` naming the bad move.
    """
    for number, uci in enumerate(opening.moves, start=1):
        try:
            move = board.parse_uci(uci)
        except ValueError:
            move = chess.Move.null()
        if not move:
            raise errors.BookError(
                f"{_name(opening)}: ply {number}, {uci!r}, is not legal in {board.fen()}"
            )
        yield move


def variation(board: chess.Board, moves: Iterable[str]) -> tuple[str, ...]:
    """Return a line from ``board`` in SAN, cut at its first illegal move.

    The moves may be in any notation that ``GameBoard.read`` reads.
    """
    line = board.copy(stack=False)
    sans: list[str] = []
    for text in moves:
        played = san.push_uci(line, text)
        if played is None:  # perhaps no UCI
            move = _read(line, text)
            if move is None:
                break
            played = san.push(line, move)
        sans.append(played)
    return tuple(sans)


def _read(board: chess.Board, text: str) -> chess.Move | None:
    plain = _COORDINATES.fullmatch(text)
    try:
        if plain is not None:
            move = board.parse_uci((plain[1] + plain[2] + plain[3]).lower())
        else:
            move = board.parse_san(text.upper() if text[:2] == "o-" else text)
    except ValueError:
        return None
    return move or None


def _key(board: chess.Board) -> _Key:
    return (
        board.pawns,
        board.knights,
        board.bishops,
        board.rooks,
        board.queens,
        board.kings,
        board.occupied_co[chess.WHITE],
        board.occupied_co[chess.BLACK],
        board.turn,
        board.clean_castling_rights(),
        board.ep_square if board.has_legal_en_passant() else None,
    )


def put(board: chess.Board, reached: Reached) -> None:
    """Set up a position that a game has reached; the board's moves stay those of before."""
    key, board.halfmove_clock = reached
    board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings = key[:6]
    white, black, board.turn, board.castling_rights, board.ep_square = key[6:]
    board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK] = white, black
    board.occupied = white | black


def _name(opening: contract.Opening) -> str:
    return f"opening {opening.name!r}" if opening.name else "opening"
