"""The rules of the five rule texts, by name; an event file may begin with one of them.

S16 and S17 play draw rule, win rule and tablebases; Cup and FRC few-pieces
draw and tablebases; nTCEC season 1 draw rule and win rule. "Move 35" is ply 70.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator import contract


def _season(name: str) -> contract.Adjudication:
    return contract.Adjudication(
        rules=name,
        syzygy=contract.Syzygy(men=6),  # S16-11d, S17-11d
        eval_draw=contract.EvalDraw(min_ply=70, bound_cp=8, plies=10),  # S16-11b, S17-11b
        eval_win=contract.EvalWin(bound_cp=1000, plies=10),  # S16-11c, S17-11c
    )


def _few_pieces(name: str) -> contract.Adjudication:
    return contract.Adjudication(
        rules=name,
        syzygy=contract.Syzygy(men=6),  # CUP-6c, FRC-6c
        few_pieces_draw=contract.FewPiecesDraw(pieces=6, bound_cp=25, plies=8),  # CUP-6b, FRC-6b
    )


PRESETS: Final[Mapping[str, contract.Adjudication]] = {
    "s16": _season("s16"),
    "s17": _season("s17"),
    "cup": _few_pieces("cup"),
    "frc": _few_pieces("frc"),
    "ntcec1": contract.Adjudication(  # N1 GUI Adjudication
        rules="ntcec1",
        eval_draw=contract.EvalDraw(min_ply=82, bound_cp=5, plies=10),
        eval_win=contract.EvalWin(bound_cp=650, plies=6),
    ),
}
