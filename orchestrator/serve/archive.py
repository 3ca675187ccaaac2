"""The archive directory: the journal's mirror, one folder per game, one PGN per event.

    <archive>/<season>/journal.jsonl
    <archive>/<season>/games/<game>/record.json game.pgn protocol.log.gz
    <archive>/<season>/games/<game>/given-up/<attempt>.jsonl
    <archive>/<season>/games/<game>/record.lost     (restored without its moves)
    <archive>/<season>/<event>.pgn
    <archive>/<season>/closed.json                 (the season is over; what its events' PGN hold)

Invariants: a file is complete or absent (written under another name, synced, renamed), but
for an event's PGN, to which games are added: its end is compared when the season is opened.
What is here can be written again from ledger and journal at any time, and a second write of
the same game changes nothing.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.common import errors, files

_TAIL_BYTES = 1 << 16  # bytes: one read from the end of a mirror
CLOSED = "closed.json"
LOST = "record.lost"  # a mark in the folder of a game whose moves a restore could not find


class SeasonArchive:
    """The folder of one season."""

    def __init__(self, root: pathlib.Path, season: str) -> None:
        if not contract.is_name(season):
            raise errors.LedgerDamagedError(f"{season[:80]!r} is no id of a season")
        self.directory = root / season
        self.games = self.directory / "games"
        root.mkdir(mode=0o750, parents=True, exist_ok=True)
        self.directory.mkdir(mode=0o750, exist_ok=True)
        self.games.mkdir(exist_ok=True)
        self.journal = self.directory / "journal.jsonl"

    def _folder(self, game: str) -> pathlib.Path:
        """Return a game's folder; what is no game's id is no path either."""
        return self.games / _name(game)

    def _given_up(self, game: str, attempt: str) -> pathlib.Path:
        return self._folder(game) / "given-up" / f"{_name(attempt)}.jsonl"

    def keep_game(self, game: str, packed: bytes) -> None:
        """Write a finished game's folder; raise ``HostError`` when the record is damaged."""
        folder = self._folder(game)
        contents = game_zip.unpack(packed)
        folder.mkdir(exist_ok=True)
        for name, content in contents.items():
            files.write(folder / name, content)

    def keep_pgn(self, game: str, text: str) -> None:
        """Write the PGN of a game that was played elsewhere; there is no more of it."""
        folder = self._folder(game)
        folder.mkdir(exist_ok=True)
        files.write(folder / "game.pgn", text.encode())

    def keep_given_up(self, game: str, attempt: str, plies: Sequence[tuple[int, str]]) -> None:
        """Write the journaled plies of an attempt that was given up, unless they are here.

        The ledger forgets them afterwards, so a second call may come with none.
        """
        path = self._given_up(game, attempt)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{payload}\n" for _, payload in plies)
        files.write(path, lines.encode())

    def given_up(self, game: str, attempt: str) -> list[str]:
        """Return the payloads of a given-up attempt's plies, [] where none are kept."""
        path = self._given_up(game, attempt)
        try:
            return files.lines(path)
        except FileNotFoundError:
            return []

    def pgn(self, game: str) -> bytes | None:
        """Return the PGN of an archived game, None where it is not in the archive."""
        try:
            return (self._folder(game) / "game.pgn").read_bytes()
        except FileNotFoundError:
            return None

    def mark_lost(self, game: str) -> None:
        """Say that a finished game's moves are in no copy: its result counts without them."""
        folder = self._folder(game)
        folder.mkdir(exist_ok=True)
        files.write(folder / LOST, b"")

    def is_lost(self, game: str) -> bool:
        """Say whether nobody is to wait for a game's record any more."""
        return (self._folder(game) / LOST).exists()

    def event_pgn(self, event: str) -> pathlib.Path:
        """Return the path of an event's PGN."""
        return self.directory / f"{_name(event)}.pgn"

    def extend_event(self, event: str, text: bytes) -> None:
        """Add a game's PGN to the end of its event's.

        What a power cut leaves of it is found by ``ends_with``; a disk that refuses it keeps none.
        """
        path = self.event_pgn(event)
        is_new = not path.exists()
        with path.open("ab", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            left = memoryview(_entry(text))
            try:
                while left:
                    left = left[file.write(left) :]
                os.fsync(file.fileno())
            except OSError:
                with contextlib.suppress(OSError):
                    file.truncate(size)
                raise
        if is_new:
            files.sync_directory(path.parent)

    def ends_with(self, event: str, last: bytes | None) -> bool:
        """Say whether an event's PGN ends with that of a game; None: it must be empty, or missing.

        Of a file that was cut off in the middle of a game, or before it, it does not. Only the
        end of the file is read.
        """
        wanted = b"" if last is None else _entry(last)
        try:
            with self.event_pgn(event).open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - len(wanted) - 2))
                return file.read() in (wanted, b"\n\n" + wanted) and (size > 0) == bool(wanted)
        except FileNotFoundError:
            return not wanted

    def holds(self, event: str, texts: Iterable[bytes]) -> bool:
        """Say whether an event's PGN is that of these games, in this order, and nothing else."""
        wanted = joined(texts)
        try:
            return self.event_pgn(event).read_bytes() == wanted
        except FileNotFoundError:
            return not wanted

    def rebuild_event(self, event: str, texts: Iterable[bytes]) -> None:
        """Write an event's PGN again of its games' PGN, in the given order."""
        content = joined(texts)
        if content or self.event_pgn(event).exists():
            files.write(self.event_pgn(event), content)

    def close(self, last: int) -> None:
        """Note that a season is over with its last entry, and how long its events' PGN are."""
        sizes = {path.name: path.stat().st_size for path in self.directory.glob("*.pgn")}
        content = contract.dumps({"entries": last, "events": sizes})
        files.write(self.directory / CLOSED, content.encode())


