"""Draw the structure of the program into docs/pictures/structure.svg: who imports whom.

The graph of the modules is grimp's. They are drawn by rooms: a folder of a package is a room, and
so is a folder of ``season`` and ``broadcast``; a module that lies in no folder is one by itself. An
arrow goes from a room to one that it imports; those that follow from other arrows are left
out. Run by ``make structure``, which needs graphviz' ``dot``; ``tests/test_layers.py`` holds the
rooms and arrows of the picture, not its lines, against the program, and needs none.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree as ET

import grimp

ROOT = pathlib.Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "structure.svg"
PACKAGES = ("orchestrator", "worker_cpu", "worker_gpu")
SVG = "{http://www.w3.org/2000/svg}"
WINGS = ("orchestrator.season", "orchestrator.broadcast")  # their folders are rooms, too

_Graph = Mapping[str, set[str]]


@dataclasses.dataclass(frozen=True)
class Structure:
    """Rooms (dotted name: name in the picture), and the arrows between them."""

    rooms: Mapping[str, str]
    arrows: frozenset[tuple[str, str]]


def read_program() -> Structure:
    """Return the structure of the program; raise ``ValueError`` for rooms in a circle."""
    rooms = read_rooms()
    beyond = {room: _beyond(room, rooms) for room in rooms}
    arrows = set()
    for room, others in rooms.items():
        implied = set().union(*(beyond[other] for other in others))
        arrows |= {(room, other) for other in others - implied}
    return Structure({room: _name(room) for room in rooms}, frozenset(arrows))


def read_picture(svg: str) -> Structure:
    """Return the structure that a picture shows."""
    rooms, arrows = {}, set()
    for group in ET.fromstring(svg).iter(f"{SVG}g"):  # noqa: S314 - ours
        title = group.findtext(f"{SVG}title", "")
        if group.get("class") == "node":
            rooms[title] = " ".join(one.text or "" for one in group.iter(f"{SVG}text"))
        elif group.get("class") == "edge":
            start, end = title.split("->")
            arrows.add((start, end))
    return Structure(rooms, frozenset(arrows))


def dot(structure: Structure) -> str:
    """Return the drawing in graphviz' language."""
    return "\n".join(["digraph structure {", *_drawing(structure), "}"])


def _drawing(structure: Structure) -> Iterator[str]:
    yield '  graph [fontname="sans-serif", ranksep=0.45, nodesep=0.15, bgcolor=white]'
    yield '  node [shape=box, style="rounded,filled", fillcolor=white, fontname="sans-serif"]'
    yield '  node [fontsize=12, height=0.3, margin="0.08,0.04"]'
    yield '  edge [color="#555555", arrowsize=0.6]'
    for package in PACKAGES:
        yield f'  subgraph cluster_{package} {{ label="{package}" bgcolor="#eef2f7" color="#c4cfdb"'
        inside = sorted(room for room in structure.rooms if room.startswith(f"{package}."))
        yield from (f'    "{room}" [label="{_name(room)}"]' for room in inside)
        yield "  }"
    for start, end in sorted(structure.arrows):
        yield f'  "{start}" -> "{end}"'
    yield from (f'  "{above}" -> "{below}" [style=invis]' for above, below in _stacked(structure))


def _stacked(structure: Structure) -> Iterator[tuple[str, str]]:
    """Yield what lies above what, so that the orchestrator stands below the workers."""
    first, *workers = (f"{package}." for package in PACKAGES)
    imported = {end for _, end in structure.arrows}
    inside = {start for start, end in structure.arrows if start.split(".")[0] == end.split(".")[0]}
    tops = [one for one in sorted(structure.rooms) if one.startswith(first) and one not in imported]
    for room in sorted(structure.rooms):
        if room.startswith(tuple(workers)) and room not in inside:
            yield from ((room, top) for top in tops)


def read_rooms() -> _Graph:
    """Return what each room imports, by the modules in it."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    rooms: dict[str, set[str]] = {}
    for module in sorted(graph.modules - set(PACKAGES)):
        imported = graph.find_modules_directly_imported_by(module) - set(PACKAGES)
        rooms.setdefault(room(module), set()).update(map(room, imported))
    return {room: others - {room} for room, others in rooms.items()}


def room(module: str) -> str:
    """Return the room that a module stands in."""
    parts = module.split(".")
    if parts[0] == "worker_gpu":
        return module if parts[1] == "agent" else "worker_gpu.seats"
    depth = 3 if ".".join(parts[:2]) in WINGS and len(parts) > 2 and _folder(parts[:3]) else 2
    return ".".join(parts[:depth])


def _folder(parts: Sequence[str]) -> bool:
    return ROOT.joinpath(*parts).is_dir()


def _beyond(room: str, rooms: _Graph) -> set[str]:
    found: set[str] = set()
    ahead = list(rooms[room])
    while ahead:
        other = ahead.pop()
        if other == room:
            raise ValueError(f"{room} imports itself by way of other rooms")
        if other not in found:
            found.add(other)
            ahead += rooms[other]
    return found


def _name(room: str) -> str:
    """Return how a room is called in the picture: a folder's name ends with a slash."""
    package, *parts = room.split(".")
    return "/".join(parts) + "/" * _folder((package, *parts))


def main() -> None:
    """Write the picture."""
    program = shutil.which("dot")
    if program is None:
        raise SystemExit(
            "structure: dot is missing; install graphviz (scripts/system-packages.txt)"
        )
    text = dot(read_program())
    done = subprocess.run(
        [program, "-Tsvg"], input=text, capture_output=True, text=True, check=True
    )
    svg = re.sub(
        r"<!--.*?-->\n", "", done.stdout, flags=re.DOTALL
    )  # the version of dot, and titles
    PICTURE.write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
