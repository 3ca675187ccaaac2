"""How late spectators see a move while many watch. Prints figures, asserts no time.

The delay counts from the ply's being readable in Redis (this process asks every 2 ms) to
the event's last byte in a spectator's hands, all on one machine and one clock. The short
form has 50 spectators; with ``FARM_BENCH=long`` they are 500 and 2,000, and
``FARM_SPECTATORS`` names other numbers.
"""

from __future__ import annotations

import asyncio
import json
import os
import pathlib
import re
import resource
import threading
import time

import pytest
import theatre

LONG = os.environ.get("FARM_BENCH") == "long"
CROWDS = os.environ.get("FARM_SPECTATORS", "500 2000" if LONG else "50").split()
SECONDS = 20 if LONG else 3
LOOK_SECONDS = 0.002
MOVE_MS = 400  # an engine thinks so long: more moves than blitz has
DRAIN_SECONDS = 2.0  # s: the last plies may be on their way so long
COMING = 100  # spectators that connect at once
PLY = re.compile(rb"event: ply\ndata: ([^\n]*)\n\n")
Key = tuple[str, int]  # game and ply


class Spectator(asyncio.Protocol):
    """A browser as far as the stream goes: notes when each ply has come."""

    known: dict[bytes, Key] = {}  # noqa: RUF012 - a frame is the same for all, and parsed once

    def __init__(self) -> None:
        self.rest = b""
        self.seen: dict[Key, int] = {}
        self.greeted = self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the stream."""
        assert isinstance(transport, asyncio.WriteTransport)
        transport.write(b"GET /api/v1/live HTTP/1.1\r\nHost: farm\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        """Note the plies that are whole now."""
        now_ns = time.monotonic_ns()
        self.rest += data
        self.greeted = self.greeted or b"event: snapshot" in self.rest
        for found in PLY.finditer(self.rest):
            self.seen.setdefault(self._key(found.group(1)), now_ns)
        end = self.rest.rfind(b"\n\n")
        self.rest = self.rest[end + 2 :] if end >= 0 else self.rest

    def _key(self, frame: bytes) -> Key:
        if frame not in self.known:
            told = json.loads(frame)
            self.known[frame] = (told["game"], told["ply"]["n"])
        return self.known[frame]

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that the server, or the end, has closed the stream."""
        self.ended = True


class Watch(threading.Thread):
    """Notes when each ply can first be read in Redis."""

    def __init__(self, web: theatre.Web) -> None:
        super().__init__()
        self.web, self.stop = web, threading.Event()
        self.written: dict[Key, int] = {}

    def run(self) -> None:
        """Look until told to stop."""
        attempt, game, last, looked = "", "", 0, 0.0
        while not self.stop.wait(LOOK_SECONDS):
            if time.monotonic() - looked > 0.5:
                looked, running = time.monotonic(), self.web.farm.state("stage").running
                if running is not None and running.attempt != attempt:
                    attempt, game, last = running.attempt, running.game, 0
            new = self.web.farm.ledger.plies(attempt, last) if attempt else []
            now_ns = time.monotonic_ns()
            for number, _ in new:
                if last:  # those of the first look may be older
                    self.written[game, number] = now_ns
            last = new[-1][0] if new else last


async def watch(port: int, count: int, watcher: Watch) -> list[Spectator]:
    """Let so many spectators come and stay."""
    loop = asyncio.get_running_loop()
    told: list[tuple[asyncio.Transport, Spectator]] = []
    for first in range(0, count, COMING):
        coming = range(first, min(count, first + COMING))
        told += await asyncio.gather(
            *(loop.create_connection(Spectator, "127.0.0.1", port) for _ in coming)
        )
    while not all(one.greeted or one.ended for _, one in told):
        await asyncio.sleep(0.05)
    for _, one in told:
        one.seen.clear()  # from here on all of them are there
    await asyncio.sleep(SECONDS)
    watcher.stop.set()
    await asyncio.sleep(DRAIN_SECONDS)
    assert not any(one.ended for _, one in told)
    for transport, _ in told:
        transport.abort()
    return [one for _, one in told]


@pytest.mark.benchmark
@pytest.mark.parametrize("count", [int(word) for word in CROWDS])
def test_the_delay_of_a_move(tmp_path: pathlib.Path, count: int) -> None:
    """Every spectator gets every ply while all of them watch; the delays are printed."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit[1], limit[1]))
    with theatre.stage(tmp_path) as web:
        theatre.season(web.farm, delay_ms=MOVE_MS)
        web.farm.wait(lambda: web.farm.state("stage").running is not None, 60, "a game")
        watcher = Watch(web)
        watcher.start()
        try:
            crowd = asyncio.run(watch(web.port, count, watcher))
        finally:
            watcher.stop.set()
            watcher.join()
    some = set.union(*(set(one.seen) for one in crowd))
    common = set.intersection(*(set(one.seen) for one in crowd))
    first = min(one.seen[key] for one in crowd for key in one.seen)
    both = [key for key, at_ns in watcher.written.items() if key in some and at_ns > first]
    missed = [key for key in both if key not in common]
    assert len(both) > SECONDS / 2
    assert not missed, "a spectator was not told of a ply"
    delays = sorted(
        (one.seen[key] - watcher.written[key]) / 1e6
        for one in crowd
        for key in both
        if key in one.seen
    )
    p50, p99 = (delays[int(part * (len(delays) - 1))] for part in (0.5, 0.99))
    print(
        f"\nspectators {count}: move to event p50 {p50:.0f} ms, p99 {p99:.0f} ms,"
        f" max {delays[-1]:.0f} ms over {len(both)} plies, load {os.getloadavg()[0]:.1f}"
    )
