"""The version of this farm: as it is written into the journal, and the build that runs."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import pathlib
import subprocess
from typing import Final

VERSION = importlib.metadata.version("tournament-farm")
PACKAGES: Final = ("orchestrator", "worker_cpu", "worker_gpu")
COMPILED: Final = frozenset({".pyc", ".pyo"})
DIGITS: Final = 8  # of the checksum: enough to tell the builds of one farm apart


@functools.cache
def build() -> str:
    """Return version and checksum of the program's files, such as ``0.1.0+3f2a91bc``.

    Two hosts show the same build where they run the same files, whatever the version says: what
    an upgrade left half-done is seen. It is that of the files at the first call, so processes
    that run for long ask at their start.
    """
    return f"{VERSION}+{checksum(pathlib.Path(__file__).parents[2])}"


def commit() -> str:
    """Return the commit that runs, as far as that is known, else ''.

    Of a checkout git says it, with a ``+`` where files were changed since; of a package that was
    installed from a repository its own notes do (PEP 610).
    """
    root = pathlib.Path(__file__).parents[2]
    if (root / ".git").exists():
        asked = [
            "git",
            "-C",
            str(root),
            "describe",
            "--always",
            "--dirty=+",
            "--exclude=*",
            "--abbrev=8",
        ]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
        except OSError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""
    notes = importlib.metadata.distribution("tournament-farm").read_text("direct_url.json")
    origin = json.loads(notes or "{}").get("vcs_info", {})
    return str(origin.get("commit_id", ""))[:DIGITS]


def described() -> str:
    """Return version, checksum of the files, and commit: ``0.1.0 (files 3f2a91bc, commit …)``."""
    files = build().rpartition("+")[2]
    known = commit()
    return f"{VERSION} (files {files}{f', commit {known}' if known else ''})"


def checksum(folder: pathlib.Path) -> str:
    """Return the checksum of the program's files below a folder, by their names and bytes."""
    whole = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((folder / package).rglob("*")):
            if path.is_file() and path.suffix not in COMPILED:
                whole.update(f"{path.relative_to(folder).as_posix()}\0".encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:DIGITS]
