"""The keys of season and roster files, and what is likely meant by one that is not known.

A key may stand in the wrong table (in TOML everything below a heading belongs to it), or be
written wrongly. Every table of both kinds of files is named here.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.season.spec import model

Path: TypeAlias = tuple[str, ...]
Tables: TypeAlias = Mapping[Path, type[pydantic.BaseModel]]

SEASON: Final[Tables] = {
    (): model.Season,
    ("roster",): model.Roster,
    ("roster", "engine"): model.EngineEntry,
    ("roster", "engine", "neural"): model.NeuralParts,
    ("roster", "fill"): model.EngineEntry,
    ("roster", "fill", "neural"): model.NeuralParts,
    ("updates",): model.Updates,
    ("title",): model.Title,
    ("books",): model.Book,
    ("event",): model.Event,
    ("event", "format", "round-robin"): model.RoundRobin,
    ("event", "format", "swiss"): model.Swiss,
    ("event", "format", "knockout"): model.Knockout,
    ("event", "format", "match"): model.Match,
    ("event", "format", "gauntlet"): model.Gauntlet,
    ("event", "format", "encounters"): model.Encounters,
    ("event", "format", "match", "extensions"): model.Extension,
    ("event", "seeding"): model.Groups,
    ("event", "playoff"): model.Playoff,
    ("event", "limits"): contract.Limits,
    ("event", "timeouts"): contract.Timeouts,
    ("event", "interruptions"): contract.Interruptions,
    ("event", "adjudication"): contract.Adjudication,
    ("event", "adjudication", "syzygy"): contract.Syzygy,
    ("event", "adjudication", "eval_draw"): contract.EvalDraw,
    ("event", "adjudication", "few_pieces_draw"): contract.FewPiecesDraw,
    ("event", "adjudication", "eval_win"): contract.EvalWin,
    ("event", "adjudication", "draw"): contract.MovesDraw,
    ("event", "adjudication", "resign"): contract.MovesResign,
    ("event", "promote"): model.Promotion,
    ("event", "updates"): model.Updates,
    ("event", "time_control"): contract.TimeControl,
}
ROSTER: Final[Tables] = {
    (): model.EnginesFile,
    ("engine",): model.EngineEntry,
    ("engine", "neural"): model.NeuralParts,
}
# Tags of a union, no keys.
FORMATS: Final = ("round-robin", "swiss", "knockout", "match", "gauntlet", "encounters")
LISTED: Final = (("roster", "engine"), ("roster", "fill"), ("event",), ("engine",))
_SURE: Final = 0.8  # how alike a word of another table must be


def allowed(loc: Sequence[int | str], raw: Mapping[str, Any]) -> str:
    """List the keys of the table that an unknown key stands in, and what was likely meant."""
    tables = SEASON if raw.keys() & {"event", "roster"} or "engine" not in raw else ROSTER
    *names, key = (part for part in loc if isinstance(part, str))
    path = ("books",) if names[:1] == ["books"] else tuple(names)
    own = _keys(tables[path]) if path in tables else []
    return (", ".join(own) or "no such key") + _meant(key, own, path, tables)


def _meant(key: str, own: Sequence[str], path: Path, tables: Tables) -> str:
    """Say where a key belongs, else which one was meant: of its own table, else of another.

    A key of another kind of format may be either: both are said.
    """
    places = list(dict.fromkeys(_places(key, path, tables)))
    belongs = f"{key} belongs {_either(places)}" if places else ""
    close: Sequence[str] = ()
    if not belongs or _kinds(key, path, tables):
        short = [word for word in own if key == "".join(part[0] for part in word.split("_"))]  # tc
        close = short or difflib.get_close_matches(key, own, n=1)
    if close:
        return f" (did you mean {' '.join(filter(None, (f'{close[0]}?', belongs)))})"
    if belongs:
        return f" ({belongs})"
    others = {name for table in tables.values() for name in _keys(table)} - set(own)
    for word in difflib.get_close_matches(key, sorted(others), n=1, cutoff=_SURE):
        places = list(dict.fromkeys(_places(word, path, tables)))
        return f" (did you mean {word}? It belongs {_either(places)})"
    return ""


def _places(key: str, path: Path, tables: Tables) -> Iterator[str]:
    """Yield the tables that know a key, but for the one it stands in, and kinds of its format."""
    if kinds := _kinds(key, path, tables):
        yield f"to kind {_either(kinds)}"
    for other, table in tables.items():
        if key in _keys(table) and _table(other) != _table(path):
            yield _table(other)


def _kinds(key: str, path: Path, tables: Tables) -> list[str]:
    """Return the kinds that know a key, where it stands in the format of another."""
    kinds = FORMATS if path and path[-1] in FORMATS else ()
    return [kind for kind in kinds if key in _keys(tables[*path[:-1], kind])]


def _table(path: Path) -> str:
    """Write where a table stands, such as ``in limits of [[event]]``."""
    if not path:
        return "at the top of the file, before any table"
    for head in LISTED:
        if path[: len(head)] == head:
            inner = ".".join(part for part in path[len(head) :] if part not in FORMATS)
            return f"in {inner} of [[{'.'.join(head)}]]" if inner else f"in [[{'.'.join(head)}]]"
    return "in [books.NAME]" if path == ("books",) else f"in [{'.'.join(path)}]"


def _either(places: Sequence[str]) -> str:
    *first, last = places
    return f"{', '.join(first)} or {last}" if first else last


def _keys(table: type[pydantic.BaseModel]) -> list[str]:
    return [field.alias or name for name, field in table.model_fields.items()]
