"""What a spectator sees whose link is lost: no wrong clock, nothing empty, and all comes back."""

from __future__ import annotations

import pathlib

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
    with theatre.served(demo(), tmp_path) as url, page_faults.silent(browser) as page:
        page.clock.install()
        page.route("**/api/v1/live*", lambda _: None)  # neither an answer nor an error
        page.goto(url)
        state = page.locator("#link-state")
        sync_api.expect(state).to_have_text("connecting")
        page.unroute("**/api/v1/live*")
        page.clock.fast_forward(SILENCE_MS)
        sync_api.expect(state).to_have_text("live")
        sync_api.expect(page.locator("#panel tbody tr").first).to_be_visible()


def test_a_panel_comes_when_the_server_is_back(
    browser: sync_api.Browser, tmp_path: pathlib.Path
) -> None:
    """What was asked for meanwhile is shown then; until then the old panel is marked as busy."""
    away = "**/api/v1/seasons/*/events/*/schedule"
    made = browser.new_context()  # not silent: a browser tells of each request that fails
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
