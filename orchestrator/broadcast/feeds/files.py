"""TCEC's files: which there are, what is in them, and how they come onto the disk.

The content of every file follows from the journal and the finished games' records, so a
rebuild writes the same bytes. Files are replaced by rename; readers see the old or the
new one. The time of ``live.pgn`` is the moment of the last move: viewers compute the
running clock from it (HTTP ``Last-Modified`` against ``Date``).
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from orchestrator.broadcast.content import audit_log, tables
from orchestrator.broadcast.feeds.tcec import cup, index, names, schedule
from orchestrator.common import text
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState


def encode(value: Any) -> bytes:
    """Return a feed's JSON; keys stay in the order that viewers show them in."""
    told = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.visible(told).encode() + b"\n"


def shown_event(state: State) -> events.EventState | None:
    """Return the event that viewers see: the one that is played, else the last that began."""
    begun = [event for event in state.events.values() if event.entrants]
    return state.current or (begun[-1] if begun else None)


def of_event(
    state: State, event: events.EventState, log: audit_log.Chronicle, briefs: tables.Briefs
) -> dict[str, bytes]:
    """Return the archive's files of an event, under the names of both viewers."""
    stem = names.stem(state, event)
    files = {
        "Schedule": (encode(schedule.schedule(state, event, briefs)), "sjson"),
        "Crosstable": (encode(schedule.table(state, event)), "cjson"),
        "crash": (encode(index.crashes(state, event, log.lines)), "xjson"),
    }
    return {
        f"archive/{stem}_{word}.{suffix}": content
        for word, (content, short) in files.items()
        for suffix in ("json", short)
    }


def of_cup(state: State) -> dict[str, bytes]:
    """Return the bracket's file of a Cup whose first round is drawn, nothing for others."""
    if not names.is_cup(state) or not next(iter(state.events.values())).entrants:
        return {}
    stem = names.stem(state, next(iter(state.events.values())))
    content = encode(cup.document(state))
    return {
        f"archive/{stem}_event_Eventcrosstable.{suffix}": content for suffix in ("json", "cjson")
    }


def front(
    state: State, log: audit_log.Chronicle, briefs: tables.Briefs, states: Iterable[State]
) -> dict[str, bytes]:
    """Return the files of what is played now, and the index of all seasons."""
    launched = list(states)
    files = {
        "gamelist.json": encode(index.gamelist(launched)),
        "winners.json": encode(index.winners(launched)),
    }
    event = shown_event(state)
    if event is None:
        return files
    files |= {
        "schedule.json": encode(schedule.schedule(state, event, briefs)),
        "crosstable.json": encode(schedule.table(state, event)),
        "tournament.json": encode(index.tournament(state, event)),
        "crash.json": encode(index.crashes(state, event, log.lines)),
    }
    for content in of_cup(state).values():
        files["Eventcrosstable.json"] = content
    return files


class Directory:
    """The folder that the files are in; a file that has not changed is not written."""

    def __init__(self, root: pathlib.Path) -> None:
        """Write below ``root``, which is made if need be."""
        self._root = root
        (root / "archive").mkdir(parents=True, exist_ok=True)
        self._known: dict[str, bytes | None] = {}  # their digests; None: withdrawn

    def write(self, files: Mapping[str, bytes], at_ms: int | None = None) -> list[str]:
        """Replace files that have changed, their time set to ``at_ms``; return their names."""
        digests = {name: hashlib.sha256(content).digest() for name, content in files.items()}
        changed = [name for name, digest in digests.items() if self._known.get(name) != digest]
        for name in changed:
            if name in self._known or not self._holds(self._root / name, files[name]):
                self._replace(self._root / name, files[name], at_ms)
            self._known[name] = digests[name]
        return changed

    def withdraw(self, name: str) -> None:
        """Remove a file, also one that an earlier process left."""
        if self._known.get(name, b"") is not None:
            (self._root / name).unlink(missing_ok=True)
            self._known[name] = None

    @staticmethod
    def _holds(path: pathlib.Path, content: bytes) -> bool:
        """Say whether a file is as it should be already, after a restart."""
        try:
            return path.read_bytes() == content
        except OSError:
            return False

    def _replace(self, path: pathlib.Path, content: bytes, at_ms: int | None) -> None:
        temporary = path.with_name(f".{path.name}.new")
        temporary.write_bytes(content)
        if at_ms is not None:
            os.utime(temporary, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
        temporary.replace(path)
