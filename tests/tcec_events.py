"""Events of TCEC's public archive: their games, and what happened in them (``tests/data/tcec``).

``FARM_EVENTS`` names a folder of more events, with files of the same names in it:
``pgn/TCEC_EVENT.pgn.gz`` and ``expected/EVENT.json``.
"""

from __future__ import annotations

import functools
import json
import os
import pathlib
from typing import Any

OWN = pathlib.Path(__file__).parent / "data" / "tcec"
MORE = os.environ.get("FARM_EVENTS")
FOLDERS = (OWN, pathlib.Path(MORE)) if MORE else (OWN,)


def names() -> list[str]:
    """Return the events by the archive's file names, without ``TCEC_`` and ``.pgn``; Cups last."""
    paths = {path.name for folder in FOLDERS for path in folder.glob("pgn/TCEC_*.pgn.gz")}
    names = (name.removeprefix("TCEC_").removesuffix(".pgn.gz") for name in paths)
    return sorted(names, key=lambda name: (name.startswith("Cup_"), name))


def games(name: str) -> pathlib.Path:
    """Return the file with an event's games."""
    return _path(f"pgn/TCEC_{name}.pgn.gz")


def whole_games(name: str) -> pathlib.Path:
    """Return the file with an event's few games that nothing was left out of."""
    return _path(f"whole/TCEC_{name}.pgn.gz")


@functools.cache
def expected(name: str) -> Any:
    """Return what happened in an event, or what was gathered of many (``ties``, ``cups``, ...)."""
    return json.loads(_path(f"expected/{name}.json").read_text(encoding="utf-8"))


def _path(name: str) -> pathlib.Path:
    own, *more = [folder / name for folder in FOLDERS]
    return next((path for path in more if path.exists()), own)
