"""The farm's processes on one machine: how each is started, kept alive and ended.

``farm up`` and the tests start the same programs the systemd units start. Each runs in
a session of its own, so that a Ctrl-C in the terminal reaches only ``farm up``, which
ends them by their process id.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Final

from orchestrator.common import errors
from orchestrator.contract import bells

RESTARTS = 5  # in RESTART_WINDOW_SECONDS: more is a fault of the host, not of the day
RESTART_WINDOW_SECONDS = 60.0
LOG_TAIL_LINES = 15
LOG_BYTES = 32 << 20  # of a log, before it is put aside
LOGS_KEPT = 3  # beside the one that is written: a season of months leaves no more
LANE = re.compile(
    r"(?P<name>[a-zA-Z0-9-]+)=(?P<cores>[0-9,-]+)(:(?P<memory>[0-9]+))?(:(?P<boxes>[a-zA-Z_][\w.,-]*))?"
)
RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_SERVE_WEB: Final = (sys.executable, "-m", "celery", "-A", "orchestrator", "farm", "serve-web")


def serve_command() -> list[str]:
    """Return the command line of the orchestrator's loop."""
    return [sys.executable, "-m", "celery", "-A", "orchestrator", "farm", "serve"]


def keep_command(parent: int) -> list[str]:
    """Return the command line of what keeps submitted test matches, and ends with its parent.

    It looks for itself: setpriv sets capabilities, which the unit of ``farm serve`` denies.
    """
    command = (sys.executable, "-m", "celery", "-A", "orchestrator", "farm", "keep-tests")
    return [*command, "--parent", str(parent)]


def web_command(host: str, port: int) -> list[str]:
    """Return the command line of the live page and the feeds."""
    return [*_SERVE_WEB, "--host", host, "--port", str(port)]


def web_on_socket(listening: socket.socket) -> list[str]:
    """Return the same for a socket that listens already and is inherited by the process."""
    return [*_SERVE_WEB, "--fd", str(listening.fileno())]


def worker_command(hall: str, lane: str = "") -> list[str]:
    """Return the command line of a hall's or lane's worker: prefork, one game, no prefetch."""
    worker = f"{hall}.{lane}" if lane else hall
    return [
        *(sys.executable, "-m", "celery", "-A", "orchestrator", "worker"),
        *("--pool", "prefork", "--concurrency", "1", "--include", "worker_cpu.tasks"),
        *("--queues", bells.queue(worker), "--hostname", f"{worker}@%h"),
        *("--without-gossip", "--without-mingle"),
        *("--loglevel", os.environ.get("FARM_LOG_LEVEL", "INFO")),
    ]


def box_command(box: str) -> list[str]:
    """Return the command line of a GPU box's worker: it plays nothing, so one process will do."""
    return [
        *(sys.executable, "-m", "celery", "-A", "orchestrator", "worker"),
        *("--pool", "solo", "--include", "worker_gpu.tasks"),
        *("--queues", bells.box_queue(box), "--hostname", f"{box}@%h"),
        *("--without-gossip", "--without-mingle"),
        *("--loglevel", os.environ.get("FARM_LOG_LEVEL", "INFO")),
    ]


def environment(redis_url: str, data: pathlib.Path, hall: str) -> dict[str, str]:
    """Return the environment of the farm's processes; this Python's programs are on PATH."""
    programs = pathlib.Path(sys.executable).parent
    path = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath), "/usr/games"])
    return {
        **os.environ,
        "PATH": path,
        "FARM_REDIS_URL": redis_url,
        "FARM_DATA": str(data),
        "FARM_HALL": hall,
    }


def lane(text: str, worker: Supervised, hall: str) -> Supervised:
    """Return the worker of a lane beside a hall's worker, not started yet.

    Raise ``UsageError`` for a text that is no lane of this machine (``lane_of``).
    """
    match = lane_of(text)
    name, cores, memory = match.group("name"), match.group("cores"), match.group("memory")
    own = {"FARM_LANE": name, "FARM_ENGINE_CPUS": cores, "FARM_LANE_MEMORY_MB": memory or ""}
    own["FARM_LANE_BOXES"] = match.group("boxes") or ""
    log = worker.log.with_name(f"worker-{hall}.{name}.log")
    return Supervised(
        f"lane {name}",
        worker_command(hall, name),
        {**worker.environment, **own},
        log,
        bound=worker.bound,
    )


