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
ProtocolName: TypeAlias = Literal["uci", "xboard"]
Result: TypeAlias = Literal["1-0", "0-1", "1/2-1/2"]


# Made once: making it anew for every message costs the referee a tenth of its encoding.
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def dumps(value: Any) -> str:
    """Encode plain data as compact JSON, the same bytes for the same value."""
    return _ENCODER.encode(value)


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
_LIMIT_WORDS = frozenset({"nodes", "depth"})


class TimeControl(Message):
    """The time an engine has, in milliseconds; and its search limits, for tests.

    Either a clock (``base_ms``, plus ``increment_ms`` a move, and ``base_ms`` again after
    each ``moves`` moves), or a fixed time a move (``move_ms``), or no clock at all; a
    limit by ``depth`` or ``nodes`` may stand beside each, and has to where no clock is.
    """

    base_ms: int = pydantic.Field(default=0, ge=0)
    increment_ms: int = pydantic.Field(default=0, ge=0)
    moves: int | None = pydantic.Field(default=None, ge=1)
    move_ms: int | None = pydantic.Field(default=None, ge=1)
    depth: int | None = pydantic.Field(default=None, ge=1)
    nodes: int | None = pydantic.Field(default=None, ge=1)

    @pydantic.model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.move_ms is not None and (self.base_ms or self.increment_ms or self.moves):
            raise ValueError("a fixed time a move has no base time, increment or period")
        if self.move_ms is not None or self.base_ms:
            return self
        if self.increment_ms or self.moves:
            raise ValueError("a base time above 0 is wanted")
        if self.depth is None and self.nodes is None:
            raise ValueError("a clock, or a limit by depth or nodes, is wanted")
        return self

    @classmethod
    def parse(cls, text: str) -> TimeControl:
        """Read ``30+5``: minutes plus seconds, as the rule texts write it.

        Units may be given (``2s+50ms``, ``1.5m+1s``). ``40/60+0.5`` is 40 moves in 60
        minutes, ``5s/move`` a fixed time, ``inf`` no clock; ``nodes=N`` and ``depth=N``
        may follow behind a space, or stand alone. Raise ``ValueError``.
        """
        *words, last = ["", *text.replace("+ ", "+").replace(" +", "+").split()]
        limits: dict[str, int] = {}
        while (key := last.partition("=")[0]) in _LIMIT_WORDS and key not in limits:
            limits[key] = int(last.partition("=")[2])
            last = words.pop() if words else ""
        if any(words):
            raise ValueError(f"not a time control: {text!r}")
        return cls.model_validate(_clock(last) | limits)

    @property
    def clocked(self) -> bool:
        """Say whether an engine's thinking time is limited at all."""
        return bool(self.base_ms or self.move_ms)

    @property
    def start_ms(self) -> int:
        """Return what the clock shows before the first move, 0 without a clock."""
        return self.move_ms or self.base_ms

    def nominal_ms(self, moves: int) -> int:
        """Return the time that one side has for so many moves, 0 without a clock."""
        if self.move_ms is not None:
            return moves * self.move_ms
        periods = max(1.0, moves / self.moves) if self.moves else 1.0
        return round(self.base_ms * periods) + moves * self.increment_ms

    def __str__(self) -> str:
        """Write the control as PGN's TimeControl tag does: ``40/3600+0.5``, ``5/move``.

        Seconds; ``-`` stands for no clock, search limits follow behind a space.
        """
        period = f"{self.moves}/" if self.moves else ""
        clock = f"{period}{self.base_ms / 1000:.12g}+{self.increment_ms / 1000:.12g}"
        if self.move_ms is not None:
            clock = f"{self.move_ms / 1000:.12g}/move"
        elif not self.base_ms:
            clock = "-"
        limits = {"nodes": self.nodes, "depth": self.depth}
        told = [f"{name}={limit}" for name, limit in limits.items() if limit is not None]
        return " ".join([clock, *told])


