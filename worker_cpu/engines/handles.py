"""The processes a link or a match starts: the fork server of referees, each game's dead man.

A referee is forked by the fork server; the dead man of an official game is started when the
attempt has its token and inherits the hall's lock. All of them end by themselves when
the process that started them is gone: they see the end of their pipes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.engines import sandbox
from worker_cpu.wire import frames

END_SECONDS = 10.0  # s: a dead man that kills and reaps needs milliseconds
MOST_TOGETHER = 16  # games of one referee's process: its memory and start are shared by then
START_SECONDS = 120.0  # s: for imports on a host that is overloaded; one that fails to start ends


@dataclasses.dataclass(frozen=True)
class Cores:
    """The logical CPUs of one game; an empty set means no binding.

    ``second`` are those of ``engines`` that one of the two has for itself, and the other has the
    rest: both think at the same time. Without them both have all.
    """

    referee: frozenset[int] = frozenset()
    engines: frozenset[int] = frozenset()
    second: frozenset[int] = frozenset()


ANYWHERE = Cores()
_Handle = TypeVar("_Handle")


class Child(Protocol):
    """A child process that has to be reaped."""

    @property
    def pid(self) -> int:
        """Return its process id."""

    def wait(self, timeout: float | None = None) -> int:
        """Reap it; raise ``subprocess.TimeoutExpired``."""

    def kill(self) -> None:
        """Kill it."""


class Watched(Child, Protocol):
    """A process that may be asked whether it still runs."""

    def poll(self) -> int | None:
        """Return ``None`` while it runs."""


class Forked:
    """A process that a fork server has forked: no child, the kernel reaps it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    def poll(self) -> int | None:
        """Return ``None`` while it runs."""
        return self._ended(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; raise ``subprocess.TimeoutExpired``."""
        ended = self._ended(timeout)
        if ended is None:
            raise subprocess.TimeoutExpired(["fork"], timeout or 0)
        return ended

    def kill(self) -> None:
        """Kill it."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    def _ended(self, timeout: float | None) -> int | None:
        if self._pidfd >= 0:
            poll = select.poll()
            poll.register(self._pidfd, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                return None
            os.close(self._pidfd)
            self._pidfd = -1
        return 0


def start_fork_server(theirs: socket.socket) -> Child:
    """Start a fork server, a program of its own, that serves this end of a socket pair."""
    return subprocess.Popen(
        [sys.executable, "-m", "worker_cpu.referee.forkserver", str(theirs.fileno())],
        pass_fds=(theirs.fileno(),),
        stdin=subprocess.DEVNULL,
    )


class ForkServer:
    """The process that forks a referee for each game; started again when it has ended.

    All its referees confine their engines in the same way.
    """

    def __init__(
        self,
        confinement: sandbox.Confinement | None = None,
        begin: Callable[[socket.socket], Child] = start_fork_server,
    ) -> None:
        """Start the process by ``begin``."""
        self._confinement, self._begin = confinement, begin
        self._start()

    def _start(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(START_SECONDS)
        with theirs:
            self._process = self._begin(theirs)

    def referee(self, cores: Cores = ANYWHERE) -> RefereeProcess:
        """Fork a referee; raise ``HostError`` when even a new fork server gives none."""
        return self.referees(1, cores)[0]

    def referees(self, games: int, cores: Cores = ANYWHERE) -> list[RefereeProcess]:
        """Fork one process that plays so many games at the same time, ``MOST_TOGETHER`` at most.

        Return who is spoken to for each. Raise ``HostError`` as ``referee``.
        """
        arguments = (
            "referee",
            *_cpu_option("--cpus", cores.referee),
            *_cpu_option("--engine-cpus", cores.engines - cores.second, cores.second),
            *(["--confine", self._confinement.encode()] if self._confinement else []),
        )
        for _ in range(2):
            ours, theirs = list[socket.socket](), list[socket.socket]()
            for _ in range(2 * games):  # to the link, to the dead man
                for ends, end in zip((ours, theirs), socket.socketpair(), strict=True):
                    ends.append(end)
            pid = self._ask(arguments, [end.fileno() for end in theirs])
            for end in theirs:
                end.close()
            if pid is not None:
                shared = Fork(pid, games)
                return [
                    RefereeProcess(shared, link, dead_man)
                    for link, dead_man in zip(ours[::2], ours[1::2], strict=True)
                ]
            for end in ours:
                end.close()
            self.end()
            self._start()
        raise errors.HostError("no referee can be started; see the worker's log")

    def supervisor(self, arguments: Sequence[str], descriptors: list[int]) -> Watched:
        """Fork a dead man; raise ``HostError`` when there is none."""
        return self._supervisor("supervisor", arguments, descriptors, Forked)

    def supervisors(self, arguments: Sequence[str], descriptors: list[int]) -> Fork:
        """Fork one process that is the dead man of several games; raise ``HostError``."""
        games = len(descriptors) // 2
        return self._supervisor("supervisors", arguments, descriptors, lambda pid: Fork(pid, games))

    def _supervisor(
        self,
        program: str,
        arguments: Sequence[str],
        descriptors: list[int],
        handle: Callable[[int], _Handle],
    ) -> _Handle:
        pid = self._ask((program, *arguments, "--link-pid", str(os.getpid())), descriptors)
        if pid is None:  # a late answer would be taken for that to the next question
            self.end()
            self._start()
        else:
            with contextlib.suppress(ProcessLookupError):  # it has ended already
                return handle(pid)
        raise errors.HostError("no dead man can be started; see the worker's log")

    def _ask(self, arguments: Sequence[str], descriptors: list[int]) -> int | None:
        try:
            socket.send_fds(self._socket, [contract.dumps(list(arguments)).encode()], descriptors)
            reply = self._socket.recv(64)
            self._socket.settimeout(END_SECONDS)  # it has imported all: a fork takes milliseconds
        except OSError:
            return None
        return int(reply) if reply else None

    def end(self) -> None:
        """Let the process end, and reap it."""
        self._socket.close()
        _reap(self._process)


class Fork:
    """A forked process for so many users; the last one that leaves waits for its end."""

    def __init__(self, pid: int, users: int) -> None:
        self.pid, self.pidfd = pid, os.pidfd_open(pid)
        self.shared, self._users = users > 1, users

    def leave(self) -> None:
        """Let a user go; a process that has none and does not end is killed."""
        self._users -= 1
        if self._users:
            return
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        if not poll.poll(END_SECONDS * 1000):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        os.close(self.pidfd)


class RefereeProcess:
    """A referee that waits for its order, and the channel to it.

    Its process may have others; then it ends with its channel, and the process with the last one.
    """

    def __init__(self, process: Fork, ours: socket.socket, dead_man_socket: socket.socket) -> None:
        self.pid, self._process = process.pid, process
        self._socket = ours
        self.channel = frames.Channel(ours)
        self.dead_man_socket = dead_man_socket

    def ended(self, timeout_seconds: float) -> bool:
        """Wait for its end up to a time; say whether it has come."""
        poll = select.poll()
        poll.register(self._process.pidfd, select.POLLIN)
        if self._process.shared:
            poll.register(self._socket, select.POLLRDHUP)
        return bool(poll.poll(timeout_seconds * 1000))

    def end(self) -> None:
        """Close the channel, which ends the referee; a process that does not hear it is killed."""
        self._socket.close()
        self.dead_man_socket.close()
        self._process.leave()


class DeadMan:
    """The process that owns the engines and outlives everything it watches."""

    def __init__(
        self,
        log: pathlib.Path,
        scratch: pathlib.Path,
        lock: int | None,
        limit_seconds: float,
        referee: RefereeProcess,
        fork_server: ForkServer | None = None,
    ) -> None:
        """Start it; forked where a fork server is given, else a program of its own."""
        reader, self._feed = os.pipe()
        held = () if lock is None else (lock,)
        descriptors = [reader, referee.dead_man_socket.fileno(), *held]
        arguments = ["--log", str(log), "--limit-ms", str(round(limit_seconds * 1000))]
        self._process: Watched
        try:
            if fork_server is not None:
                directory = ("--directory", str(scratch))
                self._process = fork_server.supervisor([*arguments, *directory], descriptors)
            else:
                self._process = _started(arguments, descriptors, scratch)
        except errors.HostError:
            self._close()
            raise
        finally:
            os.close(reader)
        referee.dead_man_socket.close()

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Say whether the dead man is gone."""
        return self._process.poll() is not None

    def feed(self, sent_ns: int) -> None:
        """Say when (CLOCK_BOOTTIME, ns) the last successful renewal was sent."""
        self._say(f"feed {sent_ns}\n")

    def kill(self, reason: str) -> None:
        """Let the dead man write down a reason and kill the engines."""
        self._say(f"kill {' '.join(reason.split())}\n")

    def end(self) -> None:
        """Let the dead man end after a finished game."""
        self._say("end\n")

    def wait(self) -> None:
        """Wait until no engine is left; a dead man that does not end is killed.

        Its engines then die with it: each asked the kernel for that at its start.
        """
        self._close()
        _reap(self._process)

    def _say(self, line: str) -> None:
        if self._feed >= 0:
            try:
                os.write(self._feed, line.encode())
            except BrokenPipeError:
                self._close()

    def _close(self) -> None:
        if self._feed >= 0:
            os.close(self._feed)
            self._feed = -1


class SharedDeadMan(DeadMan):
    """The dead man of one of several games, all of which one process looks after."""

    def __init__(self, process: Fork, feed: int) -> None:
        """Take the process, and this game's pipe to it."""
        self._fork, self._feed = process, feed

    @property
    def pid(self) -> int:
        """Return the process id, which the other games' dead men have as well."""
        return self._fork.pid

    @property
    def ended(self) -> bool:
        """Say whether this game's dead man is gone: then nobody reads its pipe."""
        return self._gone(0)

    def wait(self) -> None:
        """Wait until no engine of the game is left, with the last game for the process."""
        self.end()
        self._gone(END_SECONDS)
        self._close()
        self._fork.leave()

    def _gone(self, seconds: float) -> bool:
        if self._feed < 0:
            return True
        poll = select.poll()
        poll.register(self._feed, 0)
        return bool(poll.poll(seconds * 1000))


def dead_men(
    log: pathlib.Path,
    scratch: pathlib.Path,
    limit_seconds: float,
    referees: Sequence[RefereeProcess],
    fork_server: ForkServer,
) -> list[DeadMan]:
    """Fork one process that is the dead man of each referee's game; raise ``HostError``."""
    pipes = [os.pipe() for _ in referees]
    arguments = ["--log", str(log), "--limit-ms", str(round(limit_seconds * 1000))]
    descriptors = [
        fd
        for (reader, _), referee in zip(pipes, referees, strict=True)
        for fd in (reader, referee.dead_man_socket.fileno())
    ]
    try:
        process = fork_server.supervisors([*arguments, "--directory", str(scratch)], descriptors)
    except errors.HostError:
        for _, feed in pipes:
            os.close(feed)
        raise
    finally:
        for reader, _ in pipes:
            os.close(reader)
    for referee in referees:
        referee.dead_man_socket.close()
    return [SharedDeadMan(process, feed) for _, feed in pipes]


def _started(arguments: Sequence[str], descriptors: list[int], scratch: pathlib.Path) -> Watched:
    program = pathlib.Path(__file__).with_name("supervisor.py")
    options = ("--link-fd", "--referee-fd", "--lock-fd")
    descriptor_options = zip(options, map(str, descriptors), strict=False)
    return subprocess.Popen(
        [
            sys.executable,
            "-I",
            "-S",
            str(program),
            *arguments,
            *(word for pair in descriptor_options for word in pair),
        ],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        cwd=scratch,
    )


def boottime_ns() -> int:
    """Return the clock that also runs while the machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _cpu_option(name: str, *sets: frozenset[int]) -> list[str]:
    cpu_lists = "/".join(",".join(map(str, sorted(cpus))) for cpus in sets if cpus)
    return [name, cpu_lists] if cpu_lists else []


def _reap(process: Child) -> None:
    _await_end(process.pid)  # subprocess would look for it now and then, and sleep
    try:
        process.wait(0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _await_end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll(END_SECONDS * 1000)
        os.close(pidfd)
