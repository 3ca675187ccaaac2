"""The draw rules: eval-draw (S16-11b, S17-11b, N1), few-pieces-draw (CUP-6b, FRC-6b), -draw.

Each has one row over both engines' plies, and applies as soon as the row is complete and
the game is long enough. Invariant: ``plies_left`` is 0 exactly when the rule applies.
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import plies


class EvalDraw:
    """The TCEC draw rule: both engines see an even game."""

    def __init__(self, rule: contract.EvalDraw) -> None:
        self._rule = rule
        self._row = plies.Row(rule.plies, rule.zeroing)

    def take(self, ply: plies.Ply) -> contract.Outcome | None:
        """Count a ply; return the draw when the rule applies."""
        self._row.take(ply, counts=ply.within(self._rule.bound_cp))
        return verdict.eval_draw() if self.plies_left(ply.number) == 0 else None

    def plies_left(self, number: int) -> int:
        """Return the plies until the rule can apply, after ply ``number``."""
        return self._row.plies_left(number, self._rule.min_ply)

    def shown(self, number: int) -> int:
        """Return Rd."""
        return self._row.shown(number, self._rule.min_ply)


class FewPiecesDraw:
    """The new draw rule: few pieces are left and the mover sees no advantage.

    Captures, pawn moves and the move number do not matter; a promotion to a piece too
    many breaks the row.
    """

    def __init__(self, rule: contract.FewPiecesDraw) -> None:
        self._rule = rule
        self._row = plies.Row(rule.plies, "ignore")

    def take(self, ply: plies.Ply) -> contract.Outcome | None:
        """Count a ply; return the draw when the rule applies."""
        few = ply.pieces <= self._rule.pieces
        if self._rule.pawns is not None:
            few = few and ply.board.pawns.bit_count() <= self._rule.pawns
        self._row.take(ply, counts=few and ply.within(self._rule.bound_cp))
        return None if self._row.missing else verdict.few_pieces_draw()

    def plies_left(self, number: int) -> int:
        """Return the plies until the rule can apply, after ply ``number``."""
        return self._row.plies_left(number, 0)

    def shown(self, number: int) -> int:
        """Return Rd: the true count, also while there are too many pieces."""
        return self._row.shown(number, 0)


class MovesDraw(EvalDraw):
    """cutechess' ``-draw``: a zeroing ply begins a new row and may be its first."""

    def __init__(self, rule: contract.MovesDraw) -> None:
        super().__init__(
            contract.EvalDraw(
                min_ply=2 * rule.move_number,
                bound_cp=rule.score_cp,
                plies=2 * rule.move_count,
                zeroing="restart",
            )
        )

    def take(self, ply: plies.Ply) -> contract.Outcome | None:
        """Count a ply; return the draw, in cutechess' words, when the rule applies."""
        return verdict.score_draw() if super().take(ply) else None
