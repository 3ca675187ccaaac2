"""The win rules: eval-win (S16-11c, S17-11c, N1 GUI Adjudication) and cutechess' ``-resign``.

A ply without an eval claims nothing: it breaks every row it could be part of.
"""

from __future__ import annotations

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import plies


class EvalWin:
    """The TCEC win rule: both engines see the same side far ahead, ply after ply.

    The row belongs to one side; the first ply that sees the other side ahead begins the
    other side's row.
    """

    def __init__(self, rule: contract.EvalWin) -> None:
        self._rule = rule
        self._rows: dict[contract.Side, plies.Row] = {
            side: plies.Row(rule.plies, rule.zeroing) for side in ("white", "black")
        }

    def take(self, ply: plies.Ply) -> contract.Outcome | None:
        """Count a ply; return the win when the rule applies."""
        ahead = ply.beyond(self._rule.bound_cp)
        for side, row in self._rows.items():
            row.take(ply, counts=side == ahead)
        if ahead is None or self.plies_left(ply.number):
            return None
        return verdict.eval_win(loser=verdict.opponent(ahead))

    def plies_left(self, number: int) -> int:
        """Return the plies until the rule can apply, after ply ``number``."""
        return self._longest().plies_left(number, self._rule.min_ply)

    def shown(self, number: int) -> int:
        """Return Rr."""
        return self._longest().shown(number, self._rule.min_ply)

    def _longest(self) -> plies.Row:
        return max(self._rows.values(), key=lambda row: row.length)


class MovesResign:
    """cutechess' ``-resign``: the loser's own scores, and the winner's if two-sided.

    It applies on the loser's plies only. Each side's row is made of its own plies.
    """

    def __init__(self, rule: contract.MovesResign) -> None:
        self._rule = rule
        self._losing: dict[contract.Side, int] = {"white": 0, "black": 0}
        self._winning: dict[contract.Side, int] = {"white": 0, "black": 0}
        self._mover: contract.Side = "black"

    def take(self, ply: plies.Ply) -> contract.Outcome | None:
        """Count a ply; return the win when the rule applies."""
        mover = self._mover = ply.mover
        claim = ply.beyond(self._rule.score_cp)
        self._losing[mover] = self._losing[mover] + 1 if claim == verdict.opponent(mover) else 0
        self._winning[mover] = self._winning[mover] + 1 if claim == mover else 0
        own, other = self._missing(mover)
        return None if own or other else verdict.score_resign(loser=mover)

    def plies_left(self, number: int) -> int:
        """Return the plies until the rule can apply, after ply ``number``."""
        del number  # it may apply from the first move on
        own, other = self._missing(self._mover)
        if not own and not other:
            return 0
        to_move_own, to_move_other = self._missing(verdict.opponent(self._mover))
        # the loser's k-th ply is 2k plies away for the side that has moved, 2k - 1 else
        moved = 2 * max(own, other, 1)
        to_move = 2 * max(to_move_own, to_move_other + 1 if to_move_other else 1) - 1
        return min(moved, to_move)

    def shown(self, number: int) -> int:
        """Return Rr: negative while neither side sees itself lost."""
        left = self.plies_left(number)
        return left if any(self._losing.values()) else -left - 1

    def _missing(self, loser: contract.Side) -> tuple[int, int]:
        """Return the plies that the loser's row and the winner's row still need."""
        needed = self._rule.move_count
        winning = self._winning[verdict.opponent(loser)] if self._rule.twosided else needed
        return max(0, needed - self._losing[loser]), max(0, needed - winning)
