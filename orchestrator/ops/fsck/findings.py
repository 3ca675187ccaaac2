"""What a checker looks at, and what it says."""

from __future__ import annotations

import dataclasses
import functools
import pathlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import store
from orchestrator.ops.recovery import journal_copies, leftovers
from orchestrator.season.fold import state as season_state
from orchestrator.serve import archive

FOREIGN = "as Redis' `admin`, look at the key and delete it; then `farm restore`"
RIGHTS = "fix its owner, rights or kind (a file? a folder?), then look again"


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that is not as it should be.

    ``repair`` repairs it from what is left, None where nothing is; ``fatal`` says that
    nothing else of this season can be judged.
    """

    place: str
    problem: str
    repair: Callable[[], Any] | None = None
    advice: str = ""
    fatal: bool = False


def readable(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings up to a file or key that cannot be read, and that: it is not judged."""
    try:
        yield from findings
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
        yield Finding(str(error.filename or ""), problem, advice=RIGHTS)
    except errors.LedgerForeignError as error:
        yield Finding("Redis", str(error), advice=FOREIGN, fatal=True)


@dataclasses.dataclass(frozen=True)
class Told:
    """A finding with its checker and season, and whether it was repaired just now."""

    checker: str
    season: str
    finding: Finding
    repaired: bool

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "checker": self.checker,
            "season": self.season,
            "place": self.finding.place,
            "problem": self.finding.problem,
            "advice": self.finding.advice,
            "repairable": self.finding.repair is not None,
            "repaired": self.repaired,
        }


@dataclasses.dataclass(frozen=True)
class Season:
    """One season and where its copies are: Redis, the archive, the halls' folders, the feeds."""

    name: str
    ledger: store.RedisLedger
    root: pathlib.Path
    halls: pathlib.Path | None = None
    feeds: pathlib.Path | None = None

    @property
    def folder(self) -> pathlib.Path:
        """Return the season's folder in the archive."""
        return self.root / self.name

    @functools.cached_property
    def entries(self) -> Sequence[contract.Entry]:
        """Return the journal as Redis has it."""
        return journal_copies.from_ledger(self.ledger, self.name)

    @functools.cached_property
    def archived(self) -> int:
        """Return the last entry that the archive is said to have."""
        return self.ledger.mirrored(self.name)

    @functools.cached_property
    def state(self) -> season_state.SeasonState:
        """Return the fold of the journal."""
        return season_state.fold(self.entries, self.name)

    @functools.cached_property
    def archive(self) -> archive.SeasonArchive:
        """Return the season's archive, for repairs and events."""
        return archive.SeasonArchive(self.root, self.name)

    @functools.cached_property
    def leftovers(self) -> leftovers.Leftovers:
        """Return where a game that the archive lacks may still be."""
        return leftovers.Leftovers(self.ledger, [self.folder], self.halls)
