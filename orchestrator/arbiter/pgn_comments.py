"""The comment behind every move, field by field as TCEC's own tools read it.

Fixed order, separator ``", "``, trailing comma: ``d, sd, pd, mt, tl, s, n, pv, tb, h,
ph, wv, R50, Rd, Rr, mb,``; a book move has ``book, mb=...,``. What an engine did not
say is not made up: ``pd``, ``pv`` and ``wv`` are left out then, and ``tb`` is ``null``.
Times are such that ``tl = tl before - mt + increment`` holds exactly in milliseconds.
"""

from __future__ import annotations

import dataclasses

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import clock, score

RULE_OFF = -1000  # Rd and Rr of an event that does not play with the rule

_COUNTED = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN)


@dataclasses.dataclass
class Predictions:
    """What one engine expects its opponent to play, and how often it was right."""

    made: int = 0
    hits: int = 0
    expected: str | None = None
    shown: str | None = None

    def expect(self, board: chess.Board, uci: str | None) -> None:
        """Remember the reply expected on ``board``; nonsense counts as no prediction."""
        line = boards.variation(board, [uci] if uci else [])
        self.expected = line[0] if line else None

    def answer(self, san: str) -> None:
        """Compare the opponent's move with the reply expected to it."""
        self.shown, self.expected = self.expected, None
        if self.shown is not None:
            self.made += 1
            self.hits += self.shown == san

    def rate(self) -> str:
        """Return the share of predictions that came true, in percent, cut to 0.1."""
        permille = 1000 * self.hits // self.made if self.made else 0
        return f"{permille // 10}.{permille % 10}"


def book(board: chess.Board) -> str:
    """Return the comment of a book move; ``board`` stands after it."""
    return f"book, mb={material_balance(board)},"


def engine(
    before: chess.Board, after: chess.Board, ply: contract.PlyRecord, own: Predictions
) -> str:
    """Return the comment of an engine's move from the positions around it."""
    depth = max(ply.depth or 1, 1)
    pv = boards.variation(before, ply.pv)
    counters = ply.counters
    fields = {
        "d": str(depth),
        "sd": str(max(ply.seldepth or 0, depth)),
        "pd": own.shown,
        "mt": str(move_time_ms(ply)),
        "tl": str(time_left_ms(ply)),
        "s": str(speed(ply)),
        "n": str(ply.nodes or 0),
        "pv": " ".join(pv) or None,
        "tb": "null" if ply.tbhits is None else str(ply.tbhits),
        "h": f"{(ply.hashfull or 0) / 10:.1f}",
        "ph": own.rate(),
        "wv": (score.text(ply.score, ply.side) or None) if ply.score else None,
        "R50": str(max(0, 100 - after.halfmove_clock) // 2),
        "Rd": str(RULE_OFF if counters is None or counters.rd is None else counters.rd),
        "Rr": str(RULE_OFF if counters is None or counters.rr is None else counters.rr),
        "mb": material_balance(after),
    }
    said = (f"{name}={value}" for name, value in fields.items() if value is not None)
    return ", ".join(said) + ","


def interruption(one: contract.Interruption) -> str:
    """Return what is told of an interruption behind the move that it followed.

    ``tl`` of both sides' next moves counts from the clocks with the compensation.
    """
    given = (one.white_compensation_ns, one.black_compensation_ns)
    seconds = "".join(f", {ns / 1e9:.3f} s" for ns in given) if any(given) else ""
    return f"Interrupted: {one.cause}; {one.verdict}{seconds}."


def move_time_ms(ply: contract.PlyRecord) -> int:
    """Return the move's time in ms, as the difference of the clock's whole ms."""
    return clock.whole_ms(ply.margin_ns + ply.think_ns) - clock.whole_ms(ply.margin_ns)


def time_left_ms(ply: contract.PlyRecord) -> int:
    """Return the mover's clock after the move in ms, increment included."""
    left = ply.white_clock_ns if ply.side == "white" else ply.black_clock_ns
    return clock.whole_ms(left)


def speed(ply: contract.PlyRecord) -> int:
    """Return the engine's nodes per second, else nodes by the time it was charged."""
    if ply.nps is not None:
        return ply.nps
    return (ply.nodes or 0) * 1_000_000_000 // max(ply.think_ns, 1)


def material_balance(board: chess.Board) -> str:
    """Return White's pieces less Black's: pawns, knights, bishops, rooks, queens."""
    counts = (
        chess.popcount(board.pieces_mask(kind, chess.WHITE))
        - chess.popcount(board.pieces_mask(kind, chess.BLACK))
        for kind in _COUNTED
    )
    return "".join(f"{count:+d}" for count in counts)