def lane_of(text: str) -> re.Match[str]:
    """Read NAME=CORES[:MB][:BOXES], as ``b=2-3:4096`` or ``b=2:gpu-1``.

    Raise ``UsageError`` for anything else, and for cores that this process may not use.
    """
    match = LANE.fullmatch(text)
    if match is None:
        allowed = "NAME=CORES[:MB][:BOXES], as b=2-3:4096 or b=2:gpu-1"
        raise errors.UsageError(f"--lane: found {text!r}; allowed: {allowed}")
    cores = f"--lane {match['name']}: found cores {match['cores']}"
    ranges = [RANGE.fullmatch(part) for part in match["cores"].split(",")]
    ends = [(int(part[1]), int(part[2] or part[1])) for part in ranges if part is not None]
    if None in ranges or any(first > last for first, last in ends):
        raise errors.UsageError(f"{cores}; allowed: a list such as 0-3,8")
    here = os.sched_getaffinity(0)
    if not here.issuperset(itertools.chain(*ends)):
        own = ",".join(map(str, sorted(here)))
        raise errors.UsageError(f"{cores}; allowed: those of this machine, {own}")
    return match


def _leash() -> list[str]:
    """Return util-linux' words that bind a command to who starts it; [] where they are not."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "TERM", "--"] if setpriv else []


@dataclasses.dataclass
class Supervised:
    """A process that is started again when it ends, until it is stopped.

    It inherits ``sockets``, each time: who waits at one meanwhile is served afterwards. One that
    is ``bound`` gets a SIGTERM when the thread that started it is no more, however it ended.
    """

    name: str
    command: list[str]
    environment: Mapping[str, str]
    log: pathlib.Path
    sockets: tuple[socket.socket, ...] = ()
    bound: bool = False
    process: subprocess.Popen[bytes] | None = None
    started: list[float] = dataclasses.field(default_factory=list)

    def start(self) -> None:
        """Start the process; its output goes to the end of its log file."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*(_leash() if self.bound else ()), *self.command],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=[listening.fileno() for listening in self.sockets],
            )
        self.started.append(time.monotonic())

    @property
    def pid(self) -> int:
        """Return the process id; the process must have been started."""
        assert self.process is not None
        return self.process.pid

    @property
    def running(self) -> bool:
        """Say whether the process is alive."""
        return self.process is not None and self.process.poll() is None

    def rotate(self) -> None:
        """Put a log that has grown large aside; the process writes on at the file's new end."""
        try:
            if self.log.stat().st_size < LOG_BYTES:
                return
        except FileNotFoundError:
            return
        for number in range(LOGS_KEPT - 1, 0, -1):
            older = self.log.with_name(f"{self.log.name}.{number}")
            if older.exists():
                older.replace(self.log.with_name(f"{self.log.name}.{number + 1}"))
        # The process holds the file open for appending, so it is copied and emptied, not renamed.
        shutil.copyfile(self.log, self.log.with_name(f"{self.log.name}.1"))
        os.truncate(self.log, 0)

    def keep_alive(self) -> bool:
        """Start the process again if it has ended, and say so.

        Raise ``HostError`` if it keeps ending.
        """
        self.rotate()
        if self.running:
            return False
        recent = [t for t in self.started if t > time.monotonic() - RESTART_WINDOW_SECONDS]
        if len(recent) > RESTARTS:
            raise errors.HostError(
                f"{self.name} ended {len(recent)} times within a minute; its log"
                f" {self.log} ends with:\n{self.log_tail()}"
            )
        self.start()
        return True

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process if it is alive."""
        if self.running:
            os.kill(self.pid, number)

    def stop(self, timeout_seconds: float) -> None:
        """End the process by SIGTERM, and by SIGKILL when that takes too long."""
        self.signal(signal.SIGTERM)
        self.wait(timeout_seconds)
        self.kill()

    def wait(self, timeout_seconds: float) -> bool:
        """Wait for the end of the process; say whether it has ended."""
        if self.process is None:
            return True
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End the process by SIGKILL and reap it."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def log_tail(self) -> str:
        """Return the last lines of the process' log."""
        try:
            lines = self.log.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return ""
        return "\n".join(lines[-LOG_TAIL_LINES:])
