"""Read a season file and its books; the only room of the season core that opens files.

Nothing of a bad file is used: every error names the file, the place in it, what was
found there and what is allowed, and one reading step reports all it has found.
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import pydantic

from orchestrator import contract
from orchestrator.arbiter import openings
from orchestrator.common import bounds, errors, text
from orchestrator.engines import builds
from orchestrator.season.file import checks, logos, roster
from orchestrator.season.fold import titles
from orchestrator.season.spec import model, problems

SEASON_FILE: Final = "a season file"
ROSTER_FILE: Final = "a roster file"
_KINDS: Final = {  # what each is made of
    SEASON_FILE: "[roster] and [[event]] tables",
    ROSTER_FILE: "schema = 1, then [[engine]] tables alone",
}

_SHOWN: Final = 100  # letters of a line that is no TOML

Shape = TypeVar("Shape", bound=contract.Message)


@dataclasses.dataclass(frozen=True)
class Loaded:
    """A season that may be launched: its model, engines and all exits of its books."""

    file: str
    season: model.Season
    engines: tuple[contract.EngineSpec, ...]
    books: Mapping[str, tuple[contract.Opening, ...]]
    logos: Mapping[str, bytes] = dataclasses.field(default_factory=dict)  # PNGs, by engine


def load(path: Path, find: roster.Finder = roster.find_installed) -> Loaded:
    """Read a season file; ``find`` looks for the engines it asks for by name.

    Raise ``SeasonFileError`` for the file and its tables, ``BookError`` for what stands
    in a book.
    """
    file = str(path)
    raw = _parse(file, path)
    _require_kind(file, raw, SEASON_FILE)
    season = _with_roster_file(path, _validate(file, raw, model.Season))
    engines, wrong = roster.assemble(season.roster, find)
    engines = titles.seeded(season.title, engines)
    ids = [engine.id for engine in engines]
    contradictions = [*checks.references(season, ids), *checks.settings(season, engines)]
    problems.refuse(file, [*wrong, *contradictions])
    settings = [*checks.limits(season, engines), *checks.frozen(season, engines)]
    problems.refuse(file, list(checks.size(season, len(ids))))
    problems.refuse(file, [*checks.fields(season, ids), *settings])
    books = {name: _book(file, path, name, book) for name, book in season.books.items()}
    problems.refuse(file, list(checks.openings(season, len(ids), books)))
    return Loaded(file, season, engines, books, _logos(file, path, season.roster, ids))


def load_engines(path: Path) -> tuple[model.EngineEntry, ...]:
    """Read the entries of an ``engines.toml``; raise ``SeasonFileError``, as ``load`` would."""
    file = str(path)
    raw = _parse(file, path)
    _require_kind(file, raw, ROSTER_FILE)
    entries = _validate(file, raw, model.EnginesFile).engines
    entered = (roster.spec(entry) for entry in entries if not entry.dropped)
    problems.refuse(file, list(roster.unplaced(entered, "engine")))
    return entries


def _with_roster_file(path: Path, season: model.Season) -> model.Season:
    """Return a season with the engines of the file that its roster names before its own."""
    if season.roster.file is None:
        return season
    folder = Path(season.roster.file).parent
    listed = [
        entry.model_copy(update={"logo": str(folder / entry.logo)}) if entry.logo else entry
        for entry in load_engines(path.parent / season.roster.file)
    ]
    update = {"engines": (*listed, *season.roster.engines)}
    return season.model_copy(update={"roster": season.roster.model_copy(update=update)})


def _parse(file: str, path: Path) -> dict[str, Any]:
    try:
        return bounds.toml(path)
    except OSError as error:
        reason = errors.reason(error)
        message = f"cannot be read: {reason}"
        raise errors.WrongFileError(file, "the file", reason, "a TOML file", message) from error
    except UnicodeDecodeError as error:
        actual = f"a letter that is not UTF-8 (byte {error.start + 1})"
        raise errors.SeasonFileError(file, "the file", actual, "TOML, saved as UTF-8") from error
    except bounds.TooLargeError as error:
        limit = f"a TOML file of at most {bounds.SETTINGS_BYTES >> 20} MiB"
        raise errors.SeasonFileError(file, "the file", str(error), limit) from error
    except tomllib.TOMLDecodeError as error:
        reason, _, position = str(error).rpartition(" (at ")
        where, why = (position.rstrip(")"), reason) if reason else ("the file", str(error))
        message = f"not TOML: {why} ({where}){_shown_line(path, where)}"
        raise errors.WrongFileError(file, where, why, "TOML", message) from error


def _shown_line(path: Path, where: str) -> str:
    """Return the line that is no TOML, and what is wrong in it if it is text without quotes."""
    if (place := re.match(r"line (\d+)", where)) is None:
        return ""
    line = bounds.text(path).split("\n")[int(place[1]) - 1]
    shown = "".join(letter for letter in line.strip() if letter not in text.UNSEEN)[:_SHOWN]
    unquoted = re.match(r"[\w.-]+\s*=\s*\[?\s*[A-Za-z./]", shown) is not None
    return f": {shown}" + (" (text stands in quotes)" if unquoted else "")


def _require_kind(file: str, raw: Mapping[str, Any], wanted: str) -> None:
    """Raise ``WrongFileError`` for a roster file in a season file's place, or the reverse."""
    actual = SEASON_FILE if {"event", "roster"} & raw.keys() else ROSTER_FILE
    if actual != wanted and raw.keys() & {"event", "roster", "engine"}:
        message = f"this is {actual}; {wanted} is wanted ({_KINDS[wanted]})"
        raise errors.WrongFileError(file, "the file", actual, wanted, message)


