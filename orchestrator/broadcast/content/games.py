"""One game as viewers see it: every ply with its position, and what the engine said of it.

A ``GameLine`` grows ply by ply and never looks back, so that a game in flight costs the
same at ply 300 as at ply 3, and a rebuild from the same plies gives the same bytes. Evals
are White's view throughout. Both forms, our own and TCEC's comments, come
from the same pass over the moves.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import chess

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.arbiter import clock, eco, pgn_comments, redact, score, verdict
from orchestrator.broadcast.content import variations
from orchestrator.common import text
from orchestrator.engines import limits


@dataclasses.dataclass(frozen=True)
class Shown:
    """One ply: ``number`` counts from 1, ``comment`` is that of TCEC's PGN.

    ``record`` is None for a ply of the book; ``before`` is the number word of PGN, such as
    ``12.`` or, first in a game, ``12...``; ``board`` is the position before the ply.
    """

    number: int
    before: str
    san: str
    uci: str
    squares: tuple[str, str]
    fen: str
    comment: str
    board: chess.Board
    record: contract.PlyRecord | None = None

    @functools.cached_property
    def line(self) -> tuple[variations.Step, ...]:
        """Return the variation that the engine gave; most plies are never asked for theirs."""
        return () if self.record is None else variations.steps(self.board, self.record.pv)

    @property
    def book(self) -> bool:
        """Say whether the ply was played out from the book."""
        return self.record is None

    def data(self) -> dict[str, Any]:
        """Return the ply as plain data; the positions of its variation are asked for apart."""
        fields: dict[str, Any] = {
            "n": self.number,
            "side": "white" if self.fen.split(" ")[1] == "b" else "black",
            "move": self.before,
            "san": self.san,
            "uci": self.uci,
            "squares": list(self.squares),
            "fen": self.fen,
            "book": self.book,
        }
        return fields | (_said(self.record) if self.record else {})

    def full(self) -> dict[str, Any]:
        """Return the ply with the positions of its variation."""
        return self.data() | {"line": [step.data() for step in self.line]}


def _said(ply: contract.PlyRecord) -> dict[str, Any]:
    white_score = None if ply.score is None else score.white_view(ply.score, ply.side)
    counters = ply.counters
    return {
        "eval": score.text(ply.score, ply.side) if ply.score else None,
        "cp": None if white_score is None else white_score.cp,
        "mate": None if white_score is None else white_score.mate,
        "depth": ply.depth,
        "seldepth": ply.seldepth,
        "nodes": ply.nodes,
        "nps": pgn_comments.speed(ply),
        "tbhits": ply.tbhits,
        "hashfull": ply.hashfull,
        "wdl": None if ply.wdl is None else score.white_wdl(ply.wdl, ply.side),
        "move_ms": pgn_comments.move_time_ms(ply),
        "white_clock_ms": clock.whole_ms(ply.white_clock_ns),
        "black_clock_ms": clock.whole_ms(ply.black_clock_ns),
        "counters": None if counters is None else counters.model_dump(),
        "ponder": ply.ponder,
    } | _pondered(ply)


def _pondered(ply: contract.PlyRecord) -> dict[str, Any]:
    """Return what came of a search in the opponent's turn; nothing where there was none."""
    if not ply.pondered:
        return {}
    lasted_ms = None if ply.pondered_ns is None else clock.whole_ms(ply.pondered_ns)
    return {"pondered": ply.pondered, "pondered_ms": lasted_ms}


class GameLine:
    """The plies of one game, as they come."""

    def __init__(self, order: contract.GameOrder) -> None:
        """Set up the opening; raise ``BookError`` for one that cannot be played."""
        self.order = order
        self.start_fen, book, board = _book(order.opening, order.variant)
        self.shown = list(book)
        self._board = board.copy()
        self._own = {
            chess.WHITE: pgn_comments.Predictions(),
            chess.BLACK: pgn_comments.Predictions(),
        }

    @property
    def last(self) -> int:
        """Return the number of the last ply, book plies included."""
        return len(self.shown)

    @property
    def fen(self) -> str:
        """Return the position reached."""
        return self._board.fen()

    @property
    def position(self) -> chess.Board:
        """Return the board, to be looked at and not changed."""
        return self._board

    def push(self, ply: contract.PlyRecord) -> Shown:
        """Add an engine's ply; raise ``ValueError`` when it does not follow."""
        if ply.ply != self.last + 1:
            raise ValueError(f"ply {ply.ply} follows ply {self.last}")
        mover = self._board.turn
        own = self._own[mover]
        pv = boards.variation(self._board, ply.pv)

        def comment(_: chess.Board, after: chess.Board) -> str:
            return pgn_comments.engine(after, ply, pv, own, pgn_comments.material_balance(after))

        shown = self._show(ply.move, comment, ply)
        own.expect(self._board, ply.ponder)
        self._own[not mover].answer(shown.san)
        return shown

    def _show(self, uci: str, comment: Any, ply: contract.PlyRecord | None = None) -> Shown:
        shown = _shown(self._board, uci, self.last + 1, comment, ply)
        self.shown.append(shown)
        return shown

    def opening(self) -> eco.Name:
        """Return ECO code and name: the book's, else what the moves are known as."""
        played = [ply.uci for ply in self.shown if not ply.book]
        return eco.of_order(self.order, played[: eco.DEEPEST])


