"""A season that is ended before its end: nothing more comes of it, nothing of it is lost."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import driver
import pytest

from orchestrator.common import errors
from orchestrator.forecast import forecast, rating_list
from orchestrator.season import (
    current,
    decide,
    decisions,
    final_standings,
    graph,
    interruption,
    verify_seed,
    views,
)
from orchestrator.season.amend import amending, engine_update, operations
from orchestrator.season.file import load
from orchestrator.season.fold import abandoning, corrections, entries, events, state
from orchestrator.season.spec import seeded_random

CHAIN = 'tiebreaks = ["direct-encounter", "wins", "organizers"]\npromote ='
WHY = "launched with last year's roster"


@pytest.fixture(name="loaded", scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> load.Loaded:
    """A small season's file: a league of four, then a final."""
    return driver.load(tmp_path_factory.mktemp("season"), driver.season_text())


def played(loaded: load.Loaded, games: int) -> driver.Driver:
    """Return a season after so many games."""
    return driver.Driver.launched(loaded).play(games)


def abandoned(season: driver.Driver) -> driver.Driver:
    """Abandon a season."""
    season.append(abandoning.abandon(season.state, "ann", WHY), by="ann@anna")
    return season


def all_views(now: state.SeasonState) -> list[object]:
    """Return everything that is told of a season."""
    schedules = [views.schedule(now, event, 0) for event in now.events]
    tables = [views.standings(now, event) for event in now.events]
    return [views.season(now), schedules, tables, graph.build(now).data()]


@pytest.mark.parametrize("games", [0, 1, 7, 12, 14])
def test_nothing_comes_of_an_abandoned_season(loaded: load.Loaded, games: int) -> None:
    """At any stage: no game is ready, nothing is decided, ever; all that is told says so."""
    season = abandoned(played(loaded, games))
    assert season.state.over
    assert not season.state.finished
    assert season.state.ready_game() is None
    assert season.state.next_deadline_ms() is None
    assert decide.decide(season.state, season.now_ms + 10**9) == []
    seen = views.season(season.state)
    assert (seen["status"], seen["reason"], seen["champion"]) == ("abandoned", WHY, None)
    assert (seen["remaining_seconds"], seen["waits"], seen["next"]) == (0, [], None)
    assert seen["games"]["played"] == games
    assert seeded_random.commitment(seen["seed"]) == seen["seed_sha256"]
    statuses = {event["status"] for event in seen["events"]}
    assert statuses <= {"ranked", "abandoned"}
    rows = [row for event in season.state.events for row in views.schedule(season.state, event, 0)]
    assert [row["cancelled"] for row in rows] == [row["result"] is None for row in rows]
    assert not any(row.get("estimated_start_ms") for row in rows)
    end = graph.build(season.state).nodes[-1]
    assert (end.label, end.state) == ("Season abandoned", graph.NodeState.DONE)


@pytest.mark.parametrize("games", [0, 5, 14])
def test_its_journal_folds_to_the_same(loaded: load.Loaded, games: int) -> None:
    """Replayed from zero it is told alike, and its draws follow from the published seed."""
    season = abandoned(played(loaded, games))
    assert all_views(state.fold(season.journal)) == all_views(season.state)
    assert verify_seed.verify(season.journal, loaded).mismatches == ()


def test_what_was_played_stays(loaded: load.Loaded) -> None:
    """Results and tables are those of before; the games are rated, nobody is established."""
    season = played(loaded, 7)
    before = views.standings(season.state, "league")["rows"]
    games = rating_list.results([season.state])
    abandoned(season)
    assert views.standings(season.state, "league")["rows"] == before
    assert rating_list.results([season.state]) == games
    assert len(games) == 7
    assert rating_list.established([season.state]) == set()


def test_a_game_in_flight_is_given_up_without_a_verdict(loaded: load.Loaded) -> None:
    """Its end is recorded and nothing waits for rule 15b; until then it is in flight."""
    season = played(loaded, 3)
    game = str(season.state.ready_game())
    attempt = season.start(game)
    abandoned(season)
    assert views.season(season.state)["running"]["game"] == game
    season.interrupt(game, attempt, ply=4, cause="operator")
    assert (season.state.running, season.state.lost) == (None, None)
    assert interruption.judge(season.state, ()) == []
    assert season.state.game(game).finished is None
    assert views.game(season.state, game)["cancelled"]


def test_a_game_that_was_over_before_its_hall_heard_keeps_its_result(loaded: load.Loaded) -> None:
    """A finished game is a fact, also when its spool comes after the attempt was given up."""
    season = played(loaded, 3)
    game = str(season.state.ready_game())
    attempt = season.start(game)
    abandoned(season)
    season.interrupt(game, attempt)
    season.finish(game, attempt, ("1-0", driver.Ending.CHECKMATE))
    assert views.game(season.state, game)["result"] == "1-0"
    assert season.state.events["league"].tally.games == 4
    assert len(rating_list.results([season.state])) == 4


