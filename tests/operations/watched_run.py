"""A scripted run of a real farm: one crash, one interruption, one pause, a game in flight.

Beside it an exporter process, GPU exporters' samples behind a small server, and Debian's
Prometheus that scrapes all of them. Ports are free ones; all ends by process id.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
import os
import pathlib
import shlex
import shutil
import signal
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import harness
import yaml

from orchestrator.ledger import vitals
from orchestrator.ops import supervisor

ROOT = pathlib.Path(__file__).parents[2]
PROMETHEUS = ROOT / "deploy" / "prometheus"
SAMPLES = pathlib.Path(__file__).parent / "samples"
SEASON = "run"
CRASHER = "scripted-1"
CRASH = 14  # ply at which it crashes in the first game, before anything is held
HOLD = 18  # ply at which the next games stand until they have been interrupted and paused
SHORT = 14  # moves: games of the first event end before LATE
LATE = 30  # ply at which the long game stands


def season_file(farm: harness.Farm, *words: str) -> pathlib.Path:
    """Write a season: a short league in which one engine crashes once, then a long match.

    ``words`` are both engines' playbook. Clocks run while everything is looked at.
    """
    first, second = (harness.scripted(farm.life, n, "--delay-ms", "20", *words) for n in (2, 1))
    program = farm.root / "crasher.sh"
    command = shlex.join(second["command"])
    once, crash = farm.root / "crashed", f"--fault crash@{CRASH}"
    fault = f"if mkdir {once} 2>&-; then exec {command} {crash}; else exec {command}; fi"
    program.write_text(f"#!/bin/sh\n{fault}\n")
    second["command"] = ["/bin/sh", str(program)]
    rows = ['schema = 1\nid = "test"\nname = "Test"\n[roster]']
    rows += harness.roster((first, second))
    book = harness.launch.SEASONS / "books" / "demo.pgn"
    rows.append(f'[books.b]\nfile = "{book}"\nrepeat = true')
    for event, games, moves in (("first", 4, SHORT), ("second", 2, 400)):
        rows.append(
            f"""[[event]]
id = "{event}"
name = "{event}"
format = {{ kind = "match", games = {games} }}
time_control = "30m+1s"
book = "b"
tiebreaks = ["seed"]
disqualify_after = 3
adjudication = {{ max_moves = {moves} }}
interruptions = "ntcec1"
{'entrants = "roster"' if event == "first" else 'break = "100ms"'}
{'promote = [ { top = 2, to = "second" } ]' if event == "first" else ""}
"""
        )
    path = farm.root / "season.toml"
    path.write_text("\n".join(rows))
    return path


def play(farm: harness.Farm, scraped: Callable[[], object]) -> None:
    """Cause one interruption, one crash and one pause; return when the second event's game stands.

    However long it takes to do something to a game, the game waits for it: so it does until it
    is ``scraped``, before which nobody sees moves being added.
    """

    def state() -> Any:
        return farm.state(SEASON)

    def in_flight(plies: int) -> bool:
        slot = farm.ledger.slot(harness.HALL)
        return slot is not None and len(farm.ledger.plies(slot.attempt)) >= plies

    def interrupted() -> bool:
        return any(one.kind == "attempt_ended" for one in farm.ledger.read(SEASON))

    def games(count: int) -> bool:
        return sum(game.finished is not None for game in state().games.values()) >= count

    late = farm.root / "late"
    late.touch()  # for good
    stand = ("--fault", f"hold:{late}@{LATE}")
    with harness.held(farm.root / "gate", HOLD) as hold:
        farm.launch(season_file(farm, *hold, *stand), SEASON)
        farm.wait(lambda: games(1) and in_flight(3), 60, "a game to be interrupted")
        assert harness.kill(harness.link_pid(farm), signal.SIGKILL)
        farm.wait(lambda: interrupted() and in_flight(3), 60, "the game that is played anew")
        farm.wait(lambda: bool(scraped()), 60, "a scrape")
        farm.operate("pause", "--reason", "test")
    farm.wait(lambda: farm.ledger.slot(harness.HALL) is None, 60, "the pause")
    farm.operate("resume")
    farm.wait(lambda: games(4) and bool(late.read_text()), 60, "the standstill of the long game")


@contextlib.contextmanager
def exporting(farm: harness.Farm) -> Iterator[int]:
    """Run the exporter; yield its port."""
    port = harness.free_port()
    command = [*supervisor.serve_command()[:-1], "exporter", "--port", str(port)]
    running = supervisor.Supervised(
        "exporter", command, farm.environment("exporter"), farm.root / "logs" / "exporter.log"
    )
    running.start()
    try:
        wait_for(lambda: get(f"http://127.0.0.1:{port}/metrics"), 120)
        yield port
    finally:
        running.stop(5)


def get(url: str) -> str:
    """Return what is at an address, '' when nobody answers yet."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def wait_for(condition: Callable[[], object], seconds: float) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError("waited too long")
        time.sleep(0.1)


