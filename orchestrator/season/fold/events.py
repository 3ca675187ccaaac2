"""The recorded state of one event: entrants, games in their order, results, gate.

The cursor points at the first unfinished game, so finding the next game costs the same
in the first as in the hundred-thousandth.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import Final, TypeAlias

from orchestrator import contract
from orchestrator.season.fold import amendment_entries, entries, standings, tally
from orchestrator.season.spec import model


class Status(enum.StrEnum):
    """What is journaled of an event: waiting → (gate → open →) running → ranked.

    Any but the last becomes abandoned with its season.
    """

    WAITING = "waiting"
    GATE = "gate"
    OPEN = "open"
    RUNNING = "running"
    RANKED = "ranked"
    ABANDONED = "abandoned"


# A game that was in flight when its season was abandoned may have been over already.
IN_PLAY: Final = frozenset({Status.RUNNING, Status.ABANDONED})


@dataclasses.dataclass(frozen=True, slots=True)
class Game:
    """A paired game, and its result once there is one; a cancelled game counts for nothing."""

    id: str
    event: str
    number: int
    cycle: int
    round_number: int
    round: str
    white: str
    black: str
    opening: int | None
    book: str | None = None
    start: int | None = None
    time_control: contract.TimeControl | None = None
    finished: contract.GameFinished | None = None
    cancelled: bool = False
    progress: contract.Progress | None = None  # what it goes on from after an interruption
    asks: bool = False  # the organizers must say how its interruption ends
    verdict: str = ""  # the scenario that has decided it, where the result follows
    played_by: tuple[str, str] | None = None  # White and Black, where a substitute has a seat
    ruling: str = ""  # what people or rules made of its result afterwards, and why

    @property
    def open(self) -> bool:
        """Say whether the game is still to be played."""
        return self.finished is None and not self.cancelled

    @property
    def counts(self) -> bool:
        """Say whether the game has a result that stands (it may be annulled yet)."""
        return self.finished is not None and not self.cancelled

    @property
    def players(self) -> tuple[str, str]:
        """Return who played it, also where a substitute has taken the result over."""
        return self.played_by or (self.white, self.black)


Pair: TypeAlias = tuple[frozenset[str], str | None, int | None, int | None]


def pair(game: Game) -> Pair:
    """Return what the games of a pair have in common: players, and the lot of their opening."""
    return frozenset((game.white, game.black)), game.book, game.opening, game.start


def untouched(game: Game) -> Game:
    """Return a game as if no attempt at it had been interrupted."""
    return dataclasses.replace(game, progress=None, asks=False, verdict="")


def ruled(game: Game, ruling: str) -> Game:
    """Return a game whose result is not what was played any more, or counts no longer."""
    return dataclasses.replace(game, ruling="; ".join(filter(None, (game.ruling, ruling))))


def evolve(game: Game, progress: contract.Progress) -> Game:
    """Return a game that has come so far."""
    return dataclasses.replace(game, progress=progress)


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """The engines that one event sent to another, best first."""

    engines: tuple[str, ...]
    at_ms: int


class EventState:
    """One event of the season; only ``SeasonState.apply`` changes it."""

    def __init__(self, spec: model.Event, generation: int = 1) -> None:
        """Start an event of which nothing is journaled yet, or that begins again."""
        self.spec = spec
        self.status = Status.WAITING
        self.entrants: tuple[str, ...] = ()
        self.ranks: tuple[int, ...] = ()
        self.bracket: tuple[str, ...] = ()
        self.byes: list[tuple[int, str]] = []
        self.arrivals: dict[str, Arrival] = {}
        self.promoted: set[str] = set()
        self.opens_at_ms: int | None = None
        self.order: list[str] = []
        self.rounds_paired = 0
        self.cursor = 0
        self.tally = tally.Tally()
        self.rows: tuple[standings.Row, ...] = ()
        self.ranked_ms: int | None = None
        self.asked: dict[str, entries.DecisionNeeded] = {}
        self.answers: dict[str, entries.Decided] = {}
        self.excluded: dict[str, entries.EngineExcluded] = {}
        self.imported_openings: dict[Pair, contract.Opening] = {}  # of games played elsewhere
        self.annulled: set[str] = set()  # games of which only crashes count any more (S16-15d)
        self.generation = generation
        self.pinned: dict[str, contract.EngineSpec] = {}  # what plays, from its start on
        self.added: tuple[str, ...] = ()  # who entered after the launch
        self.deadlines: dict[str, int] = {}  # of submissions, by engine, '' for all
        self.substitutes: dict[str, str] = {}  # by the engine that had the seat
        self.moved_to_ms: int | None = None  # when its gate opens by the operator's word
        self.unsearched: dict[str, dict[str, int]] = {}  # by engine and game, moves in a row
        self.excused: dict[str, int] = {}  # losses by engine that a stall of the host excused
        self.flags: dict[str, amendment_entries.EngineFlagged | None] = {}  # None: dismissed
        self.parts: entries.DecisionNeeded | None = None  # a playoff: the tie that it parts
        self.leads: tuple[frozenset[str], ...] = ()  # of a playoff, by place

    @property
    def id(self) -> str:
        """Return the event's id."""
        return self.spec.id

    @property
    def all_played(self) -> bool:
        """Say whether every game paired so far has its result, or will never have one."""
        return self.cursor >= len(self.order)

    @property
    def settled(self) -> bool:
        """Say whether the event is ranked, decided, and everybody promoted has gone on.

        A playoff whose tie was taken back counts no longer.
        """
        if self.parts is not None and self.status is Status.ABANDONED:
            return True
        return (
            self.status is Status.RANKED
            and not self.asked
            and len(self.promoted) == len({promotion.to for promotion in self.spec.promote})
        )

    def note_unsearched(self, game: Game, fact: contract.GameFinished) -> None:
        """Note how many moves each engine played without a search, where it did."""
        by_engine = ((game.white, fact.white_unsearched), (game.black, fact.black_unsearched))
        for engine, plies in by_engine:
            if plies:
                self.unsearched.setdefault(engine, {})[game.id] = plies

    def seat(self, engine: str) -> str:
        """Return who has the seat of an engine: itself, or its last substitute."""
        return self.substitutes.get(engine, engine)

    def give_seat(self, engine: str, substitute: str) -> None:
        """Note that a substitute has an engine's seat, in this event and if it begins again."""
        held = [first for first, last in self.substitutes.items() if last == engine] or [engine]
        for first in held:
            if first == substitute:  # it is back in its own seat
                del self.substitutes[first]
            else:
                self.substitutes[first] = substitute

    def game_id(self, number: int) -> str:
        """Return the id of a game; an event that begins again never uses an id again."""
        again = "" if self.generation == 1 else f"again{self.generation - 1}."
        return f"{self.id}.{again}{number}"
