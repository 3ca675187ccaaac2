"""Which version of an engine plays, while its next one is already submitted."""

from __future__ import annotations

import json
import pathlib

import driver
import harness
import on_paper
import pytest

UPDATES = 'updates = { window = "last-game" }\n'
ENTRY = """
schema = 1
[[engine]]
id = "e1"
name = "Engine 1"
version = "2.3"
command = ["engine-1"]
"""


def test_the_version_that_plays_and_the_submitted_one_are_told_apart(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`engine show` and `list` name what the running event pinned, `log` what an update brought."""
    text = driver.season_text().replace('name = "Engine 1"', 'name = "Engine 1"\nversion = "2.2"')
    text = text.replace("\n[roster]", UPDATES + "\n[roster]", 1)
    roster = tmp_path / "engines.toml"
    roster.write_text(ENTRY)
    with on_paper.launched(tmp_path, monkeypatch, text) as ledger:
        on_paper.play(ledger, 2)
        before = harness.farm("engine", "show", "e1")
        source = ("--file", str(roster), "--event", "final", "--by", "ann", "--reason", "by mail")
        harness.farm("engine", "update", "e1", *source)
        shown = harness.farm("engine", "show", "e1")
        row = json.loads(harness.farm("engine", "show", "e1", "--json"))
        log = harness.farm("log")
        acts = json.loads(harness.farm("log", "--json"))
    assert "plays_as: Engine 1 2.2" in before
    assert "state: plays league\n" in before
    assert "version: 2.3" in shown
    assert "plays_as: Engine 1 2.2" in shown
    assert "state: plays league as Engine 1 2.2\n" in shown
    assert (row["version"], row["plays_as"], row["playing"]) == ("2.3", "Engine 1 2.2", "league")
    assert acts[-1]["about"]["version"] == "2.3"
    assert "version 2.3" in " ".join(log.split())
