"""What the ledger's verbs take and answer with, and the invariants that they keep.

The verbs are ``store.RedisLedger``'s. Each is atomic and safe to repeat: a repeat by the same
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

from orchestrator import contract

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
