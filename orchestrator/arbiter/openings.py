"""Reading opening books: PGN games and EPD or FEN lists become book exits, in order.

Text in, values out. Invariants: exits keep the order of the book, duplicates included;
every exit is a position with a legal move; an error names the source and the game
or line. A name is ``Opening: Variation``. Moves are kept in UCI notation, castling in
the notation of the book's variant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import chess

from orchestrator import contract
from orchestrator.common import errors

PLIES = 1_000  # of an opening: the longest known has 60
Kind: TypeAlias = Literal["pgn", "epd"]

_FULL_FEN = re.compile(r"((?:\S+\s+){4}\d+\s+\d+)(?:[\s;]+(.*))?")


def parse(text: str, kind: Kind, plies: int | None, source: str) -> list[contract.Opening]:
    """Read a book; ``source`` is its name in errors.

    PGN main lines are cut to ``plies`` plies (``None``: whole games); EPD and FEN lists
    hold positions, so ``plies`` means nothing there. Raise ``BookError``.
    """
    exits = list(_games(text, plies, source) if kind == "pgn" else _epd(text, source))
    longest = max((len(opening.moves) for opening in exits), default=0)
    if longest > PLIES:
        raise errors.BookError(
            f"{source}: an opening of {longest} plies; allowed: at most {PLIES}; cut them (plies)"
        )
    if not exits:
        raise errors.BookError(f"{source}: holds no opening (read as {kind})")
    return exits


def _games(text: str, plies: int | None, source: str) -> Iterator[contract.Opening]:
    from orchestrator.arbiter import opening_pgn  # noqa: PLC0415 - it loads asyncio

    return opening_pgn.read(text, plies, source)


# -- EPD and FEN ---------------------------------------------------------------------


def _epd(text: str, source: str) -> Iterator[contract.Opening]:
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#;%":
            continue
        if line[0] == "[":
            looks = "this looks like PGN, and is read as EPD: name its format (format=pgn)"
            raise errors.BookError(f"{source}: line {number}: {looks}")
        try:
            yield _position(line)
        except ValueError as error:
            raise errors.BookError(f"{source}: line {number}: {error}") from error


def _position(line: str) -> contract.Opening:
    board = chess.Board(None, chess960=True)
    full = _FULL_FEN.fullmatch(line)
    if full is None:
        operations = board.set_epd(line)
    else:
        board.set_fen(full[1])
        operations = chess.Board().set_epd(f"8/8/8/8/8/8/8/8 w - - {full[2] or ''}")
    check(board)
    if not any(board.generate_legal_moves()):
        raise ValueError("the position ends the game: no legal move is left")
    return contract.Opening(
        fen=fen(board), name=_text(operations.get("id")), eco=_text(operations.get("eco"))
    )


def _text(operand: object) -> str:
    return "" if operand is None else str(operand).strip()


def check(board: chess.Board) -> None:
    """Raise ``ValueError`` for a position that cannot come about."""
    status = board.status()
    if status is not chess.STATUS_VALID:
        names = ", ".join(flag.name or "" for flag in chess.Status if flag & status)
        raise ValueError(f"impossible position {board.fen()} ({names.lower().replace('_', ' ')})")


def fen(board: chess.Board) -> str | None:
    """Return the position's FEN, ``None`` for the normal start position."""
    text = board.fen()
    return None if text == chess.STARTING_FEN else text
