"""A hostile UCI engine: ``hostile.py DEED [ARGUMENT]...``; it tries, then plays on.

Standard library only. The deed is done at the first ``go`` and what came of it is told
as ``info string {json}``, so that a test reads what a stranger's binary could reach.
Paths are given with a ``@`` in front: what a roster names openly, its engine may read.
From the start position, as White against ``mating.py bad``, it mates in 7 plies.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pathlib
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

MOVES = ("e2e4", "f1c4", "d1h5", "h5f7")
LONG = 120.0  # s: what nobody kills still ends
SWARM = 3_000  # processes: it stops here where nothing stops it
CHUNK = 1 << 20  # bytes
HOARD = 2_000  # chunks: 2 GB, where nothing stops it
PTRACE_ATTACH, PTRACE_DETACH = 16, 17  # linux/ptrace.h


def swarm(bound: str = str(SWARM)) -> dict[str, Any]:
    """Fork until it is refused."""
    born = 0
    while born < int(bound):
        try:
            if os.fork() == 0:
                time.sleep(LONG)
                os._exit(0)
        except OSError as error:
            return {"born": born, "refused": str(error)}
        born += 1
    return {"born": born, "refused": ""}


def disk(*places: str) -> dict[str, Any]:
    """Fill each place with files of 64 MB until it is refused or 2 GB are written."""
    return {place: _fill(place) for place in places}


def _fill(place: str) -> int:
    written = 0
    with contextlib.suppress(OSError):
        for number in range(32):
            with pathlib.Path(f"{place}/hostile-{number}").open("wb", buffering=0) as file:
                for _ in range(64):
                    done = file.write(b"x" * CHUNK)
                    written += done
                    if done < CHUNK:
                        return written
    return written


def memory() -> dict[str, Any]:
    """Take and touch memory until it is refused."""
    held: list[bytearray] = []
    try:
        held.extend(bytearray(CHUNK) for _ in range(HOARD))
    except MemoryError:
        return {"mb": len(held), "refused": True}
    return {"mb": len(held), "refused": False}


def sockets(unix: str, port: str) -> dict[str, Any]:
    """Connect to a unix socket, to a port of this machine, and to the network."""
    return {
        "unix": _connects(socket.AF_UNIX, unix),
        "loopback": _connects(socket.AF_INET, ("127.0.0.1", int(port))),
        "abstract": _connects(socket.AF_UNIX, "\0farm-hostile"),
        "network": _connects(socket.AF_INET, ("192.0.2.1", 53)),
        "interfaces": [name for _, name in socket.if_nameindex()],
    }


def _connects(family: int, address: Any) -> bool:
    with socket.socket(family) as tried:
        tried.settimeout(1)
        try:
            tried.connect(address)
        except OSError:
            return False
        return True


def read(*paths: str) -> dict[str, Any]:
    """Read files, list directories."""
    return {path: _reads(path) for path in paths}


def _reads(path: str) -> bool:
    try:
        if pathlib.Path(path).is_dir():
            return any(pathlib.Path(path).iterdir())
        with pathlib.Path(path).open("rb") as file:
            return bool(file.read(1))
    except OSError:
        return False


def write(*paths: str) -> dict[str, Any]:
    """Write to files that are there, its own program among them."""
    return {path: _writes(path) for path in (*paths, __file__, sys.executable)}


def _writes(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
    except OSError:
        return False
    return True


def signals(*pids: str) -> dict[str, Any]:
    """Send SIGKILL to processes by their numbers, to its parent, to process 1, to all."""
    reached = {pid: _kills(int(pid)) for pid in pids}
    os.kill(1, signal.SIGINT) if _kills(1) else None
    return {"reached": reached, "first": _kills(1), "seen": _numbers()}


def _names(directory: str) -> list[str]:
    return sorted(path.name for path in pathlib.Path(directory).iterdir())


def _kills(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def _numbers() -> list[int]:
    return [int(name) for name in _names("/proc") if name.isdigit()]


def trace(*pids: str) -> dict[str, Any]:
    """Trace processes, open their descriptors, write into their memory."""
    return {pid: _traces(int(pid)) for pid in ("1", *pids)}


def _traces(pid: int) -> list[str]:
    libc = ctypes.CDLL(None, use_errno=True)
    reached = []
    if libc.ptrace(PTRACE_ATTACH, pid, 0, 0) == 0:
        reached.append("ptrace")
        os.waitpid(pid, 0)
        libc.ptrace(PTRACE_DETACH, pid, 0, 0)
    with contextlib.suppress(OSError):
        reached += _names(f"/proc/{pid}/fd")
    with contextlib.suppress(OSError):
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        reached.append("mem")
    return reached


def survive(exits: str = "") -> dict[str, Any]:
    """Leave a grandchild of another session behind that holds nothing; maybe exit."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in range(1, 32):
                with contextlib.suppress(OSError):
                    signal.signal(number, signal.SIG_IGN)
            os.closerange(0, 256)
            time.sleep(LONG)
        os._exit(0)
    os.wait()
    if exits:
        os._exit(3)
    return {"left": True}


