"""What is wrong with a page for those who do not see it, or use no mouse."""

from __future__ import annotations

import pathlib

from playwright import sync_api

AXE = pathlib.Path(__file__).parent / "vendor" / "axe.min.js"
SERIOUS = {"serious", "critical"}


def violations(page: sync_api.Page, inside: str = "html") -> list[str]:
    """Return the serious faults that axe finds inside an element."""
    page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    found = page.evaluate("async inside => (await axe.run(inside)).violations", inside)
    return [
        f"{one['id']}: {node['html'][:160]}"
        for one in found
        if one["impact"] in SERIOUS
        for node in one["nodes"][:3]
    ]
