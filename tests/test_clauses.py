"""The rule texts and the program: each clause is found by its id, and no id is invented."""

from __future__ import annotations

import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import clauses  # type: ignore[import-not-found]  # noqa: E402 - a script

TEXTS = {
    "S16": "tcec-season-16-rules.txt",
    "S17": "tcec-season-17-rules.txt",
    "CUP": "tcec-cup-rules.txt",
    "FRC": "tcec-frc-rules.txt",
}
PAGES = {"S16": "season16", "S17": "season17", "CUP": "cup", "FRC": "frc", "N1": "ntcec1"}
OUTLINES = pathlib.Path(__file__).parent / "data" / "rules"


def test_each_clause_is_named_where_it_is_decided() -> None:
    """One search for its id finds a clause in the program, or the reason why it is not there."""
    for clause in clauses.known():
        elsewhere = clause in clauses.not_for_software()
        assert bool(clauses.places(clause)) != elsewhere, clause


def test_no_clause_is_named_that_no_text_has() -> None:
    """Every id in the program, its documents and its tests is one of the texts'."""
    real = {*clauses.known(), *clauses.sections()}
    for folder in (*clauses.PACKAGES, "docs", "tests"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".toml", ".lua", ".md"}:
                found = set(clauses.ID.findall(path.read_text(encoding="utf-8")))
                assert found <= real, f"{path}: {sorted(found - real)}"


@pytest.mark.parametrize("text", TEXTS)
def test_the_list_has_each_clause_of_the_texts(text: str) -> None:
    """The committed list is what the texts themselves number."""
    listed = [one for one in clauses.known() if one.startswith(f"{text}-")]
    assert listed == _numbered(text, (OUTLINES / TEXTS[text]).read_text(encoding="utf-8"))


def test_the_list_has_each_heading_of_ntcec_that_is_a_rule() -> None:
    """The text of nTCEC numbers nothing: its clauses are headings of the text, each listed once."""
    lines = (OUTLINES / "ntcec-season-1-rules.txt").read_text(encoding="utf-8").splitlines()
    listed = [one.removeprefix("N1 ") for one in clauses.known() if one.startswith("N1 ")]
    frame = {"The Website", "The nTCEC Computer", "Thank You"}
    rules = [line for line in lines if line not in frame]
    assert len(rules) == len(listed) == len(set(listed))
    for heading in listed:
        assert [line for line in rules if line.removeprefix("The nTCEC ").startswith(heading)]


@pytest.mark.parametrize("text", PAGES)
def test_the_page_of_a_text_goes_through_every_clause(text: str) -> None:
    """Each clause has one row on its page, in the order of the text, and says what is done."""
    page = (ROOT / "docs" / "rules" / f"{PAGES[text]}.md").read_text(encoding="utf-8")
    rows = re.findall(rf"^\| ({text}[- ][^|]+) \| ([^|]+) \| ([^|]+) \|$", page, re.MULTILINE)
    assert [row[0] for row in rows] == [one for one in clauses.known() if one.startswith(text)]


def _numbered(text: str, lines: str) -> list[str]:
    """Number the clauses of a text: sections 1, 2, ..., each with its letters a, b, ..."""
    sections: list[str] = []
    for line in lines.splitlines():
        if re.match(rf"{len(sections) + 1}\. [A-Z][^.]{{0,60}}$", line):
            sections.append("")
        elif sections and line[:2] in {f"{_next(sections)}.", f"{_next(sections)}:"}:
            sections[-1] += _next(sections)
    numbered = enumerate(sections, 1)
    return [f"{text}-{at}{letter}" for at, letters in numbered for letter in letters or [""]]


def _next(sections: list[str]) -> str:
    return chr(ord("a") + len(sections[-1]))
