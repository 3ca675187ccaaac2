"""What the ledger can do: its verbs, their replies and the invariants both twins keep.

Two implementations pass one contract suite: ``store.RedisLedger`` and
``memory.MemoryLedger``. Every verb is atomic and safe to repeat: a repeat by the same
attempt, with the same arguments, answers as the first call did. Invariants:

* a journal's sequence numbers are 1, 2, 3 … without gaps;
* a hall's slot is held by at most one attempt, under a token greater than every token
  given before it in that hall (the epoch grows with every restore);
* a game has at most one counted result;
* nothing is written under a token that is not the slot's, except a finished game whose
  game has neither a newer token nor a result.

All times are Redis' own (``at_ms``); no client clock is ever compared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from orchestrator import contract

if TYPE_CHECKING:  # it builds on this module
    from orchestrator.ledger import restoring

FARM = "farm"  # the journal of the farm itself: halls, workers, operators


# -- effects: key changes that must be atomic with the entry that tells of them ------


@dataclasses.dataclass(frozen=True)
class Hold:
    """Forbid new claims for a season (``scope=season id``) or in a hall (``scope=hall:NAME``)."""

    scope: str
    name: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Release:
    """Take back the hold ``name`` of a scope; no error where there is none."""

    scope: str
    name: str


@dataclasses.dataclass(frozen=True)
class Abort:
    """Wish that an attempt ends as an interruption; told to it with its next renewal."""

    hall: str
    attempt: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Drain:
    """Wish that one worker takes no new game and ends after the one it plays."""

    hall: str
    worker: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Undrain:
    """Take back the wish that a worker ends after its game."""

    hall: str
    worker: str


@dataclasses.dataclass(frozen=True)
class Settle:
    """A game has its result by a verdict or an import: what a hall still tells of it is refused."""

    season: str
    game: str


Effect = Hold | Release | Abort | Drain | Undrain | Settle


# -- replies -------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Appended:
    """The drafts are journaled; the journal's last sequence number is ``last``."""

    last: int


@dataclasses.dataclass(frozen=True)
class Stale:
    """Nothing was written: the journal has moved on to ``last``."""

    last: int


@dataclasses.dataclass(frozen=True)
class Opened:
    """The hall is open for this worker."""


@dataclasses.dataclass(frozen=True)
class Foreign:
    """The hall belongs to another host."""

    host: str


@dataclasses.dataclass(frozen=True)
class Offered:
    """The game is (or already was) the hall's ready game."""


@dataclasses.dataclass(frozen=True)
class Claimed:
    """The attempt holds the slot under ``token``; ``order`` is the game order's JSON."""

    token: contract.Token
    order: str


@dataclasses.dataclass(frozen=True)
class Busy:
    """The slot is held by another attempt."""

    attempt: str


@dataclasses.dataclass(frozen=True)
class NotReady:
    """This is not a game that the hall may play now (already played, or withdrawn)."""


@dataclasses.dataclass(frozen=True)
class Held:
    """A pause, a drain or another hold stands; ``reason`` says which."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Written:
    """The ply is in the stream (now, or from an earlier call with the same bytes)."""


@dataclasses.dataclass(frozen=True)
class Gap:
    """The ply neither follows the last one nor repeats it; ``last`` is in the stream."""

    last: int


@dataclasses.dataclass(frozen=True)
class Fenced:
    """The token is not the slot's: somebody else decides over this game now."""


