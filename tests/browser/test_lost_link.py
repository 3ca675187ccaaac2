"""What a spectator sees whose link is lost: no wrong clock, nothing empty, and all comes back."""

from __future__ import annotations

import pathlib

import harness
import page_faults
import theatre
from playwright import sync_api

SILENCE_MS = 60_000  # longer than the page bears: the server speaks every 15 s


def demo() -> theatre.Tape:
    """Return the demo season, played to its end."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    return tape


def test_a_link_that_only_stays_silent_is_opened_anew(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """No error tells a browser that its network is another one now; the silence tells the page."""
    tape = demo()
    tape.shown = len(tape.journal) // 2
    with theatre.served(tape, tmp_path) as url, page_faults.silent(browser) as page:
        page.clock.install()
        page.route("**/api/v1/live*", lambda _: None)  # neither an answer nor an error
        page.goto(url)
        # Where things stood is here without the stream, and all that is drawn of it.
        sync_api.expect(page.locator("#panel tbody tr").first).to_be_visible()
        sync_api.expect(page.locator("#link-state")).to_have_text("connecting")
        page.unroute("**/api/v1/live*")
        tape.shown = len(tape.journal)
        page.clock.fast_forward(SILENCE_MS)
        check_live(page, tape)


def test_all_tabs_share_one_stream(browser: sync_api.Browser, tmp_path: pathlib.Path) -> None:
    """One connection tells them all; when its tab is hidden or closed, another one takes over."""
    asked: list[sync_api.Page] = []
    made = browser.new_context(service_workers="block")
    made.set_default_timeout(page_faults.PATIENCE)
    made.on("request", lambda one: asked.append(one.frame.page) if "/live" in one.url else None)
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal) // 2
    with theatre.served(tape, tmp_path) as url:
        made.clock.install()
        tabs = [made.new_page() for _ in range(3)]
        for tab in tabs:
            tab.goto(url)
            check_live(tab, tape)
        assert asked == tabs[:1]
        tape.shown += 40
        for tab in tabs:
            check_live(tab, tape)
        for gone in (tabs[0], tabs[1]):
            gone.evaluate(HIDE)
            made.clock.fast_forward(SILENCE_MS)
            check_live(tabs[2], tape)
        gone.evaluate(SHOW)
        tape.shown = len(tape.journal)
        check_live(gone, tape)
        with made.expect_event("request", lambda one: "/live" in one.url):
            asked[-1].close()
        made.close()


HIDE = """() => {
  Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })
  document.dispatchEvent(new Event("visibilitychange"))
}"""
SHOW = """() => {
  delete document.visibilityState
  document.dispatchEvent(new Event("visibilitychange"))
}"""


def check_live(tab: sync_api.Page, tape: theatre.Tape) -> None:
    """Wait until a tab is live and counts all games that were played."""
    played = sum(event.tally.games for event in tape.folded().events.values())
    sync_api.expect(tab.locator("#link-state")).to_have_text("live")
    tab.wait_for_function(
        "played => [...document.querySelectorAll('#events small')]"
        ".reduce((sum, one) => sum + Number(one.textContent.split('/')[0]), 0) === played",
        arg=played,
    )


def test_a_panel_comes_when_the_server_is_back(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """What was asked for meanwhile is shown then; until then the old panel is marked as busy."""
    away = "**/api/v1/seasons/*/events/*/schedule"
    # Not silent: a browser tells of each request that fails.
    made = browser.new_context(service_workers="block")
    made.set_default_timeout(page_faults.PATIENCE)
    page = made.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    with theatre.served(demo(), tmp_path) as url:
        page.clock.install()
        page.goto(url)
        panel = page.locator("#panel")
        sync_api.expect(panel.locator("tbody tr").first).to_be_visible()
        page.route(away, lambda route: route.abort())
        with page.expect_event("requestfailed"):
            page.get_by_role("tab", name="Schedule").click()
        sync_api.expect(panel).to_have_attribute("aria-busy", "true")
        page.unroute(away)
        page.clock.fast_forward(SILENCE_MS)
        sync_api.expect(panel).to_have_attribute("data-shows", "schedule")
        sync_api.expect(panel).not_to_have_attribute("aria-busy", "true")
    made.close()
    assert not wrong


KEPT = r"""async () => {
  await navigator.serviceWorker.ready
  const of = async name => (await (await caches.open(name)).keys()).map(one => one.url)
  const all = (await Promise.all((await caches.keys()).map(of))).flat()
  return [/kept-state/, /\/events\/[^/]+$/].every(one => all.some(url => one.test(url)))
}"""
OFFLINE = {
    "en": "No connection",
    "de": "Keine Verbindung",
    "es": "Sin conexi\N{LATIN SMALL LETTER O WITH ACUTE}n",
}


def test_without_a_network_the_last_state_is_shown(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """The page opens from what the browser has kept, and says so in each language."""
    made = browser.new_context(viewport={"width": 1440, "height": 900})
    made.set_default_timeout(page_faults.PATIENCE)
    page = made.new_page()
    with theatre.served(demo(), tmp_path) as url:
        page.goto(url)
        # Not wait_for_function: a promise is as good as true to it.
        harness.wait(lambda: page.evaluate(KEPT), "what the browser is to keep")
        standings = page.locator("#panel tbody").inner_text()
        name = page.locator("#season-name").inner_text()
    for language, words in OFFLINE.items():
        page.goto(f"{url}/?lang={language}")
        sync_api.expect(page.locator("#notice")).to_contain_text(words)
        sync_api.expect(page.locator("#season-name")).to_have_text(name)
        panel = page.locator("#panel tbody")
        sync_api.expect(panel.locator("tr")).to_have_count(len(standings.splitlines()))
        sync_api.expect(page.locator("#beside tbody tr").first).to_be_visible()
        sync_api.expect(page.locator("#board g[data-piece]").first).to_be_visible()
        sync_api.expect(page.locator("#link-state")).not_to_have_class("on")
    made.close()


def test_a_tab_from_before_a_deploy_is_read_again(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """Its texts have the name of a version that is gone: it asks once, then has the new page."""
    asked: list[str] = []
    visits: list[str] = []
    made = browser.new_context(service_workers="block")
    made.set_default_timeout(page_faults.PATIENCE)
    page = made.new_page()
    page.on("request", lambda one: visits.append(one.url) if one.is_navigation_request() else None)

    def texts(route: sync_api.Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=404)
        else:
            route.continue_()

    with theatre.served(demo(), tmp_path) as url:
        page.route("**/texts/*.json", texts)
        page.goto(url)
        sync_api.expect(page.locator("#link-state")).to_have_text("live")
    assert [len(asked), len(visits)] == [2, 2]
    made.close()
