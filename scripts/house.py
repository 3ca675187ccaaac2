"""Print how big the house is and how its rooms hang together.

Run by ``make test``, which prints the table and asserts none of it: lines of code are a result,
never a target. Rooms and arrows are those of ``structure.py``.
"""

from __future__ import annotations

import ast
import pathlib
import re

import grimp
import structure

ROOT = pathlib.Path(__file__).parent.parent
ENTRANCES = {"__init__", "celery", "tasks", "settings"}
SMALL = 80  # lines: a module below that belongs in its only importer
VAGUE = re.compile(r"told|found|known|one|place|words|facts")


def main() -> None:
    """Print one line a figure."""
    paths = {
        path: path.read_text(encoding="utf-8")
        for package in structure.PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
    }
    rooms = structure.read_rooms()
    loose = {
        package: sum(path.stem not in ENTRANCES for path in (ROOT / package).glob("*.py"))
        for package in ("orchestrator", "worker_cpu")
    }
    figures = {
        "lines of product Python": sum(len(text.splitlines()) for text in paths.values()),
        "modules": len(paths),
        "loose modules": ", ".join(f"{number} in {package}/" for package, number in loose.items()),
        "rooms": len(rooms),
        "arrows between rooms": sum(map(len, rooms.values())),
        f"modules of one importer, under {SMALL} lines": _small(),
        "locals named told, found, known, one, place, words, facts": sum(
            map(_vague, paths.values())
        ),
    }
    width = max(map(len, figures))
    for name, figure in figures.items():
        print(f"{name:{width}}  {figure}")


def _small() -> int:
    """Return how many modules have one importer and few lines."""
    graph = grimp.build_graph(*structure.PACKAGES, cache_dir=None)
    return sum(
        len(graph.find_modules_that_directly_import(module)) == 1
        and len(path.read_text(encoding="utf-8").splitlines()) < SMALL
        for module in graph.modules
        if (path := ROOT / f"{module.replace('.', '/')}.py").exists()
    )


def _vague(text: str) -> int:
    """Return how many functions' locals have a name that fits everything, each once a function."""
    return sum(
        len({n.id for n in ast.walk(function) if _binds(n) and VAGUE.fullmatch(n.id)})
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
    )


def _binds(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)


if __name__ == "__main__":
    main()
