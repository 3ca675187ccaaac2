"""How long one event is on its way to all of a crowd: ``PYTHONPATH=tests python fan_out.py 2000``.

Web server and crowd share the first core at real-time priority (needs root), so that what else
runs on the machine is not in the figures. Seasons are launched, and the time that an event
carries (``now_ms``, when it was rendered) is taken from the time when each spectator has it.
"""

from __future__ import annotations

import os
import pathlib
import re
import resource
import sys
import tempfile
import threading
import time

import crowd
import harness
import theatre

from orchestrator.ledger import store

RENDERED = re.compile(rb'"now_ms":(\d+)')
LAUNCHES = 12
PAUSE_SECONDS = 0.3  # s: between two launches


class Counting(crowd.Crowd):
    """Notes how late every event comes, whatever it tells."""

    def __init__(self, port: int, count: int) -> None:
        self.delays_ms: list[float] = []
        super().__init__(port, count)
        self.delays_ms.clear()

    def read(self, one: crowd.Spectator) -> None:
        """Read an event, and how old it is."""
        data = one.socket.recv(crowd.BYTES)
        now_ms = time.time_ns() / 1e6
        if not one.greeted and crowd.SNAPSHOT in data:
            one.greeted = True
            self.greeted += 1
        elif found := RENDERED.search(data):
            self.delays_ms.append(now_ms - int(found.group(1)))


def promote(pid: int) -> None:
    """Bind a process to the first core, before all that is of ordinary priority."""
    os.sched_setaffinity(pid, {min(os.sched_getaffinity(pid))})
    os.sched_setscheduler(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def launch(farm: harness.Farm) -> None:
    """Launch seasons; each is an event to all who listen."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    for number in range(LAUNCHES):
        farm.launch(farm.root / "season.toml", f"season-{number}")
        time.sleep(PAUSE_SECONDS)


def measure(web: theatre.Web, count: int) -> list[float]:
    """Return the delays of all events to all of a crowd, ms."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    theatre.season(web.farm)
    assert web.process is not None
    for pid in (web.process.pid, os.getpid()):
        promote(pid)
    crowd_there = Counting(web.port, count)
    launching = threading.Thread(target=launch, args=(web.farm,))
    launching.start()
    while launching.is_alive():
        crowd_there.look(0.2)
    return sorted(crowd_there.delays_ms)


def main(count: int) -> None:
    """Run Redis and the web server, and nothing else of a farm."""
    with tempfile.TemporaryDirectory() as root:
        farm = harness.Farm(pathlib.Path(root))
        farm.redis.start()
        farm.ledger = store.connect(farm.redis.url)
        web = theatre.Web(farm)
        web.start()
        try:
            delays = measure(web, count)
        finally:
            web.kill()
            farm.ledger.close()
            farm.redis.stop()
    p50, p99 = (delays[int(share * (len(delays) - 1))] for share in (0.5, 0.99))
    print(f"{count} spectators, {len(delays) / count:.0f} events: p50 {p50:.1f}, p99 {p99:.1f} ms")
    print(f"max {delays[-1]:.1f} ms; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
