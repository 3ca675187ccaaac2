"""The first process of a sandbox: it starts the engine, and says exactly how it ended.

One standard-library file, run by bubblewrap as process 1 of the sandbox:
``python -I -S sandbox_init.py <order as JSON>``. Bubblewrap's own init would tell a
signal as exit 128 + n, which an engine can also exit with. Invariants:

* nothing stands between the pipes: the engine gets the referee's own three;
* no engine can reach this process: it has another user, or cannot be looked into;
* when the engine ends, all it started ends, then its scratch is saved, then this;
* the hall's lock is held here and not in the engine.

Descriptors it is started with: 3 for reports, 4 the directory for what the scratch held,
5 the hall's lock, 6 to 8 the engine's pipes; bubblewrap has read the filter of system calls
from 9. Reports are lines: ``+`` the program runs, ``!why`` it cannot, ``=exit N`` or
``=signal NAME`` how it ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import stat
import sys
from typing import Any, NoReturn

REPORT, KEEP, PIPES = 3, 4, (6, 7, 8)
MAX_FD = 1 << 16  # descriptors are closed up to here; nothing has opened higher ones
SCRATCH = "/scratch"
FILES = 1_000  # files saved of one scratch: evidence, not an archive
FULL = 2  # times the largest file: a core and all else; holes say to be more than they are
COPY_BYTES = 1 << 20  # bytes: one read while a file is saved
PR_SET_DUMPABLE = 4  # linux/prctl.h


def main(arguments: list[str]) -> int:
    """Run one engine to its end."""
    order = json.loads(arguments[0])
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # process 1 ignores what has no handler
    if order["user"] is None:
        _hide()
    os.set_inheritable(REPORT, False)  # noqa: FBT003 - the system's signature
    engine, problem = start(order)
    for fd in PIPES:
        os.close(fd)
    if problem:
        report(f"!{problem}")
        return 0
    report("+")
    report("=" + wait(engine))
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    reap()
    save(room=FULL * order["limits"]["FSIZE"])
    return 0


def start(order: dict[str, Any]) -> tuple[int, str]:
    """Fork the engine; return its process id and why it does not run, if so."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        _be_engine(order, write)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        return pid, pipe.read().decode(errors="replace")


def _be_engine(order: dict[str, Any], problem: int) -> NoReturn:
    try:
        os.setsid()
        if order["user"] is not None:
            os.setgroups([])
            os.setresgid(*[order["user"]] * 3)
            os.setresuid(*[order["user"]] * 3)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for target, fd in enumerate(PIPES):
            os.dup2(fd, target)
        problem = os.dup2(problem, REPORT, inheritable=False)
        os.closerange(REPORT + 1, MAX_FD)
        os.chdir(order["cwd"])
        limit(order["limits"])
        os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - no shell is wanted
    except BaseException as error:  # this copy must end here, whatever happened
        os.write(problem, f"{error}".encode()[:4096] or b"unknown error")
    finally:
        os._exit(127)


def limit(limits: dict[str, int]) -> None:
    """Set resource limits by their names, never above what is allowed already."""
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        ceiling = resource.getrlimit(number)[1]
        bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(number, (bound, bound))


def wait(engine: int) -> str:
    """Reap until the engine has ended; return how it did."""
    while True:
        pid, status = os.wait()
        if pid == engine:
            break
    if os.WIFEXITED(status):
        return f"exit {os.WEXITSTATUS(status)}"
    number = os.WTERMSIG(status)
    try:
        return f"signal {signal.Signals(number).name}"
    except ValueError:
        return f"signal {number}"


def reap() -> None:
    """Wait until nothing else is alive in the sandbox."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def report(line: str) -> None:
    """Tell the dead man; one that is gone cannot be told, and has killed us anyway."""
    with contextlib.suppress(OSError):
        os.write(REPORT, line.encode() + b"\n")


def save(room: int) -> None:
    """Copy the plain files of the scratch to the kept directory, links not followed.

    At most ``room`` bytes: what a file says to hold need not be in the scratch's memory.
    """
    left = FILES
    for folder, _, names in os.walk(SCRATCH):
        for name in names:
            if left == 0 or room <= 0:
                return
            left -= 1
            path = f"{folder}/{name}"
            with contextlib.suppress(OSError):  # evidence is saved as far as it can be
                room -= _save_file(path, os.path.relpath(path, SCRATCH).replace("/", "%2F"), room)


def _save_file(path: str, name: str, room: int) -> int:
    """Copy a file as far as there is room; return its bytes."""
    copied = 0
    # O_NONBLOCK: a named pipe that an engine has left must not hold us.
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(source).st_mode):
            return 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        target = os.open(name[-250:], flags, 0o600, dir_fd=KEEP)
        try:
            while chunk := os.read(source, min(COPY_BYTES, room - copied)):
                copied += os.write(target, chunk)
        finally:
            os.close(target)
    finally:
        os.close(source)
    return copied


def _hide() -> None:
    """Let no process of the same user trace this one or open its descriptors."""
    import ctypes  # noqa: PLC0415 - its import costs more than all else here

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
