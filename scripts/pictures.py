"""Make the README's pictures, of a demo season that really runs: ``make pictures``.

The live page is photographed and filmed by Chromium, ``farm watch`` drawn by the program itself
into an SVG. Everything runs in a folder of its own and is ended afterwards.
"""

from __future__ import annotations

import collections
import contextlib
import io
import itertools
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

import rich.console
import rich.terminal_theme
from PIL import Image
from playwright import sync_api

from orchestrator.commands import common, launch, watch
from orchestrator.ledger import embedded_redis, store

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
GAMES = 7  # finished ones, so that the table says something
PLIES = 30  # of the running game, so that its board and graphs do
BOOK = 8  # plies of the demo's openings
SETTLE_MS = 1_500  # ms: on a busy machine the pieces come later than the moves
PATIENCE_SECONDS = 300.0  # s: until then the season is as far
CONTROL = "5s+50ms"  # slower than the demo's: a game lasts longer than a picture takes
COLUMNS = 140  # of the terminal drawn
PAGE = sync_api.ViewportSize(width=1440, height=1260)
FILM_FRAMES = 36  # before the end of a game, and NEXT_FRAMES of the next one
NEXT_FRAMES = 12
FRAME_MS = 450  # ms from one frame to the next, where the machine is fast enough
WINDOW = sync_api.ViewportSize(width=1440, height=900)
FILM_SIZE = (1008, 630)  # pixels: as wide as a README is shown
END_MS = 2_000  # ms: the last frame stands until the film begins again
FILM_QUALITY = 55  # of 100, of WebP: below 1 MB, and every figure can be read


@contextlib.contextmanager
def farm(folder: pathlib.Path, url: str, port: int) -> Iterator[None]:
    """Run the demo season on this machine, by the Redis at ``url``."""
    program = pathlib.Path(sys.executable).with_name("farm")
    told = ["--quiet", "--data", str(folder), "--web", str(port), "--launch", str(season(folder))]
    env = os.environ | {"FARM_REDIS_URL": url, "FARM_HALL": "hall-1"}
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen([program, "up", *told], env=env, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def season(folder: pathlib.Path) -> pathlib.Path:
    """Write the demo season with more time to think; return its file."""
    path = folder / "demo.toml"
    text = (launch.SEASONS / path.name).read_text(encoding="utf-8")
    path.write_text(text.replace('"600ms+15ms"', f'"{CONTROL}"'), encoding="utf-8")
    (folder / "books").symlink_to(launch.SEASONS / "books")
    return path


def screen(known: store.RedisLedger, folder: pathlib.Path) -> watch.Screen:
    """Return the screen of ``farm watch`` at a moment that is worth a picture."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not known.seasons():
        _look(deadline, folder)
    shown = watch.Screen(known, common.fold(known, "demo"), folder / "archive")
    while True:
        shown.refresh()
        running = shown.state.running
        played = sum(event.tally.games for event in shown.state.events.values())
        if running and played >= GAMES and any(known.plies(running.attempt, PLIES)):
            return shown
        if shown.state.finished:
            sys.exit("pictures: the demo season was over before it was worth a picture")
        _look(deadline, folder)


def _look(deadline: float, folder: pathlib.Path) -> None:
    if time.monotonic() > deadline:
        sys.exit(f"pictures: the demo season does not get on:\n{(folder / 'up.log').read_text()}")
    time.sleep(0.05)


def draw(shown: watch.Screen) -> str:
    """Return the terminal as an SVG that asks no server for a font."""
    console = rich.console.Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(shown.render())
    theme = rich.terminal_theme.MONOKAI
    drawn = console.export_svg(title="farm watch", theme=theme, unique_id="watch")
    return re.sub(r"\s*@font-face \{.*?\}\n", "\n", drawn, flags=re.DOTALL)


@contextlib.contextmanager
def browser() -> Iterator[sync_api.Page]:
    """Run Chromium; yield an empty page."""
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        # Without motion: a board that still moves pieces shows no position of the game.
        yield launched.new_page(viewport=PAGE, color_scheme="light", reduced_motion="reduce")
        launched.close()


def photograph(page: sync_api.Page, path: pathlib.Path) -> None:
    """Take a picture of the live page at a move, which the board is given time to show."""
    page.locator("#moves button:not(.book)").nth(PLIES - BOOK).click()
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=path)


def film(page: sync_api.Page, path: pathlib.Path) -> None:
    """Film the live page from the last moves of a game to the first ones of the next."""
    page.set_viewport_size(WINDOW)
    title = page.locator("#game-title")
    frames: collections.deque[Image.Image] = collections.deque(maxlen=FILM_FRAMES + NEXT_FRAMES)
    taken: collections.deque[float] = collections.deque(maxlen=FILM_FRAMES + NEXT_FRAMES)
    before, of_next = title.inner_text(), 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while of_next < NEXT_FRAMES and time.monotonic() < deadline:
        taken.append(time.monotonic())
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        frames.append(shot.resize(FILM_SIZE, Image.Resampling.LANCZOS))
        of_next += title.inner_text() != before
        page.wait_for_timeout(max(0.0, FRAME_MS - (time.monotonic() - taken[-1]) * 1000))
    lasted = [round((after - at) * 1000) for at, after in itertools.pairwise(taken)]
    first, *others = frames
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=[*lasted, END_MS],
        loop=0,
        quality=FILM_QUALITY,
        method=6,
    )


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def main() -> None:
    """Make the three pictures."""
    PICTURES.mkdir(exist_ok=True)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="farm-pictures-") as name:
        folder = pathlib.Path(name)
        with (
            embedded_redis.EmbeddedRedis(folder / common.REDIS) as redis,
            farm(folder, redis.url, port),
            store.connect(redis.url) as known,
            browser() as page,
        ):
            shown = screen(known, folder)
            page.goto(f"http://127.0.0.1:{port}/")
            photograph(page, PICTURES / "live-page.png")
            shown.refresh()
            (PICTURES / "watch.svg").write_text(draw(shown), encoding="utf-8")
            page.goto(f"http://127.0.0.1:{port}/")
            film(page, PICTURES / "live-page.webp")


if __name__ == "__main__":
    main()
