"""What has been played of a game: its plies, and what an interrupted one goes on from."""

from __future__ import annotations

from typing import Literal, TypeAlias

import pydantic

from orchestrator.contract import codec

Wdl: TypeAlias = tuple[int, int, int]  # wins, draws, losses that an engine expects, per mille


def _shares(wdl: Wdl | None) -> Wdl | None:
    """Refuse what cannot be shares of one game: the numbers come from strangers."""
    if wdl is not None and not all(0 <= share <= 1000 for share in wdl):
        raise ValueError("wins, draws and losses are from 0 to 1000")
    return wdl


class Score(codec.Message):
    """An exact engine score from the mover's side: centipawns, or moves to mate."""

    cp: int | None = None
    mate: int | None = None


class Counters(codec.Message):
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


class PlyRecord(codec.Message):
    """One completed engine ply: the move, both clocks after it, and what was claimed.

    ``ply`` counts from the game's start position, book plies included. ``margin_ns`` is
    the time that was left when the move arrived, before the increment. ``overhead_ns`` is
    the referee's own time since the move before, ``waited_ns`` all of the time between
    that move and the start of this clock, the link's included. ``network_ns`` is what lay
    between the referee's clock and that of the engine's own host. ``pondered`` says what came
    of the engine's search in its opponent's turn, which took ``pondered_ns`` and is never
    charged: the move it expected was played (``hit``), another was (``miss``), or it broke the
    search off by itself (``early``). ``pv`` is in the engine's
    notation (XBoard engines may write SAN), ``said`` what it said beside its move, ``wdl`` the
    mover's wins, draws and losses per mille beside the score (``UCI_ShowWDL``).
    """

    schema_version: int = codec.SCHEMA
    ply: int
    side: codec.Side
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
    pondered: Literal["", "hit", "miss", "early"] = ""
    pondered_ns: int | None = None
    wdl: Wdl | None = None

    _check_wdl = pydantic.field_validator("wdl")(_shares)


class Evaluation(codec.Message):
    """What a kibitzer, an engine that only watches, found in one position of a game.

    ``ply`` plies have been played in the position; the score is the mover's, ``wdl`` the
    mover's wins, draws and losses per mille, ``pv`` in UCI notation. Nothing is decided by
    it and no journal holds it (decision 026).
    """

    schema_version: int = codec.SCHEMA
    engine: str
    description: str = ""
    ply: int
    score: Score
    depth: int | None = None
    seldepth: int | None = None
    nodes: int | None = None
    nps: int | None = None
    tbhits: int | None = None
    hashfull: int | None = None
    pv: tuple[str, ...] = ()
    wdl: Wdl | None = None

    _check_wdl = pydantic.field_validator("wdl")(_shares)


class Interruption(codec.Message):
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


class Progress(codec.Message):
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
