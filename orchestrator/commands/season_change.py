"""An act: one change of a season by a person, checked, journaled with who and why, told.

All commands that change a season take the same options and do the same with them; a
command's own part is the facts that it journals and the sentence that it says; what they change in
the season is computed and said by all alike (``season.consequences``). A dry run makes every check,
says the same in the future tense, and that nothing was changed. What needs a season that is
paused or held is shown without the pause, too, and then refused.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from orchestrator import contract
from orchestrator.commands import change_words, common, two_person
from orchestrator.common import errors
from orchestrator.ledger import api, store
from orchestrator.season import consequences
from orchestrator.season.fold import state

Drafts: TypeAlias = Callable[[state.SeasonState], Sequence[contract.Draft]]
DraftsAt: TypeAlias = Callable[[state.SeasonState, int], Sequence[contract.Draft]]
Effects: TypeAlias = Callable[[state.SeasonState], Sequence[api.Effect]]
Command: TypeAlias = Callable[..., None]


@dataclasses.dataclass(frozen=True)
class Changed:
    """The season before a change, and what was journaled (or would be, in a dry run).

    ``refused`` says why a dry run shows what is not allowed before a pause.
    """

    before: state.SeasonState
    drafts: Sequence[contract.Draft]
    change: consequences.Consequences
    refused: errors.NotStillError | None = None

    @property
    def fact(self) -> dict[str, Any]:
        """Return the first fact's fields; the change of one command is often just that."""
        return dict(self.drafts[0].data)

    def require_allowed(self) -> None:
        """Raise ``NotStillError`` where the change was only shown: the season moves."""
        if self.refused is not None:
            raise self.refused


@dataclasses.dataclass(frozen=True)
class Act:
    """Which season is changed, by whom and why, whether in earnest, and how it is told."""

    season: str | None
    by: str
    reason: str
    dry_run: bool
    as_json: bool
    second: str = ""  # its name among those that may need a second operator

    def tense(self, future: str, past: str) -> str:
        """Return how the act is said: what it will do (a dry run), or what it has done."""
        return change_words.tense(future, past, dry_run=self.dry_run)

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
            now_ms, refused = ledger.now_ms(), None
            try:
                before = common.change_season(
                    ledger,
                    self.season,
                    kept,
                    self.by,
                    dry_run=self.dry_run,
                    effects=effects,
                    unoffered=unoffered,
                )
            except errors.NotStillError as error:
                if not self.dry_run:
                    raise
                before, refused = self._still(ledger), error
                kept(before)
        return Changed(before, made, consequences.of(before, made, now_ms), refused)

    def _still(self, ledger: store.RedisLedger) -> state.SeasonState:
        return consequences.stilled(common.choose_open(ledger, self.season))

    def seconded(self, name: str, drafts: Drafts) -> Act:
        """Return the act with its proposer, where it needs a second operator (``second``)."""
        with common.open_ledger() as ledger:
            by = two_person.consent(
                ledger, self.season, name, drafts, self.by, dry_run=self.dry_run
            )
        return dataclasses.replace(self, by=by, second=name)

    def report(
        self,
        changed: Changed,
        fields: dict[str, Any],
        sentence: str,
        done: str = "",
        about: str = "",
    ) -> None:
        """Say what is done and what changes by it: facts for programs, sentences for people.

        ``done`` ends the sentence of what was done in earnest; ``about`` is the game whose new
        result it tells. Raise ``NotStillError`` behind a
        preview of what needs a pause first.
        """
        change, season = changed.change, changed.before.launched
        report = {"season": season.id} | fields | {"changes": change.as_json()}
        said = [sentence + ("" if self.dry_run else done)]
        said += change_words.lines(change, dry_run=self.dry_run, about=about)
        if self.dry_run and self.second in season.season.second_operator:
            said.append(f"{self.second} needs a second operator, who gives the same command")
        text = "\n".join(said) + change_words.unchanged(dry_run=self.dry_run)
        common.report(self.as_json, report | {"dry_run": self.dry_run}, text)
        changed.require_allowed()


def act(function: Command) -> Command:
    """Add ``--season``, the audit options and ``--json``; give them to the command as ``act``."""
    return common.season_option(_gathered(function))


def act_on_season(function: Command) -> Command:
    """Do the same with the argument SEASON, for commands about nothing else."""
    return common.season_argument(_gathered(function))


def act_on_named_season(function: Command) -> Command:
    """Do the same with an argument SEASON that nobody may leave out."""
    return common.season_word(required=True)(_gathered(function))


def _gathered(function: Command) -> Command:
    @functools.wraps(function)
    def call(
        season: str | None, by: str, reason: str, *, dry_run: bool, as_json: bool, **options: Any
    ) -> None:
        function(act=Act(season, by, reason, dry_run=dry_run, as_json=as_json), **options)

    return common.audited(common.json_option(call))
