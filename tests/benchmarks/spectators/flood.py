"""Memory and processor time of server and page while a game floods them, over time.

Games of engines that print 100,000 lines of thinking before some of their moves and else move at
once; a crowd listens, and one page in a browser shows all of it. Figures are counts and
processor seconds, which others on the machine do not change.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator

import harness
import theatre
from playwright import sync_api

CROWD = pathlib.Path(__file__).with_name("crowd.py")
SEASON = "test"
FLOODED = (11, 12, 31, 32, 51, 52)  # plies before which 100,000 lines are printed
MIB = 1 << 20
ESTABLISHED = "01"  # a state of /proc/net/tcp


@dataclasses.dataclass(frozen=True)
class Sample:
    """What was seen at a moment: seconds since the first, MiB, processor seconds, counts."""

    at_s: float
    server_mib: float
    server_cpu_s: float
    heap_mib: float
    page_cpu_s: float
    nodes: int
    listeners: int
    games: int


def watch(root: pathlib.Path, crowd: int, seconds: float, samples: int) -> list[Sample]:
    """Let a crowd and a page watch for so long; raise ``AssertionError`` if one was sent away."""
    with theatre.stage(root) as web, _page(web) as page:
        _launch(web)
        page.goto(web.url)
        page.locator("#moves button").first.wait_for(timeout=120_000)
        return _before(web, crowd, page, seconds, samples)


def _before(
    web: theatre.Web, crowd: int, page: sync_api.Page, seconds: float, samples: int
) -> list[Sample]:
    with _crowd(web, crowd) as process:
        found = _samples(web, page, seconds, samples)
        assert process.poll() is None, "the crowd has gone"
        left = _established(web)
        assert left >= crowd, f"{left} of {crowd} spectators are left"
    return found


def _launch(web: theatre.Web) -> None:
    """Launch more games than will be played."""
    words = [word for ply in FLOODED for word in ("--fault", f"flood@{ply}")]
    rows = [harness.scripted(web.farm.life, 1 + n % 3, *words, "--seed", str(n)) for n in range(4)]
    for number, row in enumerate(rows):
        row |= {"id": f"e{number}", "name": f"Flooding {number}"}
    file = harness.league(web.farm.root / "flood.toml", rows, 500, control="30m+1s")
    web.farm.launch(file, SEASON, seed=theatre.SEED)


def _established(web: theatre.Web) -> int:
    """Return how many connections the server holds."""
    rows = pathlib.Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    ours = f":{web.port:04X}"
    return sum(row.split()[1].endswith(ours) and row.split()[3] == ESTABLISHED for row in rows)


def _used(pid: int) -> tuple[float, float]:
    """Return a process' memory, MiB, and its processor time, s."""
    pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    ticks = int(stat[11]) + int(stat[12])
    return pages * os.sysconf("SC_PAGE_SIZE") / MIB, ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def _crowd(web: theatre.Web, count: int) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, str(CROWD), str(web.port), str(count)]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def _page(web: theatre.Web) -> Iterator[sync_api.Page]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield browser.new_page()
        browser.close()


def _samples(web: theatre.Web, page: sync_api.Page, seconds: float, count: int) -> list[Sample]:
    assert web.process is not None
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable")
    begin, found = time.monotonic(), []
    for number in range(count + 1):
        page.wait_for_timeout(max(0.0, begin + number * seconds / count - time.monotonic()) * 1e3)
        devtools.send("HeapProfiler.collectGarbage")  # what is left is what grows
        figures = {
            one["name"]: one["value"] for one in devtools.send("Performance.getMetrics")["metrics"]
        }
        memory, used = _used(web.process.pid)
        state = web.farm.state(SEASON)
        found.append(
            Sample(
                at_s=time.monotonic() - begin,
                server_mib=memory,
                server_cpu_s=used,
                heap_mib=figures["JSHeapUsedSize"] / MIB,
                page_cpu_s=figures["TaskDuration"],
                nodes=int(figures["Nodes"]),
                listeners=int(figures["JSEventListeners"]),
                games=sum(game.finished is not None for game in state.games.values()),
            )
        )
    return found
