"""Cups when results are corrected, engines leave, or the field is not the one of the file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import driver
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_season_knockout import ROUND, by_the_rule, cup_text

from orchestrator import contract
from orchestrator.broadcast.content import tables
from orchestrator.common import errors
from orchestrator.season.amend import engine_update
from orchestrator.season.fold import corrections, disqualification, events
from orchestrator.season.spec import model

WHY: Final = ("ann", "the author asked")
DRAW: Final = ("1/2-1/2", driver.Ending.THREEFOLD)
RESULTS: Final[Sequence[contract.Result]] = ("0-1", "1/2-1/2", "1-0")


def by_id(game: events.Game) -> driver.Verdict:
    """Let the smaller id win."""
    return ("1-0" if game.white < game.black else "0-1"), driver.Ending.CHECKMATE


def cup(folder: Path, results: driver.Results, entrants: int = 4, pairs: int = 2) -> driver.Driver:
    """Launch a small Cup: of four engines it begins with the semifinals, e1 - e4 and e2 - e3."""
    loaded = driver.load(folder, cup_text(entrants, pairs=pairs))
    return driver.Driver.launched(loaded, results)


def adjudicated(played: driver.Driver, game: str, result: contract.Result) -> None:
    """Set the result of a game, in a pause."""
    driver.paused(played)
    played.append(corrections.adjudicate(played.state, game, result, *WHY))
    driver.resumed(played)


# -- corrected results ---------------------------------------------------------------


@pytest.mark.parametrize("extra", [0, 1])
def test_a_correction_decides_a_match_before_its_tiebreak(tmp_path: Path, extra: int) -> None:
    """CUP-3a, CUP-3d: pairs that were added to a tie which is none are not played, nor decide."""
    played = cup(tmp_path, driver.drawn).play(4)
    assert played.state.ready_game() == "r4.5"
    last = played.state.game("r4.4")
    played.results = lambda game: ("0-1" if last.white == game.white else "1-0", DRAW[1])
    played.play(extra)
    adjudicated(played, "r4.4", "1-0" if last.white == "e1" else "0-1")
    played.settle()
    assert [played.state.game(f"r4.{number}").cancelled for number in (5, 6)] == [not extra, True]
    assert played.state.game(played.state.ready_game() or "").round_number == 2
    played.results = by_id
    assert played.play().state.events["r4"].rows[0].engine == "e1"


def test_a_match_that_is_level_again_has_its_tiebreak(tmp_path: Path) -> None:
    """CUP-3e: a pair follows after all, with its colours, its opening and ids of its own."""
    played = cup(tmp_path, by_id).play(3)
    played.results = driver.drawn
    played.play(4)
    last = played.state.game("r4.7")
    adjudicated(played, "r4.7", "1-0")
    played.settle()
    assert played.state.events["r4"].status is events.Status.RANKED
    driver.paused(played)
    cascade = corrections.hanging(played.state, "r4")
    played.append(corrections.adjudicate(played.state, "r4.7", "1/2-1/2", *WHY, cascade))
    driver.resumed(played).settle()
    tiebreak = [game for game in played.state.games.values() if game.event == "r4" and game.open]
    assert [(game.id, game.round) for game in tiebreak] == [("r4.10", "1.8"), ("r4.11", "1.9")]
    assert [game.white for game in tiebreak] == [last.black, last.white]
    assert {game.opening for game in tiebreak} == {played.state.game("r4.8").opening}


def test_no_game_of_a_match_is_left_out(tmp_path: Path) -> None:
    """CUP-3a: a pair has both its games; none is voided, and none is played for nothing."""
    played = driver.paused(cup(tmp_path, driver.drawn).play(4))
    with pytest.raises(errors.RefusedError, match=r"CUP-3a.*farm game replay"):
        corrections.void(played.state, "r4.2", *WHY)
    adjudicated(driver.resumed(played), "r4.4", "1-0")
    played.settle()
    driver.paused(played)
    with pytest.raises(errors.RefusedError, match=r"r4\.5 is not played"):
        corrections.replay(played.state, "r4.5", *WHY)


acts = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 40), st.sampled_from([*RESULTS, "replay"])),
    max_size=4,
)


@given(acts, st.lists(st.sampled_from(RESULTS), min_size=60, max_size=60), st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_corrected_matches_go_by_the_rule(
    tmp_path_factory: pytest.TempPathFactory, done: Any, results: Any, pairs: int
) -> None:
    """Whatever is corrected when, pairs stay whole and the winner is who the results say."""
    left = iter(results)

    def verdict_of(game: events.Game) -> driver.Verdict:
        return next(left, "1-0" if game.white < game.black else "0-1"), DRAW[1]

    played = cup(tmp_path_factory.mktemp("cup"), verdict_of, pairs=pairs)
    for games, number, act in done:
        played.play(games)
        if played.state.finished:
            break
        correct(
            driver.paused(played), sorted(played.state.games)[number % len(played.state.games)], act
        )
        driver.resumed(played)
    played.play()
    assert played.state.finished
    for event in played.state.events.values():
        check_matches(played, event, pairs)


def correct(played: driver.Driver, game: str, act: str) -> None:
    """Set a game's result or have it played again, with all that hangs on it; or be refused."""
    cascade = corrections.hanging(played.state, played.state.game(game).event)
    try:
        if act == "replay":
            played.append(corrections.replay(played.state, game, *WHY, cascade))
        else:
            result = RESULTS[RESULTS.index(act)]
            played.append(corrections.adjudicate(played.state, game, result, *WHY, cascade))
    except errors.RefusedError:
        pass


