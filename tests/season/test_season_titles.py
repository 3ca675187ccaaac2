"""Who holds a season's title, and where the holder is seeded (S16-9, S17-9, CUP-1e, FRC-1e, N1)."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import driver
import pytest

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season import views
from orchestrator.season.file import load as file_load
from orchestrator.season.fold import titles

TITLE = 'title = {{ name = "Cup of Cups"{more} }}\n[roster]'


def load(folder: Path, more: str = "", engines: int = 4) -> file_load.Loaded:
    """Load a season that has a title."""
    text = driver.season_text(engines).replace("[roster]", TITLE.format(more=more))
    return driver.load(folder, text)


def won_by(folder: Path, winner: str, more: str = "") -> driver.Driver:
    """Play a season of the title that an engine wins."""

    def results(game: object) -> driver.Verdict:
        white = getattr(game, "white", "")
        return ("1-0" if white == winner else "0-1"), driver.Ending.CHECKMATE

    return driver.Driver.launched(load(folder, more), results).play()


def test_the_winner_keeps_the_title_until_the_next_one_is_found(tmp_path: Path) -> None:
    """S16-9a, S17-9a, N1 Grand Champion: also while the next season is played."""
    first = won_by(tmp_path, "e3")
    assert views.season(first.state)["title"] == {"name": "Cup of Cups", "holder": "Engine 3"}
    winner = titles.last_winner("Cup of Cups", [first.state])
    assert winner is not None
    assert titles.last_winner("Another", [first.state]) is None
    loaded = load(tmp_path)
    season = titles.settled(loaded.season, winner, loaded.file)
    second = driver.Driver.launched(dataclasses.replace(loaded, season=season)).play(3)
    assert views.season(second.state)["title"] == {"name": "Cup of Cups", "holder": "Engine 3"}
    second.play()
    champion = second.state.engines[second.state.champion].name
    assert titles.holder(second.state) == champion


def test_no_seat_is_the_holder_s(tmp_path: Path) -> None:
    """S16-9b, S17-9b: it goes all the way; only a Cup and the FRC seed it first."""
    loaded = load(tmp_path, ', holder = "e3"')
    assert [engine.id for engine in loaded.engines] == ["e1", "e2", "e3", "e4"]


@pytest.mark.parametrize("name", ["e3", "Engine 3"])
def test_the_last_winner_is_seed_1_if_it_takes_part(tmp_path: Path, name: str) -> None:
    """CUP-1e, FRC-1e: by its id, name or family; the others keep their order."""
    loaded = load(tmp_path, f', holder = "{name}", first_seed = true')
    assert [engine.id for engine in loaded.engines] == ["e3", "e1", "e2", "e4"]
    absent = load(tmp_path, ', holder = "houdini", first_seed = true')
    assert [engine.id for engine in absent.engines] == ["e1", "e2", "e3", "e4"]


def test_the_holder_is_held_against_the_farm_s_last_season(tmp_path: Path) -> None:
    """CUP-1e: who won it is known; a file that says otherwise is refused."""
    first = won_by(tmp_path, "e3")
    winner = titles.last_winner("Cup of Cups", [first.state])
    wrong = load(tmp_path, ', holder = "e2"')
    with pytest.raises(errors.SeasonFileError, match=r"holder.*e2.*Engine 3 won test"):
        titles.settled(wrong.season, winner, wrong.file)
    right = load(tmp_path, ', holder = "e3", first_seed = true')
    assert titles.settled(right.season, winner, right.file).title is not None


def test_a_new_version_of_the_winner_is_the_holder(tmp_path: Path) -> None:
    """CUP-1e: engines are known by their family."""
    spec = contract.EngineSpec(id="igel-3", name="Igel 3.0", command=("igel",), family="Igel")
    before = titles.Winner("cup-1", spec.model_copy(update={"id": "igel-2", "name": "Igel 2.0"}))
    loaded = load(tmp_path, ", first_seed = true")
    season = titles.settled(loaded.season, before, loaded.file)
    assert titles.seeded(season.title, (*loaded.engines, spec))[0] == spec


@pytest.mark.parametrize(
    ("season", "first"),
    [("season16", False), ("season17", False), ("ntcec1", False), ("cup", True), ("frc", True)],
)
def test_the_texts_titles_are_in_their_files(season: str, first: bool) -> None:
    """S16-9a, S17-9a, N1 Grand Champion, CUP-1e, FRC-1e."""
    title = driver.shipped(season).season.title
    assert title is not None
    assert title.first_seed == first
