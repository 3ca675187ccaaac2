"""What an engine may see of its host's files: which paths are granted, which are covered.

Invariants: an engine is granted its own directory, its program, the files that its roster entry
names and the event's tables, never a directory that is the system's or everybody's; nothing of
the farm's is granted with them, wherever it lies: data, sockets, journals, season files, books
(``private``); where a hidden path lies within a granted one, the inner one wins; all that is
bound is read-only. Others write into these folders, too: a file that goes away while they are
looked through, or before the sandbox is made, was none of the engine's and ends no start.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import stat
import sys
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from orchestrator import contract
from orchestrator.common import errors

SCRATCH = "/scratch"
WIDE = ("/etc", "/home", "/media", "/mnt", "/opt", "/root", "/srv", "/tmp", "/usr", "/var")  # noqa: S108 - is refused
KERNEL = ("/dev", "/proc", "/run", "/sys", SCRATCH)
PROGRAMS = ("orchestrator", "worker_cpu")  # the farm's own engine is made of these
BUNDLED: Final = pathlib.Path(__file__).parents[2] / "orchestrator" / "seasons"

# What the farm keeps in its data directory. Engines may lie elsewhere in it.
FARM_FOLDERS: Final = ("archive", "backups", "feeds", "halls", "logs", "redis")
FARM_FILES: Final = frozenset({"journal.jsonl", "serve.lock", "redis.sock", "users.acl"})
SECRETS: Final = ("FARM_REDIS_PASSWORD_FILE", "FARM_REDIS_URL_FILE", "FARM_BOXES")
BOOK: Final = re.compile(r".*\.(pgn|epd)(\.(gz|bz2|xz|zst))?", re.IGNORECASE | re.DOTALL)
# The other names of files that the farm writes (``files.write``, ``match.journal``): soon gone.
PASSING: Final = re.compile(r".*(\.tmp|\.jsonl\.last)", re.DOTALL)
SEASON_TABLE: Final = re.compile(
    rb"^\s*(\[\[\s*(event|engine)s?\b|\[+\s*(roster|season|books?)\b)", re.MULTILINE
)
TOML_BYTES: Final = 1 << 20  # of a .toml file are read to see whether it is a season's
# What lies beside a program that shares its folder with the farm's files, and is the program's.
COMPANION: Final = re.compile(
    r".*(\.so(\.[0-9.]+)?|\.nnue?|\.pb(\.gz)?|\.onnx|\.pt|\.weights|\.bin|\.dat|\.ini|\.cfg)",
    re.IGNORECASE | re.DOTALL,
)
ENTRIES: Final = 50_000  # files and folders that are looked at below a granted folder
DEPTH: Final = 32


def farm_places(
    environment: Mapping[str, str], data: pathlib.Path, redis_url: str
) -> tuple[str, ...]:
    """Return what of this host is the farm's and no engine's, whatever an engine is granted."""
    places = [data / name for name in FARM_FOLDERS]
    places += [pathlib.Path(environment[name]) for name in SECRETS if environment.get(name)]
    if credentials := environment.get("CREDENTIALS_DIRECTORY"):
        places.append(pathlib.Path(credentials))
    redis = urllib.parse.urlsplit(redis_url)
    if redis.scheme == "unix" and redis.path:
        places.append(pathlib.Path(redis.path))
    return tuple(dict.fromkeys(os.path.abspath(path) for path in (*places, BUNDLED)))  # noqa: PTH100 - links stay


def binds(own: Sequence[str], hidden: Sequence[str]) -> Iterator[str]:
    """Yield binds of ``own`` and covers of ``hidden``, outer paths first, so the inner win."""
    places = dict.fromkeys(hidden, False) | dict.fromkeys(own, True)
    seen = {"/usr": True, sys.base_prefix: True}
    covers = []
    for path in sorted(places, key=lambda path: path.count("/")):
        parents = (path, *map(str, pathlib.PurePath(path).parents))
        visible = next((seen[parent] for parent in parents if parent in seen), False)
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
    yield from ("--ro-bind-try", path, path)


def within(path: str, folder: str) -> bool:
    """Say whether a path is a place or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def leads_into(path: str, folder: str) -> bool:
    """Say whether a path is a place or lies in it, by whatever links either of them is named."""
    return within(path, folder) or within(os.path.realpath(path), os.path.realpath(folder))


