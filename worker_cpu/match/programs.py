"""Where the programs of ``-engine cmd= dir=`` lie on this machine.

What is not there is wrong usage, before the first game (decision 007): an engine that is
there and fails later loses its games instead.
"""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
from collections.abc import Iterator
from typing import Final

from orchestrator import contract
from orchestrator.common import files
from worker_cpu.engines import local
from worker_cpu.match import cli_values

GAMES: Final = "/usr/games:/usr/local/games"  # where Debian has engines, in few accounts' PATH
_WEIGHTS: Final = ("eval", "nnue", "net", "weight")  # in names of options: files that play along
_LOG: Final = "log"  # in a word: a file that the engine itself writes


def directory(text: str, where: str) -> pathlib.Path:
    """Return the directory of ``dir=``, absolute; raise ``UsageError`` if there is none."""
    path = _path(text).absolute()
    if not files.is_directory(path):
        raise cli_values.refuse(where, f"dir={text}, but no directory {path}", "one that exists")
    return path


def command(
    text: str, home: pathlib.Path, where: str, *, key: str = "", home_key: str = ""
) -> list[str]:
    """Return a command's program and its arguments; raise ``UsageError`` if it is not there.

    A command with blanks that is no file is a program and its arguments. ``key`` and ``home_key``
    are the words that command and directory were given by, for the error.
    """
    places = f"{home_key}, PATH" if home_key else "PATH"
    paths = f"{home_key}, then from here" if home_key else "here"
    allowed = (
        f"a program that can be executed: a name is looked for in {places} and /usr/games; a path"
        f" from {paths}"
    )
    parts = [text]
    if _program(text, home) is None:
        parts = shell_words(text, where) or parts
    program = _program(parts[0], home)
    if program is None:
        named = f"no file {home / _path(parts[0])}"
        missing = named if "/" in parts[0] else f"no {parts[0]!r} in PATH, and {named}"
        raise cli_values.refuse(where, f"{key}{text}, but {missing}", allowed)
    if not os.access(program, os.X_OK):
        unable = f"{key}{text}, but {program} is not executable"
        raise cli_values.refuse(where, unable, allowed)
    if unable := local.obstacle(program):
        raise cli_values.refuse(where, f"{key}{text}, but {unable}", allowed)
    return [program, *parts[1:]]


def shell_words(text: str, where: str) -> list[str]:
    """Cut text as a shell would; raise ``UsageError`` for a quote that stays open."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise cli_values.refuse(
            where, f"{text!r} ({error})", "words as a shell cuts them"
        ) from None


def with_checksums(spec: contract.EngineSpec, known: files.Checksums) -> contract.EngineSpec:
    """Return an engine with the SHA-256 of its program and of its files that its words name.

    These are arguments that name a file, and options with weights; logs are left out. An engine
    on another machine has none.
    """
    if spec.box:
        return spec
    home = pathlib.Path(spec.directory or ".")
    digests = {name: known.of(home / name) for name in dict.fromkeys(_files(spec))}
    there = {name: digest for name, digest in digests.items() if digest}
    return spec.model_copy(update={"checksums": there})


def is_log(word: str) -> bool:
    """Say whether an argument or an option names what the engine itself writes."""
    return _LOG in word.lower()


def _files(spec: contract.EngineSpec) -> Iterator[str]:
    """Yield what may be a file that decides how an engine plays, its program first."""
    yield spec.command[0]
    for word in spec.command[1:]:
        if not is_log(word):
            yield from filter(None, word.split("="))
    for name, value in spec.options.items():
        if any(part in name.lower() for part in _WEIGHTS) and value:
            yield str(value)


def _program(text: str, home: pathlib.Path) -> str | None:
    """Return the path of the file that is meant, executable or not."""
    path = _path(text)
    if "/" not in text and home != pathlib.Path.cwd() and files.is_file(home / path):
        return str(home / path)  # dir= was written for it
    if "/" not in text and (installed := shutil.which(text) or shutil.which(text, path=GAMES)):
        return str(pathlib.Path(installed).absolute())
    places = (home / path, path.absolute())
    return next((str(candidate) for candidate in places if files.is_file(candidate)), None)


def _path(text: str) -> pathlib.Path:
    try:
        return pathlib.Path(text).expanduser()
    except RuntimeError:  # ~NAME of nobody here
        return pathlib.Path(text)
