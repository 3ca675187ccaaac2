"""``farm serve``: the orchestrator's loop as a process."""

from __future__ import annotations

import pathlib
import signal
import threading

import click

from orchestrator import doorbell, logs, watchdog
from orchestrator import serve as server
from orchestrator.commands import common


@click.command()
@click.option(
    "--archive",
    type=click.Path(path_type=pathlib.Path, file_okay=False),
    help="The archive directory; default: archive/ in the data directory.",
)
def serve(archive: pathlib.Path | None) -> None:
    """Drive all seasons: decide, offer games to the halls, ring, archive. Runs until ended.

    Example: celery -A orchestrator farm serve
    """
    logs.configure()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with common.open_ledger() as ledger:
        root = archive or common.data_directory() / "archive"
        server.Server(ledger, root, doorbell.ring, watchdog.Watchdog().alive).run(stop)
