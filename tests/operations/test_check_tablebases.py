"""`farm check` warns of tablebases that a season's rules need and this machine has not."""

from __future__ import annotations

import json
import pathlib

import driver
import harness

from orchestrator.ops.doctor import season as doctor


def season(folder: pathlib.Path, event: str) -> str:
    """Write a season file whose league has the lines; return its path."""
    driver.load(folder, driver.season_text().replace("promote =", f"{event}\npromote ="))
    return str(folder / "season.toml")


def warnings(path: str) -> list[str]:
    """Return the warnings of `farm check` but those of the programs, which are on paper."""
    told = json.loads(harness.farm("check", path, "--json"))["warnings"]
    return [one for one in told if "tablebases" in one]


def test_missing_tables_are_warned_of(tmp_path: pathlib.Path) -> None:
    """By directory, with the events that need it and what follows; nothing is refused."""
    away = tmp_path / "away"
    path = season(tmp_path, f'adjudication = {{ syzygy = {{ men = 6, path = "{away}" }} }}')
    (told,) = warnings(path)
    assert told.startswith(f"no tablebases on this machine in {away} (for league)")
    assert "positions without a table are played on" in told
    assert "Warning: no tablebases on this machine" in harness.farm("check", path)


def test_tables_that_are_not_whole_are_counted(tmp_path: pathlib.Path) -> None:
    """One table short of all with three men: the number is told; with all of them nothing is."""
    tables = tmp_path / "tables"
    tables.mkdir()
    path = season(tmp_path, f'adjudication = {{ syzygy = {{ men = 3, path = "{tables}" }} }}')
    names = ("KQvK", "KRvK", "KBvK", "KNvK", "KPvK")
    for name in names[1:]:
        (tables / f"{name}.rtbw").touch()
    (told,) = warnings(path)
    assert told.startswith(f"4 of {doctor.WHOLE[3]} tablebases to 3 men on this machine")
    (tables / f"{names[0]}.rtbw").touch()
    assert warnings(path) == []


def test_engines_without_their_tables_are_warned_of_too(tmp_path: pathlib.Path) -> None:
    """A path that only the engines are given is looked at; an event without one needs none."""
    away = tmp_path / "away"
    (told,) = warnings(season(tmp_path, f'limits = {{ syzygy_path = "{away}" }}'))
    assert told.startswith(f"no tablebases on this machine in {away} (for league)")
    assert warnings(season(tmp_path, "")) == []
