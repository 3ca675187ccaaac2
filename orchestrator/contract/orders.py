"""The order of one game: all that a hall and its referee need to play it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from orchestrator.contract import codec, engines, played, rules, timecontrol


class Opening(codec.Message):
    """A start position and the book moves (UCI notation) played out by the referee."""

    fen: str | None = None
    moves: tuple[str, ...] = ()
    name: str = ""
    eco: str = ""

    @property
    def line(self) -> tuple[str | None, tuple[str, ...]]:
        """Return what makes it this opening: position and moves, whatever it is called."""
        return self.fen, self.moves


PgnComments: TypeAlias = Literal["tcec", "fastchess", "cutechess"]


class PgnStyle(codec.Message):
    """How a PGN is written; ``fields`` are those of fastchess that it writes when asked."""

    minimal: bool = False  # without comments
    comments: PgnComments = "tcec"
    fields: tuple[str, ...] = ()
    notation: Literal["san", "uci"] = "san"


class GameOrder(codec.Message):
    """Everything a hall needs to play one game; the referee needs nothing else."""

    schema_version: int = codec.SCHEMA
    season: str
    season_name: str
    site: str = ""  # the PGN's Site; without one the hall
    event: str
    event_name: str
    game: str
    number: int
    round: str
    white: engines.EngineSpec
    black: engines.EngineSpec
    time_control: timecontrol.TimeControl
    time_margin_ms: int = 0
    opening: Opening = Opening()
    limits: rules.Limits = rules.Limits()
    timeouts: rules.Timeouts = rules.Timeouts()
    variant: Literal["standard", "fischerandom"] = "standard"
    adjudication: rules.Adjudication = rules.Adjudication()
    journaled: bool = True  # each ply waits for the link's GO_ON
    tell_opponent: bool = False  # engines that ask are told whom they play, and both ratings
    agreed_draws: bool = False  # a draw offered by both engines in a row ends the game
    recorded: bool = True  # PLY frames are wanted; those of an unjournaled game come at its end
    shown: bool = False  # PLY frames are wanted as an unjournaled game goes; none is waited for
    pgn: PgnStyle | None = None  # the game's PGN is wanted, so written, before FINISHED
    traffic: bool = True  # CHUNK frames are wanted: all that engines are told and say
    hand_on: bool = False  # engines get their caller's environment (``farm match``)
    keep: tuple[codec.Side, ...] = ()  # whose engine may stay for the next order (``farm match``)
    sandbox: Literal["", "bubblewrap"] = ""  # a host that cannot give it must not play
    progress: played.Progress | None = None  # what an interrupted game goes on from
    gpus: Literal["shared", "each"] = "shared"  # both think in turn on all, or have their own
    seats: Mapping[codec.Side, engines.SeatAddress] = {}  # of engines that are elsewhere
    excuses: Mapping[codec.Side, int] = {}  # flags yet to be excused by a stall of the host

    def engine(self, side: codec.Side) -> engines.EngineSpec:
        """Return the engine that plays a side."""
        return self.white if side == "white" else self.black

    def control(self, side: codec.Side) -> timecontrol.TimeControl:
        """Return the time control that a side plays with."""
        return self.engine(side).time_control or self.time_control

    def margin_ms(self, side: codec.Side) -> int:
        """Return the time tolerated beyond a side's flag."""
        own = self.engine(side).time_margin_ms
        return self.time_margin_ms if own is None else own
