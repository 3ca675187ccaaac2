"""Test matches as the gateway's pages show them: read of their folders while somebody looks.

They are what the farm's own page shows (``broadcast.test_matches``): a result that counts there
counts here. Nothing is read while nobody looks, and nobody waits longer for it than a moment.
"""

from __future__ import annotations

import pathlib
import threading
import time
from collections.abc import Collection, Sequence
from typing import Any, Final

import structlog

from orchestrator import contract
from orchestrator.broadcast import test_matches
from orchestrator.broadcast.content import documents
from orchestrator.common import errors
from orchestrator.ledger import batches, lanes, live_games

log = structlog.get_logger()

LOOKED_SECONDS: Final = 60.0  # s: so long after the last visitor folders are looked at
FIRST_SECONDS: Final = 3.0  # s: the first visitor waits so long at most for what is there


class _Dealt:
    """What the gateway's user may read of test matches."""

    def __init__(self, ledger_batches: batches.RedisBatches) -> None:
        self._batches = ledger_batches

    def open(self) -> Collection[str]:
        """Return the names of the matches that are dealt."""
        return {match.id for match in self._batches.open_matches()}

    def leases(self) -> Sequence[lanes.Lease]:
        """Return nothing: lanes are none of the gateway's."""
        return ()


class Watched:
    """The matches below a folder, and the games that are shown live."""

    def __init__(
        self,
        folder: pathlib.Path,
        ledger_batches: batches.RedisBatches,
        shown_live: live_games.RedisLiveGames,
    ) -> None:
        """Read nothing yet."""
        self._shelf = documents.Library()
        place = test_matches.Place(folder, _Dealt(ledger_batches))
        self._tests = test_matches.TestMatches(place, self._shelf, lambda _: None)
        self._live, self._batches = shown_live, ledger_batches
        self._lock, self._fresh = threading.Lock(), threading.Event()
        self._looks = False  # a thread does
        self._over = threading.Event()
        self._asked = 0.0  # s, monotonic

    def lines(self) -> list[dict[str, Any]]:
        """Return each match in a line, the newest first."""
        self._look()
        document = self._shelf.get(test_matches.LIST)
        lines: list[dict[str, Any]] = [] if document is None else contract.loads(document.body)
        return lines

    def find(self, name: str) -> test_matches.Match | None:
        """Return a match, ``None`` where there is none."""
        self._look()
        return self._tests.find(f"{test_matches.PREFIX}{name}")

    def games(self, name: str) -> list[live_games.LiveGame]:
        """Return the games of a match that are shown as they are played."""
        now_ms = self._batches.now_ms()
        return [game for game in self._live.all(now_ms) if game.match == name]

    def close(self) -> None:
        """Have nobody look any more."""
        self._over.set()

    def _look(self) -> None:
        """Have somebody look at the folders from now on, for a while."""
        with self._lock:
            self._asked = time.monotonic()
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._run, name="watching", daemon=True).start()
        self._fresh.wait(FIRST_SECONDS)

    def _run(self) -> None:
        while self._is_asked():
            try:
                self._tests.look()
                self._fresh.set()
            except errors.LedgerAwayError as error:
                log.warning("redis.away", error=str(error))
            except Exception:  # the top of the loop: the next look tries again
                log.exception("watching.failed")
            if self._over.wait(test_matches.LOOK_SECONDS):
                return

    def _is_asked(self) -> bool:
        """Say whether somebody has looked lately; else the next one begins again."""
        with self._lock:
            self._looks = time.monotonic() - self._asked < LOOKED_SECONDS
            if not self._looks:
                self._fresh.clear()
            return self._looks
