"""Read a season file and its books; the only room of the season core that opens files.

Nothing of a bad file is used: every error names the file, the place in it, what was
found there and what is allowed, and one reading step reports all it has found.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import tomllib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pydantic

from orchestrator import contract, errors
from orchestrator.arbiter import openings
from orchestrator.season import checks, model, problems, roster

GZIP = b"\x1f\x8b"  # how a compressed book begins


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A season that may be launched: its model, engines and all exits of its books."""

    file: str
    season: model.Season
    engines: tuple[contract.EngineSpec, ...]
    books: Mapping[str, tuple[contract.Opening, ...]]


def load(path: Path, find: roster.Finder = roster.find_installed) -> Loaded:
    """Read a season file; ``find`` looks for the engines it asks for by name.

    Raise ``SeasonFileError`` for the file and its tables, ``BookError`` for what stands
    in a book.
    """
    file = str(path)
    season = _validate(file, _parse(file, path))
    engines, wrong = roster.assemble(season.roster, find)
    ids = [engine.id for engine in engines]
    known = [*checks.references(season, ids), *checks.settings(season, engines)]
    problems.refuse(file, [*wrong, *known])
    problems.refuse(file, [*checks.fields(season, ids), *checks.limits(season, engines)])
    books = {name: _book(file, path, name, book) for name, book in season.books.items()}
    problems.refuse(file, list(checks.openings(season, len(ids), books)))
    return Loaded(file, season, engines, books)


def _parse(file: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise errors.SeasonFileError(file, "the file", str(error), "a TOML file") from error
    except tomllib.TOMLDecodeError as error:
        text, _, position = str(error).rpartition(" (at ")
        where = position.rstrip(")") if text else "the file"
        raise errors.SeasonFileError(file, where, text or str(error), "TOML") from error


def _validate(file: str, raw: dict[str, Any]) -> model.Season:
    # Strict JSON mode takes lists for tuples but no number in quotes for a number.
    text = json.dumps(raw, default=str)
    try:
        return model.Season.model_validate_json(text, strict=True)
    except pydantic.ValidationError as error:
        problems.refuse(file, problems.of_validation(error, raw))
        raise


def _book(file: str, path: Path, name: str, book: model.Book) -> tuple[contract.Opening, ...]:
    where = f"[books.{name}] file"
    source = path.parent / book.file
    try:
        content = source.read_bytes()
        if content.startswith(GZIP):
            content = gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        found = f"{book.file!r} ({error})"
        raise errors.SeasonFileError(file, where, found, "a PGN or EPD file") from error
    kind = _kind(book)
    if kind is None:
        allowed = "a name ending in .pgn or .epd, or kind"
        raise errors.SeasonFileError(file, where, repr(book.file), allowed)
    text = content.decode("utf-8", errors="replace")
    return tuple(openings.parse(text, kind, book.plies, str(source)))


def _kind(book: model.Book) -> Literal["pgn", "epd"] | None:
    endings: dict[str, Literal["pgn", "epd"]] = {".pgn": "pgn", ".epd": "epd", ".fen": "epd"}
    name = book.file.lower().removesuffix(".gz")
    return book.kind or endings.get(Path(name).suffix)
