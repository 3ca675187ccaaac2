"""What a remote worker and the gateway tell each other over HTTPS, as JSON.

Each request carries the worker's access token in its ``Authorization`` header. A batch is named
by the worker before its first try, so that a claim whose answer was lost may be repeated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Annotated, Literal

import pydantic

from orchestrator.contract import codec, played, records, rules, timecontrol
from orchestrator.contract import orders as game_orders

MOST_GAMES = 64  # of one batch
FARM_TIME = "Farm-Time-Ms"  # header of an answer: Redis' time when the request came (ms)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
Name = Annotated[str, pydantic.Field(pattern=f"^{NAME.pattern}$")]
MatchName = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
Digest = Annotated[str, pydantic.Field(pattern=r"^[0-9a-f]{64}$")]


# Of a program, as `make` is found in PATH; of a file below a source tree.
Tool = Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$")]


def _inside(path: str) -> str:
    """Return a path below a tree; raise ``ValueError`` for any other."""
    parts = path.split("/")
    if len(path) > 200 or not path.isprintable() or {"", ".", "..", "~"} & set(parts):
        raise ValueError("is no path below the source tree, such as src/engine")
    return path


Inside = Annotated[str, pydantic.AfterValidator(_inside)]
_PART = r"[A-Za-z0-9_][A-Za-z0-9._+-]*"  # of a revision's name, of a repository's path
_REVISION = re.compile(rf"{_PART}(?:/{_PART})*")
_FORK = re.compile(rf"https://[A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{{1,5}})?(?:/{_PART})+")


def _revision(text: str) -> str:
    """Return REVISION, or FORK#REVISION; raise ``ValueError`` for what git might take otherwise."""
    fork, marked, name = text.rpartition("#")
    if not _REVISION.fullmatch(name) or ".." in text or (marked and not _FORK.fullmatch(fork)):
        raise ValueError("is no branch, tag or commit, such as main or https://HOST/FORK#main")
    return text


Revision = Annotated[str, pydantic.Field(max_length=300), pydantic.AfterValidator(_revision)]
# One line of text. How long it may be no pattern says: an expression is compiled to as many
# copies of a class as it may repeat, 5 MB for 2,000 of any letter, in every process.
OneLine = Annotated[str, pydantic.Field(pattern=r"^[^\x00-\x1f\x7f]*$")]
Line = Annotated[OneLine, pydantic.Field(min_length=1, max_length=2_000)]
LOG_BYTES = 8_192  # of a build's log: what is told of it, and kept
# Why a claim is answered without games where there are none: workers that wait for no other end.
# Behind it may stand what open matches want that the worker lacks.
NOTHING = "no open match has games for the engines that this worker has"


class SourceBuild(codec.Message):
    """An engine as its source: a revision, the recipe that builds it, and its bench.

    ``archive`` is the SHA-256 of the source as a gzipped tar, ``files`` are others that are put
    into its tree (a network). ``make`` is run in the tree by a shell in a sandbox without a
    network and leaves ``program``; ``bench`` are the nodes that its fixed search must have.
    A private engine has ``binaries`` instead, by class of processor (``engines.builds``).
    """

    name: str = pydantic.Field(max_length=200)
    commit: str = pydantic.Field(pattern=r"^[0-9a-f]{0,64}$")
    archive: str = pydantic.Field(pattern=r"^([0-9a-f]{64})?$")
    files: Mapping[Inside, Digest] = {}
    binaries: Mapping[str, Digest] = {}
    make: OneLine = pydantic.Field(max_length=2_000)
    program: Inside
    toolchain: tuple[Tool, ...] = pydantic.Field(default=(), max_length=20)
    seconds: int = pydantic.Field(default=600, ge=1, le=7_200)
    memory_mb: int = pydantic.Field(default=2_048, ge=16, le=1 << 20)
    bench_arguments: tuple[Line, ...] = pydantic.Field(default=("bench",), max_length=20)
    bench: int = pydantic.Field(ge=0, le=1 << 62)

    @property
    def id(self) -> str:
        """Return what the build is known by: the SHA-256 of all that it depends on."""
        fields = self.model_dump(mode="json", exclude={"name", "commit"})
        return hashlib.sha256(codec.dumps(fields).encode()).hexdigest()

    @property
    def needed(self) -> tuple[str, ...]:
        """Return the SHA-256 of all files that a build may begin with."""
        every = (self.archive, *self.files.values(), *self.binaries.values())
        return tuple(dict.fromkeys(filter(None, every)))


class BuildTold(codec.Message):
    """What became of a build on a worker: the SHA-256 of its program, or why there is none."""

    schema_version: int = codec.SCHEMA
    match: MatchName
    build: Digest
    host: Name
    machine: str = pydantic.Field(pattern=r"^[\w.-]+$", max_length=40)  # x86_64, aarch64
    compiler: OneLine = pydantic.Field(default="", max_length=120)
    program: str = pydantic.Field(default="", pattern=r"^([0-9a-f]{64})?$")
    bench: int | None = pydantic.Field(default=None, ge=0, le=1 << 62)
    seconds: float = pydantic.Field(ge=0, le=100_000)
    why: str = pydantic.Field(default="", max_length=500)  # '' for a build that is as it should be
    log: str = pydantic.Field(default="", max_length=LOG_BYTES)


