"""How many remote cores one farm carries: simulated workers, a real gateway, Redis and keeper.

``make cores`` (or with CORES=10000 SECONDS=1800 GATEWAYS=2 MATCHES=20): open test matches at
8+0.08 that ``farm match keep`` keeps, gateways of ``farm serve-gateway``, and processes of
``remote_load.py`` for the workers, who have ``--cores-each`` cores. Figures are of the time behind
the first game's length, in which the workers begin. Every game that a gateway acknowledged has to
be in its match's journal once. Not simulated: TLS, which the proxy before the gateway has.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

import remote_load

from orchestrator import contract
from orchestrator.arbiter import openings
from orchestrator.commands import test_games
from orchestrator.ledger import (
    embedded_redis,
    journal_mirror,
    lanes,
    store,
    submissions,
    worker_tokens,
)
from orchestrator.testmatch import orders, sprt_match

FILES = ("d" * 64, "b" * 64)  # SHA-256 of the engines' programs
OPENINGS = 24
WEEK_MS = 7 * 86_400_000
FARM = pathlib.Path(sys.executable).with_name("farm")
WORKERS_A_PROCESS = 1_000
LAST_SECONDS = 2.0  # s: workers end later than what is measured
DRAIN_SECONDS = 60.0  # s: until the keeper has what was told last


def spec(name: str) -> orders.Spec:
    """Describe a match; its engines are never started."""
    engines = tuple(
        contract.EngineSpec(id=name, name=name, command=(name,), checksums={name: digest})
        for name, digest in zip(("dev", "base"), FILES, strict=True)
    )
    text = test_games.DEMO_BOOK.read_text()
    book = openings.parse(text, "pgn", test_games.PLIES, str(test_games.DEMO_BOOK))
    return orders.Spec(
        id=name,
        engines=engines,
        time_control=contract.TimeControl(base_ms=8_000, increment_ms=80),
        games=sprt_match.MOST,
        openings=tuple(book[:OPENINGS]),
        adjudication=contract.Adjudication(
            max_moves=60, resign=contract.MovesResign(move_count=3, score_cp=600)
        ),
        remote=True,
    )


class Parts:
    """The farm's processes, each with a log."""

    def __init__(self, root: pathlib.Path, url: str) -> None:
        self._root = root
        self._environment = {**os.environ, "FARM_REDIS_URL": url, "FARM_DATA": str(root)}
        self._environment |= {"FARM_LOG": "json", "FARM_LOG_LEVEL": "WARNING"}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, name: str, *words: str) -> None:
        """Start a command of the farm."""
        with (self._root / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                [str(FARM), *words], env=self._environment, stdout=log, stderr=log
            )

    def log(self, name: str) -> str:
        """Return what a process has printed."""
        return (self._root / f"{name}.log").read_text()

    def port(self, name: str) -> int:
        """Wait until a gateway listens; return its port."""
        found: list[str] = []

        def listens() -> bool:
            found[:] = re.findall(r"workers come to http://[\d.]+:(\d+)/", self.log(name))
            return bool(found)

        wait(listens, f"{name}: {self.log(name)}")
        return int(found[0])

    def end(self) -> None:
        """End all."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            process.wait()


def wait(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Wait for a fact."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def measured(root: pathlib.Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run; return the figures."""
    workers = options.cores // options.cores_each
    with embedded_redis.EmbeddedRedis(root / "redis") as server:
        parts = Parts(root, server.url)
        with store.connect(server.url) as ledger:
            secrets = _tokens(ledger, workers)
            _submit(ledger, options.matches)
        try:
            parts.start("keeper", "match", "keep")
            for at in range(options.gateways):
                parts.start(f"gateway {at}", "serve-gateway", "--port", "0")
            ports = [parts.port(f"gateway {at}") for at in range(options.gateways)]
            games = root / "games.json"
            games.write_text(
                json.dumps(remote_load.prepared(spec("m0"), options.game_seconds * 0.4))
            )
            setup = {
                "tokens": secrets,
                "ports": ports,
                "files": FILES,
                "games": str(games),
                "cores": options.cores_each,
                "game_seconds": options.game_seconds,
                "seconds": options.game_seconds + options.seconds + LAST_SECONDS,
            }
            redis_pid = server.pid
            pids = {name: part.pid for name, part in parts.processes.items()} | {"redis": redis_pid}
            return _run(root, setup, workers, pids, games.stat().st_size / OPENINGS)
        finally:
            parts.end()


def _tokens(ledger: store.RedisLedger, workers: int) -> list[str]:
    tokens, now_ms, secrets = worker_tokens.RedisTokens(ledger.server), ledger.now_ms(), []
    for at in range(workers):
        made, secret = worker_tokens.make(
            f"w{at}", ("*",), now_ms, now_ms + WEEK_MS, "bench", worker_tokens.BATCHES
        )
        tokens.write(made)
        secrets.append(secret)
    return secrets


def _submit(ledger: store.RedisLedger, matches: int) -> None:
    waiting = submissions.RedisSubmissions(ledger.server)
    for at in range(matches):
        submission = submissions.Submission(f"m{at}", "bench", ledger.now_ms(), "bench")
        order = sprt_match.encoded(spec(f"m{at}"), sprt_match.Terms())
        assert waiting.submit(submission, order)


