"""The two processes the link starts for a game: the referee and the dead man.

The referee is started ahead of its game and waits; the dead man is started when the
attempt has its token and inherits the hall's lock. Both end by themselves when the link
is gone: they see the end of their pipes.
"""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import time

from worker_cpu import frames, settings

END_SECONDS = 10.0  # s: a dead man that kills and reaps needs milliseconds


class RefereeProcess:
    """A referee that waits for its order, and the channel to it."""

    def __init__(self, configured: settings.HallSettings) -> None:
        ours, theirs = socket.socketpair()
        self.dead_man_socket, referee_end = socket.socketpair()
        with theirs, referee_end:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "worker_cpu.referee"),
                    *("--link-fd", str(theirs.fileno())),
                    *("--deadman-fd", str(referee_end.fileno())),
                    *_cpu_option("--cpus", configured.referee_cpus),
                    *_cpu_option("--engine-cpus", configured.engine_cpus),
                ],
                pass_fds=(theirs.fileno(), referee_end.fileno()),
                stdin=subprocess.DEVNULL,
            )
        self.channel = frames.Channel(ours)
        self._socket = ours

    @property
    def alive(self) -> bool:
        """Say whether the process runs."""
        return self._process.poll() is None

    def end(self) -> None:
        """Close the channel, which ends the process, and reap it."""
        self._socket.close()
        self.dead_man_socket.close()
        _reap(self._process)


class DeadMan:
    """The process that owns the engines and outlives everything it watches."""

    def __init__(
        self,
        log: pathlib.Path,
        scratch: pathlib.Path,
        lock: int,
        limit_seconds: float,
        referee: RefereeProcess,
    ) -> None:
        reader, self._feed = os.pipe()
        program = pathlib.Path(__file__).with_name("deadman.py")
        try:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(program)),
                    *("--link-fd", str(reader), "--lock-fd", str(lock)),
                    *("--referee-fd", str(referee.dead_man_socket.fileno())),
                    *("--log", str(log), "--limit-ms", str(round(limit_seconds * 1000))),
                ],
                pass_fds=(reader, lock, referee.dead_man_socket.fileno()),
                stdin=subprocess.DEVNULL,
                cwd=scratch,
            )
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


def boottime_ns() -> int:
    """Return the clock that also runs while the machine sleeps."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _cpu_option(name: str, cpus: frozenset[int]) -> list[str]:
    return [name, ",".join(map(str, sorted(cpus)))] if cpus else []


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
