"""The log that spectators read: every kind of entry that a season can write."""

from __future__ import annotations

import dataclasses
import pathlib

import driver
import theatre

from orchestrator import contract
from orchestrator.broadcast.content import audit_log
from orchestrator.commands import tables, up_screen
from orchestrator.common import output
from orchestrator.notify import notices
from orchestrator.season import decisions, views
from orchestrator.season.amend import operations, substitute
from orchestrator.season.fold import entries

CHAIN = 'tiebreaks = ["direct-encounter", "organizers"]\n'


def test_a_question_to_the_organizers_and_its_answer_are_told(tmp_path: pathlib.Path) -> None:
    """A tie that waits for its decision is shown, with its engines; so is the decision."""
    text = driver.season_text(4, 1).replace("promote =", CHAIN + "promote =", 1)
    season = driver.Driver.launched(driver.load(tmp_path, text), driver.drawn).play()
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
    assert log.lines[1]["reason"] == "lots"


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
    console = output.console()
    console.width = 200
    with console.capture() as shown:
        console.print(tables.games([views.game(season.state, game)], "Games"))
        console.print(up_screen._line(season.state, entries.GAME_FINISHED, season.journal[-1].data))
    assert shown.get().count(cause) == 2


def test_a_disqualified_engine_is_not_called_replaced_alone(tmp_path: pathlib.Path) -> None:
    """The page's log says why it lost its seat; a journal without a cause is told as before."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text())).play(2)
    season.append(operations.pause(season.state, "ann", "a hidden book"))
    new = contract.EngineSpec(id="new", name="Newcomer", command=("new",))
    why = ("ann", "a hidden book", "disqualification")
    season.append(substitute.replace(season.state, "league", "e1", new, "keep", *why))
    entry = season.journal[-1]
    log = audit_log.Chronicle()
    log.note(entry, season.state)
    (notice,) = notices.of_entry(season.state, entry)
    assert log.lines[0]["text"] == "disqualified, replaced by Newcomer"
    assert log.lines[0]["engines"] == ["Engine 1"]
    assert (notice.kind, notice.facts["then"]) == (
        notices.Kind.DISQUALIFIED,
        "new takes its seat.",
    )
    old = {key: value for key, value in entry.data.items() if key != "cause"}
    log.note(dataclasses.replace(entry, data=old), season.state)
    assert log.lines[1]["text"] == "replaced by Newcomer"
    assert not list(notices.of_entry(season.state, dataclasses.replace(entry, data=old)))
