"""Tests that authors submit as revisions: their sources fetched, and what is played made of them.

Nothing is built here: ``farm match keep`` runs below ``farm serve``, which may start no sandbox. So
the bench of each revision has to be stated, and workers that build (``farm work --build``) play it.
"""

from __future__ import annotations

import threading
from typing import Final, TypeAlias

import structlog

from orchestrator import contract
from orchestrator.commands import test as test_command
from orchestrator.common import errors
from orchestrator.contract import remote
from orchestrator.engines import sources
from orchestrator.ledger import submissions
from orchestrator.testmatch import catalogue, orders, sprt_match

log = structlog.get_logger()

Plan: TypeAlias = tuple[orders.Spec, sprt_match.Terms]
NO_BENCH: Final = (
    "{}: the bench is not known: end its commit's message with a line `Bench: 1234567`, or give the"
    " nodes with the test"
)


class Planner:
    """Makes plans, one at a time, beside what keeps matches: git may take minutes."""

    def __init__(self, offered: catalogue.Catalogue, store: sources.Store) -> None:
        """Use these recipes and books; sources go into the store."""
        self._offered, self._store = offered, store
        self._ended: dict[tuple[str, int], Plan | Exception] = {}
        self._thread: threading.Thread | None = None

    def plan(self, submission: submissions.Submission) -> Plan | None:
        """Return what is played as an author has proposed; ``None`` while its source is fetched.

        Raise what stands in the way.
        """
        key = (submission.match, submission.at_ms)
        ended = self._ended.pop(key, None)
        if isinstance(ended, Exception):
            raise ended
        if ended is not None:
            return ended
        if self._thread is None or not self._thread.is_alive():
            self._ended.clear()  # of submissions that were refused meanwhile
            # It holds nothing that is lost with this process, and keeps nobody from ending it.
            self._thread = threading.Thread(target=self._run, args=(key, submission), daemon=True)
            self._thread.start()
        return None

    def _run(self, key: tuple[str, int], submission: submissions.Submission) -> None:
        try:
            proposed = remote.Proposed.model_validate(submission.proposed)
            self._ended[key] = planned(self._offered, self._store, proposed)
        except Exception as error:  # of any kind: whoever asks for the plan is told
            self._ended[key] = error


def planned(offered: catalogue.Catalogue, store: sources.Store, proposed: remote.Proposed) -> Plan:
    """Fetch all revisions; return what is played. Raise ``FarmError``."""
    offered.check(proposed)
    recipe = offered.recipe(proposed.engine)
    tuning = catalogue.tuning_of(proposed)
    own = (proposed.tested, proposed.bench, proposed.options)
    theirs = (proposed.bench_against, proposed.options_against)
    others = [own] if tuning else [(each, *theirs) for each in (proposed.against, *proposed.also)]
    sides = [("dev", *own), *((f"base{at or ''}", *side) for at, side in enumerate(others))]
    engines, builds = [], []
    described: dict[tuple[str, int | None], tuple[remote.SourceBuild, sources.Revision]] = {}
    for name, revision, bench, options in sides:
        try:
            if (revision, bench) not in described:
                described[revision, bench] = sources.describe(store, recipe, revision, bench)
        except errors.UsageError as error:  # where the repository lies is the operator's business
            why = str(error).removeprefix(f"{recipe.repository}: ")
            raise errors.UsageError(f"{revision} cannot be fetched: {why}") from error
        build, looked_up = described[revision, bench]
        if not build.bench:
            raise errors.UsageError(NO_BENCH.format(revision))
        if looked_up.submodules:
            log.warning("test.submodules_absent", match=proposed.name, revision=revision)
        engine = contract.EngineSpec(
            id=name,
            name=f"{build.name}{_suffix(name, tunes=tuning is not None)}",
            version=build.commit[:12],
            protocol=recipe.protocol,  # type: ignore[arg-type] # the recipe's pattern says so
            command=(build.program,),
            options={**recipe.options, **catalogue.options_of(options, "options")},
        )
        engines.append(orders.built_elsewhere(engine, build))
        builds.append(build)
    spec = orders.Spec(
        id=proposed.name,
        engines=tuple(engines),
        builds=tuple(builds),
        remote=True,
        check_nodes=test_command.CHECK_NODES,
        reference_nps=recipe.nps,
        time_control=proposed.time_control,
        games=proposed.games if tuning is None else tuning.games,
        tuning=tuning,
        openings=test_command.openings_of(offered.book(proposed.book), None, "standard"),
        adjudication=proposed.adjudication,
    )
    terms = sprt_match.Terms(
        test=catalogue.test_of(proposed), priority=proposed.priority, share=proposed.share
    )
    return spec, terms


def _suffix(side: str, *, tunes: bool) -> str:
    """Return what is said of an engine beside its revision."""
    if tunes:
        return " +" if side == "dev" else " -"
    return " (tested)" if side == "dev" else ""
