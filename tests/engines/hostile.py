"""A hostile UCI engine: ``hostile.py DEED [ARGUMENT]...``; it tries, then plays on.

Standard library only. The deed is done at the first ``go`` and what came of it is told
as ``info string {json}``, so that a test reads what a stranger's binary could reach.
Paths are given with a ``@`` in front: what a roster names openly, its engine may read.
From the start position, as White against ``mating.py bad``, it mates in 7 plies.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import mmap
import os
import pathlib
import resource
import signal
import socket
import stat
import sys
import termios
import time
from collections.abc import Callable
from typing import Any, NoReturn

MOVES = ("e2e4", "f1c4", "d1h5", "h5f7")
LONG = 120.0  # s: what nobody kills still ends
SWARM = 3_000  # processes: it stops here where nothing stops it
CHUNK = 1 << 20  # bytes
HOARD = 2_000  # chunks: 2 GB, where nothing stops it
PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_DETACH = 0, 16, 17  # linux/ptrace.h
KEYCTL_SEARCH, KEY_SESSION = 10, -3  # linux/keyctl.h
CLONE_NEWUSER = 0x10000000  # linux/sched.h
DEVICES = ("mem", "kmem", "port", "kmsg", "fuse", "kvm", "sda", "vda", "nvme0n1", "loop0")
CALLS = {  # numbers on x86_64 and on aarch64
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
    "clone": (56, 220),
    "clone3": (435, 435),
    "setns": (308, 268),
    "mount": (165, 40),
    "fsopen": (430, 430),
    "chroot": (161, 51),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "syslog": (103, 116),
    "open_by_handle_at": (304, 265),
}


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


def sockets(unix: str, abstract: str, port: str) -> dict[str, Any]:
    """Connect to unix sockets, with a path and without, to a port here, and to the network."""
    return {
        "unix": _connects(socket.AF_UNIX, unix),
        "loopback": _connects(socket.AF_INET, ("127.0.0.1", int(port))),
        "abstract": _connects(socket.AF_UNIX, "\0" + abstract),
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


def holes() -> NoReturn:
    """Leave files that say to be large and hold nothing: a thousand, as large as is allowed."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    for number in range(1_000):
        with pathlib.Path("/scratch", f"hole-{number}").open("wb") as file:
            file.truncate(limit)
    os.abort()


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


def families() -> dict[str, Any]:
    """Open sockets of kinds that no network namespace holds, or that only reach the kernel."""
    kinds = {"vsock": 40, "alg": 38, "packet": 17, "key": 15, "bluetooth": 31, "tipc": 30}
    return {name: _opens(number) for name, number in kinds.items()}


def _opens(family: int) -> bool:
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
    for kind in kinds:
        with contextlib.suppress(OSError):
            socket.socket(family, kind).close()
            return True
    return False


def share(memory: str, key: str, name: str) -> dict[str, Any]:
    """Reach memory and queues that another process of this machine has shared with all."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_long
    return {
        "shared memory": libc.shmat(int(memory), None, 0) != -1,
        "queue": libc.msgget(int(key), 0) != -1,
        "semaphores": libc.semget(int(key), 0, 0) != -1,
        "shm file": _reads(f"/dev/shm/{name}"),
    }


def keyring(secret: str) -> dict[str, Any]:
    """Find a key of the hall's session, add one to it, ask the kernel for one."""
    kind, name = b"user\0", secret.encode() + b"\0"
    return {
        "found": _call("keyctl", KEYCTL_SEARCH, KEY_SESSION, kind, name, 0) > 0,
        "asked for": _call("request_key", kind, name, None, 0) > 0,
        "added": _call("add_key", kind, b"mine\0", b"x", 1, KEY_SESSION) > 0,
    }


