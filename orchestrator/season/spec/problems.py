"""Describe an error in a season file: the place, what was found, what is allowed.

Places are written as a director finds them: ``[event league] time_control``. All
problems that one step of reading has found become one ``SeasonFileError``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pydantic
import pydantic_core

from orchestrator.common import errors
from orchestrator.season.spec import known_keys

_TYPES: Final = {
    "string_type": "text in quotes",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list in [ ]",
    "dict_type": "keys in { }",
    "mapping_type": "keys in { }",
    "model_type": "keys in { }",
    "model_attributes_type": "keys in { }",
    "missing": "this key is required",
    "too_short": "at least one",
    "string_too_short": "at least one character",
}


@dataclasses.dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    where: str
    found: str
    allowed: str


def refuse(file: str, problems: Sequence[Problem]) -> None:
    """Raise one ``SeasonFileError`` for all problems; do nothing without any."""
    if not problems:
        return
    first, *rest = problems
    others = tuple(f"{file}: {p.where}: found {p.found}; allowed: {p.allowed}" for p in rest)
    raise errors.SeasonFileError(file, first.where, first.found, first.allowed, others)


def of_validation(error: pydantic.ValidationError, raw: Mapping[str, Any]) -> list[Problem]:
    """Translate pydantic's errors over the file's plain data."""
    details = error.errors()
    return [_problem(detail, raw) for detail in details if not _follows(detail, details)]


def _follows(
    detail: pydantic_core.ErrorDetails, details: Sequence[pydantic_core.ErrorDetails]
) -> bool:
    """Say whether a list is called too short only because its items are wrong."""
    loc = detail["loc"]
    inside = (other["loc"] for other in details if len(other["loc"]) > len(loc))
    return detail["type"] == "too_short" and any(other[: len(loc)] == loc for other in inside)


def _problem(detail: pydantic_core.ErrorDetails, raw: Mapping[str, Any]) -> Problem:
    kind, loc, context = detail["type"], detail["loc"], detail.get("ctx", {})
    where = key_path(loc, raw)
    if kind == "extra_forbidden":
        return Problem(where, "an unknown key", known_keys.allowed(loc, raw))
    if kind == "missing" and loc[-1] == "schema":
        return Problem(where, "nothing", "schema = 1, in a line above the first table")
    actual = "nothing" if kind == "missing" else shown(detail["input"])
    if kind == "union_tag_not_found":
        where, actual = f"{where}.kind", "nothing"
    return Problem(where, actual, _allowed(kind, context, detail["msg"]))


def shown(value: Any) -> str:
    """Write a found value, shortened."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _allowed(kind: str, context: Mapping[str, Any], message: str) -> str:
    match kind:
        case "value_error":
            return str(context["error"])
        case "literal_error" | "enum":
            return str(context["expected"])
        case "union_tag_invalid" | "union_tag_not_found":
            return str(context.get("expected_tags", "'round-robin', 'match'"))
        case "string_pattern_mismatch":
            return "small letters, digits and hyphens, such as league-1"
        case "greater_than_equal":
            return f"{context['ge']} or more"
        case "less_than_equal":
            return f"{context['le']} or less"
        case "greater_than":
            return f"more than {context['gt']}"
        case "multiple_of":
            return f"a multiple of {context['multiple_of']}"
        case _:
            return _TYPES.get(kind, message)


def key_path(loc: Sequence[int | str], raw: Mapping[str, Any]) -> str:
    """Write a path into the file's data as ``[table name] key``."""
    table, rest = _table(loc, raw)
    key = ""
    for part in rest:
        if isinstance(part, int):
            key += f"[{part + 1}]"
        elif part not in known_keys.FORMATS:
            key += f".{part}" if key else part
    return " ".join(text for text in (table, key) if text)


def _table(loc: Sequence[int | str], raw: Mapping[str, Any]) -> tuple[str, Sequence[int | str]]:
    for size in (1, 2):
        path = tuple(str(part) for part in loc[:size])
        if path in known_keys.LISTED and len(loc) > size and isinstance(loc[size], int):
            return f"[{'.'.join(path)} {_name(loc[: size + 1], raw)}]", loc[size + 1 :]
    if loc[:1] == ("books",) and len(loc) > 1:
        return f"[books.{loc[1]}]", loc[2:]
    if loc[:1] == ("roster",) and len(loc) > 1:
        return "[roster]", loc[1:]
    return "", loc


def _name(loc: Sequence[int | str], raw: Any) -> str:
    """Return the id (or name, or number) of the table that a path leads to."""
    value = raw
    for part in loc:
        value = value[part]
    named = value if isinstance(value, Mapping) else {}
    return str(named.get("id") or named.get("name") or f"#{int(loc[-1]) + 1}")
