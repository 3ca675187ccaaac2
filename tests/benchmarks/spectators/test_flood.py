"""Heap and processor time of server and page under a flooding game. Prints figures, asserts none.

The short form (FARM_LONG=1) has 50 spectators for 3 s. With ``FARM_BENCH=long`` 2,000
for 2 minutes; ``FARM_SPECTATORS`` and ``FARM_FLOOD_MINUTES``
name other numbers (the long watch: 30).
"""

from __future__ import annotations

import itertools
import os
import pathlib
import shutil

import flood
import pytest

LONG = os.environ.get("FARM_BENCH") == "long"
CROWD = int(os.environ.get("FARM_SPECTATORS", "2000" if LONG else "50"))
MINUTES = float(os.environ.get("FARM_FLOOD_MINUTES", "2" if LONG else "0.05"))
SAMPLES = 12 if LONG else 2
pytestmark = [] if LONG else [pytest.mark.long]  # a farm, a crowd and a browser of its own


@pytest.mark.benchmark
def test_nothing_is_lost_while_a_game_floods(tmp_path: pathlib.Path) -> None:
    """The whole crowd and the page are still there at the end; what they cost is printed."""
    if shutil.which("chromium") is None:
        pytest.skip("package chromium is not installed")
    seen = flood.watch(tmp_path, CROWD, MINUTES * 60, SAMPLES)
    print(f"\nflood: {CROWD} spectators and a page, {MINUTES:g} minutes of games that flood")
    print("| s | games | server MiB | server CPU % | page heap MiB | page CPU % | nodes |")
    print("|---|---|---|---|---|---|---|")
    for before, now in itertools.pairwise(seen):
        span = now.at_s - before.at_s
        server = 100 * (now.server_cpu_s - before.server_cpu_s) / span
        page = 100 * (now.page_cpu_s - before.page_cpu_s) / span
        told = f"{now.at_s:.0f} | {now.games} | {now.server_mib:.0f} | {server:.0f}"
        print(f"| {told} | {now.heap_mib:.1f} | {page:.0f} | {now.nodes} |")