class _Samples(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer with the samples that the path names."""
        body = (SAMPLES / f"{self.path.strip('/')}.prom").read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def gpu_exporters() -> Iterator[int]:
    """Serve the GPU exporters' samples; yield the port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Samples)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@dataclasses.dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    port: int

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Return the samples of an instant query; fail on an error."""
        words = urllib.parse.urlencode({"query": expr})
        text = get(f"http://127.0.0.1:{self.port}/api/v1/query?{words}")
        answer = json.loads(text) if text else {"status": "error", "error": f"refused: {expr}"}
        assert answer["status"] == "success", answer
        return list(answer["data"]["result"])


@contextlib.contextmanager
def scraping(root: pathlib.Path, farm_port: int, gpu_port: int) -> Iterator[Prometheus]:
    """Run Debian's Prometheus with the rules of deploy/, on the scene's targets."""
    told = yaml.safe_load((PROMETHEUS / "prometheus.yml").read_text())
    told["global"] |= {"scrape_interval": "1s", "evaluation_interval": "1s"}
    told["rule_files"] = [str(PROMETHEUS / "rules" / "*.yml")]
    told.pop("alerting")
    gpus = [
        {"job_name": name, "metrics_path": f"/{name}", "static_configs": [_target(gpu_port)]}
        for name in ("dcgm", "nvidia_smi")
    ]
    told["scrape_configs"] = [{"job_name": "farm", "static_configs": [_target(farm_port)]}, *gpus]
    config, port = root / "prometheus.yml", harness.free_port()
    config.write_text(yaml.safe_dump(told).replace("interval: 15s", "interval: 1s"))
    for path in (PROMETHEUS / "rules").glob("*.yml"):
        (root / path.name).write_text(path.read_text().replace("interval: 15s", "interval: 1s"))
    config.write_text(config.read_text().replace(str(PROMETHEUS / "rules"), str(root)))
    config.write_text(config.read_text().replace(f"{root}/*.yml", f"{root}/[ar]*.yml"))
    command = [
        *(shutil.which("prometheus") or "prometheus", f"--config.file={config}"),
        *(f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={root / 'tsdb'}"),
    ]
    running = supervisor.Supervised(
        "prometheus", command, dict(os.environ), root / "prometheus.log"
    )
    running.start()
    try:
        wait_for(lambda: get(f"http://127.0.0.1:{port}/-/ready"), 120)
        yield Prometheus(port)
    finally:
        running.stop(5)


def _target(port: int) -> dict[str, Any]:
    return {"targets": [f"127.0.0.1:{port}"]}


def gpu_host(now_ms: int) -> vitals.Vitals:
    """Return what a GPU box tells of itself."""
    gpu = vitals.Gpu(
        index=0,
        uuid="GPU-cccc",
        name="NVIDIA A100",
        utilization_ratio=0.5,
        memory_used_bytes=1 << 30,
        memory_total_bytes=40 << 30,
        temperature_celsius=48.0,
        power_watts=100.0,
        sm_clock_hertz=1.2e9,
        throttled=False,
    )
    return vitals.Vitals(
        host="gpu-box",
        at_ms=now_ms,
        role="gpu",
        cpus=16,
        throttles=3,
        bench_ratio=0.99,
        gpus=(gpu,),
    )
