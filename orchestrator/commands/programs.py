"""Whether engines' programs and networks are on this machine: said before a season is launched.

A warning and never a refusal: the hall may be another host; nothing is said at a desk, which has no
hall. There a program that is missing
starts no game and holds the season (``worker_cpu.hall.checksums``). Engines of GPU boxes are not
looked for. A bare program is looked for where a hall that was started here does.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import click

from orchestrator import contract
from orchestrator.commands import paths, tablebases
from orchestrator.engines import builds, known_programs
from orchestrator.season.file import load, roster

GAMES: Final = "/usr/games"  # where Debian has engines: in a hall's PATH, but in few accounts'
NAMED: Final = 5  # engines in one warning; the bundled seasons name programs that few halls have


def warnings(engines: Iterable[contract.EngineSpec]) -> list[str]:
    """Return what to say of engines that are missing here, or named without their protocol."""
    listed = list(engines)
    return missing(listed) + [
        f"{spec.id} ({spec.command[0]}) is started as UCI, and programs of that name speak XBoard:"
        ' protocol = "xboard" belongs into its entry'
        for spec in listed
        if known_programs.wants_xboard(spec.command, spec.protocol)
    ]


def missing(engines: Iterable[contract.EngineSpec]) -> list[str]:
    """Return what to say of engines whose files are missing here, [] where all are there."""
    if paths.at_desk():
        return []
    here = [spec for spec in engines if not spec.box]
    programs = [f"{spec.id} ({spec.command[0]})" for spec in here if not _runs(spec)]
    networks = [f"{spec.id} ({spec.network})" for spec in here if not _reads(spec)]
    texts = []
    if programs:
        what = f"no program on this machine, or none that can be executed: {_named(programs)}"
        held = "their games do not start and the season is held"
        texts.append(f"{what}; if it is the hall, {held}")
    if networks:
        what = f"no network file on this machine: {_named(networks)}"
        unpinned = "no game pins it, and with a checksum none starts"
        texts.append(f"{what}; if it is the hall, {unpinned}")
    return texts


def of_season(loaded: load.Loaded) -> list[str]:
    """Return what to say of a season's engines and tablebases on this machine."""
    engines = warnings(loaded.engines) + _found_at_desk(loaded)
    return engines + tablebases.warnings(loaded.season)


def _found_at_desk(loaded: load.Loaded) -> list[str]:
    """Return what to say of engines that were found on this machine, which is no hall's."""
    if not paths.at_desk():
        return []
    specs = roster.found(loaded.season.roster, loaded.engines)
    away = [f"{spec.id} ({spec.command[0]})" for spec in specs]
    if not away:
        return []
    held = "where its host has no such program the season is held"
    instead = (
        "`farm season preflight` there tries them; a file that names the hall's own engines:"
        " `farm season new FILE`"
    )
    return [f"found on this machine, which is no hall: {_named(away)}; {held}. {instead}"]


def warn(texts: Sequence[str]) -> None:
    """Write warnings to standard error, for people and beside what programs read."""
    for warning in texts:
        click.secho(f"Warning: {warning}", err=True, fg="yellow", bold=True)


def _named(missing: Sequence[str]) -> str:
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    return ", ".join(missing[:NAMED]) + more


def _runs(spec: contract.EngineSpec) -> bool:
    return any(_is_program(spec, name) for name in _programs(spec))


def _reads(spec: contract.EngineSpec) -> bool:
    """Say whether the network is where the hall looks for it (``worker_cpu.hall.checksums``)."""
    return not spec.network or (pathlib.Path(spec.directory or ".") / spec.network).is_file()


def _programs(spec: contract.EngineSpec) -> Iterator[str]:
    """Yield what the hall may start: one of the builds by its processor, else the command."""
    yield spec.command[0]
    yield from (command[0] for build, command in spec.builds.items() if build != builds.GPU)


def _is_program(spec: contract.EngineSpec, name: str) -> bool:
    if "/" not in name:
        return shutil.which(name, path=search_path()) is not None
    path = pathlib.Path(spec.directory or ".") / name
    return os.access(path, os.X_OK) and path.is_file()


def search_path() -> str:
    """Return where a hall that was started here looks for a bare program."""
    programs = str(pathlib.Path(sys.executable).parent)
    return os.pathsep.join([programs, os.environ.get("PATH", os.defpath), GAMES])
