"""A control group (version 2) for each engine: all of its work is counted, and it can be held.

A hall makes its engines' groups below its own group, where its service manager (``Delegate=yes``)
or its user allows it. Processor time and ``cgroup.freeze`` need no controller. Where the hall's
group is delegated, memory and the number of processes are counted and shared as well.
Invariants:

* a group's counters outlive its processes: a child that nobody waited for is in them;
* an engine cannot leave its group: it sees no control groups, and owns none;
* groups of games that are over are removed, never those of a game that runs.
"""

from __future__ import annotations

import contextlib
import functools
import os
import pathlib
import subprocess
import sys
import time
from collections.abc import Iterator

NAME = "farm-engine-"  # what the name of a group begins with; the dead man's process id follows
FARM = "farm"  # the group of the farm's own processes, in a delegated one
PROC = pathlib.Path("/proc")
TRIED_SECONDS = 30.0  # s: what tries a group ends by itself
FREEZE_SECONDS = 0.05  # s: a group stands still within a millisecond
LOOK_SECONDS = 0.0005  # s: between two looks whether it does
_CONTROLLERS = ("memory", "pids")


@functools.cache
def parent() -> pathlib.Path | None:
    """Return where this process may make groups for engines, ``None`` where it may not."""
    own = _own()
    if own is None:
        return None
    base = _delegated(own) or own
    return base if _works(base) else None


def _own() -> pathlib.Path | None:
    """Return this process' group of version 2."""
    rows = [row.split(" ") for row in (PROC / "self/mounts").read_text().splitlines()]
    mount = next((row[1] for row in rows if row[2] == "cgroup2"), None)
    lines = (PROC / "self/cgroup").read_text().splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if mount is None or path is None:
        return None
    return pathlib.Path(mount, path.lstrip("/"))


def _delegated(own: pathlib.Path) -> pathlib.Path | None:
    """Return a group that a service manager has delegated, its controllers handed on.

    Only a group without processes can hand controllers on, so the farm's move one down.
    """
    if own.name == FARM and _is_delegated(own.parent):
        return own.parent
    if not _is_delegated(own):
        return None
    inner = own / FARM
    with contextlib.suppress(OSError):
        inner.mkdir(exist_ok=True)
        for pid in (own / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                (inner / "cgroup.procs").write_text(pid)
        there = (own / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{name}" for name in _CONTROLLERS if name in there)
        (own / "cgroup.subtree_control").write_text(wanted)
    return own


def _is_delegated(group: pathlib.Path) -> bool:
    with contextlib.suppress(OSError):
        return os.getxattr(group, "user.delegate") == b"1"
    return False


def _works(base: pathlib.Path) -> bool:
    """Say whether a process can be put into a new group there, by doing it."""
    tried = base / f"{NAME}{os.getpid()}-tried"
    try:
        tried.mkdir()
    except OSError:
        return False
    try:
        sleep = [sys.executable, "-I", "-S", "-c", f"import time; time.sleep({TRIED_SECONDS})"]
        with subprocess.Popen(sleep, stdin=subprocess.DEVNULL) as sleeper:
            try:
                (tried / "cgroup.procs").write_text(str(sleeper.pid))
            finally:
                sleeper.kill()
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            tried.rmdir()
    return (tried.parent / "cgroup.procs").exists()


def of_process(pid: int) -> pathlib.Path | None:
    """Return the engine's group that a process is in, ``None`` where it is in none."""
    with contextlib.suppress(OSError):
        for line in (PROC / str(pid) / "cgroup").read_text().splitlines():
            base = parent()
            if line.startswith("0::") and line.rpartition("/")[2].startswith(NAME) and base:
                return base / line.rpartition("/")[2]
    return None


def used_ns(group: pathlib.Path) -> int:
    """Return the processor time of all that has ever run in a group."""
    return counters(group / "cpu.stat").get("usage_usec", 0) * 1_000


def tasks(group: pathlib.Path) -> int:
    """Return how many processes and threads are in a group, at most so far if the kernel says."""
    for name in ("pids.peak", "pids.current"):
        with contextlib.suppress(OSError, ValueError):
            return int((group / name).read_text())
    with contextlib.suppress(OSError):
        return len((group / "cgroup.threads").read_text().split())
    return 0


def hold(group: pathlib.Path) -> None:
    """Let nothing in a group run."""
    with contextlib.suppress(OSError):
        (group / "cgroup.freeze").write_text("1")


def release(group: pathlib.Path) -> None:
    """Let a group run again, and wait until it does."""
    with contextlib.suppress(OSError):
        (group / "cgroup.freeze").write_text("0")
    deadline = time.monotonic() + FREEZE_SECONDS
    while counters(group / "cgroup.events").get("frozen") and time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)


def forget(base: pathlib.Path) -> None:
    """Remove the groups of engines whose dead man is gone."""
    for group in base.glob(f"{NAME}*"):
        pid = group.name.removeprefix(NAME).partition("-")[0]
        if not (PROC / pid).exists():
            with contextlib.suppress(OSError):  # its last process may not be gone yet
                group.rmdir()


def refusals() -> int:
    """Return how often a limit on processes has refused one to this process' groups."""
    return sum(counters(path / "pids.events").get("max", 0) for path in _groups("pids"))


def room() -> int | None:
    """Return how many processes this process' groups still allow, ``None`` for no limit."""
    left = [allowed for allowed in map(_room_of, _groups("pids")) if allowed is not None]
    return min(left, default=None)


def _room_of(group: pathlib.Path) -> int | None:
    try:
        return int((group / "pids.max").read_text()) - int((group / "pids.current").read_text())
    except (OSError, ValueError):
        return None


def _groups(controller: str) -> Iterator[pathlib.Path]:
    """Yield the groups that bound this process, its own first, in either version."""
    rows = [row.split(" ") for row in (PROC / "self/mounts").read_text().splitlines()]
    for line in (PROC / "self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        for row in rows:
            unified = row[2] == "cgroup2" and not names
            legacy = row[2] == "cgroup" and controller in names.split(",")
            if unified or (legacy and controller in row[3].split(",")):
                group = pathlib.Path(row[1], path.lstrip("/"))
                yield from (
                    group,
                    *(parent for parent in group.parents if parent.is_relative_to(row[1])),
                )


def counters(path: pathlib.Path) -> dict[str, int]:
    """Read a file of names and numbers, empty where there is none."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}