def closed(root: pathlib.Path, season: str) -> int:
    """Return the last entry of a season that is over and whose files are as they were left, or 0.

    Also 0 for one of an archive that was restored: its events' PGN are to be written first.
    """
    directory = root / season
    try:
        closing = json.loads((directory / CLOSED).read_bytes())
        sizes = {name: (directory / name).stat().st_size for name in closing["events"]}
        return int(closing["entries"]) if sizes == closing["events"] else 0
    except (OSError, ValueError, LookupError, TypeError):
        return 0


def joined(texts: Iterable[bytes]) -> bytes:
    """Return the PGN of several games as one."""
    return b"".join(map(_entry, texts))


def _entry(pgn: bytes) -> bytes:
    """Return a game's PGN as it stands among others."""
    return pgn.rstrip(b"\n") + b"\n\n"


def _name(text: str) -> str:
    """Return what comes from a journal and is to be a file's name; raise for what could not."""
    if not contract.is_name(text):
        raise errors.LedgerDamagedError(
            f"{text[:80]!r} in the journal is no id of the farm ({contract.ids.ALLOWED})"
        )
    return text


def journals(root: pathlib.Path) -> list[str]:
    """Return the names of the journals that an archive, or a copy of one, holds."""
    return sorted(path.parent.name for path in root.glob("*/journal.jsonl"))


def last_line(root: pathlib.Path, season: str) -> str:
    """Return the last line of a season's mirror, '' where there is none or it is torn."""
    try:
        with (root / season / "journal.jsonl").open("rb") as file:
            at, tail = file.seek(0, os.SEEK_END), b""
            while at and tail.count(b"\n") < 2:
                size = min(at, _TAIL_BYTES)
                at = file.seek(at - size)
                tail = file.read(size) + tail
    except FileNotFoundError:
        return ""
    return tail.decode(errors="replace").split("\n")[-2] if tail.endswith(b"\n") else ""


def length(root: pathlib.Path, season: str) -> int:
    """Return how many entries a season's mirror has, a torn last line left out."""
    with (root / season / "journal.jsonl").open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)


@contextlib.contextmanager
def sole_writer(root: pathlib.Path) -> Iterator[None]:
    """Hold the archive for this process; raise ``RefusedError`` when another has it."""
    root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            files.lock(descriptor)
        except BlockingIOError:
            raise errors.RefusedError(
                f"another `farm serve` writes the archive {root}; stop that one first"
            ) from None
        yield
    finally:
        os.close(descriptor)
