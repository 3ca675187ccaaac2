"""Copies of journals: in Redis, in an archive, in an export or a backup; read, never changed.

Invariant: a copy is either read whole (but for a torn last line) or refused with the place
of its damage.
"""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Sequence

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, journal_mirror, restoring, store
from orchestrator.season.fold import state as season_state
from orchestrator.serve import archive

BATCH = 1_000  # entries read or written at once: bounds memory and a script's work
FILE = "journal.jsonl"


@dataclasses.dataclass(frozen=True)
class Journal:
    """One journal and its copies; ``whole`` is the copy that goes on the furthest."""

    name: str
    whole: restoring.Copy
    in_redis: int
    on_disk: int
    parted: bool = False  # the farm's own: Redis' copy is no beginning of ``whole``

    @property
    def entries(self) -> Sequence[contract.Entry]:
        """Return all entries that any copy has."""
        return self.whole.entries

    @property
    def is_season(self) -> bool:
        """Say whether this is a season's journal, not the farm's."""
        return self.name != api.FARM


def from_ledger(ledger: store.RedisLedger, journal: str) -> list[contract.Entry]:
    """Read a journal from Redis."""
    entries: list[contract.Entry] = []
    while batch := ledger.read(journal, len(entries), BATCH):
        entries += batch
    return entries


def from_disk(root: pathlib.Path, journal: str) -> list[contract.Entry]:
    """Read a journal from an archive or a backup, [] where it has none.

    Raises:
        LedgerDamagedError: a line is damaged; a torn last line is none.
    """
    path = root / journal / FILE
    return journal_mirror.read(path) if path.exists() else []


def on_disk(root: pathlib.Path) -> list[str]:
    """Return the journals that an archive or a backup holds."""
    return archive.journals(root)


def survey(
    ledger: store.RedisLedger, roots: Sequence[pathlib.Path], refused: dict[str, str] | None = None
) -> list[Journal]:
    """Read every journal wherever it is; the first of ``roots`` is the archive.

    Seasons come in the order of their launch, the farm's own journal last. With ``refused``
    a damaged season is left out, and its reason is put there, so that the others can be helped.

    Raises:
        LedgerDamagedError: two copies part, one is damaged or stands under another season's
            name, or a season does not fold.
    """
    names = {api.FARM, *ledger.seasons(), *(name for root in roots for name in on_disk(root))}
    journals = []
    for name in names:
        try:
            journal = _journal(ledger, roots, name)
            fold(journal)
        except (errors.LedgerDamagedError, errors.LedgerForeignError) as error:
            if refused is None or name == api.FARM:
                raise
            refused[name] = str(error)
            continue
        if journal.entries:
            journals.append(journal)
    return sorted(journals, key=lambda kept: (not kept.is_season, kept.entries[0].at_ms, kept.name))


def _journal(ledger: store.RedisLedger, roots: Sequence[pathlib.Path], name: str) -> Journal:
    disks = [restoring.Copy(str(root / name / FILE), from_disk(root, name)) for root in roots]
    redis = restoring.Copy("Redis", from_ledger(ledger, name))
    in_redis, on_disk = len(redis.entries), len(disks[0].entries)
    try:
        whole = restoring.longest(name, [*disks, redis])
    except errors.LedgerDamagedError:
        if name != api.FARM:
            raise
        whole = restoring.joined(restoring.longest(name, disks), redis)
        return Journal(name, whole, in_redis, on_disk, parted=True)
    return Journal(name, whole, in_redis, on_disk)


def fold(journal: Journal) -> season_state.SeasonState:
    """Fold a season's journal (the farm's own is not folded); raise ``LedgerDamagedError``."""
    if not journal.is_season or not journal.entries:
        return season_state.SeasonState()
    try:
        folded = season_state.fold(journal.entries)
        _index(journal)
    except errors.LedgerDamagedError as error:
        raise errors.LedgerDamagedError(f"journal {journal.name}: {error}") from error
    require_own(journal.name, folded, journal.whole.place)
    return folded


def require_own(name: str, folded: season_state.SeasonState, where: str) -> None:
    """Refuse a season's journal under another name: one season would be played twice."""
    if (season := folded.launched.id) != name:
        raise errors.LedgerDamagedError(
            f"{where} holds the journal of season {season}, not of {name}: is it a copy?"
            " Move it out of the archive"
        )


def _index(journal: Journal) -> None:
    """Find what a restore could not index before it has written anything."""
    restoring.index(journal.name, journal.entries, {}, 0)
