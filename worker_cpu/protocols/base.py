"""What a referee needs of a protocol: a handshake before the game, a player during it.

Both are pure text: bytes in, bytes out; no clock is read and nothing waits. Invariants
every protocol keeps:

* no bytes an engine writes raise;
* a player's ``go`` is one piece: position and clocks are told by the same write that
  starts the search, so the start stamp can stand immediately before it;
* while a clock runs only a ``Finder`` looks at output, and it only searches bytes.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol, TypeAlias

import chess

from orchestrator import contract
from orchestrator.arbiter import board, clock

NS_PER_MS = 1_000_000

Clocks: TypeAlias = Mapping[contract.Side, clock.EngineClock]


class Phase(enum.Enum):
    """Where a handshake stands."""

    STARTING = "introduction"  # -> PREPARING when the engine has said what it is
    PREPARING = "preparation"  # -> READY when it has done all that was asked
    READY = ""


@dataclasses.dataclass(frozen=True)
class Search:
    """What an engine said of its search: fields as in ``contract.PlyRecord``."""

    score: contract.Score | None = None
    depth: int | None = None
    seldepth: int | None = None
    nodes: int | None = None
    nps: int | None = None
    tbhits: int | None = None
    hashfull: int | None = None
    wdl: contract.Wdl | None = None
    pv: tuple[str, ...] = ()


SAID_NOTHING = Search()


class Reply(NamedTuple):
    """What an engine did at its turn, or out of turn: moved, resigned, claimed a result.

    ``text`` is the move or the claim as it was written. ``result`` is the result that
    is claimed, ``None`` for a claim that a legal move was illegal.
    """

    kind: Literal["move", "resign", "claim"]
    text: str = ""
    ponder: str | None = None
    result: contract.Result | None = None


class Expected(NamedTuple):
    """The reply that an engine ponders on, in UCI notation, and the words that tell it to."""

    move: str
    words: bytes


@dataclasses.dataclass(frozen=True)
class Aside:
    """What an engine said beside its moves: an end of the game, an offer of a draw."""

    ends: Reply | None = None
    offers_draw: bool = False


class Finder(Protocol):
    """Finds the line that answers ``go`` in raw output, however it is cut."""

    def feed(self, chunk: bytes) -> bytes | None:
        """Take output; return the answer's whole line when it is complete."""

    def begun(self) -> bool:
        """Say whether an answer has begun but not ended."""


class Player(Protocol):
    """One engine's protocol from the first move to the last."""

    @property
    def stop(self) -> bytes:
        """Return the command that asks for a move at once."""

    def go(self, clocks: Clocks, last_san: str) -> bytes:
        """Write position, clocks and the start of the search as one piece.

        ``last_san`` is the move before this turn, '' when the engine has seen it.
        """

    def ponder(self, clocks: Clocks, expected: str) -> Expected | None:
        """Let the engine think in its opponent's turn on the reply that it expects.

        The board stands after its own move. ``None`` where it does not ponder, ponders without
        being told, or there is nothing to think on: no legal reply, or one that ends the game.
        """

    @property
    def ponderhit(self) -> bytes:
        """Return the command that says that the expected reply was played."""

    def finder(self, *, fresh: bool) -> Finder:
        """Return a finder for one turn; ``fresh`` when output is at a line's start."""

    def reply(self, line: bytes) -> Reply:
        """Read the line that a finder found."""

    def read_move(self, text: str) -> chess.Move | None:
        """Read a move as the protocol writes it, ``None`` when it is not legal."""

    def search(self, output: bytes) -> Search:
        """Read what an engine said of its search: its last exact score, newest counters."""

    def aside(self, output: bytes) -> Aside:
        """Read what an engine said beside its answers."""


class Handshake(Protocol):
    """One engine's way from its start to being ready for its first turn."""

    phase: Phase
    deadline_ns: int  # monotonic ns: when ``expire`` has to be asked
    refusal: str  # why this engine cannot play this game, '' while it can
    unable: bool  # its handshake says so, whatever the position is

    @property
    def reusable(self) -> bool:
        """Say whether the engine can play another game without a new start."""

    def begin(self) -> bytes:
        """Return the words that open the conversation."""

    def again(
        self, order: contract.GameOrder, side: contract.Side, now_ns: int, game: board.GameBoard
    ) -> bytes:
        """Begin another game with a reusable engine: return the words that open it."""

    def take(self, line: bytes, now_ns: int) -> bytes:
        """Take a line of output; return the commands that answer it, ``b''`` for none."""

    def expire(self, now_ns: int) -> bytes | None:
        """Go on without what was waited for, or return ``None``: then it is a stall."""

    def late(self) -> str:
        """Say what was waited for in vain."""

    def report(self, pid: int) -> contract.EngineReport:
        """Return what the engine said of itself and what was set."""

    def player(self) -> Player:
        """Return the player of this engine; it has to be ready."""
