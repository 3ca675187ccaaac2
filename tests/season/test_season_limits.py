"""Limits in season files: settings by event, and what a roster may not ask for."""

from __future__ import annotations

import pathlib

import pytest

from orchestrator import contract, errors
from orchestrator.season import files, orders

SEASON = """
schema = 1
id = "s"
name = "S"
[roster]
[[roster.engine]]
id = "one"
command = ["one"]
options = { Hash = 64, Contempt = 10 }
settings.final = { hash = 128, Contempt = 0, "Split Depth" = 8 }
[[roster.engine]]
id = "two"
command = ["two"]
%s
[[event]]
id = "league"
name = "League"
format = { kind = "round-robin" }
entrants = "roster"
time_control = "1+1"
limits = { threads = 4, hash_mb = 64, minor_hash_mb = 32, tablebase_cache_mb = 16 }
promote = [{ top = 2, to = "final" }]
[[event]]
id = "final"
name = "Final"
format = { kind = "match", games = 2 }
time_control = "1+1"
limits = { threads = 8, hash_mb = 128, nalimov_path = "/n", tablebases = "one" }
"""


def load(tmp_path: pathlib.Path, more: str = "") -> files.Loaded:
    """Load the season with more said of its second engine."""
    file = tmp_path / "season.toml"
    file.write_text(SEASON % more)
    return files.load(file, find=lambda _: [])


def test_an_authors_settings_for_an_event_are_its_options_there(tmp_path: pathlib.Path) -> None:
    """The order of a game carries the engine's options as they are in its event."""
    one = load(tmp_path).engines[0]
    assert orders.engine_in(one, "league").options == {"Hash": 64, "Contempt": 10}
    assert orders.engine_in(one, "final").options == {
        "hash": 128,
        "Contempt": 0,
        "Split Depth": 8,
    }
    assert orders.engine_in(one, "final").settings == {}
    assert contract.EngineSpec.decode(one.encode()) == one


@pytest.mark.parametrize(
    ("more", "where", "found", "allowed"),
    [
        ("options.Threads = 5", "option Threads", "5 in event league", "4 threads or less"),
        ("options.Hash = 100", "option Hash", "100 in event league", "64 MB or less"),
        (
            "options = { PawnHash = 20, EvalHash = 13 }",
            "option PawnHash + EvalHash",
            "20 + 13 in event league",
            "32 MB together or less (minor hashes)",
        ),
        ("options.OwnBook = true", "option OwnBook", "true in event", "false (own book off)"),
        (
            "settings.final.Threads = 9",
            "option Threads",
            "9 in event final",
            "8 threads or less",
        ),
        ("settings.finale.Threads = 9", "settings.finale", "no such event", "league, final"),
    ],
)
def test_a_roster_that_breaks_a_limit_is_refused(
    tmp_path: pathlib.Path, more: str, where: str, found: str, allowed: str
) -> None:
    """RULEBOOK §2: refused with the option's name, value and limit, and the event."""
    with pytest.raises(errors.SeasonFileError) as refused:
        load(tmp_path, more)
    text = str(refused.value)
    assert f"[roster.engine two] {where}" in text
    assert found in text
    assert allowed in text
