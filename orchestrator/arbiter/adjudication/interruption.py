"""What becomes of a game that was interrupted: S16-15b, S17-15b, CUP-7b, FRC-7b, N1 lock-up.

Pure: decided from the journaled plies alone. Scenario i (a failing web server or monitor)
never gets here: the game goes on. The others, in their order:

0. the last ply ended the game: that is its result, whatever was recorded of it;
ii. both evals beyond the bound for the same side: that side has won;
iii. both evals inside the draw window, and enough moves completed by both: drawn;
iv. exactly seven men: the tablebase decides, else the organizers are asked;
v. the game is resumed from the position, or (N1, or no engine move) begins again.

Evals are those of each side's last engine move, in centipawns from White's view. A missing
eval decides nothing, a mate lies beyond every bound; book plies have no evals but count as
moves.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping, Sequence
from typing import Final

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import score as scores
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import judge, tablebase
from orchestrator.common import errors


def _season(rules: str) -> contract.Interruptions:
    """S16-15b, S17-15b: "more than ABS(10)", "less than ABS(0.10)"."""
    return contract.Interruptions(rules=rules, win_cp=1000, draw_cp=10, tablebase_men=7)


def _event(rules: str) -> contract.Interruptions:
    """CUP-7b, FRC-7b: "equal to or more than ABS(10)", "equal to or less than ABS(0.15)"."""
    return contract.Interruptions(
        rules=rules, win_cp=1000, draw_cp=15, inclusive=True, tablebase_men=7
    )


PRESETS: Final[Mapping[str, contract.Interruptions]] = {
    "s16": _season("s16"),
    "s17": _season("s17"),
    "cup": _event("cup"),
    "frc": _event("frc"),
    "ntcec1": contract.Interruptions(rules="ntcec1", otherwise="restart"),
}

_NO_RULES: Final = contract.Adjudication()


class Scenario(enum.StrEnum):
    """What was found; the values are what the journal and the record say."""

    ENDED = "the last move had ended the game"
    WON = "won by both evals"
    DRAWN = "drawn by both evals"
    TABLEBASE = "decided by the tablebase"
    ASK = "the organizers are asked"
    RESUMED = "resumed from the position"
    RESTARTED = "restarted after the opening"


DECIDED: Final = frozenset({Scenario.ENDED, Scenario.WON, Scenario.DRAWN, Scenario.TABLEBASE})


@dataclasses.dataclass(frozen=True, slots=True)
class Facts:
    """What a verdict rests on; evals are White's view.

    ``ply`` is the last one (book plies included), ``engine_plies`` how many of them engines
    played, ``ended`` how the last one ended the game, ``board`` where it stands afterwards
    (``None`` where nobody looks into tables).
    """

    ply: int
    engine_plies: int
    men: int
    white: contract.Score | None = None
    black: contract.Score | None = None
    ended: contract.Outcome | None = None
    board: chess.Board | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """The scenario, the result where it has one, and the evidence in words."""

    scenario: Scenario
    outcome: contract.Outcome | None
    evidence: str


def position(
    order: contract.GameOrder,
    plies: Sequence[contract.PlyRecord],
    prober: tablebase.Prober | None = None,
) -> Facts:
    """Replay a game's engine plies; raise ``BookError``, ``LedgerDamagedError``."""
    game = boards.GameBoard(order.opening, order.variant)
    rules = judge.Judge(order.adjudication, prober)
    last: dict[contract.Side, contract.Score | None] = {"white": None, "black": None}
    ended: contract.Outcome | None = None
    for ply in plies:
        game.resume(ply.move)
        ruling = rules.take(game.position(), game.ply, ply.score)
        ended = game.ending() or ruling.outcome
        last[ply.side] = ply.score and scores.white_view(ply.score, ply.side)
    position = game.position()
    return Facts(
        ply=game.ply,
        engine_plies=len(plies),
        men=position.occupied.bit_count(),
        white=last["white"],
        black=last["black"],
        ended=ended,
        board=position,
    )


def playable(
    order: contract.GameOrder, plies: Sequence[contract.PlyRecord]
) -> tuple[contract.PlyRecord, ...]:
    """Return a game's plies up to the first that cannot be played; raise ``BookError``."""
    game = boards.GameBoard(order.opening, order.variant)
    sound: list[contract.PlyRecord] = []
    for ply in plies:
        try:
            game.resume(ply.move)
        except errors.LedgerDamagedError:
            break
        sound.append(ply)
    return tuple(sound)


