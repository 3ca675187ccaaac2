"""What organizers decide, exclusions, corrections of results and what hangs on them."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import driver
import harness
import pytest
import rich.console
from hypothesis import given, settings
from hypothesis import strategies as st
from twins import memory

from orchestrator import contract
from orchestrator.commands import tables
from orchestrator.common import errors
from orchestrator.season import decisions, final_standings, graph, verify_seed, views
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import corrections, disqualification, entries, events, state
from orchestrator.season.spec import model

Ending = contract.Ending
CHAIN = 'tiebreaks = ["crashes", "direct-encounter", "wins", "sonneborn-berger", "organizers"]\n'


class Organized(driver.Driver):
    """A season whose organizers answer every question at once: the last ones first."""

    def settle(self) -> None:
        """Journal all that can be decided, the organizers' answers included."""
        super().settle()
        while asked := decisions.outstanding(self.state):
            choice = asked[0].engines[::-1][: asked[0].choose]
            self.append(decisions.decide(self.state, asked[0].decision, choice, "ann", "lots"))
            super().settle()


def text(league: str = "", final: str = "", engines: int = 4, rounds: int = 1) -> str:
    """Return a season file with lines added to the tables of its two events."""
    whole = driver.season_text(engines, rounds)
    first, second = whole.split('id = "final"')
    return f'{first.replace("promote =", league + "promote =")}id = "final"\n{final}{second}'


def crashing(*engines: str) -> driver.Results:
    """Let the named engines crash whenever they have White; all else is drawn."""

    def results(game: events.Game) -> driver.Verdict:
        return ("0-1", Ending.DISCONNECT) if game.white in engines else driver.drawn(game)

    return results


def ordered(*level: str) -> driver.Results:
    """Let the smaller id win, but the named engines draw with each other."""

    def results(game: events.Game) -> driver.Verdict:
        if {game.white, game.black} <= set(level):
            return driver.drawn(game)
        return ("1-0" if game.white < game.black else "0-1"), Ending.CHECKMATE

    return results


def launched(folder: Path, whole: str, results: driver.Results = driver.by_name) -> driver.Driver:
    """Launch a season."""
    return driver.Driver.launched(driver.load(folder, whole), results)


def shown_standings(view: Mapping[str, Any]) -> str:
    """Return a table as a wide terminal shows it."""
    told = io.StringIO()
    rich.console.Console(file=told, width=200).print(tables.standings(view))
    return told.getvalue()


def kinds(played: driver.Driver, kind: str) -> list[contract.Entry]:
    """Return the entries of a kind."""
    return [entry for entry in played.journal if entry.kind == kind]


# -- decisions -----------------------------------------------------------------------


def test_a_tie_at_the_line_waits_for_the_organizers(tmp_path: Path) -> None:
    """Nobody goes on and no gate is set until the answer; then exactly the chosen go on."""
    season = launched(tmp_path, text(CHAIN) + driver.SIDE, driver.drawn).play()
    assert not season.state.finished
    (asked,) = decisions.outstanding(season.state)
    assert (asked.decision, asked.place, asked.choose) == ("league:place-1", 1, 2)
    assert asked.about == (
        "place 1: to final; place 2: to final; place 3: goes no further; place 4: goes no further"
    )
    assert season.state.events["final"].status is events.Status.WAITING
    assert season.state.events["side"].status is events.Status.RANKED  # it depended on nothing
    assert views.season(season.state)["decisions"][0]["engines"] == ["e1", "e2", "e3", "e4"]
    with pytest.raises(errors.RefusedError, match="must decide league:place-1"):
        final_standings.outcome(season.state)
    with pytest.raises(errors.RefusedError, match="'league' is over"):
        disqualification.withdraw(season.state, "league", "e2", "ann", "late")
    season.append(decisions.decide(season.state, asked.decision, ["e4", "e2"], "ann", "lots"))
    season.play()
    assert season.state.events["final"].entrants == ("e4", "e2")
    rows = season.state.events["league"].rows
    assert [(r.rank, r.engine, r.decided_by) for r in rows] == [
        (1, "e4", "organizers"),
        (2, "e2", "organizers"),
        (3, "e1", ""),
        (3, "e3", ""),
    ]
    decided = kinds(season, entries.DECIDED)[0].data
    assert (decided["reason"], decided["name"], decided["choose"]) == ("lots", "ann", ["e4", "e2"])
    assert season.state.finished