@dataclasses.dataclass(frozen=True)
class _Hidden:
    """What no engine may see: by its path, and by what a link or a bind mount shows of it.

    A directory is known by its number, however it is reached. A file is not: two engines may
    have one network, of which each has a hard link.
    """

    paths: frozenset[str]
    directories: frozenset[tuple[int, int]]

    @classmethod
    def of(cls, farm: Iterable[str], foreign: Iterable[str]) -> _Hidden:
        """Hide the ``farm``'s places, and ``foreign`` ones of the opponent by their path alone."""
        places = list(farm)
        numbers = set()
        for place in places:
            with contextlib.suppress(OSError):
                seen = pathlib.Path(place).stat()
                if stat.S_ISDIR(seen.st_mode):
                    numbers.add((seen.st_dev, seen.st_ino))
        paths = {*places, *map(os.path.realpath, places), *foreign}
        return cls(frozenset(paths), frozenset(numbers))

    def has(self, path: str) -> bool:
        """Say whether a path in a granted folder must not be seen."""
        if path in self.paths:
            return True
        with contextlib.suppress(OSError):
            seen = os.lstat(path)
            return stat.S_ISDIR(seen.st_mode) and (seen.st_dev, seen.st_ino) in self.directories
        return False


@dataclasses.dataclass(frozen=True)
class _Places:
    """What belongs to an engine by its entry: folders and files that are named, its program.

    ``homes`` are folders that nobody named: the program lies there, and they seem to be its own.
    """

    folders: tuple[str, ...]
    files: tuple[str, ...]
    homes: tuple[str, ...]

    @property
    def all(self) -> frozenset[str]:
        return frozenset((*self.folders, *self.files, *self.homes))


def grants(
    spec: contract.EngineSpec,
    other: contract.EngineSpec,
    search: str,
    hidden: Sequence[str] = (),
) -> list[str]:
    """Return what an engine may read: its directory, its program, the files it is told of.

    A folder that holds something of the farm's (``private``, or one of ``hidden``) or of its
    opponent's is granted without it. Raise ``HostError`` for a folder with too much in it to
    be looked through.
    """
    own = _places(spec, other, search)
    foreign = _places(other, spec, search).all - own.all
    covered = _Hidden.of(hidden, foreign)
    paths = [path for folder in own.folders for path in _Folder(own.all, covered).open(folder)]
    paths += own.files
    for home in own.homes:
        paths += _own_of(home, own.all, covered)
    program = _program(spec, search)
    if program and pathlib.Path(os.path.realpath(program.parent)).is_relative_to(sys.prefix):
        paths += _farm()
        if not program.is_relative_to(sys.prefix):  # by a link, such as /opt/farm/venv
            paths.append(str(program.parent.parent))
    return _there(paths)


def claims(spec: contract.EngineSpec, other: contract.EngineSpec, search: str) -> list[str]:
    """Return the places of an engine that its opponent must not see."""
    return [path for path in _there(_places(spec, other, search).all) if not of_system(path)]


def _there(paths: Iterable[str]) -> list[str]:
    return [path for path in dict.fromkeys(paths) if pathlib.Path(path).exists()]


def _places(spec: contract.EngineSpec, other: contract.EngineSpec, search: str) -> _Places:
    named = _named(spec)
    if spec.directory:
        named.insert(0, os.path.normpath(spec.directory))
    folders = [path for path in named if pathlib.Path(path).is_dir()]
    files = [path for path in named if path not in folders]
    homes = []
    program, against = _program(spec, search), _program(other, search)
    for path in dict.fromkeys(
        () if program is None else (program, pathlib.Path(os.path.realpath(program)))
    ):
        files.append(str(path))
        shared = against is not None and against != program and against.parent == path.parent
        if not (spec.directory or shared or _wide(path.parent)):
            homes.append(str(path.parent))
    return _Places(tuple(folders), tuple(files), tuple(homes))


def _own_of(home: str, named: frozenset[str], hidden: _Hidden) -> list[str]:
    """Return what of a program's folder is its own: all of it, if nothing else is in it.

    Where something of the farm's lies there too, the folder is a person's and not the
    program's: then only libraries, networks and the like.
    """
    try:
        openable = _Folder(named, hidden).open(home)
    except errors.HostError:  # too much in it to be one engine's
        openable = []
    if openable == [home]:
        return openable
    return [
        str(path)
        for path in sorted(pathlib.Path(home).iterdir())
        if COMPANION.fullmatch(path.name) and path.is_file() and not path.is_symlink()
        if not hidden.has(str(path))
    ]