def final_fen(order: contract.GameOrder, plies: Sequence[contract.PlyRecord]) -> str:
    """Return the position after a game's plies, '' where they cannot be played."""
    try:
        board = position(order.model_copy(update={"adjudication": _NO_RULES}), plies).board
    except (errors.BookError, errors.LedgerDamagedError):
        return ""
    return "" if board is None else board.fen()


def judged(
    position: Facts, rules: contract.Interruptions, prober: tablebase.Prober | None = None
) -> Verdict:
    """Return the first scenario that applies."""
    evidence = _evidence(position)
    if position.ended is not None:
        return Verdict(Scenario.ENDED, position.ended, evidence)
    if not position.engine_plies:
        return Verdict(Scenario.RESTARTED, None, evidence)
    winner = _winner(position, rules)
    if winner is not None:
        outcome = verdict.interrupted(verdict.opponent(winner), evidence)
        return Verdict(Scenario.WON, outcome, evidence)
    if _drawn(position, rules):
        return Verdict(Scenario.DRAWN, verdict.interrupted(None, evidence), evidence)
    if position.men == rules.tablebase_men:
        return _by_tables(position, prober, evidence)
    resumed = rules.otherwise == "resume"
    scenario = Scenario.RESUMED if resumed else Scenario.RESTARTED
    return Verdict(scenario, None, evidence)


def compensation_ns(
    plies: Sequence[contract.PlyRecord], rules: contract.Interruptions
) -> dict[contract.Side, int]:
    """Return what each side gets back when the game is resumed.

    By default (a reading of "time compensation to fill up the cache") what its own last
    move took, 0 for a side that has not moved.
    """
    if rules.compensation_ms is not None:
        given_ns = rules.compensation_ms * 1_000_000
        return {"white": given_ns, "black": given_ns}
    given: dict[contract.Side, int] = {"white": 0, "black": 0}
    for ply in plies[-2:]:
        given[ply.side] = ply.think_ns
    return given


def _winner(position: Facts, rules: contract.Interruptions) -> contract.Side | None:
    if rules.win_cp is None:
        return None
    ahead = {_beyond(score, rules.win_cp, rules) for score in (position.white, position.black)}
    return ahead.pop() if len(ahead) == 1 else None


def _beyond(
    score: contract.Score | None, bound_cp: int, rules: contract.Interruptions
) -> contract.Side | None:
    """Return the side that a score (White's view) sees ahead beyond the bound."""
    if score is None:
        return None
    if score.mate is None:
        size = abs(score.cp or 0)
        if size < bound_cp or (size == bound_cp and not rules.inclusive):
            return None
    return scores.favours(score, "white")


def _drawn(position: Facts, rules: contract.Interruptions) -> bool:
    if rules.draw_cp is None or position.ply // 2 < rules.draw_moves:
        return False
    return all(_inside(score, rules.draw_cp, rules) for score in (position.white, position.black))


def _inside(score: contract.Score | None, bound_cp: int, rules: contract.Interruptions) -> bool:
    if score is None or score.mate is not None or score.cp is None:
        return False
    size = abs(score.cp)
    return size < bound_cp or (size == bound_cp and rules.inclusive)


def _by_tables(position: Facts, prober: tablebase.Prober | None, evidence: str) -> Verdict:
    """Ask the tables; castling rights, a missing table or none at all leave it to people."""
    board = position.board
    if board is None or prober is None or board.castling_rights:
        return Verdict(Scenario.ASK, None, evidence)
    value = tablebase.fifty_move_value(board, prober)
    if value is None:
        return Verdict(Scenario.ASK, None, evidence)
    mover: contract.Side = "white" if board.turn else "black"
    ahead = mover if value > 0 else verdict.opponent(mover)
    outcome = verdict.tablebase(None if value == 0 else verdict.opponent(ahead))
    return Verdict(Scenario.TABLEBASE, outcome, evidence)


def _evidence(position: Facts) -> str:
    white, black = (_text(score) for score in (position.white, position.black))
    return f"ply {position.ply}, {position.men} men, evals of White {white}, of Black {black}"


def _text(score: contract.Score | None) -> str:
    return "missing" if score is None else scores.text(score, "white") or "missing"
