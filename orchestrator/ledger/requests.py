"""What both ledgers check in a request, derive from it, or say about it.

Invariant: whatever one twin accepts, refuses or answers, the other does in the same
words; so everything that is not storage itself is here, once.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence

from orchestrator import contract
from orchestrator.ledger import api

MAX_DRAFTS = 10_000  # entries per append: keeps the script's work (about 0.1 s) bounded
VERDICT = "(none: a verdict, or an import)"  # whose result it is when no attempt told it
OVER = "over "  # in front of a season's name where the ledger keeps that it rests
NO_REASON = "no reason given"  # an empty reason would read as "no wish"


def check_append(expected: int, drafts: Sequence[contract.Draft]) -> None:
    """Raise ``ValueError`` for an append that cannot be made safe to repeat."""
    if expected < 0:
        raise ValueError(f"a journal cannot end at {expected}")
    if not drafts:
        raise ValueError("an append needs a draft: effects go with the entry that tells of them")
    if len(drafts) > MAX_DRAFTS:
        raise ValueError(f"{len(drafts)} drafts in one append; at most {MAX_DRAFTS}")


def check_entries(entries: Sequence[contract.Entry]) -> None:
    """Raise ``ValueError`` for entries that are no piece of a journal."""
    numbers = [entry.seq for entry in entries]
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ValueError("entries to load must be some, and follow each other")
    if len(entries) > MAX_DRAFTS:
        raise ValueError(f"{len(entries)} entries in one load; at most {MAX_DRAFTS}")


def check_ply(ply: int) -> None:
    """Raise ``ValueError`` for a ply number that cannot be a stream id."""
    if ply < 1:
        raise ValueError(f"plies count from 1, not {ply}")


def check_chain(chain: str) -> None:
    """Raise ``ValueError`` for a chain of looks that looks like no mark."""
    if not chain:
        raise ValueError("a chain of looks needs a name")


def operation_id(
    journal: str,
    expected: int,
    drafts: Sequence[contract.Draft],
    by: str,
    effects: Sequence[api.Effect],
) -> str:
    """Name an append by its content: the same facts at the same place are the same append."""
    content = [
        journal,
        expected,
        by,
        [[draft.kind, draft.data] for draft in drafts],
        [[type(effect).__name__, dataclasses.asdict(effect)] for effect in effects],
    ]
    return hashlib.sha256(contract.dumps(content).encode()).hexdigest()[:32]


def non_empty(reason: str) -> str:
    """Return a reason that is never empty."""
    return reason or NO_REASON


def started(claim: api.Claim) -> contract.AttemptStarted:
    """Return the fact that a granted claim journals."""
    return contract.AttemptStarted(
        game=claim.game,
        attempt=claim.attempt,
        hall=claim.hall,
        lane=claim.lane,
        host=claim.host,
        worker=claim.worker,
    )


def refusal(why: str, detail: str) -> api.Refused:
    """Word the refusal of a finished game for the operator."""
    reasons = {
        "result": f"the game already has its result from attempt {detail}",
        "epoch": f"the token is of an older epoch; since a restore the epoch is {detail}",
        "newer": f"the game was given to a newer attempt, {detail}",
        "unknown": f"the token was never given to attempt {detail} at this game",
    }
    return api.Refused(reasons[why])
