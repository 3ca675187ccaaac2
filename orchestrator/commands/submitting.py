"""Test matches that ``farm serve`` keeps: submitted, approved or refused, and listed."""

from __future__ import annotations

import dataclasses
from typing import Any

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common, keeping, tables
from orchestrator.common import errors, output
from orchestrator.ledger import lane_store, store, submissions
from orchestrator.testmatch import orders, sprt_match


def options(function: output.Function) -> output.Function:
    """Add ``--submit`` and what belongs to it."""
    for decorate in (
        click.option(
            "--approval", is_flag=True, help="Submit it: it waits until somebody else approves it."
        ),
        click.option(
            "--submit", is_flag=True, help="Let `farm serve` keep it, and return at once."
        ),
    ):
        function = decorate(function)
    return function


def keep(
    spec: orders.Spec, terms: sprt_match.Terms, given: dict[str, Any]
) -> sprt_match.Standing | None:
    """Keep a match here until it is over, or submit it, as the options say; ``None`` then."""
    if not submits(given):
        return keeping.keep(spec, terms, as_json=given["as_json"])
    submit(spec.id, keeping.outline(spec), sprt_match.encoded(spec, terms), given)
    return None


def submits(given: dict[str, Any]) -> bool:
    """Say whether a match is to be kept by ``farm serve``."""
    return bool(given["submit"] or given["approval"])


def submit(match: str, about: str, order: str, given: dict[str, Any]) -> None:
    """Submit a match, one without an order to go on where it is kept; raise ``RefusedError``."""
    with common.open_ledger() as ledger:
        submission = submissions.Submission(
            match=match,
            by=common.author(ledger, common.login()),
            at_ms=ledger.now_ms(),
            about=about,
            asks=given["approval"],
            goes_on=not order,
        )
        _submit(ledger, submission, order)
    waits = f"waits until somebody else approves it: `farm match approve {match}`"
    sentence = waits if submission.asks else "is submitted: `farm serve` keeps it"
    common.report(given["as_json"], dataclasses.asdict(submission), f"{match} {sentence}")


def _submit(ledger: store.RedisLedger, submission: submissions.Submission, order: str) -> None:
    if lane_store.RedisLanes(ledger.server).spec(submission.match) is not None:
        raise errors.RefusedError(
            f"a test match {submission.match} is open already: give this one another --id"
        )
    waiting = submissions.RedisSubmissions(ledger.server)
    if not waiting.submit(submission, order):
        raise errors.RefusedError(
            f"a test match {submission.match} waits already (farm match waiting): give this one"
            " another --id, or take that one back with `farm match refuse`"
        )
    common.append_farm(ledger, waiting.draft(submission), submission.by)


@click.command("approve-test")
@click.argument("match")
@common.audited
@common.json_option
def approve(match: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Let the test MATCH that somebody else has submitted be played.

    Example: farm approve-test dev-1 --by berta
    """
    with common.open_ledger() as ledger:
        waiting, who = submissions.RedisSubmissions(ledger.server), common.author(ledger, by)
        submission = _find(waiting, match)
        if submission.is_by(who):
            raise errors.RefusedError(
                f"{match} was submitted by {submission.by}: somebody else approves it"
            )
        if not dry_run and not submission.approved_by:
            waiting.approve(match, who)
            facts: dict[str, object] = {"match": match, "reason": reason}
            common.append_farm(ledger, contract.Draft(submissions.APPROVED, facts), who)
    would = "would be" if dry_run else "is"
    common.report(as_json, {"match": match, "dry_run": dry_run}, f"{match} {would} approved")


@click.command("refuse-test")
@click.argument("match")
@common.audited
@common.json_option
def refuse(match: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Take a test MATCH out of those that wait; also your own.

    Example: farm refuse-test dev-1 --reason "the bounds of a simplification are -3 and 1"
    """
    with common.open_ledger() as ledger:
        waiting, who = submissions.RedisSubmissions(ledger.server), common.author(ledger, by)
        _find(waiting, match)
        if not dry_run:
            waiting.remove(match)
            facts: dict[str, object] = {"match": match, "reason": reason}
            common.append_farm(ledger, contract.Draft(submissions.REFUSED, facts), who)
    would = "would be" if dry_run else "is"
    common.report(as_json, {"match": match, "dry_run": dry_run}, f"{match} {would} taken out")


@click.command("waiting-tests")
@common.json_option
def waiting(*, as_json: bool) -> None:
    """List the test matches that were submitted and are not kept yet.

    Example: farm waiting-tests --json
    """
    with common.open_ledger() as ledger:
        listed = submissions.RedisSubmissions(ledger.server).all()
    if as_json:
        common.print_json([dataclasses.asdict(submission) for submission in listed])
        return
    table = rich.table.Table("match", "what", "by", "since", "waits for")
    for submission in listed:
        whom = "`farm serve`" if submission.ready else "approval by somebody else"
        if submission.failed or submission.refused_by:
            taken_out = f"taken out by {submission.refused_by}"
            whom = f"failed: {submission.failed}" if submission.failed else taken_out
        cells = (submission.match, submission.about, submission.by)
        table.add_row(
            *map(output.plain, cells), tables.moment(submission.at_ms), output.plain(whom)
        )
    common.console().print(table)


def _find(waiting: submissions.RedisSubmissions, match: str) -> submissions.Submission:
    submission = waiting.find(match)
    if submission is None:
        names = ", ".join(other.match for other in waiting.all()) or "none"
        raise errors.RefusedError(f"no test match {match!r} waits; those that do: {names}")
    return submission