class BatchWanted(codec.Message):
    """A claim: what the worker can play, by the SHA-256 of each engine's files that it has.

    A program that it has built stands there as its ``SourceBuild.id``. ``builds`` says that it
    builds engines from source, ``declined`` which of them it has tried in vain.
    """

    schema_version: int = codec.SCHEMA
    batch: Name
    host: Name
    games: int = pydantic.Field(ge=1, le=MOST_GAMES)
    cores: int = pydantic.Field(ge=1)  # of one game
    memory_mb: int = pydantic.Field(ge=0)  # of one game
    files: tuple[Digest, ...] = pydantic.Field(max_length=1_000)
    builds: bool = False
    declined: tuple[Digest, ...] = pydantic.Field(default=(), max_length=1_000)


class BatchDealt(codec.Message):
    """The answer to a claim: games to play before the lease ends, or how long to wait.

    ``orders`` is empty where there is nothing to play, and ``why`` says why. ``builds`` are
    engines of ``match`` to build first.
    """

    schema_version: int = codec.SCHEMA
    token: str = ""
    match: str = ""
    lease_ms: int = 0
    orders: tuple[game_orders.GameOrder, ...] = ()
    builds: tuple[SourceBuild, ...] = ()
    wait_ms: int = 0
    why: str = ""


class BatchNamed(codec.Message):
    """A request about a batch: to renew its lease, or to end it."""

    schema_version: int = codec.SCHEMA
    batch: Name
    token: str = pydantic.Field(max_length=64)


class Steered(codec.Message):
    """What an author asks of an open match: to stop it, or to deal it otherwise."""

    schema_version: int = codec.SCHEMA
    match: MatchName
    stop: bool = False
    priority: int | None = pydantic.Field(default=None, ge=-1_000_000, le=1_000_000)
    share: int | None = pydantic.Field(default=None, ge=1, le=1_000_000)
    reason: str = pydantic.Field(default="", pattern=r"^[^\x00-\x1f\x7f]{0,300}$")

    @pydantic.model_validator(mode="after")
    def _asks(self) -> Steered:
        if not self.stop and self.priority is None and self.share is None:
            raise ValueError("it asks for nothing: stop, priority or share")
        return self


class Copied(codec.Message):
    """What an author submits: ``match`` once more, as ``name``, but for what is given."""

    schema_version: int = codec.SCHEMA
    match: MatchName
    name: MatchName
    time_control: timecontrol.TimeControl | None = None
    games: int | None = pydantic.Field(default=None, ge=1, le=10_000_000)


class Bounds(codec.Message):
    """A sequential test, as ``rating.sprt`` has it."""

    elo0: float = pydantic.Field(ge=-2_000, le=2_000, allow_inf_nan=False)
    elo1: float = pydantic.Field(ge=-2_000, le=2_000, allow_inf_nan=False)
    alpha: float = pydantic.Field(default=0.05, gt=0, lt=1)
    beta: float = pydantic.Field(default=0.05, gt=0, lt=1)
    model: Literal["normalized", "logistic"] = "normalized"


class Tuned(codec.Message):
    """What an author wants to be tuned by SPSA: parameters as lines of text, one each."""

    parameters: str = pydantic.Field(min_length=1, max_length=4_000)
    iterations: int = pydantic.Field(ge=1, le=5_000_000)
    pairs: int = pydantic.Field(default=1, ge=1, le=1_000_000)  # of games with the same values


