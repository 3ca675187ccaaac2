"""Engines as their source: a recipe file, a git revision, and the archive made of both.

An archive is a gzipped tar of one commit, known by its SHA-256; the same commit gives the same
bytes. Archives and networks lie in a store, one file for each SHA-256, from which the gateway
serves them. Git is told nothing that a repository could run: no hooks, no filters, and no way of
fetching but HTTPS, SSH and files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import hashlib
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Annotated, Final

import pydantic

from orchestrator import contract
from orchestrator.common import bounds, errors, files, output
from orchestrator.contract import remote
from orchestrator.engines import builds

NO_REVISION: Final = "Needed a single revision"  # git's words, which do not say of which name
FETCH_SECONDS: Final = 600  # s: of a repository with one revision
PACK_BYTES: Final = 2 << 30  # of each file that git writes while it fetches
TREE_BYTES: Final = 1 << 30  # of a source tree
ARCHIVE_BYTES: Final = 128 << 20  # of a packed one, and of a file beside it (a network)
STORE_BYTES: Final = 4 << 30  # of all that is kept; beyond, what was used longest ago goes
_PIECE: Final = 1 << 20
_DIGITS: Final = 64  # of a SHA-256
_LEFT_SECONDS: Final = 86_400.0
_BENCH: Final = re.compile(r"(?im)^\s*bench\s*[:=]?\s*(\d[\d,_ ]*)\s*$")
_SUBMODULE: Final = "160000"  # the mode of one in `git ls-tree`


def _fork(pattern: str) -> str:
    """Return a pattern of repositories; raise ``ValueError`` where it is not one host's."""
    scheme, host, *path = pattern.replace("//", "/", 1).split("/")
    if scheme != "https:" or not host or "*" in host or not path or "" in path:
        raise ValueError("is no pattern of repositories, such as https://github.com/*/engine")
    return pattern


class Recipe(pydantic.BaseModel):
    """How an engine's revisions are built: a TOML file of its author's."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")

    name: str = pydantic.Field(default="", max_length=60)
    repository: str = ""
    make: remote.OneLine = pydantic.Field(default="", max_length=2_000)
    program: remote.Inside
    toolchain: tuple[remote.Tool, ...] = ()
    seconds: int = pydantic.Field(default=600, ge=1, le=7_200)
    memory_mb: int = pydantic.Field(default=2_048, ge=16, le=1 << 20)
    bench: str = "bench"
    files: dict[remote.Inside, str] = {}
    binaries: dict[str, str] = {}  # by class of processor; {revision} stands for the revision
    options: dict[str, str | int | bool] = {}
    protocol: str = pydantic.Field(default="uci", pattern="^(uci|xboard)$")
    nps: int = pydantic.Field(default=0, ge=0)  # of the machine that clocks are meant for
    # Of authors who submit tests: https://HOST/*/NAME, a star for one part of the path.
    forks: tuple[Annotated[str, pydantic.AfterValidator(_fork)], ...] = ()

    def allows(self, repository: str) -> bool:
        """Say whether a repository is one of the forks that revisions may come from."""
        parts = repository.split("/")
        return any(
            len(parts) == len(fork.split("/"))
            and all(
                wanted in ("*", part) for wanted, part in zip(fork.split("/"), parts, strict=True)
            )
            for fork in self.forks
        )

    @classmethod
    def read(cls, path: pathlib.Path) -> Recipe:
        """Read a recipe file; raise ``UsageError``."""
        try:
            recipe = cls.model_validate(bounds.toml(path))
        except pydantic.ValidationError as error:
            key, what = contract.first_wrong(error)
            allowed = ", ".join(cls.model_fields)
            raise errors.UsageError(f"--build {path}: {key}: {what}; allowed: {allowed}") from None
        except bounds.DAMAGED as error:
            why = errors.reason(error)
            raise errors.UsageError(f"--build {path}: cannot be read: {why}") from error
        strange = recipe.binaries.keys() - builds.CLASSES.keys() - {builds.GPU}
        if strange or bool(recipe.make) == bool(recipe.binaries):
            wrong = min(strange, default="both" if recipe.make else "neither")
            raise errors.UsageError(
                f"--build {path}: found {wrong}; allowed: either make, or binaries by"
                f" {' '.join(builds.CLASSES)}"
            )
        home = path.absolute().parent
        placed = {name: str(home / file) for name, file in recipe.files.items()}
        return recipe.model_copy(
            update={
                "files": placed,
                "binaries": {kind: str(home / file) for kind, file in recipe.binaries.items()},
                "repository": _at(recipe.repository, home),
            }
        )


def _at(repository: str, home: pathlib.Path) -> str:
    """Return a repository's address; a path is taken from where the recipe lies."""
    remote_one = "://" in repository or re.match(r"[\w.-]+@[\w.-]+:", repository)
    return repository if remote_one or not repository else str(home / repository)


