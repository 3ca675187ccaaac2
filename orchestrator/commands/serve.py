"""``farm serve``: the orchestrator's loop as a process."""

from __future__ import annotations

import pathlib

import click

from orchestrator.commands import common, paths, services
from orchestrator.common import errors, logs
from orchestrator.ledger import services as reports
from orchestrator.ops import watchdog
from orchestrator.serve import doorbell
from orchestrator.serve import loop as server

SILENT_SECONDS = 60.0  # s: six of its beats


@click.command()
@paths.archive
@click.option("--check", is_flag=True, help="Only look whether one is at work; exit 3 if none is.")
def serve(archive: pathlib.Path, *, check: bool) -> None:
    """Drive all seasons: decide, offer games to the halls, ring, archive. Runs until ended.

    Example: celery -A orchestrator farm serve
    """
    if check:
        _check()
        return
    logs.configure()
    services.shorten_pauses()
    ended = services.until_ended()
    with common.open_ledger() as ledger:
        server.Server(ledger, archive, doorbell.ring, watchdog.Watchdog().alive).run(ended)


def _check() -> None:
    """Raise ``RefusedError`` where no ``farm serve`` has reported for a minute."""
    with common.open_ledger() as ledger:
        report, now_ms = reports.read(ledger, reports.SERVE, reports.Serve), ledger.now_ms()
    if report is None:
        raise errors.RefusedError("no `farm serve` has ever reported here; start it")
    silent = (now_ms - report.at_ms) / 1000
    if silent > SILENT_SECONDS:
        raise errors.RefusedError(
            f"`farm serve` on {report.host} has reported nothing for {silent:.0f} s; start it again"
        )
    click.echo(f"farm serve on {report.host} reported {silent:.0f} s ago, build {report.version}")
