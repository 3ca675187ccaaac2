"""Ties that create an event of their own, and what becomes of them."""

from __future__ import annotations

from pathlib import Path

import driver
import pytest
import test_season_organizers

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.forecast import season_simulation
from orchestrator.season import decide, decisions, final_standings, graph, views
from orchestrator.season.fold import corrections, entries, events, openings, state
from orchestrator.season.spec import model

LEAGUE = """
[[event]]
id = "league"
name = "League D"
format = {{ kind = "round-robin" }}
entrants = "roster"
time_control = "30+3"
tiebreaks = [{chain}"playoff"]
{more}
"""
FINAL = """
[[event]]
id = "final"
name = "Final"
format = { kind = "match", games = 2, extensions = [{ games = 2, repeat = true }] }
time_control = "30+3"
"""


def season(
    folder: Path, engines: int, more: str, results: driver.Results, chain: str = ""
) -> driver.Driver:
    """Launch a league whose ties are played off, and a final."""
    text = driver.season_text(engines).split("[[event]]")[0]
    text += LEAGUE.format(more=more, chain=chain) + FINAL
    return driver.Driver.launched(driver.load(folder, text), results)


def better(game: events.Game) -> driver.Verdict:
    """Let the engine of the lower number win."""
    return ("1-0" if game.white < game.black else "0-1"), contract.Ending.CHECKMATE


def drawn_league(game: events.Game) -> driver.Verdict:
    """Draw every game of the league; elsewhere the lower number wins."""
    return driver.drawn(game) if game.event == "league" else better(game)


def test_a_tie_across_a_line_creates_an_event_that_parts_it(tmp_path: Path) -> None:
    """Four level engines and two places: a round robin of the four, then the final."""
    played = season(tmp_path, 4, 'promote = [{ top = 2, to = "final" }]', drawn_league).play()
    found = played.state
    assert list(found.events) == ["league", "league-tiebreak-1", "final"]
    playoff = found.events["league-tiebreak-1"]
    assert playoff.spec.name == "League D Tiebreak 1"
    assert set(playoff.entrants) == {"e1", "e2", "e3", "e4"}
    assert len(playoff.order) == 12
    best = [row.engine for row in playoff.rows[:2]]
    assert list(found.events["final"].entrants) == best
    rows = found.events["league"].rows
    assert [row.engine for row in rows[:2]] == best
    assert [row.decided_by for row in rows[:2]] == ["playoff", "playoff"]
    assert found.champion == found.events["final"].rows[0].engine


def test_a_table_whose_tie_is_played_off_is_not_final_yet(tmp_path: Path) -> None:
    """Until the playoff has parted the level engines, nobody calls their tie harmless."""
    played = season(tmp_path, 4, 'promote = [{ top = 2, to = "final" }]', drawn_league).play(12)
    so_far = views.standings(played.state, "league")
    assert (so_far["status"], so_far["final"]) == ("ranked", False)
    shown = test_season_organizers.shown_standings(so_far)
    assert "League D: table so far (a tie is played off)" in shown
    assert "not decided" not in shown
    parted = views.standings(played.play().state, "league")
    assert parted["final"]
    assert "League D: final table" in test_season_organizers.shown_standings(parted)


def test_a_tie_that_decides_nothing_creates_none(tmp_path: Path) -> None:
    """All go on as they are: their order leads nowhere."""
    played = season(tmp_path, 2, 'promote = [{ top = 2, to = "final" }]', drawn_league).play()
    assert [entry.kind for entry in played.journal].count(entries.EVENT_ADDED) == 0
    assert played.state.events["league"].rows[0].decided_by == ""


def pairs_until_won(game: events.Game) -> driver.Verdict:
    """Draw the league, and the first pairs of a playoff; then White wins once."""
    if game.event == "final" or (game.event == "league-tiebreak-1" and game.number == 7):
        return better(game)
    return driver.drawn(game)


def test_two_engines_play_pairs_until_one_wins_a_pair(tmp_path: Path) -> None:
    """Drawn pairs are followed by another one; the openings are the same within a pair only."""
    more = (
        'promote = [{ ranks = [1], to = "final" }, { ranks = [2], to = "other" }]\nbook = "short"'
    )
    text = driver.season_text(3).split("[[event]]")[0]
    text += LEAGUE.format(more=more, chain="")
    for name in ("other", "final"):
        text += (
            f'[[event]]\nid = "{name}"\nname = "{name}"\nformat = {{ kind = "round-robin" }}\n'
            f'entrants = ["e3"]\ntime_control = "30+3"\n'
        )
    text = text.replace('entrants = "roster"', 'entrants = ["e1", "e2"]')
    loaded = driver.load(tmp_path, text)
    played = driver.Driver.launched(loaded, pairs_until_won).play()
    games = [played.state.games[name] for name in played.state.events["league-tiebreak-1"].order]
    assert len(games) == 8
    used = [openings.of_game(played.state, game).line for game in games]
    assert used[::2] == used[1::2]
    assert len(set(used)) == 4
    league = {
        openings.of_game(played.state, played.state.games[name]).line
        for name in played.state.events["league"].order
    }
    assert league.isdisjoint(used)