@dataclasses.dataclass(frozen=True)
class Revision:
    """A revision that was looked up: its commit, its message's bench, its packed source."""

    repository: str
    name: str
    commit: str
    bench: int | None
    archive: str
    submodules: tuple[str, ...] = ()


class Store:
    """A directory of files by their SHA-256, bounded in bytes."""

    def __init__(self, directory: pathlib.Path, most_bytes: int = STORE_BYTES) -> None:
        self.directory, self._most_bytes = directory, most_bytes

    def path(self, digest: str) -> pathlib.Path:
        """Return where a file lies, or would."""
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise ValueError(f"{digest!r} is no SHA-256")
        return self.directory / digest

    def has(self, digest: str) -> bool:
        """Say whether a file is there; it was used then."""
        return self.size(digest) is not None

    def size(self, digest: str) -> int | None:
        """Return how many bytes a file has, ``None`` where there is none; it was used then."""
        path = self.path(digest)
        try:
            size = path.stat().st_size
        except OSError:
            return None
        with contextlib.suppress(OSError):  # who serves it may not be allowed to write
            os.utime(path)
        return size

    @contextlib.contextmanager
    def held(self, digests: Iterable[str]) -> Iterator[None]:
        """Let nobody delete these files for want of room meanwhile."""
        with contextlib.ExitStack() as holds:
            for digest in digests:
                holds.enter_context(files.held(self.path(digest)))
            yield

    def add(self, pieces: Iterator[bytes], most_bytes: int = ARCHIVE_BYTES) -> str:
        """Write a file; return its SHA-256. Raise ``ValueError`` for one that is too large."""
        self.directory.mkdir(parents=True, exist_ok=True)
        digest, size = hashlib.sha256(), 0
        with tempfile.NamedTemporaryFile(dir=self.directory, prefix=".new-") as file:
            for piece in pieces:
                size += len(piece)
                if size > most_bytes:
                    raise ValueError(f"has more than {most_bytes >> 20} MiB")
                digest.update(piece)
                file.write(piece)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            target = self.directory / digest.hexdigest()
            if not self.has(digest.hexdigest()):
                os.link(file.name, target)
        self._bound(digest.hexdigest())
        return digest.hexdigest()

    def _bound(self, kept: str) -> None:
        """Delete what was used longest ago and nobody holds, until the rest has room."""
        stored = []
        for path in self.directory.iterdir():
            with contextlib.suppress(OSError):  # another process bounds it, too
                seen = path.stat()
                if path.name.startswith(".new-") and time.time() - seen.st_mtime > _LEFT_SECONDS:
                    path.unlink()  # of a process that was killed
                elif len(path.name) == _DIGITS:
                    stored.append((seen, path))
        total = sum(seen.st_size for seen, _ in stored)
        for seen, path in sorted(stored, key=lambda entry: entry[0].st_mtime_ns):
            if total <= self._most_bytes:
                return
            if path.name != kept and not files.is_held(path):
                path.unlink(missing_ok=True)
                total -= seen.st_size


