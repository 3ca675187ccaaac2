"""A farm to be broken: its parts in namespaces of their own, Redis with a clock and a disk.

As root the orchestrator, Redis and the hall live in three network namespaces and Redis'
data on a small tmpfs; else all talk through one unix socket and the faults that need root
are left out. The clocks of Redis, `serve` and the hall are `skew.c`'s. What the tests look at
Redis with is its unix socket, which no fault of the network reaches.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import aof
import harness
import namespaces
import redis

from orchestrator.common import errors
from orchestrator.ledger import embedded_redis, keys, store
from orchestrator.ops import supervisor
from orchestrator.serve import season
from worker_cpu import settings

SKEW = pathlib.Path(__file__).with_name("skew.c")
SKEW_BYTES = 8  # of the number that it reads
DISK_MB = 256  # the tmpfs while it is not full; only what is written takes memory
LEASES = {  # what FARM_CHAOS_LEASE names
    "short": harness.LEASE,
    "production": {
        "FARM_BEAT_SECONDS": str(settings.BEAT_SECONDS),
        "FARM_DEAD_MAN_SECONDS": str(settings.DEAD_MAN_SECONDS),
        "FARM_LEASE_SECONDS": str(settings.LEASE_SECONDS),
    },
}
SKEWED = (
    "redis",
    "serve",
    "worker",
)  # whose clocks can go wrong, the worker's for all that it starts
LOOK_SECONDS = 60.0  # s: so soon `serve` has compared every journal, on a busy machine
RETURN_SECONDS = 30.0  # s: a lost host comes back so long after its lease, revoked or not
SEASON = """schema = 1
id = "test"
name = "Chaos"
hold_after_attempts = 1000
[books.b]
file = "{book}"
repeat = true
[roster]
{roster}
[[event]]
id = "league"
name = "League"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = "roster"
time_control = "90s+1s"
book = "b"
{promotion}
"""
FINAL = """
[[event]]
id = "final"
name = "Final"
format = { kind = "match", games = 4 }
time_control = "90s+1s"
book = "b"
"""


class Stage(harness.Farm):
    """A farm whose hosts, links, disk and clock can be broken."""

    def __init__(self, root: pathlib.Path) -> None:
        lease = LEASES[os.environ.get("FARM_CHAOS_LEASE", "short")]
        super().__init__(root, lease)
        self.lease_seconds = float(lease["FARM_LEASE_SECONDS"])
        self.season = ""  # the one that a storm strikes
        self.mischief = root / "mischief"  # what the engines are to do beside playing
        self.unpoisoned = ""  # a season that is to get a poisoned entry
        self.restored = 0.0  # monotonic second at which all that had ended was there again
        self._host_lost = False
        self.rooted = namespaces.available()
        self.skews = shutil.which("gcc") is not None  # skew.c is compiled
        self._made = contextlib.ExitStack()
        self.nets = namespaces.Namespaces()
        self.socket = root / "proxy.sock"
        self.spool = root / "halls" / harness.HALL / "spool"
        self.attempts = root / "halls" / harness.HALL / "attempts"
        self._disk = root / "redis"
        self.redis = harness.Redis(self._disk, binary=root / "redis-server")

    # -- start and end -----------------------------------------------------------------

    def start(self) -> None:
        """Make the hosts and start everything."""
        if self.rooted:
            self._made.callback(self.nets.remove)
            self.nets.make()
            self._mount()
        self.mischief.touch()
        for name in SKEWED:
            self._clock(name).write_bytes(bytes(SKEW_BYTES))
        if self.skews:
            command = ["gcc", "-O2", "-shared", "-fPIC", "-o", str(self._skewing), str(SKEW)]
            subprocess.run(command, check=True)
        self._write_server()
        self._made.callback(self.redis.stop)
        self.redis.start()
        self.address = self.redis.url  # also while it is away
        self.ledger = store.connect(self.address)
        self._made.callback(self.ledger.close)
        self.proxy = self._process("proxy", self._proxy_command(), namespaces.HALL)
        serve = supervisor.serve_command()
        self.serve = self._process("serve", serve, namespaces.SERVE, "orchestrator")
        worker = supervisor.worker_command(harness.HALL)
        self.worker = self._process("worker", worker, namespaces.HALL)
        for process in (self.proxy, self.serve, self.worker):
            self._made.callback(process.kill)
            process.start()

    def stop(self) -> None:
        """End everything, and remove what was made of the machine."""
        self._made.close()

    def _mount(self) -> None:
        """Put Redis' data on a file system of its own."""
        self._disk.mkdir(mode=0o700)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "farm-chaos"]
        subprocess.run([*mount, str(self._disk)], check=True)
        self._made.callback(subprocess.run, ["umount", str(self._disk)], check=False)

    def keep_alive(self) -> None:
        """Start again whatever has ended, but nothing on a host that is lost."""
        living = [self.proxy, self.serve, *([] if self._host_lost else [self.worker])]
        ended = [process for process in living if not process.running]
        redis_pid = self.redis_pid()
        without_redis = redis_pid is None or not harness.alive(redis_pid)
        for process in ended:
            process.start()
        if without_redis:  # a frozen one does not answer, and a start would end it
            with contextlib.suppress(errors.HostError):
                self.redis.start()
        if ended or without_redis:
            self.restored = time.monotonic()

    def redis_pid(self) -> int | None:
        """Return the process id of Redis, None when it has just ended or is not there yet."""
        with contextlib.suppress(FileNotFoundError, ValueError):
            return self.redis.pid
        return None

    def _write_server(self) -> None:
        """Write the program that is Redis here: the server, its clock, its namespace."""
        server = embedded_redis.find_server()[0]
        words = [str(server), '"$@"', *self.redis.options]
        if self.rooted:
            within = self.nets.within(namespaces.REDIS)
            words = [*within, *words, f"--port {namespaces.PORT} --protected-mode no"]
        clock = self._skewed("redis").items()
        lines = ["#!/bin/sh", *(f"export {name}={shlex.quote(value)}" for name, value in clock)]
        program = self.root / "redis-server"
        program.write_text("\n".join([*lines, f"exec {' '.join(words)}", ""]))
        program.chmod(0o755)

    def _process(
        self, name: str, command: list[str], host: str, user: str = "worker"
    ) -> supervisor.Supervised:
        url = self._url(host, user)
        environment = supervisor.environment(url, self.root, harness.HALL) | self._extra
        environment |= self._skewed(name)
        within = self.nets.within(host) if self.rooted else []
        log = self.root / "logs" / f"{name}.log"
        return supervisor.Supervised(name, [*within, *command], environment, log)

    def _url(self, host: str, user: str) -> str:
        if not self.rooted:
            return self.redis.url_of(user)
        return self.redis.as_user(self.nets.url(host), user)

    def _proxy_command(self) -> list[str]:
        program = pathlib.Path(__file__).with_name("lossy_proxy.py")
        address = f"{self.nets.redis_address(namespaces.HALL)}:{namespaces.PORT}"
        upstream = address if self.rooted else str(self.redis.socket)
        return [sys.executable, str(program), str(self.socket), upstream]

    def use_proxy(self, *, wanted: bool) -> None:
        """Let the hall reach Redis through the proxy, or no more; restarts its worker."""
        proxied = self.redis.as_user(f"unix://{self.socket}", "worker")
        url = proxied if wanted else self._url(namespaces.HALL, "worker")
        self.worker.stop(20)
        self.worker.environment = {**self.worker.environment, "FARM_REDIS_URL": url}
        self.worker.start()

    # -- what can be broken --------------------------------------------------------------

    def fill_disk(self) -> None:
        """Take away every free page of Redis' disk."""
        while True:  # what Redis writes meanwhile makes the size too small
            with contextlib.suppress(subprocess.CalledProcessError):
                self._resize(str(shutil.disk_usage(self._disk).used))
                return

    def empty_disk(self) -> None:
        """Give Redis' disk its room again."""
        self._resize(f"{DISK_MB}m")

    def _resize(self, size: str) -> None:
        command = ["mount", "-o", f"remount,size={size}", str(self._disk)]
        subprocess.run(command, check=True, capture_output=True)

    def skew(self, name: str, seconds: int) -> None:
        """Let a process' time of day go wrong by so many seconds, its monotonic clock right."""
        with self._clock(name).open("r+b") as clock:  # which is mapped, so it stays that file
            clock.write(seconds.to_bytes(SKEW_BYTES, sys.byteorder, signed=True))

    def skewed(self, name: str) -> bool:
        """Say whether a process' time of day is wrong."""
        return any(self._clock(name).read_bytes())

    def _clock(self, name: str) -> pathlib.Path:
        return self.root / f"{name}-clock"

    @property
    def _skewing(self) -> pathlib.Path:
        return self.root / "skew.so"

    def _skewed(self, name: str) -> dict[str, str]:
        """Return the environment of a process whose clock can go wrong."""
        if name not in SKEWED or not self.skews:
            return {}
        return {"LD_PRELOAD": str(self._skewing), "SKEW_FILE": str(self._clock(name))}

    def roll_back(self, entries: int) -> bool:
        """Let Redis come back without the season's last entries; False if that cannot be."""
        pid = self.redis_pid()
        if pid is None or not harness.kill(pid, signal.SIGKILL):
            return False
        while harness.alive(pid):
            time.sleep(0.002)
        gone = aof.cut(self._disk, self.season, entries)
        self.keep_alive()
        return gone == entries

    def put_right(self) -> None:
        """Do what an operator does: read `farm status`, and restore if it says so."""
        if not self._is_alarmed():
            return  # `serve` had not seen what was lost, so nothing is missing
        status = self._operated("status")
        assert status.returncode == 3, status.stdout + status.stderr + self.serve.log_tail()
        assert "farm restore" in status.stdout, status.stdout
        self.serve.stop(20)
        done = self._operated("restore", "--reason", "chaos")
        refused = f"NOT RESTORED, {self.season}:" in done.stdout  # a poisoned one is, rightly
        assert done.returncode in {0, 3}, done.stdout + done.stderr
        assert "restored; epoch" in done.stdout, done.stdout + done.stderr
        assert not refused, done.stdout
        self.serve.start()
        self.restored = time.monotonic()

    def _operated(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program `farm` as an operator does."""
        command = [str(pathlib.Path(sys.executable).with_name("farm")), *words]
        environment = self.environment(harness.OPERATOR)
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=180, check=False
        )

    def alarms(self) -> dict[str, str]:
        """Return what `serve` finds wrong; nothing while Redis is away."""
        with contextlib.suppress(errors.LedgerAwayError):
            return self.ledger.alarms()
        return {}

    def _is_alarmed(self) -> bool:
        """Wait until `serve` has compared the season in the Redis that runs, or found it wrong.

        An alarm of an earlier loss may have come back with the Redis that was rolled back, where
        the end of that alarm was cut away; so they are deleted: each pass of `serve` sets them.
        """
        fresh, ends = False, time.monotonic() + LOOK_SECONDS
        while time.monotonic() < ends:
            self.keep_alive()
            away = (errors.LedgerAwayError, redis.RedisError, FileNotFoundError)
            with contextlib.suppress(*away), self._client() as client:
                if not fresh:
                    client.delete(keys.Keys().alarms)
                    fresh = True
                marked = client.hget(keys.Keys().checked, self.season)
                run_id = client.info("server")["run_id"]
                last = self.ledger.last(self.season)
                if season.RESTORE in self.ledger.alarms().get(self.season, ""):
                    return True
                if marked == run_id and last and self.ledger.mirrored(self.season) >= last - 2:
                    return False
            time.sleep(0.05)
        raise AssertionError(f"serve has not looked for {LOOK_SECONDS} s: {self.serve.log_tail()}")

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self.address, socket_timeout=5, decode_responses=True)

    def lose_replies(self, way: str) -> None:
        """Let the proxy lose replies: ``close``, ``silence``, a command's alone, '' for no more."""
        path = pathlib.Path(f"{self.socket}.lose")
        if way:
            path.write_text(way)
        else:
            path.unlink(missing_ok=True)

    def lose_host(self) -> None:
        """End all that runs on the hall's host; nobody hears of it, nothing is started again."""
        self._host_lost = True
        if self.rooted:
            self.nets.cut(namespaces.HALL)
        for number in (signal.SIGSTOP, signal.SIGKILL):  # the first, so that none sees another end
            for pid in [self.worker.pid, *harness.descendants(self.worker.pid)]:
                harness.kill(pid, number)

    def regain_host(self, attempt: str) -> None:
        """Let the hall's host come back, when the lease of its lost attempt has been revoked."""
        ends = time.monotonic() + self.lease_seconds + RETURN_SECONDS
        while self._holds(attempt) and time.monotonic() < ends:
            self.keep_alive()
            time.sleep(0.05)
        if self.rooted:
            self.nets.join(namespaces.HALL)
        self._host_lost = False

    def _holds(self, attempt: str) -> bool:
        with contextlib.suppress(errors.LedgerAwayError):
            slot = self.ledger.slot(harness.HALL)
            return slot is not None and slot.attempt == attempt
        return True

    def purge_queues(self) -> int:
        """Delete all that waits in the doorbells' queues; return how many keys that were."""
        with redis.Redis.from_url(self.address, socket_timeout=5) as client:
            names = [name for name in client.scan_iter("farm:celery:*") if b"binding" not in name]
            return int(client.delete(*names)) if names else 0

    # -- what is seen --------------------------------------------------------------------

    def moves(self) -> dict[str, int]:
        """Return the bytes of each attempt's ply log on the hall's disk."""
        found = {}
        for path in self.attempts.glob("*.plies.jsonl"):
            with contextlib.suppress(FileNotFoundError):
                found[path.name] = path.stat().st_size
        return found

    def season_file(self, *, final: bool = True, delay_ms: int = 0) -> pathlib.Path:
        """Write the season of a storm; without gates, whose times a stepped clock would move."""
        words = ["--fault", f"mischief:{self.mischief}"]
        words += ["--delay-ms", str(delay_ms)] if delay_ms else []
        roster = harness.roster(harness.scripted(self.life, number, *words) for number in range(4))
        promotion = 'promote = [{ top = 2, to = "final" }]' if final else ""
        book = harness.launch.SEASONS / "books" / "demo.pgn"
        text = SEASON.format(book=book, roster="\n".join(roster), promotion=promotion)
        path = self.root / f"season-{final}.toml"
        path.write_text(text + (FINAL if final else ""), encoding="utf-8")
        return path


@contextlib.contextmanager
def built() -> Iterator[Stage]:
    """Run a stage for the length of a block, in a directory with a short path."""
    root = pathlib.Path(tempfile.mkdtemp(prefix="farm-chaos-"))
    stage = Stage(root)
    try:
        stage.start()
        yield stage
    finally:
        stage.stop()
        if not os.environ.get("FARM_CHAOS_KEEP"):
            shutil.rmtree(root, ignore_errors=True)