def test_a_table_is_final_when_its_ties_are_decided(tmp_path: Path) -> None:
    """`farm up` shows a tied event's table as it is so far, and the final one once decided."""
    season = launched(tmp_path, text(CHAIN), driver.drawn)
    ledger, told = memory.MemoryLedger(), io.StringIO()
    screen = harness.up_screen_of(ledger, told, quiet=False)

    def show() -> str:
        drafts = [contract.Draft(one.kind, one.data) for one in season.journal]
        written = ledger.last("test")
        ledger.append("test", written, drafts[written:], "test")
        told.truncate(told.seek(0))
        screen.look()
        return told.getvalue()

    show()
    season.play()
    shown = show()
    assert "League: table so far (1 decision open)" in shown
    assert "final table" not in shown
    assert not views.standings(season.state, "league")["final"]
    (asked,) = decisions.outstanding(season.state)
    season.append(decisions.decide(season.state, asked.decision, ["e4", "e2"], "ann", "lots"))
    assert "League: final table" in show()


def test_a_tie_that_decides_nothing_stops_nothing(tmp_path: Path) -> None:
    """Places 3 and 4 lead nowhere, and places 1 and 2 to the same event: no question."""
    for level in (("e3", "e4"), ("e1", "e2")):
        season = launched(tmp_path, text(CHAIN), ordered(*level)).play()
        assert season.state.finished
        assert not kinds(season, entries.DECISION_NEEDED)
        assert season.state.events["league"].rows[0].rank == 1
        shown = shown_standings(views.standings(season.state, "league"))
        assert shown.count("not decided") == 3  # both rows, and what it means
        assert "nothing depends on it" in shown


def test_level_engines_of_a_running_event_are_not_called_undecided(tmp_path: Path) -> None:
    """Only a final table says that a tie stands."""
    season = launched(tmp_path, text(CHAIN), driver.drawn).play(6)
    assert "not decided" not in shown_standings(views.standings(season.state, "league"))


def test_a_place_that_leads_nowhere_is_told_by_the_others_of_its_tie(tmp_path: Path) -> None:
    """Who loses the title does not *stay*: the question says what each place means."""
    final = 'id = "final"\ntiebreaks = ["organizers"]'
    season = launched(
        tmp_path, driver.season_text().replace('id = "final"', final), driver.drawn
    ).play()
    (asked,) = decisions.outstanding(season.state)
    assert asked.about == "place 1: champion; place 2: not champion"


def test_seeding_places_are_decided_one_by_one(tmp_path: Path) -> None:
    """With ``seeding_places`` the order of those who go on is a question too."""
    season = launched(tmp_path, text(CHAIN + "seeding_places = 2\n"), ordered("e1", "e2")).play()
    (asked,) = decisions.outstanding(season.state)
    assert (asked.engines, asked.choose) == (("e1", "e2"), 1)
    assert asked.about == "place 1: its seed, to final; place 2: its seed, to final"
    season.append(decisions.decide(season.state, asked.decision, ["e2"], "ann", "rating"))
    assert season.play().state.events["final"].entrants == ("e2", "e1")


def test_seeds_of_level_engines_are_drawn_where_the_file_says_so(tmp_path: Path) -> None:
    """S16-12f, FRC-2b: the seed says who has White; by lot nobody is asked, and it is verified."""
    more = CHAIN + 'seeding_places = 2\nseeding_ties = "lot"\n'
    loaded = driver.load(tmp_path, text(more))
    firsts = set()
    for seed in range(12):
        season = driver.Driver.launched(loaded, ordered("e1", "e2"), seed=str(seed)).play()
        assert not kinds(season, entries.DECISION_NEEDED)
        firsts.add(season.state.events["final"].entrants)
        assert verify_seed.verify(season.journal).mismatches == ()
    assert firsts == {("e1", "e2"), ("e2", "e1")}


@pytest.mark.parametrize(
    ("season", "event"),
    [("season16", "divp"), ("season17", "divp"), ("frc", "final-league"), ("ntcec1", "stage-4")],
)
def test_the_seeds_of_a_final_are_asked_in_the_bundled_seasons(season: str, event: str) -> None:
    """S16-8a, S17-8a, FRC-2b, N1: not the order of the list gives White in its first game."""
    assert driver.shipped(season).season.event(event).seeding_places == 2


