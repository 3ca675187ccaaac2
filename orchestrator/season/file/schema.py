"""The JSON Schema of season files and roster files, as they are written in TOML.

It follows from the models, and differs where a file does: a preset may be named by a string,
``false`` takes a rule away, and there is no null. The schema validates keys,
types and ranges; consistency between tables is checked by ``farm check``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from orchestrator import contract
from orchestrator.arbiter.adjudication import interruption, presets
from orchestrator.season.spec import interruption_rules, model

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NULL = {"type": "null"}


def season() -> dict[str, Any]:
    """Return the JSON Schema of a season file."""
    schema = _of(model.Season)
    tables = schema["$defs"]
    rules = tables["Adjudication"]["properties"].keys() - {"rules"}
    for rule in rules:
        _lay_over(tables, tables["Adjudication"]["properties"][rule])
    tables["Adjudication"] = _named(tables["Adjudication"], presets.PRESETS, rules)
    tables["Interruptions"] = _named(
        tables["Interruptions"], interruption.PRESETS, interruption_rules.BOUNDS
    )
    return schema


def roster() -> dict[str, Any]:
    """Return the JSON Schema of a roster file (``engines.toml``)."""
    return _of(model.EnginesFile)


def _of(shape: type[contract.Message]) -> dict[str, Any]:
    schema = shape.model_json_schema(by_alias=True, mode="validation")
    return {"$schema": DIALECT} | {key: _without_null(value) for key, value in schema.items()}


def _without_null(value: Any) -> Any:
    """Leave out nulls, which TOML has not: a key has a value, or is absent."""
    if isinstance(value, list):
        return [_without_null(item) for item in value if item != _NULL]
    if not isinstance(value, dict):
        return value
    cleaned = {key: _without_null(item) for key, item in value.items() if item is not None}
    if len(cleaned.get("anyOf", ())) == 1:
        cleaned |= cleaned.pop("anyOf")[0]
    return cleaned


def _lay_over(tables: dict[str, Any], rule: dict[str, Any]) -> None:
    """Require no key of a rule: it may be laid over the preset's."""
    if "$ref" in rule:
        tables[rule["$ref"].rpartition("/")[2]].pop("required", None)


def _named(
    table: dict[str, Any], names: Iterable[str], removable: Collection[str]
) -> dict[str, Any]:
    """Let a table be written as the name of a preset, or as what changes one."""
    preset = {"enum": list(names)}
    keys = {
        key: {"anyOf": [rule, {"const": False}]} if key in removable else rule
        for key, rule in table["properties"].items()
    }
    changed = table | {"properties": keys | {"rules": preset}}
    return {"description": changed.pop("description"), "anyOf": [preset, changed]}
