"""Draw the structure of the program into docs/architecture.md: who imports whom.

The graph of the modules is grimp's. They are drawn by rooms: a package is a room, modules of
``GROUPS`` that lie beside each other make one, and any other module is one by itself. An
arrow goes from a room to one that it imports; those that follow from other arrows are left
out. Run by ``make structure``; ``tests/test_layers.py`` compares picture and program.
"""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Mapping

import grimp

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
PACKAGES = ("orchestrator", "worker_cpu", "worker_gpu")
BEGIN, END = "<!-- structure: drawn by `make structure` -->", "<!-- end of structure -->"

# Modules that lie beside each other in a package, by package and room.
GROUPS: Mapping[str, Mapping[str, str]] = {
    "orchestrator": {
        "contract": "contract errors",
        "common": "version logs players",
        "doorbell": "bells celery doorbell access processes embedded watchdog",
        "forecast": "ratinglist forecast branch chances simulation importing",
        "serve": (
            "serve season_runner leases archive interrupted_games farm_journal testmatches evidence"
        ),
    },
    "worker_cpu": {
        "keeper": (
            "tasks keeper lane link live witness suspicion holds retention bench bench_command"
            " vitals doctor"
        ),
        "hall": "hall pins settings boxes seating",
        "referee": (
            "referee nursery playing start thinking desk plies telling kept promptness tablebases"
            " protocol_log resume stalls"
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


def drawn() -> str:
    """Return the picture, as Mermaid reads it; raise ``ValueError`` for rooms in a circle."""
    rooms = _rooms()
    beyond = {room: _beyond(room, rooms) for room in rooms}
    rows = ["```mermaid", "flowchart TD"]
    for package in PACKAGES:
        inside = sorted(room for room in rooms if room.startswith(package))
        rows += [f"  subgraph {package}", *(f"    {_node(room)}" for room in inside), "  end"]
    for room in sorted(rooms):
        implied = set().union(*(beyond[other] for other in rooms[room]))
        rows += [f"  {_id(room)} --> {_id(other)}" for other in sorted(rooms[room] - implied)]
    return "\n".join([*rows, "```"])


def page(text: str, picture: str) -> str:
    """Return the page with another picture."""
    before, _, after = text.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{picture}\n\n{END}{after.partition(END)[2]}"


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


def _id(room: str) -> str:
    return room.replace(".", "_")


def _node(room: str) -> str:
    package, _, name = room.partition(".")
    beside = GROUPS.get(package, {}).get(name)
    text = f"{name}/" if (ROOT / package / name).is_dir() else name
    return f'{_id(room)}["{text}{"" if beside is None else f": {beside}"}"]'


def main() -> None:
    """Write the picture into the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), drawn()), encoding="utf-8")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    main()
