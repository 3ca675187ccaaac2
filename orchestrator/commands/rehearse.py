"""``farm rehearse``: every engine of an event starts as in a game and plays a few moves."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import click
import rich.table

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.commands import common, shell_offers, test_games
from orchestrator.common import errors
from orchestrator.ops import entry_points
from orchestrator.season.amend import rehearsal

SIDES: Final[tuple[contract.Side, ...]] = ("white", "black")
FAULTS: Final = verdict.CRASHES | {
    contract.Ending.TIME,
    contract.Ending.ILLEGAL,
    contract.Ending.FALSE_CLAIM,
}


@click.command()
@click.argument("event", shell_complete=shell_offers.events)
@click.option(
    "--moves",
    default=rehearsal.MOVES,
    show_default=True,
    type=click.IntRange(1, 40),
    help="Moves that each engine plays.",
)
@common.season_option
@common.json_option
def rehearse(event: str, moves: int, season: str | None, *, as_json: bool) -> None:
    """Let every engine of EVENT start and play a few moves, before the event opens.

    Threads, hash, tablebases, GPUs and time control are the event's own; nothing counts. Run
    it on the hall's host, while the season is at a gate or paused. Exit code 5: an engine
    did not start, crashed, stalled or lost on time; the others are rehearsed all the same.

    Example: farm rehearse l1-gpu
    """
    with common.open_ledger() as ledger:
        chosen = common.choose_open(ledger, season)
    test_games.require_waiting(chosen, "events are rehearsed")
    orders = rehearsal.game_orders(chosen, event, moves)
    play = functools.partial(_played, entry_points.player(), chosen.hall)
    rows: list[dict[str, Any]] = []
    ends: errors.RefusedError | None = None
    for order in orders:
        try:
            outcome = play(order, rows)
        except errors.RefusedError as error:
            ends = error
            break
        if not as_json:
            click.echo(f"{order.game}: {outcome}")
    if as_json:
        common.print_json({"event": event, "games": len(orders), "engines": rows})
    elif rows:
        common.console().print(_table(rows))
    failed = [f"{row['engine']}: {row['problem']}" for row in rows if row["problem"]]
    if failed:
        raise errors.HostError("the rehearsal failed: " + "; ".join(failed))
    if ends is not None:
        raise ends


def _played(
    play: entry_points.Play, hall: str, order: contract.GameOrder, rows: list[dict[str, Any]]
) -> str:
    """Play a game, add a row for each engine, and return how it ended.

    Raise ``RefusedError`` where an official game is to be played.
    """
    try:
        records = list(play([order], hall, common.redis_url()))
    except errors.HostError as error:
        rows += [_missing(order, side, str(error)) for side in SIDES]
        return f"not played: {error}"
    if not records:
        raise errors.RefusedError("an official game is waiting: the rehearsal ends here")
    rows += [_row(records[0], side) for side in SIDES]
    return records[0].outcome.details


def _missing(order: contract.GameOrder, side: contract.Side, problem: str) -> dict[str, Any]:
    """Return the row of an engine whose game could not be played."""
    spec = order.engine(side)
    return {
        "engine": spec.id,
        "box": spec.box,
        "gpus": [],
        "plies": 0,
        "slowest_ms": 0.0,
        "network_ms": None,
        "problem": f"not played: {problem}",
        "remarks": [],
    }


def _row(record: contract.GameRecord, side: contract.Side) -> dict[str, Any]:
    report = record.white if side == "white" else record.black
    own = [ply for ply in record.plies if ply.side == side]
    network = [ply.network_ns for ply in own if ply.network_ns is not None]
    failed = record.outcome.ending in FAULTS and record.outcome.loser == side
    problem = f"{record.outcome.details}; {record.outcome.note}" if failed else ""
    return {
        "engine": record.order.engine(side).id,
        "box": report.box,
        "gpus": list(report.gpus),
        "plies": len(own),
        "slowest_ms": round(max((ply.think_ns for ply in own), default=0) / 1e6, 1),
        "network_ms": round(max(network) / 1e6, 1) if network else None,
        "problem": problem,
        "remarks": [
            f"{option.name}: {option.remark}" for option in report.options if option.remark
        ],
    }


def _table(rows: Sequence[dict[str, Any]]) -> rich.table.Table:
    table = rich.table.Table(title="Rehearsal")
    for name in ("engine", "where", "plies", "slowest move", "network", "remarks"):
        table.add_column(name)
    for row in rows:
        network = "" if row["network_ms"] is None else f"{row['network_ms']} ms"
        remarks = row["problem"] or "; ".join(row["remarks"])
        where = " ".join([row["box"] or "hall", *row["gpus"]])
        slowest = f"{row['slowest_ms']} ms"
        table.add_row(row["engine"], where, str(row["plies"]), slowest, network, remarks)
    return table
