"""What is wrong with a page: errors in its console, faults for those who do not see it."""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

from playwright import sync_api

AXE = pathlib.Path(__file__).parent / "vendor" / "axe.min.js"
SERIOUS = {"serious", "critical"}
STRUCTURE = {"heading-order", "empty-table-header"}  # axe takes them less seriously than we do
PATIENCE = 90_000  # ms: how long anything may take to show up on a busy machine


@contextlib.contextmanager
def silent(browser: sync_api.Browser, **context: Any) -> Iterator[sync_api.Page]:
    """Give a page in a context of its own; it may have told of no error when it is closed."""
    made = browser.new_context(**{"service_workers": "block"} | context)
    page = made.new_page()
    page.set_default_timeout(PATIENCE)
    told: list[str] = []
    page.on("console", lambda said: told.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: told.append(str(error)))
    yield page
    made.close()
    assert not told, "\n".join(dict.fromkeys(told))


def violations(page: sync_api.Page, inside: str = "html") -> list[str]:
    """Return the serious faults that axe finds inside an element, once it shows what was chosen.

    Until the panel of another tab is there, the last one's stands in its place, half transparent.
    """
    sync_api.expect(page.locator("[aria-busy=true]")).to_have_count(0)
    page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    found = page.evaluate(
        "async inside => (await axe.run(inside,"
        " { rules: { 'target-size': { enabled: true } } })).violations",
        inside,
    )
    return [
        f"{one['id']}: {node['html'][:160]}"
        for one in found
        if one["impact"] in SERIOUS or one["id"] in STRUCTURE
        for node in one["nodes"][:3]
    ]