class _Folder:
    """A look through a folder that an engine is granted, for what is not the engine's."""

    def __init__(self, named: frozenset[str], hidden: _Hidden) -> None:
        """Take ``named`` paths for the engine's own, whatever they look like."""
        self._named, self._hidden = named, hidden
        self._left = ENTRIES

    def open(self, folder: str) -> list[str]:
        """Return ``folder`` where all in it may be seen, else all in it that may be.

        What is granted path by path does not show files that are made there later.
        """
        if not pathlib.Path(folder).is_dir():
            return [folder]
        visible, whole = self._look(folder, folder, DEPTH)
        return [folder] if whole else visible

    def _look(self, folder: str, top: str, depth: int) -> tuple[list[str], bool]:
        visible: list[str] = []
        whole = True
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except FileNotFoundError:
            return [], True
        except OSError:  # nor could the engine read it
            return [], False
        if not depth or any(entry.name in FARM_FILES for entry in entries):
            return [], False
        for entry in entries:
            self._left -= 1
            if self._left < 0:
                raise errors.HostError(
                    f"{top} holds more than {ENTRIES} files: it is not looked through for what"
                    " engines must not see; give the engine a `directory` of its own"
                )
            with contextlib.suppress(FileNotFoundError):  # it has gone since it was listed
                inside, all_of_it = self._entry(entry, top, depth)
                visible += inside
                whole = whole and all_of_it
        return visible, whole

    def _entry(self, entry: os.DirEntry[str], top: str, depth: int) -> tuple[list[str], bool]:
        path = entry.path
        if self._hidden.has(path) or (path not in self._named and private(entry)):
            return [], False
        if entry.is_symlink():
            # A bind shows what the link leads to, so only what may be seen anyway.
            target = os.path.realpath(path)
            visible = within(target, top) and not self._hides(target, top)
            return ([path] if visible and pathlib.Path(target).is_file() else []), True
        if entry.is_dir(follow_symlinks=False):
            inside, whole = self._look(path, top, depth - 1)
            return ([path] if whole else inside), whole
        passing = path not in self._named and PASSING.fullmatch(entry.name)
        return ([path] if _for_engines(entry) and not passing else []), True

    def _hides(self, target: str, top: str) -> bool:
        """Say whether what a link leads to, within the folder, may not be seen itself."""
        parts = [target, *(str(parent) for parent in pathlib.PurePath(target).parents)]
        below = [part for part in parts if within(part, top) and part != top]
        return any(
            self._hidden.has(part) or _private_name(pathlib.PurePath(part).name) for part in below
        ) or (target.lower().endswith(".toml") and _of_season(target))


def private(entry: os.DirEntry[str]) -> bool:
    """Say whether something in a granted folder is the farm's or a person's, not an engine's.

    Sockets, pipes and devices; names with a dot in front; season files, rosters and books.
    """
    mode = entry.stat(follow_symlinks=False).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        return True
    if _private_name(entry.name):
        return True
    return entry.name.lower().endswith(".toml") and stat.S_ISREG(mode) and _of_season(entry.path)


def _private_name(name: str) -> bool:
    return name.startswith(".") or name in FARM_FILES or bool(BOOK.fullmatch(name))


def _of_season(path: str) -> bool:
    """Say whether a TOML file may be a season's or a roster; one that cannot be read may."""
    try:
        with pathlib.Path(path).open("rb") as file:
            return bool(SEASON_TABLE.search(file.read(TOML_BYTES)))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _for_engines(entry: os.DirEntry[str]) -> bool:
    """Say whether the engine's user could read a file: root's engines are another user."""
    return os.geteuid() != 0 or bool(entry.stat(follow_symlinks=False).st_mode & 0o4)


def _program(spec: contract.EngineSpec, search: str) -> pathlib.Path | None:
    name = spec.command[0]
    if "/" in name:
        return pathlib.Path(os.path.normpath(pathlib.Path(spec.directory or "/") / name))
    program = shutil.which(name, path=search)
    return pathlib.Path(program) if program else None


def _named(spec: contract.EngineSpec) -> list[str]:
    """Return the absolute paths that the roster's entry names in commands and options."""
    values = [*spec.command[1:], *map(str, spec.options.values()), *spec.init]
    values += [str(value) for own in spec.settings.values() for value in own.values()]
    values += [spec.network or "", *spec.checksums]
    parts = [word for value in values for word in value.replace("=", ":").split(":")]
    named = {os.path.normpath(word) for word in parts if word.startswith("/")}
    return sorted(path for path in named if not _of_all(path))


def _of_all(path: str) -> bool:
    """Say whether a path is the system's, or holds everybody's things: nobody's own."""
    return path in ("/", *WIDE) or any(within(path, root) for root in KERNEL)


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
    return any(within(path, root) for root in needed) or within(interpreter(), path)


def tables(limits: contract.Limits) -> Iterator[str]:
    """Yield the directories of the event's tablebases."""
    paths = (limits.syzygy_path, limits.nalimov_path, limits.gaviota_path, limits.scorpio_path)
    for path in paths:
        yield from filter(None, (path or "").split(os.pathsep))


def interpreter() -> str:
    """Return this Python's program, which runs the sandbox's first process."""
    return os.path.realpath(sys.executable)