def part_by_part(game: events.Game) -> driver.Verdict:
    """Draw all but what parts the first playoff into one and two, and the second one."""
    first = game.event == "league-tiebreak-1" and "e1" in (game.white, game.black)
    later = game.event in {"league-tiebreak-2", "final"}
    return better(game) if first or later else driver.drawn(game)


def test_who_stays_level_across_the_line_plays_again(tmp_path: Path) -> None:
    """The first of three is through; the two others play for the second place."""
    more = 'promote = [{ top = 2, to = "final" }]\nbook = "short"'
    played = season(tmp_path, 3, more, part_by_part).play()
    found = played.state
    assert list(found.events) == ["league", "league-tiebreak-1", "league-tiebreak-2", "final"]
    again = found.events["league-tiebreak-2"]
    assert sorted(again.entrants) == ["e2", "e3"]
    lines = [
        {openings.of_game(found, found.games[game]).line for game in found.events[name].order}
        for name in ("league", "league-tiebreak-1", "league-tiebreak-2")
    ]
    assert sum(map(len, lines)) == len(set().union(*lines)), "an opening was played twice"
    assert found.events["final"].entrants == ("e1", again.rows[0].engine)


def test_nobody_is_asked_and_views_name_the_playoff(tmp_path: Path) -> None:
    """No decision waits for the organizers; season, graph and outcome know the added event."""
    played = season(tmp_path, 4, 'promote = [{ top = 2, to = "final" }]', drawn_league).play(14)
    assert decisions.outstanding(played.state) == []
    shown = [event["event"] for event in views.season(played.state)["events"]]
    assert shown == ["league", "league-tiebreak-1", "final"]
    assert any(node.event == "league-tiebreak-1" for node in graph.build(played.state).nodes)
    played.play()
    standings = final_standings.final_standings(played.state)
    assert {placing.event for placing in standings} == {"league", "final"}
    assert state.fold(played.journal).champion == played.state.champion


def test_a_corrected_league_takes_its_playoff_back(tmp_path: Path) -> None:
    """The playoff hangs on the league; when its tie is gone it counts no longer."""
    played = season(tmp_path, 4, 'promote = [{ top = 2, to = "final" }]', drawn_league).play(24)
    driver.paused(played)
    hanging = corrections.hanging(played.state, "league")
    assert hanging == ["league", "league-tiebreak-1", "final"]
    in_playoff = played.state.events["league-tiebreak-1"].order[0]
    with pytest.raises(errors.RefusedError, match="has decided a tie of league"):
        corrections.void(played.state, in_playoff, "tester", "wrong")
    game = played.state.events["league"].order[0]
    for changed in (game, played.state.events["league"].order[1]):
        cascade = corrections.hanging(played.state, "league")
        played.append(
            corrections.adjudicate(played.state, changed, "1-0", "tester", "wrong", cascade)
        )
    found = driver.resumed(played).play().state
    assert found.events["league-tiebreak-1"].status is events.Status.ABANDONED
    assert found.finished


def test_a_bundled_chain_ends_with_playoff_or_is_refused(tmp_path: Path) -> None:
    """``playoff`` is the last word of a chain."""
    text = driver.season_text(4).split("[[event]]")[0] + LEAGUE.format(
        more="", chain='"playoff", "wins", '
    ).replace('"wins", "playoff"', '"wins"')
    with pytest.raises(errors.SeasonFileError, match="playoff"):
        driver.load(tmp_path, text)


@pytest.mark.parametrize("seed", range(3))
def test_simulated_seasons_of_ties_end(tmp_path: Path, seed: int) -> None:
    """Whatever the results, playoffs end and a champion is found without a question."""
    text = driver.season_text(6).split("[[event]]")[0]
    text += LEAGUE.format(
        more='promote = [{ top = 2, to = "final" }]\nseeding_places = 6', chain=""
    )
    played = season_simulation.Simulation.launched(driver.load(tmp_path, text + FINAL), seed).run()
    kinds = [entry.kind for entry in played.journal]
    assert played.state.champion
    assert entries.EVENT_ADDED in kinds
    assert entries.DECISION_NEEDED not in kinds
    assert not decide.decide(played.state, played.state.at_ms)
    added = [event for event in played.state.events.values() if event.parts is not None]
    assert all(event.spec.tiebreaks == (model.Criterion.PLAYOFF,) for event in added)
