"""The fork server: one quiet process that has all imported, and forks a referee a game.

A referee that starts from nothing costs 0.2 s of imports between two games. The fork server
holds no connection, no thread and no state but its imports, so its forks are as clean
as fresh processes. It ends when its link does.

Socket: the link sends ``referee`` and arguments in one message with two descriptors
(the referee's ends of the link's and the dead man's socket); the fork server answers with
the referee's process id.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from orchestrator.arbiter import eco
from worker_cpu.referee import process

REQUEST_BYTES = 1 << 16  # bytes: far above any line of arguments


def main(arguments: Sequence[str]) -> int:
    """Serve requests on the socket whose descriptor is the one argument."""
    link = socket.socket(fileno=int(arguments[0]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its link
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the referees
    eco.names()  # read once for all referees: a PGN names its opening
    gc.freeze()  # what the imports left behind is little; to look for it takes 10 ms and more
    while True:
        words, descriptors, _, _ = socket.recv_fds(link, REQUEST_BYTES, 2)
        if not words:
            return 0
        pid = os.fork()
        if pid == 0:
            _be_referee(link, words.decode().split(), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        link.sendall(f"{pid}\n".encode())


def _be_referee(link: socket.socket, words: list[str], descriptors: list[int]) -> NoReturn:
    status = 1
    arguments = words[1:]
    try:
        link.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        link_end, dead_man_end = map(str, descriptors)
        status = process.main(["--link-fd", link_end, "--deadman-fd", dead_man_end, *arguments])
    except BaseException:  # the top of a process: nothing may return into the fork server
        with contextlib.suppress(OSError):
            traceback.print_exc()
    finally:
        os._exit(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
