"""TCEC's files: what the journal and the archive tell, projected again and compared.

Only what stays is judged: the archive of each season's events, and with the season launched last
the files of what is played now and the lists of all seasons; not those of the game in flight. A
host without feeds has nothing to be judged. A web server may be writing meanwhile, so what differs
is looked at again.
"""

from __future__ import annotations

import dataclasses
import functools
import glob
import pathlib
import re
import time
from collections.abc import Iterator, Mapping

from orchestrator.broadcast import projector
from orchestrator.broadcast.content import documents, season_view
from orchestrator.broadcast.feeds import files as feeds_files
from orchestrator.broadcast.feeds.tcec import names
from orchestrator.ops.fsck import findings

SHARED = ("gamelist", "archive/gamelist", "winners")  # of all seasons
FRONT = (*SHARED, "schedule", "crosstable", "tournament", "crash", "Eventcrosstable")
INDEX = "gamelist.json"  # where it is, feeds are written
LOOKS = 3  # at what differs: a web server writes what is new within a second
PAUSE_SECONDS = 0.7


def check(season: findings.Season) -> Iterator[findings.Finding]:
    """Compare the feeds of one season with a projection that is made for it."""
    root = season.feeds
    if root is None or not (root / INDEX).exists():
        return
    wrong: Mapping[str, bytes | None] = _differing(root, season)
    for _ in range(LOOKS - 1):
        if not wrong:
            return
        time.sleep(PAUSE_SECONDS)
        season = dataclasses.replace(season)  # the journal has gone on, too
        again = _differing(root, season)
        wrong = {name: again[name] for name in wrong if name in again}
    for name, content in sorted(wrong.items()):
        yield _finding(root, name, content)


def _differing(root: pathlib.Path, season: findings.Season) -> dict[str, bytes | None]:
    """Return the files that are not as the journal has them; None: there should be none."""
    own = _One(season.ledger, season.name)
    shared = {f"{name}.json" for name in SHARED}
    wanted = {
        name: content
        for name, content in _projected(own, season).items()
        if "/" in name and name not in shared
    }
    if season.ledger.seasons()[-1:] == (season.name,):
        front = _projected(season.ledger, season)
        wanted |= {
            f"{name}.json": front[f"{name}.json"] for name in FRONT if f"{name}.json" in front
        }
    differing: dict[str, bytes | None] = {
        name: content for name, content in wanted.items() if _content(root / name) != content
    }
    return differing | dict.fromkeys(_ahead(root, season))


def _ahead(root: pathlib.Path, season: findings.Season) -> Iterator[str]:
    """Yield the PGN of games that are not finished: the journal was restored from a copy."""
    for event in season.state.events.values():
        stem = names.stem(season.state, event)
        done = [season.state.game(game).finished is not None for game in event.order]
        finished_names = {
            f"{stem}_{number}.pgn" for number, finished in enumerate(done, 1) if finished
        }
        for path in (root / "archive").glob(f"{glob.escape(stem)}_*.pgn"):
            if path.name not in finished_names and re.fullmatch(
                r"_\d+\.pgn", path.name[len(stem) :]
            ):
                yield f"archive/{path.name}"


def _finding(root: pathlib.Path, name: str, content: bytes | None) -> findings.Finding:
    path = root / name
    if content is None:
        problem = "of a game that is not finished, as the journal tells"
        return findings.Finding(str(path), problem, functools.partial(path.unlink, missing_ok=True))
    problem = "not what the journal tells" if path.exists() else "missing"
    write = functools.partial(feeds_files.Directory(root).write, {name: content})
    return findings.Finding(str(path), problem, write)


def _content(path: pathlib.Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _projected(source: season_view.Source, season: findings.Season) -> dict[str, bytes]:
    """Return all files that a web server started now would write."""
    files = _Files()
    made = projector.Projector(source, season.root, documents.Library(), files, lambda _: None)
    made.look()
    return files.written


class _Files(feeds_files.Directory):
    """Files kept in memory."""

    def __init__(self) -> None:
        self.written: dict[str, bytes] = {}

    def write(self, files: Mapping[str, bytes], at_ms: int | None = None) -> list[str]:  # noqa: ARG002 - as the disk's
        """Take all files."""
        self.written.update(files)
        return list(files)

    def withdraw(self, name: str) -> None:
        """Forget a file."""
        self.written.pop(name, None)


class _One:
    """A ledger with one season (``watched.Source``)."""

    def __init__(self, ledger: season_view.Source, season: str) -> None:
        self._ledger, self._season = ledger, season
        self.now_ms, self.read, self.last = ledger.now_ms, ledger.read, ledger.last
        self.plies, self.live, self.record = ledger.plies, ledger.live, ledger.record
        self.resting = ledger.resting

    def seasons(self) -> tuple[str, ...]:
        """Return the one season."""
        return (self._season,)
