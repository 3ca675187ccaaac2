"""The journal of ``farm match`` as it is read: the command line, the seed, finished games.

JSON lines: ``match`` opens a match, ``game`` is one finished game. A file may hold several
matches; the last is the one that is meant, but one that was begun ``again`` over an unfinished
match of the same command line only from its first game on. ``worker_cpu.match.journal`` writes it.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any, Final, Literal

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.common import errors
from orchestrator.rating import sprt


class About(contract.Message):
    """What a match is, for who shows it: its engines, clocks, number of games and test."""

    event: str
    site: str
    engines: tuple[contract.EngineSpec, ...]  # with checksums; journals of before have none
    time_control: contract.TimeControl
    clocks: str  # in words; of several: each
    variant: Literal["standard", "fischerandom"] = "standard"
    games: int
    test: sprt.Test | None = None
    adaptive: bool = False  # couples are chosen by the results before them
    books: Mapping[str, str] = {}  # SHA-256 of opening books by file; journals of before have none


# A move or a claim does not say by itself that it was wrong: its position does.
MISPLAYED: Final = frozenset({contract.Ending.ILLEGAL, contract.Ending.FALSE_CLAIM})
_ADDED: Final = frozenset({"pair", "position"})  # fields that journals of before lack
OPENS: Final = b'"kind":"match"'  # in the line that opens a match; in strings quotes are escaped


@dataclasses.dataclass(frozen=True)
class Result:
    """A finished game as the journal keeps it; names are those of the engines."""

    number: int
    round: int
    white: str
    black: str
    opening: int
    result: contract.Result
    ending: contract.Ending
    loser: contract.Side | None
    details: str
    note: str
    plies: int
    started_ms: int
    ended_ms: int
    pair: int | None = None  # the games of a pair have one number; none in journals of before
    position: str = ""  # FEN in which an illegal move or a false claim was made

    @property
    def outcome(self) -> contract.Outcome:
        """Return how the game ended, as its record has it."""
        return contract.Outcome(
            result=self.result,
            ending=self.ending,
            loser=self.loser,
            details=self.details,
            note=self.note,
        )

    @property
    def sentence(self) -> str:
        """Return why the game ended, as a sentence: what closes its PGN with TCEC's comments."""
        return verdict.sentence(self.outcome)

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> Result:
        """Read a line of the journal; raise ``KeyError`` or ``ValueError``."""
        names = [field.name for field in dataclasses.fields(cls)]
        always = {name: raw[name] for name in names if name not in _ADDED}
        added = {name: raw[name] for name in names if name in _ADDED and name in raw}
        return cls(**{**always, **added, "ending": contract.Ending(raw["ending"])})

    def as_json(self) -> dict[str, Any]:
        """Return the line's content."""
        return {"kind": "game", **dataclasses.asdict(self)}


@dataclasses.dataclass(frozen=True)
class Past:
    """The last match of a journal."""

    arguments: tuple[str, ...]
    seed: int
    results: tuple[Result, ...]
    about: About | None = None  # journals of before have none


def past(path: pathlib.Path) -> Past:
    """Read the last match of a journal; raise ``UsageError`` when there is none."""
    if not path.exists():
        lying = sorted(str(other) for other in path.parent.glob("*.jsonl"))
        here = f"; here: {', '.join(lying)}" if lying else ""
        raise errors.UsageError(
            f"-resume: {path} does not exist; -journal FILE names another{here}"
        )
    head: Mapping[str, Any] = {}
    again: Mapping[str, Any] = {}
    results: list[Result] = []
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            raw = contract.loads(line)
            if raw["kind"] == "match" and raw.get("again") and head:
                again = _head(raw)
            elif raw["kind"] == "match":
                head, again, results = _head(raw), {}, []
            else:
                if again:
                    head, again, results = again, {}, []
                results.append(_game(raw, begun=bool(head)))
        except (ValueError, KeyError, TypeError) as error:
            problem = f"{path}: line {number} is no line of a match ({error!r})"
            raise errors.UsageError(problem) from None
    if not head:
        raise errors.UsageError(f"-resume: {path} holds no match")
    return Past(**head, results=tuple(results))


def is_begun_again(line: bytes) -> bool:
    """Say whether a line begins a match over an unfinished one of the same command line."""
    if OPENS not in line:
        return False  # nearly all lines are games: they are not parsed for this
    try:
        return bool(contract.loads(line).get("again"))
    except ValueError:
        return False


def _head(raw: Mapping[str, Any]) -> dict[str, Any]:
    about = raw.get("about")
    return {
        "arguments": tuple(raw["arguments"]),
        "seed": int(raw["seed"]),
        "about": None if about is None else About.model_validate(about),
    }


def _game(raw: Mapping[str, Any], *, begun: bool) -> Result:
    if raw["kind"] != "game" or not begun:
        raise ValueError(f"unexpected {raw['kind']}")
    return Result.read(raw)


class Follower:
    """A journal that is still written: ``read`` returns what is new of its last match."""

    def __init__(self, path: pathlib.Path) -> None:
        self._path, self._at = path, 0
        self._inode = 0

    def read(self) -> list[Result]:
        """Return the games that were finished since; a line that is being written waits.

        Where the match was changed, its file is another one: all its games are returned again.
        Raise ``ValueError`` or ``KeyError`` for a line that is none of a journal's.
        """
        results: list[Result] = []
        with self._path.open("rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self._inode:
                self._at, self._inode = 0, inode
            file.seek(self._at)
            data = file.read()
        whole = data.rfind(b"\n") + 1
        self._at += whole
        for line in data[:whole].splitlines():
            raw = contract.loads(line)
            if raw["kind"] == "match":
                results = []
            else:
                results.append(Result.read(raw))
        return results
