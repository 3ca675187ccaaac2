"""How far one machine carries: workers and games through real Redis and Celery.

``python tests/benchmarks/scale/scale_run.py --workers 200 --games 1000`` simulates workers in
a few processes (``simulated.py``) and keeps their match as ``farm test`` does, mirror and
fold included. ``--ledger`` measures what a game costs the ledger in a match of a million.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import redis

from orchestrator import contract
from orchestrator.contract import bells
from orchestrator.ledger import api, embedded_redis, lane_store, lanes, store
from orchestrator.ops import supervisor
from orchestrator.testmatch import orders, sprt_match

HERE = pathlib.Path(__file__).parent
LANES = 10  # of a simulated hall; each has a queue of its own
THREADS = 50  # simulated workers a process
MILLION = 1_000_000
EVENT = (1_000, 10_000, 100_000, 500_000, 990_000)  # games already dealt


@dataclasses.dataclass(frozen=True)
class Figures:
    """What one run has shown."""

    workers: int
    games: int
    seconds: float
    dispatches_a_second: float
    redis_cpu_share: float
    redis_calls_a_game: float
    redis_peak_mb: float
    redis_end_mb: float
    aof_bytes_a_game: float
    keeper_cpu_share: float
    worker_mb: float
    load: float


def spec(games: int) -> orders.Spec:
    """Describe the match; its engines are never started."""
    engines = tuple(contract.EngineSpec(id=n, name=n, command=("none",)) for n in "ab")
    clock = contract.TimeControl(base_ms=1000)
    return orders.Spec(id="scale", engines=engines, time_control=clock, games=games)


def dispatches(root: pathlib.Path, workers: int, games: int, sleep: float) -> Figures:
    """Let ``workers`` play ``games`` each; return what it took."""
    with embedded_redis.EmbeddedRedis(root / "redis") as server:
        environment = supervisor.environment(server.url, root, "scale")
        environment |= {
            "SCALE_SLEEP": str(sleep),
            "PYTHONPATH": str(HERE),
            "FARM_LOG_LEVEL": "WARNING",
        }
        os.environ["FARM_REDIS_URL"] = server.url
        sys.path.insert(0, str(HERE))
        import simulated  # noqa: PLC0415 - the application reads its broker when it is imported

        known = lane_store.connect(server.url)
        places = [(f"scale-{n // LANES}", f"l{n % LANES}") for n in range(workers)]
        for at, (hall, name) in enumerate(places):
            known.open_lane(lanes.Lane(hall, name, hall, frozenset({at}), 1024))
        pool = _pool(places, environment, root)
        ledger = store.connect(server.url)
        described, terms = spec(workers * games), sprt_match.Terms()
        keeper = sprt_match.Keeper(ledger, known, root / "tests" / "scale", described, terms)
        try:
            keeper.open("bench")
            return _run(server.url, keeper, pool, simulated, places, games)
        finally:
            for process in pool:
                process.terminate()
            for process in pool:
                process.wait()
            keeper.close()
            ledger.close()
            known.close()


def _pool(
    places: list[tuple[str, str]], environment: dict[str, str], root: pathlib.Path
) -> list[subprocess.Popen[bytes]]:
    """Start the processes; each serves the lanes of its own simulated workers."""
    pool = []
    for at in range(0, len(places), THREADS):
        queues = ",".join(bells.queue(".".join(place)) for place in places[at : at + THREADS])
        command = [
            *(sys.executable, "-m", "celery", "-A", "orchestrator", "worker", "--pool", "threads"),
            *("--concurrency", str(THREADS), "--include", "simulated", "--queues", queues),
            *("--hostname", f"scale-{at}@%h", "--loglevel", "WARNING"),
            *("--without-gossip", "--without-mingle"),
        ]
        with (root / f"pool-{at}.log").open("wb") as log:
            pool.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
    return pool


def _run(
    url: str,
    keeper: sprt_match.Keeper,
    pool: list[subprocess.Popen[bytes]],
    simulated: object,
    places: list[tuple[str, str]],
    games: int,
) -> Figures:
    client = redis.Redis.from_url(url)
    total, peak = len(places) * games, 0
    for hall, name in places:
        simulated.ring(hall, name)  # type: ignore[attr-defined]
    while keeper.step(lambda _: None, 200).games < total // 100:  # all processes are up
        assert all(process.poll() is None for process in pool)
    first, before = keeper.standing().games, client.info()
    calls = before["total_commands_processed"]
    began, own = time.monotonic(), time.process_time()
    while (done := keeper.step(lambda _: None, 200).games) < total:
        peak = max(peak, client.info("memory")["used_memory"])
        assert all(process.poll() is None for process in pool)
    seconds, after = time.monotonic() - began, client.info()
    played = done - first
    cpu = sum(after[f"used_cpu_{kind}"] - before[f"used_cpu_{kind}"] for kind in ("sys", "user"))
    written = after.get("aof_current_size", 0) - before.get("aof_current_size", 0)
    resident = [_resident_mb(process.pid) for process in pool]
    return Figures(
        workers=len(places),
        games=played,
        seconds=round(seconds, 1),
        dispatches_a_second=round(played / seconds, 1),
        redis_cpu_share=round(cpu / seconds, 3),
        redis_calls_a_game=round((after["total_commands_processed"] - calls) / played, 1),
        redis_peak_mb=round(peak / 2**20, 1),
        redis_end_mb=round(after["used_memory"] / 2**20, 1),
        aof_bytes_a_game=round(written / played),
        keeper_cpu_share=round((time.process_time() - own) / seconds, 3),
        worker_mb=round(sum(resident) / len(places), 2),
        load=round(os.getloadavg()[0], 1),
    )


def _resident_mb(pid: int) -> float:
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


# -- the ledger alone ------------------------------------------------------------------


def ledger_costs(root: pathlib.Path, games: int) -> list[dict[str, float]]:
    """Measure claim, result and trimming of ``games`` games at several depths of a match."""
    rows = []
    with embedded_redis.EmbeddedRedis(root / "redis") as server:
        known = lane_store.connect(server.url)
        client = redis.Redis.from_url(server.url)
        known.open_lane(lanes.Lane("h", "a", "h", frozenset({0}), 64))
        for dealt in EVENT:
            known.open_match(lanes.Match("scale", MILLION, "{}", next=dealt), seq=dealt)
            began = time.monotonic()
            for game in range(games):
                _play_lane(known, game)
            spent = (time.monotonic() - began) / games
            used = client.info("memory")["used_memory"]
            rows.append(
                {
                    "dealt": dealt,
                    "us_a_game": round(spent * 1e6),
                    "redis_mb": round(used / 2**20, 2),
                }
            )
            known.close_match("scale")
        known.close()
    return rows


def _play_lane(known: lane_store.RedisLanes, number: int) -> None:
    attempt = f"a-{time.monotonic_ns()}"
    dealt = known.claim_lane(lanes.LaneClaim("h", "a", attempt, "w", "h", 60_000))
    assert isinstance(dealt, lanes.Dealt), dealt
    lease = lanes.Lease("h", "a", attempt, dealt.token, dealt.match, dealt.games, "w", "h", 0)
    reply = known.complete_lane(lease, contract.dumps({"game": dealt.game, "pgn": "x" * 2000}))
    assert isinstance(reply, api.Recorded)
    if number % 100 == 0:
        known.forget("scale", reply.seq)


def main() -> None:
    """Measure, and print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=200)
    parser.add_argument("--games", type=int, default=1000)
    parser.add_argument("--sleep", type=float, default=0.05)
    parser.add_argument("--ledger", type=int, help="Measure the ledger alone, so many games each.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="farm-scale-") as directory:
        root = pathlib.Path(directory)
        if options.ledger:
            found: object = ledger_costs(root, options.ledger)
        else:
            told = dispatches(root, options.workers, options.games, options.sleep)
            found = dataclasses.asdict(told)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