def _validate(file: str, raw: dict[str, Any], shape: type[Shape]) -> Shape:
    for entry in _entries(raw):
        _read_builds(entry)
    # Strict JSON mode takes lists for tuples but no number in quotes for a number.
    text = json.dumps(raw, default=str)
    try:
        return shape.model_validate_json(text, strict=True)
    except pydantic.ValidationError as error:
        problems.refuse(file, problems.of_validation(error, raw))
        raise


def _entries(raw: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the engines' tables of a season file or an engines file, as far as they are any."""
    listed = raw.get("roster")
    tables = listed if isinstance(listed, dict) else {}
    for entries in (raw.get("engine"), tables.get("engine"), tables.get("fill")):
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                yield entry


def _read_builds(entry: dict[str, Any]) -> None:
    """Read a command by host class: the build that asks least of a host is the command."""
    table = entry.get("command")
    if isinstance(table, dict) and table:
        host_classes = [name for name in builds.CLASSES if name in table] or list(table)
        entry["builds"], entry["command"] = table, table[host_classes[-1]]


def _logos(file: str, path: Path, listed: model.Roster, ids: Sequence[str]) -> dict[str, bytes]:
    """Read the logos of a season's engines; raise ``SeasonFileError``."""
    pictures: dict[str, bytes] = {}
    for entry in (*listed.engines, *listed.fill):
        engine = roster.id_of(entry)
        if entry.logo is None or engine not in ids or engine in pictures:
            continue
        where = f"[roster.engine {engine}] logo"
        try:
            pictures[engine] = logos.read(path.parent / entry.logo)
        except (OSError, ValueError) as error:
            name = (
                f"{entry.logo!r} ({errors.reason(error)}; looked for in {path.parent.absolute()})"
            )
            raise errors.SeasonFileError(file, where, name, logos.ALLOWED) from error
        if sum(map(len, pictures.values())) > logos.ALL_BYTES:
            limit = f"logos of at most {logos.ALL_BYTES >> 20} MiB together"
            raise errors.SeasonFileError(file, where, "one too many", limit)
    return pictures


def _book(file: str, path: Path, name: str, book: model.Book) -> tuple[contract.Opening, ...]:
    where = f"[books.{name}] file"
    source = path.parent / book.file
    try:
        content = bounds.content(source, bounds.BOOK_BYTES)
    except bounds.DAMAGED as error:  # ValueError: too large, or a NUL in the name
        actual = f"{book.file!r} ({errors.reason(error)}; looked for in {path.parent.absolute()})"
        raise errors.SeasonFileError(file, where, actual, "a PGN or EPD file") from error
    kind = _kind(book)
    if kind is None:
        allowed = "a name ending in .pgn or .epd, or kind"
        raise errors.SeasonFileError(file, where, repr(book.file), allowed)
    text = content.decode("utf-8", errors="replace")
    return tuple(openings.parse(text, kind, book.plies, str(source)))


def load_book(path: Path, name: str, like: model.Book) -> tuple[contract.Opening, ...]:
    """Read a file that takes the place of a season's book; raise as ``load`` does."""
    kind = {"kind": like.kind} if _kind(model.Book(file=path.name)) is None else {"kind": None}
    book = like.model_copy(update={"file": path.name} | kind)
    exits = _book(str(path), path, name, book)
    problems.refuse(str(path), list(checks.too_short(name, book, exits)))
    return exits


def _kind(book: model.Book) -> Literal["pgn", "epd"] | None:
    endings: dict[str, Literal["pgn", "epd"]] = {".pgn": "pgn", ".epd": "epd", ".fen": "epd"}
    name = book.file.lower().removesuffix(".gz")
    return book.kind or endings.get(Path(name).suffix)
