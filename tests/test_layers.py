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
LOOSE = {"__init__", "celery", "tasks", "settings"}  # a module of a package that lies in no room
PURE = {"redis", "celery", "kombu", "time", "subprocess", "socket", "threading", "os", "random"}

# From the ground up: a room imports rooms of the rows above its own row alone.
LAYERS = (
    "orchestrator.common",
    "orchestrator.contract orchestrator.rating",
    "orchestrator.arbiter orchestrator.engines orchestrator.ledger orchestrator.seasons",
    "orchestrator.queues orchestrator.testmatch orchestrator.season.spec",
    "orchestrator.celery orchestrator.season.formats",
    "orchestrator.season.fold",
    "orchestrator.season.file",
    "orchestrator.season.amend",
    "orchestrator.season",
    "orchestrator.audit orchestrator.forecast orchestrator.metrics orchestrator.notify",
    "orchestrator.serve orchestrator.broadcast.content",
    "orchestrator.broadcast.feeds orchestrator.broadcast.subscriptions",
    "orchestrator.broadcast",
    "orchestrator.broadcast.forecast orchestrator.ops",
    "orchestrator.broadcast.web",
    "orchestrator.gateway",
    "orchestrator.commands",
    "worker_cpu.wire worker_cpu.builtin_engine worker_gpu.agent",
    "worker_cpu.protocols worker_gpu.seats",
    "worker_cpu.engines",
    "worker_cpu.hall worker_cpu.referee worker_cpu.settings",
    "worker_cpu.host worker_cpu.match",
    "worker_cpu.book worker_cpu.kibitz worker_cpu.link worker_cpu.remote",
    "worker_cpu.worker",
    "worker_cpu.tasks",
)
# What workers may import of the orchestrator: nothing that decides.
FOR_WORKERS = {
    f"orchestrator.{room}"
    for room in ["common", "contract", "rating", "arbiter", "engines", "ledger", "testmatch"]
}


def _modules(layer: str) -> list[pathlib.Path]:
    place = ROOT / layer.replace(".", "/")
    return sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]


def _imports(path: pathlib.Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names} | {node.module}
    return found


def test_a_room_imports_only_what_lies_below_it() -> None:
    """No room imports one of its own layer, or of one above, not even within a function."""
    heights = {room: height for height, row in enumerate(LAYERS) for room in row.split()}
    rooms = structure.read_rooms()
    assert set(rooms) == set(heights), "a room's layer stands in LAYERS"
    upward = [(a, b) for a, below in rooms.items() for b in below if heights[b] >= heights[a]]
    assert not upward, "(room, what it imports): move what both need into a room below both"


def test_workers_import_nothing_that_decides() -> None:
    """A hall and a GPU box know messages, ledger and the rules of one game."""
    for room, below in structure.read_rooms().items():
        if room.startswith(("worker_cpu.", "worker_gpu.")):
            theirs = {one for one in below if one.startswith("orchestrator.")}
            assert theirs <= FOR_WORKERS, f"{room}: workers import only FOR_WORKERS of these"


def test_every_module_lies_in_a_room() -> None:
    """The folder listing is the architecture: beside the rooms lie a package's entrances alone."""
    for package in ("orchestrator", "worker_cpu"):
        loose = {path.stem for path in (ROOT / package).glob("*.py")}
        assert loose <= LOOSE, f"move {loose - LOOSE} of {package}/ into a room (folder) there"


@pytest.mark.parametrize(
    "layer", ["orchestrator.arbiter", "orchestrator.rating", "orchestrator.season"]
)
def test_pure_layers_know_no_clock_no_process_no_server(layer: str) -> None:
    """The rules of a game and of a season are functions of their arguments alone."""
    for path in _modules(layer):
        for name in _imports(path):
            assert name.split(".")[0] not in PURE, f"{path}: {name}; let the caller give it"


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


def test_the_classes_that_the_architecture_names_are_there() -> None:
    """A name such as ``handles.DeadMan`` is a class of a module of that name."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:[\w/]+/)?(\w+)\.([A-Z]\w*[a-z]\w*)`", page))
    assert named, "the page names classes"
    for module, name in named:
        sources = [path for package in PACKAGES for path in (ROOT / package).rglob(f"{module}.py")]
        texts = [path.read_text(encoding="utf-8") for path in sources]
        assert any(f"class {name}" in text for text in texts), f"{module}.{name}"


@pytest.mark.parametrize(
    ("title", "most"),
    [
        ("An order, from the decision to the first `go`", 30),
        ("A result, from `bestmove` to the archive", 22),
    ],
)
def test_each_file_of_a_walk_is_joined_to_another(title: str, most: int) -> None:
    """The files of a walk in the documents hang together: by imports, a script's name, the bell."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = page.split(f"**{title}** ({most} files):")[1].split("\n\n")[1]
    names = re.findall(r"^\| \d+ \| `([\w/.]+)` \|", table, re.MULTILINE)
    assert len(names) == most
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    imports = {name: _imports(ROOT / name) for name in names if name.endswith(".py")}
    for name in names:
        module = name.removesuffix(".py").replace("/", ".")
        others = [other for other in names if other != name]
        joined = any(
            module in imports.get(other, ())
            or other.removesuffix(".py").replace("/", ".") in imports.get(name, ())
            or _runs(texts[other], name)
            or _runs(texts[name], other)
            or ("bells.PLAY" in texts[name] and "bells.PLAY" in texts[other])
            for other in others
        )
        assert joined or _registered(module, imports), f"{name} is on no path of its walk"


def _runs(text: str, script: str) -> bool:
    """Say whether a text calls a script of the ledger by its name."""
    return script.endswith(".lua") and f'run("{pathlib.Path(script).stem}"' in text


def _registered(module: str, imports: dict[str, set[str]]) -> bool:
    """Say whether a module is imported by a registry that a module of the walk imports."""
    registry = f"{module.rpartition('.')[0]}.registry"
    path = ROOT / f"{registry.replace('.', '/')}.py"
    return (
        path.exists() and module in _imports(path) and any(registry in i for i in imports.values())
    )


def test_no_two_modules_of_the_tests_have_the_same_name() -> None:
    """The tests' rooms are no packages: of two modules of one name the second is never read."""
    seen: dict[str, pathlib.Path] = {}
    for path in pathlib.Path(__file__).parent.rglob("*.py"):
        if path.name != "conftest.py" and "vendor" not in path.parts:
            assert path.name not in seen, f"{path} and {seen[path.name]}"
            seen[path.name] = path
