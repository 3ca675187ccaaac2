"""Book exits from PGN games: tags and the first plies of each game's main line.

Apart from ``openings`` because python-chess' PGN reader loads an engine driver with
asyncio: half of the start of a match that needs no PGN book. Invariant: any error in a
game is raised, with the source and the game's number, never logged.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import chess
import chess.pgn

from orchestrator import contract
from orchestrator.arbiter import eco, openings
from orchestrator.common import errors

_UNKNOWN_TAGS = frozenset({"", "?", "-"})


def read(text: str, plies: int | None, source: str) -> Iterator[contract.Opening]:
    """Yield the exits of a book's games, cut to ``plies``; raise ``BookError``."""
    handle = io.StringIO(text)
    number = 0
    while True:
        number += 1
        start = handle.tell()
        try:
            opening = chess.pgn.read_game(handle, Visitor=lambda: _Exit(plies))
        except ValueError as error:
            line = text.count("\n", 0, start) + 1
            where = f"{source}: game {number} (from line {line})"
            raise errors.BookError(f"{where}: {error}") from error
        if opening is None:
            return
        yield opening


class _Exit(chess.pgn.BaseVisitor[contract.Opening]):
    """Collects one game's tags and its first plies; any error is raised, not logged."""

    def __init__(self, plies: int | None) -> None:
        self._plies = plies
        self._tags: dict[str, str] = {}
        self._start: chess.Board | None = None
        self._moves: list[str] = []
        self._complete = self._cut = False
        self._dead_end = False

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self._tags[tagname] = tagvalue.replace('\\"', '"').replace("\\\\", "\\")

    def visit_board(self, board: chess.Board) -> None:
        if self._start is None:
            self._start = board.copy(stack=False)
            openings.check(board)
        if not self._complete:
            self._complete = len(self._moves) == self._plies
            self._dead_end = not any(board.generate_legal_moves())

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        if not move:
            raise ValueError(f"null move at ply {len(self._moves) + 1}")
        if self._complete:
            self._cut = True
        else:
            self._moves.append(board.uci(move))

    def begin_variation(self) -> chess.pgn.SkipType:
        return chess.pgn.SKIP

    def result(self) -> contract.Opening:
        if self._start is None or not (self._tags or self._moves):
            raise ValueError("neither tags nor moves")
        if self._dead_end:
            raise ValueError("the line ends the game: no legal move is left")
        name = ": ".join(filter(None, (self._tag("Opening"), self._tag("Variation"))))
        named = eco.Name(self._tag("ECO"), name)
        if self._cut and any(named):  # its tags are the whole line's
            named = eco.of_moves(self._start, self._moves)
        return contract.Opening(
            fen=openings.fen(self._start),
            moves=tuple(self._moves),
            name=named.name,
            eco=named.eco,
        )

    def _tag(self, name: str) -> str:
        value = self._tags.get(name, "").strip()
        return "" if value in _UNKNOWN_TAGS else value