def _clock(text: str) -> dict[str, int]:
    if text in ("", "inf", "-"):
        return {}
    if text.endswith("/move"):
        return {"move_ms": _duration_ms(text.removesuffix("/move"), "s")}
    moves, slash, rest = text.rpartition("/")
    base, plus, increment = rest.partition("+")
    clock = {
        "base_ms": _duration_ms(base, "m"),
        "increment_ms": _duration_ms(increment, "s") if plus else 0,
    }
    return clock | ({"moves": int(moves)} if slash else {})


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
    protocol: ProtocolName = "uci"
    command: tuple[str, ...] = pydantic.Field(min_length=1)
    directory: str | None = None
    options: Mapping[str, str | int | bool] = {}
    rating: int | None = None
    white_pov: bool = False  # it reports scores from White's side, not the mover's
    init: tuple[str, ...] = ()  # lines sent right after the handshake
    time_control: TimeControl | None = None  # its own, before the order's
    time_margin_ms: int | None = None  # likewise
    settings: Mapping[str, Mapping[str, str | int | bool]] = {}  # by event, before ``options``
    version: str = ""
    family: str = ""  # what all versions of an engine share; '': it is known by its id
    country: str = ""
    builds: Mapping[str, tuple[str, ...]] = {}  # by host class, before ``command``
    build: str = ""  # the class that the hall has chosen
    network: str | None = None  # its network file
    checksums: Mapping[str, str] = {}  # SHA-256 by file, as the commands name it
    provisional: bool = False  # its rating comes from tests, until it has finished an event
    box: str = ""  # the GPU box that it runs on; '': the hall itself


class SeatAddress(Message):
    """Where the hall finds a prepared seat of a GPU box; never part of a record.

    ``key`` is the hall's private key (a path), ``host_key`` the box's pinned one as
    ``known_hosts`` writes it (type and key). ``gpus`` are shown.
    """

    box: str
    seat: str
    address: str
    port: int = 22
    user: str
    key: str
    host_key: str
    grace_ms: int
    beat_ms: int
    gpus: tuple[str, ...] = ()


class SeatRequest(Message):
    """What an attempt wants of a GPU box: seats for these engines.

    ``gpus`` says whether both sides think in turn on all GPUs or have one each; ``token``
    is ``trial`` for games that count nowhere. Without engines it asks for a bench.
    """

    schema_version: int = SCHEMA
    hall: str
    attempt: str
    token: str
    game: str
    engines: Mapping[Side, EngineSpec]
    gpus: Literal["shared", "each"] = "shared"
    grace_ms: int
    beat_ms: int


class GpuUse(Message):
    """What a GPU did during a game, as its driver told every few seconds; Hz, °C, W."""

    uuid: str
    name: str
    samples: int
    sm_clock_min_hertz: float | None = None
    sm_clock_max_hertz: float | None = None
    temperature_max_celsius: float | None = None
    power_max_watts: float | None = None
    throttled: tuple[str, ...] = ()  # every reason that was seen


class HostBench(Message):
    """A host's speed, and a signature that is the same on every sound one."""

    host: str
    nps: int
    signature: str


class SeatAnswer(Message):
    """What a GPU box answers: seats, files it lacks (path by SHA-256), or why not.

    ``files`` are checksums that nobody had pinned, ``use`` grows while the game runs.
    """

    schema_version: int = SCHEMA
    state: Literal["preparing", "ready", "missing", "refused"]
    reason: str = ""
    seats: Mapping[Side, str] = {}
    gpus: Mapping[Side, tuple[str, ...]] = {}
    missing: Mapping[str, str] = {}
    files: Mapping[Side, Mapping[str, str]] = {}
    use: tuple[GpuUse, ...] = ()
    bench: HostBench | None = None  # to a request without engines


