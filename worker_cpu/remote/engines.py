"""The engines that a remote worker has: a roster file, compared with what a test match pins.

A match names its engines' files by SHA-256. The worker plays it with files of its own that have
these checksums, and starts nothing else: program, arguments and directory are those of its own
roster. Of the gateway's words an engine hears only its options and protocol lines; an option whose
value names a path is refused unless the path is a pinned file, which is put in its place.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import shutil
from collections.abc import Mapping
from typing import TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.common import bounds, errors, files, text

GAMES = "/usr/games:/usr/local/games"  # where Debian has engines, in few accounts' PATH


# What is taken of an order and its engines. All else belongs to halls (seats on other hosts, an
# environment to hand on, games broken off), and is left as it is by default, whatever is added.
_OF_ORDER = (
    *("season", "season_name", "event", "event_name", "game", "number", "round"),
    *("time_control", "time_margin_ms", "opening", "limits", "timeouts", "variant"),
    *("adjudication", "tell_opponent", "agreed_draws"),
)
_OF_ENGINE = (
    *("id", "name", "author", "protocol", "rating", "white_pov", "init"),
    *("time_control", "time_margin_ms"),
)


class UnplayableError(Exception):
    """This worker cannot play an order; the message says why."""


class _Entry(pydantic.BaseModel):
    """What is read of a roster's engine; the rest of the entry is the farm's."""

    id: str
    command: str | tuple[str, ...]
    directory: str | None = None
    network: str | None = None


class _Roster(pydantic.BaseModel):
    engine: tuple[_Entry, ...] = pydantic.Field(min_length=1)


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine of this machine; ``files`` are the paths of its files by SHA-256."""

    name: str
    command: tuple[str, ...]
    directory: str
    files: Mapping[str, str]

    @property
    def spelled(self) -> tuple[str, ...]:
        """Return the command with each of its files as its SHA-256."""
        return _spelled(self.command, {path: digest for digest, path in self.files.items()})


def read(path: pathlib.Path) -> list[Engine]:
    """Read a roster file; raise ``UsageError`` for what is wrong in it or not on this machine."""
    try:
        roster = _Roster.model_validate(bounds.toml(path))
    except pydantic.ValidationError as error:
        key, what = contract.first_wrong(error)
        raise errors.UsageError(
            f"--engines {path}: {key}: {what}; allowed: tables [[engine]] with id,"
            " command, directory, network"
        ) from None
    except bounds.DAMAGED as error:
        raise errors.UsageError(f"--engines {path}: cannot be read: {error}") from error
    return [_engine(path, entry) for entry in roster.engine]


def _engine(roster: pathlib.Path, entry: _Entry) -> Engine:
    command = (entry.command,) if isinstance(entry.command, str) else entry.command
    home = roster.absolute().parent / (entry.directory or ".")
    program = _program(command[0], home)
    if program is None:
        raise errors.UsageError(
            f"--engines {roster}: {entry.id}: no program {command[0]!r} that can be executed, in"
            f" PATH or from {home}"
        )
    paths = [program]
    if entry.network is not None:
        network = str(home / entry.network)
        command = tuple(network if word == entry.network else word for word in command)
        paths.append(network)
    digests = {path: files.Checksums().of(pathlib.Path(path)) for path in paths}
    missing = [path for path, digest in digests.items() if not digest]
    if missing:
        raise errors.UsageError(f"--engines {roster}: {entry.id}: {missing[0]} cannot be read")
    by_digest = {digest: path for path, digest in digests.items()}
    return Engine(entry.id, (program, *command[1:]), str(home), by_digest)


def _program(name: str, home: pathlib.Path) -> str | None:
    if "/" not in name:
        program = shutil.which(name) or shutil.which(name, path=GAMES)
        return None if program is None else str(pathlib.Path(program).absolute())
    path = home / pathlib.Path(name).expanduser()
    return str(path) if os.access(path, os.X_OK) and path.is_file() else None


def localized(order: contract.GameOrder, engines: list[Engine]) -> contract.GameOrder:
    """Return an order with this machine's programs; raise ``UnplayableError``."""
    if order.adjudication.syzygy is not None:
        raise UnplayableError("the match adjudicates by tablebases, which workers do not have")
    kept = {field: getattr(order, field) for field in _OF_ORDER}
    white, black = _local(order.white, engines), _local(order.black, engines)
    return contract.GameOrder(**kept, white=white, black=black, journaled=False)


def _local(spec: contract.EngineSpec, engines: list[Engine]) -> contract.EngineSpec:
    wanted = _spelled(spec.command, spec.checksums)
    pinned = set(spec.checksums.values())
    able = (
        candidate
        for candidate in engines
        if candidate.spelled == wanted and candidate.files.keys() >= pinned
    )
    engine = next(able, None)
    if engine is None:
        raise UnplayableError(
            f"{spec.name}: the match starts it as {' '.join(spec.command)}, with files of SHA-256"
            f" {', '.join(spec.checksums.values()) or '(none is pinned)'}; no engine of --engines"
            " has the same files and arguments"
        )
    for line in spec.init:
        _refuse_path(spec, "line to it", line)
    here = {name: engine.files[digest] for name, digest in spec.checksums.items()}
    options = {name: _option(spec, name, value, here) for name, value in spec.options.items()}
    kept = {field: getattr(spec, field) for field in _OF_ENGINE}
    network = None if spec.network is None else here.get(spec.network)
    return contract.EngineSpec(
        **kept,
        command=engine.command,
        directory=engine.directory,
        network=network,
        options=options,
    )


_Value: TypeAlias = str | int | bool


def _option(spec: contract.EngineSpec, name: str, value: _Value, here: Mapping[str, str]) -> _Value:
    """Return an option's value; a pinned file's name becomes its path on this machine."""
    if not isinstance(value, str):
        return value
    if value in here:
        return here[value]
    _refuse_path(spec, f"option {name}", value)
    return value


def _refuse_path(spec: contract.EngineSpec, what: str, value: str) -> None:
    """Raise ``UnplayableError`` for words that name a path, or are more than one line."""
    if "/" in value or "\\" in value or ".." in value:
        raise UnplayableError(
            f"{spec.name}: {what}: {value!r} names a path of the farm's; a worker takes pinned"
            " files alone"
        )
    if text.has_unseen(value):
        raise UnplayableError(f"{spec.name}: {what}: {value!r} is not one plain line")


def _spelled(command: tuple[str, ...], digests: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(digests.get(word, word) for word in command)
