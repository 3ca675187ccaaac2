"""The fork server: one quiet process that has all imported, and forks referees and dead men.

A referee that starts from nothing costs 0.2 s of imports between two games. The fork server
holds no connection, no thread and no state but its imports, so its forks are as clean
as fresh processes. It ends when its link does. It is a program of its own, or the fork of a
process that has imported the same and has no thread (``forked``): a match, a lane.

Socket: the link sends the name of a program and its arguments, a JSON list, in one message
with descriptors: for ``referee`` its ends of the link's and the dead man's socket, as many pairs
as it plays games at the same time, for ``supervisor`` the ends of the link's pipe and of the
referee's socket, and a lock where there is one; for ``supervisors`` such pairs of several games,
and no lock. The fork server answers with the process id.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from orchestrator import contract
from orchestrator.arbiter import eco
from worker_cpu.engines import handles, supervisor
from worker_cpu.referee import process

REQUEST_BYTES = 1 << 16  # bytes: far above any line of arguments
DESCRIPTORS = {
    "referee": ("--link-fd", "--deadman-fd"),  # again for each game
    "supervisor": ("--link-fd", "--referee-fd", "--lock-fd"),
    "supervisors": ("--link-fd", "--referee-fd"),  # again for each game
}
MOST_DESCRIPTORS = 2 * handles.MOST_TOGETHER
MAX_FD = 1 << 20  # descriptors of a forked server are closed up to here


def main(arguments: Sequence[str]) -> int:
    """Serve requests on the socket whose descriptor is the one argument."""
    link = socket.socket(fileno=int(arguments[0]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its link
    signal.signal(signal.SIGCHLD, _reap)
    eco.names()  # read once for all referees: a PGN names its opening
    gc.freeze()  # what the imports left behind is little; to look for it takes 10 ms and more
    while True:
        request, descriptors, _, _ = socket.recv_fds(link, REQUEST_BYTES, MOST_DESCRIPTORS)
        if not request:
            return 0
        name, *arguments = [str(word) for word in contract.loads(request)]
        for option, descriptor in zip(
            itertools.cycle(DESCRIPTORS[name]), descriptors, strict=False
        ):
            arguments += [option, str(descriptor)]
        # read before the fork: the memory that this takes is then shared
        if name == "referee":
            program = functools.partial(process.main, process.options(arguments))
        else:
            program = functools.partial(supervisor.main, arguments)
        pid = os.fork()
        if pid == 0:
            _be(link, program)
        for descriptor in descriptors:
            os.close(descriptor)
        link.sendall(f"{pid}\n".encode())


def _reap(*_: object) -> None:
    """Take what has ended: the processor time that it used counts as this process's from then on.

    Ignoring the signal would lose it, and ``processor`` would take it for other programs' use.
    """
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


class Forked:
    """A forked child, as ``subprocess`` would show it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    def wait(self, timeout: float | None = None) -> int:
        """Reap the child; raise ``TimeoutExpired`` when it has not ended in time."""
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(["fork server"], timeout or 0)
        os.close(self._pidfd)
        return os.waitpid(self.pid, 0)[1]

    def kill(self) -> None:
        """Kill the child."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


def forked(theirs: socket.socket) -> handles.Child:
    """Fork a fork server that serves this end of a socket pair, for ``handles.ForkServer``.

    This process has imported all already: a fresh interpreter would read the same modules once
    more, 0.2 to 0.4 s before the first game, and hold them once more, some 20 MB. The fork holds
    no descriptor but its socket and the standard ones, hears no signal of this process's, and
    never returns into its code. This process has no thread.
    """
    pid = os.fork()
    if pid == 0:
        _be_fork_server(theirs)
    return Forked(pid)


def _be_fork_server(theirs: socket.socket) -> NoReturn:
    status = 1
    try:
        gc.freeze()  # no finalizer of the parent's may close a descriptor of ours by its number
        signal.set_wakeup_fd(-1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, MAX_FD)
        status = main([str(theirs.fileno())])
    except BaseException:  # the top of a process: nothing may return into the parent's code
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        os._exit(status)


def _be(link: socket.socket, program: Callable[[], int]) -> NoReturn:
    status = 1
    try:
        link.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        status = program()
    except BaseException:  # the top of a process: nothing may return into the fork server
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
