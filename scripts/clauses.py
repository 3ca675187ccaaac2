"""Where each clause of the rule texts is decided: the table of docs/reference/clauses.md.

The clauses are those of ``docs/reference/clauses.toml``; a place is a file of the program or a
season file that names the clause. ``make reference`` writes the table into the page.
"""

from __future__ import annotations

import collections
import functools
import pathlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

ROOT = pathlib.Path(__file__).parent.parent
LIST = ROOT / "docs" / "reference" / "clauses.toml"
PACKAGES = ("orchestrator", "worker_cpu", "worker_gpu")
ID = re.compile(r"\b(?:S16|S17|CUP|FRC)-\d+[a-z]?\b")


def known() -> list[str]:
    """Return the ids of all clauses, in the order of the texts."""
    return [one for text, parts in _told()["clauses"].items() for one in _ids(text, parts)]


def sections() -> set[str]:
    """Return the ids of whole sections, such as S16-16."""
    texts = _told()["clauses"].items()
    return {f"{text}-{part.rstrip('abcdefghi')}" for text, parts in texts for part in parts}


def not_for_software() -> Mapping[str, str]:
    """Return the clauses that ask nothing of the program, with the reason."""
    reasons: Mapping[str, str] = _told()["not_for_software"]
    return reasons


def places(clause: str) -> list[str]:
    """Return the files that name a clause, season files last."""
    return sorted(_named()[clause.lower()], key=lambda path: (path.endswith(".toml"), path))


def table() -> str:
    """Return the table of the page."""
    rows = ["| clause | where |", "|---|---|"]
    for clause in known():
        where = ", ".join(f"`{path.removeprefix('orchestrator/')}`" for path in places(clause))
        rows.append(f"| {clause} | {where or not_for_software()[clause]} |")
    return "\n".join(rows)


@functools.cache
def _named() -> Mapping[str, set[str]]:
    """Return the files by the clauses they name, in small letters."""
    headings = "|".join(one for one in known() if one.startswith("N1 "))
    clause = re.compile(rf"{ID.pattern}|\b(?:{headings})\b", re.IGNORECASE)
    found = collections.defaultdict(set)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in {".py", ".toml", ".lua"}:
                for name in clause.findall(path.read_text(encoding="utf-8")):
                    found[name.lower()].add(str(path.relative_to(ROOT)))
    return found


def _told() -> dict[str, Any]:
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def _ids(text: str, parts: list[str]) -> Iterator[str]:
    if text == "N1":
        yield from (f"N1 {heading}" for heading in parts)
        return
    for part in parts:
        section = part.rstrip("abcdefghi")
        yield from (f"{text}-{section}{letter}" for letter in part[len(section) :] or [""])
