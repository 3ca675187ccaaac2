"""What the next game waits for, as it is told while no game is in flight."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import driver
import pytest

from orchestrator.season import blockers, decisions
from orchestrator.season.amend import amending, operations

CHAIN = 'tiebreaks = ["direct-encounter", "wins", "organizers"]\npromote ='


def launched(folder: Path, text: str = "", games: int = 0) -> driver.Patient:
    """Return a season after so many games."""
    season = driver.Patient.launched(driver.load(folder, text or driver.season_text()))
    season.play(games)
    assert isinstance(season, driver.Patient)
    return season


def waits(season: driver.Driver) -> dict[str, dict[str, Any]]:
    """Return what is waited for, by its kind."""
    found = blockers.waits(season.state)
    assert all(one["since_ms"] == season.state.at_ms for one in found)
    return {one["for"]: one for one in found}


def test_a_ready_game_waits_for_its_hall(tmp_path: Path) -> None:
    """The game is named with its players until it is in flight; then the one behind it is."""
    season = launched(tmp_path, games=2)
    game = season.state.game(str(season.state.ready_game()))
    assert waits(season)["hall"]["game"] == game.id
    coming = blockers.coming(season.state)
    assert coming is not None
    names = [season.state.engines[one].name for one in (game.white, game.black)]
    assert (coming["game"], coming["round"], coming["engines"]) == (game.id, game.round, names)
    season.start(game.id)
    assert waits(season) == {}
    order = season.state.events[game.event].order
    behind = blockers.coming(season.state)
    assert behind is not None
    assert behind["game"] == order[order.index(game.id) + 1]
    while season.state.ready_game() != order[-1]:
        season.play(1)
    season.start(order[-1])
    assert blockers.coming(season.state) is None  # who plays the final is not known yet


def test_a_break_is_told_with_its_end_and_the_players(tmp_path: Path) -> None:
    """Before the gate of a match both players are known; what opens it is the time alone."""
    season = launched(tmp_path, games=12)
    final = season.state.events["final"]
    assert waits(season) == {
        "gate": {
            "for": "gate",
            "event": "final",
            "game": "",
            "reason": "",
            "until_ms": final.opens_at_ms,
            "since_ms": season.state.at_ms,
        }
    }
    coming = blockers.coming(season.state)
    assert coming is not None
    promoted = final.arrivals["league"].engines
    assert coming["engines"] == [season.state.engines[one].name for one in promoted]
    assert (coming["event"], coming["game"]) == ("final", "")


def test_a_stop_is_told_beside_what_comes_next(tmp_path: Path) -> None:
    """A pause tells its reason; of a break behind it the end is told as well."""
    season = launched(tmp_path, games=2)
    season.append(operations.pause(season.state, "ann", "power work"))
    assert waits(season).keys() == {"pause"}
    assert waits(season)["pause"]["reason"] == "power work"
    assert blockers.coming(season.state) is not None
    season.append(operations.resume(season.state, "ann", ""))
    season.play(10)
    season.append(operations.pause(season.state, "ann", "night"))
    assert list(waits(season)) == ["pause", "gate"]
    season.state.held = "sick"
    assert list(waits(season)) == ["hold", "gate"]


def test_an_interruption_waits_for_its_verdict(tmp_path: Path) -> None:
    """Until it is judged the game is named; afterwards it waits for its hall again."""
    season = launched(tmp_path, games=2)
    game = str(season.state.ready_game())
    season.interrupt(game, season.start(game))
    assert waits(season).keys() == {"verdict"}
    assert waits(season)["verdict"]["game"] == game
    season.settle()
    assert waits(season)["hall"]["game"] == game


def test_questions_to_the_organizers_are_told(tmp_path: Path) -> None:
    """A tie at the line: what it decides is told, until it is answered."""
    text = driver.season_text().replace("promote =", CHAIN)
    drawn: driver.Results = lambda _: ("1/2-1/2", driver.Ending.THREEFOLD)  # noqa: E731
    season = driver.Patient.launched(driver.load(tmp_path, text), drawn)
    season.play()
    (asked,) = decisions.outstanding(season.state)
    assert waits(season).keys() == {"organizers"}
    assert waits(season)["organizers"]["reason"] == asked.about
    season.append(decisions.decide(season.state, asked.decision, ["e1", "e2"], "ann", "lots"))
    season.settle()
    assert waits(season).keys() == {"gate"}


def test_a_host_that_is_away_is_told_when_all_games_need_it(tmp_path: Path) -> None:
    """Under the policy to play others meanwhile it is told once no other is left."""
    season = launched(tmp_path, games=1)
    season.append(amending.set_away_policy(season.state, "others", "ann", ""))
    engines = [f"e{number}" for number in range(1, 4)]  # whoever plays, one of them plays
    season.append(amending.host_away(season.state, "box", engines, "ann", "new GPUs"))
    assert waits(season).keys() == {"host"}
    assert waits(season)["host"]["reason"] == "new GPUs"


@pytest.mark.parametrize("games", [0, 5, 1_000])
def test_what_is_told_follows_from_the_journal(tmp_path: Path, games: int) -> None:
    """A fold from zero tells the same; a finished season waits for nothing."""
    season = launched(tmp_path, games=games)
    again = driver.Driver.replayed(season.journal)
    assert waits(again) == waits(season)
    assert blockers.coming(again.state) == blockers.coming(season.state)
    if games == 1_000:
        whole = driver.Driver.replayed(season.journal).play()
        assert (waits(whole), blockers.coming(whole.state)) == ({}, None)
