"""A farm for tests: real Redis, real ``serve``, a real Celery worker, scripted engines.

Redis is what the farm's hosts run: the system's redis-server with the users of ``farm acl`` and no
default user. ``FARM_TEST_REDIS=embedded`` takes the one of ``farm up``, as does a machine without
redis-server; ``FARM_TEST_REDIS=debian`` never takes another than the system's, whatever is faked.
Everything lives below one directory and is ended by process id. Leases are shortened so
that hours show up in seconds; the order beat < dead man < lease stays.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import pathlib
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import click.testing
import pytest
import redis
import rich.console
from celery import platforms

from orchestrator import commands, contract
from orchestrator.arbiter import game_zip, record, verdict
from orchestrator.commands import launch, up_screen
from orchestrator.common import errors, processor
from orchestrator.ledger import api, embedded_redis, keys, store
from orchestrator.ops import acl, supervisor
from orchestrator.season.file import load
from orchestrator.season.fold import state
from orchestrator.serve import loop

PROGRAM = pathlib.Path(sys.executable).with_name("farm")
ENGINE = pathlib.Path(__file__).parent / "engines" / "scripted.py"
EPHEMERAL = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")  # of outgoing connections
HALL = "hall-1"
WORKER = f"{HALL}@{socket.gethostname()}"  # as Celery names it
CORES = sorted(os.sched_getaffinity(0))  # not all of the machine's need be ours
OPERATOR = "anna"  # who gives the commands
TEST_REDIS = os.environ.get("FARM_TEST_REDIS", "users")  # or debian, or embedded
BUSY = 3  # times as long as on a free machine may anything take that has to happen
ANSWER_SECONDS = "3"  # how long Celery's commands collect answers; a worker needs milliseconds
LEASE = {"FARM_BEAT_SECONDS": "0.3", "FARM_DEAD_MAN_SECONDS": "2", "FARM_LEASE_SECONDS": "3"}
# Where nobody is to be lost: a busy machine's pauses are far from an interruption.
CALM = {"FARM_BEAT_SECONDS": "0.3", "FARM_DEAD_MAN_SECONDS": "40", "FARM_LEASE_SECONDS": "60"}


def pinned(engines: int) -> dict[str, str]:
    """Return the settings of a hall whose referee has one core and whose engines others."""
    cores = ",".join(map(str, CORES[1 : 1 + engines]))
    return {"FARM_REFEREE_CPUS": str(CORES[0]), "FARM_ENGINE_CPUS": cores}


class Redis(embedded_redis.EmbeddedRedis):
    """A Redis with the farm's users, and no default user, unless the tests ask for the embedded."""

    def __init__(
        self,
        data_dir: pathlib.Path,
        binary: pathlib.Path | None = None,
        server: pathlib.Path | None = None,
    ) -> None:
        """Write its users down; ``binary`` is given the ``options`` by whoever writes it.

        ``server``: another one than the system's.
        """
        self.users = TEST_REDIS != "embedded" and shutil.which("redis-server") is not None
        self.options: tuple[str, ...] = ()
        if self.users:
            file = data_dir.absolute().with_suffix(".acl")
            file.parent.mkdir(parents=True, exist_ok=True)
            names = [*(role for role in acl.ROLES if role != "operator"), OPERATOR]
            passwords = {name: [_password(name)] for name in names}
            file.write_text(acl.acl_file(acl.users(passwords, [OPERATOR])))
            self.options = ("--aclfile", str(file))
            found = server or embedded_redis.find_server()[0]
            binary = binary or self._write_program(file.with_suffix(".program"), found)
        super().__init__(data_dir, binary or server)

    def need_users(self) -> None:
        """Skip the test where there are none, and each who acts is ``default``."""
        if not self.users:
            pytest.skip("the embedded Redis has no users")

    def upgrade(self, server: pathlib.Path) -> None:
        """Let its next start be one of another server, on the same data."""
        if self.users:
            self._write_program(self.data_dir.absolute().with_suffix(".program"), server)

    def _write_program(self, path: pathlib.Path, server: pathlib.Path) -> pathlib.Path:
        path.write_text(f'#!/bin/sh\nexec {server} "$@" {shlex.join(self.options)}\n')
        path.chmod(0o755)
        return path

    @property
    def url(self) -> str:
        """Return the address of the tests' own hands: who may do everything."""
        return self.url_of("admin")

    def url_of(self, user: str) -> str:
        """Return a user's address."""
        return self.as_user(super().url, user)

    def as_user(self, url: str, user: str) -> str:
        """Return an address with name and password of a user, where there are users."""
        if not self.users:
            return url
        if url.startswith("unix://"):
            words = {"username": user, "password": _password(user)}
            return f"{url}?{urllib.parse.urlencode(words)}"
        return url.replace("://", f"://{user}:{_password(user)}@", 1)

    def cli(self, user: str, *words: str) -> subprocess.CompletedProcess[str]:
        """Give Redis' own program a command as a user, where there are users."""
        who = ("--user", user) if self.users else ()
        return subprocess.run(
            ["redis-cli", "-e", "-s", str(self.socket), *who, *words],
            env=os.environ | ({"REDISCLI_AUTH": _password(user)} if self.users else {}),
            capture_output=True,
            text=True,
            check=False,
        )