def pieces(path: pathlib.Path) -> Iterator[bytes]:
    """Yield a file's bytes."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


def look_up(store: Store, repository: str, name: str) -> Revision:
    """Fetch one revision and put its source into the store; raise ``UsageError``, ``HostError``.

    ``name`` is what git calls a revision: a branch, a tag, a commit.
    """
    if not name or name.startswith("-") or not name.isprintable() or ".." in name or ":" in name:
        raise errors.UsageError(f"revision: found {name!r}; allowed: a branch, a tag or a commit")
    if not repository or repository.startswith("-") or not repository.isprintable():
        raise errors.UsageError(
            f"repository: found {repository!r}; allowed: an address (https://…, ssh://…), or a path"
            " of a repository or bundle"
        )
    with files.scratch("source") as scratch:
        git = _Git(scratch, repository)
        commit = git.commit(name)
        message = git.text("log", "-1", "--no-show-signature", "--format=%B", commit)
        tree = git.text("ls-tree", "-r", "-z", commit)
        try:
            archive = store.add(_packed(git.archive(commit)))
        except ValueError as error:
            raise errors.UsageError(f"{repository} {name}: its source {error}") from None
    linked = tuple(
        line.partition("\t")[2] for line in tree.split("\0") if line.startswith(_SUBMODULE)
    )
    return Revision(repository, name, commit, stated_bench(message), archive, linked)


def stated_bench(message: str) -> int | None:
    """Return the nodes of a commit message's last line ``Bench: 1234567``."""
    stated = _BENCH.findall(message)
    return int(re.sub(r"\D", "", stated[-1])) if stated else None


class _Git:
    """Git on one repository, with nothing of the repository's that could run."""

    def __init__(self, scratch: pathlib.Path, repository: str) -> None:
        self._scratch, self._repository = scratch, repository
        if shutil.which("git") is None:
            raise errors.HostError("git is not installed on this machine")
        path = pathlib.Path(repository)
        self._local = "://" not in repository and path.is_dir()
        self._bundle = not self._local and "://" not in repository and path.is_file()
        # Git's commands run in a repository of our own: another one's configuration names filters.
        self._home = scratch / "repository.git"
        self._environment = {
            **{name: text for name, text in os.environ.items() if not name.startswith("GIT_")},
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "https:ssh:file",
            "GIT_LFS_SKIP_SMUDGE": "1",
            "LC_ALL": "C",
        }

    def commit(self, name: str) -> str:
        """Return the commit of a revision, fetched."""
        source, wanted = self._repository, name
        if self._local:  # it is named there, by whatever git takes, and fetched as from elsewhere
            local = pathlib.Path(source).absolute()
            source, wanted = local.as_uri(), self._commit(name, local)
        hidden = self._scratch / "template"
        hidden.mkdir()
        self._run("init", "--quiet", "--bare", f"--template={hidden}", str(self._home), at=None)
        if self._bundle:
            self._run("fetch", "--quiet", source, "+refs/*:refs/*", at=self._home)
            return self._commit(name, self._home)
        self._run("fetch", "--quiet", "--depth=1", "--no-tags", source, wanted, at=self._home)
        return self._commit("FETCH_HEAD", self._home)

    def _commit(self, name: str, home: pathlib.Path) -> str:
        arguments = ("rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}")
        try:
            return self._run(*arguments, at=home).decode(errors="replace").strip()
        except errors.UsageError as error:
            if NO_REVISION not in str(error):
                raise
            raise errors.UsageError(
                f"{self._repository}: has no branch, tag or commit {name!r}"
            ) from None

    def text(self, *words: str) -> str:
        """Return what a command of git prints."""
        return self._run(*words, at=self._home).decode(errors="replace").strip()

    def archive(self, commit: str) -> Iterator[bytes]:
        """Yield a commit's tree as a tar."""
        size = 0
        with subprocess.Popen(
            self._command(self._home, "archive", "--format=tar", commit),
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as running:
            assert running.stdout is not None
            try:
                while piece := running.stdout.read(_PIECE):
                    size += len(piece)
                    if size > TREE_BYTES:
                        raise ValueError(f"has more than {TREE_BYTES >> 20} MiB")
                    yield piece
            finally:
                running.kill()
            if running.wait() not in (0, -9) or not size:
                raise ValueError("cannot be packed by git archive")

    @staticmethod
    def _command(home: pathlib.Path, *words: str) -> list[str]:
        # Of version 2 any commit can be asked for by its name, whatever the user has set.
        safe = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.version=2")
        settings = [word for setting in safe for word in ("-c", setting)]
        return ["git", *settings, "-C", str(home), *words]

    def _run(self, *words: str, at: pathlib.Path | None) -> bytes:
        command = ["git", *words] if at is None else self._command(at, *words)
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=FETCH_SECONDS,
                check=False,
                preexec_fn=_bounded,
            )
        except subprocess.TimeoutExpired:
            why = f"git {words[0]} took more than {FETCH_SECONDS} s"
        else:
            if done.returncode == 0:
                return done.stdout
            why = done.stderr.decode(errors="replace").strip()[-500:] or "it has no such revision"
        raise errors.UsageError(f"{self._repository}: {output.plain(why)}")


