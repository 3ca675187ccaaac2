"""Which season is meant where nobody names one."""

from __future__ import annotations

import itertools

import driver
import pytest

from orchestrator.common import errors
from orchestrator.season import current
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import state


@pytest.fixture(name="loaded", scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> load.Loaded:
    """A small season's file."""
    return driver.load(tmp_path_factory.mktemp("season"), driver.season_text())


def launched(loaded: load.Loaded, name: str, hall: str = "hall-1") -> driver.Driver:
    """Return a season that has paired its first round and waits for its first game."""
    made = driver.Driver()
    made.append(operations.launch(loaded, name, driver.SEED, hall, "0.1.0"))
    made.settle()
    return made


def shown(*seasons: driver.Driver) -> str:
    """Return the id of the season that is looked at."""
    found = current.shown([one.state for one in seasons])
    return found.launched.id if found else ""


def test_the_season_in_play_is_looked_at_from_its_first_game_to_its_last(
    loaded: load.Loaded,
) -> None:
    """One that was launched later and waits for the hall is never shown meanwhile."""
    played, waiting = launched(loaded, "played"), launched(loaded, "waiting")
    assert shown(played, waiting) == "played"
    for _ in range(5):  # a round's end among them
        game = played.state.ready_game()
        assert game is not None
        attempt = played.start(game)
        assert shown(played, waiting) == "played"
        played.finish(game, attempt, driver.by_name(played.state.game(game)))
        assert shown(played, waiting) == "played"
        played.settle()
    assert shown(played.play(), waiting) == "waiting"


def test_a_game_in_flight_comes_before_a_game_to_come(loaded: load.Loaded) -> None:
    """The hall ends the game it has, though an earlier season is ready again."""
    early, late = launched(loaded, "early"), launched(loaded, "late")
    late.start(str(late.state.ready_game()))
    assert shown(early, late) == "late"


def test_an_interrupted_game_keeps_its_season_in_view(loaded: load.Loaded) -> None:
    """Until the verdict no game is ready, and yet the season is the one that is played."""
    played, waiting = launched(loaded, "played"), launched(loaded, "waiting")
    game = str(played.state.ready_game())
    played.interrupt(game, played.start(game))
    assert played.state.ready_game() is None
    assert shown(played, waiting) == "played"


@pytest.mark.parametrize("stop", ["paused", "held"])
def test_a_season_that_stands_gives_way_to_one_that_runs(loaded: load.Loaded, stop: str) -> None:
    """Paused or held and launched last, it is not what is looked at; alone it is."""
    running, standing = launched(loaded, "running"), launched(loaded, "standing")
    setattr(standing.state, stop, "why")
    assert shown(running, standing) == shown(standing, running) == "running"
    assert shown(standing) == "standing"


def test_of_several_halls_the_latest_season_is_looked_at(loaded: load.Loaded) -> None:
    """Each plays its own; which is shown does not change with their games' ends."""
    one, two = launched(loaded, "one"), launched(loaded, "two", "hall-2")
    assert shown(one, two) == "two"
    one.start(str(one.state.ready_game()))
    assert shown(one, two) == "two"


def test_without_a_season_in_play_the_latest_open_one_is_looked_at(loaded: load.Loaded) -> None:
    """A finished season is shown when no other is open, the latest of them."""
    over, later = launched(loaded, "over").play(), launched(loaded, "later").play()
    paused = launched(loaded, "paused")
    paused.append(operations.pause(paused.state, "ann", "lunch"))
    assert shown(paused, over) == "paused"
    assert shown(over, later) == "later"
    assert shown() == ""


def test_only_the_single_open_season_is_changed_unnamed(loaded: load.Loaded) -> None:
    """Of several open ones none is meant, in play or not; the refusal names them."""
    over = launched(loaded, "over").play()
    one, two = launched(loaded, "a"), launched(loaded, "b")
    assert _open(over, one) is one.state
    assert _open(one, over) is one.state
    assert _open(over) is over.state
    for order in itertools.permutations([over, one, two]):
        with pytest.raises(errors.UsageError, match=r"several.*(a, b|b, a); name one with"):
            _open(*order)


def _open(*seasons: driver.Driver) -> state.SeasonState | None:
    return current.only_open([one.state for one in seasons])
