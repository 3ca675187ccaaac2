"""Read finished games: from the ledger just after their end, then from the archive.

Read only. ``Album.brief`` is the little that tables need of each game and is remembered;
whole records are read again whenever somebody asks for one. A game that nobody kept (an
imported one, a simulated one) has no record, and tables do without.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import re
from typing import Any, Final, Protocol

import pydantic

from orchestrator import contract
from orchestrator.arbiter import game_zip, rmobility, score
from orchestrator.common import errors

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9.-]*")  # ids of seasons, events and games


class Records(Protocol):
    """Where the record of a game lies between its end and its way into the archive."""

    def record(self, attempt: str) -> bytes | None:
        """Return the packed record of an attempt, None where it is not (any more)."""


@dataclasses.dataclass(frozen=True, slots=True)
class Brief:
    """What the tables of a finished game need; evals are White's view, '' where none was."""

    eco: str = ""
    opening: str = ""
    final_fen: str = ""
    white_eval: str = ""
    black_eval: str = ""
    r_mobility: str = ""


class Album:
    """The finished games of all seasons."""

    def __init__(self, archive: pathlib.Path, records: Records) -> None:
        """Read below ``archive``, and before a game is there from ``records``."""
        self._archive = archive
        self._records = records
        self._briefs: dict[str, Brief] = {}

    def brief(self, season: str, game: str, finished: contract.GameFinished) -> Brief | None:
        """Return the little that tables need, None as long as no record can be read."""
        if finished.attempt not in self._briefs:
            content = self._record_json(season, game, finished.attempt)
            brief = None if content is None else _brief(content)
            if brief is None:
                return None
            self._briefs[finished.attempt] = brief
        return self._briefs[finished.attempt]

    def game(self, season: str, game: str, attempt: str) -> contract.GameRecord | None:
        """Return the whole record of a game, None where there is none that can be read."""
        content = self._record_json(season, game, attempt)
        try:
            return None if content is None else contract.GameRecord.decode(content)
        except pydantic.ValidationError:
            return None  # written by a newer farm

    def pgn(self, season: str, game: str, attempt: str) -> bytes | None:
        """Return the PGN of a game as the archive keeps it."""
        return self._member(season, game, attempt, "game.pgn")

    def _record_json(self, season: str, game: str, attempt: str) -> bytes | None:
        return self._member(season, game, attempt, "record.json")

    def _member(self, season: str, game: str, attempt: str, name: str) -> bytes | None:
        if not _NAME.fullmatch(season) or not _NAME.fullmatch(game):
            return None
        folder = self._archive / season / "games" / game
        try:
            return (folder / name).read_bytes()
        except OSError:
            return self._unpacked(attempt, name)

    def _unpacked(self, attempt: str, name: str) -> bytes | None:
        packed = self._records.record(attempt)
        try:
            return None if packed is None else game_zip.unpack(packed)[name]
        except errors.HostError:
            return None


def _brief(content: bytes) -> Brief | None:
    """Read the little that tables need from a record; None for one that is damaged."""
    try:
        return _of_record(json.loads(content))
    except (ValueError, LookupError, TypeError, AttributeError):
        return None  # `farm fsck` tells of it; the tables of all other games do without


def _of_record(record: dict[str, Any]) -> Brief:
    mobility = record.get("r_mobility")
    return Brief(
        eco=record.get("eco", ""),
        opening=record.get("opening", ""),
        final_fen=record.get("final_fen", ""),
        white_eval=_eval(record, "white"),
        black_eval=_eval(record, "black"),
        r_mobility=(
            rmobility.text(contract.RMobility.model_validate(mobility)) if mobility else ""
        ),
    )


def _eval(record: dict[str, Any], side: contract.Side) -> str:
    for ply in reversed(record["plies"]):
        if ply["side"] == side and ply.get("score"):
            return score.text(contract.Score.model_validate(ply["score"]), side)
    return ""