class Limits(Message):
    """Limits set on every engine of an event (RULEBOOK §2 "Limits").

    ``None`` for a size is no limit, for a path no tablebases of that kind.
    """

    threads: int = pydantic.Field(default=1, ge=1)
    hash_mb: int = pydantic.Field(default=16, ge=1)
    syzygy_path: str | None = None
    free: bool = False  # `farm match`: nothing is set but what each author asks
    minor_hash_mb: int | None = pydantic.Field(default=None, ge=0)  # all of them together
    tablebase_cache_mb: int | None = pydantic.Field(default=None, ge=0)  # likewise
    nalimov_path: str | None = None
    gaviota_path: str | None = None
    scorpio_path: str | None = None
    tablebases: Literal["all", "one"] = "all"  # N1: one kind an engine, Nalimov first
    author_settings: Literal["free", "restricted"] = "free"  # N1: split depth, keep hash only


class Timeouts(Message):
    """Time-outs off the clock, and how long after its flag an engine is waited for."""

    start_ms: int = 60_000  # process start to uciok: big networks load here
    ready_ms: int = 120_000  # readyok: hash allocation and tablebase loading
    stop_ms: int = 1_000  # `stop` goes out this long after the flag (DESIGN §4)
    stall_ms: int = 10_000  # nothing this long after `stop` is a stalled connection
    quit_ms: int = 2_000  # `quit` to exit, then the dead man kills
    features_ms: int = 8_000  # XBoard: `protover 2` to the end of the features, if none is told
    settle_ms: int = 1_000  # XBoard engines without `ping`: from the last command to ready
    move_ms: int = 600_000  # the longest move of an engine that plays without a clock


class EvalDraw(Message):
    """Draw after ``plies`` plies in a row with both engines' evals inside the bound.

    ``min_ply`` is the first ply (book plies included) that may end the game: "move 35"
    is 70. A capture or pawn move sets the count to 0 and is not counted (``reset``), is
    counted as the first of a new row (``restart``), or changes nothing (``ignore``).
    """

    min_ply: int = pydantic.Field(default=0, ge=0)
    bound_cp: int = pydantic.Field(ge=0)
    plies: int = pydantic.Field(ge=1)
    zeroing: Literal["reset", "restart", "ignore"] = "reset"


class EvalWin(Message):
    """Win after ``plies`` plies in a row with both engines' evals beyond the bound.

    ``zeroing`` says what captures and pawn moves do to the row, as in ``EvalDraw``.
    """

    min_ply: int = pydantic.Field(default=0, ge=0)
    bound_cp: int = pydantic.Field(gt=0)
    plies: int = pydantic.Field(ge=1)
    zeroing: Literal["reset", "restart", "ignore"] = "ignore"


class FewPiecesDraw(Message):
    """Draw after ``plies`` plies in a row with few pieces and an eval inside the bound.

    ``pieces`` counts kings but not pawns, of both sides together; ``pawns`` likewise,
    ``None`` for any number (some events set a limit: FRC5 8 pieces, 8 pawns).
    """

    pieces: int = pydantic.Field(default=6, ge=2)
    pawns: int | None = pydantic.Field(default=None, ge=0)
    bound_cp: int = pydantic.Field(default=25, ge=0)
    plies: int = pydantic.Field(default=8, ge=1)


class Syzygy(Message):
    """End the game by the tablebases at ``men`` men or fewer, kings and pawns included.

    ``path`` (directories, joined by ``:``) is the referee's; without it the engines' is
    taken. ``draw_only`` lets decided positions be played out.
    """

    men: int = pydantic.Field(default=6, ge=3, le=7)
    draw_only: bool = False
    path: str | None = None


class MovesDraw(Message):
    """cutechess' ``-draw``: from a move on, a score near zero for some moves by each side."""

    move_number: int = pydantic.Field(ge=1)
    move_count: int = pydantic.Field(ge=1)
    score_cp: int = pydantic.Field(ge=0)


class MovesResign(Message):
    """cutechess' ``-resign``: a lost score for some moves, with the winner's if two-sided."""

    move_count: int = pydantic.Field(ge=1)
    score_cp: int = pydantic.Field(ge=0)
    twosided: bool = False


