"""Cut the games of TCEC's events that the tests replay from the archive's PGN files.

python scripts/tcec_games.py tests/data/tcec ARCHIVE/master-archive/TCEC_Cup_12_Final.pgn ...

``pgn/``: all games of a file with their tags, their moves and, behind each move, the fields that
an adjudication rests on: ``book``, the eval, both clocks and TCEC's own counters. The engines'
output (variations, nodes, speed, depth) and the lists of their options are left out; they are
nine tenths of a file. What marks a move without a search (``d=1``, ``n=0``, an empty ``pv``)
is kept. ``whole/``: the few games of ``WHOLE``, unchanged.
"""

from __future__ import annotations

import gzip
import pathlib
import re
import sys
from typing import Final

from orchestrator.audit import pgn, unpacking

REMARK: Final = re.compile(r"\{[^}]*\}\n?")
OUTPUT: Final = re.compile(
    r"\b(?:pd|s|tb|h|ph)=[^,}]*, ?"  # what no rule reads
    r"|\b(?:d|sd)=(?!1,)[^,}]*, ?|\bn=(?!0,)[^,}]*, ?|\bpv=[^,}]+, ?"
)
# Two games a file that ended on the board, every move with an eval (tests of the PGN record).
WHOLE: Final = {
    "TCEC_Cup_12_Final": (3, 5),
    "TCEC_Season_16_-_League_1_Playoff": (1, 8),
    "TCEC_Season_22_-_Frc5_Final": (1, 2),
}


def cut(text: str) -> str:
    """Return a PGN text without the engines' output and options."""
    return REMARK.sub(lambda remark: _cut(remark[0]), text)


def _cut(remark: str) -> str:
    return "" if "EngineOptions:" in remark else OUTPUT.sub("", remark)


def main() -> None:
    """Cut every file named behind the first argument into that folder."""
    target, *sources = map(pathlib.Path, sys.argv[1:])
    for source in sources:
        text = unpacking.text(source)
        name = source.name.removesuffix(".gz").removesuffix(".pgn")
        _write(target / "pgn" / f"{name}.pgn.gz", cut(text))
        if numbers := WHOLE.get(name):
            games = pgn.chunks(text)
            whole = "".join(f"{games[number - 1]}\n\n" for number in numbers)
            _write(target / "whole" / f"{name}.pgn.gz", whole)


def _write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


if __name__ == "__main__":
    main()
