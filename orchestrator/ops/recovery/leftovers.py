"""What of a game may be in no archive yet: its record and its plies, and where they may be.

    Redis                                        record:<a>, plies:<a>
    <copy>/<season>/unarchived/<attempt>.record  what `farm export` found in Redis
    <copy>/<season>/unarchived/<attempt>.plies.jsonl
    <halls>/<hall>/spool/<attempt>.spool         a finished game on its hall's disk
    <halls>/<hall>/attempts/<attempt>.plies.jsonl
    <archive>/games/<game>/given-up/<attempt>.jsonl

Invariant: nothing here is changed by reading it, and a damaged leftover is no leftover.
"""

from __future__ import annotations

import contextlib
import hashlib
import pathlib
from collections.abc import Iterator, Sequence

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.common import errors, files
from orchestrator.ledger import store

FOLDER = "unarchived"
Plies = Sequence[tuple[int, str]]


class Leftovers:
    """All places where an attempt's record and plies are looked for, the surest first."""

    def __init__(
        self,
        ledger: store.RedisLedger | None,
        seasons: Sequence[pathlib.Path],
        halls: pathlib.Path | None,
    ) -> None:
        """Look in the ledger, in the folders of one season's copies, and in the halls' folders."""
        self._ledger = ledger
        self._seasons = seasons
        self._halls = halls

    def record(self, finished: contract.GameFinished) -> bytes | None:
        """Return the packed record of a finished game, whole and as its hash says."""
        for packed in self._records(finished.attempt):
            if is_whole(packed, finished.record_sha256):
                return packed
        return None

    def _records(self, attempt: str) -> Iterator[bytes]:
        kept = None if self._ledger is None else self._ledger.record(attempt)
        if kept is not None:
            yield kept
        for season in self._seasons:
            path = season / FOLDER / f"{attempt}.record"
            if path.is_file():
                yield path.read_bytes()
        for _, record in self._spools(attempt):
            yield record

    def spooled(self, entry: contract.Entry) -> tuple[contract.GameFinished, bytes] | None:
        """Return the result that a hall has spooled of the attempt that an entry began."""
        begun = contract.AttemptStarted.model_validate(entry.data)
        for header, record in self._spools(begun.attempt):
            try:
                spooled = contract.table(contract.loads(header))
                finished = contract.GameFinished.model_validate(spooled["finished"])
            except (ValueError, KeyError, TypeError):
                continue
            same = (finished.attempt, finished.game) == (begun.attempt, begun.game)
            given = same and spooled.get("token") == entry.token
            if given and is_whole(record, finished.record_sha256):
                return finished, record
        return None

    def _spools(self, attempt: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield an attempt's spools: a line of JSON with its token, and the record after it."""
        for spool in self._hall_files(f"spool/{attempt}.spool"):
            with contextlib.suppress(FileNotFoundError):  # its hall heard that it is recorded
                header, _, record = spool.read_bytes().partition(b"\n")
                yield header, record

    def plies(self, game: str, attempt: str) -> Plies:
        """Return an attempt's journaled plies, () where none are found."""
        kept = () if self._ledger is None else self._ledger.plies(attempt)
        if kept:
            return kept
        for path in self._ply_files(game, attempt):
            if plies := read_plies(path):
                return plies
        return ()

    def _ply_files(self, game: str, attempt: str) -> Iterator[pathlib.Path]:
        for season in self._seasons:
            yield season / FOLDER / f"{attempt}.plies.jsonl"
            yield season / "games" / game / "given-up" / f"{attempt}.jsonl"
        yield from self._hall_files(f"attempts/{attempt}.plies.jsonl")

    def _hall_files(self, name: str) -> Iterator[pathlib.Path]:
        if self._halls is not None and self._halls.is_dir():
            yield from sorted(self._halls.glob(f"*/{name}"))


def is_whole(packed: bytes, sha256: str) -> bool:
    """Say whether packed bytes are an undamaged game, with the record that was journaled."""
    try:
        record = game_zip.unpack(packed)["record.json"]
    except errors.HostError:
        return False
    return sha256 in ("", hashlib.sha256(record).hexdigest())


def read_plies(path: pathlib.Path) -> Plies:
    """Return the whole plies of a file of lines, up to the first that is damaged or torn."""
    plies: list[tuple[int, str]] = []
    try:
        lines = files.lines(path)
    except FileNotFoundError:
        return ()
    for line in lines:
        try:
            ply = contract.PlyRecord.decode(line).ply
        except ValueError:
            break
        if plies and ply != plies[-1][0] + 1:
            break
        plies.append((ply, line))
    return plies
