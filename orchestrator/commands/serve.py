"""``farm serve``: the orchestrator's loop as a process."""

from __future__ import annotations

import pathlib

import click

from orchestrator import doorbell, logs, watchdog
from orchestrator import serve as server
from orchestrator.commands import common, places, services


@click.command()
@places.archive
def serve(archive: pathlib.Path) -> None:
    """Drive all seasons: decide, offer games to the halls, ring, archive. Runs until ended.

    Example: celery -A orchestrator farm serve
    """
    logs.configure()
    ended = services.until_ended()
    with common.open_ledger() as ledger:
        server.Server(ledger, archive, doorbell.ring, watchdog.Watchdog().alive).run(ended)
