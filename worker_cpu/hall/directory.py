"""The hall on its host's disk: the lock, the spool, the logs of attempts.

Invariants:

* whoever starts an engine or gives up an attempt of this host holds the lock; link and
  dead man of a game share one open lock file, so the lock is free only when both are gone;
* a finished game is in the spool (written, fsynced, renamed) before the ledger hears of
  it, and stays there until the journal's mirror has passed its entry;
* a spool that the ledger refuses is kept aside for the operator, never deleted.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import shutil
import time
from collections.abc import Iterator

import structlog

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.common import errors, files

log = structlog.get_logger()

DAY_SECONDS = 86_400.0
LOCK_POLL_SECONDS = 0.02  # s: how often a taken lock is tried again; an old dead man needs ms


@dataclasses.dataclass(frozen=True)
class Spooled:
    """A finished game on the hall's disk, with all that ``complete`` needs."""

    hall: str
    token: contract.Token
    season: str
    finished: contract.GameFinished
    record: bytes

    def encode(self) -> bytes:
        """Write the spool file: one line of JSON, then the record's bytes."""
        header = contract.dumps(
            {
                "v": contract.SCHEMA,
                "hall": self.hall,
                "token": str(self.token),
                "season": self.season,
                "finished": self.finished.model_dump(mode="json"),
            }
        )
        return header.encode() + b"\n" + self.record

    @classmethod
    def decode(cls, content: bytes) -> Spooled:
        """Read a spool file; raise ``HostError`` when it is none, or its record is damaged."""
        header, _, record = content.partition(b"\n")
        digest = hashlib.sha256(game_zip.unpack(record)["record.json"]).hexdigest()
        try:
            raw = contract.loads(header)
            spooled = cls(
                hall=raw["hall"],
                token=contract.Token.parse(raw["token"]),
                season=raw["season"],
                finished=contract.GameFinished.model_validate(raw["finished"]),
                record=record,
            )
        except (ValueError, KeyError, TypeError) as error:
            raise errors.HostError(f"not a spool file: {error}") from error
        if spooled.finished.record_sha256 not in ("", digest):
            raise errors.HostError("the spool's record is not the one of its result")
        return spooled


