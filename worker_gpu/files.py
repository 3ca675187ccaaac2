"""Engines' files on the GPU box: compared with their checksums, put in place when pushed.

The hall pushes what is missing by SFTP as ``incoming/<SHA-256>``; nothing there is believed
before its checksum is computed here. Invariants: only the engines' directory is written to,
and whole files only (write beside, sync, rename).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Iterator

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.engines import builds


@dataclasses.dataclass(frozen=True)
class Found:
    """An engine's files: checksums by path, those that nobody has pinned, those missing."""

    program: str
    checksums: dict[str, str]
    fresh: dict[str, str]
    missing: dict[str, str]


class Files:
    """Knows the checksums of files it has read before, while they are unchanged."""

    def __init__(self, engines: pathlib.Path, incoming: pathlib.Path) -> None:
        self._engines, self._incoming = engines, incoming
        self._known = files.Checksums()

    def find(self, spec: contract.EngineSpec) -> Found:
        """Verify an engine's files; raise ``HostError`` for what pushing cannot repair."""
        checksums: dict[str, str] = {}
        fresh: dict[str, str] = {}
        missing: dict[str, str] = {}
        program = ""
        for name, path in _files(spec):
            wanted = spec.checksums.get(name, "")
            actual = self._known.of(path)
            if wanted and actual != wanted and self._install(path, wanted):
                actual = wanted
            if wanted and actual != wanted:
                self._pushable(spec, name, path)
                missing[wanted] = str(path)
            elif not actual:
                raise errors.HostError(f"{spec.name}: {name} ({path}) is not on this box")
            elif not wanted:
                fresh[name] = actual
            checksums[str(path)] = actual
            program = program or str(path)
        return Found(program, checksums, fresh, missing)

    def _pushable(self, spec: contract.EngineSpec, name: str, path: pathlib.Path) -> None:
        if not pathlib.Path(os.path.normpath(path)).is_relative_to(self._engines):
            raise errors.HostError(
                f"{spec.name}: {name} ({path}) is not the pinned file, and files are put into"
                f" {self._engines} only; install it by hand"
            )

    def _install(self, path: pathlib.Path, wanted: str) -> bool:
        """Put a pushed file in place; say whether that was done."""
        pushed = self._incoming / wanted
        if not pushed.is_file() or not pathlib.Path(os.path.normpath(path)).is_relative_to(
            self._engines
        ):
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        shutil.copyfile(pushed, part)
        if self._known.of(part) != wanted:
            part.unlink()
            pushed.unlink()
            return False
        part.chmod(0o755)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        part.replace(path)
        pushed.unlink()
        return True


def _files(spec: contract.EngineSpec) -> Iterator[tuple[str, pathlib.Path]]:
    """Yield the engine's files, its program first: as the roster names them, and where they are."""
    for name in builds.files(spec):
        if name == spec.command[0] and "/" not in name:
            yield name, pathlib.Path(shutil.which(name) or f"/{name} (not in PATH)")
        else:
            yield name, pathlib.Path(spec.directory or ".").absolute() / name