def _call(name: str, *arguments: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    number = CALLS[name][os.uname().machine == "aarch64"]
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    done: int = libc.syscall(ctypes.c_long(number), *words)
    return done


def calls() -> dict[str, Any]:
    """Call what reaches deep into the kernel; tell each error's name, "done" without one."""
    room = ctypes.create_string_buffer(256)
    tried = {
        "io_uring_setup": (1, room),
        "bpf": (0, room, 48),
        "perf_event_open": (room, 0, -1, -1, 0),
        "userfaultfd": (1,),
        "unshare": (CLONE_NEWUSER,),
        "clone": (CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0),
        "clone3": (room, 64),
        "setns": (0, 0),
        "mount": (b"none\0", b"/scratch\0", b"tmpfs\0", 0, None),
        "fsopen": (b"tmpfs\0", 0),
        "chroot": (b"/scratch\0",),
        "ptrace": (PTRACE_TRACEME, 0, 0, 0),
        "process_vm_readv": (os.getpid(), room, 0, room, 0, 0),
        "kcmp": (os.getpid(), os.getpid(), 0, 0, 0),
        "pidfd_getfd": (0, 0, 0),
        "syslog": (10, 0, 0),  # the size of the kernel's log
        "open_by_handle_at": (0, room, 0),
    }
    return {name: _outcome(name, words) for name, words in tried.items()}


def _outcome(name: str, arguments: tuple[Any, ...]) -> str:
    done = _call(name, *arguments)
    if name == "clone" and done == 0:
        os._exit(0)
    return "done" if done >= 0 else errno.errorcode[ctypes.get_errno()]


def terminal() -> dict[str, Any]:
    """Open a terminal, and put words into the mouth of every one that is open."""
    reached = []
    for path in ("/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/pts/0"):
        with contextlib.suppress(OSError):
            os.open(path, os.O_RDWR)
            reached.append(path)
    for fd in range(16):
        with contextlib.suppress(OSError):
            fcntl.ioctl(fd, termios.TIOCSTI, b"x")
            reached.append(f"TIOCSTI {fd}")
    return {"reached": reached}


def devices(number: str) -> dict[str, Any]:
    """Open devices of the machine; make one of a number (a disk's) and open that."""
    with contextlib.suppress(OSError):
        os.mknod("/scratch/disk", stat.S_IFBLK | 0o600, int(number))
    names = dict.fromkeys((*DEVICES, *_names("/dev")))
    paths = [*(f"/dev/{name}" for name in names), "/scratch/disk"]
    return {"reached": [path for path in paths if _is_device(path) and _reads_once(path)]}


def _is_device(path: str) -> bool:
    try:
        mode = pathlib.Path(path).stat().st_mode
    except OSError:
        return False
    return stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def _reads_once(path: str) -> bool:
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def elevate() -> dict[str, Any]:
    """Become root, preempt everybody, lift its limits, escape the kernel's choice."""
    done = {
        "setuid": _allowed(os.setuid, 0),
        "setgroups": _allowed(os.setgroups, [0]),
        "fifo": _allowed(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1)),
        "nice": _allowed(os.setpriority, os.PRIO_PROCESS, 0, -1),
        "memory": _allowed(resource.setrlimit, resource.RLIMIT_DATA, (-1, -1)),
        "processes": _allowed(resource.setrlimit, resource.RLIMIT_NPROC, (-1, -1)),
        "hostname": _allowed(socket.sethostname, "mine"),
    }
    choice = pathlib.Path("/proc/self/oom_score_adj")
    scores = [int(choice.read_text())]
    with contextlib.suppress(OSError):
        choice.write_text("0")
    scores.append(int(choice.read_text()))
    places = ("/", "/usr", "/scratch", "/tmp", "/dev/shm")
    suid = [place for place in places if not os.statvfs(place).f_flag & os.ST_NOSUID]
    return {"done": [name for name in done if done[name]], "scores": scores, "suid": suid}


def _allowed(verb: Callable[..., object], *arguments: Any) -> bool:
    try:
        verb(*arguments)
    except (OSError, ValueError):
        return False
    return True


def hoard() -> dict[str, Any]:
    """Take and touch memory that no process' limit counts: it is shared with nobody."""
    held = []
    for count in range(HOARD):
        try:
            piece = mmap.mmap(-1, CHUNK)  # shared and anonymous
        except OSError:
            return {"mb": count, "refused": True}
        piece.write(b"x" * CHUNK)
        held.append(piece)
    return {"mb": HOARD, "refused": False}


def twins(path: str) -> dict[str, Any]:
    """Speak to a twin through a file that both see: locks on it, and watching who opens it."""
    first, second = (os.open(path, os.O_RDONLY) for _ in range(2))
    libc = ctypes.CDLL(None, use_errno=True)
    fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return {
        # what the first descriptor holds, the second must not notice
        "flock": not _allowed(fcntl.flock, second, fcntl.LOCK_EX | fcntl.LOCK_NB),
        "lease": _allowed(fcntl.fcntl, first, fcntl.F_SETLEASE, fcntl.F_RDLCK),
        "dnotify": _allowed(fcntl.fcntl, os.open("/usr", os.O_RDONLY), fcntl.F_NOTIFY, 1),
        "inotify": libc.inotify_init1(0) >= 0,
        "fanotify": libc.fanotify_init(0, 0) >= 0,
    }


def busy() -> dict[str, Any]:
    """Read what the kernel says of the whole machine's work."""
    names = ("stat", "loadavg", "interrupts", "softirqs", "diskstats", "vmstat", "schedstat")
    files = [f"/proc/{name}" for name in (*names, "locks", "zoneinfo", "pressure/cpu")]
    return {"read": [path for path in files if _reads(path)]}


DEEDS: dict[str, Callable[..., dict[str, Any]]] = {
    deed.__name__: deed
    for deed in (
        *(swarm, disk, memory, sockets, read, write, signals, trace),
        *(survive, leave, holes, flood, close, end, litter, look),
        *(families, share, keyring, calls, terminal, devices, elevate, hoard, twins, busy),
    )
}


def main(deed: str, *arguments: str) -> None:
    """Answer commands until ``quit``; do the deed at the first ``go``."""
    moves = iter(MOVES)
    tried: dict[str, Any] | None = None
    for line in sys.stdin:
        command = line.split()[:1]
        if command == ["uci"]:
            print("id name Hostile\nuciok")
        elif command == ["isready"]:
            print("readyok")
        elif command == ["go"]:
            if tried is None:
                tried = DEEDS[deed](*(one.removeprefix("@") for one in arguments))
            # Said again at each move: behind a flood the first one may be dropped.
            print(f"info string {json.dumps(tried)}\n", end="")
            print(f"info depth 1 score cp 10 nodes 1\nbestmove {next(moves)}")
        elif command == ["quit"]:
            return
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
