"""Attack remote workers, their gateway and their links; then count the games.

``make attack`` (``PYTHONPATH=tests python tests/gateway/run_attack.py [WORKERS] [GAMES] [SEED]``):
ten workers play 200 games over TLS through a real nginx with the location of ``deploy/nginx``,
half of them by an HTTP proxy (CONNECT), with leases of 10 s. Every second something happens to
one of them: it is killed with its spool or without, its player is killed, it is stopped for longer
than its lease, its clock is set back or forth by hours; or the gateway or nginx is killed, the link
is down, answers are lost after the request was done. At the end each game has to be counted once,
nothing may be leased, and no engine alive.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import harness
import remote_stage

from orchestrator import contract
from orchestrator.testmatch import orders

LEASE_SECONDS = 10
LIMIT_SECONDS = 1_200.0  # s: of the whole attack, on a busy machine
STOPPED_SECONDS = 1.5 * LEASE_SECONDS
NGINX = shutil.which("nginx") or "/usr/sbin/nginx"
LOCATION = pathlib.Path(__file__).parents[2] / "deploy" / "nginx" / "gateway.conf"
SITE = """
user root;
daemon off;
pid {root}/nginx.pid;
error_log {root}/nginx-error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {root}/nginx-body;
    proxy_temp_path {root}/nginx-proxy;
    fastcgi_temp_path {root}/nginx-fastcgi;
    uwsgi_temp_path {root}/nginx-uwsgi;
    scgi_temp_path {root}/nginx-scgi;
    limit_req_zone  $binary_remote_addr zone=workers:10m rate=20r/s;
    limit_conn_zone $binary_remote_addr zone=worker_links:10m;
    server {{
        listen 127.0.0.1:{port} ssl;
        server_name localhost;
        ssl_certificate {root}/tls.pem;
        ssl_certificate_key {root}/tls.key;
        {location}
    }}
}}
"""
# What a worker's clock says beside the truth, in seconds; read each time, so that it is stepped.
CLOCK = """
import os, time
_time, _place = time.time, os.environ["ATTACKED_CLOCK"]
def _stepped():
    try:
        with open(_place) as file:
            return _time() + float(file.read() or 0)
    except (OSError, ValueError):
        return _time()
time.time = _stepped
time.time_ns = lambda: int(_stepped() * 1e9)
"""
CALM_GAMES = 10  # games before the end: from here on nothing happens any more


class Proxy(threading.Thread):
    """A TCP proxy before the gateway: ``way`` is what it does with connections now."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.way, self.port, self.lost = "pass", 0, 0
        self._behind, self._listening = port, threading.Event()

    def run(self) -> None:
        """Serve until the process ends."""
        asyncio.run(self._serve())

    def listen(self) -> int:
        """Start; return the port."""
        self.start()
        self._listening.wait()
        return self.port

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._client, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._listening.set()
        await server.serve_forever()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            if self.way != "down":
                await self._joined(reader, writer)
        writer.close()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, before = await asyncio.open_connection("127.0.0.1", self._behind)
        first = await reader.readexactly(1)
        if first == b"C":  # CONNECT: it is asked as a proxy; TLS begins otherwise
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            before.write(first)
        asking = asyncio.create_task(self._copy(reader, before))
        try:
            while chunk := await behind.read(65_536):
                if self.way == "lose":  # the gateway has done it, nobody is told
                    self.lost += 1
                    return
                writer.write(chunk)
                await writer.drain()
        finally:
            asking.cancel()
            before.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(65_536):
                if self.way == "down":
                    return
                writer.write(chunk)
                await writer.drain()


