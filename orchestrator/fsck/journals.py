"""The journal: Redis' copy, its mirror, and the fold of both."""

from __future__ import annotations

import os
from collections.abc import Iterator

from orchestrator import errors
from orchestrator.fsck import findings
from orchestrator.ledger import mirror, restoring
from orchestrator.recovery import copies

RESTORE = "stop `farm serve`, then `farm restore`"


def check(season: findings.Season) -> Iterator[findings.Finding]:
    """Compare journal and mirror, entry by entry; fold the journal."""
    path = season.folder / copies.FILE
    try:
        mirrored = mirror.read(path) if path.exists() else []
        ours = restoring.Copy("Redis", season.entries)
        whole = restoring.longest(season.name, [ours, restoring.Copy(str(path), mirrored)])
    except errors.LedgerDamagedError as error:
        yield findings.Finding(str(path), str(error), advice=RESTORE, fatal=True)
        return
    if len(whole.entries) > len(season.entries):
        problem = f"Redis holds {len(season.entries)} entries, the mirror {len(whole.entries)}"
        yield findings.Finding("Redis", problem, advice=RESTORE, fatal=True)
        return
    if path.exists() and _torn(path):
        yield findings.Finding(str(path), "the last line is torn", lambda: _extend(season))
    elif len(mirrored) < season.archived or (season.entries and not mirrored):
        problem = f"the mirror ends at entry {len(mirrored)}, Redis at {len(season.entries)}"
        yield findings.Finding(str(path), problem, lambda: _extend(season))
    yield from _folds(season)


def _torn(path: os.PathLike[str]) -> bool:
    with open(path, "rb") as file:  # noqa: PTH123 - any path
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _extend(season: findings.Season) -> None:
    with mirror.Mirror(season.folder / copies.FILE) as kept:
        kept.extend(season.entries[kept.last :])


def _folds(season: findings.Season) -> Iterator[findings.Finding]:
    try:
        seq = season.state.seq
    except errors.LedgerDamagedError as error:
        yield findings.Finding("Redis", f"the journal does not fold: {error}", fatal=True)
        return
    if seq == 0:
        yield findings.Finding("Redis", "there is no journal", advice=RESTORE, fatal=True)
