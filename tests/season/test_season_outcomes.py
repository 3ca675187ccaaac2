"""What a season leaves behind: places of who left, what hangs on a result, where engines go."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final

import driver
import pytest

from orchestrator import contract
from orchestrator.season import (
    corrections,
    decisions,
    events,
    exclusion,
    files,
    model,
    outcome,
    replacing,
    standings,
    updating,
)

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
        played.append(exclusion.withdraw(played.state, "league", engine, *WHY))
    return driver.resumed(played).play()


def test_who_left_is_placed_by_crashes(tmp_path: Path) -> None:
    """S16-12b, S16-15d: nothing else of them counts, so fewer crashes stay and more go down."""
    played = left(tmp_path, crashes=5, relegate=1)
    last = played.state.events["league"].rows[3:]
    assert [(row.engine, row.rank) for row in last] == [("e4", 4), ("e2", 5)]
    assert {row.decided_by for row in last} == {standings.EXCLUDED}
    assert last[0].tiebreaks[model.Criterion.CRASHES] < last[1].tiebreaks[model.Criterion.CRASHES]
    assert outcome.relegations(played.state) == {"e2": ("league", "")}


def test_the_organizers_part_who_left_level(tmp_path: Path) -> None:
    """S16-12f: of two that have left alike the director says who goes down, not the list."""
    played = left(tmp_path, crashes=0, relegate=1)
    (asked,) = decisions.outstanding(played.state)
    assert (asked.place, asked.engines, asked.choose) == (4, ("e2", "e4"), 1)
    played.append(decisions.decide(played.state, asked.decision, ["e4"], *WHY))
    assert outcome.relegations(played.play().state) == {"e2": ("league", "")}


def test_who_left_level_without_a_line_asks_nobody(tmp_path: Path) -> None:
    """S16-12a: both go down, or neither: they share their place."""
    played = left(tmp_path, crashes=0, relegate=2)
    assert played.state.finished
    assert [row.rank for row in played.state.events["league"].rows] == [1, 2, 3, 4, 4]


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
def _season17() -> files.Loaded:
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
    season17: files.Loaded, entered: bool
) -> None:
    """S17-2, S17-7c: a network that took a seat of GPU League 1 goes down to that league."""

    def results(game: events.Game) -> driver.Verdict:
        strong = "late" if game.event in {"l1-gpu", "playoff"} else "divp"
        white, black = (not one.startswith(strong) for one in (game.white, game.black))
        first = (white, game.white) < (black, game.black)
        return ("1-0" if first else "0-1"), driver.Ending.CHECKMATE

    played = driver.Driver.launched(season17, results)
    entry = model.EngineEntry(id="late", name="Late", command=("late",), competition="gpu")
    if entered:
        played.append(updating.add(played.state, entry, "", played.now_ms, *WHY))
    late = played.state.engines.get("late") or contract.EngineSpec(
        id="late", name="Late", command=("late",)
    )
    played.append(replacing.replace(played.state, "l1-gpu", "gpu-3", late, "keep", *WHY))
    played.play()
    assert "late" in played.state.events["divp"].entrants
    assert outcome.relegations(played.state)["late"] == ("divp", "l1-gpu")
    fields = outcome.next_fields(played.state)
    assert "late" in fields["l1-gpu"]
    assert "late" not in fields["l1-cpu"]
