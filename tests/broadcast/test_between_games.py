"""Between two games: one left in the middle, the last one, none, or the next one at once."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import driver
import made
import pytest
import theatre

from orchestrator import contract
from orchestrator.arbiter import game_zip, verdict
from orchestrator.arbiter import record as pgn_record
from orchestrator.broadcast.content import messages
from orchestrator.broadcast.forecast import documents
from orchestrator.season import interruption
from orchestrator.season.amend import operations
from orchestrator.season.fold import abandoning, entries, orders

MOVES = (("b1c3", "Nc3"), ("b8c6", "Nc6"), ("g1h3", "Nh3"))


class Reel(theatre.Kept):
    """A season in play, with the plies of its attempts."""

    def __init__(self, season: driver.Driver) -> None:
        super().__init__(season.journal)
        self.written: dict[str, list[tuple[int, str]]] = {}

    def last(self, journal: str) -> int:
        """Return the number of the last entry."""
        return self.shown

    def plies(self, attempt: str, after: int = 0) -> list[tuple[int, str]]:
        """Return an attempt's plies."""
        return [one for one in self.written.get(attempt, []) if one[0] > after]


class Scene:
    """A season of the driver in front of a projector."""

    def __init__(self, root: pathlib.Path) -> None:
        text = driver.season_text().replace('book = "short"', "")
        self.season = driver.Driver.launched(driver.load(root, text))
        self.season.settle()
        self.reel = Reel(self.season)
        self.root = root
        self.stage = theatre.projected(self.reel, root)

    def plies(self) -> list[contract.PlyRecord]:
        """Return three plies from the start position."""
        return [made.ply(n, move, san) for n, (move, san) in enumerate(MOVES, start=1)]

    def begin(self, *, moves: bool = True) -> tuple[str, str]:
        """Begin the ready game; return it and its attempt."""
        game = str(self.season.state.ready_game())
        attempt = self.season.start(game)
        if moves:
            self.reel.written[attempt] = [(ply.ply, ply.encode()) for ply in self.plies()]
        self.look()
        return game, attempt

    def end(self, game: str, attempt: str, order: contract.GameOrder) -> None:
        """Let a game end with its three plies, recorded as a hall does it."""
        at_ms = self.season.now_ms
        record = contract.GameRecord(
            order=order,
            attempt=attempt,
            hall=driver.HALL,
            started_ms=at_ms,
            ended_ms=at_ms,
            white=contract.EngineReport(),
            black=contract.EngineReport(),
            plies=tuple(self.plies()),
            outcome=verdict.disconnect("black"),
            final_fen="",
        )
        self.reel.records[attempt] = game_zip.pack(record, pgn_record.pgn(record), b"")
        fact = driver.finished(game, attempt, ("1-0", driver.Ending.DISCONNECT), at_ms)
        told = fact.model_copy(update={"plies": len(MOVES), "record_sha256": "ab" * 32})
        self.season.append([contract.Draft.of(entries.GAME_FINISHED, told)])

    def look(self, stage: theatre.Projected | None = None) -> None:
        """Let a projector look at all that was journaled."""
        self.reel.shown = len(self.season.journal)
        (stage or self.stage).projector.look()

    def live(self, stage: theatre.Projected | None = None) -> Any:
        """Return the document of the game that is shown, None without one."""
        found = (stage or self.stage).shelf.get("seasons/test/live")
        return None if found is None else json.loads(found.body)


def test_an_interrupted_game_is_shown_as_it_was_left(tmp_path: pathlib.Path) -> None:
    """Its clocks stop at once; after the verdict it stays on the board, for newcomers too."""
    scene = Scene(tmp_path)
    game, attempt = scene.begin()
    assert scene.live()["clock"]["thinking"] == "black"
    scene.season.interrupt(game, attempt, ply=3)
    scene.look()
    assert scene.live()["status"] == "interrupted"
    assert scene.live()["clock"]["thinking"] is None
    scene.season.append(interruption.judge(scene.season.state, scene.plies()))
    assert scene.season.state.ready_game() == game
    scene.look()
    shown = scene.live()
    assert (shown["game"], shown["status"], shown["result"]) == (game, "interrupted", None)
    assert [ply["san"] for ply in shown["plies"]] == [san for _, san in MOVES]
    fresh = theatre.projected(scene.reel, tmp_path / "fresh")
    scene.look(fresh)
    assert scene.live(fresh) == shown
    scene.season.start(game)
    scene.look()
    assert scene.live()["status"] == "running"