@dataclasses.dataclass(frozen=True)
class Renewed:
    """The lease runs on. ``abort`` and ``drain`` carry the operator's wishes, or ''."""

    abort: str = ""
    drain: str = ""


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The result (or the end of the attempt) is journaled as entry ``seq``."""

    seq: int


@dataclasses.dataclass(frozen=True)
class Freed:
    """The hall is free, and nothing is journaled of the attempt that had it."""


@dataclasses.dataclass(frozen=True)
class Refused:
    """The finished game is not accepted; ``reason`` is for the operator."""

    reason: str


@dataclasses.dataclass(frozen=True)
class Suspected:
    """The lease is overdue and marked with this chain of looks."""


@dataclasses.dataclass(frozen=True)
class Alive:
    """The lease is not overdue, or not the one that was meant: nothing was done."""


@dataclasses.dataclass(frozen=True)
class Slot:
    """Who holds a hall, as the ledger sees it; ``order`` is the JSON of what is played."""

    hall: str
    season: str
    game: str
    attempt: str
    token: contract.Token
    worker: str
    host: str
    lane: str
    ttl_ms: int
    deadline_ms: int
    ply: int
    last_move_ms: int
    overdue: bool
    suspect: str
    abort: str
    order: str = dataclasses.field(default="", compare=False, repr=False)


@dataclasses.dataclass(frozen=True)
class Claim:
    """A request for a hall; ``attempt`` is made before the first try."""

    hall: str
    season: str
    game: str
    attempt: str
    worker: str
    host: str
    lane: str
    ttl_ms: int


class Ledger(Protocol):
    """The verbs of the ledger. Any of them may raise ``LedgerUnreachableError``."""

    # journal
    def now_ms(self) -> int:
        """Return Redis' time of day in milliseconds."""

    def seasons(self) -> tuple[str, ...]:
        """Return the ids of all launched seasons in the order of their launch."""

    def resting(self) -> Mapping[str, int]:
        """Return the seasons that are over and wholly archived, each with its last entry.

        One whose journal has grown since is none of them.
        """

    def append(
        self,
        journal: str,
        expected: int,
        drafts: Sequence[contract.Draft],
        by: str,
        effects: Sequence[Effect] = (),
    ) -> Appended | Stale:
        """Append drafts if the journal's last entry is ``expected``; 0 launches a season.

        All drafts and effects are written, or none. Appending to a new season journal
        also lists the season in ``seasons``.
        """

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return up to ``limit`` entries after sequence number ``after``, in order."""

    def last(self, journal: str) -> int:
        """Return the last sequence number of a journal, 0 where there is none."""

    def wait(self, after: Mapping[str, int], timeout_ms: int) -> bool:
        """Block until one of the journals has grown past its number; say whether one has."""

    # mirror and archive
    def mirrored(self, journal: str) -> int:
        """Return the last entry known to be in the mirror on disk."""

    def set_mirrored(self, journal: str, seq: int, archived: Sequence[str] = ()) -> None:
        """Say that all entries up to ``seq`` are in the mirror; never goes back.

        Record and plies of the ``archived`` attempts are forgotten at the same moment: a process
        that ends between the two would leave them behind once its season is over.
        """

    # what was compared: Redis may come back without its last writes
    def run_id(self) -> str:
        """Return the name of the server process that answers: another after every restart."""

    def set_checked(self, journal: str, run_id: str, over: int = 0) -> bool:
        """Let halls write to a journal that was compared with its mirror in this server.

        ``over`` is the last entry of a season that is over and wholly archived: it rests.

        Until then ``append``, ``claim``, ``complete``, ``give_up`` and ``revoke`` raise
        ``LedgerUncheckedError`` and change nothing. A launch is checked by itself, a restore
        takes all marks away. False when the server has been started again meanwhile.
        """

    def alarms(self) -> dict[str, str]:
        """Return what ``serve`` finds wrong with a journal: its name to a sentence."""

    def set_alarms(self, reasons: Mapping[str, str]) -> None:
        """Publish what is wrong with journals, in place of what was before."""

    def record(self, attempt: str) -> bytes | None:
        """Return the finished game's record as it came with ``complete``."""

    def archived(self, attempt: str) -> None:
        """Forget record and plies of an attempt: they are in the archive."""

    def plies_archived(self, attempt: str) -> None:
        """Forget the plies of an attempt that was given up; its record may have come since."""

    # halls, from the orchestrator's side
    def halls(self) -> tuple[str, ...]:
        """Return the names of all halls ever opened or offered a game."""

    def offer(
        self, hall: str, season: str, game: str, order: str, expected: int
    ) -> Offered | Stale | NotReady:
        """Make a game the hall's ready game if the season's journal ends at ``expected``.

        It replaces any other game offered by the same season. ``NotReady`` when the
        game already has its result.
        """

    def withdraw(self, hall: str, season: str) -> None:
        """Take back the season's offer to a hall; a running attempt goes on."""

    def offered(self, hall: str) -> dict[str, str]:
        """Return the hall's ready games: season id to game id."""

    def slot(self, hall: str) -> Slot | None:
        """Return who holds the hall now."""

    def holds(self, scope: str) -> dict[str, str]:
        """Return the holds of a scope: name to reason."""

    def suspect(self, hall: str, token: contract.Token, chain: str) -> Suspected | Alive:
        """Mark an overdue lease with a chain of looks; a renewal clears the mark.

        A mark of an older chain is replaced. Repeating it with the same chain while
        the lease stays overdue answers ``Suspected``.
        """

    def revoke(
        self,
        hall: str,
        token: contract.Token,
        chain: str,
        end: contract.AttemptEnded,
        *,
        suspended: bool = False,
    ) -> Recorded | Freed | Alive:
        """Free the slot of a lease that is overdue and still marked with ``chain``.

        Journals ``attempt_ended`` in the season's journal and takes the game's offer back
        in the same step. A ``suspended`` season's journal that was not compared with its mirror
        is not written to: its attempt goes (``Freed``), so that other seasons have the hall.
        """

    # halls, from the worker's side
    def open_hall(self, hall: str, host: str, worker: str) -> Opened | Foreign:
        """Say that a worker of ``host`` plays in the hall; the first host keeps it."""

    def worker(self, hall: str) -> str:
        """Return the worker that opened the hall last, '' when none ever did."""

    def drained(self, hall: str, worker: str) -> str:
        """Return why this worker should end, '' when it should not."""

    def claim(self, claim: Claim) -> Claimed | Busy | NotReady | Held | Foreign:
        """Take the hall for an attempt at its ready game; journals ``attempt_started``."""

    def write_ply(
        self,
        hall: str,
        token: contract.Token,
        attempt: str,
        ply: int,
        payload: str,
        first: int = 0,
    ) -> Written | Gap | Fenced:
        """Write a completed ply under stream id ``0-<ply>``.

        The first that is written may have any number, but where the caller names the
        attempt's ``first``: ``Gap(0)`` says then that Redis has lost all before.
        """

    def renew(
        self, hall: str, token: contract.Token, attempt: str, ply: int, last_move_ms: int
    ) -> Renewed | Fenced:
        """Extend the lease by its ttl from now, carry progress, bring back wishes."""

    def complete(
        self,
        hall: str,
        token: contract.Token,
        season: str,
        finished: contract.GameFinished,
        record: bytes,
    ) -> Recorded | Refused:
        """Journal ``game_finished``, keep the record for the archive, free the slot."""

    def give_up(
        self, hall: str, token: contract.Token, season: str, end: contract.AttemptEnded
    ) -> Recorded | Fenced:
        """Journal ``attempt_ended``, free the slot and take the game's offer back.

        The game is offered again after a verdict on its interruption, so that nobody
        begins it again before.
        """

    # what is shown of the game in flight; never the truth
    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the written plies of an attempt after ply ``after``: number and payload."""

    def set_live(self, hall: str, payload: str, ttl_ms: int) -> None:
        """Publish what is going on in the hall at this moment."""

    def live(self, hall: str) -> str | None:
        """Return what was last published of the hall, while it is fresh."""

    # hosts; what they tell is shown and alarmed on, nothing is decided by it
    def set_vitals(self, host: str, payload: str) -> None:
        """Publish how a host is; replaces what it told before."""

    def vitals(self) -> dict[str, str]:
        """Return each host's last heartbeat, however long ago."""

    def forget_host(self, host: str) -> None:
        """Drop the heartbeat of a host that is gone; no error where there is none."""

    def check_durability(self) -> list[str]:
        """Return complaints about the server's settings, none where it loses no write."""

    # services of the control side: as hosts, shown and alerted on
    def set_service(self, name: str, payload: str) -> None:
        """Publish the report of a service; replaces its last one."""

    def services(self) -> dict[str, str]:
        """Return the last report of each service, however long ago."""

    # restore
    def present_epoch(self) -> int:
        """Return the present epoch."""

    def raise_epoch(self, epoch: int) -> int:
        """Raise the epoch and free every hall; return the epoch that stands now.

        From now on nothing is written under a token of an older epoch. A wish that is
        not above the present epoch changes nothing.
        """

    def forget_journal(self, journal: str) -> None:
        """Delete a journal that a restore writes again, whole: the farm's own, when it parted."""

    def load(self, journal: str, entries: Sequence[contract.Entry]) -> Appended | Stale:
        """Write entries of a mirror, as they are, to the end of a journal that they follow."""

    def reindex(self, index: restoring.Index) -> None:
        """Replace what is kept of a season beside its journal by what its facts say."""

    def give_back(
        self, attempt: str, record: bytes | None, plies: Sequence[tuple[int, str]]
    ) -> None:
        """Put back the record and the plies of an attempt that the archive does not have."""