def _password(user: str) -> str:
    return f"{user}-password"


class Farm:
    """A farm below ``root``; its processes are public, so that tests can end them."""

    def __init__(self, root: pathlib.Path, extra: dict[str, str] | None = None) -> None:
        self.root = root
        self.archive = root / "archive"
        self.life = root / "life.jsonl"
        self.redis = Redis(root / "redis")
        self._extra = {**LEASE, "FARM_LOG": "json", **(extra or {})}

    def start(self) -> None:
        """Start all."""
        self.redis.start()
        self.ledger = store.connect(self.redis.url)
        logs = self.root / "logs"
        self.serve = supervisor.Supervised(
            "serve",
            supervisor.serve_command(),
            self.environment("orchestrator"),
            logs / "serve.log",
        )
        self.worker = supervisor.Supervised(
            "worker",
            supervisor.worker_command(HALL),
            self.environment("worker"),
            logs / "worker.log",
        )
        self.serve.start()
        self.worker.start()

    def environment(self, user: str) -> dict[str, str]:
        """Return the environment of a process that is a user of this farm's Redis."""
        return supervisor.environment(self.redis.url_of(user), self.root, HALL) | self._extra

    def stop(self) -> None:
        """End all, whatever state it is in."""
        if "COVERAGE_PROCESS_CONFIG" in os.environ:  # what is killed does not say what it has run
            self.worker.stop(20)
            self.serve.stop(20)
        self.worker.kill()
        self.serve.kill()
        self.ledger.close()
        self.redis.stop()

    def operate(self, *words: str) -> str:
        """Run a command as this farm's operator does; return what it prints."""
        done = run_farm(self.environment(OPERATOR), *words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def second_worker(self, data: pathlib.Path) -> supervisor.Supervised:
        """Start a worker of the same hall that has another directory, so another lock."""
        environment = dict(self.worker.environment) | {"FARM_DATA": str(data)}
        worker = supervisor.Supervised(
            "intruder", supervisor.worker_command(HALL), environment, data / "worker.log"
        )
        worker.start()
        return worker

    def delete_slot(self) -> None:
        """Break the fence: take the slot away behind the scripts' back."""
        with redis.Redis.from_url(self.redis.url) as client:
            client.delete(keys.Keys().slot(HALL))

    def keep_alive(self) -> None:
        """Do what systemd does on the hosts: start again whatever has ended."""
        for process in (self.serve, self.worker):
            if not process.running:
                process.start()
        with contextlib.suppress(errors.HostError):
            self.redis.start()

    def launch(self, file: pathlib.Path, season: str, seed: str = "00") -> None:
        """Launch a season file under an id."""
        launch.start(self.ledger, load.load(file), season, HALL, seed, "test")

    def state(self, season: str) -> state.SeasonState:
        """Fold a season's journal."""
        folded = state.SeasonState()
        self.fold(season, folded)
        return folded

    def fold(self, season: str, folded: state.SeasonState) -> None:
        """Bring a fold of a season's journal up to date."""
        while entries := self.ledger.read(season, folded.seq):
            for entry in entries:
                folded.apply(entry)

    def finish(self, season: str, seconds: float = 120.0) -> state.SeasonState:
        """Wait until a season is over and archived; fail with the logs when it takes too long."""
        folded = state.SeasonState()  # read on, not again from its beginning at each look

        def over() -> bool:
            self.fold(season, folded)
            return folded.finished and self.ledger.mirrored(season) == folded.seq

        self.wait(over, seconds, f"the end of season {season}")
        return folded

    def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition while the processes are kept alive.

        ``seconds`` is far beyond what it takes on a free machine; a busy one gets ``BUSY`` times
        as long.
        """
        deadline = time.monotonic() + BUSY * seconds
        while not self._so(condition):
            if time.monotonic() > deadline:
                tails = f"{self.serve.log_tail()}\n--\n{self.worker.log_tail()}"
                raise AssertionError(f"waited {BUSY * seconds:g} s for {what}; logs:\n{tails}")
            self.keep_alive()
            time.sleep(0.05)

    @staticmethod
    def _so(condition: Callable[[], bool]) -> bool:
        """Say whether a condition is so; while Redis is away, or starved, nothing is."""
        with contextlib.suppress(errors.LedgerUnreachableError):
            return condition()
        return False


@contextlib.contextmanager
def running(root: pathlib.Path, extra: dict[str, str] | None = None) -> Iterator[Farm]:
    """Run a farm for the length of a block; its leases are ``CALM``."""
    farm = Farm(root, CALM | (extra or {}))
    farm.start()
    try:
        yield farm
    finally:
        farm.stop()


def serve_once(ledger: store.RedisLedger, archive: pathlib.Path) -> None:
    """Let a ``serve`` that remembers nothing make one pass; it rings nobody."""
    server = loop.Server(ledger, archive, lambda _: None)
    server.once()
    server.close()


def farm(*words: str, code: int = 0, env: Mapping[str, str] | None = None) -> str:
    """Run a command of the farm in this process and return what it says, in any case."""
    done = click.testing.CliRunner().invoke(commands.farm, words, env=env)
    assert done.exit_code == code, done.output
    return done.output


def run_farm(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run the program ``farm`` in a process of its own: at half the cost of Celery's."""
    return run([str(PROGRAM), *words], environment)


def celery_farm(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``celery -A orchestrator farm …`` in a process of its own."""
    return celery(environment, "farm", *words)


def celery(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``celery -A orchestrator …`` in a process of its own."""
    return run([sys.executable, "-m", "celery", "-A", "orchestrator", *words], environment)


def run(command: Iterable[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        list(command),
        env=dict(environment),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def answered(
    environment: Mapping[str, str], *words: str, to: str | None = WORKER
) -> subprocess.CompletedProcess[str]:
    """Ask a worker by a command of Celery's remote control until it has answered.

    Asked of all (``to`` is None), Celery collects answers until its time-out, however soon they
    come: a patient question is a short one that is asked again.
    """
    whom = ("--destination", to) if to else ()

    def asked() -> subprocess.CompletedProcess[str]:
        return celery(environment, *words, *whom, "--timeout", ANSWER_SECONDS)

    deadline = time.monotonic() + BUSY * 60
    while (done := asked()).returncode == platforms.EX_UNAVAILABLE:
        if time.monotonic() > deadline:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def without_farm() -> dict[str, str]:
    """Return this process' environment without what it says of a farm."""
    return {key: value for key, value in os.environ.items() if not key.startswith("FARM_")}


# -- season files ------------------------------------------------------------------


def scripted(farm_life: pathlib.Path, strength: int, *extra: str) -> dict[str, Any]:
    """Return the roster entry of a scripted engine that records its life."""
    name = f"Scripted {strength}"
    return {
        "id": f"scripted-{strength}",
        "name": name,
        "command": [
            *(sys.executable, str(ENGINE), "--strength", str(strength), "--name", name),
            *("--life", str(farm_life), *extra),
        ],
    }


def roster(engines: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of a season file that list these entries."""
    rows = []
    for engine in engines:
        rows += ["[[roster.engine]]", *(f"{key} = {json.dumps(engine[key])}" for key in engine)]
    return rows


def league(
    path: pathlib.Path,
    engines: list[dict[str, Any]],
    double_rounds: int = 1,
    control: str = "20s+1s",
    final_games: int = 4,
    hold_after_attempts: int = 3,
    adjudication: str = "",
) -> pathlib.Path:
    """Write a season file: a league, and its first two in a final match."""
    rules = f"adjudication = {adjudication}" if adjudication else ""
    rows = [
        'schema = 1\nid = "test"\nname = "Test Season"',
        f"hold_after_attempts = {hold_after_attempts}",
        "[roster]",
    ]
    rows += roster(engines)
    rows += [f'[books.b]\nfile = "{launch.SEASONS / "books" / "demo.pgn"}"\nrepeat = true']
    rows += [
        f"""[[event]]
id = "league"
name = "League"
format = {{ kind = "round-robin", double_rounds = {double_rounds} }}
entrants = "roster"
time_control = "{control}"
book = "b"
{rules}
promote = [ {{ top = 2, to = "final" }} ]
[[event]]
id = "final"
name = "Final"
format = {{ kind = "match", games = {final_games} }}
time_control = "{control}"
book = "b"
break = "100ms"
"""
    ]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


# -- processes, seen from outside ----------------------------------------------------


def children(pid: int) -> list[int]:
    """Return the process ids of a process' children, as the kernel lists them."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid: int | None) -> list[int]:
    """Return all processes below one, each behind its parent."""
    found = children(pid) if pid else []
    return [*found, *(deeper for child in found for deeper in descendants(child))]


def command(pid: int) -> str:
    """Return a process' command line, '' when it is gone."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
        return words.decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def alive(pid: int) -> bool:
    """Say whether a process exists and is no zombie."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def link_pid(farm: Farm) -> int | None:
    """Return the worker's child."""
    found = children(farm.worker.pid) if farm.worker.running else []
    return found[0] if found else None


def game_process(farm: Farm, program: str) -> int | None:
    """Return the link's child that runs a program, by a part of its command line."""
    link = link_pid(farm)
    for pid in children(link) if link else []:
        if program in command(pid):
            return pid
    return None


def referee_pid(farm: Farm) -> int | None:
    """Return the referee of the game in flight: the fork server's child."""
    fork_server = game_process(farm, "worker_cpu.referee.forkserver")
    found = children(fork_server) if fork_server else []
    return found[-1] if found else None


def engines(farm: Farm) -> list[int]:
    """Return the scripted engines of the game in flight: the dead man's children."""
    dead_man = game_process(farm, "engines/supervisor.py")
    found = children(dead_man) if dead_man else []
    return [pid for pid in found if "scripted.py" in command(pid)]


def survivors(root: pathlib.Path) -> list[str]:
    """Return the living processes, but this one and an sshd, whose command names a directory."""
    pids = {int(entry.name) for entry in pathlib.Path("/proc").glob("[0-9]*")}
    told = {pid: command(pid) for pid in pids - {os.getpid()}}
    return [f"{p} {text}" for p, text in told.items() if str(root) in text and "sshd" not in text]


def gone(root: pathlib.Path) -> bool:
    """Wait until no process names a directory, as a dead man may need a moment; fail with them."""
    left: list[str] = []

    def empty() -> bool:
        left[:] = survivors(root)
        return not left

    with contextlib.suppress(AssertionError):
        wait(empty, "the end of every process")
    assert not left, left
    return True


def journal(farm: Farm, season: str) -> list[contract.Entry]:
    """Read a season's mirror on disk."""
    text = (farm.archive / season / "journal.jsonl").read_text(encoding="utf-8")
    return [contract.Entry.from_line(line) for line in text.splitlines()]


def kill(pid: int | None, number: int) -> bool:
    """Send a signal; say whether there was a process to take it."""
    if pid is None:
        return False
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


@contextlib.contextmanager
def frozen(pids: Iterable[int | None]) -> Iterator[None]:
    """Stop processes for the length of a block; they go on in the reverse order."""
    stopped = list(pids)
    for pid in stopped:
        kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(stopped):
            kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def held(gate: pathlib.Path, ply: int | None = None) -> Iterator[tuple[str, str]]:
    """Let engines think, at a ply or any, for the length of a block; give their words for it.

    So a game stands at a known place however long a busy machine takes to do something with it.
    """
    gate.touch()
    try:
        yield "--fault", f"hold:{gate}" + (f"@{ply}" if ply else "")
    finally:
        gate.unlink()


def stands(gate: pathlib.Path, engines: int = 1) -> None:
    """Wait until so many engines have begun to think at a gate: each has written its ply there."""
    wait(lambda: len(gate.read_text().split()) >= engines, f"{engines} engines at {gate.name}")


def free_port() -> int:
    """Return a port that nobody listens on, and that no outgoing connection is given."""
    first = int(EPHEMERAL.read_text(encoding="ascii").split()[0])
    while True:
        number = 10_000 + secrets.randbelow(max(first - 10_000, 1_000))
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("127.0.0.1", number))
            return number


def wait(condition: Callable[[], object], what: str, seconds: float = 80.0) -> None:
    """Wait for something that has to come, as patiently as ``Farm.wait``."""
    deadline = time.monotonic() + BUSY * seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


# -- a hall without engines ----------------------------------------------------------


def claim(season: str, game: str, attempt: str) -> api.Claim:
    """Return a claim of the test hall."""
    return api.Claim(
        hall=HALL,
        season=season,
        game=game,
        attempt=attempt,
        worker="worker",
        host="host",
        lane="whole",
        ttl_ms=60_000,
    )


def invented(
    order: contract.GameOrder, taken: api.Claim, token: contract.Token
) -> tuple[contract.GameFinished, bytes]:
    """Return the result and the packed record of a game that White wins without a ply."""
    game = contract.GameRecord(
        order=order,
        attempt=taken.attempt,
        token=str(token),
        started_ms=1,
        ended_ms=2,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=(),
        outcome=verdict.disconnect("black"),
        final_fen="",
    )
    finished = contract.GameFinished(
        game=taken.game,
        attempt=taken.attempt,
        hall=HALL,
        lane=taken.lane,
        host=taken.host,
        result=game.outcome.result,
        ending=game.outcome.ending,
        loser="black",
        details=game.outcome.details,
        plies=0,
        white_clock_ns=0,
        black_clock_ns=0,
        started_ms=1,
        ended_ms=2,
        record_sha256="",
    )
    return finished, game_zip.pack(game, record.pgn(game), b"")


def up_screen_of(
    ledger: store.RedisLedger,
    told: io.StringIO,
    others: processor.Others | None = None,
    *,
    awaited: str | None = None,
    quiet: bool = True,
) -> up_screen.Screen:
    """Return what `farm up` prints its lines with; without ``others`` nobody loads the machine."""
    return up_screen.Screen(
        ledger,
        rich.console.Console(file=told, width=200, markup=False),
        others or processor.Others(look_seconds=math.inf),
        awaited=awaited,
        data=pathlib.Path("/x"),
        environment="FARM_DATA=/x ",
        quiet=quiet,
    )