def test_a_game_that_begins_anew_leaves_the_board(tmp_path: pathlib.Path) -> None:
    """Without a move to go on from the game that was finished last is shown again, or none."""
    scene = Scene(tmp_path)
    game, attempt = scene.begin(moves=False)
    scene.season.interrupt(game, attempt)
    scene.season.append(interruption.judge(scene.season.state, ()))
    scene.look()
    assert scene.live() is None
    told = [one.data for one in scene.stage.told if isinstance(one, messages.Delta)]
    assert {"season": "test", "game": ""} in told
    scene.season.finish(game, scene.season.start(game), ("1-0", driver.Ending.CHECKMATE))
    scene.look()
    assert (scene.live()["game"], scene.live()["status"]) == (game, "finished")
    scene.season.settle()
    following, attempt = scene.begin(moves=False)
    assert scene.live()["game"] == following
    scene.season.interrupt(following, attempt)
    scene.season.append(interruption.judge(scene.season.state, ()))
    scene.look()
    assert (scene.live()["game"], scene.live()["status"]) == (game, "finished")


def test_an_abandoned_season_shows_no_game_in_flight(tmp_path: pathlib.Path) -> None:
    """The game that was given up goes from the board; the season rests, and says why."""
    scene = Scene(tmp_path)
    game, attempt = scene.begin()
    scene.season.append(abandoning.abandon(scene.season.state, "ann", "a mistake"))
    scene.look()
    assert scene.live()["game"] == game  # until its hall has heard
    scene.season.interrupt(game, attempt, ply=3, cause="operator")
    scene.look()
    assert scene.live() is None
    assert scene.stage.projector.seasons["test"].over
    found = scene.stage.shelf.get("seasons/test")
    assert found is not None
    told = json.loads(found.body)
    assert (told["status"], told["reason"], told["waits"]) == ("abandoned", "a mistake", [])
    assert {one["colour"] for one in told["events"]} == {"grey"}
    absent = documents.forecast(scene.season.state, 5, 0)["absent"]
    assert absent == "The season was abandoned."
    log = scene.stage.projector.seasons["test"].log.lines
    assert [(line["kind"], line["reason"]) for line in log] == [
        ("season_abandoned", "a mistake"),
        ("attempt_ended", ""),
    ]
    schedule = json.loads((tmp_path / "feeds" / "schedule.json").read_bytes())
    assert {row.get("Termination") for row in schedule} == {"Canceled"}


def test_what_is_waited_for_is_told_with_every_change(tmp_path: pathlib.Path) -> None:
    """The season's document and the stream carry what comes next, and what keeps it back."""
    scene = Scene(tmp_path)
    scene.season.append(operations.pause(scene.season.state, "ann", "lunch"))
    scene.look()
    (told,) = [
        one.data
        for one in scene.stage.told
        if isinstance(one, messages.Delta) and one.kind == "season"
    ]
    assert [(one["for"], one["reason"]) for one in told["waits"]] == [("pause", "lunch")]
    assert told["next"]["game"] == "league.1"


@pytest.mark.parametrize("forgotten", [False, True])
def test_an_end_is_told_before_the_next_game(tmp_path: pathlib.Path, *, forgotten: bool) -> None:
    """Who saw one ply when a game ended and the next began is told the others, and the result.

    The ledger may have forgotten the plies by then: the record has them.
    """
    scene = Scene(tmp_path)
    game, attempt = scene.begin(moves=False)
    order = orders.game_order(scene.season.state, game)
    plies = [(ply.ply, ply.encode()) for ply in scene.plies()]
    scene.reel.written[attempt] = plies[:1]
    scene.look()
    scene.stage.told.clear()
    scene.reel.written[attempt] = [] if forgotten else plies
    scene.end(game, attempt, order)
    scene.season.settle()
    following, _ = scene.begin()
    told = scene.stage.told
    deltas = [one for one in told if isinstance(one, messages.Delta)]
    lasting = [(one.kind, one.data["game"]) for one in deltas if "game" in one.data]
    first = lasting.index(("game", following))
    assert lasting[:first] == [("ply", game), ("ply", game), ("result", game), ("game", game)]
    (ended,) = [one.data for one in deltas if one.kind == "game" and one.data["game"] == game]
    assert (ended["status"], ended["result"], len(ended["plies"])) == ("finished", "1-0", 3)
    pushed = [one.data for one in told if isinstance(one, messages.TcecMoves)]
    assert [one["Headers"]["Result"] for one in pushed] == ["1-0", "*"]
    assert [move["m"] for move in pushed[0]["Moves"]] == [san for _, san in MOVES]
    assert scene.live()["game"] == following
