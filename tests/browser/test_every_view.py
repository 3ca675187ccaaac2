"""Every panel of the page at every stage of a season: sizes, colours, words, accessibility.

The short form looks at one stage on a phone in the dark; ``make web`` at all, and leaves a
picture of each panel in ``FARM_SHOTS`` for people to look at.
"""

from __future__ import annotations

import itertools
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Literal

import harness
import page_faults
import pytest
import theatre
from playwright import sync_api

from orchestrator.broadcast.forecast import settings

LONG = os.environ.get("FARM_LONG") == "1"
SHOTS = os.environ.get("FARM_SHOTS")
SEASONS = ("season16", "season17", "cup", "frc", "ntcec1")
STAGES = [f"{season} {share}" for season in SEASONS for share in ("0.0", "0.4", "1.0")]
SIZES = {
    "wide": {"width": 2560, "height": 1440},
    "desktop": {"width": 1440, "height": 1000},
    "tablet": {"width": 820, "height": 1180},
    "phone": {"width": 360, "height": 740},
}
VIEWS = list(itertools.product(SIZES, ("light", "dark")))
# What a page says that lacks a value, or shows an object instead of one of its fields.
BROKEN = re.compile(r"\b(undefined|NaN|null|Infinity|Invalid Date)\b|\[object ")
SIDEWAYS = "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
Scheme = Literal["light", "dark"]


@pytest.fixture(scope="module", params=STAGES if LONG else ["cup 1.0"])
def stage(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, str]]:
    """Serve a simulated season, as much of its journal as the stage has; its name and address."""
    season, share = str(request.param).split()
    tape = theatre.simulated(season)
    tape.shown = max(1, round(float(share) * len(tape.journal)))
    root = tmp_path_factory.mktemp("view")
    with theatre.served(tape, root, settings.Settings(runs=5, humble=False)) as address:
        yield f"{season}-{share}", address


@pytest.mark.parametrize(("size", "scheme"), VIEWS if LONG else [("phone", "dark")])
def test_every_panel_is_fit_to_be_seen(
    browser: sync_api.Browser, stage: tuple[str, str], size: str, scheme: Scheme
) -> None:
    """Each panel says something whole, fits the screen, has no serious fault by axe, no error."""
    name, address = stage
    faults: list[str] = []
    look = {"viewport": SIZES[size], "color_scheme": scheme, "reduced_motion": "reduce"}
    with page_faults.silent(browser, **look) as page:
        page.goto(address)
        sync_api.expect(page.locator("#link-state")).to_have_text("live")
        tabs = page.locator("#tabs button")
        sync_api.expect(tabs.first).to_be_visible()
        for at in range(tabs.count()):
            tab = str(tabs.nth(at).get_attribute("data-tab"))
            tabs.nth(at).click()
            sync_api.expect(page.locator(f"#panel[data-shows='{tab}']")).not_to_be_empty()
            faults += [f"{tab}: {fault}" for fault in page_faults.violations(page)]
            faults += [f"{tab}: says {one}" for one in BROKEN.findall(page.inner_text("body"))]
            if sideways := page.evaluate(SIDEWAYS):
                faults.append(f"{tab}: {sideways} px wider than the screen")
            if SHOTS:
                picture = pathlib.Path(SHOTS) / f"{name}-{size}-{scheme}-{tab}.png"
                page.screenshot(path=picture, full_page=True)
    assert not faults, "\n".join(dict.fromkeys(faults))


@pytest.fixture(scope="module")
def long_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a season of names without a space: its own, of events, engines, versions, authors."""
    root = tmp_path_factory.mktemp("words")
    rows = [
        {
            "id": f"e{n}",
            "name": f"{n}Engine_of_an_author_who_likes_underscores",
            "version": "s_4.0.5a.NN_bogotense_a_of_a_branch_with_many_words",
            "author": "Somebody_whose_name_is_an_address@subdomain.example.org",
            "command": ["true"],
        }
        for n in range(4)
    ]
    file = harness.league(root / "season.toml", rows)
    for name in ("Test Season", "League"):
        long = f"{name.replace(' ', '_')}_of_engines_that_nobody_could_name_in_fewer_words"
        file.write_text(file.read_text().replace(f'"{name}"', f'"{long}"'))
    tape = theatre.of_file(file)
    tape.shown = len(tape.journal) // 2
    with theatre.served(tape, root, settings.Settings(runs=5, humble=False)) as address:
        yield address


@pytest.mark.parametrize("size", SIZES)
def test_long_words_widen_no_panel(browser: sync_api.Browser, long_words: str, size: str) -> None:
    """Those without a space are broken, or scroll within their table."""
    with page_faults.silent(browser, viewport=SIZES[size]) as page:
        page.goto(long_words)
        tabs = page.locator("#tabs button")
        sync_api.expect(tabs.first).to_be_visible()
        sync_api.expect(page.locator(".card .who")).to_have_count(2)
        for tab in [str(one.get_attribute("data-tab")) for one in tabs.all()]:
            page.locator(f'#tabs [data-tab="{tab}"]').click()
            panel = page.locator(f"#panel[data-shows='{tab}']:not([aria-busy])")
            sync_api.expect(panel).not_to_be_empty()
            assert page.evaluate(SIDEWAYS) == 0, tab


@pytest.mark.parametrize("size", SIZES)
def test_the_read_apis_page_is_fit_to_be_seen(
    browser: sync_api.Browser, stage: tuple[str, str], size: str
) -> None:
    """Every path of the API is told, code as code, no wider than the screen."""
    with page_faults.silent(browser, viewport=SIZES[size]) as page:
        page.goto(f"{stage[1]}/api.html")
        sync_api.expect(page.locator("#paths section").first).to_be_visible()
        told = page.inner_text("body")
        assert "`" not in told
        assert not BROKEN.search(told)
        assert page.evaluate(SIDEWAYS) == 0
        assert not page_faults.violations(page)
