"""The journal: Redis' copy, its mirror, and the fold of both."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.common import errors
from orchestrator.ledger import journal_mirror, restoring
from orchestrator.ops.fsck import findings
from orchestrator.ops.recovery import journal_copies
from orchestrator.season.fold import state as season_state

RESTORE = "stop `farm serve`, then `farm restore`"
PERSON = "do what the problem says, then look again"


def check(season: findings.Season) -> Iterator[findings.Finding]:
    """Compare journal and mirror, entry by entry; fold the journal."""
    path = season.folder / journal_copies.FILE
    try:
        mirrored = journal_mirror.read(path) if path.exists() else []
        ours = restoring.Copy("Redis", season.entries)
        whole = restoring.longest(season.name, [ours, restoring.Copy(str(path), mirrored)])
        if whole.entries:
            first = season_state.fold(whole.entries[:1])
            journal_copies.require_own(season.name, first, whole.place)
    except errors.LedgerDamagedError as error:
        yield findings.Finding(str(path), str(error), advice=PERSON, fatal=True)
        return
    if len(whole.entries) > len(season.entries):
        problem = f"Redis holds {len(season.entries)} entries, the mirror {len(whole.entries)}"
        yield findings.Finding("Redis", problem, advice=RESTORE, fatal=True)
        return
    if path.exists() and journal_mirror.torn(path):
        yield findings.Finding(str(path), "the last line is torn", lambda: _extend(season))
    elif len(mirrored) < season.archived or (season.entries and not mirrored):
        problem = f"the mirror ends at entry {len(mirrored)}, Redis at {len(season.entries)}"
        yield findings.Finding(str(path), problem, lambda: _extend(season))
    yield from _folds(season)


def _extend(season: findings.Season) -> None:
    with journal_mirror.Mirror(season.folder / journal_copies.FILE) as kept:
        kept.extend(season.entries[kept.last :])


def _folds(season: findings.Season) -> Iterator[findings.Finding]:
    try:
        seq = season.state.seq
    except errors.LedgerDamagedError as error:
        yield findings.Finding("Redis", f"the journal does not fold: {error}", fatal=True)
        return
    if seq == 0:
        yield findings.Finding("Redis", "there is no journal", advice=RESTORE, fatal=True)
