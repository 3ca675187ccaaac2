"""A fork server that is forked from the match's own process, which has all imported already.

A fresh interpreter would read the same modules once more, 0.2 to 0.4 s before the first
game. Invariants: the fork holds no descriptor but its socket and the standard ones, hears
no signal of the match's, and never returns into the match's code. The match has no thread.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import traceback
from typing import NoReturn

from worker_cpu.engines import handles
from worker_cpu.referee import forkserver

MAX_FD = 1 << 20  # descriptors of the fork are closed up to here


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


def fork(theirs: socket.socket) -> handles.Child:
    """Fork a fork server that serves this end of a socket pair."""
    pid = os.fork()
    if pid == 0:
        _be_fork_server(theirs)
    return Forked(pid)


def _be_fork_server(theirs: socket.socket) -> NoReturn:
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, MAX_FD)
        status = forkserver.main([str(theirs.fileno())])
    except BaseException:  # the top of a process: nothing may return into the match
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        os._exit(status)
