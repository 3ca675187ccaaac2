"""The version of this farm: as it is written into the journal, and the build that runs."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import json
import pathlib
from typing import Final

from orchestrator.common import built

VERSION = importlib.metadata.version("tournament-farm")  # as it was installed
PACKAGES: Final = ("orchestrator", "worker_cpu", "worker_gpu")
COMPILED: Final = frozenset({".pyc", ".pyo"})
DIGITS: Final = 8  # of the checksum: enough to tell the builds of one farm apart


@functools.cache
def build() -> str:
    """Return release and checksum of the program's files, such as ``0.1.0+3f2a91bc``.

    Two hosts show the same build where they run the same files, whatever the version says: what
    an upgrade left half-done is seen, and no commit that changed none of them. It is that of the
    files at the first call, so processes that run for long ask at their start.
    """
    return f"{VERSION.partition('.dev')[0]}+{checksum(pathlib.Path(__file__).parents[2])}"


def commit() -> str:
    """Return the commit that runs, as far as that is known, else ''.

    Of a checkout git says it, with a ``+`` where files were changed since; a wheel and a source
    distribution were told when they were built. Of a package that was installed from a repository
    the installer's notes say it, too (PEP 610).
    """
    recorded = built.commit(pathlib.Path(__file__).parents[2])
    if recorded:
        return recorded
    notes = importlib.metadata.distribution("tournament-farm").read_text("direct_url.json")
    origin = json.loads(notes or "{}").get("vcs_info", {})
    return str(origin.get("commit_id", ""))[:DIGITS]


def described() -> str:
    """Return version, checksum of the files, and commit: ``0.1.0 (files 3f2a91bc, commit …)``."""
    root = pathlib.Path(__file__).parents[2]
    number = built.version(root) if (root / ".git").exists() else VERSION  # it was installed once
    commit_id = commit()
    return f"{number} (files {checksum(root)}{f', commit {commit_id}' if commit_id else ''})"


def checksum(folder: pathlib.Path) -> str:
    """Return the checksum of the program's files below a folder, by their names and bytes."""
    whole = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((folder / package).rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and path.suffix not in COMPILED and not added(name):
                whole.update(f"{name}\0".encode())
                whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()[:DIGITS]


def added(name: str) -> bool:
    """Say whether a file of the program was added by a build: a checkout has none of these."""
    return name.startswith(f"{built.FOLDER}/")
