"""The layers: who may import whom (docs/architecture.md)."""

from __future__ import annotations

import ast
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import structure  # type: ignore[import-not-found]  # noqa: E402 - a script

PACKAGES = ("orchestrator", "worker_cpu", "worker_gpu")
FOUNDATION = {"orchestrator.common", "orchestrator.contract", "orchestrator.errors"}
PURE = {"redis", "celery", "kombu", "time", "subprocess", "socket", "threading", "os", "random"}

# Layer: the parts of the farm its modules may import (itself and the foundation always).
ALLOWED = {
    "orchestrator.common": set(),
    "orchestrator.contract": {"orchestrator.errors"},
    "orchestrator.errors": set(),
    "orchestrator.arbiter": set(),
    "orchestrator.rating": set(),
    "orchestrator.ledger": {"orchestrator.arbiter"},
    "orchestrator.season": {"orchestrator.arbiter"},
    "orchestrator.audit": {"orchestrator.arbiter", "orchestrator.season"},
    "orchestrator.broadcast": {
        "orchestrator.arbiter",
        "orchestrator.forecast",
        "orchestrator.rating",
        "orchestrator.ratinglist",
        "orchestrator.season",
        "orchestrator.version",
    },
    "worker_cpu": {"orchestrator.arbiter", "orchestrator.ledger", "orchestrator.version"},
    "worker_cpu.kibitz": {"orchestrator.arbiter", "orchestrator.ledger", "orchestrator.logs"},
    "worker_cpu.match": {"orchestrator.arbiter", "orchestrator.ledger", "orchestrator.rating"},
    "worker_gpu": {"orchestrator.arbiter", "orchestrator.ledger", "orchestrator.version"},
}


def _modules(layer: str) -> list[pathlib.Path]:
    place = ROOT / layer.replace(".", "/")
    found = sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]
    inner = [ROOT / other.replace(".", "/") for other in ALLOWED if _lies_in(other, layer)]
    return [path for path in found if not any(path.is_relative_to(room) for room in inner)]


def _lies_in(other: str, layer: str) -> bool:
    return other.startswith(f"{layer}.")


def _imports(path: pathlib.Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def _belongs(name: str, layer: str) -> bool:
    return name == layer or name.startswith(f"{layer}.")


@pytest.mark.parametrize("layer", ALLOWED)
def test_a_layer_imports_only_what_lies_below_it(layer: str) -> None:
    """No module imports a part of the farm that its layer may not know."""
    outer = {other for other in ALLOWED if _lies_in(layer, other)}
    allowed = ALLOWED[layer] | FOUNDATION | {layer} | outer
    modules = _modules(layer)
    assert modules, f"layer {layer} has no module"
    for path in modules:
        for name in _imports(path):
            ours = name.split(".")[0] in PACKAGES and name not in PACKAGES
            assert not ours or any(_belongs(name, part) for part in allowed), f"{path}: {name}"


@pytest.mark.parametrize(
    "layer", ["orchestrator.arbiter", "orchestrator.rating", "orchestrator.season"]
)
def test_pure_layers_know_no_clock_no_process_no_server(layer: str) -> None:
    """The rules of a game and of a season are functions of their arguments alone."""
    for path in _modules(layer):
        for name in _imports(path):
            assert name.split(".")[0] not in PURE, f"{path}: {name}"


def test_the_orchestrator_imports_no_worker() -> None:
    """What is decided does not depend on how games are played."""
    for path in _modules("orchestrator"):
        for name in _imports(path):
            assert not name.startswith(("worker_cpu", "worker_gpu")), f"{path}: {name}"


def test_only_the_ledger_spells_redis_keys() -> None:
    """The prefix of the ledger's keys stands in one module."""
    for package in PACKAGES:
        for path in _modules(package):
            if path.name != "keys.py":
                assert "farm:ledger" not in path.read_text(encoding="utf-8"), path


def test_the_drawn_structure_is_that_of_the_program() -> None:
    """The picture in the documents is the import graph, and no room imports itself by others."""
    shown = structure.read_picture(structure.PICTURE.read_text(encoding="utf-8"))
    program = structure.read_program()
    assert shown == program, f"`make structure` draws {structure.PICTURE} again"


def test_the_files_that_the_architecture_names_are_there() -> None:
    """Who follows the page finds each module and folder of the program that it names."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*")]
    there = {f"/{path.relative_to(ROOT)}{'/' if path.is_dir() else ''}" for path in paths}
    for name in re.findall(r"`([\w/]+(?:\.py|\.lua|/))`", page):
        known = (ROOT / name).exists() or any(path.endswith(f"/{name}") for path in there)
        assert known, f"docs/architecture.md names {name}, which is not there"


def test_no_two_modules_of_the_tests_have_the_same_name() -> None:
    """The tests' rooms are no packages: of two modules of one name the second is never read."""
    seen: dict[str, pathlib.Path] = {}
    for path in pathlib.Path(__file__).parent.rglob("*.py"):
        if path.name != "conftest.py" and "vendor" not in path.parts:
            assert path.name not in seen, f"{path} and {seen[path.name]}"
            seen[path.name] = path