def _run(
    root: pathlib.Path,
    setup: Mapping[str, Any],
    workers: int,
    pids: Mapping[str, int],
    bytes_of_games: float,
) -> dict[str, Any]:
    script = pathlib.Path(remote_load.__file__)
    loads: list[subprocess.Popen[str]] = []
    for first in range(0, workers, WORKERS_A_PROCESS):
        numbers = list(range(first, min(workers, first + WORKERS_A_PROCESS)))
        path = root / f"load-{first}.json"
        path.write_text(json.dumps({**setup, "workers": numbers}))
        loads.append(
            subprocess.Popen(
                [sys.executable, str(script), str(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
    for load in loads:
        assert _output(load.stdout).readline() == "ready\n"
    for load in loads:
        print("go", file=load.stdin, flush=True)
    time.sleep(setup["game_seconds"])
    began, before = time.monotonic(), {name: _cpu(pid) for name, pid in pids.items()}
    first = _kept(root)
    peak: collections.Counter[str] = collections.Counter()
    until = began + setup["seconds"] - setup["game_seconds"] - LAST_SECONDS
    while time.monotonic() < until:
        for name, pid in pids.items():
            peak[name] = max(peak[name], _resident(pid))
        time.sleep(min(5.0, max(0.1, until - time.monotonic())))
    seconds = time.monotonic() - began
    after = {name: _cpu(pid) for name, pid in pids.items()}
    played = len(_kept(root)) - len(first)
    reports = [json.loads(load.communicate()[0]) for load in loads]
    counted = [game for report in reports for game in report["counted"]]
    journaled: list[str] = []

    def has_all() -> bool:
        journaled[:] = _kept(root)
        return set(counted) <= set(journaled)

    wait(has_all, "acknowledged games that no journal has", DRAIN_SECONDS)
    doubled, set_aside = _counted_twice(root)
    failures = collections.Counter[str]()
    for report in reports:
        failures.update(report["failures"])
    return {
        "workers": workers,
        "cores": workers * setup["cores"],
        "seconds": round(seconds, 1),
        "games counted": played,
        "games a second": round(played / seconds, 1),
        "CPU of a core": {name: round((after[name] - before[name]) / seconds, 3) for name in pids},
        "CPU ms a game": {
            name: round((after[name] - before[name]) * 1_000 / max(1, played), 2) for name in pids
        },
        "MB at most": {name: round(size / 2**20) for name, size in peak.items()},
        "claim ms": _percentiles([one for report in reports for one in report["claims"]]),
        "results ms": _percentiles([one for report in reports for one in report["results"]]),
        "idle cores": round(
            sum(report["idle_seconds"] for report in reports)
            / (workers * setup["cores"] * setup["seconds"]),
            4,
        ),
        "KB a game": round(bytes_of_games / remote_load.VARIETY / 1_024, 1),
        "acknowledged": len(counted),
        "in no journal": len(set(counted) - set(journaled)),
        "counted twice": len(doubled),
        "set aside": set_aside,
        "refused": [one for report in reports for one in report["refused"]][:5],
        "failures": dict(failures),
        "CPU of the simulation": round(sum(report["cpu"] for report in reports), 1),
        "load": round(os.getloadavg()[0], 1),
    }


def _output(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _cpu(pid: int) -> float:
    """Return the processor time that a process has taken, in s."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident(pid: int) -> int:
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _kept(root: pathlib.Path) -> list[str]:
    """Return the games in the matches' journals, with their match."""
    return [
        f"{match} {entry.data['game']}"
        for match, entry in _entries(root)
        if entry.kind == lanes.GAME
    ]


def _entries(root: pathlib.Path) -> Iterator[tuple[str, contract.Entry]]:
    """Yield the entries of all matches' journals, each with its match."""
    for path in root.glob("tests/*/journal.jsonl"):
        for entry in journal_mirror.entries(path):
            yield path.parent.name, entry


def _counted_twice(root: pathlib.Path) -> tuple[list[str], int]:
    """Return the games that count twice, and how many were set aside, to be played again."""
    counted: collections.Counter[str] = collections.Counter()
    twice, set_aside = [], 0
    for match, entry in _entries(root):
        if entry.kind == lanes.GAME:
            game = f"{match} {entry.data['game']}"
            counted[game] += 1
            twice += [game] if counted[game] > 1 else []
        elif entry.kind in {lanes.ASIDE, lanes.CONDEMNED}:
            set_aside += len(entry.data["games"])
            for number in entry.data["games"]:
                counted[f"{match} {number}"] = 0
    return twice, set_aside


def _percentiles(seconds: list[float]) -> dict[str, float]:
    if len(seconds) < 2:
        return {}
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {
        "p50": round(cuts[49] * 1_000, 1),
        "p99": round(cuts[98] * 1_000, 1),
        "most": round(max(seconds) * 1_000, 1),
        "requests": len(seconds),
    }


def main() -> int:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cores", type=int, default=10_000)
    parser.add_argument("--cores-each", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=1_800.0)
    parser.add_argument("--game-seconds", type=float, default=45.0)  # at 8+0.08
    parser.add_argument("--gateways", type=int, default=2)
    parser.add_argument("--matches", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="farm-cores-") as directory:
        figures = measured(pathlib.Path(directory), options)
    print(json.dumps(figures, indent=1))
    wrong = ("in no journal", "counted twice", "set aside", "refused")  # all workers are honest
    right = not any(figures[name] for name in wrong)
    print("right" if right else "wrong")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
