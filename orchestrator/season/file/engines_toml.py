"""Write ``engines.toml``: what ``farm engine import`` and ``farm engine pin`` leave behind.

Only what differs from the defaults is written, in the order of the model; reading the text
again (``files.load_engines``) gives the same entries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.engines import cutechess
from orchestrator.season.spec import model

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def text(entries: Sequence[model.EngineEntry]) -> str:
    """Return the text of an engines file."""
    lines = ["schema = 1"]
    for entry in entries:
        lines += ["", "[[engine]]", *_lines(entry)]
    return "\n".join(lines) + "\n"


def _lines(entry: model.EngineEntry) -> Iterator[str]:
    table = entry.model_dump(mode="json", exclude_defaults=True)
    builds = table.pop("builds", None)
    for key, value in table.items():
        yield f"{key} = {_value(builds if key == 'command' and builds else value)}"


def _value(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case Mapping():
            return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
        case list():
            return "[" + ", ".join(map(_value, value)) + "]"
        case _:
            return _string(str(value))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _string(value: str) -> str:
    # JSON's escapes are TOML's; only DEL is allowed in the one and not in the other.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def of_cutechess(configured: cutechess.Configured, command: Sequence[str]) -> model.EngineEntry:
    """Return the entry of an engine of cutechess' ``engines.json``; raise ``ValueError``.

    ``command`` is its command, split and with its arguments.
    """
    return model.EngineEntry.model_validate(
        {
            "name": configured.name,
            "protocol": configured.protocol or "uci",
            "command": tuple(command),
            "directory": configured.directory or None,
            "options": dict(configured.options),
            "init": configured.init,
            "white_pov": configured.white_pov,
        }
    )
