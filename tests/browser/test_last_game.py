"""Where a replay's way back leads; what few games, and annulled ones, look like in the tables."""

from __future__ import annotations

import pathlib
import re

import driver
import harness
import page_faults
import theatre
from playwright import sync_api

from orchestrator import contract
from orchestrator.broadcast.forecast import settings
from orchestrator.season.fold import orders

EAGER = settings.Settings(runs=8, humble=False)


def play(season: driver.Driver, tape: theatre.Kept) -> None:
    """Play a game that has a record."""
    season.settle()
    game = str(season.state.ready_game())
    attempt = season.start(game)
    order = orders.game_order(season.state, game)
    taken = harness.claim("test", game, attempt)
    fact, packed = harness.invented(order, taken, contract.Token(1, 1))
    tape.records[attempt] = packed
    told = fact.model_copy(update={"record_sha256": "ab" * 32, "ended_ms": season.now_ms})
    season.append([contract.Draft.of("game_finished", told)])


def one_played(folder: pathlib.Path) -> tuple[driver.Driver, theatre.Kept]:
    """Return a season whose first game is played, with its record, and whose second is ready."""
    season = driver.Driver.launched(driver.load(folder, driver.season_text()))
    tape = theatre.Kept(season.journal)
    play(season, tape)
    season.settle()
    return season, tape


def test_the_way_back_from_a_replay_leads_where_it_says(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """While one is played it is the live game, whatever tables stand below; at the end the last."""
    season, tape = one_played(tmp_path)
    season.start(str(season.state.ready_game()))
    tape.shown = len(season.journal)
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        back = page.locator("#to-live")
        page.goto(f"{url}/#/test/game/league.1")
        sync_api.expect(back).to_have_text("Back to the live game")
        page.locator("#events a").last.click()
        sync_api.expect(page.locator("#tabs")).to_be_in_viewport()
        sync_api.expect(back).not_to_be_hidden()
        season.play()
        tape.shown = len(season.journal)
        sync_api.expect(back).to_have_text("Back to the last game")
        back.click()
        sync_api.expect(back).to_be_hidden()
        sync_api.expect(page.locator("#notice")).to_contain_text("is the champion")


def test_the_browsers_title_names_the_game_that_is_replayed(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """A replay's is its game, event and round, also when the season goes on; else the season's."""
    season, tape = one_played(tmp_path)
    tape.shown = len(season.journal)
    game, names = season.state.game("league.1"), season.state.engines
    replayed = (
        f"{names[game.white].name} \N{EN DASH} {names[game.black].name}, League, round {game.round}"
    )
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        page.goto(f"{url}/#/test")
        sync_api.expect(page).to_have_title("Test Season \N{EN DASH} live")
        page.goto(f"{url}/#/test/game/league.1")
        sync_api.expect(page).to_have_title(replayed)
        season.play()
        tape.shown = len(season.journal)
        sync_api.expect(page.locator("#notice")).to_contain_text("is the champion")
        sync_api.expect(page).to_have_title(replayed)
        page.locator("#to-live").click()
        champion = season.state.champion
        assert champion is not None
        sync_api.expect(page).to_have_title(f"Test Season: {names[champion].name} has won")


def test_what_a_spectator_types_outlives_the_next_game(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """A result changes the table beside a form; words, their download and the focus stay."""
    season, tape = one_played(tmp_path)
    tape.shown = len(season.journal)
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        page.goto(url)
        page.get_by_role("tab", name="Archive").click()
        field = page.locator("#panel").get_by_label("Engine")
        field.press_sequentially("half an eng")
        played = page.locator("#panel tbody td.num")
        sync_api.expect(played).to_have_text(re.compile("^1/"))
        play(season, tape)
        tape.shown = len(season.journal)
        sync_api.expect(played).to_have_text(re.compile("^2/"))
        sync_api.expect(field).to_be_focused()
        sync_api.expect(field).to_have_value("half an eng")
        sync_api.expect(page.locator("#panel .filters a")).to_have_attribute(
            "href", "pgn/test.pgn?engine=half+an+eng"
        )


def test_a_few_games_tell_no_figures_that_mislead(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """The list says that too little was played, and that no roster gives its scale."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text())).play(4)
    tape = theatre.Tape(season.journal)
    tape.shown = len(season.journal)
    with theatre.served(tape, tmp_path, EAGER) as url, page_faults.silent(browser) as page:
        page.goto(url)
        page.get_by_role("tab", name="Rating list").click()
        panel = page.locator("#panel")
        sync_api.expect(panel).to_contain_text("Too few games yet to tell what White is worth")
        sync_api.expect(panel).to_contain_text("No roster rates these engines")
        texts = page.locator('#panel [data-x="error"]').all_inner_texts()
        assert texts
        assert "0.0" not in texts


def test_a_crosstable_strikes_annulled_games_through(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """The games of an engine that is out are marked and said to be annulled, no other is."""
    tape = theatre.one_out(tmp_path, after=1, games=6)
    tape.shown = len(tape.journal)
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        page.goto(url)
        page.get_by_role("tab", name="Crosstable").click()
        sync_api.expect(page.locator("#panel .note")).to_contain_text("the games of Engine 1 are")
        links = page.locator("#panel td a")
        struck = links.evaluate_all(
            "all => all.map(one => getComputedStyle(one).textDecorationLine === 'line-through')"
        )
        told = links.evaluate_all("all => all.map(one => one.ariaLabel.includes('annulled'))")
        rows = links.evaluate_all("all => all.map(one => one.closest('tr').children[1].innerText)")
        own = [
            name == "Engine 1"
            or "against Engine 1" in str(links.nth(at).get_attribute("aria-label"))
            for at, name in enumerate(rows)
        ]
        assert struck == told == own
        assert any(own)
        assert not all(own)


def test_last_results_call_annulled_games_so(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """Beside the standings, which do not count them, they are listed and struck through."""
    tape = theatre.one_out(tmp_path, after=1, games=6)
    tape.shown = len(tape.journal)
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        page.goto(url)
        sync_api.expect(page.locator("#beside .results a").first).to_be_attached()
        links = page.locator("#beside .results a").evaluate_all(
            "all => all.map(one => [one.textContent, getComputedStyle(one).textDecorationLine])"
        )
        marked = [(text.endswith(" (annulled)"), line == "line-through") for text, line in links]
        assert marked == [("Engine 1 " in f"{text} ",) * 2 for text, _ in links]
        assert {called for called, _ in marked} == {True, False}
