"""The comment behind every move: TCEC's, field by field as its own tools read it; peers'.

Fixed order, separator ``", "``, trailing comma: ``d, sd, pd, mt, tl, s, n, pv, tb, h,
ph, ponder, wv, R50, Rd, Rr, mb,``; a book move has ``book, mb=...,``. What an engine did not
say is not made up: ``pd``, ``pv`` and ``wv`` are left out then, and ``tb`` is ``null``.
``ponder`` is there behind a ponder hit alone: the ms that the engine had thought already when
its clock began. Times are such that ``tl = tl before - mt + increment`` holds exactly in
milliseconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import clock, score

RULE_OFF = -1000  # Rd and Rr of an event that does not play with the rule


@dataclasses.dataclass
class Predictions:
    """What one engine expects its opponent to play, and how often it was right."""

    made: int = 0
    hits: int = 0
    expected: str | None = None
    shown: str | None = None

    def expect(self, board: chess.Board, uci: str | None) -> None:
        """Remember the reply expected on ``board``; nonsense counts as no prediction."""
        line = boards.variation(board, [uci]) if uci else ()
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


class Material:
    """The material along a game: counted again where a piece was captured or a pawn promoted."""

    def __init__(self) -> None:
        self._men = (0, 0)
        self._balance = ""

    def balance(self, board: chess.Board) -> str:
        """Return ``material_balance`` of a game's next position."""
        men = board.occupied.bit_count(), board.pawns.bit_count()
        if men != self._men:
            self._men, self._balance = men, material_balance(board)
        return self._balance


def book(board: chess.Board) -> str:
    """Return the comment of a book move; ``board`` stands after it."""
    return f"book, mb={material_balance(board)},"


def engine(
    after: chess.Board, ply: contract.PlyRecord, pv: Sequence[str], own: Predictions, balance: str
) -> str:
    """Return the comment of an engine's move; ``pv`` is its variation in SAN."""
    depth = max(ply.depth or 1, 1)
    counters = ply.counters
    rd = RULE_OFF if counters is None or counters.rd is None else counters.rd
    rr = RULE_OFF if counters is None or counters.rr is None else counters.rr
    predicted = "" if own.shown is None else f"pd={own.shown}, "
    line = f"pv={' '.join(pv)}, " if pv else ""
    pondered = ponder_ms(ply)
    head_start = "" if pondered is None else f"ponder={pondered}, "
    value = score.text(ply.score, ply.side) if ply.score else ""
    evaluation = f"wv={value}, " if value else ""
    return (
        f"d={depth}, sd={max(ply.seldepth or 0, depth)}, {predicted}mt={move_time_ms(ply)}, "
        f"tl={time_left_ms(ply)}, s={speed(ply)}, n={ply.nodes or 0}, {line}"
        f"tb={'null' if ply.tbhits is None else ply.tbhits}, h={(ply.hashfull or 0) / 10:.1f}, "
        f"ph={own.rate()}, {head_start}{evaluation}R50={max(0, 100 - after.halfmove_clock) // 2}, "
        f"Rd={rd}, Rr={rr}, mb={balance},"
    )


def cutechess(ply: contract.PlyRecord) -> str:
    """Return cutechess-cli's comment: the mover's score, depth, time (``+0.29/19 0.40s``)."""
    evaluation = ""
    if ply.depth:
        evaluation = f"{_own_score(ply)}/{ply.depth} "
    ms = move_time_ms(ply)
    digits = 3 if ms < 100 else 2 if ms < 1_000 else 1 if ms < 10_000 else 0
    return evaluation + (f"{ms / 1000:.{digits}f}s" if ms else "0s")


def fastchess(ply: contract.PlyRecord, fields: AbstractSet[str]) -> str:
    """Return fastchess' comment: score, depth, time, and the fields that were asked for."""
    fields_by_name = {
        "timeleft": f"tl={time_left_ms(ply) / 1000:.3f}s",
        "nodes": f"n={ply.nodes or 0}",
        "seldepth": f"sd={ply.seldepth or 0}",
        "nps": f"nps={speed(ply)}",
        "hashfull": f"hashfull={ply.hashfull or 0}",
        "tbhits": f"tbhits={ply.tbhits or 0}",
        "pv": f'pv="{" ".join(ply.pv)}"',
    }
    head = f"{_own_score(ply)}/{ply.depth or 0} {move_time_ms(ply) / 1000:.3f}s"
    return ", ".join([head, *(text for name, text in fields_by_name.items() if name in fields)])


def _own_score(ply: contract.PlyRecord) -> str:
    """Return the mover's score: pawns with a sign, mates as plies (``+M5``)."""
    if ply.score is None or (ply.score.cp is None and ply.score.mate is None):
        return ""
    if ply.score.mate is not None:
        ahead = ply.score.mate > 0
        plies = 2 * ply.score.mate - 1 if ahead else -2 * ply.score.mate
        return f"{'+' if ahead else '-'}M{plies}"
    cp = ply.score.cp or 0
    return f"{'+' if cp > 0 else '-' if cp < 0 else ''}{abs(cp) / 100:.2f}"


def ponder_ms(ply: contract.PlyRecord) -> str | None:
    """Return how long an engine had pondered on this position, in ms, of a hit alone."""
    if ply.pondered != "hit" or ply.pondered_ns is None:
        return None
    return str(clock.whole_ms(ply.pondered_ns))


def interruption(interrupted: contract.Interruption) -> str:
    """Return what is told of an interruption behind the move that it followed.

    ``tl`` of both sides' next moves counts from the clocks with the compensation.
    """
    given = (interrupted.white_compensation_ns, interrupted.black_compensation_ns)
    seconds = "".join(f", {ns / 1e9:.3f} s" for ns in given) if any(given) else ""
    return f"Interrupted: {interrupted.cause}; {interrupted.verdict}{seconds}."


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
    white, black = board.occupied_co[chess.WHITE], board.occupied_co[chess.BLACK]
    pawns, knights, bishops = board.pawns, board.knights, board.bishops
    rooks, queens = board.rooks, board.queens
    return (
        f"{(pawns & white).bit_count() - (pawns & black).bit_count():+d}"
        f"{(knights & white).bit_count() - (knights & black).bit_count():+d}"
        f"{(bishops & white).bit_count() - (bishops & black).bit_count():+d}"
        f"{(rooks & white).bit_count() - (rooks & black).bit_count():+d}"
        f"{(queens & white).bit_count() - (queens & black).bit_count():+d}"
    )
