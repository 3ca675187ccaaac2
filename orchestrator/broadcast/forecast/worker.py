"""Keeps rating list and forecasts in the library, computed by a process beside this one.

A thread that sleeps: it looks how far the projector has folded, sends what is new on to
the process, waits for its answer, and rests longer than that cost. Nothing waits for it.
A journal that became another one (Redis was restored) and a process that ended start a
process again, from the journals' beginning.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog

from orchestrator import contract
from orchestrator.broadcast import projector
from orchestrator.broadcast.content import documents, messages, season_view
from orchestrator.broadcast.forecast import settings as outlook_settings
from orchestrator.common import errors

log = structlog.get_logger()

LOOK_SECONDS: Final = 0.5  # s: between two looks at how far the projector is
REST: Final = 3.0  # times the processor's time of the last computation: a quarter of a core
BACKOFF_SECONDS: Final = 15.0  # s: after a failure
AT_ONCE: Final = 1_000  # entries in one line to the process
ENVIRONMENT: Final = {  # one thread is enough, and texts travel as UTF-8 in every locale
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONUTF8": "1",
}


class Reckoner:
    """The process at the other end of two pipes."""

    def __init__(self, wanted: outlook_settings.Settings) -> None:
        """Start it; raise ``OSError``."""
        command = [sys.executable, "-m", "orchestrator.broadcast.forecast.process"]
        self._process = subprocess.Popen(
            [*command, wanted.encode()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env=os.environ | ENVIRONMENT,
        )

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def tell(self, season: str, entries: Sequence[contract.Entry]) -> None:
        """Send a journal's next entries; raise ``OSError`` where the process is gone."""
        self._write({"season": season, "entries": [entry.line() for entry in entries]})

    def ask(self, now_ms: int) -> dict[str, Any]:
        """Wait for the documents that have changed and their cost; raise ``OSError``."""
        self._write({"now_ms": now_ms})
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise BrokenPipeError(f"the process of rating list and forecast, {self.pid}, ended")
        return dict(contract.loads(line))

    def _write(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(contract.dumps(request) + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """End it at once; who waits for its answer is told that it is gone."""
        self._process.kill()

    def bury(self) -> None:
        """End it and give everything back."""
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                continue  # what was still to be written has nobody to read it
        self._process.wait()


class Keeper:
    """Follows the projector ``shown``; ``publish`` hears which documents have changed."""

    def __init__(
        self,
        source: season_view.Source,
        shown: projector.Projector,
        shelf: documents.Library,
        publish: Callable[[Sequence[messages.Message]], None],
        wanted: outlook_settings.Settings,
    ) -> None:
        """Read journals from ``source``, as far as ``shown`` has folded them."""
        self._source, self._told, self._shelf = source, shown, shelf
        self._publish, self._wanted = publish, wanted
        self._sent: dict[str, tuple[season_view.Season, int]] = {}
        self._lock = threading.Lock()
        self._over = False
        self.reckoner: Reckoner | None = None

    def run(self, stop: threading.Event) -> None:
        """Look until told to stop."""
        rest = LOOK_SECONDS
        while not stop.wait(rest):
            try:
                rest = max(LOOK_SECONDS, REST * self.look())
            except errors.LedgerAwayError:
                rest = BACKOFF_SECONDS
            except Exception:  # the top of the loop: a new process tries again
                if not stop.is_set():
                    log.exception("broadcast.outlook_failed")
                self._forget()
                rest = BACKOFF_SECONDS
        self._forget()

    def close(self) -> None:
        """Let nobody wait any longer, and no further process be started."""
        with self._lock:
            self._over = True
            if self.reckoner is not None:
                self.reckoner.kill()

    def look(self) -> float:
        """Bring the documents up to the projector's journals; return what it cost in seconds."""
        seen = {
            name: (season, season.state.seq)
            for name, season in list(self._told.seasons.items())
            if season.state.launch is not None
        }
        if any(seen.get(name, (None,))[0] is not sent for name, (sent, _) in self._sent.items()):
            self._forget()  # another journal now has this name
        if seen == self._sent:
            return 0.0
        reckoner = self._started()
        for season, last in seen.values():
            self._send(reckoner, season, last)
        reply = reckoner.ask(self._shelf.now_ms())
        changed = self._shelf.put(reply["documents"])
        if changed:
            self._publish([messages.Delta("outlook", {"places": changed})])
        return float(reply["seconds"])

    def _send(self, reckoner: Reckoner, season: season_view.Season, last: int) -> None:
        after = self._sent.get(season.id, (season, 0))[1]
        while after < last:
            entries = self._source.read(season.id, after, min(AT_ONCE, last - after))
            if not entries:
                raise errors.LedgerDamagedError(f"{season.id}: entry {after + 1} has gone")
            reckoner.tell(season.id, entries)
            after = entries[-1].seq
            self._sent[season.id] = (season, after)

    def _started(self) -> Reckoner:
        with self._lock:
            if self._over:
                raise BrokenPipeError("the web server ends")
            if self.reckoner is None:
                self.reckoner = Reckoner(self._wanted)
            return self.reckoner

    def _forget(self) -> None:
        self._sent.clear()
        with self._lock:
            if self.reckoner is not None:
                self.reckoner.bury()
            self.reckoner = None
