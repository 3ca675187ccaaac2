"""The repository stands alone: nothing in it reads or cites what is not in it."""

from __future__ import annotations

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parent.parent
# The folder that lay beside the checkout while the farm was built, and papers in it.
OUTSIDE = re.compile(
    r"""\.\./shared|\bshared/(?:data|seeds|reference)|"shared"\s*/|\btruth\.md"""
    r"""|\bRULEBOOK\b|\b(?:DESIGN|HOUSE|STYLE)(?:\.md|,? §)"""
)


def test_no_file_names_what_lies_beside_the_repository() -> None:
    """A fresh clone has all that its tests, documents and comments speak of."""
    found = []
    for name in _tracked():
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        if name != "tests/test_repository.py":
            found += [f"{name}: {match[0]}" for match in OUTSIDE.finditer(text)]
    assert not found, "say it in the repository's own words, or copy what is needed into it"


def test_no_module_climbs_out_of_the_repository() -> None:
    """No path is built from a module's own that leads above the repository."""
    for name in _tracked():
        if name.endswith(".py"):
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
            outside = [line for line in lines if _climbs(line) > name.count("/") + 1]
            assert not outside, name


def test_the_readme_names_the_two_commands_that_set_all_up() -> None:
    """Who has a fresh machine plays the demo by one, and passes the tests by the other."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "`make demo`" in readme
    assert "`make test`" in readme


def _climbs(line: str) -> int:
    """Return how many folders above its own module a line of code goes."""
    if numbered := re.search(r"__file__\)[\w.()]*?\.parents\[(\d+)\]", line):
        return int(numbered[1]) + 1
    steps = re.search(r"__file__\)(?:\.resolve\(\))?((?:\.parent\b)+)", line)
    return steps[1].count(".parent") if steps else 0


def _tracked() -> list[str]:
    """Return the files of the checkout, or of the unpacked source distribution."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    if not (ROOT / ".git").exists():
        command = ["find", ".", "-type", "f", "-not", "-path", "./.*", "-printf", "%P\\n"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