def test_nothing_else_can_follow(loaded: load.Loaded) -> None:
    """Whatever entry a whole season has but those of halls: it contradicts the journal."""
    whole = played(loaded, 1_000)
    season = abandoned(played(loaded, 3))
    kinds = {entry.kind: entry for entry in whole.journal[1:]}
    assert len(kinds) > 7
    for kind, entry in kinds.items():
        late = dataclasses.replace(entry, seq=season.state.seq + 1)
        if kind not in abandoning.FOLLOWING:
            with pytest.raises(errors.LedgerDamagedError, match="was abandoned before"):
                state.fold([*season.journal, late])


def test_it_is_abandoned_once_and_before_its_end(loaded: load.Loaded) -> None:
    """A reason is needed; a season that is over, either way, is refused."""
    with pytest.raises(errors.UsageError, match="--reason"):
        abandoning.abandon(played(loaded, 0).state, "ann", "")
    with pytest.raises(errors.RefusedError, match="its champion is"):
        abandoning.abandon(played(loaded, 1_000).state, "ann", WHY)
    season = abandoned(played(loaded, 2))
    with pytest.raises(errors.RefusedError, match=f"abandoned \\({WHY}\\)"):
        abandoning.abandon(season.state, "bob", "again")


def test_paused_and_held_seasons_are_abandoned_too(loaded: load.Loaded) -> None:
    """What kept it from playing is told no longer."""
    season = played(loaded, 2)
    season.append(operations.pause(season.state, "ann", "lunch"))
    season.state.held = "sick"
    abandoned(season)
    assert views.status(season.state) == "abandoned"
    assert views.season(season.state)["reason"] == WHY


def test_every_change_is_refused(loaded: load.Loaded) -> None:
    """Pauses, gates, corrections, amendments, updates: each says that the season is over."""
    now = abandoned(played(loaded, 3)).state
    changes = (
        lambda: operations.pause(now, "a", "r"),
        lambda: operations.resume(now, "a", "r"),
        lambda: operations.open_gate(now, "final", "a", "r"),
        lambda: operations.abort(now, "a", "r"),
        lambda: corrections.void(now, "league.1", "a", "r"),
        lambda: amending.move_gate(now, "final", 2**50, 0, "a", "r"),
        lambda: amending.plan_pause(now, 2**50, 0, "a", "r"),
        lambda: decisions.decide(now, "league:place-1", ["e1"], "a", "r"),
        lambda: interruption.answer(now, "league.1:interruption", "1-0", "a", "r"),
        lambda: engine_update._require_reason(now, "r"),
        lambda: final_standings.outcome(now),
        lambda: forecast.Forecast(now, 1),
    )
    for change in changes:
        with pytest.raises(errors.RefusedError, match="abandoned"):
            change()


def test_nobody_is_asked_any_more(tmp_path: Path) -> None:
    """Open questions and a pending verdict are over with the season."""
    text = driver.season_text().replace("promote =", CHAIN)
    drawn: driver.Results = lambda _: ("1/2-1/2", driver.Ending.THREEFOLD)  # noqa: E731
    season = driver.Driver.launched(driver.load(tmp_path, text), drawn).play()
    assert decisions.outstanding(season.state)
    abandoned(season)
    assert decisions.outstanding(season.state) == []
    assert decide.decide(season.state, season.now_ms) == []  # nor is it asked again
    assert season.state.events["league"].status is events.Status.RANKED
    lost = played(driver.load(tmp_path, driver.season_text()), 2)
    game = str(lost.state.ready_game())
    lost.interrupt(game, lost.start(game))
    assert lost.state.lost is not None
    assert abandoned(lost).state.lost is None


def test_commands_no_longer_ask_which_season(loaded: load.Loaded) -> None:
    """Beside an abandoned season the other one is meant, to be changed and to be looked at."""
    mistake, right = driver.Driver(), driver.Driver()
    for season, name in ((mistake, "mistake"), (right, "right")):
        season.append(operations.launch(loaded, name, driver.SEED, driver.HALL, "0.1.0"))
        season.settle()
    mistake.start(str(mistake.state.ready_game()))
    states = [mistake.state, right.state]
    with pytest.raises(errors.UsageError):
        current.only_open(states)
    abandoned(mistake)
    assert current.only_open(states) is right.state
    assert current.shown(states) is right.state
    assert current.only_open([mistake.state]) is mistake.state


def test_the_fact_tells_who_and_why(loaded: load.Loaded) -> None:
    """The entry carries name, reason and the seed, which is sealed no longer."""
    season = abandoned(played(loaded, 1))
    last = season.journal[-1]
    assert (last.kind, last.by) == (entries.SEASON_ABANDONED, "ann@anna")
    told_of_it = {key: last.data[key] for key in ("seed", "reason", "name")}
    assert told_of_it == {"seed": driver.SEED, "reason": WHY, "name": "ann"}
