"""A finished game, whole: how it ended, what its engines were, what the archive keeps."""

from __future__ import annotations

import enum
from typing import Annotated, Literal

import pydantic

from orchestrator.common import text
from orchestrator.contract import codec, engines, orders, played


class Ending(enum.StrEnum):
    """How a game came to its end; the words of it are made by ``arbiter.verdict``."""

    CHECKMATE = "checkmate"
    STALEMATE = "stalemate"
    INSUFFICIENT = "insufficient"
    FIFTY_MOVES = "fifty-moves"
    THREEFOLD = "threefold"
    TIME = "time"
    DISCONNECT = "disconnect"
    STALL = "stall"
    ILLEGAL = "illegal"
    ORGANIZERS = "organizers"  # the organizers' word, with their reason in the journal
    SYZYGY = "syzygy"
    EVAL_DRAW = "eval-draw"
    FEW_PIECES_DRAW = "few-pieces-draw"
    EVAL_WIN = "eval-win"
    SCORE_DRAW = "score-draw"
    SCORE_RESIGN = "score-resign"
    MAX_MOVES = "max-moves"
    INTERRUPTED = "interrupted"  # decided by the evals at an interruption (S16-15b ii, iii)
    RESIGN = "resign"
    FALSE_CLAIM = "false-claim"
    AGREEMENT = "agreement"


class Outcome(codec.Message):
    """The result of a finished game and its reason; ``loser`` where somebody lost."""

    result: codec.Result
    ending: Ending
    loser: codec.Side | None = None
    details: str
    note: str = ""
    refused: bool = False  # the loser's handshake says that it cannot play such a game: no crash


# What an engine calls itself is a stranger's: one line, with nothing in it that is not seen.
StrangersName = Annotated[str, pydantic.AfterValidator(text.one_line)]


class OptionSetting(codec.Message):
    """What was asked of an engine option, what it offered, what was set."""

    name: str
    asked: str
    offered: str | None
    set: str | None
    remark: str = ""


class EngineReport(codec.Message):
    """What an engine said of itself and how its process ended."""

    id_name: StrangersName = ""
    id_author: StrangersName = ""
    options: tuple[OptionSetting, ...] = ()
    pid: int | None = None
    sandbox: Literal["", "bubblewrap", "plain"] = ""  # what it was confined by
    exit: str = ""
    stderr_tail: str = ""
    box: str = ""  # the host whose clock it was charged by; '': the hall's
    gpus: tuple[str, ...] = ()  # what it ran on, by name and UUID
    gpu_use: tuple[engines.GpuUse, ...] = ()


class RMobility(codec.Message):
    """Who restricted whom the most (r-mobility, TCEC FRC, rule 3): the holder, his G, points.

    ``white_points`` is White's share of the one point of the game.
    """

    g: float
    holder: codec.Side
    white_points: float


class GameRecord(codec.Message):
    """A finished game, whole: what the archive keeps and the PGN is written from."""

    schema_version: int = codec.SCHEMA
    order: orders.GameOrder
    attempt: str
    token: str = ""
    hall: str = ""
    lane: str = ""
    host: str = ""
    started_ms: codec.Moment
    ended_ms: codec.Moment
    white: EngineReport
    black: EngineReport
    plies: tuple[played.PlyRecord, ...]
    outcome: Outcome
    final_fen: str
    r_mobility: RMobility | None = None
    remarks: tuple[str, ...] = ()
    eco: str = ""
    opening: str = ""
    interruptions: tuple[played.Interruption, ...] = ()