def test_a_relegation_tie_holds_the_end_alone(tmp_path: Path) -> None:
    """Who is relegated may be decided late: promotions, gates and games go on."""
    season = launched(tmp_path, text(CHAIN + "relegate = 1\n"), ordered("e3", "e4")).play()
    assert season.state.events["final"].status is events.Status.RANKED
    assert not season.state.finished
    (asked,) = decisions.outstanding(season.state)
    assert asked.about == "place 3: not relegated; place 4: relegated"
    season.append(decisions.decide(season.state, asked.decision, ["e4"], "ann", "newer"))
    assert season.play().state.finished
    assert [row.engine for row in season.state.events["league"].rows][2:] == ["e4", "e3"]


def test_a_drawn_final_asks_for_its_champion(tmp_path: Path) -> None:
    """The first place of the last event decides the title."""
    season = launched(tmp_path, text(final=CHAIN), driver.drawn).play()
    (asked,) = decisions.outstanding(season.state)
    season.append(decisions.decide(season.state, asked.decision, ["e2"], "ann", "lots"))
    assert season.play().state.champion == "e2"


def test_answers_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    """An answer names asked engines, enough of them, each once, with a reason."""
    season = launched(tmp_path, text(CHAIN), driver.drawn).play()
    for choose, reason, match in (
        (["e1"], "why", "needs 2 of e1, e2, e3, e4"),
        (["e1", "e1"], "why", "at most once"),
        (["e1", "e9"], "why", "chooses among"),
        (["e1", "e2"], "", "needs --reason"),
    ):
        with pytest.raises(errors.UsageError, match=match):
            decisions.decide(season.state, "league:place-1", choose, "ann", reason)
    with pytest.raises(errors.RefusedError, match="awaited: league:place-1"):
        decisions.decide(season.state, "league:place-3", ["e1"], "ann", "why")


def test_the_graph_shows_what_waits(tmp_path: Path) -> None:
    """A question is a waiting node after its ranking, an answer a done one."""
    season = launched(tmp_path, text(CHAIN), driver.drawn).play()
    node = next(n for n in graph.build(season.state).nodes if n.kind is graph.Kind.DECISION)
    assert node.state is graph.NodeState.WAITING
    season.append(decisions.decide(season.state, node.id, ["e1", "e2"], "ann", "lots"))
    drawing = graph.build(season.state)
    assert next(n for n in drawing.nodes if n.id == node.id).state is graph.NodeState.DONE
    assert "Decided: e1, e2" in graph.mermaid(drawing)
    assert "diamond" in graph.dot(drawing)


def test_chains_end_with_seed_or_organizers(tmp_path: Path) -> None:
    """Organizers in the middle of a chain are refused."""
    bad = text('tiebreaks = ["organizers", "seed"]\n')
    with pytest.raises(errors.SeasonFileError, match="organizers"):
        driver.load(tmp_path, bad)


# -- exclusion -----------------------------------------------------------------------


def test_three_crashes_disqualify(tmp_path: Path) -> None:
    """S16-15c: all results are annulled for everybody, the rest is cancelled, it ranks last."""
    whole = text(CHAIN + "disqualify_after = 3\n", rounds=2)
    season = Organized.launched(driver.load(tmp_path, whole), crashing("e1")).play()
    (fact,) = [entry.data for entry in kinds(season, entries.ENGINE_EXCLUDED)]
    league = season.state.events["league"]
    assert (fact["engine"], fact["crashes"], fact["cause"]) == ("e1", 3, "crashes")
    own = [g.id for g in season.state.games.values() if g.event == "league" and _plays(g, "e1")]
    assert sorted([*fact["annulled"], *fact["cancelled"]]) == sorted(own)
    last = league.rows[-1]
    assert (last.engine, last.decided_by, last.half_points, last.games) == ("e1", "excluded", 0, 0)
    assert last.tiebreaks[model.Criterion.CRASHES] == 3
    assert all(row.half_points == row.games == 8 for row in league.rows[:3])
    assert season.state.finished
    told = shown_standings(views.standings(season.state, "league"))
    assert "excluded: its games (in brackets) are annulled" in told
    ranked = [[cell.strip() for cell in line.split("│")[-6:-2]] for line in told.splitlines()]
    crosses = [cells for cells in ranked if "·" in cells]
    assert all(cells[-1].startswith("(") for cells in crosses[:3])
    assert all(cell.startswith("(") for cell in crosses[3][:3])
    assert not any(cell.startswith("(") for cells in crosses[:3] for cell in cells[:3])
    shown = {row["game"]: row for row in views.schedule(season.state, "league", 0)}
    assert all(shown[game]["annulled"] and shown[game]["result"] for game in fact["annulled"])
    assert all(shown[game]["cancelled"] and not shown[game]["result"] for game in fact["cancelled"])
    progress = views.event(season.state, "league")["games"]
    assert progress["played"] == progress["total"] == 24 - len(fact["cancelled"])


