"""TCEC's public viewer, unmodified, shows our feeds (FARM_TCECGUI: a checkout of it).

Without a checkout the schema tests of ``tests/broadcast`` stand in.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import pathlib
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib import parse

import pytest
import theatre
from playwright import sync_api

from orchestrator import contract

GUI = pathlib.Path(os.environ["FARM_TCECGUI"])
SETTLED = {"tc_seen": "1", "tc_version": "99999999", "tc_twitch_chat": "0", "tc_twitch_video": "0"}
SECONDS = 40_000  # ms


class Beside(http.server.SimpleHTTPRequestHandler):
    """Serves our feeds beside the viewer's own files."""

    def __init__(self, feeds: pathlib.Path, *args: Any) -> None:
        self.feeds = feeds
        super().__init__(*args)

    def translate_path(self, path: str) -> str:
        """Find a path among the feeds first; the page itself is the unbuilt one."""
        name = parse.unquote(parse.urlsplit(path).path).lstrip("/") or "index_base.html"
        ours = self.feeds / name
        return str(ours if ours.is_file() else GUI / name)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextlib.contextmanager
def viewer(feeds: pathlib.Path) -> Iterator[sync_api.Page]:
    """Open the viewer on a directory of feeds; nothing outside is asked."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Beside, feeds))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/"
    path = shutil.which("chromium")
    assert path is not None
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.route("**/*", lambda route: _only(route, address))
        page.add_init_script(
            "".join(f"localStorage.setItem('{key}', '{text}');" for key, text in SETTLED.items())
        )
        page.goto(address)
        yield page
        browser.close()
    server.shutdown()
    server.server_close()


def _only(route: sync_api.Route, address: str) -> None:
    if route.request.url.startswith((address, "data:", "blob:")):
        route.continue_()
    else:
        route.abort()


def wait(page: sync_api.Page, true: Callable[[], bool], what: str) -> None:
    """Wait for something to be shown."""
    for _ in range(SECONDS // 250):
        if true():
            return
        page.wait_for_timeout(250)
    page.screenshot(path=str(pathlib.Path(os.environ.get("FARM_SHOTS", ".")) / "tcecgui.png"))
    raise AssertionError(f"the viewer does not show {what}")


def test_it_shows_a_running_game_and_its_tables(tmp_path: pathlib.Path) -> None:
    """Moves, players, crosstable and schedule in the viewer are those of the ledger."""
    with theatre.stage(tmp_path) as web:
        theatre.season(web.farm, delay_ms=400)
        live = web.feeds / "live.pgn"
        web.farm.wait(
            lambda: live.exists() and live.read_text().count("wv=") > 6, 60, "a game in flight"
        )
        with viewer(web.feeds) as page:
            wait(page, lambda: moves(page) > 10, "the moves")
            state = web.farm.state("stage")
            running = state.running
            assert running is not None
            texts = [text for _, text in web.farm.ledger.plies(running.attempt)]
            known = [contract.PlyRecord.decode(text).san for text in texts]
            book = len(state.books["b"]) and page.evaluate(
                "xboards.live.moves.filter(move => move.book).length"
            )
            shown = page.evaluate("xboards.live.moves.map(move => move.m)")[book:]
            assert shown
            assert shown == known[: len(shown)]
            game = state.game(running.game)
            players = page.evaluate("[0, 1].map(side => xboards.live.players[side].name)")
            assert players == [state.engines[one].name for one in (game.white, game.black)]
            wait(page, lambda: speeds(page) == ["1Mnps"] * 2, "the engines' speeds")
            check_tables(page, web)


def speeds(page: sync_api.Page) -> list[str]:
    """Return the speeds of both engines as they are shown.

    The viewer doubts a speed of more than three times the nodes by the move's time and half a
    second, and shows it as 0.
    """
    found: list[str] = page.evaluate(
        "[0, 1].map(n => document.querySelector(`#speed${n}`).innerText)"
    )
    return found


def check_tables(page: sync_api.Page, web: theatre.Web) -> None:
    """Hold the viewer's crosstable and schedule against our own documents."""
    rows = web.json("seasons/stage/events/league")["rows"]
    page.evaluate("open_table('cross')")
    wait(page, lambda: len(lines(page, "#table-cross")) == len(rows), "the crosstable")
    ranked = [f"{row['name'].split()[0]}" for row in rows]
    for line, name in zip(lines(page, "#table-cross"), ranked, strict=True):
        assert name in line
    page.evaluate("open_table('sched')")
    wait(page, lambda: len(lines(page, "#table-sched")) == 6, "the schedule")
    games = web.json("seasons/stage/events/league/schedule")
    for line, game in zip(lines(page, "#table-sched"), games, strict=True):
        assert game["white"] in line
        assert game["black"] in line
        if game["result"]:
            assert game["result"].replace("1/2", "½") in line.replace("1/2", "½")


def lines(page: sync_api.Page, selector: str) -> list[str]:
    """Return the texts of a table's rows, but its head."""
    found: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{selector} tr')]"
        ".filter(row => row.querySelector('td')).map(row => row.innerText.replace(/\\s+/g, ' '))"
    )
    return found


def moves(page: sync_api.Page) -> int:
    """Return how many plies the viewer has."""
    count: int = page.evaluate(
        "typeof xboards == 'object' && xboards.live && xboards.live.moves"
        " ? xboards.live.moves.length : 0"
    )
    return count


@pytest.mark.parametrize("share", [0.7, 1.0])
def test_it_draws_a_cup_of_32(tmp_path: pathlib.Path, share: float) -> None:
    """The bracket has all 32 matches, and the scores of those that were played."""
    tape = theatre.simulated("cup")
    tape.shown = round(len(tape.journal) * share)
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    with viewer(tmp_path / "feeds") as page:
        wait(page, lambda: page.evaluate("typeof open_table") == "function", "anything")
        wait(page, lambda: page.evaluate("!!(window.xboards || xboards).live"), "a board")
        page.wait_for_timeout(12_000)  # the viewer asks for its tables ten seconds late
        page.evaluate("open_table('brak')")
        wait(page, lambda: page.locator("#table-brak .match").count() == 32, "32 matches")
        if os.environ.get("FARM_SHOTS"):
            page.screenshot(path=str(pathlib.Path(os.environ["FARM_SHOTS"]) / f"cup-{share}.png"))
        state = made.projector.seasons["cup"].state
        rounds = made.shelf.get("seasons/cup/events/round32") or made.shelf.get(
            f"seasons/cup/events/{next(iter(state.events))}"
        )
        assert rounds is not None
        matches = json.loads(rounds.body)["bracket"]["matches"]
        drawn = page.locator("#table-brak .match").all_inner_texts()
        for match, text in zip(matches, drawn, strict=False):
            words = " ".join(text.split())
            for side in match["sides"]:
                assert f"{side['score']:g}" in words, (match, text)
