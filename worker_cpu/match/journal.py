"""What a match has on disk: its journal, the PGN and EPD files; nothing finished is lost.

The journal is JSON lines, appended one by one, each on disk before another is written:
``match`` opens a match (arguments, seed), ``game`` is one finished game. A file may hold
several matches; the last is the one that can be resumed. Only where a resume changes a match
(more rounds) the file is replaced by one whose ``match`` line says so. Invariants:

* a finished game is first in ``<journal>.last`` (written, synced, renamed; only where there
  are more files than the journal), then in the journal, then in the PGN file: after a kill
  at any moment ``resume`` completes what of these three was done, so a game is in each file
  exactly once, or is played again;
* a PGN file is only cut back to where the last game began, and only by its own remains.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import pathlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.testmatch import match_journal
from worker_cpu.match import schedule
from worker_cpu.referee import result as referee_result

VERSION = 1


def result_of(slot: schedule.Slot, game: referee_result.Ended) -> match_journal.Result:
    """Return what the journal keeps of a finished game."""
    misplayed = game.outcome.ending in match_journal.MISPLAYED
    return match_journal.Result(
        number=slot.number,
        round=slot.round,
        white=game.order.white.name,
        black=game.order.black.name,
        opening=slot.opening,
        result=game.outcome.result,
        ending=game.outcome.ending,
        loser=game.outcome.loser,
        details=game.outcome.details,
        note=game.outcome.note,
        plies=game.plies,
        started_ms=game.started_ms,
        ended_ms=game.ended_ms,
        pair=slot.pair,
        position=game.final_fen if misplayed else "",
    )


@dataclasses.dataclass(frozen=True)
class Outputs:
    """The files of a match; ``None`` where one is not written."""

    journal: pathlib.Path
    pgn: pathlib.Path | None = None
    epd: pathlib.Path | None = None

    @property
    def last(self) -> pathlib.Path:
        """Return where the last game stands until it is in the other files."""
        return self.journal.with_name(self.journal.name + ".last")


class Journal:
    """A match's files, open for appending; one process writes them."""

    def __init__(self, outputs: Outputs) -> None:
        self._outputs = outputs
        self._lock: _Lock | None = None

    def open(
        self,
        arguments: Sequence[str],
        seed: int,
        about: match_journal.About | None = None,
        *,
        append: bool = True,
        again: bool = False,
    ) -> None:
        """Begin a match; ``append`` keeps what the PGN file holds already.

        ``again``: until its first game is written, ``resume`` goes on with the match before it.

        Raise ``RefusedError`` when another match writes this journal; no file is touched then.
        """
        for path in (self._outputs.journal, self._outputs.pgn, self._outputs.epd):
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = self._lock or _Lock(self._outputs.journal)
        if again:
            self.resume()  # its last game, too, is whole in all files
        self._outputs.last.unlink(missing_ok=True)
        if not append and self._outputs.pgn is not None:
            self._outputs.pgn.unlink(missing_ok=True)
        head = {"kind": "match", "v": VERSION, "arguments": list(arguments), "seed": seed}
        if again:
            head["again"] = True
        if about is not None:
            head["about"] = about.model_dump(mode="json")
        _append(self._outputs.journal, _line(head))

    def resume(self) -> match_journal.Past:
        """Complete what a kill interrupted, and return what the match has so far.

        Raise ``RefusedError`` when the match still runs.
        """
        self._lock = self._lock or _Lock(self._outputs.journal)
        _drop_vain_end(self._outputs.journal)
        past = match_journal.past(self._outputs.journal)
        with contextlib.suppress(FileNotFoundError):
            kept = contract.loads(self._outputs.last.read_bytes())
            if kept["game"]["number"] not in {result.number for result in past.results}:
                _append(self._outputs.journal, _line(kept["game"]))
            self._complete(kept)
        return match_journal.past(self._outputs.journal)

    def change(self, arguments: Sequence[str], about: match_journal.About) -> None:
        """Keep other arguments of the match that has been resumed; its seed and games stay."""
        path = self._outputs.journal.resolve()  # a link stays one
        content = path.read_bytes()
        begin = content.rfind(b"\n", 0, content.rindex(match_journal.OPENS)) + 1
        end = content.index(b"\n", begin) + 1
        head = contract.loads(content[begin:end])
        head |= {"arguments": list(arguments), "about": about.model_dump(mode="json")}
        files.write(path, content[:begin] + _line(head) + content[end:])
        self._lock = _Lock(self._outputs.journal)  # what was held is not that file any more

    def write(self, slot: schedule.Slot, game: referee_result.Ended) -> match_journal.Result:
        """Make a finished game durable in all files; ``last`` is wanted for more than one."""
        finished = result_of(slot, game)
        texts = dict(self._texts(game))
        kept = {
            "game": finished.as_json(),
            "texts": texts,
            "sizes": {"pgn": _size(self._outputs.pgn), "epd": _size(self._outputs.epd)},
        }
        if texts:
            files.write(self._outputs.last, contract.dumps(kept).encode())
        _append(self._outputs.journal, _line(kept["game"]))
        self._complete(kept)
        return finished

    def _texts(self, game: referee_result.Ended) -> Iterator[tuple[str, str]]:
        if self._outputs.pgn is not None:
            yield "pgn", game.pgn
        if self._outputs.epd is not None:
            yield "epd", " ".join(game.final_fen.split()[:4]) + ";\n"

    def close(self) -> None:
        """Tidy up after a run that ended by itself: every game is in its files."""
        self._outputs.last.unlink(missing_ok=True)
        self._lock = None

    def _complete(self, kept: Mapping[str, Any]) -> None:
        """Bring the last game into the PGN and EPD files unless it is there, whole."""
        for name, path in (("pgn", self._outputs.pgn), ("epd", self._outputs.epd)):
            if path is not None and name in kept["texts"]:
                _append_at(path, int(kept["sizes"][name]), kept["texts"][name].encode())


class _Lock:
    """A journal that is one match's alone until this object is gone, or its process is."""

    def __init__(self, path: pathlib.Path) -> None:
        self._descriptor = os.open(
            path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666
        )
        if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            return  # /dev/null is everybody's
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise errors.RefusedError(
                f"{path}: another match is writing this journal; wait for its end, or name"
                " another: -journal FILE, or -pgnout FILE, which has its journal beside it"
            ) from None
        except OSError:
            return  # a file system without locks

    def __del__(self) -> None:
        os.close(self._descriptor)


def _line(fields: Mapping[str, Any]) -> bytes:
    return contract.dumps(fields).encode() + b"\n"


def _size(path: pathlib.Path | None) -> int:
    return path.stat().st_size if path is not None and path.exists() else 0


def _append(path: pathlib.Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _append_at(path: pathlib.Path, begin: int, data: bytes) -> None:
    """Append unless it is there: a torn end, a piece of ``data`` from ``begin``, is cut."""
    there = b""
    with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(begin)
        there = file.read()
    if there.startswith(data):
        return
    if there and data.startswith(there):
        os.truncate(path, begin)
    _append(path, data)


def _drop_vain_end(path: pathlib.Path) -> None:
    """Cut from a journal's end what is of no game.

    That is the last line where a power failure left only a part of it, and a match that was begun
    again over an unfinished one and dropped before its first game: what is written next belongs
    to the one before.
    """
    if not path.exists():
        return
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    while whole:
        last = content.rfind(b"\n", 0, whole - 1) + 1
        if not match_journal.is_begun_again(content[last:whole]):
            break
        whole = last
    if whole < len(content):
        os.truncate(path, whole)
