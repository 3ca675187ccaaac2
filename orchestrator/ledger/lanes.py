"""Lanes of a hall, and the test matches they play: what verbs take and answer, and invariants.

A hall may be split into lanes, each with cores and memory of its own. A test match has
numbered games; a lane's worker claims the next one of the match whose turn it is.
The verbs are ``lane_store.RedisLanes``'. Invariants:

* lanes of a hall have disjoint cores and boxes, and a lane plays one game at a time;
* a lease has at least one game: without one it would be nobody's to end;
* no lane is claimed while an official game runs or waits in its hall, and no official
  game is claimed while a lane's lease runs: each claim looks at both in one script;
* a game of a test match has at most one result that nobody has set aside;
* what claim, renewal and result cost grows with none of games, lanes, matches and games to deal
  again: games are numbers, dealt by a counter; leases stand by their end, matches in a queue.

A lane's lease that has run out is dropped by the next claim in the hall, and its game
dealt again: other than an official game, a test game may be played for nothing.
"""

from __future__ import annotations

import dataclasses

from orchestrator import contract
from orchestrator.ledger import api

OFFICIAL = "official: a game of a season waits for the whole hall"
STOPPED = "the test match is over"
LEAD = 1_000  # games: results that may wait for the mirror; bounds what Redis keeps of a match
LAPSED_AT_ONCE = 100  # leases that have run out: Redis does nothing else while a claim ends them
GAME, LOST, ASIDE = "test_game", "test_game_lost", "test_games_set_aside"  # kinds of entries
OPENED = "test_opened"  # of the entry that each opening of a match begins with
BUILD = "test_build"  # what became of an engine's build on a remote worker
# Of the owner of an access token: his results are set aside and he is stopped, or is forgiven; what
# earlier matches found; and checks that lanes are to play.
CONDEMNED, PARDONED = "test_worker_condemned", "test_worker_pardoned"
CARRIED, CHECKED = "test_evidence_carried", "test_checks_dealt"
# What people ask of an open match, by command or at the gateway: its keeper follows.
ENDED = "test_ended"  # of the farm's journal: a match is over, was stopped, or cannot go on
STOP, CHANGE = "test_stop_asked", "test_change_asked"
TUNED = "test_values_dealt"  # of a tuning: the values of its parameters from an iteration on


@dataclasses.dataclass(frozen=True)
class Lane:
    """A part of a hall: cores, memory, GPUs, NUMA node (-1: several), speed, other machines."""

    hall: str
    name: str
    host: str
    cpus: frozenset[int]
    memory_mb: int
    gpus: int = 0
    node: int = -1
    nps: int = 0
    boxes: frozenset[str] = frozenset()  # other machines that its games may use, alone

    def as_json(self) -> dict[str, str | int | list[int] | list[str]]:
        """Return the lane as Redis keeps it."""
        lists = {"cpus": sorted(self.cpus), "boxes": sorted(self.boxes)}
        return {**dataclasses.asdict(self), **lists}


@dataclasses.dataclass(frozen=True)
class Needs:
    """What a lane must have for a game of a match."""

    threads: int = 1
    memory_mb: int = 0
    gpus: int = 0
    one_node: bool = False
    nps: int = 0
    boxes: tuple[str, ...] = ()  # where its engines play that are on other machines

    def unmet(self, lane: Lane) -> str:
        """Say what a lane lacks, '' when its games may be played there."""
        wanted = (
            ("cores", self.threads, len(lane.cpus)),
            ("MB", self.memory_mb, lane.memory_mb),
            ("GPUs", self.gpus, lane.gpus),
            ("nps", self.nps, lane.nps),
        )
        lacks = [f"{has} of {needed} {what}" for what, needed, has in wanted if has < needed]
        if self.one_node and lane.node < 0:
            lacks.append("cores of several NUMA nodes")
        lacks += [f"no box {box}" for box in self.boxes if box not in lane.boxes]
        return ", ".join(lacks)


@dataclasses.dataclass(frozen=True)
class Match:
    """A test match as claims see it; ``again`` are games to deal before ``next``, lowest first.

    ``halls`` empty means any hall. A higher priority goes first; among equals games are
    dealt in proportion to ``share``. ``spec`` is the JSON from which orders are made.
    """

    id: str
    games: int
    spec: str
    halls: tuple[str, ...] = ()
    priority: int = 0
    share: int = 1
    needs: Needs = Needs()
    next: int = 1
    again: tuple[int, ...] = ()
    values: tuple[tuple[int, str], ...] = ()  # of a tuning: by first iteration, as ``tune`` took it

    def __post_init__(self) -> None:
        """Refuse what would stand still or divide by nothing."""
        if self.games < 1 or self.share < 1 or self.next < 1:
            raise ValueError(f"test match {self.id}: games, share and next count from 1")

    def as_json(self) -> dict[str, object]:
        """Return what claims look at, as Redis keeps it."""
        return {
            "games": self.games,
            "halls": " ".join(self.halls),
            "priority": self.priority,
            "share": self.share,
            **dataclasses.asdict(self.needs),
            "boxes": " ".join(self.needs.boxes),
        }


def journal(match: str) -> str:
    """Name the journal of a test match."""
    return f"test:{match}"


@dataclasses.dataclass(frozen=True)
class LaneClaim:
    """A request of a lane's worker; ``attempt`` is made before the first try.

    ``most`` is how many games it takes at once; more than one keep both games of a new pair.
    """

    hall: str
    lane: str
    attempt: str
    worker: str
    host: str
    ttl_ms: int
    most: int = 1


@dataclasses.dataclass(frozen=True)
class Dealt:
    """The lane holds these games of a match under ``token``, to be played in this order.

    ``run`` changes with each opening of the match: only within one is its specification the same.
    """

    token: contract.Token
    match: str
    games: tuple[int, ...]
    run: str = ""

    @property
    def game(self) -> int:
        """The game that is played first."""
        return self.games[0]


@dataclasses.dataclass(frozen=True)
class Counted(api.Recorded):
    """A lane's game is journaled; it goes on with ``left`` under a renewed lease, () when free."""

    left: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Tuned:
    """Values of a tuning's parameters, when ``done`` of its iterations were finished.

    An iteration has ``games``; there are so many ``iterations``.
    """

    values: tuple[float, ...]
    done: int
    games: int
    iterations: int

    def data(self) -> dict[str, object]:
        """Return what the entry says beside the first iteration."""
        return {"done": self.done, "values": list(self.values)}


@dataclasses.dataclass(frozen=True)
class Elsewhere:
    """A match of this name is open already, and is another one, or another process keeps it."""


@dataclasses.dataclass(frozen=True)
class Overlap:
    """A core or box of the lane is another lane's already, or it plays and cannot change."""

    lane: str


@dataclasses.dataclass(frozen=True)
class Lease:
    """Who plays in a lane, and the games that it has yet to play."""

    hall: str
    lane: str
    attempt: str
    token: contract.Token
    match: str
    games: tuple[int, ...]
    worker: str
    host: str
    deadline_ms: int
    run: str = ""  # of the match: which of its openings the games are of

    @property
    def game(self) -> int:
        """The game that is played now."""
        return self.games[0]
