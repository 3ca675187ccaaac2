"""Choose engines' builds, and compare their files with the pinned checksums.

Before an official game the hall takes the best build of each engine for its processor and
computes the SHA-256 of its program, its network and every other file that the roster
names. A file that is not the pinned one is the host's fault, never the engine's: no game
is started. Files that nobody has pinned yet are told in the game's entry, and so pinned
for the rest of the event.

A program that is not there at all, pinned or not, is an interruption that its engine has not
caused (S16-15b): nobody has started what could crash. One that is there and does not start has
crashed (S16-15c). Only official games ask for that (``require_programs``): a
test game is lost by it.

Invariant: a file is read again whenever its inode, size or times have changed.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping

from orchestrator import contract
from orchestrator.common import errors, files
from orchestrator.engines import builds

CPUINFO = pathlib.Path("/proc/cpuinfo")


@dataclasses.dataclass(frozen=True)
class Verified:
    """An order whose engines are what they should be; ``found`` was pinned by nobody yet."""

    order: contract.GameOrder
    found: Mapping[contract.Side, Mapping[str, str]]


class FileChecksums:
    """Knows this host's processor, and the checksums of files it has read before."""

    def __init__(self, flags: frozenset[str] | None = None) -> None:
        """Take the processor's flags from the kernel unless they are given."""
        self._flags = _host_flags() if flags is None else flags
        self._known = files.Checksums()

    def verify(self, order: contract.GameOrder) -> Verified:
        """Return the order with builds chosen; raise ``HostError`` for a file that differs."""
        white, white_found = self._engine(order.white)
        black, black_found = self._engine(order.black)
        chosen = order.model_copy(update={"white": white, "black": black})
        return Verified(chosen, {"white": white_found, "black": black_found})

    def checksums(self, spec: contract.EngineSpec) -> dict[str, str]:
        """Return the checksums of an engine's files that are on this host."""
        there = ((name, self._sum(path)) for name, path in _files(spec))
        return {name: digest for name, digest in there if digest}

    def _engine(self, spec: contract.EngineSpec) -> tuple[contract.EngineSpec, dict[str, str]]:
        if spec.box:
            return spec, {}  # verified where its files are: on the GPU box
        chosen = builds.best(spec, self._flags)
        for name, path in _files(chosen):
            wanted = chosen.checksums.get(name)
            actual = self._sum(path) if wanted else ""
            if wanted and actual != wanted:
                raise errors.HostError(_differs(chosen, name, path, wanted, actual))
        digests = self.checksums(chosen)
        fresh = {name: digest for name, digest in digests.items() if name not in chosen.checksums}
        checksums = {**chosen.checksums, **fresh}
        return chosen.model_copy(update={"checksums": checksums}), fresh

    def _sum(self, path: pathlib.Path | None) -> str:
        return "" if path is None else self._known.of(path)


def require_programs(order: contract.GameOrder) -> None:
    """Raise ``HostError`` for a program that is not on this host, or that nobody may execute.

    Engines on GPU boxes are looked for there. Builds must have been chosen
    (``FileChecksums.verify``).
    """
    for spec in (order.white, order.black):
        if spec.box:
            continue
        program = _path(spec, spec.command[0])
        if program is None or not os.access(program, os.X_OK) or not program.is_file():
            raise errors.HostError(_absent(spec, program))


def _files(spec: contract.EngineSpec) -> Iterator[tuple[str, pathlib.Path | None]]:
    """Yield the files to look at, as the roster names them and where they are."""
    for name in builds.files(spec):
        yield name, _path(spec, name)


def _path(spec: contract.EngineSpec, name: str) -> pathlib.Path | None:
    """Return where a file is: a bare program by the PATH, all else from its directory."""
    if name == spec.command[0] and "/" not in name:
        program = shutil.which(name)
        return None if program is None else pathlib.Path(program)
    return pathlib.Path(spec.directory or ".") / name


def _differs(
    spec: contract.EngineSpec, name: str, path: pathlib.Path | None, wanted: str, actual: str
) -> str:
    where = "not in PATH" if path is None else str(path)
    return (
        f"{spec.name}: {name} ({where}) is not the pinned file: wanted SHA-256 {wanted}, found"
        f" {actual or 'no file that can be read'}; put the pinned file back, then"
        " `farm season resume`"
    )


def _absent(spec: contract.EngineSpec, path: pathlib.Path | None) -> str:
    where = "not in PATH" if path is None else str(path)
    there = path is not None and os.access(path, os.F_OK)
    problem = "cannot be executed" if there else "is not there"
    return (
        f"{spec.name}: its program {spec.command[0]} ({where}) {problem} on this host; put it"
        " there, executable, then `farm season resume`"
    )


def _host_flags() -> frozenset[str]:
    try:
        return builds.processor_flags(CPUINFO.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return frozenset()