class Attack:
    """What strikes, and how often it has."""

    def __init__(self, stage: remote_stage.Stage, workers: int, seed: int) -> None:
        self._stage, self._drawn = stage, random.Random(seed)
        self._gateway = stage.serve(LEASE_SECONDS)
        self._port = harness.free_port()
        self._nginx = self._serve_tls()
        self.proxy = Proxy(self._port)
        through = self.proxy.listen()
        self._direct, stage.url = stage.url, f"https://localhost:{through}"
        (stage.root / "sitecustomize.py").write_text(CLOCK)
        for number in range(workers):
            name = f"w{number}"
            stage.environment[name] = {
                "SSL_CERT_FILE": str(stage.root / "tls.pem"),
                "PYTHONPATH": str(stage.root),
                "ATTACKED_CLOCK": str(stage.root / f"{name}.clock"),
            }
            if number % 2:
                stage.environment[name]["HTTPS_PROXY"] = f"http://127.0.0.1:{through}"
                stage.urls[name] = f"https://localhost:{self._port}"
        self.struck: collections.Counter[str] = collections.Counter()
        self._workers = {f"w{number}": stage.work(f"w{number}") for number in range(workers)}
        self._resting: dict[str, float] = {}  # stopped workers, and when they go on

    def _serve_tls(self) -> subprocess.Popen[bytes]:
        """Start nginx before the gateway."""
        root = self._stage.root
        location = LOCATION.read_text().replace("127.0.0.1:8090", f"127.0.0.1:{self._stage.port}")
        words = (
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        )
        names = ("-addext", "subjectAltName=DNS:localhost")
        files = ("-keyout", str(root / "tls.key"), "-out", str(root / "tls.pem"))
        if not (root / "tls.pem").exists():
            subprocess.run(("openssl", *words, *names, *files), check=True, capture_output=True)
        site = SITE.format(root=root, port=self._port, location=location)
        (root / "nginx.conf").write_text(site)
        # Its own workers end with it: it is a group of its own.
        return subprocess.Popen(
            (NGINX, "-c", root / "nginx.conf", "-p", root), start_new_session=True
        )

    def _end_tls(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._nginx.pid, signal.SIGKILL)
        self._nginx.wait()

    def strike(self) -> None:
        """Let one thing happen; start again what has ended."""
        kinds = (
            *("kill", "lose spool", "kill player", "stop", "gateway", "down", "lose"),
            *("nginx", "clock"),
        )
        kind = self._drawn.choice(kinds)
        self.struck[kind] += 1
        name = self._drawn.choice(sorted(self._workers))
        worker = self._workers[name]
        if kind in ("kill", "lose spool"):
            worker.kill()
            worker.wait()
            if kind == "lose spool":
                shutil.rmtree(self._stage.root / name, ignore_errors=True)
        elif kind == "kill player":
            for child in harness.children(worker.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        elif kind == "stop" and name not in self._resting:
            worker.send_signal(signal.SIGSTOP)
            self._resting[name] = time.monotonic() + STOPPED_SECONDS
        elif kind == "gateway":
            self._gateway.kill()
            self._gateway.wait()
            through, self._stage.url = self._stage.url, self._direct
            self._gateway = self._stage.serve(LEASE_SECONDS)
            self._stage.url = through
        elif kind == "nginx":
            self._end_tls()
            self._nginx = self._serve_tls()
        elif kind == "clock":
            step = self._drawn.choice((-86_400, -3_600, -5, 5, 3_600, 86_400))
            (self._stage.root / f"{name}.clock").write_text(str(step))
        elif kind in ("down", "lose"):
            self.proxy.way = kind
            time.sleep(self._drawn.uniform(0.5, 3.0))
            self.proxy.way = "pass"
        self.revive()

    def revive(self, *, everybody: bool = False) -> None:
        """Start workers that have ended, let those go on that were stopped for long enough."""
        for name, at in list(self._resting.items()):
            if everybody or time.monotonic() > at:
                del self._resting[name]
                self._workers[name].send_signal(signal.SIGCONT)
        for name, worker in self._workers.items():
            if worker.poll() is not None:
                self._workers[name] = self._stage.work(name)

    def end(self) -> None:
        """Stop the workers as people do."""
        for worker in self._workers.values():
            worker.send_signal(signal.SIGINT)
        for worker in self._workers.values():
            worker.wait()
        self._end_tls()


def _is_game(entry: contract.Entry) -> bool:
    """Say whether an entry is a game's result; checks count for nothing, however often played."""
    return entry.kind == "test_game" and entry.data["game"] <= orders.LAST_GAME


def main(workers: int = 10, games: int = 200, seed: int = 1) -> int:
    """Attack; print what happened, return 1 where a game is not counted once."""
    with tempfile.TemporaryDirectory(prefix="farm-attack-") as place:
        root = pathlib.Path(place)
        with harness.Redis(root / "redis") as redis:
            stage = remote_stage.Stage(root, redis)
            try:
                return _attacked(stage, workers, games, seed)
            finally:
                stage.end()


def _attacked(stage: remote_stage.Stage, workers: int, games: int, seed: int) -> int:
    begun = time.monotonic()
    match = stage.match(games)
    attack = Attack(stage, workers, seed)
    while match.poll() is None and time.monotonic() - begun < LIMIT_SECONDS:
        left = games - sum(_is_game(entry) for entry in stage.journal())
        if left > CALM_GAMES:
            attack.strike()
        else:
            attack.revive(everybody=True)
        time.sleep(1.0)
    attack.end()
    counted = collections.Counter(
        entry.data["game"] for entry in stage.journal() if _is_game(entry)
    )
    logs = "".join(path.read_text() for path in stage.root.glob("w*.log"))
    facts = {
        "workers": workers,
        "games": games,
        "counted": len(counted),
        "counted twice": sum(times > 1 for times in counted.values()),
        "left over": _left_over(stage, match),
        "seconds": round(time.monotonic() - begun),
        "struck": dict(attack.struck),
        "answers lost": attack.proxy.lost,
        "batches that ended under a worker": logs.count("the batch has ended"),
        "games begun": logs.count(": started"),
        "refused": [line for line in logs.splitlines() if "refuses" in line],
    }
    print(json.dumps(facts, indent=2))
    wrong = facts["counted"] != games or facts["counted twice"] or facts["left over"]
    if wrong or facts["refused"]:
        print(logs[-20_000:], stage.log("gateway")[-5_000:], file=sys.stderr)
    return int(bool(wrong))


def _left_over(stage: remote_stage.Stage, match: subprocess.Popen[bytes]) -> list[str]:
    """Say what should not be there: a match, leases, engines of this attack."""
    found = [] if match.poll() == 0 else ["the match"]
    engine = str(remote_stage.ENGINE)
    deadline = time.monotonic() + 30
    while alive := [pid for pid in _processes() if engine in harness.command(pid)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    return found + [harness.command(pid) for pid in alive]


def _processes() -> list[int]:
    return [int(path.name) for path in pathlib.Path("/proc").iterdir() if path.name.isdigit()]


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
