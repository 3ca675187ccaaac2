"""What the rules see of one engine ply, and the row of plies that most of them count.

Invariants: the eval is the mover's own, for that move; without one (neither centipawns
nor mate) a ply is inside no bound and claims nothing (CUP-6b); a mate score lies beyond
every bound. Book plies count in ``number`` and are never shown to a rule.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, TypeAlias

import chess

from orchestrator import contract
from orchestrator.arbiter import verdict

Zeroing: TypeAlias = Literal["reset", "restart", "ignore"]


@dataclasses.dataclass(frozen=True)
class Ply:
    """One completed engine ply; ``board`` stands after it and is not to be changed."""

    number: int
    mover: contract.Side
    score: contract.Score | None
    board: chess.Board

    @property
    def zeroing(self) -> bool:
        """Say whether the ply was a capture or a pawn move."""
        return self.board.halfmove_clock == 0

    @property
    def pieces(self) -> int:
        """Count both sides' pieces, kings included, pawns not."""
        return (self.board.occupied & ~self.board.pawns).bit_count()

    @property
    def men(self) -> int:
        """Count everything on the board."""
        return self.board.occupied.bit_count()

    def within(self, bound_cp: int) -> bool:
        """Say whether the eval lies inside the bound, the bound included."""
        score = self.score
        if score is None or score.mate is not None or score.cp is None:
            return False
        return abs(score.cp) <= bound_cp

    def beyond(self, bound_cp: int) -> contract.Side | None:
        """Return the side that the eval sees ahead by the bound or more."""
        score = self.score
        if score is None:
            return None
        if score.mate is not None:
            ahead = score.mate > 0
        elif score.cp is None or abs(score.cp) < bound_cp:
            return None
        else:
            ahead = score.cp > 0
        return self.mover if ahead else verdict.opponent(self.mover)


class Row:
    """Plies in a row that count for a rule, ``length`` of the ``needed``."""

    def __init__(self, needed: int, zeroing: Zeroing) -> None:
        self.length = 0
        self._needed, self._zeroing = needed, zeroing

    @property
    def missing(self) -> int:
        """Return how many plies the row still needs."""
        return max(0, self._needed - self.length)

    def take(self, ply: Ply, *, counts: bool) -> None:
        """Add a ply to the row, or break it; captures and pawn moves as configured."""
        if ply.zeroing and self._zeroing != "ignore":
            self.length = 0
            counts = counts and self._zeroing == "restart"
        self.length = self.length + 1 if counts else 0

    def plies_left(self, number: int, min_ply: int) -> int:
        """Return the plies until the rule can apply, after ply ``number``."""
        return max(self.missing, min_ply - number)

    def shown(self, number: int, min_ply: int) -> int:
        """Return the clock as TCEC's viewers read it (Rd, Rr).

        The missing plies; as -(missing + 1) while there is no row or it would be
        complete before the move of ``min_ply``.
        """
        missing = self.missing
        if missing == self._needed or (number + missing) // 2 < min_ply // 2:
            return -missing - 1
        return missing
