"""Limits in season files: settings by event, and what a roster may not ask for."""

from __future__ import annotations

import pathlib
import re

import driver
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.common import errors
from orchestrator.season.amend import engine_update
from orchestrator.season.file import load as file_load
from orchestrator.season.fold import orders

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


def load(tmp_path: pathlib.Path, more: str = "") -> file_load.Loaded:
    """Load the season with more said of its second engine."""
    file = tmp_path / "season.toml"
    file.write_text(SEASON % more)
    return file_load.load(file, find=lambda _: [])


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
    """A value is refused with the option's name, value and limit, and the event."""
    with pytest.raises(errors.SeasonFileError) as refused:
        load(tmp_path, more)
    text = str(refused.value)
    assert f"[roster.engine two] {where}" in text
    assert found in text
    assert allowed in text


# -- S16-13f: what plays League 1 plays its playoff ---------------------------------------

CLOSED = """
updates = { window = "closed", clause = "S16-13f" }
time_control = "1+1"
limits = { threads = 8, hash_mb = 128"""


def closed(tmp_path: pathlib.Path, one: str, two: str = "") -> file_load.Loaded:
    """Load the season with a final before which nothing may be updated."""
    file = tmp_path / "season.toml"
    text = SEASON.replace('time_control = "1+1"\nlimits = { threads = 8, hash_mb = 128', CLOSED[1:])
    file.write_text(re.sub("settings.final = .*", one, text) % two)
    return file_load.load(file, find=lambda _: [])


@pytest.mark.parametrize(
    "one", ["settings.final = { Contempt = 3 }", "settings.league.Contempt = 3"]
)
def test_settings_do_not_change_where_nothing_may_be_updated(
    tmp_path: pathlib.Path, one: str
) -> None:
    """S16-13f: the League 1 versions compete; settings are a part of an update (S16-13b)."""
    with pytest.raises(errors.SeasonFileError, match=r"one\] settings.final.*league.*S16-13f"):
        closed(tmp_path, one)


def test_the_same_settings_for_both_are_no_change(tmp_path: pathlib.Path) -> None:
    """S16-13f: however their names are written."""
    same = "settings.league = { Contempt = 3 }\nsettings.final = { contempt = 3 }"
    assert closed(tmp_path, same).engines[0].settings["final"] == {"contempt": 3}
    assert closed(tmp_path, "").engines[0].settings == {}


def test_an_update_brings_no_such_settings(tmp_path: pathlib.Path) -> None:
    """S16-13f: neither does one before the league begins."""
    played = driver.Driver.launched(closed(tmp_path, "", "settings.league = {}"))
    entry = engine_update.entries_of(played.state)["one"].model_copy(
        update={"settings": {"final": {"Contempt": 3}}}
    )
    with pytest.raises(errors.RefusedError, match="S16-13f"):
        engine_update.update(played.state, entry, "league", played.now_ms, "ann", "by mail")


# -- the tablebases of the texts ------------------------------------------------------------


@pytest.mark.parametrize(
    ("season", "tablebases"),
    [("season16", "all"), ("ntcec1", "one")],  # S16 and N1 Endgame Tablebases
)
def test_the_texts_kinds_of_tablebases_have_their_paths(season: str, tablebases: str) -> None:
    """S16: 5-men Nalimov, Gaviota, Scorpio beside Syzygy; N1: one kind an engine, Nalimov first."""
    for event in driver.shipped(season).season.events:
        limits = event.limits
        assert all((limits.nalimov_path, limits.gaviota_path, limits.scorpio_path)), event.id
        assert limits.tablebases == tablebases
        assert bool(limits.syzygy_path) == (season == "season16")
    warned = testing.CliRunner().invoke(commands.farm, ["check", season]).output
    assert "no Nalimov tables on this machine in /srv/nalimov" in warned
