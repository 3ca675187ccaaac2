"""Words that readers stumbled over, and the plain ones that stand in their place.

Looked for in what people read: help, messages, logs, docstrings and comments of the program,
the documentation, playbooks and units. And the names of local variables that say nothing.
"""

from __future__ import annotations

import ast
import io
import pathlib
import re
import tokenize
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent.parent
PLAIN = {
    r"(tells?|told) of (itself|themselves)": "sends a heartbeat",
    r"mend(s|ed|ing)?": "fix, repair",
    r"reckon(s|ed|ing)?": "compute",
    r"anew": "again",
    r"comes? along": "is bundled",
    r"nurser(y|ies)": "fork server",
    r"deeds?": "action",
    r"for ever": "for good, without end",
    r"(held|holds?) against": "check, compare with",
    r"behold|lest|hence|thither|whence": "rephrase",
}
WORST = re.compile(rf"\b({'|'.join(PLAIN)})\b", re.IGNORECASE)
PROGRAM = ("orchestrator", "worker_cpu", "worker_gpu", "scripts")
NAMELESS = {"found", "told", "known", "one"}  # CONTRIBUTING.md, "The field's terms"
PAGES = ("README.md", "CONTRIBUTING.md", "docs/**/*.md", "ansible/**/*.yml", "deploy/**/*.service")
# Not words: part of the seed of a draw, so old journals are verified by it; an old module's name.
EXACT = (":mended:",)


def _texts() -> Iterator[tuple[str, str]]:
    for package in PROGRAM:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            with io.StringIO(path.read_text(encoding="utf-8")) as source:
                for token in tokenize.generate_tokens(source.readline):
                    if token.type in (tokenize.STRING, tokenize.COMMENT):
                        yield f"{name}:{token.start[0]}", token.string
    for pattern in PAGES:
        for path in sorted(ROOT.glob(pattern)):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_what_people_read_is_said_in_plain_words() -> None:
    """None of the worst words of the glossary is in help, errors, logs or documentation."""
    texts = list(_texts())
    assert len(texts) > 10_000, "nearly nothing was read"
    found = [
        f"{place}: {match[0]!r}"
        for place, text in texts
        for match in WORST.finditer(text)
        if not any(exact in text for exact in EXACT)
    ]
    assert not found, found


def test_the_words_are_found() -> None:
    """The pattern sees a word within a sentence, not a part of another word."""
    assert WORST.search("Mend its configuration")
    assert WORST.search("a host tells of itself")
    assert not WORST.search("amended recommended indeed")


def test_local_variables_say_what_they_hold() -> None:
    """No assignment, loop or comprehension of the program binds one of the empty names."""
    nameless, read = [], 0
    for package in ("orchestrator", "worker_cpu", "worker_gpu"):
        for path in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            fields = {
                field.target
                for part in ast.walk(tree)
                if isinstance(part, ast.ClassDef)
                for field in part.body
                if isinstance(field, ast.AnnAssign)
            }
            for name in ast.walk(tree):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    read += 1
                    if name.id in NAMELESS and name not in fields:
                        nameless.append(f"{path.relative_to(ROOT)}:{name.lineno}: {name.id}")
    assert read > 1_000, "nearly nothing was read"
    assert not nameless, f"say what it holds: {nameless}"
