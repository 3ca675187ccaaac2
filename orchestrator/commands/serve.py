"""``farm serve``: the orchestrator's loop as a process."""

from __future__ import annotations

import os
import pathlib
import socket

import click

from orchestrator.commands import common, paths, services
from orchestrator.common import errors, logs
from orchestrator.ledger import services as reports
from orchestrator.serve import doorbell
from orchestrator.serve import loop as server

SILENT_SECONDS = 60.0  # s: six of its beats


@click.command()
@paths.archive
@click.option("--check", is_flag=True, help="Only check if one is running; exit code 3: no.")
def serve(archive: pathlib.Path, *, check: bool) -> None:
    """Run all seasons: decide, offer games to the halls, archive. Runs until stopped.

    Example: celery -A orchestrator farm serve
    """
    if check:
        _check()
        return
    logs.configure()
    services.shorten_pauses()
    ended = services.until_ended()
    with common.open_ledger() as ledger:
        server.Server(ledger, archive, doorbell.ring, Watchdog().alive).run(ended)


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


class Watchdog:
    """Tells systemd that this process is ready and alive; nothing where systemd did not ask.

    The datagrams of ``sd_notify(3)``: ``READY=1`` once, ``WATCHDOG=1`` from the loop itself,
    so that a loop that hangs is started again (``WatchdogSec=`` in deploy/systemd).
    """

    def __init__(self) -> None:
        """Look for the socket in the environment."""
        self._address = os.environ.get("NOTIFY_SOCKET", "")
        self._ready = False

    def alive(self) -> None:
        """Say that one more pass is done; the first time also that the process is ready."""
        if not self._address:
            return
        message = b"WATCHDOG=1" if self._ready else b"READY=1\nWATCHDOG=1"
        self._ready = True
        address = self._address
        name = f"\0{address[1:]}" if address.startswith("@") else address
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
            try:
                systemd.sendto(message, name)
            except OSError:
                self._ready = False  # systemd is being started again: told again next time
