"""Engines built from source on this machine: in a sandbox, within bounds, signed by their bench.

A build sees the system's programs and libraries, its own source and nothing else; no network. It
is ended after its seconds, beyond its memory, and when its output does not end. What it leaves
is one program, which is then run once in another sandbox for its bench: nodes of a fixed search.
A program whose nodes are not the expected ones is thrown away. Invariants:

* no source is built without bubblewrap;
* a program in the cache has the SHA-256 that it had when it was built, or is built again;
* failures are kept, too, so that a source that cannot be built is tried once a day.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.common import errors, files, output
from orchestrator.contract import remote
from orchestrator.engines import builds
from worker_cpu.engines import local, mounts, sandbox, syscalls

INSIDE: Final = pathlib.Path(__file__).with_name("build_inside.py")
TREE_MB: Final = 2_048  # of a source tree with all that its build writes; it lies in memory
PROGRAM_BYTES: Final = 512 << 20  # of a program; networks are within it
PROCESSES: Final = 512  # and threads, of a build at once
BENCH_SECONDS: Final = 300.0
OUTPUT_BYTES: Final = 64 << 20  # read of a build before it is ended: its output has no end
HEAD_BYTES: Final = 2_048  # kept of an output's beginning; the rest of a log is its end
LOOK_SECONDS: Final = 0.2  # s: between two looks at a build's memory
CACHE_BYTES: Final = 4 << 30
FAILED_SECONDS: Final = 86_400.0  # s: a failure is believed so long
FIRST_USER: Final = 63_000  # of the numbers given to nobody: a build's, when root starts it
USERS: Final = 900
# A child that is the first to be ended for lack of memory, and gives way to what else runs.
_HUMBLE: Final = (
    "import os,sys;os.nice(5);open('/proc/self/oom_score_adj','w').write('1000');"
    "os.execv(sys.argv[1],sys.argv[1:])"
)
_COMPILERS: Final = ("clang", "clang++", "gcc", "g++", "rustc", "cargo", "go", "cc")


@dataclasses.dataclass(frozen=True)
class Built:
    """What became of a build: its program with the SHA-256, or ``why`` there is none."""

    build: str
    program: str
    sha256: str
    bench: int | None
    seconds: float
    compiler: str
    why: str
    log: str

    def report(self, match: str, host: str) -> remote.BuildTold:
        """Return what the gateway is told."""
        return remote.BuildTold(
            match=match,
            build=self.build,
            host=host,
            machine=os.uname().machine,
            compiler=self.compiler,
            program=self.sha256,
            bench=self.bench,
            seconds=round(self.seconds, 3),
            why=self.why[:500],
            log=_cut(self.log, remote.LOG_BYTES // 2),
        )


class FailedError(Exception):
    """A build has failed; the message says how, ``log`` what it printed."""

    def __init__(self, why: str, log: str = "", bench: int | None = None) -> None:
        super().__init__(why)
        self.log, self.bench = log, bench


class Cache:
    """Programs that were built, by their builds; bounded in bytes."""

    def __init__(self, directory: pathlib.Path, most_bytes: int = CACHE_BYTES) -> None:
        self.directory, self._most_bytes = directory, most_bytes
        self._checksums = files.Checksums()

    def get(self, build: str) -> Built | None:
        """Return what became of a build that is used now; a program that has changed is none."""
        built = self.look(build)
        if built is not None and not built.why:
            with contextlib.suppress(OSError):
                os.utime(self.directory / build / "built.json")
        return built

    def look(self, build: str) -> Built | None:
        """Return what ``get`` does of a build that is not used for that."""
        report = self.directory / build / "built.json"
        try:
            built = Built(**json.loads(report.read_bytes()))
            age = time.time() - report.stat().st_mtime
        except (OSError, ValueError, TypeError):
            return None
        if built.why:
            return built if 0 <= age < FAILED_SECONDS else None
        if self._checksums.of(pathlib.Path(built.program)) != built.sha256:
            return None
        return built

    def all(self) -> list[Built]:
        """Return all that is known, failures included, those used last at the end."""
        used = []
        for report in self.directory.glob("*/built.json"):
            with contextlib.suppress(OSError):  # another process bounds it, too
                used.append((report.stat().st_mtime_ns, report.parent.name))
        return [built for _, name in sorted(used) if (built := self.look(name)) is not None]

    def held(self, builds: Iterable[str]) -> contextlib.ExitStack:
        """Let nobody delete the programs of these builds for want of room, until it is closed."""
        holds = contextlib.ExitStack()
        for build in builds:
            holds.enter_context(files.held(self.directory / build))
        return holds

    def put(self, built: Built, program: pathlib.Path | None) -> Built:
        """Keep what became of a build, its program moved here; others go for it if they must."""
        folder = self.directory / built.build
        folder.mkdir(parents=True, exist_ok=True)
        if program is not None:
            here = folder / program.name
            program.replace(here)
            built = dataclasses.replace(built, program=str(here.absolute()))
        files.write(folder / "built.json", json.dumps(dataclasses.asdict(built)).encode())
        self._bound(built.build)
        return built

    def _bound(self, kept: str) -> None:
        kept_builds = []
        for report in self.directory.glob("*/built.json"):
            with contextlib.suppress(OSError):
                size = sum(file.stat().st_size for file in report.parent.iterdir())
                kept_builds.append((report.stat().st_mtime_ns, size, report.parent))
        total = sum(size for _, size, _ in kept_builds)
        for _, size, folder in sorted(kept_builds):
            if total <= self._most_bytes:
                return
            if folder.name != kept and not files.is_held(folder):
                shutil.rmtree(folder, ignore_errors=True)
                total -= size

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let one process build at a time."""
        self.directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            for left in self.directory.glob(".new-*"):  # of a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            yield
        finally:
            os.close(handle)


