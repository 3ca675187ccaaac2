"""The journal's entries, and what halls journal of attempts and games."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import pydantic

from orchestrator.common import errors
from orchestrator.contract import codec, ids, records

EXACT: Final = 1 << 53  # whole numbers below are exact in Redis' scripts and in JSON everywhere
_TOKEN: Final = re.compile(r"([0-9]{1,15}\.[0-9]{1,15})?")


@dataclasses.dataclass(frozen=True, order=True)
class Token:
    """A fencing token: grows with every claim in a hall, and with every restore."""

    epoch: int
    n: int

    def __str__(self) -> str:
        """Write the token as ``epoch.n``, its form in Redis."""
        return f"{self.epoch}.{self.n}"

    @classmethod
    def parse(cls, text: str) -> Token:
        """Read ``epoch.n``; raise ``ValueError`` when it is not a token."""
        epoch, n = text.split(".")
        return cls(int(epoch), int(n))


@dataclasses.dataclass(frozen=True)
class Draft:
    """A fact that is not in the journal yet."""

    kind: str
    data: Mapping[str, Any]

    @classmethod
    def of(cls, kind: str, fact: codec.Message) -> Draft:
        """Return a message as a fact of this kind."""
        return cls(kind, fact.model_dump(mode="json", by_alias=True))


@dataclasses.dataclass(frozen=True)
class Entry:
    """A journaled fact; ``seq`` counts from 1 without gaps, ``at_ms`` is Redis' time."""

    seq: int
    at_ms: int
    kind: str
    by: str
    data: Mapping[str, Any]
    token: str = ""
    schema_version: int = codec.SCHEMA

    def __post_init__(self) -> None:
        """Refuse an entry of a later version, and numbers that no version has written."""
        if self.schema_version > codec.SCHEMA:
            raise errors.JournalTooNewError(
                f"entry {self.seq} has schema {self.schema_version}, this version reads up to"
                f" {codec.SCHEMA}: it was written by a later version of the farm; upgrade this one"
            )
        sane = self.schema_version > 0 and 0 <= self.seq < EXACT
        sane = sane and 0 <= self.at_ms <= codec.LATEST_MS
        if not sane or not _TOKEN.fullmatch(self.token):
            raise errors.LedgerDamagedError(
                f"entry {self.seq} was not written by the farm: schema {self.schema_version},"
                f" time {self.at_ms}, token {self.token[:40]!r}"
            )

    def line(self) -> str:
        """Return the entry as its line of ``journal.jsonl``, without the line end."""
        return codec.dumps(
            {
                "seq": self.seq,
                "v": self.schema_version,
                "at_ms": self.at_ms,
                "kind": self.kind,
                "by": self.by,
                "token": self.token,
                "data": self.data,
            }
        )

    @classmethod
    def from_line(cls, line: str) -> Entry:
        """Read a line of ``journal.jsonl``; raise ``LedgerDamagedError``."""
        try:
            raw = codec.loads(line)
            return cls(
                seq=_whole(raw["seq"]),
                at_ms=_whole(raw["at_ms"]),
                kind=str(raw["kind"]),
                by=str(raw["by"]),
                data=table(raw["data"]),
                token=str(raw["token"]),
                schema_version=_whole(raw["v"]),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise errors.LedgerDamagedError(f"not a journal line: {line[:80]!r}") from error


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"not a whole number: {value!r}")
    return value


def table(value: Any) -> dict[str, Any]:
    """Return decoded JSON that must be an object; raise ``TypeError``."""
    if not isinstance(value, dict):
        raise TypeError(f"not a table: {value!r}")
    return value


_Count: TypeAlias = Annotated[int, pydantic.Field(ge=0, lt=EXACT)]
_Nanoseconds: TypeAlias = Annotated[int, pydantic.Field(ge=-(1 << 63), lt=1 << 63)]
FinitePoints: TypeAlias = Annotated[float, pydantic.Field(allow_inf_nan=False, ge=-1, le=2)]


class AttemptStarted(codec.Message):
    """Journaled by ``claim``: an attempt at a game has the hall."""

    game: ids.Name
    attempt: ids.Name
    hall: ids.Name
    lane: ids.NameOrNone
    host: ids.Name
    worker: ids.Worker


class AttemptEnded(codec.Message):
    """Journaled when an attempt is given up: interruption, never a result.

    ``ply`` and the clocks are those of the last journaled ply (0 and the start when
    there was none), so that a later version can judge the interruption from this entry.
    ``excused`` is counted against the event's ``interruptions.excused_flags``.
    """

    game: ids.Name
    attempt: ids.Name
    hall: ids.Name
    lane: ids.NameOrNone
    host: ids.Name
    cause: str
    evidence: str = ""
    ply: _Count = 0
    white_clock_ns: _Nanoseconds | None = None
    black_clock_ns: _Nanoseconds | None = None
    excused: codec.Side | None = None  # whose loss its host is blamed for


class GameFinished(codec.Message):
    """Journaled by ``complete``: the one counted result of a game."""

    game: ids.Name
    attempt: ids.NameOrNone
    hall: ids.NameOrNone
    lane: ids.NameOrNone
    host: ids.NameOrNone
    result: codec.Result
    ending: records.Ending
    loser: codec.Side | None = None
    details: str
    plies: _Count
    white_clock_ns: _Nanoseconds
    black_clock_ns: _Nanoseconds
    started_ms: codec.Moment
    ended_ms: codec.Moment
    record_sha256: str
    r_mobility: FinitePoints | None = None  # White's r-mobility points; None: as the result
    by_verdict: bool = False  # no hall told it: a verdict on an interruption (arbiter)
    white_files: Mapping[str, str] = {}  # SHA-256 of White's files that nobody had pinned yet
    black_files: Mapping[str, str] = {}
    white_unsearched: _Count = 0  # moves out of the book played at once, without a node
    black_unsearched: _Count = 0
    imported: bool = False  # played elsewhere: the record is a PGN
    refused: bool = False  # the loser cannot play such games, as its handshake says (FRC-1c)
    crashed: codec.Side | None = None  # who crashed in it, where the organizers set the result
    note: str = ""  # what a fault rests on: how a process ended, stamps, what was no move
