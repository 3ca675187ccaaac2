"""Finished games whose spools wait for the archive: forgotten as soon as it has them.

``serve`` offers the next game before it archives the last one, so the settling before a game mostly
finds its predecessor's spool waiting still. The next game looks again, when its engines are there
and at each renewal: else the spool would stay, and count as stuck, for as long as that game takes.
Invariant: a spool is deleted only when the journal's mirror has passed its entry.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Iterable

from orchestrator.ledger import store
from worker_cpu.hall import directory as hall_directory


@dataclasses.dataclass(frozen=True)
class Waiting:
    """A spool whose game is recorded, as the journal's entry ``seq`` of its season."""

    path: pathlib.Path
    season: str
    attempt: str
    seq: int


def forget(
    waiting: Iterable[Waiting],
    directory: hall_directory.HallDirectory,
    ledger: store.RedisLedger,
) -> tuple[Waiting, ...]:
    """Delete the spools and logs of games that are archived; return those that wait on.

    Raises ``LedgerAwayError``; may be repeated at any time.
    """
    left = []
    for spool in waiting:
        if ledger.mirrored(spool.season) >= spool.seq:
            spool.path.unlink(missing_ok=True)
            directory.forget_attempt(spool.attempt)
        else:
            left.append(spool)
    return tuple(left)
