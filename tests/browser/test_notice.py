"""The page's words on what is waited for, what ended a season, and a game without a move."""

from __future__ import annotations

import contextlib
import datetime as dt
import pathlib
import zoneinfo
from collections.abc import Sequence

import driver
import harness
import page_faults
import theatre
from playwright import sync_api

from orchestrator import contract
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import abandoning, orders

ZONE = "Asia/Kolkata"  # half an hour off every other zone's full hours


class Late(theatre.Tape):
    """A tape that is looked at half a minute after its season has come to its break."""

    def __init__(self, season: driver.Driver, loaded: load.Loaded) -> None:
        super().__init__(season.journal)
        self.clock_ms = driver.Patient.launched(loaded).play(12).state.at_ms + 30_000

    def now_ms(self) -> int:
        """Return that moment: what is waited for then has been for a while."""
        return self.clock_ms


def elsewhere(browser: sync_api.Browser) -> contextlib.AbstractContextManager[sync_api.Page]:
    """Give an empty page somewhere else in the world."""
    return page_faults.silent(browser, locale="en-GB", timezone_id=ZONE)


def local(at_ms: int) -> str:
    """Return a moment of another day as the page writes it."""
    then = dt.datetime.fromtimestamp(at_ms / 1000, zoneinfo.ZoneInfo(ZONE))
    return f"{then.day} {then:%b} {then:%Y}, {then:%H:%M}"


def named(season: driver.Driver, engines: Sequence[str]) -> str:
    """Return the players of a game as the page names them."""
    return " \N{EN DASH} ".join(season.state.engines[one].name for one in engines)


def test_the_page_says_what_is_waited_for(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """Hall, pause, a break until a time of the viewer, the end: each in words, without a reload."""
    loaded = driver.load(tmp_path, driver.season_text())
    season = driver.Patient.launched(loaded)
    season.play(3)
    tape = Late(season, loaded)

    def show() -> None:
        tape.shown = len(season.journal)

    show()
    with theatre.served(tape, tmp_path) as url, elsewhere(browser) as page:
        notice = page.locator("#notice")
        page.goto(url)
        game = season.state.game(str(season.state.ready_game()))
        players = named(season, (game.white, game.black))
        coming = f"Next game: {players} (League, round {game.round})"
        since = local(season.state.at_ms)
        sync_api.expect(notice).to_have_text(f"{coming} waits for its hall since {since}.")
        season.append(operations.pause(season.state, "ann", "power work."))
        show()
        paused = f"The season is paused: power work. {coming}."
        sync_api.expect(notice).to_have_text(paused)
        sync_api.expect(notice).not_to_have_class("good")
        season.append(operations.resume(season.state, "ann", ""))
        season.play(9)
        show()
        final = season.state.events["final"]
        players = named(season, final.arrivals["league"].engines)
        opens = local(final.opens_at_ms or 0)
        expected = f"Final: {players}, starts about {opens}."
        sync_api.expect(notice).to_have_text(expected)
        sync_api.expect(notice).to_have_class("good")  # a break is no trouble
        season.append(abandoning.abandon(season.state, "ann", "launched by mistake"))
        show()
        sync_api.expect(notice).to_have_text("The season was abandoned: launched by mistake.")
        events = page.locator("#events a")
        sync_api.expect(events.locator(".dot.grey")).to_have_count(1)
        sync_api.expect(events.nth(1)).to_contain_text("abandoned")
        page.get_by_role("tab", name="Archive").click()
        sync_api.expect(page.locator("#panel table").first).to_contain_text("abandoned")


def test_a_game_without_a_move_says_why(browser: sync_api.Browser, tmp_path: pathlib.Path) -> None:
    """In place of empty graphs stands what ended it, nothing is counted; the next gets ready."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()))
    season.settle()
    game = str(season.state.ready_game())
    attempt = season.start(game)
    order = orders.game_order(season.state, game)
    token = contract.Token(1, 1)
    fact, packed = harness.invented(order, harness.claim("test", game, attempt), token)
    fact = fact.model_copy(update={"record_sha256": "ab" * 32})
    season.append([contract.Draft.of("game_finished", fact)])
    tape = theatre.Kept(season.journal)
    tape.records[attempt] = packed
    tape.shown = len(season.journal)
    with theatre.served(tape, tmp_path) as url, elsewhere(browser) as page:
        page.goto(url)
        unplayed = page.locator("#unplayed")
        sync_api.expect(unplayed).to_have_text("No move was played: Black disconnects")
        sync_api.expect(page.locator("#graphs")).to_be_hidden()
        cards = page.locator(".card")
        sync_api.expect(cards).to_have_count(2)
        for card in cards.all():
            sync_api.expect(card).to_contain_text("The engine told of no options")
            sync_api.expect(card).not_to_contain_text("0 options")
        sync_api.expect(page.locator('[data-x="to-draw"]')).to_have_text("\N{EN DASH}")
        season.settle()
        season.start(str(season.state.ready_game()))
        tape.shown = len(season.journal)
        sync_api.expect(unplayed).to_be_hidden()
        sync_api.expect(page.locator("#graphs")).to_be_visible()
        sync_api.expect(page.locator("#game-facts")).to_contain_text("engines are getting ready")
