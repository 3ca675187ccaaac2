"""Durable files: complete or absent after a crash, never half."""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator

from orchestrator.common import errors

try:
    import fcntl
except ModuleNotFoundError:  # Windows: what writes no file that others write works there
    fcntl = None  # type: ignore[assignment]

MAKING_SECONDS = 60.0  # s: a scratch that is younger may be held in a moment
_READ_BYTES = 1 << 20  # bytes: one read of a file


def write(path: pathlib.Path, content: bytes) -> None:
    """Write a file under another name, sync it, rename it, sync its directory."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def is_file(path: pathlib.Path) -> bool:
    """Say whether a file is there; none is behind a name that is too long or a closed directory."""
    try:
        return path.is_file()
    except OSError:  # pathlib answers False for some of these errors alone
        return False


def is_directory(path: pathlib.Path) -> bool:
    """Say whether a directory is there, as ``is_file`` does for files."""
    try:
        return path.is_dir()
    except OSError:
        return False


def lines(path: pathlib.Path) -> list[str]:
    """Return a file's lines; only a line feed ends one.

    What ``str.splitlines`` takes for more (U+2028, U+0085 …) stands unescaped in JSON, and an
    engine may say it.
    """
    split = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return split if split[-1] else split[:-1]


@contextlib.contextmanager
def held(path: pathlib.Path) -> Iterator[None]:
    """Hold a file or directory, which others see by ``is_held``, where it is there.

    The hold ends with this process, too.
    """
    with contextlib.ExitStack() as opened:
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            opened.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_SH)
        yield


def is_held(path: pathlib.Path) -> bool:
    """Say whether a process holds a file or directory."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


@contextlib.contextmanager
def scratch(name: str) -> Iterator[pathlib.Path]:
    """Make a folder ``farm-NAME.*`` among the temporary files, and remove it behind the block.

    What a process that was killed has left there by the same name is removed as well.
    """
    prefix = f"farm-{name}."
    for left in pathlib.Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        if _is_abandoned(left):
            shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix) as made, held(pathlib.Path(made)):
        yield pathlib.Path(made)


def _is_abandoned(folder: pathlib.Path) -> bool:
    """Say whether a scratch of this user's was made by a process that is gone."""
    if fcntl is None:
        return False  # whose it is cannot be asked on Windows
    try:
        status = folder.lstat()
    except OSError:
        return False
    ours = status.st_uid == os.getuid() and stat.S_ISDIR(status.st_mode)
    return ours and time.time() - status.st_mtime > MAKING_SECONDS and not is_held(folder)


def sync_directory(directory: pathlib.Path) -> None:
    """Make creations and renames in a directory survive a power failure."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows opens no directory
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock a file for this process alone, or with all who share it, until it is closed.

    Raise ``BlockingIOError`` where another process has it, ``HostError`` where none can be locked.
    """
    if fcntl is None:
        raise errors.HostError(
            "files cannot be locked on this system; a farm runs on Linux (on Windows: in WSL)"
        )
    fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)


class Checksums:
    """SHA-256 of files; one is read again when its inode, size or times have changed."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], str] = {}

    def of(self, path: pathlib.Path) -> str:
        """Return a file's SHA-256, '' for one that cannot be read."""
        try:
            if not path.is_file():
                return ""  # a device would never end
            with path.open("rb") as file:
                seen = os.fstat(file.fileno())
                key = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
                if key not in self._known:
                    digest = hashlib.sha256()
                    while chunk := file.read(_READ_BYTES):
                        digest.update(chunk)
                    self._known[key] = digest.hexdigest()
                return self._known[key]
        except OSError:
            return ""
