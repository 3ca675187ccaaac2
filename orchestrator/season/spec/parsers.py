"""Parsers of single values of a season file, with the errors for wrong ones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.common import text
from orchestrator.engines import builds

TIME_CONTROL: Final = (
    "minutes+seconds such as 30+5, or with units: 2s+50ms; the time above 0, at most 10 days"
)
DURATION: Final = "a number with a unit (ms, s, m, h or d) such as 2s or 1.5h, at most 3650d"
LONGEST_MS: Final = 3650 * 86_400_000  # ten years
OPTION: Final = "a line of text without invisible characters, a whole number, true or false"
ONE_LINE: Final = "one line of text that is not blank, without invisible characters"

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class TooLongError(ValueError):
    """A duration that is one, and longer than any of a season."""


def _time_control(value: Any) -> Any:
    if isinstance(value, contract.TimeControl | Mapping):
        return value
    try:
        return contract.TimeControl.parse(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError(TIME_CONTROL) from None


def duration_ms(text: str) -> int:
    """Read a duration such as ``2s`` or ``1.5h``; raise ``ValueError``, ``TooLongError``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(DURATION)
    found_ms = float(match[1]) * _UNIT_MS[match[2]]
    if found_ms > LONGEST_MS:
        raise TooLongError(DURATION)
    return round(found_ms)


def _duration(value: str) -> str:
    duration_ms(value)
    return value


def _option(value: Any) -> Any:
    if not isinstance(value, str | int) or (isinstance(value, str) and text.has_unseen(value)):
        raise ValueError(OPTION)
    return value


def _one_line(value: str) -> str:
    if text.has_unseen(value) or not value.strip():
        raise ValueError(ONE_LINE)
    return value


def _host_class(value: str) -> str:
    if value not in builds.CLASSES:
        raise ValueError(f"host classes: {', '.join(builds.CLASSES)}")
    return value


def _sha256(value: str) -> str:
    if _SHA256.fullmatch(value) is None:
        raise ValueError("a SHA-256 checksum of 64 small hexadecimal digits")
    return value


Id: TypeAlias = Annotated[str, pydantic.Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=40)]
Text: TypeAlias = Annotated[
    str, pydantic.Field(min_length=1, max_length=200), pydantic.AfterValidator(_one_line)
]
Control: TypeAlias = Annotated[
    contract.TimeControl,
    pydantic.BeforeValidator(_time_control),
    pydantic.WithJsonSchema({"type": "string", "description": TIME_CONTROL}),
]
Duration: TypeAlias = Annotated[
    str,
    pydantic.AfterValidator(_duration),
    pydantic.WithJsonSchema(
        {"type": "string", "pattern": f"^{_DURATION.pattern}$", "description": DURATION}
    ),
]
OptionValue: TypeAlias = Annotated[str | int | bool, pydantic.BeforeValidator(_option)]
Command: TypeAlias = Annotated[tuple[Text, ...], pydantic.Field(min_length=1)]
HostClass: TypeAlias = Annotated[str, pydantic.AfterValidator(_host_class)]
Sha256: TypeAlias = Annotated[
    str,
    pydantic.AfterValidator(_sha256),
    pydantic.WithJsonSchema({"type": "string", "pattern": f"^{_SHA256.pattern}$"}),
]
