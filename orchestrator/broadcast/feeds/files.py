"""TCEC's files: which there are, what is in them, and how they come onto the disk.

The content of every file follows from the journal and the finished games' records, so a
rebuild writes the same bytes. Files are replaced by rename; readers see the old or the
new one. The time of ``live.pgn`` is the moment of the last move: viewers compute the
running clock from it (HTTP ``Last-Modified`` against ``Date``).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from orchestrator.broadcast.content import audit_log, event_rows, tables
from orchestrator.broadcast.feeds.tcec import cup, index, names, schedule
from orchestrator.season.fold import events, standings
from orchestrator.season.fold import state as season_state

State = season_state.SeasonState
_SHORT: Final = {"Schedule": "sjson", "Crosstable": "cjson", "crash": "xjson"}


def encode(value: Any) -> bytes:
    """Return a feed's JSON; keys stay in the order that viewers show them in."""
    return schedule.encode(value) + b"\n"


def shown_event(state: State) -> events.EventState | None:
    """Return the event that viewers see: the one that is played, else the last that began."""
    begun = [event for event in state.events.values() if event.entrants]
    return state.current or (begun[-1] if begun else None)


class Event:
    """The files of an event; what an entry does not concern stays as it is encoded."""

    def __init__(
        self,
        state: State,
        event: events.EventState,
        cells: event_rows.Cells,
        briefs: tables.Briefs,
    ) -> None:
        """Encode all games of the event."""
        self._schedule = schedule.Schedule(state, event, briefs)
        self._table = schedule.Table(state, event, cells)
        self._stem, self._id = names.stem(state, event), event.id
        self._lines = -1  # of the log, when the faults were written
        self._files: dict[str, bytes] = {}
        self.unsaved: set[str] = set()

    def update(self, state: State, games: Collection[str], results: Collection[str]) -> None:
        """Take note of games that have changed, and of those that were finished."""
        self._schedule.update(state, games)
        self._table.update(state, results)
        self._files.pop("Schedule", None)

    def render(
        self, state: State, log: audit_log.Chronicle, rows: Sequence[standings.Row] | None
    ) -> None:
        """Make the files that have changed; ``rows`` is None where the table has not."""
        made: dict[str, bytes] = {}
        if "Schedule" not in self._files:
            made["Schedule"] = self._schedule.content()
        if rows is not None:
            made["Crosstable"] = self._table.content(state, rows)
        if self._lines != len(log.lines):
            self._lines = len(log.lines)
            crashes = index.crashes(state, state.events[self._id], log.lines)
            made["crash"] = encode(crashes)
        self._files |= made
        self.unsaved.update(made)

    def archived(self) -> dict[str, bytes]:
        """Return the files of the archive, under the names of both viewers."""
        return {
            f"archive/{self._stem}_{word}.{suffix}": content
            for word, content in self._files.items()
            if word in self.unsaved
            for suffix in ("json", _SHORT[word])
        }

    def front(self) -> dict[str, bytes]:
        """Return the files of the event that viewers see."""
        return {f"{word.lower()}.json": content for word, content in self._files.items()}


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
    state: State, shown: Event | None, bracket: Mapping[str, bytes], seasons: index.Seasons
) -> dict[str, bytes]:
    """Return the files of what is played now, and the index of all seasons."""
    gamelist = encode(seasons.gamelist())
    files = {
        "gamelist.json": gamelist,
        "archive/gamelist.json": gamelist,  # where Chess Tournament Viewer asks for it
        "winners.json": encode(seasons.winners()),
    }
    event = shown_event(state)
    if event is None or shown is None:
        return files
    files |= shown.front() | {"tournament.json": encode(index.tournament(state, event))}
    for content in bracket.values():
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
        contents = {id(content): content for content in files.values()}  # digested once each
        digests = {key: hashlib.sha256(content).digest() for key, content in contents.items()}
        wanted = {name: digests[id(content)] for name, content in files.items()}
        changed = [name for name, digest in wanted.items() if self._known.get(name) != digest]
        written: dict[int, pathlib.Path] = {}  # contents that were written just now
        for name in changed:
            path, content = self._root / name, files[name]
            if name in self._known or not self._holds(path, content):
                self._replace(path, content, at_ms, written.get(id(content)))
                written[id(content)] = path
            self._known[name] = wanted[name]
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

    def _replace(
        self, path: pathlib.Path, content: bytes, at_ms: int | None, same: pathlib.Path | None
    ) -> None:
        """Replace a file; where ``same`` has the content, by another name of that one.

        The schedule of a large event is megabytes, and has three names.
        """
        temporary = path.with_name(f".{path.name}.new")
        temporary.unlink(missing_ok=True)
        if same is not None:
            with contextlib.suppress(OSError):  # a disk that knows no second name of a file
                temporary.hardlink_to(same)
                temporary.replace(path)
                return
        temporary.write_bytes(content)
        if at_ms is not None:
            os.utime(temporary, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
        temporary.replace(path)
