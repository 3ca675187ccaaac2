"""The recorded state of one event: entrants, games in their order, results, gate.

The cursor points at the first unfinished game, so finding the next game costs the same
in the first as in the hundred-thousandth.
"""

from __future__ import annotations

import dataclasses
import enum

from orchestrator import contract
from orchestrator.season import entries, model, standings, tally


class Status(enum.StrEnum):
    """What is journaled of an event: waiting → (gate → open →) running → ranked."""

    WAITING = "waiting"
    GATE = "gate"
    OPEN = "open"
    RUNNING = "running"
    RANKED = "ranked"


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

    @property
    def open(self) -> bool:
        """Say whether the game is still to be played."""
        return self.finished is None and not self.cancelled

    @property
    def counts(self) -> bool:
        """Say whether the game has a result that stands (it may be annulled yet)."""
        return self.finished is not None and not self.cancelled


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """The engines that one event sent to another, best first."""

    engines: tuple[str, ...]
    at_ms: int


class EventState:
    """One event of the season; only ``SeasonState.apply`` changes it."""

    def __init__(self, spec: model.Event, generation: int = 1) -> None:
        """Start an event of which nothing is journaled yet, or that begins anew."""
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
        self.generation = generation

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
        """Say whether the event is ranked, decided, and everybody promoted has gone on."""
        return (
            self.status is Status.RANKED
            and not self.asked
            and len(self.promoted) == len({promotion.to for promotion in self.spec.promote})
        )

    def game_id(self, number: int) -> str:
        """Return the id of a game; an event that begins anew never uses an id again."""
        again = "" if self.generation == 1 else f"again{self.generation - 1}."
        return f"{self.id}.{again}{number}"
