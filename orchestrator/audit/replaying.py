"""Adjudication, ply by ply: do the rules end each game where the record does?

Compared are the ends by draw rule, win rule, tablebase, by counted moves (``draw``, ``resign``)
and the rules of chess. A game that
one of them ended by the record must end by it at its last ply, with the recorded result; a
game that ended otherwise must not meet one on the way. Where board and rule end a game on
the same ply, the board names the reason. No tables are
read: at the first position with few men a tablebase is taken to know the recorded result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter.adjudication import judge, tablebase
from orchestrator.audit import reading, reasons, remarks

BOARD: Final = "board"
BY_MOVES: Final = "moves_rule"
RULES: Final = {
    contract.Ending.EVAL_DRAW: "draw_rule",
    contract.Ending.FEW_PIECES_DRAW: "draw_rule",
    contract.Ending.EVAL_WIN: "win_rule",
    contract.Ending.SYZYGY: "tablebase",
    contract.Ending.SCORE_DRAW: BY_MOVES,
    contract.Ending.SCORE_RESIGN: BY_MOVES,
}


@dataclasses.dataclass
class Replayed:
    """One engine ply of a replay: what the file says of it and what our rules say."""

    number: int
    mover: contract.Side
    told: reading.Told
    score: contract.Score | None
    board: chess.Board
    ruling: judge.Ruling
    ending: contract.Outcome | None


class Known:
    """A tablebase that knows the result of one recorded game."""

    def __init__(self, result: str) -> None:
        """Take the game's result."""
        self._white = {"1-0": 2, "0-1": -2}.get(result, 0)

    def wdl(self, board: chess.Board) -> int:
        """Return the recorded result for the side to move."""
        return self._white if board.turn else -self._white

    def dtz(self, board: chess.Board) -> int:
        """Return a distance that the fifty-move counter never cuts short."""
        return self.wdl(board) // 2


def replay(
    game: reading.Game, rules: contract.Adjudication, prober: tablebase.Prober | None = None
) -> Iterator[Replayed]:
    """Feed a game to the rules, up to the ply where they or the board end it.

    ``board`` is the game's own and goes on with the next ply.
    """
    played, judged = boards.GameBoard(game.opening, game.variant), judge.Judge(rules, prober)
    for recorded in game.plies[played.book_plies :]:
        mover = played.turn
        played.push(chess.Move.from_uci(recorded.move))
        score = remarks.score(remarks.told_eval(recorded.fields), mover)
        ruling = judged.take(played.position(), played.ply, score)
        ending = played.ending() or ruling.outcome
        yield Replayed(played.ply, mover, recorded, score, played.position(), ruling, ending)
        if ending is not None:
            return


def end(game: reading.Game, rules: contract.Adjudication) -> tuple[contract.Outcome | None, int]:
    """Return how rules or board end a game, None for not at all, and the last ply."""
    last = None
    for ply in replay(game, rules, Known(game.tags["Result"])):
        last = ply
    if last is None or last.ending is None:
        return None, len(game.plies)
    return last.ending, last.number


def report(games: Iterable[reading.Game], rules: contract.Adjudication) -> dict[str, Any]:
    """Return what the rules reproduce of the record, and every game where they differ.

    ``board`` are the rules of chess. ``recorded_ply`` is the recorded game's last ply;
    ``computed_ply`` is where the rule ends it, None where it does not. A rule that is
    neither played nor recorded is None; ``moves_rule`` is there where it is played alone: no
    text of TCEC's has it, and its record says no more than that a game was adjudicated.
    """
    by_moves = [BY_MOVES] if rules.draw is not None or rules.resign is not None else []
    names = (*reasons.RULES, *by_moves, BOARD)
    counts = {name: {"recorded": 0, "reproduced": 0} for name in names}
    mismatches: list[dict[str, Any]] = []
    for game in games:
        if reasons.annulled(game):
            continue  # its end is told in words, and no result is at stake
        recorded, (outcome, ply) = _recorded(game, names), end(game, rules)
        computed = None if outcome is None else _Reason.of(outcome)
        if recorded is not None:
            counts[recorded.rule]["recorded"] += 1
            agrees = recorded == computed and ply == len(game.plies)
            counts[recorded.rule]["reproduced"] += agrees
        mismatches += _mismatches(game, recorded, computed, ply)
    played = {
        "draw_rule": rules.eval_draw is not None or rules.few_pieces_draw is not None,
        "win_rule": rules.eval_win is not None,
        "tablebase": rules.syzygy is not None,
        BY_MOVES: True,
        BOARD: True,
    }
    reproduced: dict[str, Any] = {
        name: count if played[name] or count["recorded"] else None for name, count in counts.items()
    }
    return reproduced | {"mismatches": mismatches}


@dataclasses.dataclass(frozen=True)
class _Reason:
    """Why a game ended as it did; of the board's reasons each is one of its own."""

    rule: str
    result: str
    ending: contract.Ending | None = None

    @classmethod
    def of(cls, outcome: contract.Outcome) -> _Reason:
        rule = RULES.get(outcome.ending)
        return cls(rule or BOARD, outcome.result, None if rule else outcome.ending)


def _recorded(game: reading.Game, names: Sequence[str]) -> _Reason | None:
    result = game.tags["Result"]
    if rule := reasons.rule(game):
        return _Reason(rule, result)
    if ending := reasons.board(game):
        return _Reason(BOARD, result, ending)
    if BY_MOVES not in names or not reasons.adjudicated(game):
        return None
    # Without evals these rules cannot be asked; the others' record names them itself.
    asked = any(remarks.told_eval(ply.fields) for ply in game.plies)
    return _Reason(BY_MOVES, result) if asked else None


def _silent(game: reading.Game, computed: _Reason | None) -> bool:
    """Say whether a record gives no reason for an end, and no result but that end's."""
    result = None if computed is None else computed.result
    return reasons.unknown(game) and game.result in (None, result)


def _mismatches(
    game: reading.Game, recorded: _Reason | None, computed: _Reason | None, ply: int
) -> Iterator[dict[str, Any]]:
    length = len(game.plies)
    if recorded == computed and (recorded is None or ply == length):
        return
    # A record that does not say how the game ended contradicts no rule that ends it there so.
    if recorded is None and ply == length and _silent(game, computed):
        return
    endings = (recorded, computed)
    if recorded is not None and recorded.rule == BOARD and computed is not None and ply < length:
        endings = (None, computed)  # the board was never asked
    for rule in dict.fromkeys(reason.rule for reason in endings if reason):
        ends = computed is not None and computed.rule == rule
        yield {
            "game": game.number,
            "rule": rule,
            "recorded_ply": length,
            "computed_ply": ply if ends else None,
        }
