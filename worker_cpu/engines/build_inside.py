"""The first process of a sandbox in which an engine is built: unpack, make, hand out the program.

One standard-library file, run by bubblewrap as process 1 of the sandbox:
``python -I -S build_inside.py <order as JSON>``. The source is hostile until proven otherwise:

* all that it writes lies in a file system in memory of a bounded size, without set-user rights,
  and is gone with the sandbox; of all files the program alone leaves it, as its bytes;
* what the recipe starts has another user, or cannot look into this process: it never has the
  descriptor that the program goes out by, nor the one of the report;
* before the program is read everything else has been killed.

The report is one line: ``+`` it is there, else why not.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import stat
import sys
from typing import Any, NoReturn

TREE = "/scratch/source"
PR_SET_DUMPABLE = 4  # linux/prctl.h
PIECE = 1 << 20
MAX_FD = 1 << 16


def main(arguments: list[str]) -> int:
    """Build once, or run a program once."""
    order = json.loads(arguments[0])
    for kept in (order["report"], order["out"]):
        if kept is not None:
            os.set_inheritable(kept, False)  # noqa: FBT003 - the system's signature
    if order["user"] is None and ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        return tell(order, "the process that guards the build cannot be hidden")
    return tell(order, attempt(order))


def attempt(order: dict[str, Any]) -> str:
    """Do what the order says; return what went wrong, '' for nothing."""
    if order["archive"]:
        if ended := run(order, ["mkdir", TREE], "/scratch", os.devnull):
            return f"there is no room for the source: mkdir {ended}"
        unpack = ["tar", "-xzf", "-", "--no-same-owner", "--no-same-permissions"]
        if ended := run(order, unpack, TREE, order["archive"]):
            return f"the source cannot be unpacked: tar {ended}"
        for name, path in order["files"].items():
            put = ["sh", "-c", 'mkdir -p -- "$(dirname -- "$1")" && cat > "$1"', "put", name]
            if ended := run(order, put, TREE, path):
                return f"{name} cannot be put into the source: {ended}"
    ended = run(order, order["argv"], TREE if order["archive"] else "/scratch", os.devnull)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    if ended:
        return f"{order['what']} {ended}"
    return hand_out(order) if order["program"] else ""


def run(order: dict[str, Any], argv: list[str], directory: str, given: str) -> str:
    """Run a program as the build's user; return how it failed, '' where it did not."""
    source = os.open(given, os.O_RDONLY | os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        be(order, argv, directory, source)
    os.close(source)
    while True:
        ended, status = os.wait()
        if ended == pid:
            break
    if os.WIFSIGNALED(status):
        return f"was ended by signal {os.WTERMSIG(status)}"
    code = os.WEXITSTATUS(status)
    return f"ended with exit code {code}" if code else ""


def be(order: dict[str, Any], argv: list[str], directory: str, source: int) -> NoReturn:
    """Become a program of the recipe's."""
    try:
        os.setsid()
        if order["user"] is not None:
            os.setgroups([])
            os.setresgid(*[order["user"]] * 3)
            os.setresuid(*[order["user"]] * 3)
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(source, 0)
        os.closerange(3, MAX_FD)
        os.chdir(directory)
        for name, value in order["limits"].items():
            number = getattr(resource, f"RLIMIT_{name}")
            ceiling = resource.getrlimit(number)[1]
            bound = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
            resource.setrlimit(number, (bound, bound))
        os.execvpe(argv[0], argv, order["env"])  # noqa: S606 - no shell is wanted
    except BaseException as error:  # this copy must end here, whatever happened
        os.write(2, f"{argv[0]}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(127)


def hand_out(order: dict[str, Any]) -> str:
    """Copy the program's bytes out of the sandbox; return what went wrong."""
    path = f"{TREE}/{order['program']}"
    if not os.path.realpath(path).startswith(TREE + "/"):
        return f"{order['program']} leads out of the source"
    try:
        source = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        return f"the build has left no {order['program']}: {error.strerror}"
    seen = os.fstat(source)
    if not stat.S_ISREG(seen.st_mode):
        return f"{order['program']} is no file"
    left = order["most_bytes"]
    while piece := os.read(source, PIECE):
        left -= len(piece)
        if left < 0:
            return f"{order['program']} has more than {order['most_bytes'] >> 20} MiB"
        while piece:
            piece = piece[os.write(order["out"], piece) :]
    return ""


def tell(order: dict[str, Any], problem: str) -> int:
    """Report how it went."""
    os.write(order["report"], (problem or "+").encode(errors="replace")[:400])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
