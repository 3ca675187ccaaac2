"""Messages between orchestrator and workers, and the one JSON codec for them.

Every message carries the schema version of its writer. A reader accepts its own
version and older ones; fields are only ever added, with a default. Times of day are
milliseconds since the epoch by Redis' clock (``_ms``), durations on an engine's clock
are nanoseconds (``_ns``), depths are plies, scores are centipawns or moves to mate
from the mover's side.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
from collections.abc import Mapping
from typing import Any, Literal, Self, TypeAlias

import pydantic

from orchestrator import errors

SCHEMA = 1  # version of every message and journal entry written by this code

Side: TypeAlias = Literal["white", "black"]
Result: TypeAlias = Literal["1-0", "0-1", "1/2-1/2"]


def dumps(value: Any) -> str:
    """Encode plain data as compact JSON, the same bytes for the same value."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def loads(text: str | bytes) -> Any:
    """Decode JSON; raise ``ValueError`` when it is not JSON."""
    return json.loads(text)


class Message(pydantic.BaseModel):
    """A frozen value that crosses a process border."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    def encode(self) -> str:
        """Return the JSON text of this message."""
        return dumps(self.model_dump(mode="json"))

    @classmethod
    def decode(cls, text: str | bytes) -> Self:
        """Read the JSON text of this message; raise ``pydantic.ValidationError``."""
        return cls.model_validate_json(text)


@dataclasses.dataclass(frozen=True, order=True)
class Token:
    """A fencing token: grows with every claim in a hall, and with every restore."""

    epoch: int
    n: int

    def __str__(self) -> str:
        """Write the token as ``epoch.n``, its form in Redis."""
        return f"{self.epoch}.{self.n}"

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read ``epoch.n``; raise ``ValueError`` when it is not a token."""
        epoch, n = text.split(".")
        return cls(int(epoch), int(n))


# -- the game order ----------------------------------------------------------------

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)?")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


class TimeControl(Message):
    """Base time and increment per move for the whole game, in milliseconds."""

    base_ms: int = pydantic.Field(gt=0)
    increment_ms: int = pydantic.Field(ge=0)

    @classmethod
    def parse(cls, text: str) -> TimeControl:
        """Read ``30+5``: minutes plus seconds, as the rule texts write it.

        Units may be given (``2s+50ms``, ``1.5m+1s``). Raise ``ValueError``.
        """
        base, plus, increment = text.replace(" ", "").partition("+")
        base_ms = _duration_ms(base, "m")
        return cls(base_ms=base_ms, increment_ms=_duration_ms(increment, "s") if plus else 0)

    def __str__(self) -> str:
        """Write the control as PGN's TimeControl tag does: seconds plus seconds."""
        return f"{self.base_ms / 1000:.12g}+{self.increment_ms / 1000:.12g}"


def _duration_ms(text: str, unit: str) -> int:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"not a duration: {text!r}")
    return round(float(match[1]) * _UNIT_MS[match[2] or unit])


class Opening(Message):
    """A start position and the book moves (UCI notation) played out by the referee."""

    fen: str | None = None
    moves: tuple[str, ...] = ()
    name: str = ""
    eco: str = ""


class EngineSpec(Message):
    """What a hall needs to know to start an engine: the roster's entry, pinned."""

    id: str
    name: str
    author: str = ""
    protocol: Literal["uci"] = "uci"
    command: tuple[str, ...] = pydantic.Field(min_length=1)
    directory: str | None = None
    options: Mapping[str, str | int | bool] = {}
    rating: int | None = None


class Limits(Message):
    """Limits set on every engine of an event (RULEBOOK §2 "Limits")."""

    threads: int = pydantic.Field(default=1, ge=1)
    hash_mb: int = pydantic.Field(default=16, ge=1)
    syzygy_path: str | None = None


class Timeouts(Message):
    """Time-outs off the clock, and how long after its flag an engine is waited for."""

    start_ms: int = 60_000  # process start to uciok: big networks load here
    ready_ms: int = 120_000  # readyok: hash allocation and tablebase loading
    stop_ms: int = 1_000  # `stop` goes out this long after the flag (DESIGN §4)
    stall_ms: int = 10_000  # nothing this long after `stop` is a stalled connection
    quit_ms: int = 2_000  # `quit` to exit, then the dead man kills


class GameOrder(Message):
    """Everything a hall needs to play one game; the referee needs nothing else."""

    schema_version: int = SCHEMA
    season: str
    season_name: str
    event: str
    event_name: str
    game: str
    number: int
    round: str
    white: EngineSpec
    black: EngineSpec
    time_control: TimeControl
    time_margin_ms: int = 0
    opening: Opening = Opening()
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    variant: Literal["standard", "fischerandom"] = "standard"


