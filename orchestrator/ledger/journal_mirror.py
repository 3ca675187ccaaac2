"""The mirror: one journal, line by line, in a file that outlives Redis.

Invariants: line n is entry n; what ``extend`` has returned from is on disk; one process
at a time extends a mirror; only a torn last line is ever cut away, any other damage is
refused and left as it is.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from orchestrator import contract
from orchestrator.common import errors, files

MODE = 0o640  # it holds the seed and coming openings
AWAY = "move the file away, and `farm restore` writes it again from Redis or a backup (--from)"


def _parse(path: pathlib.Path, number: int, line: bytes) -> contract.Entry:
    try:
        entry = contract.Entry.from_line(line.decode())
    except errors.JournalTooNewError as error:
        raise errors.JournalTooNewError(f"{path}: line {number}: {error}") from error
    except (errors.LedgerDamagedError, UnicodeDecodeError) as error:
        raise errors.LedgerDamagedError(
            f"{path}: line {number} is damaged: {error}; {AWAY}"
        ) from error
    if entry.seq != number:
        raise errors.LedgerDamagedError(
            f"{path}: line {number} holds entry {entry.seq}: lines are missing or doubled; {AWAY}"
        )
    return entry


def is_torn(line: bytes) -> bool:
    """Say whether a last line is what a power cut leaves: a half, or blocks never written.

    Any other damage was not made by writing: a whole fact may stand there, with one letter
    changed, and cutting it would lose it.
    """
    return not line.endswith(b"\n") or b"\0" in line


def _entries(
    path: pathlib.Path, offset: int = 0, number: int = 0
) -> Iterator[tuple[int, contract.Entry | None]]:
    """Yield each entry with the file offset after it; None for a torn last line.

    ``offset`` is where to begin, ``number`` the entry that ends there.
    """
    with path.open("rb") as file:
        file.seek(offset)
        line = file.readline()
        while line:
            number += 1
            following = file.readline()
            if not following and is_torn(line):
                yield offset, None
                return
            offset += len(line)
            yield offset, _parse(path, number, line)
            line = following


def read(path: pathlib.Path) -> list[contract.Entry]:
    """Return the entries of a mirror, without a torn last line; the file is not changed.

    Raises:
        LedgerDamagedError: a line is damaged or missing; the message names it.
        FileNotFoundError: there is no such mirror.
    """
    return [entry for _, entry in _entries(path) if entry is not None]


def entries(path: pathlib.Path) -> Iterator[contract.Entry]:
    """Yield what ``read`` returns one by one, for journals too large for memory."""
    return (entry for _, entry in _entries(path) if entry is not None)


def torn(path: pathlib.Path) -> bool:
    """Say whether a mirror ends in a torn line; raise what ``read`` does."""
    return any(entry is None for _, entry in _entries(path))


class Mirror:
    """One journal's mirror, open for extension.

    ``last`` is the last entry on disk; ``cut`` holds the bytes of a torn last line that
    was cut away on opening, empty when there was none.
    """

    def __init__(self, path: pathlib.Path) -> None:
        """Open or create the mirror at ``path``; its directory is created if need be.

        Raises:
            LedgerDamagedError: the file is damaged elsewhere than in its last line.
            RefusedError: another process extends this mirror.
        """
        self.path = path
        self.last = 0
        self.cut = b""
        self._agreed = (0, 0)  # offset and number of the last entry that a journal had, too
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        is_new = not path.exists()
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, MODE)
        try:
            with contextlib.suppress(PermissionError):  # another user's, whose business it is
                os.fchmod(self._fd, os.fstat(self._fd).st_mode & MODE)
            self._lock()
            if is_new:
                files.sync_directory(path.parent)
            self._recover()
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Self:
        """Use the mirror and close it after."""
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let another process extend it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _lock(self) -> None:
        try:
            files.lock(self._fd)
        except BlockingIOError as error:
            raise errors.RefusedError(
                f"{self.path} is being written by another process; one `farm serve` at a time "
                "keeps a mirror: stop the other one, or give this one its own archive directory"
            ) from error

    def _recover(self) -> None:
        for offset, entry in _entries(self.path):
            if entry is None:
                self.cut = os.pread(self._fd, os.fstat(self._fd).st_size - offset, offset)
                os.ftruncate(self._fd, offset)
                os.fsync(self._fd)
                return
            self.last = entry.seq

    def extend(self, entries: Sequence[contract.Entry]) -> None:
        """Append the entries that follow ``last``; they are on disk when this returns.

        Raises:
            LedgerDamagedError: the entries do not follow; nothing is written.
            DiskError: the disk refuses; the file is as it was before.
        """
        for expected, entry in enumerate(entries, self.last + 1):
            if entry.seq != expected:
                raise errors.LedgerDamagedError(
                    f"{self.path} ends at entry {self.last}; the journal offers entry {entry.seq} "
                    f"where {expected} must follow"
                )
        if not entries:
            return
        self._write("".join(f"{entry.line()}\n" for entry in entries).encode())
        self.last = entries[-1].seq

    def _write(self, data: bytes) -> None:
        size = os.fstat(self._fd).st_size
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._fd, view) :]
            os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, size)
            raise errors.DiskError(
                f"cannot write {self.path}: {error.strerror}. The season is suspended and "
                "resumes as soon as the journal can be written"
            ) from error

    def verify_against(self, entries: Iterable[contract.Entry]) -> None:
        """Check that mirror and journal tell the same, as far as both go.

        ``entries`` may begin anywhere but must be contiguous; one of the two may go on
        after the other has ended.

        Raises:
            LedgerDamagedError: they part; the message names the first sequence number.
        """
        journal = iter(entries)
        theirs = next(journal, None)
        if theirs is None:
            return
        follows = theirs.seq > self._agreed[1]  # a long journal comes in pieces
        for offset, ours in _entries(self.path, *(self._agreed if follows else (0, 0))):
            if theirs is None or ours is None:
                return
            if ours.seq < theirs.seq:
                continue
            if ours.line() != theirs.line():
                raise errors.LedgerDamagedError(
                    f"mirror {self.path} and journal differ from entry {theirs.seq}: the mirror"
                    f" has {ours.line()[:200]}, the journal {theirs.line()[:200]}"
                )
            self._agreed = (offset, ours.seq)
            theirs = next(journal, None)
