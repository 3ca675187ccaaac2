"""``farm match workers``: what is known of the remote workers of a test match."""

from __future__ import annotations

import math

import click
import rich.table

from orchestrator.commands import common
from orchestrator.testmatch import sprt_match, worker_review


@click.command("test-workers")
@click.argument("match")
@common.json_option
def test_workers(match: str, *, as_json: bool) -> None:
    """Show the remote workers of a test MATCH: evidence, checks, clocks, faults.

    Evidence is a power of ten: by chance an honest owner shows 10^N once in 10^N matches at most;
    10^0.0 is none. Checks are those that went as on the farm's own lanes (without lanes: as with
    three other owners), of those that these have played too: 0/0 until then. Clock is how far it
    is off Redis', and how often it was set; ms a ply is what no clock was charged.

    `farm worker-token condemn` and `pardon` decide by hand (docs/workers.md).

    Example: farm test-workers dev-1
    """
    directory = common.match_folder(match)
    spec, _ = sprt_match.load(directory)
    reviews = sprt_match.folded(directory, spec).review.reviews()
    if as_json:
        report = {"match": match, "limit": round(worker_review.LIMIT, 2)}
        common.print_json(report | {"tokens": [review.as_json() for review in reviews]})
        return
    if not reviews:
        click.echo(f"{match}: no remote worker has played a game or a check yet")
        return
    heads = ("token", "workers", "games", "faults", "evidence", "checks", "clock", "ms a ply")
    table = rich.table.Table(*heads, "state")
    for review in reviews:
        evidence = (
            f"10^{max(0.0, review.nats) / math.log(10):.1f} {review.by if review.nats > 0 else ''}"
        )
        checks = f"{review.checks - review.checks_wrong}/{review.checks}"
        clock = f"{review.clock_off:+.1%}" if review.clock_off else ""
        steps = f"{review.clock_steps} steps" if review.clock_steps else ""
        counts = (str(review.games), str(review.faults), evidence.strip(), checks)
        state = f"{review.state}: {review.reason}" if review.reason else review.state
        clocks = (f"{clock} {steps}".strip(), f"{review.overhead_ms:.2f}")
        table.add_row(review.token, " ".join(review.workers), *counts, *clocks, state)
    common.console().print(table)
