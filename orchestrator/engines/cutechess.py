"""Read ``engines.json``, the engine configuration of cutechess.

``farm match`` takes engines from it by name, ``farm engine import`` makes a roster of it.
What seasons do not do (pondering) is told, never silently dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from orchestrator import contract


@dataclasses.dataclass(frozen=True)
class Configured:
    """One engine of the file; '' and () where it says nothing. ``command`` is as written."""

    name: str
    command: str = ""
    directory: str = ""
    arguments: tuple[str, ...] = ()
    protocol: str = ""
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    init: tuple[str, ...] = ()
    stderr: str = ""
    restart: str = ""
    white_pov: bool = False
    ponder: bool = False


def parse(text: str | bytes) -> dict[str, Configured]:
    """Return the engines of the file by name; raise ``ValueError`` when it is none."""
    try:
        return {str(entry["name"]): _read(entry) for entry in contract.loads(text)}
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(repr(error)) from error


def _read(entry: Mapping[str, Any]) -> Configured:
    options = {
        str(option["name"]): _option_text(option["value"])
        for option in entry.get("options", ())
        if option.get("value") is not None
    }
    return Configured(
        name=str(entry["name"]),
        command=str(entry.get("command") or ""),
        directory=str(entry.get("workingDirectory") or ""),
        arguments=tuple(map(str, entry.get("arguments", ()))),
        protocol=str(entry.get("protocol") or ""),
        options=options,
        init=tuple(map(str, entry.get("initStrings", ()))),
        stderr=str(entry.get("stderrFile") or ""),
        restart=str(entry.get("restart") or ""),
        white_pov=bool(entry.get("whitepov")),
        ponder=bool(entry.get("ponder")),
    )


def _option_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
