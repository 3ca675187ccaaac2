"""All rules of one game in their order on one ply: tablebase, draw, win, maximum of moves.

The endings by the rules of chess come before all of them; they are the board's. Every
rule sees every engine ply, so the counters are true also on a ply that ends the game for
another reason. Invariant: plies come in order, none is left out, book plies never come.
"""

from __future__ import annotations

import functools
from typing import NamedTuple, Protocol

import chess

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import draws, plies, tablebase, wins


class Ruling(NamedTuple):
    """What a ply means to the rules: the end of the game, if any, and the clocks."""

    outcome: contract.Outcome | None
    counters: contract.Counters


class _Clocked(Protocol):
    def take(self, ply: plies.Ply) -> contract.Outcome | None: ...

    def plies_left(self, number: int) -> int: ...

    def shown(self, number: int) -> int: ...


class Judge:
    """The rules of one game, fed ply by ply."""

    def __init__(
        self, rules: contract.Adjudication, prober: tablebase.Prober | None = None
    ) -> None:
        """Set up the rules that the event plays with; ``prober`` looks into tablebases."""
        self._tables = rules.syzygy and tablebase.Tablebase(rules.syzygy, prober)
        self._draws: list[_Clocked] = []
        self._wins: list[_Clocked] = []
        if rules.eval_draw:
            self._draws.append(draws.EvalDraw(rules.eval_draw))
        if rules.few_pieces_draw:
            self._draws.append(draws.FewPiecesDraw(rules.few_pieces_draw))
        if rules.draw:
            self._draws.append(draws.MovesDraw(rules.draw))
        if rules.eval_win:
            self._wins.append(wins.EvalWin(rules.eval_win))
        if rules.resign:
            self._wins.append(wins.MovesResign(rules.resign))
        self._max_moves = rules.max_moves
        ends = (self._tables, self._draws, self._wins)
        self._no_rules = not any(ends) and self._max_moves is None

    @property
    def wants_scores(self) -> bool:
        """Say whether any of the rules looks at scores."""
        return bool(self._draws or self._wins)

    def take(self, board: chess.Board, number: int, score: contract.Score | None) -> Ruling:
        """Judge ply ``number`` (book plies included), after which ``board`` stands.

        ``score`` is the mover's own, exact, ``None`` when the engine gave none.
        """
        outcome = self.rule(board, number, score)
        return Ruling(outcome, self.counters(board, number))

    def rule(
        self, board: chess.Board, number: int, score: contract.Score | None
    ) -> contract.Outcome | None:
        """Judge a ply as ``take`` does, without the clocks."""
        if self._no_rules:
            return None
        mover: contract.Side = "black" if board.turn else "white"
        ply = plies.Ply(number, mover, score, board)
        outcomes = [self._tables.take(ply)] if self._tables else []
        outcomes += [rule.take(ply) for rule in self._draws]
        outcomes += [rule.take(ply) for rule in self._wins]
        if self._max_moves is not None and number >= 2 * self._max_moves:
            outcomes.append(verdict.max_moves())
        return next((outcome for outcome in outcomes if outcome is not None), None)

    def counters(self, board: chess.Board, number: int) -> contract.Counters:
        """Return the clocks after ply ``number``, the last one that was judged."""
        to_draw, rd = _nearest(self._draws, number)
        to_win, rr = _nearest(self._wins, number)
        fifty = max(0, 100 - board.halfmove_clock) // 2
        return _counters(to_draw, to_win, fifty, rd, rr)


@functools.lru_cache(1 << 10)  # few values; frozen, so that plies may share them
def _counters(
    to_draw: int | None, to_win: int | None, fifty: int, rd: int | None, rr: int | None
) -> contract.Counters:
    return contract.Counters(
        plies_to_draw=to_draw, plies_to_win=to_win, moves_to_fifty=fifty, rd=rd, rr=rr
    )


def _nearest(rules: list[_Clocked], number: int) -> tuple[int | None, int | None]:
    """Return both clocks of the rule that may apply first, Nones without any rule."""
    if not rules:
        return None, None
    rule = min(rules, key=lambda rule: rule.plies_left(number))
    return rule.plies_left(number), rule.shown(number)
