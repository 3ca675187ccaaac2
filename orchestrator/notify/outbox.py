"""The notices that are still to be sent, on disk: a restart loses none and sends none again.

A kill repeats at most the message that was being sent: nobody knows whether it arrived.
A notice leaves the outbox when every channel has it and, where it asks, somebody has
acknowledged it or what it is about is over.
"""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterable, Mapping

import pydantic

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.notify import notices
from orchestrator.season.fold import state as season_state

BEAT_SECONDS = 30.0  # s: an outbox in which nothing changes is touched so often
# Ids of the newest notices, sent or not: what each look finds again, as a silent host or a deadline
# that is near, is no new notice.
REMEMBERED = 500


class Waiting(contract.Message):
    """One notice that is not done; ``sent_ms`` by channel is when it was told last."""

    id: str
    kind: notices.Kind
    at_ms: int
    about: str
    facts: Mapping[str, str]
    sent_ms: Mapping[str, int] = {}
    failed: Mapping[str, str] = {}
    tried_ms: int = 0

    @property
    def notice(self) -> notices.Notice:
        """Return the notice itself."""
        return notices.Notice(self.id, self.kind, self.at_ms, self.about, self.facts)


class Kept(contract.Message):
    """The outbox' file: how far each journal was read, and what waits."""

    schema_version: int = contract.SCHEMA
    read: Mapping[str, int] = {}
    waiting: tuple[Waiting, ...] = ()
    told: tuple[str, ...] = ()


class Outbox:
    """The notices that wait, in the order they came."""

    def __init__(self, path: pathlib.Path) -> None:
        """Read the file, if there is one; raise ``HostError`` for a damaged one."""
        self._path = path
        self.fresh = not path.exists()
        kept = Kept() if self.fresh else _load(path)
        self.read = dict(kept.read)
        self.waiting = {waiting.id: waiting for waiting in kept.waiting}
        self._told = dict.fromkeys(kept.told)
        self._saved = b""

    def save(self) -> None:
        """Write the file, whole or not at all, if it would be another one."""
        remembered = tuple(self._told)[-REMEMBERED:]
        kept = Kept(read=self.read, waiting=tuple(self.waiting.values()), told=remembered)
        content = kept.encode().encode()
        if content != self._saved:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            files.write(self._path, content)
            self._saved = content
        elif time.time() - self._path.stat().st_mtime > BEAT_SECONDS:
            os.utime(self._path)  # the exporter shows by it that somebody is at work here

    def add(self, new: Iterable[notices.Notice]) -> None:
        """Take notices that were not taken before."""
        for notice in new:
            if notice.id not in self._told and not self._asked(notice):
                self._told[notice.id] = None
                self.waiting[notice.id] = Waiting(
                    id=notice.id,
                    kind=notice.kind,
                    at_ms=notice.at_ms,
                    about=notice.about,
                    facts=notice.facts,
                )

    def _asked(self, notice: notices.Notice) -> bool:
        return notice.asks and any(other.about == notice.about for other in self.waiting.values())

    def close(self, about: str) -> None:
        """Drop what is over, told or not: it asks nobody any more."""
        for waiting in [waiting for waiting in self.waiting.values() if waiting.about == about]:
            del self.waiting[waiting.id]

    def settle(self, state: season_state.SeasonState) -> None:
        """Drop what a season's state says is over: answered, taken back, or back again."""
        asked = [
            waiting
            for waiting in self.waiting.values()
            if waiting.kind in notices.STANDING and waiting.facts.get("season") == state.launched.id
        ]
        standing = notices.standing(state) if asked else frozenset()
        for waiting in asked:
            if waiting.about not in standing:
                del self.waiting[waiting.id]

    def close_season(self, season: str) -> None:
        """Drop what asks somebody to act in a season that was abandoned."""
        for waiting in list(self.waiting.values()):
            if waiting.notice.asks and waiting.facts.get("season") == season:
                del self.waiting[waiting.id]

    def acknowledge(self, notice: str) -> None:
        """Drop a notice that somebody has taken upon himself; no error for an unknown one."""
        self.waiting.pop(notice, None)


def _load(path: pathlib.Path) -> Kept:
    try:
        return Kept.decode(path.read_bytes())
    except (OSError, pydantic.ValidationError) as error:
        raise errors.HostError(
            f"{path} is corrupt: {error}. Move it aside; notices restart with the next event"
        ) from error
