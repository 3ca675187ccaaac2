"""The recorded state of one event: entrants, games in their order, results, gate.

The cursor points at the first unfinished game, so finding the next game costs the same
in the first as in the hundred-thousandth.
"""

from __future__ import annotations

import dataclasses
import enum

from orchestrator import contract
from orchestrator.season import model, standings, tally


class Status(enum.StrEnum):
    """What is journaled of an event: waiting → (gate → open →) running → ranked."""

    WAITING = "waiting"
    GATE = "gate"
    OPEN = "open"
    RUNNING = "running"
    RANKED = "ranked"


@dataclasses.dataclass(frozen=True, slots=True)
class Game:
    """A paired game, and its result once there is one."""

    id: str
    event: str
    number: int
    cycle: int
    round_number: int
    round: str
    white: str
    black: str
    opening: int | None
    finished: contract.GameFinished | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Arrival:
    """The engines that one event sent to another, best first."""

    engines: tuple[str, ...]
    at_ms: int


class EventState:
    """One event of the season; only ``SeasonState.apply`` changes it."""

    def __init__(self, spec: model.Event) -> None:
        """Start an event of which nothing is journaled yet."""
        self.spec = spec
        self.status = Status.WAITING
        self.entrants: tuple[str, ...] = ()
        self.arrivals: dict[str, Arrival] = {}
        self.promoted: set[str] = set()
        self.opens_at_ms: int | None = None
        self.order: list[str] = []
        self.rounds_paired = 0
        self.cursor = 0
        self.tally = tally.Tally()
        self.rows: tuple[standings.Row, ...] = ()
        self.ranked_ms: int | None = None

    @property
    def id(self) -> str:
        """Return the event's id."""
        return self.spec.id

    @property
    def all_played(self) -> bool:
        """Say whether every game paired so far has its result."""
        return self.tally.games == len(self.order)

    @property
    def settled(self) -> bool:
        """Say whether the event is ranked and everybody promoted has gone on."""
        return self.status is Status.RANKED and len(self.promoted) == len(
            {promotion.to for promotion in self.spec.promote}
        )

    def table(self) -> tuple[standings.Row, ...]:
        """Return the journaled final table, or the standings of this moment."""
        return self.rows or standings.rank(self.tally, self.spec.tiebreaks)
