"""How long a hall keeps what its attempts left: logs of interrupted ones, scratch after faults.

The archive has the plies of every attempt; what is here is evidence for authors
(``farm evidence``) and operators. Invariant: nothing of a game whose spool is still here is
deleted, and nothing that has changed within the time.
"""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator

import structlog

from worker_cpu.hall import directory as hall_directory

log = structlog.get_logger()

DAY_SECONDS = 86_400.0


def prune(directory: hall_directory.HallDirectory, keep_days: float, now_seconds: float) -> int:
    """Delete logs and scratches older than so many days; return how many.

    ``now_seconds`` is the time of day, as files are stamped with.
    """
    limit = now_seconds - keep_days * DAY_SECONDS
    waiting = {path.stem for path in directory.spooled()}
    deleted = 0
    for path in _old(directory, limit):
        if path.name.partition(".")[0] not in waiting:
            _delete(path)
            deleted += 1
    if deleted:
        log.info("attempts.pruned", files=deleted, keep_days=keep_days)
    return deleted


def _old(directory: hall_directory.HallDirectory, limit: float) -> Iterator[pathlib.Path]:
    for folder in (directory.attempts, directory.scratch):
        for path in sorted(folder.iterdir()):
            if max(file.lstat().st_mtime for file in (path, *path.rglob("*"))) < limit:
                yield path


def _delete(path: pathlib.Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
