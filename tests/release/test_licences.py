"""What others wrote: every vendored file and every locked package has a compatible licence."""

from __future__ import annotations

import hashlib
import importlib.util
import pathlib
import re
from types import ModuleType
from typing import Any

import pytest

ROOT = pathlib.Path(__file__).parents[2]
ROW = re.compile(
    r"^\| (?P<name>\S+) \| (?P<version>\d\S*) \| (?P<licence>[^|]+) \| [\w ]+ \|$", re.MULTILINE
)
KEYS = {"name", "version", "licence", "source", "changed", "files"}


def script() -> ModuleType:
    """Load the script that writes the page."""
    spec = importlib.util.spec_from_file_location("licences", ROOT / "scripts" / "licences.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


LICENCES = script()
VENDORED: list[tuple[pathlib.Path, dict[str, Any]]] = list(LICENCES.vendored())


def page() -> str:
    """Return the committed page."""
    text: str = LICENCES.PAGE.read_text(encoding="utf-8")
    return text


def folders() -> list[pathlib.Path]:
    """Return the folders whose name says that their files are others'."""
    found = [
        path
        for room in ("orchestrator", "worker_cpu", "worker_gpu", "tests", "deploy")
        for path in (ROOT / room).rglob("vendor")
        if path.is_dir() and "node_modules" not in path.parts  # of the lock, in no distribution
    ]
    assert found
    return found


@pytest.mark.parametrize("folder", folders(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_vendored_file_is_accounted_for(folder: pathlib.Path) -> None:
    """Each file stands with its checksum in VENDORED.toml, and each entry is a file."""
    own = {"VENDORED.toml", "README.md"}
    there = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
    told = {
        name: sha
        for place, package in VENDORED
        if place == folder
        for name, sha in package["files"].items()
    }
    assert told == {name: sha for name, sha in there.items() if name not in own}


@pytest.mark.parametrize(("folder", "package"), VENDORED, ids=lambda item: str(item)[-20:])
def test_every_vendored_package_says_what_it_is(
    folder: pathlib.Path, package: dict[str, Any]
) -> None:
    """Name, version, licence with its text, source, changes; pictures may have their own."""
    assert package.keys() - {"pictures"} == KEYS
    assert package["source"].startswith("https://")
    assert LICENCES.compatible(package["licence"])
    assert any("LICENSE" in name for name in package["files"])
    for name, licence in package.get("pictures", {}).items():
        assert name in package["files"]
        assert licence in LICENCES.PICTURES
        assert (folder / name).suffix == ".svg"


def test_the_page_names_every_vendored_package() -> None:
    """The committed table is the one that the script writes."""
    for row in LICENCES.vendored_rows():
        assert row in page(), "run `make licences`"


def test_the_page_is_the_locks() -> None:
    """Names and versions of the committed table are those of the locks."""
    told = {(row["name"], row["version"]) for row in ROW.finditer(page())}
    locked = LICENCES.pins("requirements.lock") | LICENCES.pins("requirements-dev.lock")
    assert told == locked, "run `make licences`"


def test_every_package_goes_with_the_farms_licence() -> None:
    """No licence of the table forbids what GPL-3.0-or-later asks."""
    rows = list(ROW.finditer(page()))
    assert rows
    for row in rows:
        assert LICENCES.compatible(row["licence"]), row["name"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("MIT", True),
        ("MIT OR Proprietary", True),
        ("Apache-2.0 AND MIT", True),
        ("MIT AND Proprietary", False),
        ("UNKNOWN", False),
        ("", False),
    ],
)
def test_expressions_are_read(expression: str, expected: bool) -> None:
    """AND asks for all, OR for one, and what nobody knows is refused."""
    assert LICENCES.compatible(expression) is expected
