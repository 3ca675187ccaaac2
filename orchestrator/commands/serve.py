"""``farm serve``: the orchestrator's loop as a process."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import time
from typing import Final, Self

import click
import structlog

from orchestrator import contract
from orchestrator.commands import common, paths, services
from orchestrator.common import errors, logs
from orchestrator.ledger import farm_journal, store, submissions
from orchestrator.ledger import services as reports
from orchestrator.ops import supervisor
from orchestrator.serve import doorbell
from orchestrator.serve import loop as server
from orchestrator.testmatch import kept

log = structlog.get_logger()

LOOK_SECONDS: Final = 2.0  # s: between two looks for test matches that were submitted
AGAIN_SECONDS: Final = 30.0  # s: until what keeps them is started again after it has failed
END_SECONDS: Final = 10.0  # s: what keeps them ends within a pass


@click.command()
@paths.archive
@click.option("--check", is_flag=True, help="Only check if one is running; exit code 3: no.")
def serve(archive: pathlib.Path, *, check: bool) -> None:
    """Run all seasons: decide, offer games to the halls, archive. Runs until stopped.

    Test matches that were submitted (`farm match test … --submit`) are kept by a
    process of its own.

    Example: celery -A orchestrator farm serve
    """
    if check:
        _check()
        return
    logs.configure()
    services.shorten_pauses()
    ended = services.until_ended()
    watchdog = Watchdog()
    with common.open_ledger() as ledger, TestKeeper(ledger) as tests:

        def alive() -> None:
            watchdog.alive()
            tests.look()

        server.Server(ledger, archive, doorbell.ring, alive).run(ended)


def _check() -> None:
    """Raise ``RefusedError`` where no ``farm serve`` has reported for a minute."""
    with common.open_ledger() as ledger:
        report, now_ms = reports.read(ledger, reports.SERVE, reports.Serve), ledger.now_ms()
    if report is None:
        raise errors.RefusedError("no `farm serve` has ever reported here; start it")
    if silence := common.silence(report, now_ms):
        raise errors.RefusedError(silence)
    silent = (now_ms - report.at_ms) / 1000
    click.echo(f"farm serve on {report.host} reported {silent:.0f} s ago, build {report.version}")


class TestKeeper:
    """Runs ``farm match keep`` while there are test matches to keep; it ends by itself.

    A process of its own: what a thousand workers report takes nothing from the seasons.
    """

    def __init__(self, ledger: store.RedisLedger) -> None:
        """Prepare; nothing is started yet."""
        self._ledger, self._submitted = ledger, submissions.RedisSubmissions(ledger.server)
        self._process: subprocess.Popen[bytes] | None = None
        self._left = True  # matches of an earlier life may be open
        self._look_at = 0.0

    def __enter__(self) -> Self:
        """Use it, and end the process after."""
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def look(self) -> None:
        """Start the process where there is something to keep; Redis may be away."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        ready = self._is_ready()
        if self._process is not None:
            code = self._process.poll()
            if code is None:
                return
            self._process, self._left = None, code != 0
            if code:
                log.error("tests.keeper_failed", code=code)
            if code > 0:  # as another one would soon
                self._look_at = time.monotonic() + AGAIN_SECONDS
                return
        try:
            left, self._left = self._left, False
            if ready or (left and kept.open_matches(common.matches_folder())):
                words = supervisor.keep_command(os.getpid())
                self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        except OSError as error:  # no season waits for it
            log.exception("tests.keeper_failed", error=str(error))
            self._left, self._look_at = True, time.monotonic() + AGAIN_SECONDS

    def _is_ready(self) -> bool:
        """Say whether a match waits to be kept; journal those that came by the gateway."""
        try:
            waiting = self._submitted.all()
            for submission in waiting:
                if not submission.journaled:
                    draft = self._submitted.draft(submission)
                    farm_journal.append(self._ledger, draft, submission.by)
                    self._submitted.note_journaled(submission.match)
                if submission.refused_by:
                    facts: dict[str, object] = {
                        "match": submission.match,
                        "reason": submission.reason,
                    }
                    draft = contract.Draft(submissions.REFUSED, facts)
                    farm_journal.append(self._ledger, draft, submission.refused_by)
                    self._submitted.remove(submission.match)
        except (errors.LedgerAwayError, errors.RefusedError):
            return False
        return any(submission.ready for submission in waiting)


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
