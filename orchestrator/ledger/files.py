"""Durable files: complete or absent after a crash, never half (DESIGN §6)."""

from __future__ import annotations

import os
import pathlib


def write(path: pathlib.Path, content: bytes) -> None:
    """Write a file under another name, sync it, rename it, sync its directory."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: pathlib.Path) -> None:
    """Make creations and renames in a directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
