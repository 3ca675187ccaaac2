"""Which season spectators see who name none: the page, TCEC's files, Lichess' feed."""

from __future__ import annotations

import json
import pathlib

import driver
import theatre

from orchestrator import contract
from orchestrator.season.amend import operations
from orchestrator.season.file import load


class Several(theatre.Tape):
    """Seasons that grow in front of the projector."""

    def __init__(self, *seasons: driver.Driver) -> None:
        self.by_name = {one.state.launched.id: one for one in seasons}

    def now_ms(self) -> int:
        """Return the time of the last entry."""
        return max(one.state.at_ms for one in self.by_name.values())

    def seasons(self) -> tuple[str, ...]:
        """Return all, in the order of their launches."""
        return tuple(self.by_name)

    def resting(self) -> dict[str, int]:
        """Return none: nothing is archived."""
        return {}

    def read(self, journal: str, after: int = 0, limit: int = 1000) -> list[contract.Entry]:
        """Return the entries so far."""
        return self.by_name[journal].journal[after : after + limit]

    def last(self, journal: str) -> int:
        """Return the number of the last entry so far."""
        return len(self.by_name[journal].journal)


def launched(loaded: load.Loaded, name: str) -> driver.Driver:
    """Return a season that waits for its first game."""
    made = driver.Driver()
    made.append(operations.launch(loaded, name, driver.SEED, driver.HALL, "0.1.0"))
    made.settle()
    return made


def test_the_front_follows_the_game_in_flight(tmp_path: pathlib.Path) -> None:
    """A season launched later comes to the front with its first game, not with its launch."""
    loaded = driver.load(tmp_path, driver.season_text())
    played, mistake = launched(loaded, "played"), launched(loaded, "mistake")
    stage = theatre.projected(Several(played, mistake), tmp_path)
    stage.projector.look()
    assert stage.shelf.shown == "played"
    played.play(3)
    stage.projector.look()
    assert stage.shelf.shown == "played"
    assert _finished(tmp_path) == 3
    played.append(operations.pause(played.state, "ann", "lunch"))
    stage.projector.look()
    assert stage.shelf.shown == "mistake"
    assert _finished(tmp_path) == 0  # though nothing has happened in it
    played.append(operations.resume(played.state, "ann", ""))
    mistake.start(str(mistake.state.ready_game()))
    stage.projector.look()
    assert stage.shelf.shown == "mistake"


def _finished(root: pathlib.Path) -> int:
    """Return how many games of the schedule for TCEC's viewers have their result."""
    rows = json.loads((root / "feeds" / "schedule.json").read_bytes())
    return sum(row.get("Result", "*") != "*" for row in rows)
