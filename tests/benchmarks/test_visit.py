"""A first visit of the live page on a phone, on a slow 4G. Prints figures, asserts no time.

The link is what Lighthouse calls slow 4G: 1.6 Mbit/s, 150 ms to the server and back, as Chromium
emulates it; the processor as it is, and four times slower. The page is that of a simulated
season that is half played, with a game of 120 plies on the board: a season of some thirty games,
and one of two thousand. ``FARM_LIGHTHOUSE`` names a program (npm's ``lighthouse``), whose scores
for a phone are printed, too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
from collections.abc import Iterator
from typing import Any

import chess
import harness
import httpx
import made
import pytest
import theatre
from playwright import sync_api

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.broadcast.forecast import settings

LONG = os.environ.get("FARM_BENCH") == "long"
VISITS = 5 if LONG else 1
ENGINES = (6, 46) if LONG else (6,)  # of a double round robin: 30 games, and 2,070
PLIES = 120
SLOWER = (1, 4) if LONG else (1,)
LIGHTHOUSE = os.environ.get("FARM_LIGHTHOUSE")
SLOW_4G = {"latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 0.75e6 / 8}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 3, "is_mobile": True}
PATIENCE = 120_000  # ms
# Lighthouse waits for a quiet network, which a page that listens never has: 45 s a run.
LIGHTHOUSE_SECONDS = 240
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
TIMES = ("first-contentful-paint", "largest-contentful-paint", "total-blocking-time")

WATCH = """
window.visit = { shift: 0, blocked: 0, painted: 0 }
new MutationObserver((_, watch) => {
  if (!document.querySelector("#board g[data-piece]")) return
  watch.disconnect()
  requestAnimationFrame(() => { window.visit.piece = performance.now() })
}).observe(document, { childList: true, subtree: true })
const seen = (type, take) => new PerformanceObserver(list => {
  for (const entry of list.getEntries()) take(entry)
}).observe({ type, buffered: true })
seen("layout-shift", entry => { if (!entry.hadRecentInput) window.visit.shift += entry.value })
seen("longtask", entry => { window.visit.blocked += entry.duration - 50 })
seen("largest-contentful-paint", entry => { window.visit.painted = entry.startTime })
"""
FIGURES = """() => {
  const files = performance.getEntriesByType("resource")
  const [page] = performance.getEntriesByType("navigation")
  const bytes = all => all.reduce((sum, { transferSize }) => sum + transferSize, 0)
  const [paint] = performance.getEntriesByName("first-contentful-paint")
  return { ...window.visit, first: paint.startTime, requests: files.length + 1,
    bytes: bytes([page, ...files]), script: bytes(files.filter(({ name }) => name.endsWith(".js"))),
    nodes: document.getElementsByTagName("*").length }
}"""


@dataclasses.dataclass(frozen=True)
class Visit:
    """What one visit saw: ms since it began, bytes over the wire, counts."""

    first: float  # paint
    piece: float
    painted: float  # the largest
    blocked: float
    shift: float
    requests: int
    bytes: int
    script: int
    nodes: int


@contextlib.contextmanager
def half_played(root: pathlib.Path, engines: int) -> Iterator[tuple[str, int]]:
    """Serve a season in its middle; give its address, and how many games it has."""
    tape = theatre.round_robin(root, engines)
    tape.shown = len(tape.journal) // 2
    state = tape.folded()
    last = max(
        (game for game in state.games.values() if game.finished is not None),
        key=lambda game: game.finished.ended_ms if game.finished is not None else 0,
    )
    assert last.finished is not None
    folder = root / "archive" / tape.season / "games" / last.id
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(_record(tape.season, last.id, last.finished.attempt))
    with theatre.served(tape, root, settings.Settings(runs=5, humble=False)) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        live = httpx.get(f"{url}/api/v1/seasons/{tape.season}/live").json()
        assert len(live["plies"]) == PLIES
        yield url, len(state.games)


def _record(season: str, game: str, attempt: str) -> str:
    """Return the record of a long game of legal moves."""
    board, plies, draw = chess.Board(), [], random.Random(7)
    while len(plies) < PLIES:
        line, ahead = [], board.copy()
        while len(line) < 12 and (moves := sorted(ahead.legal_moves, key=str)):
            move = draw.choice(moves)
            line.append(ahead.san(move))
            ahead.push(move)
        assert line, "the game is over: another seed"
        move, number = board.parse_san(line[0]), len(plies) + 1
        clock = {"white_clock_ns": 10**12, "black_clock_ns": 10**12, "think_ns": 10**9}
        search = {"depth": 30, "seldepth": 40, "nodes": 10**8, "nps": 10**8}
        score = {"cp": draw.randint(-90, 90)}
        plies.append(made.ply(number, move.uci(), line[0], pv=line, score=score, **search, **clock))
        board.push(move)
    record = contract.GameRecord(
        order=made.order(season=season, event=game.partition(".")[0], game=game),
        attempt=attempt,
        started_ms=1,
        ended_ms=2,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=tuple(plies),
        outcome=verdict.disconnect("black"),
        final_fen=board.fen(),
    )
    return record.model_dump_json()


def visit(browser: sync_api.Browser, url: str, slower: int) -> Visit:
    """Open the page as a phone does that was never here."""
    with contextlib.closing(browser.new_context(service_workers="block", **PHONE)) as context:
        page = context.new_page()
        page.add_init_script(WATCH)
        devtools = context.new_cdp_session(page)
        devtools.send("Network.enable")
        devtools.send("Network.emulateNetworkConditions", {"offline": False, **SLOW_4G})
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        page.goto(url, timeout=PATIENCE)
        page.locator("#board g[data-piece]").first.wait_for(timeout=PATIENCE)
        page.locator("#panel tbody tr").first.wait_for(timeout=PATIENCE)  # the last to come
        return Visit(**page.evaluate(FIGURES))


def row(visits: list[Visit]) -> str:
    """Return the medians of visits as a row's cells."""

    def median(name: str) -> float:
        return statistics.median(getattr(one, name) for one in visits)

    times = [f"{median(name) / 1e3:.2f} s" for name in ("first", "piece", "painted")]
    weights = [f"{median(name) / 1e3:.0f} kB" for name in ("bytes", "script")]
    counts = [f"{median(name):.0f}" for name in ("requests", "nodes")]
    rest = [f"{median('blocked'):.0f} ms", f"{median('shift'):.3f}"]
    return " | ".join([*times, *rest, *weights, *counts])


