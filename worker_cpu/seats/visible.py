"""What an engine may see of its host's files: which paths are granted, which are covered.

Invariants: an engine is granted its own directory, its program, the files that its roster entry
names and the event's tables, never a directory that is the system's or everybody's; where a
hidden path lies within a granted one, the inner one wins; all that is bound is read-only.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from collections.abc import Iterator, Sequence

from orchestrator import contract

SCRATCH = "/scratch"
WIDE = ("/etc", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/var")  # noqa: S108 - is refused
KERNEL = ("/dev", "/proc", "/run", "/sys", SCRATCH)
PROGRAMS = ("orchestrator", "worker_cpu")  # the farm's own engine is made of these


def binds(own: Sequence[str], hidden: Sequence[str]) -> Iterator[str]:
    """Yield binds of ``own`` and covers of ``hidden``, outer paths first, so the inner win."""
    places = dict.fromkeys(hidden, False) | dict.fromkeys(own, True)
    seen = {"/usr": True, sys.base_prefix: True}
    covers = []
    for path in sorted(places, key=lambda path: len(pathlib.PurePath(path).parts)):
        around = [place for place in seen if within(path, place)]
        visible = bool(around) and seen[max(around, key=len)]
        if places[path] == visible or (not places[path] and not pathlib.Path(path).exists()):
            continue
        seen[path] = places[path]
        if places[path]:
            yield from bind(path)
        elif pathlib.Path(path).is_dir():
            yield from ("--perms", "0555", "--tmpfs", path)
            covers.append(path)
        else:
            yield from ("--ro-bind", "/dev/null", path)
    for path in covers:
        yield from ("--remount-ro", path)


def bind(path: str) -> Iterator[str]:
    """Yield a read-only bind; its parents are for all to pass (bubblewrap's own are not)."""
    for parent in reversed(pathlib.PurePath(path).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(parent))
    yield from ("--ro-bind", path, path)


def within(path: str, place: str) -> bool:
    """Say whether a path is a place or lies in it."""
    return pathlib.PurePath(path).is_relative_to(place)


def grants(spec: contract.EngineSpec, other: contract.EngineSpec, search: str) -> list[str]:
    """Return what an engine may read: its directory, its program, the files it is told of."""
    found = [*([spec.directory] if spec.directory else []), *_named(spec)]
    program, against = _program(spec, search), _program(other, search)
    if program is not None:
        for path in {program, pathlib.Path(os.path.realpath(program))}:
            shared = against is not None and against != program and against.parent == path.parent
            alone = bool(spec.directory) or shared or _wide(path.parent)
            found.append(str(path if alone else path.parent))
        if pathlib.Path(os.path.realpath(program.parent)).is_relative_to(sys.prefix):
            found += _farm()
            if not program.is_relative_to(sys.prefix):  # by a link, such as /opt/farm/venv
                found.append(str(program.parent.parent))
    return list(dict.fromkeys(path for path in found if pathlib.Path(path).exists()))


def _program(spec: contract.EngineSpec, search: str) -> pathlib.Path | None:
    name = spec.command[0]
    if "/" in name:
        return pathlib.Path(os.path.normpath(pathlib.Path(spec.directory or "/") / name))
    found = shutil.which(name, path=search)
    return pathlib.Path(found) if found else None


def _named(spec: contract.EngineSpec) -> list[str]:
    """Return the absolute paths that the roster's entry names in commands and options."""
    values = [*spec.command[1:], *map(str, spec.options.values()), *spec.init]
    values += [str(value) for own in spec.settings.values() for value in own.values()]
    values += [spec.network or "", *spec.checksums]
    words = [word for value in values for word in value.replace("=", ":").split(":")]
    named = {os.path.normpath(word) for word in words if word.startswith("/")}
    return sorted(path for path in named if not _of_all(path))


def _of_all(path: str) -> bool:
    """Say whether a path is the system's, or holds everybody's things: nobody's own."""
    return path in ("/", *WIDE) or any(within(path, place) for place in KERNEL)


def prefer_own_programs() -> None:
    """Let this process and its engines find the programs of its own environment first.

    It may have been started by a link that leads to another release after an upgrade.
    """
    own = str(pathlib.Path(sys.prefix, "bin"))
    os.environ["PATH"] = os.pathsep.join([own, os.environ.get("PATH", os.defpath)])


def _farm() -> list[str]:
    """Return where the farm's own engine lives: this environment and its packages."""
    root = pathlib.Path(__file__).parents[2]
    return [sys.prefix, *(str(root / name) for name in PROGRAMS)]


def _wide(directory: pathlib.Path) -> bool:
    """Say whether a directory is one that holds other people's things, not one program's."""
    path = str(directory)
    return _of_all(path) or within(path, "/usr") or directory == pathlib.Path.home()


def of_system(path: str) -> bool:
    """Say whether a path is a part of what every sandbox needs itself."""
    needed = (sys.base_prefix, "/usr/bin", "/bin", "/usr/lib", "/lib", "/lib64")
    return any(within(path, place) for place in needed) or within(interpreter(), path)


def tables(limits: contract.Limits) -> Iterator[str]:
    """Yield the directories of the event's tablebases."""
    paths = (limits.syzygy_path, limits.nalimov_path, limits.gaviota_path, limits.scorpio_path)
    for path in paths:
        yield from filter(None, (path or "").split(os.pathsep))


def interpreter() -> str:
    """Return this Python's program, which runs the sandbox's first process."""
    return os.path.realpath(sys.executable)
