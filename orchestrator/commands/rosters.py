"""What the commands about engines share: entries of a roster file, checksums of files."""

from __future__ import annotations

import hashlib
import pathlib
import shutil

import click

from orchestrator import contract
from orchestrator.commands import common, programs
from orchestrator.common import errors, files
from orchestrator.season.file import load, roster
from orchestrator.season.spec import model


def file_option(function: common.Function) -> common.Function:
    """Add ``--file``, a roster file."""
    return click.option("--file", help="A roster file (engines.toml), not a season.")(function)


def any_file_option(function: common.Function) -> common.Function:
    """Add ``--file``, a season file or a roster file."""
    text = "A season file or a roster file (engines.toml) that has them."
    return click.option("--file", help=text)(function)


def season_of(file: str | pathlib.Path) -> load.Loaded | None:
    """Return the season of a file, ``None`` where it is a roster file.

    Raise ``SeasonFileError`` for what is neither.
    """
    try:
        load.load_engines(pathlib.Path(file))
    except errors.WrongFileError as error:
        if error.found != load.SEASON_FILE:
            raise
        return load.load(pathlib.Path(file))
    return None


def entries_of(file: str | pathlib.Path) -> dict[str, model.EngineEntry]:
    """Return the entries of a roster file by their ids; raise ``SeasonFileError``."""
    return {roster.id_of(listed): listed for listed in load.load_engines(pathlib.Path(file))}


def specs(file: str | pathlib.Path) -> dict[str, contract.EngineSpec]:
    """Return the engines of a roster file by their ids, as a hall starts them."""
    return {name: roster.spec(listed) for name, listed in entries_of(file).items()}


def entry(file: str | pathlib.Path, name: str) -> model.EngineEntry:
    """Return an entry of a roster file by its id; raise ``UsageError`` without one."""
    entries = entries_of(file)
    if name not in entries:
        engine_ids = ", ".join(entries) or "none"
        raise errors.UsageError(f"{file}: no engine {name!r}; engines there: {engine_ids}")
    return entries[name]


def pinned(listed: model.EngineEntry) -> model.EngineEntry:
    """Return an entry with the checksums of those of its files that this machine has.

    Programs of all builds and the network; checksums that the entry gives stay.
    """
    commands = [command[0] for command in (listed.command, *listed.builds.values())]
    named = [*commands, *([listed.network] if listed.network else [])]
    digests = {name: _checksum(listed, name) for name in dict.fromkeys(named)}
    fresh = {name: digest for name, digest in digests.items() if digest}
    return listed.model_copy(update={"checksums": {**fresh, **listed.checksums}})


def _checksum(listed: model.EngineEntry, name: str) -> str:
    """Return the SHA-256 of a file, '' where this machine has none."""
    bare = "/" not in name and name != listed.network
    program = shutil.which(name, path=programs.search_path()) if bare else None
    path = pathlib.Path(program or pathlib.Path(listed.directory or ".") / name)
    if not files.is_file(path):
        return ""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