def _plays(game: events.Game, engine: str) -> bool:
    return engine in (game.white, game.black)


def test_crashes_stay_counted_after_an_exclusion(tmp_path: Path) -> None:
    """15d: crashes in annulled games count on, so a second engine follows the first."""
    whole = text(CHAIN + "disqualify_after = 2\n", rounds=2)
    season = Organized.launched(driver.load(tmp_path, whole), crashing("e1", "e2")).play()
    out = [entry.data["engine"] for entry in kinds(season, entries.ENGINE_EXCLUDED)]
    assert sorted(out) == ["e1", "e2"]
    league = season.state.events["league"]
    assert [row.engine for row in league.rows[-2:]] == ["e1", "e2"]
    assert {row.half_points for row in league.rows[:2]} == {4}


def test_without_a_limit_a_crash_is_a_loss(tmp_path: Path) -> None:
    """15f, CUP-7a, FRC-7a: ``disqualify_after = 0`` never disqualifies."""
    season = Organized.launched(driver.load(tmp_path, text(CHAIN)), crashing("e1")).play()
    assert not kinds(season, entries.ENGINE_EXCLUDED)
    assert len(season.state.events["league"].order) == 12


def test_withdrawal_does_the_same(tmp_path: Path) -> None:
    """The organizers take an engine out: only in a pause, with a reason, of a running event."""
    season = Organized.launched(driver.load(tmp_path, text(CHAIN)), driver.drawn).play(5)
    with pytest.raises(errors.RefusedError, match="farm season pause"):
        disqualification.withdraw(season.state, "league", "e2", "ann", "author asked")
    season.append(operations.pause(season.state, "ann", "withdrawal"))
    for event, engine, reason, kind, match in (
        ("final", "e2", "why", errors.RefusedError, "not being played yet"),
        ("nowhere", "e2", "why", errors.RefusedError, "there are league, final"),
        ("league", "e9", "why", errors.RefusedError, "does not play league"),
        ("league", "e2", "", errors.UsageError, "--reason"),
    ):
        with pytest.raises(kind, match=match):
            disqualification.withdraw(season.state, event, engine, "ann", reason)
    season.append(disqualification.withdraw(season.state, "league", "e2", "ann", "author asked"))
    with pytest.raises(errors.RefusedError, match="has left league already"):
        disqualification.withdraw(season.state, "league", "e2", "ann", "again")
    season.append(operations.resume(season.state, "ann", ""))
    season.play()
    assert season.state.finished
    rows = season.state.events["league"].rows
    assert (rows[-1].engine, [row.games for row in rows]) == ("e2", [4, 4, 4, 0])
    with pytest.raises(errors.RefusedError, match="season is over"):
        disqualification.withdraw(season.state, "final", "e1", "ann", "late")


# -- corrections ---------------------------------------------------------------------


