"""Cut the outlines of the rule texts that the tests read: python outline.py TEXT.txt ...

Each numbered line keeps its number or letter and its first words. nTCEC's text numbers nothing:
its headings are kept.
"""

from __future__ import annotations

import pathlib
import re
import sys

NUMBERED = re.compile(r"\d+\. |[a-z][.:] |[ivx]+\. ")
HEADING = re.compile(r"[A-Z][^.?:]{1,40}")
WORDS = 5  # with the number: enough to find the line in the text


def main() -> None:
    """Write the outline of each text beside this file."""
    for source in map(pathlib.Path, sys.argv[1:]):
        lines = source.read_text(encoding="utf-8").splitlines()
        kept = filter(HEADING.fullmatch if "ntcec" in source.name else NUMBERED.match, lines)
        outline = "".join(f"{_short(line)}\n" for line in kept)
        pathlib.Path(__file__).with_name(source.name).write_text(outline, encoding="utf-8")


def _short(line: str) -> str:
    words = line.split()
    title = len(line) < 60 and not line.endswith(".")
    return line if title else " ".join([*words[:WORDS], "..."])


if __name__ == "__main__":
    main()
