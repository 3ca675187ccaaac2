"""Print how big the house is and how its rooms hang together.

Run by ``make test``, which prints the table and asserts none of it: lines of code are a result,
never a target. Rooms and arrows are those of ``structure.py``.
"""

from __future__ import annotations

import ast
import pathlib
import re
from collections.abc import Iterator, Mapping

import grimp
import structure

ROOT = pathlib.Path(__file__).parent.parent
ENTRANCES = {"__init__", "celery", "tasks", "settings"}
SMALL = 80  # lines: a module below that belongs in its only importer
VAGUE = re.compile(r"_?(told|found|known|one|place|words|facts)")
GROUND = {"orchestrator.common", "orchestrator.contract"}  # every room may import them


def main() -> None:
    """Print one line a figure."""
    paths = {
        path: path.read_text(encoding="utf-8")
        for package in structure.PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    trees = {path: ast.parse(text) for path, text in paths.items()}
    graph = grimp.build_graph(*structure.PACKAGES, cache_dir=None)
    loose = {
        package: sum(path.stem not in ENTRANCES for path in (ROOT / package).glob("*.py"))
        for package in ("orchestrator", "worker_cpu")
    }
    figures = {
        "lines of product Python": sum(len(text.splitlines()) for text in paths.values()),
        "modules": len(paths),
        "loose modules": ", ".join(f"{number} in {package}/" for package, number in loose.items()),
        **_arrows(graph),
        f"modules of one importer, under {SMALL} lines": len(_small(graph)),
        "clients of the referee (modules that send it an order)": _sources(
            paths, r"send\(frames\.Kind\.ORDER"
        ),
        "leases (modules that renew one on a beat)": _sources(paths, r"renewal\.failed"),
        "fork servers": _sources(paths, r"^class ForkServer"),
        "loops that fold a journal into a season's state": sum(map(_folds, trees.values())),
        "places in which a verb of the ledger (`write_ply`) is written, its script too": 1
        + _sources({p: t for p, t in paths.items() if "ledger" in p.parts}, r"def write_ply\("),
        "locals named told, found, known, one, place, words, facts": sum(
            len(names) for tree in trees.values() for names in _locals(tree)
        ),
        "functions named so": sum(
            VAGUE.fullmatch(function.name) is not None
            for tree in trees.values()
            for function in _functions(tree)
        ),
    }
    print("The house in figures (scripts/house.py), compared with nothing: none is an error.")
    width = max(map(len, figures))
    for name, figure in figures.items():
        print(f"{name:{width}}  {figure}")


def _arrows(graph: grimp.ImportGraph) -> dict[str, object]:
    """Count rooms and arrows: as they are drawn, and between the packages' folders alone."""
    rooms = structure.read_rooms()
    folders: dict[str, set[str]] = {}
    for module in graph.modules - set(structure.PACKAGES):
        imported = graph.find_modules_directly_imported_by(module) - set(structure.PACKAGES)
        folder = _folder(module)
        folders.setdefault(folder, set()).update(set(map(_folder, imported)) - {folder})
    above = sum(len(others - GROUND) for others in folders.values())
    return {
        "rooms (folders; those of season/ and broadcast/, too)": len(rooms),
        "arrows between rooms": sum(map(len, rooms.values())),
        "arrows as drawn (without those that follow from others)": len(
            structure.read_program().arrows
        ),
        "folders of the packages": len(folders),
        "arrows between folders": sum(map(len, folders.values())),
        "of them not into common and contract": above,
    }


def _folder(module: str) -> str:
    package, name, *_ = module.split(".")
    return package if package == "worker_gpu" else f"{package}.{name}"


def _small(graph: grimp.ImportGraph) -> list[str]:
    """Return the modules that have one importer and few lines; a command has its table as well."""
    commands = (ROOT / "orchestrator" / "commands" / "__init__.py").read_text(encoding="utf-8")
    return [
        module
        for module in sorted(graph.modules)
        if len(graph.find_modules_that_directly_import(module)) == 1
        and f'"{module}:' not in commands
        and (path := ROOT / f"{module.replace('.', '/')}.py").exists()
        and len(path.read_text(encoding="utf-8").splitlines()) < SMALL
    ]


def _sources(paths: Mapping[pathlib.Path, str], pattern: str) -> int:
    """Return how many modules hold a pattern."""
    found_at = re.compile(pattern, re.MULTILINE)
    return sum(found_at.search(text) is not None for text in paths.values())


def _folds(tree: ast.AST) -> int:
    """Return how many loops of a module apply an entry to a state."""
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For)]
    return sum(
        any(_applies(call) for call in ast.walk(loop) if isinstance(call, ast.Call))
        for loop in loops
        if not any(isinstance(inner, ast.For) for part in loop.body for inner in ast.walk(part))
    )


def _applies(call: ast.Call) -> bool:
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "apply"
        and len(call.args) == 1
        and isinstance(call.args[0], ast.Name)
        and call.args[0].id == "entry"
    )


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _locals(tree: ast.AST) -> Iterator[set[str]]:
    """Yield the locals of each function that have a name which fits everything."""
    for function in _functions(tree):
        names = (node for node in ast.walk(function) if isinstance(node, ast.Name))
        bound = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        yield {name for name in bound if VAGUE.fullmatch(name)}


if __name__ == "__main__":
    main()
