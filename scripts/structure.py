"""Draw the structure of the program into docs/pictures/structure.svg: who imports whom.

The graph of the modules is grimp's. They are drawn by rooms: a package is a room, modules of
``GROUPS`` that lie beside each other make one, and any other module is one by itself. An
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
import textwrap
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree as ET

import grimp

ROOT = pathlib.Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "pictures" / "structure.svg"
PACKAGES = ("orchestrator", "worker_cpu", "worker_gpu")
SVG = "{http://www.w3.org/2000/svg}"
LINE = 26  # characters of a room's modules beside each other

# Modules that lie beside each other in a package, by package and room.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "orchestrator": {
        "contract": "contract errors common",
        "common": "version logs players",
        "doorbell": "celery doorbell access processes embedded watchdog",
        "forecast": "ratinglist forecast branch chances simulation importing",
        "serve": (
            "serve season_runner leases ringing archive interrupted_games farm_journal testmatches"
            " evidence"
        ),
    },
    "worker_cpu": {
        "keeper": (
            "tasks keeper lane link lease outages live witness suspicion holds retention bench"
            " bench_command vitals doctor"
        ),
        "hall": "hall settling pins settings boxes seating",
        "referee": (
            "referee nursery playing start thinking desk plies telling kept promptness tablebases"
            " protocol_log resume stalls pulse cgroups turns"
        ),
        "frames": "frames finished interrupted deadman",
        "house": "house_engine house_search house_evaluation host_speed",
    },
}
_ROOM_OF = {
    f"{package}.{module}": f"{package}.{room}"
    for package, rooms in GROUPS.items()
    for room, modules in rooms.items()
    for module in modules.split()
}
_Graph = Mapping[str, set[str]]


@dataclasses.dataclass(frozen=True)
class Structure:
    """Rooms (package and name) with the words in their boxes, and the arrows between them."""

    rooms: Mapping[str, str]
    arrows: frozenset[tuple[str, str]]


def read_program() -> Structure:
    """Return the structure of the program; raise ``ValueError`` for rooms in a circle."""
    rooms = _rooms()
    beyond = {room: _beyond(room, rooms) for room in rooms}
    arrows = set()
    for room, others in rooms.items():
        implied = set().union(*(beyond[other] for other in others))
        arrows |= {(room, other) for other in others - implied}
    return Structure({room: " ".join(_words(room)) for room in rooms}, frozenset(arrows))


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
        yield from (f'    "{room}" [label={_label(room)}]' for room in inside)
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


def _label(room: str) -> str:
    name, *beside = _words(room)
    lines = "".join(f"<BR/>{line}" for line in textwrap.wrap(" ".join(beside), LINE))
    return f"<<B>{name}</B>{lines}>"


def _rooms() -> _Graph:
    """Return what each room imports, by the modules in it."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    rooms: dict[str, set[str]] = {}
    for module in sorted(graph.modules - set(PACKAGES)):
        imported = graph.find_modules_directly_imported_by(module) - set(PACKAGES)
        rooms.setdefault(_room(module), set()).update(map(_room, imported))
    return {room: others - {room} for room, others in rooms.items()}


def _room(module: str) -> str:
    package, beside = module.split(".")[:2]
    if package == "worker_gpu":
        return f"{package}.agent" if beside == "agent" else f"{package}.box"
    return _ROOM_OF.get(f"{package}.{beside}", f"{package}.{beside}")


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


def _words(room: str) -> list[str]:
    """Return a room's name, and the modules that make it where they are no package."""
    package, _, name = room.partition(".")
    folder = (ROOT / package / name).is_dir()
    beside = GROUPS.get(package, {}).get(name, "").split()
    return [f"{name}/" if folder else name, *beside]


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