# -- plies and the game record -----------------------------------------------------


class Score(Message):
    """An exact engine score from the mover's side: centipawns, or moves to mate."""

    cp: int | None = None
    mate: int | None = None


class PlyRecord(Message):
    """One completed engine ply: the move, both clocks after it, and what was claimed.

    ``ply`` counts from the game's start position, book plies included. ``margin_ns`` is
    the time that was left when the move arrived, before the increment.
    """

    schema_version: int = SCHEMA
    ply: int
    side: Side
    move: str
    san: str
    think_ns: int
    margin_ns: int
    overhead_ns: int
    white_clock_ns: int
    black_clock_ns: int
    score: Score | None = None
    depth: int | None = None
    seldepth: int | None = None
    nodes: int | None = None
    nps: int | None = None
    tbhits: int | None = None
    hashfull: int | None = None
    pv: tuple[str, ...] = ()
    ponder: str | None = None


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


class Outcome(Message):
    """The result of a finished game and its reason; ``loser`` where somebody lost."""

    result: Result
    ending: Ending
    loser: Side | None = None
    details: str
    note: str = ""


class OptionSetting(Message):
    """What was asked of an engine option, what it offered, what was set."""

    name: str
    asked: str
    offered: str | None
    set: str | None
    remark: str = ""


class EngineReport(Message):
    """What an engine said of itself and how its process ended."""

    id_name: str = ""
    id_author: str = ""
    options: tuple[OptionSetting, ...] = ()
    pid: int | None = None
    exit: str = ""
    stderr_tail: str = ""


class GameRecord(Message):
    """A finished game, whole: what the archive keeps and the PGN is written from."""

    schema_version: int = SCHEMA
    order: GameOrder
    attempt: str
    token: str = ""
    hall: str = ""
    lane: str = ""
    host: str = ""
    started_ms: int
    ended_ms: int
    white: EngineReport
    black: EngineReport
    plies: tuple[PlyRecord, ...]
    outcome: Outcome
    final_fen: str


# -- the journal -------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Draft:
    """A fact that is not in the journal yet."""

    kind: str
    data: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Entry:
    """A journaled fact; ``seq`` counts from 1 without gaps, ``at_ms`` is Redis' time."""

    seq: int
    at_ms: int
    kind: str
    by: str
    data: Mapping[str, Any]
    token: str = ""
    schema_version: int = SCHEMA

    def line(self) -> str:
        """Return the entry as its line of ``journal.jsonl``, without the line end."""
        return dumps(
            {
                "seq": self.seq,
                "v": self.schema_version,
                "at_ms": self.at_ms,
                "kind": self.kind,
                "by": self.by,
                "token": self.token,
                "data": self.data,
            }
        )

    @classmethod
    def from_line(cls, line: str) -> Entry:
        """Read a line of ``journal.jsonl``; raise ``LedgerDamagedError``."""
        try:
            raw = loads(line)
            return cls(
                seq=int(raw["seq"]),
                at_ms=int(raw["at_ms"]),
                kind=str(raw["kind"]),
                by=str(raw["by"]),
                data=raw["data"],
                token=str(raw["token"]),
                schema_version=int(raw["v"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise errors.LedgerDamagedError(f"not a journal line: {line[:80]!r}") from error


class AttemptStarted(Message):
    """Journaled by ``claim``: an attempt at a game has the hall."""

    game: str
    attempt: str
    hall: str
    lane: str
    host: str
    worker: str


class AttemptEnded(Message):
    """Journaled when an attempt is given up: interruption, never a result.

    ``ply`` and the clocks are those of the last journaled ply (0 and the start when
    there was none), so that a later version can decide RULEBOOK §3 from this entry.
    """

    game: str
    attempt: str
    hall: str
    lane: str
    host: str
    cause: str
    evidence: str = ""
    ply: int = 0
    white_clock_ns: int | None = None
    black_clock_ns: int | None = None


class GameFinished(Message):
    """Journaled by ``complete``: the one counted result of a game."""

    game: str
    attempt: str
    hall: str
    lane: str
    host: str
    result: Result
    ending: Ending
    loser: Side | None = None
    details: str
    plies: int
    white_clock_ns: int
    black_clock_ns: int
    started_ms: int
    ended_ms: int
    record_sha256: str
    r_mobility: float | None = None  # White's r-mobility points; None: as the result
