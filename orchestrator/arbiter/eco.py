"""ECO codes and names of openings, by position and so whatever the order of moves.

The table (``data/eco.tsv``) is the public-domain collection of lichess-org. A game is
named by the last position of the table that it goes through. Only games of standard
chess have names; a game that starts elsewhere has one if it comes by a known position.
"""

from __future__ import annotations

import functools
import importlib.resources
import itertools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import chess
import chess.polyglot

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import san

DEEPEST = 40  # plies: the longest line of the table has 36


class Name(NamedTuple):
    """An opening's ECO code and name, ``Opening: Variation``; both '' when unknown."""

    eco: str
    name: str


UNKNOWN = Name("", "")


def of_moves(start: chess.Board, ucis: Iterable[str], *, legal: bool = False) -> Name:
    """Name the game of these moves; it is read as far as they are legal, if not all are."""
    board = start.copy(stack=False)
    table, key = names(), _Key(board)
    named = table.get(key.of(board), UNKNOWN)
    for uci in itertools.islice(ucis, DEEPEST):
        move = san.read_uci(uci) if legal else None
        if move is not None:
            board.push(move)
        elif san.push_uci(board, uci) is None:
            break
        named = table.get(key.of(board), named)
    return named


class _Key:
    """The Polyglot hash of a board that goes on: from one position to the next few squares change.

    ``chess.polyglot`` adds up all pieces of each position.
    """

    def __init__(self, board: chess.Board) -> None:
        self._hasher = chess.polyglot.ZobristHasher(chess.polyglot.POLYGLOT_RANDOM_ARRAY)
        self._masks = _masks(board)
        self._pieces = self._hasher.hash_board(board)

    def of(self, board: chess.Board) -> int:
        """Return the hash of a position, which may be any."""
        masks, array = _masks(board), self._hasher.array
        for piece, (before, now) in enumerate(zip(self._masks, masks, strict=True)):
            if before != now:
                for square in chess.scan_forward(before ^ now):
                    self._pieces ^= array[64 * piece + square]
        self._masks = masks
        rest = self._hasher.hash_castling(board) ^ self._hasher.hash_ep_square(board)
        return self._pieces ^ rest ^ self._hasher.hash_turn(board)


def _masks(board: chess.Board) -> list[int]:
    """Return the squares of each kind of piece, in Polyglot's order: black pawns, white pawns."""
    kinds = (board.pawns, board.knights, board.bishops, board.rooks, board.queens, board.kings)
    return [kind & own for kind in kinds for own in board.occupied_co]


def of_order(order: contract.GameOrder, moves: Iterable[str] = (), *, legal: bool = False) -> Name:
    """Name the opening of a game: what its book says, else what its moves are known as.

    ``legal`` says that all moves are.
    """
    return _of_opening(order.opening, order.variant, tuple(moves), legal=legal)


@functools.lru_cache(maxsize=64)  # of a game that runs it is asked for by several, in turn
def _of_opening(
    book: contract.Opening, variant: boards.Variant, moves: tuple[str, ...], *, legal: bool
) -> Name:
    if book.name and book.eco:
        return Name(book.eco, book.name)
    if variant != "standard":
        return Name(book.eco, book.name)
    start = boards.start_board(book, variant)
    name = of_moves(start, [*book.moves, *moves], legal=legal)
    return Name(book.eco or name.eco, book.name or name.name)


def classified(record: contract.GameRecord, *, legal: bool = False) -> contract.GameRecord:
    """Return the record with ECO code and name of its opening; ``legal`` as ``of_order``."""
    named = of_order(record.order, [ply.move for ply in record.plies[:DEEPEST]], legal=legal)
    return record.model_copy(update={"eco": named.eco, "opening": named.name})


@functools.cache
def names() -> Mapping[int, Name]:
    """Return the table: a position's key (Polyglot's) to its name."""
    source = importlib.resources.files("orchestrator.arbiter.data") / "eco.tsv"
    table: dict[int, Name] = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            key, code, name = line.split("\t")
            table[int(key, 16)] = Name(code, name)
    return table
