"""Reading the words of a command line: numbers, keys, choices, and what to say if wrong.

Every refusal names the switch, what was found and what is allowed.
"""

from __future__ import annotations

import collections
import difflib
import math
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence

from orchestrator.common import errors

_SWITCH = re.compile(r"--?[A-Za-z]")
_TRUE = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def refuse(where: str, actual: str, allowed: str) -> errors.UsageError:
    """Return the error for a wrong word."""
    return errors.UsageError(f"{where}: found {actual}; allowed: {allowed}")


def unsupported(where: str, instead: str) -> errors.UsageError:
    """Return the error for a word that other programs have and this one does not."""
    return errors.UsageError(f"{where}: not supported: {instead}")


def grouped(arguments: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Cut a command line into switches (without dashes) and the words behind each."""
    groups: list[tuple[str, list[str]]] = []
    for word in arguments:
        if _SWITCH.match(word):
            groups.append((word.lstrip("-"), []))
        elif groups:
            groups[-1][1].append(word)
        else:
            raise refuse("farm match", repr(word), "a switch such as -engine")
    return groups


def unknown(kind: str, name: str, allowed: Iterable[str], listed: str = "") -> errors.UsageError:
    """Return the error for a name that does not exist; the nearest ones come first.

    ``listed`` says where many names are listed; only one that is hardly another is then near.
    """
    names = sorted(allowed)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.8 if listed else 0.6)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    return refuse(kind, f"{name!r}{hint}", listed or ", ".join(names))


def only(where: str, values: Sequence[str]) -> str:
    """Return the only word."""
    if len(values) != 1:
        raise refuse(where, " ".join(values) or "nothing", "one value")
    return values[0]


def file(where: str, text: str) -> pathlib.Path:
    """Read a file's path; refuse no name, which a script's empty variable is, and a folder."""
    path = pathlib.Path(text)
    try:
        folder = path.is_dir()
    except OSError as error:  # such as a name that is too long
        raise refuse(where, f"{text!r} ({errors.reason(error)})", "a file's name") from None
    if not text or folder:
        raise refuse(where, "no name" if not text else f"{text!r}, a folder", "a file's name")
    return path


def none(where: str, values: Sequence[str]) -> None:
    """Refuse words behind a switch that takes none."""
    if values:
        raise refuse(where, " ".join(values), "no value")


def setting(where: str, text: str) -> tuple[str, str]:
    """Read one ``NAME=VALUE``; a value may be empty, as a button's."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise refuse(where, repr(text), "NAME=VALUE")
    return name, value


def number(where: str, text: str, low: int = 0, high: int | None = None) -> int:
    """Read a whole number within bounds."""
    allowed = f"a whole number from {low}" + ("" if high is None else f" to {high}")
    try:
        value = int(text)
    except ValueError:
        raise refuse(where, repr(text), allowed) from None
    if value < low or (high is not None and value > high):
        raise refuse(where, repr(text), allowed)
    return value


def real(where: str, text: str, allowed: str = "a number") -> float:
    """Read a decimal number."""
    try:
        value = float(text)
    except ValueError:
        raise refuse(where, repr(text), allowed) from None
    if not math.isfinite(value):
        raise refuse(where, repr(text), allowed)
    return value


def seconds_as_ms(where: str, text: str) -> int:
    """Read seconds, return milliseconds above 0."""
    value = round(real(where, text) * 1000)
    if value <= 0:
        raise refuse(where, repr(text), "seconds above 0")
    return value


def choice(where: str, text: str, choices: Mapping[str, str] | Sequence[str]) -> str:
    """Return one of the choices; a mapping's keys are the spellings of its values."""
    spellings = choices if isinstance(choices, Mapping) else {name: name for name in choices}
    if text not in spellings:
        raise refuse(where, repr(text), ", ".join(spellings))
    return spellings[text]


def truth(where: str, text: str) -> bool:
    """Read ``true`` or ``false`` (``on``, ``off``)."""
    if text.lower() not in _TRUE:
        raise refuse(where, repr(text), "true, false")
    return _TRUE[text.lower()]


def pairs(where: str, pairs_given: Sequence[str], allowed: Iterable[str]) -> dict[str, str]:
    """Read ``key=value`` words, each key known; of one given twice the last counts."""
    keys = list(allowed)
    values: dict[str, str] = {}
    for word in pairs_given:
        key, equals, value = word.partition("=")
        if not equals or key not in keys:
            raise unknown(where, word if not equals else key, [f"{name}=" for name in keys])
        values[key] = value
    return values


def repeated(pairs_given: Iterable[str], several: Iterable[str] = ()) -> list[str]:
    """Return the keys that stand more than once, but for those that may."""
    keys = [word.partition("=")[0] for word in pairs_given if "=" in word]
    return [
        key for key, count in collections.Counter(keys).items() if count > 1 and key not in several
    ]