@functools.lru_cache(maxsize=64)
def _book(
    opening: contract.Opening, variant: boards.Variant
) -> tuple[str, tuple[Shown, ...], chess.Board]:
    """Return start position, plies of the book and the board behind them; not to be changed.

    Both games of a pair have them, and a game is shown as it begins, runs and ends. Raise
    ``BookError`` for an opening that cannot be played.
    """
    board = boards.start_board(opening, variant)
    start, shown = board.fen(), list[Shown]()
    for move in boards.book_moves(board, opening):
        uci = board.uci(move)
        shown.append(_shown(board, uci, len(shown) + 1, lambda _, after: pgn_comments.book(after)))
    return start, tuple(shown), board


def _shown(
    board: chess.Board,
    uci: str,
    number: int,
    comment: Callable[[chess.Board, chess.Board], str],
    ply: contract.PlyRecord | None = None,
) -> Shown:
    """Play a ply on a board; return it."""
    before = board.copy(stack=False)
    move = board.parse_uci(uci)
    san = board.san_and_push(move)
    return Shown(
        number=number,
        before=_number(before, first=number == 1),
        san=san,
        uci=uci,
        squares=variations.squares(before, move.uci()),
        fen=board.fen(),
        comment=comment(before, board),
        board=before,
        record=ply,
    )


def _number(board: chess.Board, *, first: bool) -> str:
    if board.turn == chess.WHITE:
        return f"{board.fullmove_number}."
    return f"{board.fullmove_number}..." if first else ""


def of_record(record: contract.GameRecord) -> GameLine:
    """Return the plies of a finished game."""
    line = GameLine(record.order)
    for ply in record.plies:
        line.push(ply)
    return line


# -- the game as a document ------------------------------------------------------------


def card(
    spec: contract.EngineSpec,
    allowed: contract.Limits,
    options: Sequence[tuple[str, str]],
    author: str = "",
) -> dict[str, Any]:
    """Return an engine's card; ``options`` are those that were set, by name and value.

    ``author`` is what the engine says, where the roster does not know it.
    """
    named = {name.lower(): value for name, value in options}
    return {
        "id": spec.id,
        "name": spec.name,
        "version": spec.version,
        "author": spec.author or author,
        "country": spec.country,
        "rating": spec.rating,
        "protocol": spec.protocol,
        "threads": text.whole(named.get("threads") or named.get("cores")) or allowed.threads,
        "hash_mb": text.whole(named.get("hash") or named.get("memory")) or allowed.hash_mb,
        "tablebases": tablebases(options),
        "options": [{"name": name, "value": value} for name, value in options],
    }


def tablebases(options: Sequence[tuple[str, str]]) -> list[str]:
    """Return the kinds of endgame tables that an engine was given a path to."""
    roles = {limits.role(name) for name, value in options if value not in {"", "<empty>"}}
    return [role.value.partition(" ")[0] for role in limits.PATHS if role in roles]


def reported(report: contract.EngineReport) -> list[tuple[str, str]]:
    """Return the options that an engine was given, as the public may read them."""
    given = ((option.name, option.set) for option in report.options)
    return [(name, redact.option(value)) for name, value in given if value is not None]


def asked(order: contract.GameOrder, side: contract.Side) -> list[tuple[str, str]]:
    """Return what the order asks of an engine, as long as it has not reported itself."""
    wished = order.engine(side).options
    return [(name, redact.option(str(value))) for name, value in wished.items()]


def head(line: GameLine) -> dict[str, Any]:
    """Return what a game is, whatever has been played of it."""
    order, named = line.order, line.opening()
    return {
        "season": order.season,
        "event": order.event,
        "event_name": order.event_name,
        "game": order.game,
        "number": order.number,
        "round": order.round,
        "variant": order.variant,
        "start_fen": line.start_fen,
        "start_number": start_number(order),
        "time_control": {
            "white": str(order.control("white")),
            "black": str(order.control("black")),
        },
        "base_ms": order.time_control.base_ms or None,
        "opening": {"eco": named.eco, "name": named.name},
    }


def start_number(order: contract.GameOrder) -> int | None:
    """Return the Chess960 number of the start position, None in standard chess."""
    if order.variant == "standard":
        return None
    return boards.start_board(order.opening, order.variant).chess960_pos()


def finished(
    record: contract.GameRecord, line: GameLine, *, recorded: bool = True, annulled: bool = False
) -> dict[str, Any]:
    """Return a finished game, whole; ``line`` holds its plies.

    Without ``recorded`` only the journal tells of it, which holds no moves; an ``annulled`` one
    counts for nobody.
    """
    allowed = record.order.limits
    return head(line) | {
        "status": "finished",
        "recorded": recorded,
        "white": card(record.order.white, allowed, reported(record.white), record.white.id_author),
        "black": card(record.order.black, allowed, reported(record.black), record.black.id_author),
        "plies": [shown.data() for shown in line.shown],
        "result": record.outcome.result,
        "annulled": annulled,
        "details": record.outcome.details,
        "note": redact.text(record.outcome.note),
        "ending": record.outcome.ending.value,
        "adjudicated": verdict.is_adjudicated(record.outcome.ending),
        "started_ms": record.started_ms,
        "ended_ms": record.ended_ms,
        "interruptions": [
            {"ply": interruption.ply, "cause": interruption.cause, "verdict": interruption.verdict}
            for interruption in record.interruptions
        ],
    }
