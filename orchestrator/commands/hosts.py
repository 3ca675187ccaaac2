"""``farm host list`` and ``forget``: the hosts' last heartbeats."""

from __future__ import annotations

from typing import Any

import click
import rich.table

from orchestrator import contract
from orchestrator.commands import common
from orchestrator.common import errors


@click.group()
def hosts() -> None:
    """List the hosts with their last heartbeat, versions and health.

    Example: farm hosts list
    """


@hosts.command("list")
@common.json_option
def list_(*, as_json: bool) -> None:
    """List the hosts with their last heartbeat, version and health.

    Example: farm hosts list --json
    """
    from orchestrator.ledger import vitals  # noqa: PLC0415 - keeps other commands light

    with common.open_ledger() as ledger:
        heartbeats, now_ms = vitals.read(ledger), ledger.now_ms()
    if as_json:
        common.print_json(
            {host: heartbeat.model_dump(mode="json") for host, heartbeat in heartbeats.items()}
        )
        return
    table = rich.table.Table("host", "role", "hall", "version", "silent", "governor", "quiet")
    for host, heartbeat in sorted(heartbeats.items()):
        disturbed = _disturbed(heartbeat.foreign_cpu_ratio, heartbeat.swap_used_bytes)
        quiet = {True: "yes", False: f"NO{disturbed}", None: "unknown"}[heartbeat.quiet]
        seconds = (now_ms - heartbeat.at_ms) / 1000
        silent = f"{seconds:.0f} s{' SILENT' if seconds > vitals.SILENT_SECONDS else ''}"
        governor = heartbeat.governor or "unknown"
        table.add_row(
            host, heartbeat.role, heartbeat.hall, heartbeat.version, silent, governor, quiet
        )
    common.console().print(table)


def _disturbed(foreign_cpu_ratio: float | None, swap_used_bytes: int | None) -> str:
    """Say what keeps a host from being quiet, beside its governor, which has its own column."""
    others = f", {foreign_cpu_ratio:.0%} of the cores used by others" if foreign_cpu_ratio else ""
    swapped = f", {swap_used_bytes // 2**20} MiB swapped" if swap_used_bytes else ""
    return others + swapped


@hosts.command()
@click.argument("host")
@common.audited
@common.json_option
def forget(host: str, by: str, reason: str, *, dry_run: bool, as_json: bool) -> None:
    """Remove a host that is gone, so that its silence raises no alarm.

    Example: farm hosts forget old-server --reason "sold"
    """
    with common.open_ledger() as ledger:
        heartbeats = ledger.vitals()
        if host not in heartbeats:
            names = ", ".join(sorted(heartbeats)) or "none"
            raise errors.RefusedError(f"no heartbeat of host {host!r} is known; hosts: {names}")
        if not dry_run:
            ledger.forget_host(host)
            fact = contract.Draft("host_forgotten", {"host": host, "reason": reason})
            common.append_farm(ledger, fact, common.author(ledger, by))
    report: dict[str, Any] = {"host": host, "dry_run": dry_run}
    again = "If it is still running, it will reappear with its next heartbeat."
    common.report(as_json, report, f"{host} removed. {again}")