class Proposed(codec.Message):
    """A test that an author submits: revisions of an engine whose recipe the farm has.

    ``also`` are further opponents (a gauntlet). A tuning has none: the engine meets itself.
    ``bench`` and ``bench_against`` are the nodes of a bench where its commit's message does
    not say them. ``test`` stops it early.
    """

    schema_version: int = codec.SCHEMA
    name: MatchName
    engine: Name
    tested: Revision
    against: Revision | Literal[""] = ""
    also: tuple[Revision, ...] = pydantic.Field(default=(), max_length=7)
    tuning: Tuned | None = None
    bench: int | None = pydantic.Field(default=None, ge=1, le=1 << 62)
    bench_against: int | None = pydantic.Field(default=None, ge=1, le=1 << 62)
    options: OneLine = pydantic.Field(default="", max_length=1_000)
    options_against: OneLine = pydantic.Field(default="", max_length=1_000)
    book: str = pydantic.Field(default="", pattern=f"^({NAME.pattern})?$")
    time_control: timecontrol.TimeControl = timecontrol.TimeControl(
        base_ms=10_000, increment_ms=100
    )
    games: int = pydantic.Field(default=1_000, ge=2, le=10_000_000)
    test: Bounds | None = None
    draw: rules.MovesDraw | None = None
    resign: rules.MovesResign | None = None
    max_moves: int | None = pydantic.Field(default=None, ge=1, le=10_000)
    priority: int = pydantic.Field(default=0, ge=-1_000_000, le=1_000_000)
    share: int = pydantic.Field(default=1, ge=1, le=1_000_000)

    @pydantic.model_validator(mode="after")
    def _meets_somebody(self) -> Proposed:
        if (self.tuning is None) != bool(self.against) or (self.also and not self.against):
            raise ValueError("give what it plays against, or a tuning, which has no opponent")
        if self.test is not None and (self.also or self.tuning):
            raise ValueError("a sequential test is of two engines: leave out its Elo bounds")
        return self

    @property
    def adjudication(self) -> rules.Adjudication:
        """Return how games end early; the gateway has no tablebases to check with."""
        return rules.Adjudication(draw=self.draw, resign=self.resign, max_moves=self.max_moves)


class Agreed(codec.Message):
    """A test match that an author names: to approve what somebody else has submitted, to go on."""

    schema_version: int = codec.SCHEMA
    match: MatchName


class Refused(codec.Message):
    """A submitted match that an author takes back, or does not want to be played."""

    schema_version: int = codec.SCHEMA
    match: MatchName
    reason: OneLine = pydantic.Field(default="", max_length=300)


class GameShown(codec.Message):
    """How a game of a batch stands while it is played: it counts for nothing, people look at it.

    ``moves`` are the engines', in UCI notation, behind the opening.
    """

    schema_version: int = codec.SCHEMA
    batch: Name
    token: str = pydantic.Field(max_length=64)
    number: int = pydantic.Field(ge=1, lt=1 << 53)
    moves: tuple[Annotated[str, pydantic.Field(pattern=r"^[a-h][1-8][a-h][1-8][qrbn]?$")], ...] = (
        pydantic.Field(max_length=1_200)
    )
    white_clock_ns: int = pydantic.Field(gt=-(1 << 62), lt=1 << 62)
    black_clock_ns: int = pydantic.Field(gt=-(1 << 62), lt=1 << 62)


class ShownAgain(codec.Message):
    """When a worker is to say again how a game stands: soon while it is shown, else much later."""

    schema_version: int = codec.SCHEMA
    wait_ms: int


class BatchRenewed(codec.Message):
    """``abort`` says why the games are no longer wanted, '' while they are."""

    schema_version: int = codec.SCHEMA
    abort: str = ""


class PlayedGame(codec.Message):
    """A finished game as the worker tells it: all that the gateway checks and writes down."""

    number: int = pydantic.Field(ge=1)
    plies: tuple[played.PlyRecord, ...] = pydantic.Field(max_length=12_000)
    outcome: records.Outcome
    final_fen: str = pydantic.Field(max_length=128)
    white: records.EngineReport = records.EngineReport()
    black: records.EngineReport = records.EngineReport()
    wall_ms: int = pydantic.Field(ge=0)  # from the order to the end


class AnswerCame(codec.Message):
    """When the last answer came, by Redis as it told (``FARM_TIME``) and by the worker (ms)."""

    at_ms: int = pydantic.Field(ge=0, lt=1 << 53)
    boot_ms: int = pydantic.Field(ge=0, lt=1 << 53)


class WorkerClock(codec.Message):
    """How a worker's clocks stand as it speaks: since its host's start, and of the day (ms).

    ``process`` is drawn at random by each process of a worker: clocks of one are compared.
    With ``heard`` nothing that the net delays looks like a clock that is off; it is ``None`` before
    the first answer, and of workers of before.
    """

    process: Name
    boot_ms: int = pydantic.Field(ge=0, lt=1 << 53)
    day_ms: int = pydantic.Field(ge=0, lt=1 << 53)
    heard: AnswerCame | None = None


class GamesTold(codec.Message):
    """Results of a batch, some at a time."""

    schema_version: int = codec.SCHEMA
    batch: Name
    token: str = pydantic.Field(max_length=64)
    games: tuple[PlayedGame, ...] = pydantic.Field(min_length=1, max_length=MOST_GAMES)
    clock: WorkerClock | None = None  # of workers of before


class GamesHeard(codec.Message):
    """Which games are journaled now or were before, and why others never will be.

    ``over`` says why the batch has ended beside them, '' while its games are still awaited.
    ``at_ms`` is Redis' time when they came (ms): a header (``FARM_TIME``), which workers of before
    pass over, for they refuse a field that they do not know.
    """

    schema_version: int = codec.SCHEMA
    at_ms: int = pydantic.Field(default=0, exclude=True)
    recorded: tuple[int, ...] = ()
    refused: Mapping[int, str] = {}
    over: str = ""
