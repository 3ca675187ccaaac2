"""The tablebase rule `syzygy` (S16-11d, S17-11d, CUP-6c, FRC-6c), given what the tables say.

The first position with few enough men and without castling rights ends the game. It is
judged with the fifty-move counter it has: a win that the counter would cut short (a
cursed win) is a draw. What is not in the tables is not judged.
"""

from __future__ import annotations

from typing import Protocol

import chess

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import plies

_FIFTY = 100  # plies without a capture or a pawn move that draw a game


class Prober(Protocol):
    """Whoever can look into tablebases; answers are the side to move's, None if missing."""

    def wdl(self, board: chess.Board) -> int | None:
        """Return 2 for a win, 1 cursed win, 0 draw, -1 blessed loss, -2 loss."""

    def dtz(self, board: chess.Board) -> int | None:
        """Return the plies to the next capture or pawn move, negative for the loser."""


class Tablebase:
    """The rule of one game; without a prober it never applies."""

    def __init__(self, rule: contract.Syzygy, prober: Prober | None) -> None:
        self._rule, self._prober = rule, prober

    def take(self, ply: plies.Ply) -> contract.Outcome | None:
        """Return what the tables say of the position reached, if they decide the game."""
        if self._prober is None or ply.men > self._rule.men or ply.board.castling_rights:
            return None
        value = self._value(ply.board, self._prober)
        if value is None or (self._rule.draw_only if value else self._rule.decided_only):
            return None
        if value == 0:
            return verdict.tablebase(loser=None)
        return verdict.tablebase(loser=ply.mover if value > 0 else verdict.opponent(ply.mover))

    def _value(self, board: chess.Board, prober: Prober) -> int | None:
        if not self._rule.ignore_fifty:
            return fifty_move_value(board, prober)
        wdl = prober.wdl(board)
        return None if wdl is None else (wdl > 0) - (wdl < 0)


def fifty_move_value(board: chess.Board, prober: Prober) -> int | None:
    """Return 1, 0 or -1 for the side to move under the fifty-move rule.

    ``None`` when a table that is needed is missing. The distance is asked for only where
    plies have been counted already: at a counter of 0 a win is a win.
    """
    wdl = prober.wdl(board)
    if wdl is None:
        return None
    if abs(wdl) < 2:
        return 0
    value = 1 if wdl > 0 else -1
    if board.halfmove_clock == 0:
        return value
    dtz = prober.dtz(board)
    if dtz is None:
        return None
    return value if abs(dtz) + board.halfmove_clock <= _FIFTY else 0