@pytest.fixture(name="loaded", scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> load.Loaded:
    """A league of four whose top two play a match of four."""
    return driver.load(tmp_path_factory.mktemp("season"), text())


def paused(loaded: load.Loaded, games: int) -> driver.Driver:
    """Play so many games and pause."""
    season = driver.Driver.launched(loaded, ordered()).play(games)
    season.append(operations.pause(season.state, "ann", "a question"))
    return season


def resumed(season: driver.Driver) -> driver.Driver:
    """Go on to the end."""
    season.append(operations.resume(season.state, "ann", ""))
    return season.play()


def test_a_result_is_set_by_the_organizers(loaded: load.Loaded) -> None:
    """A played and an unplayed game take the result; who, why and what it was are journaled."""
    season = paused(loaded, 3)
    first, coming = season.state.game("league.1"), season.state.game("league.7")
    assert first.finished is not None
    other: contract.Result = "0-1" if first.finished.result == "1-0" else "1-0"
    season.append(corrections.adjudicate(season.state, "league.1", other, "ann", "S16-15b ii"))
    season.append(corrections.adjudicate(season.state, "league.7", "1/2-1/2", "ann", "power cut"))
    facts = [entry.data for entry in kinds(season, entries.GAME_ADJUDICATED)]
    assert [fact["before"] for fact in facts] == [first.finished.result, None]
    tallied = season.state.events["league"].tally
    assert tallied.games == 4
    assert tallied.scores[coming.white].draws == 1
    assert resumed(season).state.finished
    begun = [entry.data["game"] for entry in kinds(season, "attempt_started")]
    assert "league.7" not in begun
    assert season.state.game("league.1").finished.result == other  # type: ignore[union-attr]


def test_a_late_result_does_not_undo_the_organizers_word(loaded: load.Loaded) -> None:
    """A host that was away tells its result after the adjudication: the word stands."""
    season = paused(loaded, 3)
    season.append(corrections.adjudicate(season.state, "league.4", "1/2-1/2", "ann", "host lost"))
    season.finish("league.4", "old-attempt", ("1-0", Ending.CHECKMATE))
    assert season.state.game("league.4").finished.result == "1/2-1/2"  # type: ignore[union-attr]
    assert season.state.events["league"].tally.games == 4


def test_corrections_need_a_pause_a_reason_and_a_standing_game(loaded: load.Loaded) -> None:
    """Everything else is refused in words that say what to do."""
    season = driver.Driver.launched(loaded, ordered()).play(3)
    with pytest.raises(errors.RefusedError, match="farm season pause"):
        corrections.void(season.state, "league.1", "ann", "why")
    attempt = season.start("league.4")
    season.append(operations.pause(season.state, "ann", "a question"))
    with pytest.raises(errors.RefusedError, match=r"league\.4 is in flight"):
        corrections.void(season.state, "league.1", "ann", "why")
    season.interrupt("league.4", attempt, 3)
    with pytest.raises(errors.UsageError, match="--reason"):
        corrections.void(season.state, "league.1", "ann", "")
    with pytest.raises(errors.RefusedError, match="no game"):
        corrections.void(season.state, "league.99", "ann", "why")
    with pytest.raises(errors.RefusedError, match="not been played yet"):
        corrections.replay(season.state, "league.4", "ann", "why")
    with pytest.raises(errors.RefusedError, match="leave --cascade out"):
        corrections.void(season.state, "league.1", "ann", "why", ["final"])
    season.append(corrections.void(season.state, "league.1", "ann", "why"))
    with pytest.raises(errors.RefusedError, match="does not count already"):
        corrections.void(season.state, "league.1", "ann", "why")


def test_a_replayed_game_gets_an_id_of_its_own(loaded: load.Loaded) -> None:
    """It is played next, in its place, with the same colours and opening; twice if need be."""
    season = paused(loaded, 3)
    before = season.state.game("league.2")
    season.append(corrections.replay(season.state, "league.2", "ann", "wrong network"))
    season.append(operations.resume(season.state, "ann", ""))
    assert season.state.ready_game() == "league.2.replay1"
    season.play(1)
    season.append(operations.pause(season.state, "ann", "again"))
    season.append(corrections.replay(season.state, "league.2.replay1", "ann", "again wrong"))
    resumed(season)
    again = season.state.game("league.2.replay2")
    assert (again.white, again.black, again.opening) == (before.white, before.black, before.opening)
    league = season.state.events["league"]
    assert (league.order[1], len(league.order), league.tally.games) == ("league.2.replay2", 12, 12)
    assert season.state.game("league.2").cancelled
    with pytest.raises(errors.RefusedError, match="season is over"):
        corrections.replay(season.state, "league.2", "ann", "why")


def test_a_void_game_counts_for_nobody(loaded: load.Loaded) -> None:
    """Neither points nor games of a void game stay in the table."""
    season = resumed(_voided(paused(loaded, 3), "league.1", "league.9"))
    rows = season.state.events["league"].rows
    assert sum(row.games for row in rows) == 2 * 10
    assert season.state.finished


def _voided(season: driver.Driver, *games: str) -> driver.Driver:
    for game in games:
        season.append(corrections.void(season.state, game, "ann", "why"))
    return season


def test_what_hangs_on_a_result_is_named_or_taken_back_whole(loaded: load.Loaded) -> None:
    """The refusal lists all that was built; the cascade by exactly these names undoes it."""
    season = paused(loaded, 14)  # the final has begun
    with pytest.raises(errors.RefusedError, match=r"(?s)final \(running, 2 games.*league,final"):
        corrections.adjudicate(season.state, "league.1", "0-1", "ann", "proof of a book")
    with pytest.raises(errors.RefusedError, match="--cascade league,final"):
        corrections.void(season.state, "league.1", "ann", "why", ["league"])
    both = ["final", "league"]
    season.append(corrections.adjudicate(season.state, "league.1", "0-1", "ann", "a book", both))
    assert season.state.events["final"].status is events.Status.WAITING
    assert season.state.events["league"].status is events.Status.RUNNING
    assert season.state.game("final.1").cancelled
    resumed(season)
    final = season.state.events["final"]
    assert final.order == [f"final.again1.{number}" for number in range(1, 5)]
    assert season.state.finished
    assert len(kinds(season, entries.EVENT_RANKED)) == 3
    assert season.state.games.keys() > {"final.1", "final.again1.1"}


# -- any prefix ----------------------------------------------------------------------


@pytest.fixture(name="eventful", scope="module")
def _eventful(tmp_path_factory: pytest.TempPathFactory) -> driver.Driver:
    """A season with a disqualification and the organizers' decisions, played to its end."""
    whole = text(CHAIN + "disqualify_after = 3\nrelegate = 1\n", CHAIN, engines=5, rounds=2)
    loaded = driver.load(tmp_path_factory.mktemp("eventful"), whole)
    return Organized.launched(loaded, crashing("e5")).play()


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_cut_journal_asks_and_excludes_alike(
    eventful: driver.Driver, data: st.DataObject
) -> None:
    """Whatever prefix survives, questions, exclusions and games come as they came."""
    cut = data.draw(st.integers(1, len(eventful.journal)))
    again = Organized.replayed(eventful.journal[:cut], crashing("e5")).play()
    assert [(e.kind, e.data) for e in again.journal] == [(e.kind, e.data) for e in eventful.journal]
    assert {"engine_excluded", "decision_needed", "decided"} <= {e.kind for e in again.journal}


verbs: list[Callable[[state.SeasonState, str], list[contract.Draft]]] = [
    lambda now, game: corrections.adjudicate(now, game, "1/2-1/2", "ann", "why", _all(now, game)),
    lambda now, game: corrections.replay(now, game, "ann", "why", _all(now, game)),
    lambda now, game: corrections.void(now, game, "ann", "why", _all(now, game)),
]


def _all(now: state.SeasonState, game: str) -> list[str]:
    return corrections.hanging(now, now.game(game).event)


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_corrections_leave_a_season_that_ends(loaded: load.Loaded, data: st.DataObject) -> None:
    """After corrections at any moments the tables count what stands, and a champion is found."""
    season = driver.Driver.launched(loaded)
    for _ in range(data.draw(st.integers(1, 3))):
        season.play(data.draw(st.integers(1, 8)))
        if season.state.finished:
            break
        season.append(operations.pause(season.state, "ann", "why"))
        game = data.draw(st.sampled_from(sorted(season.state.games)))
        with contextlib.suppress(errors.RefusedError):
            season.append(data.draw(st.sampled_from(verbs))(season.state, game))
        season.append(operations.resume(season.state, "ann", ""))
    season.play()
    assert season.state.finished
    for event in season.state.events.values():
        standing = [game for game in event.order if season.state.game(game).counts]
        assert sum(row.games for row in event.rows) == 2 * len(standing)
        assert sum(row.half_points for row in event.rows) == 2 * len(standing)
    assert state.fold(season.journal).games == season.state.games


def test_r_mobility_decides_where_a_chain_names_it(tmp_path: Path) -> None:
    """FRC-3: the sum of the games' r-mobility points, more is better; older results count ½."""
    chain = 'tiebreaks = ["direct-encounter", "r-mobility", "seed"]\n'
    season = launched(tmp_path, text(chain), driver.drawn)
    season.settle()
    while season.state.current is not None and season.state.current.id == "league":
        game = season.state.ready_game() or ""
        fact = driver.finished(game, season.start(game), driver.drawn(season.state.game(game)))
        white = season.state.game(game).white == "e4"
        told = fact.model_copy(update={"r_mobility": 0.625 if white else 0.5})
        season.append([contract.Draft("game_finished", told.model_dump(mode="json"))])
        season.settle()
    rows = season.state.events["league"].rows
    assert (rows[0].engine, rows[0].decided_by) == ("e4", "r-mobility")
    shown = views.standings(season.state, "league")["rows"]
    assert [row["tiebreaks"]["r-mobility"] for row in shown] == [3.375, 2.875, 2.875, 2.875]
