"""A ledger made again from its journals: what stands in which key follows from the facts.

Invariants: copies of one journal are prefixes of each other, or nothing is restored; an
index is a function of the entries alone, so that a restore may be repeated.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import requests

SHOWN = 160  # characters of a line that an error shows


@dataclasses.dataclass(frozen=True)
class Copy:
    """One copy of a journal, and where it is."""

    place: str
    entries: Sequence[contract.Entry]


@dataclasses.dataclass(frozen=True)
class Index:
    """What the ledger keeps of a season beside its journal.

    ``results`` are ``<seq> <attempt>`` by game, ``attempts`` are ``<token> <worker>`` by
    attempt, ``hosts`` and ``tokens`` the owner and the last n of each hall; ``mirrored``
    is the last entry that the archive is known to have.
    """

    season: str
    results: Mapping[str, str]
    latest: Mapping[str, str]
    attempts: Mapping[str, str]
    hosts: Mapping[str, str]
    tokens: Mapping[str, int]
    holds: Mapping[str, str]
    mirrored: int


def index(
    season: str, journal: Iterable[contract.Entry], holds: Mapping[str, str], mirrored: int
) -> Index:
    """Compute a season's index; the fold of the season knows its ``holds``.

    Raise ``LedgerDamagedError`` for an attempt that began without a token.
    """
    results: dict[str, str] = {}
    latest: dict[str, str] = {}
    attempts: dict[str, str] = {}
    hosts: dict[str, str] = {}
    tokens: dict[str, int] = {}
    for entry in journal:
        if entry.kind == "attempt_started":
            begun = contract.AttemptStarted.model_validate(entry.data)
            attempts[begun.attempt] = f"{entry.token} {begun.worker}"
            latest[begun.game] = begun.attempt
            hosts.setdefault(begun.hall, begun.host)
            tokens[begun.hall] = max(_token(entry).n, tokens.get(begun.hall, 0))
        elif entry.kind == "game_finished":
            done = contract.GameFinished.model_validate(entry.data)
            verdict = f"0 {requests.VERDICT}"
            results[done.game] = verdict if done.by_verdict else f"{entry.seq} {done.attempt}"
    return Index(season, results, latest, attempts, hosts, tokens, dict(holds), mirrored)


def _token(entry: contract.Entry) -> contract.Token:
    if not entry.token:
        raise errors.LedgerDamagedError(f"entry {entry.seq} ({entry.kind}) has no token")
    return contract.Token.parse(entry.token)


def longest(journal: str, copies: Sequence[Copy]) -> Copy:
    """Return the copy that goes on the furthest.

    Raises:
        LedgerDamagedError: two copies part; the message shows where, and both lines.
    """
    best = max(copies, key=lambda copy: len(copy.entries))
    for copy in copies:
        for ours, theirs in zip(best.entries, copy.entries, strict=False):
            if ours.line() != theirs.line():
                raise errors.LedgerDamagedError(
                    f"the copies of journal {journal} differ from entry {ours.seq}:\n"
                    f"  {best.place}: {ours.line()[:SHOWN]}\n"
                    f"  {copy.place}: {theirs.line()[:SHOWN]}\n"
                    "nothing was changed; remove the wrong copy (move the file, or start an"
                    " empty Redis), then restore"
                )
    return best


def joined(mirror: Copy, redis: Copy) -> Copy:
    """Return the farm's own journal after its copies have parted: what both tell, numbered again.

    Nothing is built on it: operators write to it although Redis has lost its end, and both
    parts have happened. A season's journal is never joined.
    """
    pairs = zip(mirror.entries, redis.entries, strict=False)
    same = sum(1 for _ in itertools.takewhile(lambda two: two[0].line() == two[1].line(), pairs))
    own = redis.entries[same:]
    began = len(mirror.entries) + 1
    rest = [dataclasses.replace(entry, seq=seq) for seq, entry in enumerate(own, began)]
    return Copy(f"{mirror.place} and {redis.place}", [*mirror.entries, *rest])


def next_epoch(present: int, now_ms: int, journals: Iterable[Sequence[contract.Entry]]) -> int:
    """Return an epoch greater than any before, also than one that these copies missed.

    The seconds of Redis' clock keep two restores from the same old copy apart.
    """
    entries = itertools.chain.from_iterable(journals)
    epochs = (contract.Token.parse(entry.token).epoch for entry in entries if entry.token)
    return max(present + 1, max(epochs, default=0) + 1, now_ms // 1000)
