"""The log that spectators read: every kind of entry that a season can write."""

from __future__ import annotations

import io
import pathlib

import driver
import rich.console
import theatre

from orchestrator import contract
from orchestrator.commands import tables, up_screen
from orchestrator.season import decisions, entries, events, views

CHAIN = 'tiebreaks = ["direct-encounter", "organizers"]\n'


def drawn(_game: events.Game) -> driver.Verdict:
    """Invent a world without winners."""
    return "1/2-1/2", contract.Ending.THREEFOLD


def test_a_question_to_the_organizers_and_its_answer_are_told(tmp_path: pathlib.Path) -> None:
    """A tie that waits for its decision is shown, with its engines; so is the decision."""
    text = driver.season_text(4, 1).replace("promote =", CHAIN + "promote =", 1)
    season = driver.Driver.launched(driver.load(tmp_path, text), drawn).play()
    (asked,) = decisions.outstanding(season.state)
    tape = theatre.Tape(season.journal)
    stage = theatre.projected(tape, tmp_path)
    tape.shown = len(season.journal)
    stage.projector.look()
    log = stage.projector.seasons[tape.season].log
    assert [line["kind"] for line in log.lines] == [entries.DECISION_NEEDED]
    assert log.lines[0]["engines"] == [season.state.engines[one].name for one in asked.engines]
    assert asked.about in log.lines[0]["text"]

    season.append(decisions.decide(season.state, asked.decision, ["e4", "e2"], "ann", "lots"))
    tape.shown = len(season.journal)
    stage.projector.look()
    assert [line["kind"] for line in log.lines][1:] == [entries.DECIDED]
    assert log.lines[1]["engines"] == [season.state.engines[one].name for one in ("e4", "e2")]
    assert (log.lines[1]["reason"], log.lines[1]["name"]) == ("lots", "ann")


def test_a_crash_is_told_with_its_cause(tmp_path: pathlib.Path) -> None:
    """The page's log, `farm games` and `farm up` say how the process ended, markup and all."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()))
    season.settle()
    game = str(season.state.ready_game())
    lost = driver.finished(game, season.start(game), ("1-0", contract.Ending.DISCONNECT))
    told = {"details": "Black disconnects", "note": "exit 4 [/end]"}
    fact = lost.model_copy(update=told)
    season.append([contract.Draft.of(entries.GAME_FINISHED, fact)])
    tape = theatre.Tape(season.journal)
    tape.shown = len(season.journal)
    stage = theatre.projected(tape, tmp_path)
    stage.projector.look()
    cause = "Black disconnects: exit 4 [/end]"
    assert [line["text"] for line in stage.projector.seasons[tape.season].log.lines] == [cause]
    shown = io.StringIO()
    console = rich.console.Console(file=shown, width=200)
    console.print(tables.games([views.game(season.state, game)], "Games"))
    console.print(up_screen._line(season.state, entries.GAME_FINISHED, season.journal[-1].data))
    assert shown.getvalue().count(cause) == 2