def scores(program: str, url: str, into: pathlib.Path) -> str:
    """Return what Lighthouse says of a page on its phone, as a line."""
    subprocess.run(
        [
            program,
            url,
            "--quiet",
            "--output=json",
            f"--output-path={into}",
            "--chrome-flags=--headless=new --no-sandbox",
        ],
        env=os.environ | {"CHROME_PATH": str(shutil.which("chromium"))},
        check=True,
        timeout=LIGHTHOUSE_SECONDS,
    )
    told: dict[str, Any] = json.loads(into.read_text(encoding="utf-8"))
    marks = [f"{name} {round(100 * told['categories'][name]['score'])}" for name in CATEGORIES]
    times = [f"{name} {told['audits'][name]['displayValue']}" for name in TIMES]
    return f"Lighthouse {told['lighthouseVersion']}: {', '.join(marks + times)}"


@pytest.mark.benchmark
def test_a_first_visit_shows_the_game(tmp_path: pathlib.Path) -> None:
    """The board has its pieces and the tables their rows; what it took is printed."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("package chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        print(f"\nvisit: medians of {VISITS}, slow 4G, load {os.getloadavg()[0]:.1f}\n")
        print(
            "| games | processor | first paint | first piece | largest paint | blocked | shift"
            " | bytes | of them script | requests | nodes |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|")
        for engines in ENGINES:
            root = tmp_path / str(engines)
            root.mkdir()
            with half_played(root, engines) as (url, games):
                for slower in SLOWER:
                    visits = [visit(browser, url, slower) for _ in range(VISITS)]
                    print(f"| {games:,} | 1/{slower} | {row(visits)} |", flush=True)
                    assert all(one.piece for one in visits)
                if LIGHTHOUSE:
                    said = [scores(LIGHTHOUSE, url, root / "said.json") for _ in range(VISITS)]
                    print("".join(f"\n* {games:,} games, {line}" for line in said), flush=True)
        browser.close()
