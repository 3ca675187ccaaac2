"""``farm rehearse``: every engine of an event starts in earnest and plays a few moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import rich.table

from orchestrator import contract, errors, players
from orchestrator.arbiter import verdict
from orchestrator.commands import common, completing, trials
from orchestrator.season import rehearsal


@click.command()
@click.argument("event", shell_complete=completing.events)
@click.option("--moves", default=rehearsal.MOVES, show_default=True, type=click.IntRange(1, 40))
@common.season_option
@common.json_option
def rehearse(event: str, moves: int, season: str | None, *, as_json: bool) -> None:
    """Let every engine of EVENT start and play a few moves, before the event opens.

    Threads, hash, tablebases, GPUs and time control are the event's own; nothing counts. Run
    it on the hall's host, while the season is at a gate or paused. Exit code 5: an engine
    did not start, crashed, stalled or lost on time.

    Example: farm rehearse l1-gpu
    """
    with common.open_ledger() as ledger:
        chosen = common.choose_open(ledger, season)
    trials.require_waiting(chosen, "events are rehearsed")
    orders = rehearsal.game_orders(chosen, event, moves)
    rows = []
    for record in players.found()(orders, chosen.hall, common.redis_url()):
        rows += _rows(record)
        if not as_json:
            click.echo(f"{record.order.game}: {record.outcome.details}")
    if as_json:
        common.print_json({"event": event, "games": len(orders), "engines": rows})
    else:
        common.console().print(_table(rows))
    failed = [f"{row['engine']}: {row['problem']}" for row in rows if row["problem"]]
    if failed:
        raise errors.HostError("the rehearsal failed: " + "; ".join(failed))
    if len(rows) < 2 * len(orders):
        raise errors.RefusedError("an official game is waiting: the rehearsal ends here")


def _rows(record: contract.GameRecord) -> list[dict[str, Any]]:
    """Return a row for each engine: where it ran, how it moved, what it did not get."""
    return [_row(record, side) for side in ("white", "black")]


def _row(record: contract.GameRecord, side: contract.Side) -> dict[str, Any]:
    report = record.white if side == "white" else record.black
    own = [ply for ply in record.plies if ply.side == side]
    network = [ply.network_ns for ply in own if ply.network_ns is not None]
    crashed = verdict.is_crash(record.outcome) and record.outcome.loser == side
    problem = f"{record.outcome.details}; {record.outcome.note}" if crashed else ""
    return {
        "engine": record.order.engine(side).id,
        "box": report.box,
        "gpus": list(report.gpus),
        "plies": len(own),
        "slowest_ms": round(max((ply.think_ns for ply in own), default=0) / 1e6, 1),
        "network_ms": round(max(network) / 1e6, 1) if network else None,
        "problem": problem,
        "remarks": [f"{one.name}: {one.remark}" for one in report.options if one.remark],
    }


def _table(rows: Sequence[dict[str, Any]]) -> rich.table.Table:
    table = rich.table.Table(title="Rehearsal")
    for name in ("engine", "where", "plies", "slowest move", "network", "remarks"):
        table.add_column(name)
    for row in rows:
        network = "" if row["network_ms"] is None else f"{row['network_ms']} ms"
        told = row["problem"] or "; ".join(row["remarks"])
        where = " ".join([row["box"] or "hall", *row["gpus"]])
        slowest = f"{row['slowest_ms']} ms"
        table.add_row(row["engine"], where, str(row["plies"]), slowest, network, told)
    return table