class Adjudication(Message):
    """The rules that end a game early (RULEBOOK §2); a rule that is not there is not played.

    ``rules`` names the preset the event file began with, ``max_moves`` counts full moves.
    """

    rules: str = ""
    syzygy: Syzygy | None = None
    eval_draw: EvalDraw | None = None
    few_pieces_draw: FewPiecesDraw | None = None
    eval_win: EvalWin | None = None
    draw: MovesDraw | None = None
    resign: MovesResign | None = None
    max_moves: int | None = pydantic.Field(default=None, ge=1)


class Interruptions(Message):
    """What becomes of an interrupted game (RULEBOOK §3); a bound that is ``None`` decides nothing.

    Both evals of a side's last engine move beyond ``win_cp`` for the same side win, both
    inside ``draw_cp`` after ``draw_moves`` moves by both draw; ``inclusive`` says whether the
    bounds themselves count. ``tablebase_men`` on the board are decided by tables, which
    ``syzygy_path`` names on the orchestrator's host (else the organizers are asked).
    ``otherwise`` the game is resumed, with ``compensation_ms`` for each side (``None``: what
    its own last move took), or restarted after the opening.
    """

    rules: str = ""
    win_cp: int | None = pydantic.Field(default=None, gt=0)
    draw_cp: int | None = pydantic.Field(default=None, ge=0)
    inclusive: bool = False
    draw_moves: int = pydantic.Field(default=35, ge=0)
    tablebase_men: int | None = pydantic.Field(default=None, ge=3, le=7)
    syzygy_path: str | None = None
    otherwise: Literal["resume", "restart"] = "resume"
    compensation_ms: int | None = pydantic.Field(default=None, ge=0)
    when: Literal["at-once", "end-of-round"] = "at-once"  # CUP-7c, FRC-7c


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
    adjudication: Adjudication = Adjudication()
    journaled: bool = True  # each ply waits for the link's GO_ON (DESIGN §3.3)
    agreed_draws: bool = False  # a draw offered by both engines in a row ends the game
    recorded: bool = True  # PLY frames are wanted; those of an unjournaled game come at its end
    traffic: bool = True  # CHUNK frames are wanted: all that engines are told and say
    keep: tuple[Side, ...] = ()  # whose engine may stay for the next order (``farm match``)
    sandbox: Literal["", "bubblewrap"] = ""  # a host that cannot give it must not play
    progress: Progress | None = None  # what an interrupted game goes on from
    gpus: Literal["shared", "each"] = "shared"  # both think in turn on all, or have their own
    seats: Mapping[Side, SeatAddress] = {}  # engines that are elsewhere, for the referee

    def engine(self, side: Side) -> EngineSpec:
        """Return the engine that plays a side."""
        return self.white if side == "white" else self.black

    def control(self, side: Side) -> TimeControl:
        """Return the time control that a side plays with."""
        return self.engine(side).time_control or self.time_control

    def margin_ms(self, side: Side) -> int:
        """Return the time tolerated beyond a side's flag."""
        own = self.engine(side).time_margin_ms
        return self.time_margin_ms if own is None else own


# -- plies and the game record -----------------------------------------------------


class Score(Message):
    """An exact engine score from the mover's side: centipawns, or moves to mate."""

    cp: int | None = None
    mate: int | None = None


class Counters(Message):
    """How near a game is to its early ends after a ply; ``None`` where no rule is played.

    ``plies_to_draw`` and ``plies_to_win`` are the plies until a rule can end the game at
    the earliest, 0 when it does. ``moves_to_fifty`` is half the plies that the fifty-move
    rule leaves, rounded down. ``rd`` and ``rr`` are the rules' clocks as TCEC's viewers
    read them: negative while there is no row of plies, or it would end too early.
    """

    plies_to_draw: int | None = None
    plies_to_win: int | None = None
    moves_to_fifty: int
    rd: int | None = None
    rr: int | None = None


