"""Reading opening books: PGN games and EPD or FEN lists become book exits, in order.

Text in, values out. Invariants: exits keep the order of the book, duplicates included;
every exit is a position with a legal move; an error names the source and the game
or line. A name is ``Opening: Variation``. Moves are kept in UCI notation, castling in
the notation of the book's variant.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Literal, TypeAlias

import chess
import chess.pgn

from orchestrator import contract, errors

Kind: TypeAlias = Literal["pgn", "epd"]

_FULL_FEN = re.compile(r"((?:\S+\s+){4}\d+\s+\d+)(?:[\s;]+(.*))?")
_UNKNOWN_TAGS = frozenset({"", "?", "-"})


def parse(text: str, kind: Kind, plies: int | None, source: str) -> list[contract.Opening]:
    """Read a book; ``source`` is its name in errors.

    PGN main lines are cut to ``plies`` plies (``None``: whole games); EPD and FEN lists
    hold positions, so ``plies`` means nothing there. Raise ``BookError``.
    """
    exits = list(_pgn(text, plies, source) if kind == "pgn" else _epd(text, source))
    if not exits:
        raise errors.BookError(f"{source}: holds no opening (read as {kind})")
    return exits


# -- PGN -----------------------------------------------------------------------------


class _Exit(chess.pgn.BaseVisitor[contract.Opening]):
    """Collects one game's tags and its first plies; any error is raised, not logged."""

    def __init__(self, plies: int | None) -> None:
        self._plies = plies
        self._tags: dict[str, str] = {}
        self._start: chess.Board | None = None
        self._moves: list[str] = []
        self._complete = False
        self._dead_end = False

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self._tags[tagname] = tagvalue.replace('\\"', '"').replace("\\\\", "\\")

    def visit_board(self, board: chess.Board) -> None:
        if self._start is None:
            self._start = board.copy(stack=False)
            _check(board)
        if not self._complete:
            self._complete = len(self._moves) == self._plies
            self._dead_end = not any(board.generate_legal_moves())

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        if not move:
            raise ValueError(f"null move at ply {len(self._moves) + 1}")
        if not self._complete:
            self._moves.append(board.uci(move))

    def begin_variation(self) -> chess.pgn.SkipType:
        return chess.pgn.SKIP

    def result(self) -> contract.Opening:
        if self._start is None or not (self._tags or self._moves):
            raise ValueError("neither tags nor moves")
        if self._dead_end:
            raise ValueError("the line ends the game: no legal move is left")
        names = (self._tag("Opening"), self._tag("Variation"))
        return contract.Opening(
            fen=_fen(self._start),
            moves=tuple(self._moves),
            name=": ".join(name for name in names if name),
            eco=self._tag("ECO"),
        )

    def _tag(self, name: str) -> str:
        value = self._tags.get(name, "").strip()
        return "" if value in _UNKNOWN_TAGS else value


def _pgn(text: str, plies: int | None, source: str) -> Iterator[contract.Opening]:
    handle = io.StringIO(text)
    number = 0
    while True:
        number += 1
        start = handle.tell()
        try:
            opening = chess.pgn.read_game(handle, Visitor=lambda: _Exit(plies))
        except ValueError as error:
            line = text.count("\n", 0, start) + 1
            place = f"{source}: game {number} (from line {line})"
            raise errors.BookError(f"{place}: {error}") from error
        if opening is None:
            return
        yield opening


# -- EPD and FEN ---------------------------------------------------------------------


def _epd(text: str, source: str) -> Iterator[contract.Opening]:
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        line = raw.strip()
        if not line or line[0] in "#;%":
            continue
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
    _check(board)
    if not any(board.generate_legal_moves()):
        raise ValueError("the position ends the game: no legal move is left")
    return contract.Opening(
        fen=_fen(board), name=_text(operations.get("id")), eco=_text(operations.get("eco"))
    )


def _text(operand: object) -> str:
    return "" if operand is None else str(operand).strip()


def _check(board: chess.Board) -> None:
    status = board.status()
    if status is not chess.STATUS_VALID:
        names = ", ".join(flag.name or "" for flag in chess.Status if flag & status)
        raise ValueError(f"impossible position {board.fen()} ({names.lower().replace('_', ' ')})")


def _fen(board: chess.Board) -> str | None:
    fen = board.fen()
    return None if fen == chess.STARTING_FEN else fen
