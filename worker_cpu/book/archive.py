"""A book from games that were played: the distinct positions after n plies, counted."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterable, Iterator

import chess
import chess.pgn

from orchestrator import contract
from orchestrator.arbiter import board as boards
from worker_cpu.book import lines

POINTS = {"1-0": (1, 0, 0), "1/2-1/2": (0, 1, 0), "0-1": (0, 0, 1)}


@dataclasses.dataclass
class Gathered:
    """What was found in archives: lines by their exits, and what could not be used."""

    games: int = 0
    short: int = 0  # games that ended before the exit
    broken: int = 0  # games that cannot be read
    foreign: int = 0  # games of another variant
    found: dict[str, lines.Line] = dataclasses.field(default_factory=dict)

    def chosen(self, least: int) -> list[lines.Line]:
        """Return the lines played at least so often, the most played first."""
        kept = [line for line in self.found.values() if line.count >= least]
        return sorted(kept, key=lambda line: (-line.count, line.opening.moves))


class _Beginning(chess.pgn.BaseVisitor["lines.Line | None"]):
    """Collects a game's tags and first plies; ``None`` when it is shorter or broken.

    A broken game is read to its end: what is left of it must not be taken for another one.
    """

    def __init__(self, plies: int) -> None:
        self._plies = plies
        self._tags: dict[str, str] = {}
        self._moves: list[str] = []
        self._fen = ""
        self.exit = ""
        self.variant = ""
        self.broken = self.read = False

    def handle_error(self, error: Exception) -> None:
        del error
        self.broken = True

    def visit_header(self, tagname: str, tagvalue: str) -> None:
        self._tags[tagname] = tagvalue

    def visit_board(self, board: chess.Board) -> None:
        if not self._fen:
            self._fen = board.fen()
            self.variant = "fischerandom" if board.chess960 else board.uci_variant or ""
            self.broken |= not board.is_valid()
        if len(self._moves) == self._plies and not self.exit:
            self.exit = board.epd()

    def visit_move(self, board: chess.Board, move: chess.Move) -> None:
        if len(self._moves) < self._plies:
            self._moves.append(board.uci(move))

    def begin_variation(self) -> chess.pgn.SkipType:
        return chess.pgn.SKIP

    def result(self) -> lines.Line | None:
        self.read = True
        if len(self._moves) < self._plies:
            return None
        fen = None if self._fen == chess.STARTING_FEN else self._fen
        wins, draws, losses = POINTS.get(self._tags.get("Result", ""), (0, 0, 0))
        opening = contract.Opening(fen=fen, moves=tuple(self._moves))
        return lines.Line(opening, wins=wins, draws=draws, losses=losses)


def gather(texts: Iterable[str], plies: int, variant: boards.Variant = "standard") -> Gathered:
    """Read archives; games that cannot be read, or of another variant, are only counted."""
    gathered = Gathered()
    for text in texts:
        for line, exit_position in _beginnings(text, plies, variant, gathered):
            seen = gathered.found.get(exit_position)
            gathered.found[exit_position] = line if seen is None else seen.merged(line)
    return gathered


def _beginnings(
    text: str, plies: int, variant: boards.Variant, gathered: Gathered
) -> Iterator[tuple[lines.Line, str]]:
    wanted = {"standard": "chess"}.get(variant, variant)
    handle = io.StringIO(text)
    while True:
        visitor = _Beginning(plies)
        line = chess.pgn.read_game(handle, Visitor=lambda made=visitor: made)  # type: ignore[misc]
        if not visitor.read:
            return
        gathered.games += 1
        if visitor.broken:
            gathered.broken += 1
        elif visitor.variant not in ("", wanted):
            gathered.foreign += 1
        elif line is None:
            gathered.short += 1
        elif visitor.exit:
            yield line, visitor.exit
