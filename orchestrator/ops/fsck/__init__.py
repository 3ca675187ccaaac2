"""``farm fsck``: is everything that belongs together still the same?

Each checker compares one kind of files with what the journal tells, and yields findings;
a finding that can be repaired from what is left carries its repair. A checker is named in
``CHECKERS`` as ``module:function``; whoever adds files that can be rebuilt adds a
line there. Invariants: looking changes nothing; a repair never replaces an undamaged file
and never touches a fact.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Iterable, Iterator

from orchestrator.common import errors
from orchestrator.ops.fsck import findings

Checker = Callable[[findings.Season], Iterable[findings.Finding]]

CHECKERS = {
    "journal": "orchestrator.ops.fsck.journals:check",
    "games": "orchestrator.ops.fsck.games:check",
    "events": "orchestrator.ops.fsck.events:check",
    "feeds": "orchestrator.ops.fsck.feeds:check",
}


def checkers(only: Iterable[str] = ()) -> dict[str, Checker]:
    """Load the checkers named, all of them when none is; raise ``UsageError``."""
    wanted = list(only) or list(CHECKERS)
    loaded = {}
    for name in wanted:
        if name not in CHECKERS:
            raise errors.UsageError(
                f"--only: found {name!r}; allowed: {', '.join(sorted(CHECKERS))}"
            )
        module, _, function = CHECKERS[name].partition(":")
        loaded[name] = getattr(importlib.import_module(module), function)
    return loaded


def check(
    season: findings.Season, wanted: dict[str, Checker], *, repair: bool
) -> Iterator[findings.Told]:
    """Run the checkers over one season, in their order; repair what can be repaired if told to.

    A journal that is damaged ends the look at its season: nothing else can be judged. Where
    nothing is repaired the farm may run, and what is not so any more when the journal is read
    again is no finding.
    """
    for name, checker in wanted.items():
        for finding in findings.readable(checker(season)) if repair else _lasting(season, checker):
            yield _reported(name, season.name, finding, repair=repair)
            if finding.fatal:
                return


def _lasting(season: findings.Season, checker: Checker) -> Iterator[findings.Finding]:
    places = {finding.place for finding in findings.readable(checker(season))}
    if places:
        again = findings.readable(checker(dataclasses.replace(season)))
        yield from (finding for finding in again if finding.place in places)


def _reported(name: str, season: str, finding: findings.Finding, *, repair: bool) -> findings.Told:
    if not repair or finding.repair is None:
        return findings.Told(name, season, finding, repaired=False)
    try:
        finding.repair()
    except OSError as error:
        problem = f"{finding.problem}; cannot be repaired: {error.strerror}"
        left = dataclasses.replace(finding, problem=problem, repair=None, advice=findings.RIGHTS)
        return findings.Told(name, season, left, repaired=False)
    return findings.Told(name, season, finding, repaired=True)