class PlyRecord(Message):
    """One completed engine ply: the move, both clocks after it, and what was claimed.

    ``ply`` counts from the game's start position, book plies included. ``margin_ns`` is
    the time that was left when the move arrived, before the increment. ``overhead_ns`` is
    the referee's own time since the move before, ``waited_ns`` all of the time between
    that move and the start of this clock, the link's included. ``network_ns`` is what lay
    between the referee's clock and that of the engine's own host. ``pv`` is in the engine's
    notation (XBoard engines may write SAN), ``said`` what it said beside its move.
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
    counters: Counters | None = None
    waited_ns: int | None = None
    said: str = ""
    network_ns: int | None = None  # of a remote engine: what was not charged


class Interruption(Message):
    """An attempt at a game that ended without a result, as the game's record tells of it.

    ``ply`` is the last one before it, ``verdict`` the scenario that was found, and the
    compensations (ns) what both clocks got when the game went on.
    """

    attempt: str
    ply: int
    cause: str
    evidence: str = ""
    verdict: str
    white_compensation_ns: int = 0
    black_compensation_ns: int = 0


class Progress(Message):
    """What an interrupted game goes on from: its engine plies, and both clocks (ns).

    Without a ply it begins again after its opening, and no clock is given.
    ``started_ms`` is the beginning of its first attempt.
    """

    plies: tuple[PlyRecord, ...] = ()
    white_clock_ns: int | None = None
    black_clock_ns: int | None = None
    started_ms: int
    interruptions: tuple[Interruption, ...] = ()

    @property
    def ply(self) -> int:
        """Return the last ply that was played, 0 without one."""
        return self.plies[-1].ply if self.plies else 0


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
    sandbox: Literal["", "bubblewrap", "plain"] = ""  # what it was confined by
    exit: str = ""
    stderr_tail: str = ""
    box: str = ""  # the host whose clock it was charged by; '': the hall's
    gpus: tuple[str, ...] = ()  # what it ran on, by name and UUID
    gpu_use: tuple[GpuUse, ...] = ()


class RMobility(Message):
    """Who restricted whom the most (RULEBOOK §4 "r-mobility"): the holder, his G, points.

    ``white_points`` is White's share of the one point of the game.
    """

    g: float
    holder: Side
    white_points: float


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
    r_mobility: RMobility | None = None
    remarks: tuple[str, ...] = ()
    eco: str = ""
    opening: str = ""
    interruptions: tuple[Interruption, ...] = ()


GameOrder.model_rebuild()


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

    def __post_init__(self) -> None:
        """Refuse an entry of a later version: what it means cannot be known here."""
        if self.schema_version > SCHEMA:
            raise errors.JournalTooNewError(
                f"entry {self.seq} has schema {self.schema_version}, this version reads up to"
                f" {SCHEMA}: it was written by a later version of the farm; upgrade this one"
            )

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
                seq=_whole(raw["seq"]),
                at_ms=_whole(raw["at_ms"]),
                kind=str(raw["kind"]),
                by=str(raw["by"]),
                data=table(raw["data"]),
                token=str(raw["token"]),
                schema_version=_whole(raw["v"]),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise errors.LedgerDamagedError(f"not a journal line: {line[:80]!r}") from error


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"not a whole number: {value!r}")
    return value


def table(value: Any) -> dict[str, Any]:
    """Return decoded JSON that must be an object; raise ``TypeError``."""
    if not isinstance(value, dict):
        raise TypeError(f"not a table: {value!r}")
    return value


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
    by_verdict: bool = False  # no hall told it: a verdict on an interruption (arbiter)
    white_files: Mapping[str, str] = {}  # SHA-256 of White's files that nobody had pinned yet
    black_files: Mapping[str, str] = {}
    white_unsearched: int = 0  # moves out of the book played at once, without a node
    black_unsearched: int = 0
    imported: bool = False  # played elsewhere: the record is a PGN


# -- what must hold before a season --------------------------------------------------


class Finding(Message):
    """One thing that was looked at before a season.

    ``why`` is the rule's clause or the reason it must hold, ``do`` what to do where it
    does not. ``unknown`` could not be looked at from here; it stops nothing.
    """

    area: str
    name: str
    status: Literal["ok", "warning", "failed", "unknown"]
    found: str
    why: str
    do: str = ""
