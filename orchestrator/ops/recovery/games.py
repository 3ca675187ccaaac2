"""Games and tables of an archive, copied into another archive or a backup.

Invariants: a file in the copy is complete or absent; one that is there already is never
replaced by another content, but for an event's PGN, which is made of the games' own.
"""

from __future__ import annotations

import pathlib

from orchestrator.common import files

TOLD = "game.pgn"  # what every archived game has
FRESH = (".pgn",)  # files of the season itself that may have changed since


def copy(source: pathlib.Path, target: pathlib.Path, season: str) -> int:
    """Copy what ``target`` lacks of a season's games and PGN; return the games copied."""
    copied = 0
    for folder in sorted((source / season / "games").glob("*")):
        if folder.is_dir():
            copied += _copy_game(folder, target / season / "games" / folder.name)
    for path in sorted((source / season).iterdir() if (source / season).is_dir() else ()):
        if path.suffix in FRESH:
            _copy_changed(path, target / season / path.name)
    return copied


def _copy_game(folder: pathlib.Path, target: pathlib.Path) -> bool:
    """Copy the files that are missing; say whether the finished game is new in the copy."""
    new = (folder / TOLD).exists() and not (target / TOLD).exists()
    paths = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".tmp"]
    for path in sorted(paths):
        copied = target / path.relative_to(folder)
        if not copied.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            files.write(copied, path.read_bytes())
    return new


def _copy_changed(path: pathlib.Path, target: pathlib.Path) -> None:
    content = path.read_bytes()
    if target.exists() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    files.write(target, content)
