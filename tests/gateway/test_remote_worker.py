"""Real workers over HTTP: a match that outlives a worker, its gateway and their leases."""

from __future__ import annotations

import collections
import contextlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import harness
import pytest

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import batches, keys, mirror, store
from orchestrator.testmatch import orders
from worker_cpu.remote import engines, gateway

ENGINE = pathlib.Path(sys.executable).with_name("farm-engine")
GAMES = 6
ROSTER = """
schema = 1
[[engine]]
id = "dev"
name = "Dev"
command = ["{engine}"]
[[engine]]
id = "base"
name = "Base"
command = ["{engine}", "--name", "base"]
"""


class Stage:
    """A gateway, a test match and workers, each a process of its own."""

    def __init__(self, root: pathlib.Path, redis: harness.Redis) -> None:
        self.root, self.redis = root, redis
        self.ledger = store.connect(redis.url)
        self.batches = batches.RedisBatches(self.ledger.server)
        self.roster = root / "engines.toml"
        self.roster.write_text(ROSTER.format(engine=ENGINE))
        self.token = root / "anna.token"
        self.url, self.port = "", 0
        self._ended: list[subprocess.Popen[bytes]] = []

    def run(self, user: str, log: str, *words: str) -> subprocess.Popen[bytes]:
        """Start a command of the farm; what it prints goes to a file."""
        environment = harness.without_farm() | {"FARM_DATA": str(self.root / log)}
        if user:
            environment["FARM_REDIS_URL"] = self.redis.url_of(user)
        with (self.root / f"{log}.log").open("ab") as output:
            process = subprocess.Popen(
                [str(harness.PROGRAM), *words],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._ended.append(process)
        return process

    def log(self, name: str) -> str:
        """Return what a process has printed."""
        return (self.root / f"{name}.log").read_text()

    def serve(self) -> subprocess.Popen[bytes]:
        """Start the gateway, where it was before; wait until it listens."""
        words = ("serve-gateway", "--port", str(self.port), "--lease-seconds", "600")
        before = len(re.findall("workers come to", self.log("gateway"))) if self.port else 0
        process = self.run("gateway", "gateway", *words)
        pattern = re.compile(r"workers come to (http://127\.0\.0\.1:(\d+))/")
        self.wait(lambda: len(pattern.findall(self.log("gateway"))) > before, "the gateway")
        self.url, port = pattern.findall(self.log("gateway"))[-1]
        self.port = int(port)
        return process

    def work(self, name: str) -> subprocess.Popen[bytes]:
        """Start a worker that plays one game at a time."""
        place = ("--spool", str(self.root / name), "--sandbox", "plain", "--concurrency", "1")
        source = ("--token", str(self.token), "--engines", str(self.roster))
        return self.run("", name, "work", self.url, *source, *place)

    def leased(self) -> dict[str, list[int]]:
        """Return what is leased: batch to games without a result."""
        found = self.ledger.server.table(keys.Keys().batches())
        games = {name: contract.loads(one)["games"] for name, one in found.items()}
        return {name: list(map(int, told.split())) for name, told in games.items() if told}

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a fact."""
        deadline = time.monotonic() + 120
        while not condition():
            if time.monotonic() > deadline:
                logs = "\n".join(f"{path}:\n{path.read_text()}" for path in self.root.glob("*.log"))
                raise AssertionError(f"waited for {what}; logs:\n{logs}")
            time.sleep(0.02)

    def end(self) -> None:
        """End whatever still runs."""
        for process in self._ended:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
        self.ledger.close()


@pytest.fixture
def stage(tmp_path: pathlib.Path, redis: harness.Redis) -> Iterator[Stage]:
    """Give a stage; leave no process behind."""
    made = Stage(tmp_path, redis)
    try:
        yield made
    finally:
        made.end()


def test_a_match_is_played_through_a_killed_worker_and_gateway(stage: Stage) -> None:
    """Each game is counted once. Ctrl-C gives games back, those of a killed worker are dealt again.

    The first worker is stopped by Ctrl-C, the second killed, the third finds no gateway at first.
    """
    environment = {"FARM_REDIS_URL": stage.redis.url_of(harness.OPERATOR)}
    harness.farm("worker-token", "create", "anna", "--out", str(stage.token), env=environment)
    words = ("test", "dev", "--against", "base", "--file", str(stage.roster), "--id", "m")
    told = ("--games", str(GAMES), "--tc", "nodes=20", "--remote", "--json")
    match = stage.run(harness.OPERATOR, "match", *words, *told)
    serving = stage.serve()
    stopped = stage.work("stopped")
    stage.wait(lambda: stage.leased() or match.poll() is not None, "a lease of a worker")
    stopped.send_signal(signal.SIGINT)
    assert stopped.wait() == 130, stage.log("stopped")
    assert stage.leased() == {}, "what was not played is given back"
    first = stage.work("first")
    stage.wait(lambda: stage.leased() or match.poll() is not None, "a lease of the first worker")
    while True:  # it may have told its games before it is killed: then it gets others
        lost = stage.leased()
        first.kill()
        first.wait()
        lost = {name: games for name, games in stage.leased().items() if name in lost}
        if lost:
            break
        first = stage.work("first")
        stage.wait(stage.leased, "a lease of the first worker")
    (batch, games) = next(iter(lost.items()))
    serving.kill()
    serving.wait()
    last = stage.work("last")
    stage.wait(lambda: "is away" in stage.log("last"), "a worker without a gateway")
    stage.serve()
    # Ten minutes later, as Redis sees it: the lease of the worker that was killed has ended.
    stage.ledger.server.client.zadd(keys.Keys().batches("due"), {batch: 1})
    stage.wait(lambda: match.poll() is not None, "the end of the match")
    facts = json.loads(stage.log("match")[stage.log("match").index("{") :])
    assert (match.returncode, facts["games"]) == (0, GAMES)
    journal = list(mirror.entries(stage.root / "match" / "tests" / "m" / "journal.jsonl"))
    results = collections.Counter(one.data["game"] for one in journal if one.kind == "test_game")
    assert results == dict.fromkeys(range(1, GAMES + 1), 1)
    replayed = {one.data["game"] for one in journal if one.data.get("attempt") not in (None, batch)}
    assert set(games) <= replayed
    assert stage.batches.lapse() == 0
    last.send_signal(signal.SIGINT)
    assert last.wait() == 130, stage.log("last")
    assert "games counted" in stage.log("last")
    assert list((stage.root / "last" / "batches").iterdir()) == []


# -- what needs no process -----------------------------------------------------------------


def _known(tmp_path: pathlib.Path) -> tuple[list[engines.Engine], str]:
    program = tmp_path / "dev"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "net.nn").write_text("net")
    roster = tmp_path / "engines.toml"
    roster.write_text(
        'schema = 1\n[[engine]]\nid = "d"\ncommand = ["./dev", "--fast"]\nnetwork = "net.nn"\n'
    )
    known = engines.read(roster)
    by_path = {path: digest for digest, path in known[0].files.items()}
    return known, by_path[str(tmp_path / "dev")]


def _order(digest: str, **other: object) -> contract.GameOrder:
    words = {"id": "dev", "name": "Dev", "command": ("bin/dev", "--fast")}
    engine = {**words, "checksums": {"bin/dev": digest}, **other}
    spec = orders.Spec.model_validate(
        {
            "id": "m",
            "engines": [engine, engine],
            "time_control": {"nodes": 1},
            "games": 2,
        }
    )
    return spec.order(1)


def test_an_order_is_played_with_ones_own_files(tmp_path: pathlib.Path) -> None:
    """Program and directory are the roster's; a pinned file in an option is that file here."""
    known, digest = _known(tmp_path)
    (net,) = (one for one, path in known[0].files.items() if path.endswith("net.nn"))
    pins = {"bin/dev": digest, "nets/a.nn": net}
    order = _order(digest, checksums=pins, options={"EvalFile": "nets/a.nn", "Hash": 16})
    played = engines.localized(order, known).white
    assert played.command == (str(tmp_path / "dev"), "--fast")
    assert played.options == {"EvalFile": str(tmp_path / "net.nn"), "Hash": 16}
    assert (played.directory, played.checksums) == (str(tmp_path), {})
    greedy = order.model_copy(update={"hand_on": True, "sandbox": "bubblewrap", "journaled": True})
    assert engines.localized(greedy, known) == engines.localized(order, known)


@pytest.mark.parametrize(
    "wrong",
    [
        {"checksums": {"bin/dev": "0" * 64}},
        {"checksums": {}},
        {"command": ("bin/dev", "--other")},
        {"options": {"Debug Log File": "/home/anna/.profile"}},
        {"options": {"SyzygyPath": "../tables"}},
    ],
    ids=str,
)
def test_nothing_is_started_that_ones_roster_has_not(
    tmp_path: pathlib.Path, wrong: dict[str, object]
) -> None:
    """Another file, other arguments, an option that names a path: refused before the game."""
    known, digest = _known(tmp_path)
    with pytest.raises(engines.UnplayableError):
        engines.localized(_order(digest, **wrong), known)


@pytest.mark.parametrize(
    "url", ["http://farm.example.org", "ftp://x", "farm", "https://a:b@c", "https://", "http://[::"]
)
def test_a_token_goes_by_https_alone(url: str) -> None:
    """Plain HTTP is for this machine; no other scheme, no password in the address."""
    with pytest.raises(errors.UsageError, match="allowed: https://"):
        gateway.Gateway(url, "t")
    assert gateway.Gateway("http://127.0.0.1:1/", "t").url == "http://127.0.0.1:1"
