"""A browser for the tests of the page.

TCEC's own viewer is no part of this repository: its tests run where a checkout is named.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

import own_network
import page_faults
import pytest
from playwright import sync_api

collect_ignore = [] if os.environ.get("FARM_TCECGUI") else ["test_tcecgui.py"]


sync_api.expect.set_options(timeout=page_faults.PATIENCE)


@pytest.fixture(scope="module", autouse=True)
def network() -> Iterator[None]:
    """Keep the browser and its servers out of what other tests do to the machine's network."""
    with own_network.own_network():
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[sync_api.Browser]:
    """Run Chromium."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("package chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=page_faults.PATIENCE
        )
        yield running
        running.close()
