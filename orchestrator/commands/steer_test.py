"""``farm match stop``, ``change``, ``continue`` and ``copy``: test matches, whoever keeps them."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from orchestrator import contract
from orchestrator.commands import common, source_builds, submitting, test_games
from orchestrator.commands import test as test_command
from orchestrator.common import errors
from orchestrator.ledger import lane_store, lanes
from orchestrator.testmatch import sprt_match

_PRIORITY = click.IntRange(-sprt_match.PRIORITY, sprt_match.PRIORITY)
_SHARE = click.IntRange(1, sprt_match.SHARE)


@click.command("stop-test")
@click.argument("match")
@common.audited
@common.json_option
def stop(match: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Stop the open test MATCH, on whatever machine its keeper runs; its results are kept.

    The match's journal says who asked, and why. `farm match continue` goes on with it.

    Example: farm stop-test dev-1 --reason "the branch was rebased"
    """
    data: dict[str, object] = {"reason": reason}
    _ask(match, contract.Draft(lanes.STOP, data), by, dry_run=dry_run)
    would = "would be" if dry_run else "is"
    common.report(as_json, {"match": match, "dry_run": dry_run}, f"{match} {would} stopped")


@click.command("change-test")
@click.argument("match")
@click.option("--priority", type=_PRIORITY, help="Higher ones are dealt first.")
@click.option("--share", type=_SHARE, help="Of lanes and workers, among equal priorities.")
@common.audited
@common.json_option
def change(
    match: str,
    priority: int | None,
    share: int | None,
    by: str,
    reason: str,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Change priority or share of the open test MATCH, on whatever machine its keeper runs.

    Example: farm change-test dev-1 --priority 2 --reason "release blocker"
    """
    data: dict[str, object] = {"priority": priority, "share": share, "reason": reason}
    if priority is None and share is None:
        raise errors.UsageError("say what changes: --priority N or --share N")
    _ask(match, contract.Draft(lanes.CHANGE, data), by, dry_run=dry_run)
    would = "would be" if dry_run else "is"
    common.report(
        as_json, {"match": match, **data, "dry_run": dry_run}, f"{match} {would} dealt otherwise"
    )


def _ask(match: str, draft: contract.Draft, by: str, *, dry_run: bool) -> None:
    """Write a wish into the journal of an open match; raise ``RefusedError`` where none is."""
    with common.open_ledger() as ledger:
        ledger_lanes = lane_store.RedisLanes(ledger.server)
        if ledger_lanes.spec(match) is None or not (
            dry_run or ledger_lanes.replay(match, [], draft, common.author(ledger, by))
        ):
            names = ", ".join(ledger_lanes.matches()) or "none"
            raise errors.RefusedError(f"no test match {match!r} is open; open ones: {names}")


@click.command("continue-test")
@click.argument("match")
@submitting.options
@common.json_option
def continue_(match: str, **options: Any) -> None:
    """Go on with a test MATCH that was stopped, with exactly the games that are missing.

    Example: farm continue-test dev-1
    """
    if submitting.submits(options):
        submitting.submit(match, "goes on with its missing games", "", options)
        return
    spec, terms = sprt_match.load(common.match_folder(match))
    source_builds.require_kept(spec)
    submitting.keep(spec, terms, options)


@click.command("copy-test")
@click.argument("match")
@click.argument("name")
@click.option("--tc", "control", help="In seconds, or with units.")
@click.option("--games", type=click.IntRange(1, sprt_match.MOST), help="At most so many.")
@click.option("--priority", type=_PRIORITY, help="Higher ones are dealt first.")
@click.option("--share", type=_SHARE, help="Of lanes and workers, among equal priorities.")
@click.option("--seed", help="Deal openings, and a tuning's lots, in another order.")
@submitting.options
@common.json_option
def copy(match: str, name: str, **options: Any) -> None:
    """Play a test MATCH once more, from its first game, under another NAME.

    Engines (and their builds), openings, clocks, early ends and test are those of the first one,
    but for what is named here.

    Example: farm copy-test dev-1 dev-1-ltc --tc 60+0.6
    """
    spec, terms = sprt_match.load(common.match_folder(match))
    source_builds.require_kept(spec)
    changes = {key: options[key] for key in ("games", "seed") if options[key] is not None}
    if options["control"] is not None:
        changes["time_control"] = test_games.control(options["control"])
    new = test_command.match_name(name, "")
    folder = common.match_folder(new)
    if folder.exists():
        raise errors.RefusedError(f"{folder} is there already: choose another NAME")
    copied = spec.copied(new, changes)
    given = {key: options[key] for key in ("priority", "share") if options[key] is not None}
    submitting.keep(copied, dataclasses.replace(terms, **given), options)