def make(
    source: remote.SourceBuild,
    there: Mapping[str, pathlib.Path],
    cache: Cache,
    toolchains: Sequence[str] = (),
) -> Built:
    """Build an engine, or return what became of it before; raise ``HostError`` without a sandbox.

    ``there`` are its files by their SHA-256, ``toolchains`` directories outside of the system
    whose ``bin`` it may use. Where it has no bench of its own (0), any will do.
    """
    with cache.locked():
        earlier = cache.get(source.id)
        if earlier is not None:
            return earlier
        begun = time.monotonic()
        compiler = "" if source.binaries else _compiler(source.toolchain, toolchains)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=cache.directory) as scratch:
            program = pathlib.Path(scratch) / pathlib.PurePosixPath(source.program).name
            try:
                log = _produce(source, there, program, toolchains)
                bench = _signed(program, source, log)
            except FailedError as error:
                spent = time.monotonic() - begun
                failed = (error.bench, spent, compiler, str(error), error.log)
                return cache.put(Built(source.id, "", "", *failed), None)
            spent = time.monotonic() - begun
            sha256 = files.Checksums().of(program)
            return cache.put(Built(source.id, "", sha256, bench, spent, compiler, "", log), program)


def _produce(
    source: remote.SourceBuild,
    there: Mapping[str, pathlib.Path],
    program: pathlib.Path,
    toolchains: Sequence[str],
) -> str:
    """Write the program; return the build's log. Raise ``FailedError``."""
    if source.binaries:
        digest = binary(source)
        if not digest:
            kinds = ", ".join(source.binaries)
            raise FailedError(f"its binaries ({kinds}) are for other processors than this one")
        shutil.copyfile(there[digest], program)
        program.chmod(0o755)
        return ""
    path = _search(toolchains)
    if missing := [tool for tool in source.toolchain if shutil.which(tool, path=path) is None]:
        raise FailedError(f"this machine has no {', '.join(missing)}")
    order = {
        "what": "the build",
        "archive": str(there[source.archive]),
        "files": {name: str(there[digest]) for name, digest in source.files.items()},
        "argv": ["sh", "-c", source.make],
        "program": source.program,
        "most_bytes": PROGRAM_BYTES,
    }
    shown = [order["archive"], *order["files"].values(), *toolchains]  # type: ignore[attr-defined]
    with program.open("wb") as out:
        os.fchmod(out.fileno(), 0o755)
        return _confined(order, shown, source.seconds, source.memory_mb, path, out.fileno())


