"""An act: one change of a season by a person, checked, journaled with who and why, told.

All commands that change a season take the same options and do the same with them; a
command's own part is the facts that it journals and the sentence that it says. A dry run
makes every check, says the same, and that nothing was changed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import click

from orchestrator import contract
from orchestrator.commands import common, shell_offers, two_person
from orchestrator.ledger import api
from orchestrator.season.fold import state

Drafts: TypeAlias = Callable[[state.SeasonState], Sequence[contract.Draft]]
DraftsAt: TypeAlias = Callable[[state.SeasonState, int], Sequence[contract.Draft]]
Effects: TypeAlias = Callable[[state.SeasonState], Sequence[api.Effect]]
Command: TypeAlias = Callable[..., None]

UNCHANGED = " (nothing was changed)"  # behind the sentence of a dry run


@dataclasses.dataclass(frozen=True)
class Changed:
    """The season before a change, and what was journaled (or would be, in a dry run)."""

    before: state.SeasonState
    drafts: Sequence[contract.Draft]

    @property
    def fact(self) -> dict[str, Any]:
        """Return the first fact's fields; the change of one command is often just that."""
        return dict(self.drafts[0].data)


@dataclasses.dataclass(frozen=True)
class Act:
    """Which season is changed, by whom and why, whether in earnest, and how it is told."""

    season: str | None
    by: str
    reason: str
    dry_run: bool
    as_json: bool

    def change(
        self, drafts: Drafts, effects: Effects = lambda _: (), *, unoffered: bool = False
    ) -> Changed:
        """Journal a change with its effects on the hall (see ``common.change_season``)."""
        return self.change_at(lambda now, _: drafts(now), effects, unoffered=unoffered)

    def change_at(
        self, drafts: DraftsAt, effects: Effects = lambda _: (), *, unoffered: bool = False
    ) -> Changed:
        """Journal a change that hangs on the time of day, too (in ms, by Redis' clock)."""
        made: Sequence[contract.Draft] = ()

        def kept(now: state.SeasonState) -> Sequence[contract.Draft]:
            nonlocal made
            made = drafts(now, now_ms)
            return made

        with common.open_ledger() as ledger:
            now_ms = ledger.now_ms()
            before = common.change_season(
                ledger,
                self.season,
                kept,
                self.by,
                dry_run=self.dry_run,
                effects=effects,
                unoffered=unoffered,
            )
        return Changed(before, made)

    def seconded(self, name: str, drafts: Drafts) -> Act:
        """Return the act with its proposer, where it needs a second operator (``second``)."""
        with common.open_ledger() as ledger:
            by = two_person.consent(
                ledger, self.season, name, drafts, self.by, dry_run=self.dry_run
            )
        return dataclasses.replace(self, by=by)

    def report(
        self, changed: Changed, fields: dict[str, Any], sentence: str, done: str = ""
    ) -> None:
        """Say what was done: facts for programs, a sentence for people.

        ``done`` ends the sentence of what was done in earnest.
        """
        report = {"season": changed.before.launched.id} | fields | {"dry_run": self.dry_run}
        common.report(self.as_json, report, sentence + (UNCHANGED if self.dry_run else done))


def act(function: Command) -> Command:
    """Add ``--season``, the audit options and ``--json``; give them to the command as ``act``."""
    return common.season_option(_gathered(function))


def act_on_season(function: Command) -> Command:
    """Do the same with the argument SEASON, for commands about nothing else."""
    return common.season_argument(_gathered(function))


def act_on_named_season(function: Command) -> Command:
    """Do the same with an argument SEASON that nobody may leave out."""
    return click.argument("season", shell_complete=shell_offers.seasons)(_gathered(function))


def _gathered(function: Command) -> Command:
    @functools.wraps(function)
    def call(
        season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool, **options: Any
    ) -> None:
        function(act=Act(season, by, reason, dry_run=dry_run, as_json=as_json), **options)

    return common.audited(common.json_option(call))
