"""The graph, the crosstable and the progress of a season at its stages."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import driver
import pytest

from orchestrator.season import graph
from orchestrator.season.fold import crosstable, events, pairing, progress, standings


@pytest.fixture(name="season")
def _season(tmp_path: Path) -> driver.Driver:
    """A launched season of a league of four and a final, nothing decided yet."""
    return driver.Driver.launched(driver.load(tmp_path, driver.season_text()))


def states(season: driver.Driver) -> dict[str, str]:
    """Return the state of every node."""
    return {node.id: node.state.value for node in graph.build(season.state).nodes}


def test_a_launched_season_is_all_planned(season: driver.Driver) -> None:
    """Before anything is paired, every game to come has its node already."""
    planned = states(season)
    assert set(planned.values()) == {"planned"}
    assert [node for node in planned if node.startswith("league")] == [
        "league:pairing",
        *(f"league.{number}" for number in range(1, 13)),
        "league:ranking",
    ]


def test_nodes_follow_the_season(season: driver.Driver) -> None:
    """Games go from paired over ready and running to done; the end names the champion."""
    season.settle()
    assert states(season)["league.1"] == "ready"
    assert states(season)["league.2"] == "paired"
    attempt = season.start("league.1")
    assert states(season)["league.1"] == "running"
    season.finish("league.1", attempt, ("1-0", driver.Ending.CHECKMATE))
    assert states(season)["league.1"] == "done"
    before = set(states(season))
    season.play()
    assert set(states(season)) == before
    assert set(states(season).values()) == {"done"}
    champion = season.state.engines[season.state.champion].name
    assert graph.build(season.state).nodes[-1].label == f"Champion: {champion}"


def test_edges_chain_games_and_lead_to_the_end(season: driver.Driver) -> None:
    """Every node but the first leads on from another; the ranking opens the gate."""
    season.settle()
    drawn = graph.build(season.state)
    assert ("league.1", "league.2") in drawn.edges
    assert ("league:ranking", "final:gate") in drawn.edges
    assert ("final:ranking", "season:end") in drawn.edges
    assert drawn.ways == (graph.Way("league", "final", (1, 2)),)
    assert drawn.data()["ways"] == [{"from": "league", "to": "final", "places": [1, 2]}]
    ids = {node.id for node in drawn.nodes}
    assert ids - {target for _, target in drawn.edges} == {"league:pairing"}
    assert {end for edge in drawn.edges for end in edge} == ids


def test_rounds_fold_games(season: driver.Driver) -> None:
    """Folded by rounds, a league of four has six nodes, counted by games done."""
    season.play(3)
    nodes = graph.build(season.state, by_round=True).nodes
    rounds = [node for node in nodes if node.event == "league" and node.kind == "round"]
    assert [node.state.value for node in rounds] == ["done", "running"] + ["paired"] * 4
    assert rounds[1].label == "Round 2: 1/2 games"


def test_renderings_hold_every_node(season: driver.Driver) -> None:
    """Mermaid, DOT and JSON draw the same nodes and edges, names escaped."""
    season.settle()
    drawn = graph.build(season.state)
    data = json.loads(json.dumps(drawn.data()))
    assert len(data["nodes"]) == len(drawn.nodes)
    assert len(data["edges"]) == len(drawn.edges)
    mermaid, dot = graph.mermaid(drawn), graph.dot(drawn)
    assert mermaid.startswith("flowchart LR\n")
    assert mermaid.count(" --> ") == dot.count(" -> ") == len(drawn.edges)
    assert mermaid.count(":::") == dot.count("fillcolor=") == len(drawn.nodes)
    assert dot.count("{") == dot.count("}")


def test_the_crosstable_mirrors_itself(season: driver.Driver) -> None:
    """What one line takes from another is what that one leaves; sums are the points."""
    season.play(9)
    lines = crosstable.crosstable(season.state, "league")
    for row, line in enumerate(lines):
        assert line.cells[row] is None
        taken = [sum(cell.half_points) for cell in line.cells if cell is not None]
        assert sum(taken) == line.row.half_points
        for column, cell in enumerate(line.cells):
            other = lines[column].cells[row]
            if cell is not None and other is not None:
                assert cell.games == other.games
                assert cell.text.translate(str.maketrans("01", "10")) == other.text
                assert (cell.pairs or ())[::-1] == (other.pairs or ())


def test_pairs_of_games_are_counted_by_the_points_taken_of_them(season: driver.Driver) -> None:
    """Only where both colours of one opening have been played: a lone game is no pair yet."""
    season.play()
    played = season.state.events["league"].order
    game = season.state.game(played[0])
    assert game.finished is not None

    def finished_game(white: str, result: str, opening: int | None) -> events.Game:
        ended = game.finished and game.finished.model_copy(update={"result": result})
        black = "b" if white == "a" else "a"
        told = {"white": white, "black": black, "opening": opening, "finished": ended}
        return dataclasses.replace(game, **told)  # type: ignore[arg-type]

    won, lost, drawn, lone = (
        [finished_game("a", "1-0", 1), finished_game("b", "0-1", 1)],
        [finished_game("a", "0-1", 1), finished_game("b", "1/2-1/2", 1)],
        [finished_game("b", "1-0", 2), finished_game("a", "1-0", 2)],
        finished_game("a", "1-0", 3),
    )
    cases = [
        ([*won, *lost, *drawn, lone], (0, 1, 1, 0, 1)),
        ([won[0], drawn[0], won[1], drawn[1]], (0, 0, 1, 0, 1)),
        ([lone, lone], None),
        ([finished_game("a", "1-0", None), finished_game("b", "1-0", None)], None),
        ([], None),
    ]
    for games, pairs in cases:
        assert crosstable.cell("a", games).pairs == pairs


def test_standings_of_a_running_event_are_of_the_moment(season: driver.Driver) -> None:
    """Before its ranking an event shows the table of the games played so far."""
    season.play(5)
    league = season.state.events["league"]
    assert sum(row.half_points for row in pairing.table(season.state, league)) == 10
    assert pairing.table(season.state, league) == standings.rank(
        league.tally, league.spec.tiebreaks
    )


def test_progress_counts_and_estimates(season: driver.Driver) -> None:
    """Totals include events not started; the rest takes the mean of what was played."""
    before = progress.of_season(season.state)
    assert (before.played, before.total, before.share) == (0, 16, 0.0)
    # 30+5: nominally 2 x (30 min + 60 x 5 s); the final has 60+5 and a break of 10 min
    assert before.remaining_seconds == pytest.approx(12 * 4200 + 600 + 4 * 7800)
    season.play(6)
    league = progress.of_event(season.state, "league")
    assert (league.played, league.total, league.mean_seconds) == (6, 12, 60.0)
    assert league.remaining_seconds == pytest.approx(6 * 60)
    final = progress.of_event(season.state, "final")
    assert final.remaining_seconds == pytest.approx(600 + 4 * 60 * 7800 / 4200)
    season.play()
    after = progress.of_season(season.state)
    assert (after.played, after.remaining_seconds, after.share) == (16, 0.0, 1.0)
    assert after.mean_seconds == pytest.approx(60.0)
