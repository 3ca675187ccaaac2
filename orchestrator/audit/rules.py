"""The rules an archive is checked against: those of a rule text, or of another year.

S16-12, S17-12, FRC-3 and N1 name the tiebreaks; TCEC's round robins since Season 6 follow the
Berger tables, nTCEC's the circle.
"""

from __future__ import annotations

import dataclasses
from typing import Final, Literal, TypeAlias

from orchestrator import contract
from orchestrator.arbiter.adjudication import presets
from orchestrator.season.spec import model

Kind: TypeAlias = Literal["league", "swiss", "knockout", "match", "pool"]
Table: TypeAlias = Literal["berger", "circle"]

NAMES: Final = ("s16", "s17", "cup", "frc", "ntcec1")

_C = model.Criterion
_SEASON: Final = (_C.CRASHES, _C.DIRECT_ENCOUNTER, _C.WINS, _C.SONNEBORN_BERGER)
_FRC: Final = (_C.DIRECT_ENCOUNTER, _C.SONNEBORN_BERGER, _C.R_MOBILITY, _C.WINS)
_NTCEC_REST: Final = (_C.BLACK_GAMES, _C.WINS, _C.BLACK_WINS, _C.DIRECT_ENCOUNTER)
_CUP_PAIRS: Final = {32: 2, 16: 3, 8: 4, 4: 6, 2: 12}  # by the engines left: CUP-3c
_BRONZE_PAIRS: Final = 8
_CRASHES: Final = 3  # S16-15c, S17-15c


@dataclasses.dataclass(frozen=True)
class Numbers:
    """Numbers of another year's adjudication; None keeps those of the rule text."""

    draw_ply: int | None = None
    draw_cp: int | None = None
    draw_plies: int | None = None
    draw_pieces: int | None = None
    draw_pawns: int | None = None
    win_cp: int | None = None
    win_plies: int | None = None
    tb_men: int | None = None
    no_draw_rule: bool = False
    no_win_rule: bool = False
    no_tablebase: bool = False


@dataclasses.dataclass(frozen=True)
class Rules:
    """What an archive is checked against; None is found from the archive itself."""

    name: str
    numbers: Numbers = Numbers()
    kind: Kind | None = None
    table: Table | None = None
    cycles: int | None = None
    pairs: int | None = None
    seeds: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    disqualify_after: int | None = None

    @property
    def crashes(self) -> int:
        """Return how many crashes annul an engine's results, 0 for never."""
        if self.disqualify_after is not None:
            return self.disqualify_after
        return _CRASHES if self.name in ("s16", "s17") else 0


def adjudication(rules: Rules) -> contract.Adjudication:
    """Return the rule text's adjudication with the numbers that were given."""
    numbers, preset = rules.numbers, presets.PRESETS[rules.name]
    few = preset.few_pieces_draw
    if numbers.draw_ply is not None:  # a first ply is the older rule's
        few = None
    if numbers.draw_pieces is not None:
        few = few or presets.PRESETS["cup"].few_pieces_draw
    syzygy = preset.syzygy
    if numbers.tb_men is not None:
        syzygy = contract.Syzygy(men=numbers.tb_men)
    return contract.Adjudication(
        rules=rules.name,
        syzygy=None if numbers.no_tablebase else syzygy,
        eval_draw=None if numbers.no_draw_rule or few else _eval_draw(numbers, preset),
        few_pieces_draw=None if numbers.no_draw_rule or not few else _few(numbers, few),
        eval_win=None if numbers.no_win_rule else _win(numbers, preset.eval_win),
    )


def _eval_draw(numbers: Numbers, preset: contract.Adjudication) -> contract.EvalDraw:
    rule = preset.eval_draw or presets.PRESETS["s16"].eval_draw
    assert rule is not None  # every preset of a season has one
    return contract.EvalDraw(
        min_ply=_or(numbers.draw_ply, rule.min_ply),
        bound_cp=_or(numbers.draw_cp, rule.bound_cp),
        plies=_or(numbers.draw_plies, rule.plies),
        zeroing=rule.zeroing,
    )


def _few(numbers: Numbers, rule: contract.FewPiecesDraw) -> contract.FewPiecesDraw:
    return contract.FewPiecesDraw(
        pieces=_or(numbers.draw_pieces, rule.pieces),
        pawns=rule.pawns if numbers.draw_pawns is None else numbers.draw_pawns,
        bound_cp=_or(numbers.draw_cp, rule.bound_cp),
        plies=_or(numbers.draw_plies, rule.plies),
    )


def _win(numbers: Numbers, rule: contract.EvalWin | None) -> contract.EvalWin | None:
    if rule is None and numbers.win_cp is None and numbers.win_plies is None:
        return None
    rule = rule or presets.PRESETS["s16"].eval_win
    assert rule is not None  # every preset of a season has one
    return contract.EvalWin(
        bound_cp=_or(numbers.win_cp, rule.bound_cp), plies=_or(numbers.win_plies, rule.plies)
    )


def _or(given: int | None, other: int) -> int:
    return other if given is None else given


def tiebreaks(rules: Rules, kind: Kind) -> tuple[model.Criterion, ...]:
    """Return the chain of the rule text; nTCEC's Swiss begins with the opponents' score."""
    if rules.name == "frc":
        return _FRC
    if rules.name == "ntcec1":
        swiss = kind == "swiss"
        return (_C.OPPONENTS_SCORE if swiss else _C.SONNEBORN_BERGER, *_NTCEC_REST)
    return _SEASON


def table(rules: Rules) -> Table:
    """Return the table that orders a round robin."""
    return rules.table or ("circle" if rules.name == "ntcec1" else "berger")


def pairs(rules: Rules, engines: int, event: str) -> int | None:
    """Return the pairs of games of a Cup's match: as given, or by the round (CUP-3c)."""
    if rules.pairs is not None or rules.name != "cup":
        return rules.pairs
    return _BRONZE_PAIRS if "bronze" in event.lower() else _CUP_PAIRS.get(engines)