def leave() -> dict[str, Any]:
    """Leave the process group, with a child that holds the pipes."""
    if os.fork() == 0:
        os.setpgid(0, 0)
        time.sleep(LONG)
    return {"left": True}


def flood() -> dict[str, Any]:
    """Write 30 MB to both pipes before the move."""
    junk = b"info string " + b"x" * 4083 + b"\n"
    for _ in range(30 << 8):
        for fd in (1, 2):
            os.write(fd, junk)
    return {"flooded": True}


def close() -> dict[str, Any]:
    """Close the pipes and live on."""
    os.closerange(0, 3)
    time.sleep(LONG)
    return {}


def end(how: str) -> dict[str, Any]:
    """End by an exit code or by a signal's name."""
    if how.isdigit():
        os._exit(int(how))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.Signals[how])
    time.sleep(LONG)
    return {}


def litter(how: str = "1") -> dict[str, Any]:
    """Leave files, a pipe and a link to the hall in the scratch, and crash."""
    os.chdir(os.environ.get("TMPDIR", "/tmp"))
    with pathlib.Path("note.txt").open("w") as file:
        file.write("what the engine wrote last")
    os.mkfifo("pipe")
    pathlib.Path("link").symlink_to("/etc/passwd")
    return end(how)


def look() -> dict[str, Any]:
    """Tell what it is: rights, descriptors, user, environment."""
    with pathlib.Path("/proc/self/status").open() as file:
        rows = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    names = ("CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Uid", "Groups")
    return {
        "fds": _names("/proc/self/fd"),
        "environment": sorted(os.environ),
        "cpus": sorted(os.sched_getaffinity(0)),
        "directory": str(pathlib.Path.cwd()),
        **{name: rows.get(name, "").strip() for name in names},
    }


DEEDS: dict[str, Callable[..., dict[str, Any]]] = {
    deed.__name__: deed
    for deed in (
        *(swarm, disk, memory, sockets, read, write, signals, trace),
        *(survive, leave, flood, close, end, litter, look),
    )
}


def main(deed: str, *arguments: str) -> None:
    """Answer commands until ``quit``; do the deed at the first ``go``."""
    moves = iter(MOVES)
    done = False
    for line in sys.stdin:
        command = line.split()[:1]
        if command == ["uci"]:
            print("id name Hostile\nuciok")
        elif command == ["isready"]:
            print("readyok")
        elif command == ["go"]:
            if not done:
                tried = DEEDS[deed](*(one.removeprefix("@") for one in arguments))
                print(f"info string {json.dumps(tried)}\n", end="")
                done = True
            print(f"info depth 1 score cp 10 nodes 1\nbestmove {next(moves)}")
        elif command == ["quit"]:
            return
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