def check_matches(played: driver.Driver, event: events.EventState, pairs: int) -> None:
    """Hold every match of a round against the rule, counted game by game."""
    games = [game for game in map(played.state.game, event.order) if game.counts]
    for number in {game.round_number for game in games}:
        own = [game for game in games if game.round_number == number]
        first = own[0].white
        assert [game.white == first for game in own] == [n % 2 == 0 for n in range(len(own))]
        assert all(a.opening == b.opening for a, b in zip(own[::2], own[1::2], strict=False))
        text = "".join(_result_of(game, first) for game in own)
        length = by_the_rule(text, pairs)
        points = sum(2 if told == "1" else told == "=" for told in text[:length])
        winner = first if points > length else own[0].black
        assert winner in {row.engine for row in event.rows if row.rank == 1}


def _result_of(game: events.Game, first: str) -> str:
    assert game.finished is not None
    told = {"1-0": "1", "0-1": "0"}.get(game.finished.result, "=")
    return told if game.white == first else {"1": "0", "0": "1"}.get(told, "=")


# -- who leaves ----------------------------------------------------------------------


def test_somebody_goes_on_from_every_match(tmp_path: Path) -> None:
    """CUP-2e: the second of a match stays, and who has a bye: their seats may change hands."""
    played = driver.paused(cup(tmp_path, driver.drawn, entrants=5, pairs=1).play(1))
    slots = played.state.events["r8"].bracket
    alone = [a for a, b in zip(slots[::2], slots[1::2], strict=True) if not b]
    one, other = next(pair for pair in zip(slots[::2], slots[1::2], strict=True) if pair[1])
    with pytest.raises(errors.RefusedError, match=r"goes on.*farm season amend engine"):
        disqualification.withdraw(played.state, "r8", alone[0], *WHY)
    played.append(disqualification.withdraw(played.state, "r8", one, *WHY))
    with pytest.raises(errors.RefusedError, match="no rival left in r8"):
        disqualification.withdraw(played.state, "r8", other, *WHY)
    driver.resumed(played).settle()
    assert sorted(played.state.events["r4"].entrants) == sorted([*alone, other])


def test_who_left_the_semifinal_plays_no_bronze_match(tmp_path: Path) -> None:
    """S16-16, CUP-2e: the other loser is third without a game; a substitute may play for it."""
    played = driver.paused(cup(tmp_path, by_id, pairs=1).play(1))
    played.append(disqualification.withdraw(played.state, "r4", "e1", *WHY, "disqualification"))
    driver.resumed(played).play()
    bronze = played.state.events["bronze"]
    assert bronze.order == []
    assert [row.engine for row in bronze.rows] == ["e3", "e1"]
    assert (bronze.excluded["e1"].cause, bronze.excluded["e1"].name) == ("disqualification", "ann")
    assert played.state.champion == "e2"
    again = driver.Driver.replayed(played.journal)
    assert again.state.events["bronze"].excluded == bronze.excluded
    shown = tables.bracket(played.state, bronze)
    assert shown is not None
    assert [side["winner"] for side in shown["matches"][0]["sides"]] == [False, True]


def test_one_of_two_who_left_is_third_all_the_same(tmp_path: Path) -> None:
    """CUP-2e: where both losers have left, the match is not played and the Cup ends."""
    played = driver.paused(cup(tmp_path, by_id, pairs=1).play(1))
    for engine in ("e2", "e4"):
        played.append(disqualification.withdraw(played.state, "r4", engine, *WHY))
    driver.resumed(played).play()
    assert played.state.events["bronze"].order == []
    assert played.state.champion == "e1"


# -- fields of other sizes -----------------------------------------------------------


@pytest.mark.parametrize(
    ("entrants", "promote", "allowed"),
    [
        (4, '{ top = 2, to = "last" }', ""),
        (5, '{ ranks = [1, 2, 3, 4], to = "last" }', ""),
        (4, '{ top = 4, to = "last" }', "the 2 winners"),
        (4, '{ ranks = [2, 3], to = "last" }', "the 2 winners"),
        (8, '{ top = 2, to = "last" }', "the 4 winners"),
    ],
)
def test_a_round_sends_on_its_winners(
    tmp_path: Path, entrants: int, promote: str, allowed: str
) -> None:
    """CUP-2b: no winner stays behind in a Cup, and no loser goes on beside winners."""
    text = driver.season_text(entrants).split("[[event]]")[0] + "repeat = true\n"
    more = ', bracket = "equal-distance"'
    text += ROUND.format(id="first", pairs=1, more=more, entrants='"roster"', promote=promote)
    text += ROUND.format(id="last", pairs=1, more="", entrants="[]", promote="")
    if not allowed:
        assert driver.load(tmp_path, text)
        return
    with pytest.raises(errors.SeasonFileError, match=allowed):
        driver.load(tmp_path, text)


def test_no_engine_is_added_to_a_full_bracket() -> None:
    """CUP-1c: the 32 are 32; a 33rd would double the bracket, so it may only take a seat."""
    entry = model.EngineEntry(id="late", name="Late", command=("late",), rating=3000)
    played = driver.Driver.launched(driver.shipped("cup"))
    with pytest.raises(errors.RefusedError, match=r"the 32 winners.*farm season amend engine"):
        engine_update.add(played.state, entry, "round-32", played.now_ms, *WHY)
    assert engine_update.add(played.state, entry, "", played.now_ms, *WHY)
