"""The sandbox of an engine: which one this host can give, and its command line.

Engines are other people's binaries. ``bubblewrap`` gives each its own
process, network and IPC namespaces, a read-only view of the system and of its own files,
a scratch in memory, no capability, the system calls that an engine needs (``syscalls``) and
resource limits. ``plain`` gives a process group and resource limits: it contains accidents,
not hostility. Invariants:

* an engine sees what it is granted (``mounts``); its opponent's files and the hall's
  directory are hidden where they lie within that;
* whether a sandbox works here is found by starting one, never by looking for a program;
* started by root, an engine runs as a user of its own who owns nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, Literal, Self, TypeAlias

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import mounts, syscalls

Kind: TypeAlias = Literal["bubblewrap", "plain"]
Wish: TypeAlias = Literal["auto", "bubblewrap", "plain"]
WISHES: tuple[Wish, ...] = ("auto", "bubblewrap", "plain")

INIT = pathlib.Path(__file__).with_name("sandbox_init.py")
INIT_INSIDE = "/run/farm/init.py"
SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# In /proc: how busy the machine is, and with what.
OTHERS_WORK = (
    *("buddyinfo", "diskstats", "interrupts", "kcore", "key-users", "keys", "latency_stats"),
    *("loadavg", "locks", "pagetypeinfo", "pressure", "sched_debug", "schedstat", "slabinfo"),
    *("softirqs", "stat", "timer_list", "vmallocinfo", "vmstat", "zoneinfo"),
)
FILES_OF_ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime")
PROBE_SECONDS = 20.0  # s: a sandbox starts within 50 ms
FIRST_USER = 64_000  # of the numbers that are given to nobody: two for each game
USERS = 700  # games at once on a host, at most
MIB = 1 << 20
FILTER_FD = 9  # where the dead man lays the filter of system calls (``syscalls``)
_NAMESPACES = ("pid", "net", "ipc", "uts", "cgroup-try")


class UnreadableError(errors.HostError):
    """A root's sandbox cannot show an engine its own files: no engine's fault."""


@dataclasses.dataclass(frozen=True)
class Confinement:
    """What this host does to an engine: the kind of sandbox and its limits.

    ``memory_mb`` bounds the private memory of each process (``None``: the host's),
    ``processes`` its processes and threads, ``scratch_mb`` each file it writes, and in a
    bubblewrap all of them together. ``hidden`` are files and directories no engine may see;
    of ``data``, the farm's data directory, it sees what it is granted by name. ``groups`` is
    where each engine gets a control group, '' for none (``cgroups``).
    """

    kind: Kind = "plain"
    memory_mb: int | None = None
    processes: int = 4096
    scratch_mb: int = 256
    hidden: tuple[str, ...] = ()
    groups: str = ""
    data: str = ""

    def encode(self) -> str:
        """Write one word for a command line."""
        return urllib.parse.quote(json.dumps(dataclasses.asdict(self)), safe="")

    @classmethod
    def decode(cls, word: str) -> Self:
        """Read what ``encode`` wrote."""
        raw = json.loads(urllib.parse.unquote(word))
        return cls(**{**raw, "hidden": tuple(raw["hidden"])})

    def limits(self) -> dict[str, int]:
        """Return the resource limits by their names (RLIMIT_…)."""
        # RTPRIO: the right to real-time priority is the referee's, no engine may preempt others.
        resource_limits = {
            "FSIZE": self.scratch_mb * MIB,
            "CORE": self.scratch_mb * MIB,
            "RTPRIO": 0,
        }
        if self.memory_mb is not None:
            # DATA, not AS: mapped tablebases are terabytes of address space and no memory.
            resource_limits["DATA"] = self.memory_mb * MIB
        if self.kind == "bubblewrap":
            resource_limits["NPROC"] = (
                self.processes
            )  # in a plain one it would count the farm's own
        return resource_limits


@dataclasses.dataclass(frozen=True)
class Described:
    """What sandbox this host gives; ``problem`` says why it is no better one.

    ``filtered``: engines get fewer system calls, too.
    """

    kind: Kind
    program: str
    problem: str
    filtered: bool = False


@functools.cache
def describe() -> Described:
    """Find out, by starting one, what sandbox this host can give."""
    program = shutil.which("bwrap")
    if program is None:
        return Described("plain", "", "bwrap is not installed (package bubblewrap)")
    problem = ""
    for filtered in dict.fromkeys((syscalls.program(os.uname().machine), b"")):
        problem = _tried(program, filtered)
        if not problem:
            return Described("bubblewrap", program, "", filtered=bool(filtered))
    return Described("plain", program, problem)


def _tried(program: str, filtered: bytes) -> str:
    """Start the sandbox an engine gets around a program that does nothing; return what failed."""
    with contextlib.ExitStack() as opened:
        fd = opened.enter_context(memory_file(filtered)).fileno() if filtered else -1
        made = wrapper(program, Confinement("bubblewrap"), [], [], fd)
        held = (fd,) if filtered else ()
        try:
            done = subprocess.run(
                [*made, "/bin/true"],
                capture_output=True,
                timeout=PROBE_SECONDS,
                check=False,
                pass_fds=held,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if done.returncode == 0:
        return ""
    return done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}"


def memory_file(content: bytes) -> IO[bytes]:
    """Return a file in memory that begins with ``content``."""
    file = os.fdopen(os.memfd_create("filter"), "w+b", buffering=0)
    file.write(content)
    file.seek(0)
    return file


def choose(wish: Wish) -> Kind:
    """Return the kind to use; raise ``HostError`` when bubblewrap is asked for in vain."""
    if wish == "plain":
        return "plain"
    sandbox = describe()
    if wish == "bubblewrap" and sandbox.kind != "bubblewrap":
        raise errors.HostError(
            f"no bubblewrap sandbox works on this host: {sandbox.problem}; install bubblewrap and"
            " allow user namespaces, or set FARM_SANDBOX=plain"
        )
    return sandbox.kind


def wish(text: str, name: str) -> Wish:
    """Read a wish; raise ``UsageError`` that names the setting."""
    for choice in WISHES:
        if text == choice:
            return choice
    raise errors.UsageError(f"{name}: found {text!r}; allowed: {', '.join(WISHES)}")


# -- the order for the dead man --------------------------------------------------------


def confined(
    confinement: Confinement,
    order: contract.GameOrder,
    side: contract.Side,
    environment: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the dead man needs to start an engine: the part of ``spawn`` about it."""
    spec = order.engine(side)
    plain = {
        "argv": list(spec.command),
        "cwd": spec.directory,
        "env": dict(environment),
        "limits": confinement.limits(),
        "groups": confinement.groups,
    }
    if confinement.kind == "plain":
        return plain
    other = order.black if side == "white" else order.white
    tables = [path for path in mounts.tables(order.limits) if pathlib.Path(path).exists()]
    search = environment.get("PATH", os.defpath)
    covered = [*confinement.hidden, *([confinement.data] if confinement.data else [])]
    granted = mounts.grants(spec, other, search, covered) + tables
    own = [
        path
        for path in granted
        if not any(mounts.leads_into(path, secret) for secret in confinement.hidden)
    ]
    if os.geteuid() == 0:
        _check_readable(own)
    hidden = [*covered, *mounts.claims(other, spec, search)]
    inside = {"HOME": mounts.SCRATCH, "TMPDIR": mounts.SCRATCH}
    init = {
        **plain,
        "cwd": _start_in(spec.directory, own),
        "env": {**environment, **inside},
        "user": _user(side) if os.geteuid() == 0 else None,
    }
    sandbox = describe()
    filtered = syscalls.program(os.uname().machine) if sandbox.filtered else b""
    fd = FILTER_FD if filtered else -1
    command = [*wrapper(sandbox.program, confinement, own, hidden, fd), *_init(init)]
    return {**plain, "sandbox": command, "filter": filtered.hex()}


def _start_in(directory: str | None, own: Sequence[str]) -> str:
    """Return where an engine starts: its directory, if any of it can be seen."""
    if directory and any(mounts.within(path, directory) for path in own):
        return directory
    return mounts.SCRATCH


def alone(command: Sequence[str], paths: Sequence[str], hidden: Sequence[str] = ()) -> list[str]:
    """Return the command line of an engine that plays no game, in a bubblewrap of its own.

    It sees its program's directory, and what its arguments and ``paths`` name, but nothing
    ``hidden``. Started by root it stays root in there: give it a user.
    """
    named = {str(number): path for number, path in enumerate(paths)}
    spec = contract.EngineSpec(id="alone", name="alone", command=tuple(command), options=named)
    own = mounts.grants(spec, spec, os.environ.get("PATH", os.defpath), hidden)
    return [*wrapper(describe().program, Confinement("bubblewrap"), own, hidden), *command]


def _check_readable(paths: Sequence[str]) -> None:
    """Refuse files that only root may read: root's engines are another user."""
    for path in paths:
        try:
            mode = pathlib.Path(path).stat().st_mode
        except FileNotFoundError:  # it has gone since it was found
            continue
        wanted = 0o5 if stat.S_ISDIR(mode) else 0o4
        if mode & wanted != wanted:
            raise UnreadableError(
                f"{path} cannot be read by all, and a hall of root runs its engines as nobody:"
                f" `chmod -R a+rX {path}`, or run the hall as a user of its own"
            )


def _init(order: Mapping[str, Any]) -> list[str]:
    return [mounts.interpreter(), "-I", "-S", INIT_INSIDE, json.dumps(order)]


def _user(side: contract.Side) -> int:
    return FIRST_USER + os.getpid() % USERS * 2 + (side == "black")


def wrapper(
    program: str,
    confinement: Confinement,
    own: Sequence[str],
    hidden: Sequence[str],
    filter_fd: int = -1,
) -> list[str]:
    """Return the bubblewrap command line in front of the sandbox's first process.

    It reads the filter of system calls from ``filter_fd``, where that is given.
    """
    size = str(confinement.scratch_mb * MIB)
    return [
        program,
        *("--die-with-parent", "--as-pid-1", "--new-session", "--cap-drop", "ALL"),
        *_rights(),
        *(("--seccomp", str(filter_fd)) if filter_fd >= 0 else ()),
        *_system(),
        *mounts.bind(sys.base_prefix),
        *("--size", size, "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108 - its own
        *mounts.binds(own, hidden),
        *("--perms", "0755", "--dir", "/run", "--perms", "0755", "--dir", "/run/farm"),
        *("--ro-bind", str(INIT), INIT_INSIDE),
        *("--proc", "/proc", "--dev", "/dev"),
        *_covers_of_kernel(),
        *("--size", size, "--perms", "1777", "--tmpfs", "/dev/shm"),  # noqa: S108 - its own
        *("--remount-ro", "/dev"),
        *("--size", size, "--perms", "1777", "--tmpfs", mounts.SCRATCH),
        *("--chdir", "/", "--remount-ro", "/"),
    ]


def _covers_of_kernel() -> Iterator[str]:
    """Yield covers of what the kernel says of other processes, and make /proc read-only.

    An engine could read its opponent's work there, and could lower its own ``oom_score_adj``,
    by which it is the first that the kernel ends for lack of memory.
    """
    for name in OTHERS_WORK:
        path = pathlib.Path("/proc", name)
        if path.is_dir():
            yield from ("--perms", "0555", "--tmpfs", str(path), "--remount-ro", str(path))
        elif path.exists():
            yield from ("--ro-bind", "/dev/null", str(path))
    for path in sorted(pathlib.Path("/sys/devices/system/cpu").glob("cpu[0-9]*/cpuidle")):
        yield from ("--perms", "0555", "--tmpfs", str(path), "--remount-ro", str(path))
    yield from ("--remount-ro", "/proc")


def _rights() -> Iterator[str]:
    """Yield namespaces, and what root's init needs to become its engine's user and guard.

    No engine has any of it: the kernel takes capabilities away with the change of user.
    """
    yield from (f"--unshare-{name}" for name in _NAMESPACES)
    if os.geteuid() == 0:
        for right in ("SETUID", "SETGID", "KILL", "DAC_READ_SEARCH"):
            yield from ("--cap-add", f"CAP_{right}")
    else:
        yield "--unshare-user"


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in SYSTEM:
        path = pathlib.Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in FILES_OF_ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    yield from ("--ro-bind-try", "/sys/devices/system", "/sys/devices/system")  # cores, nodes
