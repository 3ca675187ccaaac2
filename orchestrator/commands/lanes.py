"""``farm lanes`` and ``farm set-aside``: the lanes of the halls, and results of a faulty host."""

from __future__ import annotations

from typing import Any

import click
import rich.table

from orchestrator.commands import common
from orchestrator.common import errors
from orchestrator.ledger import lane_store, store
from orchestrator.testmatch import sprt_match


@click.command()
@click.option("--close", help="Remove the lane HALL.NAME; its cores are free again.")
@common.json_option
def lanes(close: str | None, *, as_json: bool) -> None:
    """Show the lanes of all halls, what they play, and the open test matches.

    Example: farm lanes --close hall-1.b
    """
    with common.open_ledger() as ledger:
        ledger_lanes = lane_store.RedisLanes(ledger.server)
        if close is not None:
            _close(ledger, ledger_lanes, close)
        rows, matches = _lanes(ledger, ledger_lanes), _matches(ledger_lanes)
    if as_json:
        common.print_json({"lanes": rows, "matches": matches})
        return
    table = rich.table.Table("lane", "host", "cores", "MB", "GPUs", "boxes", "NUMA", "nps", "plays")
    for row in rows:
        boxes = ",".join(row["boxes"])
        figures = (row["memory_mb"], row["gpus"], boxes, row["node"], row["nps"])
        cores = ",".join(map(str, row["cpus"]))
        plays = f"{row['match']} {row['game']}" if row["match"] else ""
        table.add_row(f"{row['hall']}.{row['lane']}", row["host"], cores, *map(str, figures), plays)
    common.console().print(table)
    for match in matches:
        click.echo(
            f"{match['match']}: {match['dealt']} of {match['games']} games dealt,"
            f" priority {match['priority']}, share {match['share']}"
        )
        if _is_forsaken(match["match"]):
            name = match["match"]
            goes_on = f"`farm match test --id {name}` goes on with it; Ctrl-C there ends it"
            click.echo(f"{name} has no keeper: {goes_on}")


def _is_forsaken(match: str) -> bool:
    """Say whether nobody keeps a match whose folder is here; of others this machine cannot tell."""
    folder = common.match_folder(match)
    return sprt_match.is_kept(folder) and not sprt_match.has_keeper(folder)


def _close(ledger: store.RedisLedger, ledger_lanes: lane_store.RedisLanes, lane_name: str) -> None:
    hall, _, name = lane_name.rpartition(".")
    if name not in {lane.name for lane in ledger_lanes.lanes_of(hall)}:
        every = [
            f"{hall_name}.{lane.name}"
            for hall_name in ledger.halls()
            for lane in ledger_lanes.lanes_of(hall_name)
        ]
        raise errors.RefusedError(f"no lane {lane_name!r}; lanes: {', '.join(every) or 'none'}")
    ledger_lanes.close_lane(hall, name)


def _lanes(ledger: store.RedisLedger, ledger_lanes: lane_store.RedisLanes) -> list[dict[str, Any]]:
    rows = []
    for hall in ledger.halls():
        leases = {lease.lane: lease for lease in ledger_lanes.leases(hall)}
        for lane in ledger_lanes.lanes_of(hall):
            fields: dict[str, Any] = lane.as_json()
            fields["lane"] = fields.pop("name")
            lease = leases.get(lane.name)
            plays = (
                {"match": lease.match, "game": lease.game} if lease else {"match": "", "game": 0}
            )
            rows.append(fields | plays)
    return rows


def _matches(ledger_lanes: lane_store.RedisLanes) -> list[dict[str, Any]]:
    return [
        {
            "match": match.id,
            "games": match.games,
            "dealt": match.next - 1,
            "again": list(match.again),
            "priority": match.priority,
            "share": match.share,
        }
        for match in ledger_lanes.matches().values()
    ]


@click.command("set-aside")
@click.argument("match")
@click.option("--host", required=True, help="The host whose results are not to count.")
@common.audited
@common.json_option
def set_aside(match: str, host: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Set aside what HOST has played in an open test MATCH; its games are played again.

    The results stay in the match's journal and in set-aside.pgn, marked with the reason.

    Example: farm set-aside dev-1 --host box-3 --reason "a fan was broken"
    """
    directory = common.match_folder(match)
    spec, _ = sprt_match.load(directory)
    folded = sprt_match.folded(directory, spec).tally
    with common.open_ledger() as ledger:
        ledger_lanes = lane_store.RedisLanes(ledger.server)
        games = folded.of_host(host)
        if not dry_run:
            who = common.author(ledger, by)
            sprt_match.set_aside(ledger_lanes, match, folded, host, who, reason)
    report = {"match": match, "host": host, "games": games, "dry_run": dry_run}
    would = "would be" if dry_run else "are"
    common.report(as_json, report, f"{len(games)} results of {host} {would} set aside")
