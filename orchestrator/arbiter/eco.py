"""ECO codes and names of openings, by position and so whatever the order of moves.

The table (``data/eco.tsv``) is the public-domain collection of lichess-org. A game is
named by the last position of the table that it goes through. Only games of standard
chess have names; a game that starts elsewhere has one if it comes by a known position.
"""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import chess
import chess.polyglot

from orchestrator import contract
from orchestrator.arbiter import board as boards

DEEPEST = 40  # plies: the longest line of the table has 36


class Name(NamedTuple):
    """An opening's ECO code and name, ``Opening: Variation``; both '' when unknown."""

    eco: str
    name: str


UNKNOWN = Name("", "")


def of_moves(start: chess.Board, ucis: Iterable[str]) -> Name:
    """Name the game of these moves; it is read as far as they are legal."""
    board = start.copy(stack=False)
    named = names().get(chess.polyglot.zobrist_hash(board), UNKNOWN)
    for ply, uci in enumerate(ucis):
        if ply == DEEPEST:
            break
        try:
            board.push_uci(uci)
        except ValueError:
            break
        named = names().get(chess.polyglot.zobrist_hash(board), named)
    return named


def of_order(order: contract.GameOrder, moves: Iterable[str] = ()) -> Name:
    """Name the opening of a game: what its book says, else what its moves are known as."""
    book = order.opening
    if book.name and book.eco:
        return Name(book.eco, book.name)
    if order.variant != "standard":
        return Name(book.eco, book.name)
    start = boards.start_board(book, order.variant)
    found = of_moves(start, [*book.moves, *moves])
    return Name(book.eco or found.eco, book.name or found.name)


def classified(record: contract.GameRecord) -> contract.GameRecord:
    """Return the record with ECO code and name of its opening."""
    named = of_order(record.order, [ply.move for ply in record.plies[:DEEPEST]])
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