def _signed(program: pathlib.Path, source: remote.SourceBuild, log: str) -> int:
    """Run a program's bench in a sandbox; return its nodes.

    Raise ``FailedError`` where it cannot be run, or has others than it must.
    """
    order = {
        "what": "the bench",
        "archive": "",
        "argv": [str(program), *source.bench_arguments],
        "program": "",
    }
    try:
        said = _confined(order, [str(program)], BENCH_SECONDS, source.memory_mb, os.defpath, None)
    except FailedError as error:
        if why := _not_started(program, source.program, error.log):
            raise FailedError(why, log) from None
        raise
    bench = nodes(said)
    if bench is None:
        called = output.plain(shlex.join([source.program, *source.bench_arguments]))
        why = f"its bench ({called}) tells no nodes: it has to print a line such as `1460 nodes`"
        raise FailedError(why, said)
    if source.bench not in (0, bench):
        why = f"its bench has {bench} nodes, where {source.bench} are expected"
        raise FailedError(why, f"{log}\n{said}", bench)
    return bench


def _not_started(program: pathlib.Path, name: str, said: str) -> str:
    """Say what kept a program from being started in its sandbox; '' where it was started.

    It is named as in its source: the folder that it lies in is gone afterwards.
    """
    begin = f"{program}: [Errno "  # `build_inside` says so
    last = said.strip().rpartition("\n")[2]
    if not last.startswith(begin):
        return ""
    why = local.not_started(str(program), last.removeprefix(f"{program}: "), sandboxed=True)
    return output.plain(why.replace(str(program), name))


def binary(source: remote.SourceBuild) -> str:
    """Return the SHA-256 of the binary for this machine's processor, '' where there is none."""
    spec = contract.EngineSpec(
        id="b", name="b", command=("",), builds={kind: (kind,) for kind in source.binaries}
    )
    flags = builds.processor_flags(pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return source.binaries.get(builds.best(spec, flags).command[0], "")


def needed(source: remote.SourceBuild) -> tuple[str, ...]:
    """Return the SHA-256 of the files that a build needs here: of binaries one, where one fits."""
    return tuple(filter(None, [binary(source)])) if source.binaries else source.needed


def nodes(said: str) -> int | None:
    """Return the nodes that a bench tells, by the last line that tells any (OpenBench's way)."""
    for line in reversed(said.splitlines()):
        cleaned = re.sub(r"[^a-z0-9 ]+", " ", line.lower())
        cleaned = re.sub(r"(?<=\d) (?=\d{3}\b)", "", cleaned) if "," in line else cleaned
        behind = re.search(r"\bnodes +(?:searched +)?(\d+)\b", cleaned)
        before = re.search(r"\b(\d+) +nodes\b(?! +(?:per +)?s(?:ec(?:ond)?)?\b)", cleaned)
        # `info depth 9 nodes 77` and `4321 nodes 1000 nps` both have a number on either side.
        figure = (behind or before) if cleaned.startswith("info ") else (before or behind)
        if figure:
            return int(figure[1][:18])
    return None


# -- one sandbox -----------------------------------------------------------------------------


def _confined(
    order: dict[str, Any],
    shown: Sequence[str],
    seconds: float,
    memory_mb: int,
    path: str,
    out: int | None,
) -> str:
    """Run an order of ``build_inside`` in a sandbox; return its output. Raise ``FailedError``."""
    described = sandbox.describe()
    if described.kind != "bubblewrap":
        raise errors.HostError(
            "engines are built in a bubblewrap sandbox alone, and none works here:"
            f" {described.problem}"
        )
    report, report_end = os.pipe2(os.O_CLOEXEC)
    with contextlib.ExitStack() as opened:
        opened.callback(os.close, report)
        passed = [report_end, *([] if out is None else [out])]
        filtered = syscalls.program(os.uname().machine) if described.filtered else b""
        filter_fd = -1
        if filtered:
            filter_fd = opened.enter_context(sandbox.memory_file(filtered)).fileno()
            passed.append(filter_fd)
        instructions = {
            "files": {},
            **order,
            "report": report_end,
            "out": out,
            "user": FIRST_USER + os.getpid() % USERS if os.geteuid() == 0 else None,
            "env": _environment(path),
            "limits": {
                "CORE": 0,
                "RTPRIO": 0,
                "NPROC": PROCESSES,
                "FSIZE": PROGRAM_BYTES,
                "DATA": memory_mb << 20,
                "CPU": max(1, int(seconds)) * PROCESSES,
            },
        }
        confinement = sandbox.Confinement("bubblewrap", scratch_mb=TREE_MB)
        command = [
            *(sys.executable, "-I", "-S", "-c", _HUMBLE),
            *sandbox.wrapper(described.program, confinement, [*shown, str(INSIDE)], [], filter_fd),
            *(mounts.interpreter(), "-I", "-S", str(INSIDE), json.dumps(instructions)),
        ]
        try:
            running = opened.enter_context(
                subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    pass_fds=passed,
                    start_new_session=True,
                )
            )
        finally:
            os.close(report_end)
        try:
            log, why = _watched(running, seconds, memory_mb)
        finally:
            running.kill()
            running.wait()
        said = os.read(report, 4_096).decode(errors="replace") if _readable(report) else ""
    if why or said != "+":
        last = f"the sandbox ended with code {running.returncode}"
        raise FailedError(output.plain(why or said or last), log)
    return log