def _bounded() -> None:
    """Bound each file that git writes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (PACK_BYTES, PACK_BYTES))


def _packed(tar: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a tar packed by gzip, without a time: the same source, the same bytes."""
    kept = _Pieces()
    with gzip.GzipFile(fileobj=kept, mode="wb", compresslevel=6, mtime=0, filename="") as file:
        for piece in tar:
            file.write(piece)
            yield kept.taken()
    yield kept.taken()


class _Pieces:
    """A file that is written to, and whose content is taken piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes) -> int:
        """Keep a piece."""
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """Do nothing: nothing waits."""

    def taken(self) -> bytes:
        """Return what was written since."""
        whole, self._pieces = b"".join(self._pieces), []
        return whole


def describe(
    store: Store, recipe: Recipe, name: str, bench: int | None
) -> tuple[remote.SourceBuild, Revision]:
    """Put a revision and what its recipe names into the store; return how workers build it.

    ``bench`` is what it must have; else what its commit's message states, or 0: any. Raise
    ``UsageError``, ``HostError``.
    """
    revision = Revision("", name, "", None, "")
    if not recipe.binaries:
        repository, _, part = name.rpartition("#")
        revision = look_up(store, repository or recipe.repository, part)
    elif "/" in name or ".." in name:
        raise errors.UsageError(f"revision: found {name!r}; allowed: the name of a folder")
    added = {where: _added(store, pathlib.Path(path)) for where, path in recipe.files.items()}
    binaries = {
        kind: _added(store, pathlib.Path(path.replace("{revision}", name)))
        for kind, path in recipe.binaries.items()
    }
    expected = revision.bench if bench is None else bench
    return remote.SourceBuild(
        name=f"{recipe.name or pathlib.PurePosixPath(recipe.program).name} {revision.name}"[:200],
        commit=revision.commit,
        archive=revision.archive,
        files=added,
        binaries=binaries,
        make=recipe.make,
        program=recipe.program,
        toolchain=recipe.toolchain,
        seconds=recipe.seconds,
        memory_mb=recipe.memory_mb,
        bench_arguments=tuple(recipe.bench.split()),
        bench=expected or 0,
    ), revision


def _added(store: Store, path: pathlib.Path) -> str:
    """Put a file into the store; raise ``UsageError``."""
    if not files.is_file(path):
        raise errors.UsageError(f"{path}: no such file")
    try:
        return store.add(pieces(path))
    except (OSError, ValueError) as error:
        raise errors.UsageError(f"{path}: {errors.reason(error)}") from error
