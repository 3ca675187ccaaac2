"""What a season leaves behind: places of who left, what hangs on a result, where engines go."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import Final

import driver
import pytest

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season import decisions, final_standings
from orchestrator.season.amend import engine_update, substitute
from orchestrator.season.file import load
from orchestrator.season.fold import corrections, disqualification, events, standings
from orchestrator.season.spec import model

WHY: Final = ("ann", "the author asked")
CHAIN: Final = 'tiebreaks = ["crashes", "direct-encounter", "wins", "organizers"]\n'
EVENT: Final = """
[[event]]
id = "{id}"
name = "{id}"
format = {{ kind = "round-robin" }}
entrants = {entrants}
time_control = "30+5"
promote = [{promote}]
"""


def by_id(game: events.Game) -> driver.Verdict:
    """Let the smaller id win."""
    return ("1-0" if game.white < game.black else "0-1"), driver.Ending.CHECKMATE


# -- places of who left --------------------------------------------------------------


def left(folder: Path, crashes: int, relegate: int) -> driver.Driver:
    """Play a league of five that e2 and e4 leave; e2 has crashed before."""

    def results(game: events.Game) -> driver.Verdict:
        if "e2" not in (game.white, game.black) or game.number > crashes:
            return by_id(game)
        return ("1-0" if game.black == "e2" else "0-1"), driver.Ending.DISCONNECT

    text = driver.season_text(5).replace("promote =", f"relegate = {relegate}\n{CHAIN}promote =")
    played = driver.paused(driver.Driver.launched(driver.load(folder, text), results).play(6))
    for engine in ("e2", "e4"):
        played.append(disqualification.withdraw(played.state, "league", engine, *WHY))
    return driver.resumed(played).play()


def test_who_left_is_placed_by_crashes(tmp_path: Path) -> None:
    """S16-12b, S16-15d: nothing else of them counts, so fewer crashes stay and more go down."""
    played = left(tmp_path, crashes=5, relegate=1)
    last = played.state.events["league"].rows[3:]
    assert [(row.engine, row.rank) for row in last] == [("e4", 4), ("e2", 5)]
    assert {row.decided_by for row in last} == {standings.EXCLUDED}
    assert last[0].tiebreaks[model.Criterion.CRASHES] < last[1].tiebreaks[model.Criterion.CRASHES]
    assert final_standings.relegations(played.state) == {"e2": ("league", "")}


def test_the_organizers_part_who_left_level(tmp_path: Path) -> None:
    """S16-12f: of two that have left alike the director says who goes down, not the list."""
    played = left(tmp_path, crashes=0, relegate=1)
    (asked,) = decisions.outstanding(played.state)
    assert (asked.place, asked.engines, asked.choose) == (4, ("e2", "e4"), 1)
    played.append(decisions.decide(played.state, asked.decision, ["e4"], *WHY))
    assert final_standings.relegations(played.play().state) == {"e2": ("league", "")}


def test_who_left_level_without_a_line_asks_nobody(tmp_path: Path) -> None:
    """S16-12a: both go down, or neither: they share their place."""
    played = left(tmp_path, crashes=0, relegate=2)
    assert played.state.finished
    assert [row.rank for row in played.state.events["league"].rows] == [1, 2, 3, 4, 4]


# -- final standings -------------------------------------------------------------------


@functools.cache
def interleaved() -> driver.Driver:
    """Play Season 17 with everybody level in GPU League 1 but for the first two."""

    def results(game: events.Game) -> driver.Verdict:
        lead = {"gpu-1": 0, "gpu-2": 1}
        white, black = (lead.get(engine, 2) for engine in (game.white, game.black))
        if game.event == "l1-gpu":
            if white == black:
                return "1/2-1/2", driver.Ending.THREEFOLD
            return ("1-0" if white < black else "0-1"), driver.Ending.CHECKMATE
        return by_id(game)

    return driver.Organized.launched(driver.shipped("season17"), results).play()


def test_engines_of_one_rank_are_level_in_the_final_standings() -> None:
    """CUP-1c: of CPU and GPU League 1 neither goes first by the order of the file."""
    placings = final_standings.final_standings(interleaved().state)
    by_engine = {placing.engine: placing for placing in placings}
    fifth = next(placing for placing in placings if placing.event == "l1-cpu")
    third = [placing for placing in placings if placing.event == "l1-gpu"]
    assert {placing.rank for placing in third} == {3}
    assert len(third[0].level) == len(third) - 1
    assert fifth.rank == 5
    assert fifth.level == ()
    assert by_engine[third[3].engine].level == tuple(
        placing.engine for placing in third if placing.engine != third[3].engine
    )


def test_the_organizers_are_asked_where_a_place_of_the_final_standings_matters() -> None:
    """CUP-1c, CUP-1d, CUP-2c: who is among the 32, and who is one of the eight placed seeds."""
    state = interleaved().state
    whole = final_standings.final_standings(state)
    tied = [placing for placing in whole if placing.event == "l1-gpu"]
    first, last = tied[0].place, tied[-1].place
    final_standings.require_parted(whole, first - 1, 8)
    final_standings.require_parted(whole, last, 8)
    top = first + 1
    with pytest.raises(errors.RefusedError, match=r"name 2 of them.*--order"):
        final_standings.require_parted(whole, top, 8)
    with pytest.raises(errors.RefusedError, match=f"places {first} to {last}"):
        final_standings.require_parted(whole, last, first)
    order = [tied[5].engine, tied[2].engine]
    decided = final_standings.final_standings(state, order=order)
    assert [placing.engine for placing in decided[first - 1 : top]] == order
    assert decided[first - 1].level == decided[first].level == ()
    assert len(decided[top].level) == len(tied) - 3
    final_standings.require_parted(decided, top, 8)


def test_level_engines_of_two_leagues_of_a_tier_are_asked_about(season17: load.Loaded) -> None:
    """S17: rank 5 of CPU League 1 and rank 5 of GPU League 1 have the same claim (CUP-1d)."""
    more = season17.season.model_copy(
        update={
            "events": tuple(
                event.model_copy(update={"entrants": tuple(f"gpu-{n}" for n in range(1, 7))})
                if event.id == "l1-gpu"
                else event
                for event in season17.season.events
            )
        }
    )
    played = driver.Organized.launched(dataclasses.replace(season17, season=more), by_id).play()
    whole = final_standings.final_standings(played.state)
    ours = [placing for placing in whole if placing.event in {"l1-cpu", "l1-gpu"}]
    level = [placing for placing in ours if placing.rank == 5]
    assert [(one.event, one.level) for one in level] == [
        ("l1-cpu", (level[1].engine,)),
        ("l1-gpu", (level[0].engine,)),
    ]
    with pytest.raises(errors.RefusedError, match="are level"):
        final_standings.require_parted(whole, level[0].place, 8)
    chosen = final_standings.final_standings(played.state, order=[level[1].engine])
    assert chosen[level[0].place - 1].engine == level[1].engine


# -- what hangs on a result ----------------------------------------------------------


def test_all_that_hangs_on_a_result_is_taken_back(tmp_path: Path) -> None:
    """Also an event that the file lists before the one that leads to it."""
    text = driver.season_text(4).split("[[event]]")[0].split("[books.short]")[0]
    for name, entrants, promote in (
        ("third", "[]", ""),
        ("second", "[]", '{ top = 2, to = "third" }'),
        ("first", '"roster"', '{ top = 3, to = "second" }, { ranks = [3, 4], to = "last" }'),
        ("last", "[]", ""),
    ):
        text += EVENT.format(id=name, entrants=entrants, promote=promote)
    played = driver.paused(driver.Driver.launched(driver.load(tmp_path, text), by_id).play(21))
    assert played.state.events["third"].rows[0].engine == "e1"
    cascade = corrections.hanging(played.state, "first")
    assert cascade == ["first", "third", "second", "last"]
    for game in [
        g for g in played.state.games.values() if g.event == "first" and "e1" in g.players
    ]:
        result: contract.Result = "0-1" if game.white == "e1" else "1-0"
        built = corrections.hanging(played.state, "first")
        played.append(corrections.adjudicate(played.state, game.id, result, *WHY, built))
    driver.resumed(played).play()
    assert played.state.finished
    assert "e1" not in played.state.events["third"].entrants


# -- where engines go ----------------------------------------------------------------


@pytest.fixture(name="season17", scope="module")
def _season17() -> load.Loaded:
    """Season 17 from its Leagues 1 on, with short leagues and a short Superfinal."""
    season = driver.shipped("season17").season
    short: dict[str, dict[str, object]] = {
        "l1-cpu": {"entrants": tuple(f"l1-{n}" for n in range(1, 9)), "relegate": 2},
        "l1-gpu": {"entrants": ("gpu-1", "gpu-2", "gpu-3")},
        "sufi": {"format": model.Match(kind="match", games=2)},
    }
    kept = (event for event in season.events if event.id not in {"ql", "l2"})
    cut = tuple(event.model_copy(update=short.get(event.id, {})) for event in kept)
    whole = season.model_copy(update={"events": cut})
    return dataclasses.replace(driver.shipped("season17"), season=whole)


@pytest.mark.parametrize("entered", [True, False])
def test_who_joined_is_relegated_to_its_own_competition(
    season17: load.Loaded, entered: bool
) -> None:
    """S17-2, S17-7c: a network that took a seat of GPU League 1 goes down to that league."""

    def results(game: events.Game) -> driver.Verdict:
        strong = "late" if game.event in {"l1-gpu", "playoff"} else "divp"
        white, black = (not one.startswith(strong) for one in (game.white, game.black))
        first = (white, game.white) < (black, game.black)
        return ("1-0" if first else "0-1"), driver.Ending.CHECKMATE

    played = driver.Driver.launched(season17, results)
    entry = model.EngineEntry(
        id="late", name="Late", command=("late",), competition="gpu", box="gpu-1"
    )
    if entered:
        played.append(engine_update.add(played.state, entry, "", played.now_ms, *WHY))
    late = played.state.engines.get("late") or contract.EngineSpec(
        id="late", name="Late", command=("late",)
    )
    played.append(substitute.replace(played.state, "l1-gpu", "gpu-3", late, "keep", *WHY))
    played.play()
    assert "late" in played.state.events["divp"].entrants
    assert final_standings.relegations(played.state)["late"] == ("divp", "l1-gpu")
    fields = final_standings.next_fields(played.state)
    assert "late" in fields["l1-gpu"]
    assert "late" not in fields["l1-cpu"]
