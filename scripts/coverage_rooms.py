"""Say which part of each room's statements the tests have run (``make coverage`` calls it).

Of what a process did that was killed nothing is known, and tests kill many; nothing is known of
installed copies either. So a figure is a bound from below.
"""

from __future__ import annotations

import json
import pathlib

import structure

LINES = pathlib.Path("build/coverage/lines.json")


def main() -> None:
    """Print a line a room, in the order of their names, and one for all."""
    rooms: dict[str, tuple[int, int]] = {}
    for path, file in json.loads(LINES.read_text(encoding="utf-8"))["files"].items():
        summary = file["summary"]
        for room in (structure.room(path.removesuffix(".py").replace("/", ".")), "all"):
            covered, statements = rooms.get(room, (0, 0))
            rooms[room] = covered + summary["covered_lines"], statements + summary["num_statements"]
    whole = rooms.pop("all")
    width = max(map(len, rooms))
    for room, (covered, statements) in [*sorted(rooms.items()), ("all", whole)]:
        if statements:
            print(f"{room:{width}}  {100 * covered / statements:5.1f} %  of {statements}")


if __name__ == "__main__":
    main()