class HallDirectory:
    """The hall's files: ``lock``, ``spool/``, ``refused/``, ``attempts/``, ``scratch/``."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.spool = root / "spool"
        self.refused = root / "refused"
        self.attempts = root / "attempts"
        self.scratch = root / "scratch"
        for directory in (self.spool, self.refused, self.attempts, self.scratch):
            root.mkdir(mode=0o750, parents=True, exist_ok=True)
            directory.mkdir(mode=0o750, exist_ok=True)

    @contextlib.contextmanager
    def locked(self, wait_seconds: float) -> Iterator[int | None]:
        """Hold the hall's lock; yield its descriptor, or None when it stayed taken.

        A dead man that is started with the descriptor keeps the hall locked until the last
        engine is gone, whatever happens to this process.
        """
        descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with contextlib.ExitStack() as lanes:
            lanes.callback(os.close, descriptor)
            free = _lock(descriptor, wait_seconds) and self._empty_lanes(lanes, wait_seconds)
            yield descriptor if free else None

    def _empty_lanes(self, lanes: contextlib.ExitStack, wait_seconds: float) -> bool:
        """Take the locks of all lanes: a lane's engines may outlive its worker by a moment."""
        for path in sorted(self.root.glob("lanes/*/lock")):
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            lanes.callback(os.close, descriptor)
            if not _lock(descriptor, wait_seconds):
                return False
        return True

    @contextlib.contextmanager
    def lane_locked(self, lane: str, wait_seconds: float) -> Iterator[int | None]:
        """Hold a lane's lock, beside other lanes; yield None while the whole hall is taken.

        The hall's lock is shared with the other lanes, so that whoever wants the whole
        hall waits for all of them; the lane's own descriptor goes to its dead man.
        """
        self.lane(lane).mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as held:
            wanted = (
                (self.root / "lock", fcntl.LOCK_SH),
                (self.lane(lane) / "lock", fcntl.LOCK_EX),
            )
            descriptor: int | None = None
            for path, kind in wanted:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                held.callback(os.close, descriptor)
                if not _lock(descriptor, wait_seconds, kind):
                    descriptor = None
                    break
            yield descriptor

    def lane(self, lane: str) -> pathlib.Path:
        """Return where a lane keeps its lock and what its next worker has to know."""
        return self.root / "lanes" / lane

    def spooled(self) -> list[pathlib.Path]:
        """Return the spool files, oldest first."""
        files = self.spool.glob("*.spool")
        return sorted(files, key=lambda path: path.stat().st_mtime_ns)

    def write_spool(self, spooled: Spooled) -> pathlib.Path:
        """Put a finished game on disk, whole or not at all, and durable."""
        path = self.spool / f"{spooled.finished.attempt}.spool"
        files.write(path, spooled.encode())
        return path

    def set_aside(self, spool: pathlib.Path, reason: str) -> None:
        """Keep a refused spool for the operator, with the reason beside it."""
        files.write(self.refused / f"{spool.stem}.reason", f"{reason}\n".encode())
        spool.rename(self.refused / spool.name)
        files.sync_directory(self.refused)
        files.sync_directory(self.spool)

    def dead_man_log(self, attempt: str) -> pathlib.Path:
        """Return where the dead man of an attempt writes down why it killed."""
        return self.attempts / f"{attempt}.deadman.jsonl"

    def ply_log(self, attempt: str) -> pathlib.Path:
        """Return where the plies of an attempt are logged."""
        return self.attempts / f"{attempt}.plies.jsonl"

    def protocol_log(self, attempt: str) -> pathlib.Path:
        """Return where the engines' traffic of an attempt is logged."""
        return self.attempts / f"{attempt}.protocol.gz"

    def scratch_of(self, attempt: str) -> pathlib.Path:
        """Make the directory in which an attempt's engines leave what they wrote."""
        path = self.scratch / attempt
        path.mkdir(exist_ok=True)
        return path

    def forget_scratch(self, attempt: str) -> None:
        """Delete what the engines of a clean game wrote; after a fault it is evidence."""
        shutil.rmtree(self.scratch / attempt, ignore_errors=True)

    def forget_attempt(self, attempt: str) -> None:
        """Delete an attempt's logs: its game is in the archive."""
        for path in (
            self.dead_man_log(attempt),
            self.ply_log(attempt),
            self.protocol_log(attempt),
        ):
            path.unlink(missing_ok=True)


class AppendLog:
    """A log of lines, each on disk before ``append`` returns."""

    def __init__(self, path: pathlib.Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o640)

    def append(self, line: bytes) -> None:
        """Write one line and sync it."""
        os.write(self._descriptor, line + b"\n")
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def prune_attempts(directory: HallDirectory, keep_days: float, now_seconds: float) -> int:
    """Delete logs and scratches of attempts that are older than so many days; return how many.

    They are evidence for authors (``farm evidence``) and operators; the archive has the plies of
    every attempt. Nothing of a game whose spool is still here is deleted, and nothing that has
    changed within the time. ``now_seconds`` is the time of day, as files are stamped with.
    """
    limit = now_seconds - keep_days * DAY_SECONDS
    waiting = {path.stem for path in directory.spooled()}
    deleted = 0
    for path in _old_attempts(directory, limit):
        if path.name.partition(".")[0] not in waiting:
            _delete(path)
            deleted += 1
    if deleted:
        log.info("attempts.pruned", files=deleted, keep_days=keep_days)
    return deleted


def _old_attempts(directory: HallDirectory, limit: float) -> Iterator[pathlib.Path]:
    for folder in (directory.attempts, directory.scratch):
        for path in sorted(folder.iterdir()):
            if max(file.lstat().st_mtime for file in (path, *path.rglob("*"))) < limit:
                yield path


def _delete(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _lock(descriptor: int, wait_seconds: float, kind: int = fcntl.LOCK_EX) -> bool:
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(LOCK_POLL_SECONDS)
        else:
            return True
