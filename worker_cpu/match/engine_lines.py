"""Search engines' lines for wrong mates and for lines that go into the PGN.

The switches are fastchess' ``-check-mate-pvs`` and ``-pgnout match_line=``. Works on the traffic
of one game, of UCI engines: which position a line belongs to is what the engine was last told.
Warnings have fastchess' words, so that scripts find them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

import chess

from orchestrator import contract
from orchestrator.arbiter import record as pgn_record
from orchestrator.arbiter import san
from worker_cpu.match import arguments
from worker_cpu.protocols import uci
from worker_cpu.referee import result
from worker_cpu.wire import frames

LINES, JOINED = "\n", " :: "  # between a warning's parts; the second with -testEnv


@dataclasses.dataclass
class _Seat:
    """What one engine was told and has said in its present search."""

    position: str = "startpos"
    moves: tuple[str, ...] = ()
    matched: dict[int, str] = dataclasses.field(default_factory=dict)  # the last line by pattern
    warned: bool = False
    rest: dict[str, bytes] = dataclasses.field(default_factory=dict)  # torn lines by direction


class GameLines:
    """The lines of one game: ``copied`` of them by ply, and ``warnings``."""

    def __init__(self, settings: arguments.Settings, names: Mapping[str, str]) -> None:
        """Look for what a match asks for; ``names`` are the engines' by their seats."""
        self.copied: dict[int, list[str]] = {}
        self.warnings: list[result.Warned] = []
        self._patterns = [re.compile(pattern) for pattern in settings.match_lines]
        self._checks, self._names = settings.check_mate_pvs, names
        self._joint = JOINED if settings.test_env else LINES
        self._chess960 = settings.variant == "fischerandom"
        self._seats = {seat: _Seat() for seat in names}

    def hear(self, chunk: frames.Chunk) -> None:
        """Take some traffic of a UCI engine."""
        seat = self._seats.get(chunk.seat)
        if seat is None or chunk.direction == "!":
            return
        *lines, rest = (seat.rest.get(chunk.direction, b"") + chunk.data).split(b"\n")
        seat.rest[chunk.direction] = rest
        for line in lines:
            if chunk.direction == ">":
                self._note_position(seat, line)
            else:
                self._said(seat, chunk.seat, line)

    def _note_position(self, seat: _Seat, line: bytes) -> None:
        if not line.startswith(b"position "):
            return
        position, _, moves = line.decode(errors="replace").partition(" moves ")
        seat.position, seat.moves = position.removeprefix("position "), tuple(moves.split())
        seat.matched, seat.warned = {}, False

    def _said(self, seat: _Seat, name: str, line: bytes) -> None:
        if self._patterns:
            text = line.decode(errors="replace").strip()
            for at, pattern in enumerate(self._patterns):
                if pattern.search(text):
                    seat.matched[at] = text
        if line.startswith(b"bestmove"):
            if seat.matched:  # a search that was broken off is followed by another for its ply
                self.copied[len(seat.moves) + 1] = [seat.matched[at] for at in sorted(seat.matched)]
            seat.matched = {}
        elif self._checks and b" mate " in line and b" pv " in line and not seat.warned:
            problem = self._problem(seat, line)
            if problem:
                seat.warned = True  # a wrong line is said again at every depth
                self._warn(seat, f"{problem} from {self._names[name]}", line)

    def _problem(self, seat: _Seat, line: bytes) -> str:
        """Say what is wrong with a line that claims a mate, '' for a right one."""
        search = uci.last_search(line)
        mate = None if search.score is None else search.score.mate
        if not mate or not search.pv:
            return ""
        plies = 2 * mate - 1 if mate > 0 else -2 * mate
        fen = seat.position.removeprefix("fen ")
        board = chess.Board(
            chess.STARTING_FEN if fen == "startpos" else fen, chess960=self._chess960
        )
        for move in seat.moves:
            if san.push_uci(board, move) is None:
                return ""  # not a position of this game
        for move in search.pv:
            ended = "checkmate" if board.is_checkmate() else "stalemate"
            if san.push_uci(board, move) is None:
                over = not any(board.legal_moves)
                wrong = f"PV continues after {ended}" if over else "Illegal PV move"
                return f"{wrong} - move {move}"
        if len(search.pv) != plies:
            return f"{'Incomplete' if len(search.pv) < plies else 'Too long'} mating PV -"
        return "" if board.is_checkmate() else "Mating PV does not end with checkmate -"

    def _warn(self, seat: _Seat, problem: str, line: bytes) -> None:
        parts = (
            f"Warning; {problem}",
            f"Info; {line.decode(errors='replace').strip()}",
            f"Position; {seat.position}",
            f"Moves; {' '.join(seat.moves)}",
        )
        self.warnings.append(result.Warned(self._joint.join(parts)))

    def written(self, ended: result.Ended, settings: arguments.Settings) -> result.Ended:
        """Return a finished game with its warnings, and with copied lines in its PGN."""
        ended = dataclasses.replace(ended, remarks=(*ended.remarks, *self.warnings))
        if ended.record is None or settings.pgn is None:
            return ended
        text = pgn_record.pgn(
            ended.record(),
            minimal=settings.minimal,
            comments=settings.comment_style,
            fields=settings.fields,
            notation=settings.notation,
            lines=self.copied,
        )
        return dataclasses.replace(ended, pgn=text)


def listens(settings: arguments.Settings) -> bool:
    """Say whether a match looks for anything in its engines' lines."""
    return bool(settings.match_lines or settings.check_mate_pvs)


def seats(engines: Sequence[contract.EngineSpec]) -> dict[str, str]:
    """Return the names of White's and Black's engine by their seats, of those that speak UCI."""
    pairs = zip("wb", engines, strict=True)
    return {seat: engine.name for seat, engine in pairs if engine.protocol == "uci"}
