"""Notices that ask: they end with their question, however that came to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import driver
import pytest

from orchestrator import contract
from orchestrator.arbiter.adjudication import interruption
from orchestrator.notify import notices, outbox
from orchestrator.season import decisions
from orchestrator.season import interruption as season_interruption
from orchestrator.season.fold import amendment_entries, corrections, disqualification, events
from orchestrator.season.fold import state as season_state

WHY: Final = ("ann", "the author asked")
CHAIN: Final = 'tiebreaks = ["direct-encounter", "organizers"]\ninterruptions = "s16"\n'


def by_id(game: events.Game) -> driver.Verdict:
    """Let the smaller id win, but e2 and e3 draw: they share the second place of three."""
    if {game.white, game.black} == {"e2", "e3"}:
        return driver.drawn(game)
    return ("1-0" if game.white < game.black else "0-1"), driver.Ending.CHECKMATE


@pytest.fixture(name="league")
def _league(tmp_path: Path) -> driver.Driver:
    """A league of three whose second place leads to the final."""
    text = driver.season_text(3).replace("promote =", CHAIN + "promote =")
    return driver.Driver.launched(driver.load(tmp_path, text), by_id)


def waiting(played: driver.Driver, folder: Path) -> list[tuple[notices.Kind, str]]:
    """Return which notices still ask somebody, after every entry of a season's journal."""
    box, state = outbox.Outbox(folder / "outbox.json"), season_state.SeasonState()
    for entry in played.journal:
        state.apply(entry)
        box.settle(state)
        box.add(notices.of_entry(state, entry))
    kept = [one for one in box.waiting.values() if one.kind in notices.STANDING]
    return [(one.kind, one.facts.get("decision", one.facts.get("engine", ""))) for one in kept]


def test_a_question_that_a_correction_takes_back_asks_nobody(
    league: driver.Driver, tmp_path: Path
) -> None:
    """The tie is none any more; if another one comes in its place, that is told anew."""
    league.play()
    asked = (notices.Kind.DECISION, "league:place-2")
    assert waiting(league, tmp_path) == [asked]
    tied = next(g.id for g in league.state.games.values() if {g.white, g.black} == {"e2", "e3"})
    driver.paused(league)
    league.append(corrections.adjudicate(league.state, tied, "1-0", *WHY, ["league"]))
    league.settle()
    assert not decisions.outstanding(league.state)
    assert waiting(league, tmp_path) == []
    cascade = corrections.hanging(league.state, "league")
    league.append(corrections.adjudicate(league.state, tied, "1/2-1/2", *WHY, cascade))
    league.settle()
    assert waiting(league, tmp_path) == [asked]


@pytest.mark.parametrize("answer", ["1-0", "resume", "withdraw", "void"])
def test_an_interrupted_games_question_ends_with_any_answer(
    league: driver.Driver, tmp_path: Path, answer: str
) -> None:
    """A result, a game that goes on, one that is void, or an engine that leaves: all end it."""
    league.settle()
    game = league.state.ready_game() or ""
    league.interrupt(game, league.start(game), ply=80)
    seven = interruption.Facts(ply=80, engine_plies=4, men=7)
    league.append(season_interruption.judged_by(league.state, seven))
    assert waiting(league, tmp_path) == [(notices.Kind.DECISION, f"{game}:interruption")]
    driver.paused(league)
    if answer == "withdraw":
        league.append(disqualification.withdraw(league.state, "league", "e1", *WHY))
        league.append(disqualification.withdraw(league.state, "league", "e2", *WHY))
    elif answer == "void":
        league.append(corrections.void(league.state, game, *WHY))
    else:
        league.append(
            season_interruption.answer(league.state, f"{game}:interruption", answer, *WHY)
        )
    assert waiting(league, tmp_path) == []


def test_a_flag_ends_with_its_engine(league: driver.Driver, tmp_path: Path) -> None:
    """S16-16: once the engine is out there is nothing to be looked at any more."""
    league.play(1)
    flag = amendment_entries.EngineFlagged(event="league", engine="e2", games={"league.1": 3})
    league.append([contract.Draft.of(amendment_entries.ENGINE_FLAGGED, flag)])
    assert waiting(league, tmp_path) == [(notices.Kind.FLAGGED, "e2")]
    driver.paused(league)
    out = disqualification.withdraw(
        league.state, "league", "e2", "ann", "a book", "disqualification"
    )
    league.append(out)
    assert waiting(league, tmp_path) == []
