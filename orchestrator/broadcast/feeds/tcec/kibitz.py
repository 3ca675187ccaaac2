"""``liveeval*.json`` and ``data*.json``: what kibitzers found, as TCEC's viewers read it.

``liveeval.json`` holds one evaluation for each position that the game has left, from the
mover's side; ``data.json`` the one of the position on the board, from White's. Viewers
take the ply from the number before the first move of ``pv``, and break on an empty list of
moves or a line without a move: where there is nothing of that kind there is no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import score
from orchestrator.broadcast.content import games, variations

_UNITS: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k"))


class Files(NamedTuple):
    """The two files of a desk, and their events in the socket.io protocol."""

    whole: str
    latest: str
    whole_event: str
    latest_event: str


FILES: Final = (
    Files("liveeval.json", "data.json", "livechart", "liveeval"),
    Files("liveeval1.json", "data1.json", "livechart1", "liveeval1"),
)


def position(line: games.GameLine, ply: int) -> chess.Board:
    """Return the position after a ply, 0 for the start position."""
    fen = line.shown[ply - 1].fen if ply else line.start_fen
    return chess.Board(fen, chess960=line.order.variant == "fischerandom")


def move(board: chess.Board, evaluation: contract.Evaluation) -> dict[str, Any] | None:
    """Return an evaluation from the mover's side, None for one without a legal move."""
    pv = numbered(board, evaluation.pv)
    if not pv:
        return None
    fields = {
        "depth": f"{evaluation.depth or 0}/{evaluation.seldepth or evaluation.depth or 0}",
        "eval": _eval(evaluation.score, "white"),  # the mover's own view
        "nodes": evaluation.nodes or 0,
        "pv": pv,
        "speed": speed(evaluation.nps or 0),
        "tbhits": evaluation.tbhits or 0,
    }
    return fields | ({} if evaluation.wdl is None else {"wdl": " ".join(map(str, evaluation.wdl))})


def whole(
    line: games.GameLine, moves: Mapping[int, dict[str, Any]], by: contract.Evaluation
) -> dict[str, Any] | None:
    """Return the game's file: ``moves`` by ply, ``by`` whose engine it is, None without any."""
    left = [moves[ply] for ply in sorted(moves) if ply < line.last]
    return _head(line, by) | {"moves": left} if left else None


def latest(
    line: games.GameLine, shown_move: Mapping[str, Any], by: contract.Evaluation
) -> dict[str, Any]:
    """Return the file of the position on the board; ``shown_move`` is its ``move``."""
    board = line.position
    side: contract.Side = "white" if board.turn else "black"
    view = {"eval": _eval(by.score, side)}
    if by.wdl is not None:
        view["wdl"] = " ".join(map(str, by.wdl if board.turn else by.wdl[::-1]))
    color = 0 if board.turn else 1
    ply_of = {"color": color, "plynum": 2 * (board.fullmove_number - 1) + color}
    return dict(shown_move) | view | _head(line, by) | ply_of


def _head(line: games.GameLine, by: contract.Evaluation) -> dict[str, Any]:
    order = line.order
    return {
        "engine": by.engine,
        "desc": by.description,
        "round": _number(order.round),
        "gameno": order.number,
    }


def _number(text: str) -> float | None:
    """Return a round as the number that viewers compare loosely, None for another word."""
    return float(text) if text.replace(".", "", 1).isdecimal() else None


def _eval(score_found: contract.Score, mover: contract.Side) -> float | str:
    """Return pawns as a number, a mate in TCEC's words."""
    if score_found.mate is not None or score_found.cp is None:
        return score.text(score_found, mover)
    return (score_found.cp if mover == "white" else -score_found.cp) / 100


def numbered(board: chess.Board, ucis: tuple[str, ...]) -> str:
    """Return a variation in SAN with its move numbers: ``28... Kh7 29. Qxd4``."""
    line = board.copy(stack=False)
    parts = []
    for san in boards.variation(board, ucis[: variations.LONGEST]):
        if line.turn:
            parts.append(f"{line.fullmove_number}.")
        elif not parts:
            parts.append(f"{line.fullmove_number}...")
        parts.append(san)
        line.push_san(san)
    return " ".join(parts)


def speed(nps: int) -> str:
    """Return a speed in the words of viewers: ``21Mn/s``."""
    for unit, letter in _UNITS:
        if nps >= unit:
            digits = 1 if nps < 10 * unit else 0
            return f"{nps / unit:.{digits}f}{letter}n/s"
    return f"{nps}n/s"