def _readable(fd: int) -> bool:
    return bool(select.select([fd], [], [], 0)[0])


def _watched(running: subprocess.Popen[bytes], seconds: float, memory_mb: int) -> tuple[str, str]:
    """Read a sandbox's output until it ends; return its log, and why it had to be ended."""
    assert running.stdout is not None
    fd, end = running.stdout.fileno(), time.monotonic() + seconds
    head, tail, size = b"", b"", 0
    look_at = 0.0
    while True:
        now = time.monotonic()
        if now > end:
            return _log(head, tail, size), f"it took more than {seconds:g} s"
        if now >= look_at:
            look_at = now + LOOK_SECONDS
            used = memory_of(running.pid)
            if used > memory_mb << 20:
                return (
                    _log(head, tail, size),
                    f"its processes had {used >> 20} MiB together, where {memory_mb} are allowed",
                )
        if not select.select([fd], [], [], min(LOOK_SECONDS, end - now))[0]:
            continue
        piece = os.read(fd, 65_536)
        if not piece:
            return _log(head, tail, size), ""
        size += len(piece)
        if len(head) < HEAD_BYTES:
            piece, head = piece[HEAD_BYTES - len(head) :], head + piece[: HEAD_BYTES - len(head)]
        tail = (tail + piece)[-remote.LOG_BYTES :]
        if size > OUTPUT_BYTES:
            return _log(head, tail, size), f"its output has more than {OUTPUT_BYTES >> 20} MiB"


def _log(head: bytes, tail: bytes, size: int) -> str:
    """Return an output as far as it was kept."""
    left = size - len(head) - len(tail)
    between = f"\n… {left} bytes …\n" if left > 0 else ""
    whole = head.decode(errors="replace") + between + tail.decode(errors="replace")
    return output.plain(whole)


def _cut(log: str, most: int) -> str:
    """Return the end of a log, and its beginning where there is room for both."""
    if len(log) <= most:
        return log
    first = most // 4
    return f"{log[:first]}\n…\n{log[first + 4 - most :]}"


def memory_of(root: int) -> int:
    """Return the bytes of memory that a process and all below it have."""
    page, total, left = os.sysconf("SC_PAGE_SIZE"), 0, [root]
    while left:
        pid = left.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
            for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
                left += map(int, (task / "children").read_text().split())
    return total


def _search(toolchains: Sequence[str]) -> str:
    """Return where a build finds programs."""
    return os.pathsep.join([*(f"{toolchain}/bin" for toolchain in toolchains), os.defpath])


def _environment(path: str) -> dict[str, str]:
    scratch = mounts.SCRATCH
    places = dict.fromkeys(("HOME", "TMPDIR"), scratch)
    return {
        **places,
        "PATH": path,
        "LC_ALL": "C",
        "SOURCE_DATE_EPOCH": "0",
        "CARGO_HOME": f"{scratch}/cargo",
    }


def _compiler(tools: Sequence[str], toolchains: Sequence[str]) -> str:
    """Return the version of the first compiler that a recipe asks for, '' where it asks for none.

    Of one that says nothing of tools it is cc, which make takes by itself.
    """
    path = _search(toolchains)
    for tool in (tool for tool in tools or ("cc",) if tool in _COMPILERS):
        program = shutil.which(tool, path=path)
        if program is not None:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                done = subprocess.run(
                    [program, "version" if tool == "go" else "--version"],
                    capture_output=True,
                    timeout=30,
                    check=False,
                    stdin=subprocess.DEVNULL,
                )
                first = done.stdout.decode(errors="replace").partition("\n")[0]
                return output.plain(first).replace("\t", " ")[:120]
    return ""
