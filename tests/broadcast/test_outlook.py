"""Rating list and forecast: what they say, from which journals, and who reckons them."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import threading
from collections.abc import Iterator

import harness
import pytest
import theatre

from orchestrator import contract
from orchestrator.broadcast.content import messages, season_view
from orchestrator.broadcast.forecast import documents, settings, worker
from orchestrator.forecast import forecast, game_model, rating_list
from orchestrator.rating import lists, ordo
from orchestrator.season import views
from orchestrator.season.fold import events
from orchestrator.season.fold import state as season_state

RUNS = 8
GAMES = 12  # after which most of these tests look
NOW_MS = 1_700_000_000_000
EAGER = settings.Settings(runs=RUNS, humble=False)


@pytest.fixture(scope="module")
def whole() -> theatre.Tape:
    """Play a season of rated engines, in which some crash."""
    return theatre.simulated("frc", luck=game_model.Chances(crash=0.02))


@pytest.fixture
def tape(whole: theatre.Tape) -> theatre.Tape:
    """Return that season's journal up to the end of a game of its first league."""
    played = theatre.Tape(whole.journal)
    played.shown = ends(whole)[GAMES]
    return played


def ends(tape: theatre.Tape) -> list[int]:
    """Return the numbers of the entries that end a game."""
    return [entry.seq for entry in tape.journal if entry.kind == "game_finished"]


def outlook_documents(tape: theatre.Tape) -> dict[str, object]:
    """Return what an outlook tells that reads the journal at once."""
    outlook = documents.Outlook(RUNS, {})
    outlook.take(tape.season, tape.journal[: tape.shown])
    return outlook.documents(NOW_MS)


# -- the documents ---------------------------------------------------------------------


def test_the_list_is_that_of_the_commands_code(tape: theatre.Tape) -> None:
    """Rank, rating, error, points, games: the farm's own list, on the scale of the rosters."""
    state = tape.folded()
    games = rating_list.results([state])
    made = documents.ratings([state], games, {}, NOW_MS)
    rosters = [one.rating for one in state.engines.values() if _played(state, one.name)]
    assert made["average"] == round(sum(filter(None, rosters)) / len(rosters))
    wanted = ordo.Settings(white=None, draws=None, average=made["average"])
    known, rows = rating_list.RatingList(wanted).listed(
        collections.Counter(games), [state], documents.ERROR_RUNS
    )
    kept = ("ratings", "white_advantage", "draw_rate")
    plain = [
        {name: value for name, value in row.items() if name != "percent"} for row in made["ratings"]
    ]
    assert {name: made[name] for name in kept} | {"ratings": plain} == lists.as_json(known, rows)
    assert sum(row["played"] for row in made["ratings"]) == 2 * made["games"] == 2 * len(games)


@pytest.mark.parametrize("games", [3, 5, 8, GAMES, 40])
def test_the_scale_is_the_rosters_however_few_are_rated(tape: theatre.Tape, games: int) -> None:
    """Who is rated, and rated by the roster, has the same mean in both; nobody else moves it."""
    tape.shown = ends(tape)[games]
    state = tape.folded()
    listed = state.launched.engines
    odd = [one.model_copy(update={"rating": None}) for one in listed[::3]]
    kept = {one.id: one for one in (*listed, *odd)}
    launched = state.launched.model_copy(update={"engines": tuple(kept.values())})
    assert state.launch is not None
    state.launch = launched
    for one in odd:
        state.engines[one.id] = one
    made = documents.ratings([state], rating_list.results([state]), {}, NOW_MS)
    given = {one.name: one.rating for one in kept.values()}
    rated = [row for row in made["ratings"] if row["rating"] is not None]
    both = [row for row in rated if given[row["engine"]] is not None]
    both = [row for row in both if not row["bound"]] or both
    assert made["rosters"] == len(both)
    off = sum(row["rating"] - given[row["engine"]] for row in both)
    assert abs(off) <= 0.51 * len(both)
    if not both:
        assert made["average"] == ordo.AVERAGE


def test_a_familys_first_version_gives_its_rating(tape: theatre.Tape) -> None:
    """Games under a family's name are on the scale of the roster, too."""
    state = tape.folded()
    games = collections.Counter(rating_list.results([state]))
    plain = rating_list.scale([state], games, {})
    families = {one.name: f"Family {one.name}" for one in state.launched.engines}
    assert rating_list.scale([state], games, families) == plain
    assert plain.rosters > 0


def _played(state: season_state.SeasonState, name: str) -> bool:
    games = [game for game in state.games.values() if game.finished is not None]
    return any(name in {views.name(state, g.white), views.name(state, g.black)} for g in games)


def test_who_has_not_finished_an_event_is_provisional(tape: theatre.Tape) -> None:
    """Who is rated and has finished an event is established, all others are marked (S16-14e)."""
    early = rows_at(tape, 12)
    assert all(row["provisional"] for row in early)
    assert any(row["rating"] for row in early)
    late = rows_at(tape, 70)
    ranked = {
        views.name(tape.folded(), engine)
        for event in tape.folded().events.values()
        if event.status is events.Status.RANKED
        for engine in event.entrants
    }
    rated = {row["engine"] for row in late if row["rating"] is not None}
    assert {row["engine"] for row in late if not row["provisional"]} == ranked & rated
    assert ranked & rated < {row["engine"] for row in late}


def rows_at(tape: theatre.Tape, games: int) -> list[dict[str, object]]:
    """Return the list after so many games."""
    tape.shown = ends(tape)[games]
    state = tape.folded()
    made = documents.ratings([state], rating_list.results([state]), {}, NOW_MS)
    return list(made["ratings"])


def test_the_forecast_is_that_of_the_command(tape: theatre.Tape) -> None:
    """Every chance is the command's for as many runs, and every engine has its name."""
    state = tape.folded()
    made = documents.forecast(state, RUNS, NOW_MS)
    asked = forecast.Forecast(state, documents.SEED)
    facts = forecast.as_json(asked, forecast.forecast(asked, RUNS, 1), state.at_ms)
    assert (made["runs"], made["made_ms"], made["absent"]) == (RUNS, NOW_MS, None)
    assert made["end_ms"] == facts["end_ms"]
    assert [_bare(line) for line in made["champion"]] == facts["champion"]
    for event, wanted in zip(made["events"], facts["events"], strict=True):
        assert [_bare(line) for line in event["engines"]] == wanted["engines"]
        assert event["event"] == wanted["id"]
    for line in (*made["champion"], *(one for e in made["events"] for one in e["engines"])):
        assert line["name"] == views.name(state, line["engine"])


def _bare(line: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in line.items() if name != "name"}


def test_a_grown_outlook_tells_what_a_fresh_one_tells(tape: theatre.Tape) -> None:
    """Asked after every few entries or once at the end: the last documents are the same."""
    growing, kept, at = documents.Outlook(RUNS, {}), {}, 0
    for end in (3, 20, 21, tape.shown - 1, tape.shown):
        growing.take(tape.season, tape.journal[at:end])
        kept |= growing.documents(NOW_MS)
        at = end
    assert kept == outlook_documents(tape)


def test_nothing_is_reckoned_twice(tape: theatre.Tape) -> None:
    """Without a fact that changes something there are no new documents."""
    outlook = documents.Outlook(RUNS, {})
    outlook.take(tape.season, tape.journal[: tape.shown])
    assert set(outlook.documents(NOW_MS)) == {"ratings", "seasons/frc/forecast"}
    assert outlook.documents(NOW_MS) == {}
    begun = tape.journal[tape.shown]
    assert begun.kind == "attempt_started"
    outlook.take(tape.season, [begun])
    assert outlook.documents(NOW_MS) == {}


def test_what_cannot_be_told_is_a_sentence(whole: theatre.Tape) -> None:
    """Before the first game, after the end, without ratings or runs: why, and no figures."""
    fresh = season_state.fold(whole.journal[:3])
    assert documents.ratings([fresh], [], {}, NOW_MS)["absent"] == "No game has been finished yet."
    over = documents.forecast(season_state.fold(whole.journal), RUNS, NOW_MS)
    assert (over["absent"], over["runs"]) == ("The season is over.", 0)
    assert documents.forecast(fresh, 0, NOW_MS)["absent"] == "This farm shows no forecast."
    for name, engine in fresh.engines.items():
        fresh.engines[name] = engine.model_copy(update={"rating": None})
    unrated = documents.forecast(fresh, RUNS, NOW_MS)
    assert unrated["absent"] == "No engine of this season has a rating to forecast by."
    assert len(unrated["unrated"]) == len(fresh.engines)


# -- the process -----------------------------------------------------------------------


class Beside:
    """A keeper beside a projector of a tape."""

    def __init__(self, tape: theatre.Tape, root: pathlib.Path) -> None:
        made = theatre.projected(tape, root)
        self.tape, self.root, self.shelf, self.projector = tape, root, made.shelf, made.projector
        self.told: list[messages.Message] = []
        self.keeper = worker.Keeper(tape, made.projector, made.shelf, self.told.extend, EAGER)

    def look(self) -> None:
        """Let the projector look, then the keeper."""
        self.projector.look()
        self.keeper.look()

    def document(self, place: str) -> dict[str, object]:
        """Return a document, but for the moment when it was made."""
        found = self.shelf.get(place)
        assert found is not None, place
        return dict(json.loads(found.body)) | {"made_ms": NOW_MS}

    def holds(self, wanted: dict[str, object]) -> bool:
        """Say whether the library holds exactly these documents."""
        return all(
            self.shelf.get(place) and self.document(place) == json.loads(contract.dumps(document))
            for place, document in wanted.items()
        )


@pytest.fixture
def beside(tape: theatre.Tape, tmp_path: pathlib.Path) -> Iterator[Beside]:
    """Keep rating list and forecast of a season."""
    made = Beside(tape, tmp_path)
    yield made
    made.keeper.close()
    made.keeper.run(_set())


def _set() -> threading.Event:
    stop = threading.Event()
    stop.set()
    return stop


def test_another_process_reckons_what_the_journals_say(beside: Beside) -> None:
    """Documents are those of the fold, told once; another journal of that name starts anew."""
    beside.look()
    assert beside.holds(outlook_documents(beside.tape))
    (message,) = beside.told
    assert isinstance(message, messages.Delta)
    assert message.kind == "outlook"
    assert set(message.data["places"]) == {"seasons/frc/forecast", "ratings"}
    beside.keeper.look()
    assert len(beside.told) == 1  # nothing has changed: nobody was asked
    cut = theatre.Tape(beside.tape.journal)
    beside.tape.shown = cut.shown = ends(cut)[GAMES // 2]
    beside.projector.seasons["frc"] = season_view.Season("frc", beside.projector.album)
    beside.look()
    assert beside.holds(outlook_documents(cut))


def test_a_process_that_was_killed_is_started_again(
    beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9 a new process reads the journals again, and the list goes on."""
    monkeypatch.setattr(worker, "BACKOFF_SECONDS", 0.01)
    beside.look()
    assert beside.keeper.reckoner is not None
    killed = beside.keeper.reckoner.pid
    os.kill(killed, 9)
    beside.tape.shown = ends(beside.tape)[GAMES + 1]
    beside.projector.look()
    stop = threading.Event()
    thread = threading.Thread(target=beside.keeper.run, args=(stop,))
    thread.start()
    wanted = outlook_documents(beside.tape)
    harness.wait(lambda: beside.holds(wanted), "the list after one more game")
    assert beside.keeper.reckoner.pid != killed
    stop.set()
    beside.keeper.close()
    thread.join(240)
    assert beside.keeper.reckoner is None


def test_it_is_humble_and_ends_with_who_asked(tape: theatre.Tape) -> None:
    """It yields to everybody, and a reckoning that nobody waits for any more is given up."""
    reckoner = worker.Reckoner(settings.Settings(runs=1_000_000))
    try:
        # Where the tests are nice themselves it is nice before it has asked for its scheduler.
        harness.wait(lambda: os.sched_getscheduler(reckoner.pid) == os.SCHED_IDLE, "to be idle")
        harness.wait(lambda: os.getpriority(os.PRIO_PROCESS, reckoner.pid) == 19, "a low priority")
        reckoner.tell(tape.season, tape.journal[: tape.shown])
        reckoner._write({"now_ms": NOW_MS})  # a question whose answer takes hours
        assert reckoner._process.stdin is not None
        reckoner._process.stdin.close()
        assert reckoner._process.wait(240) == 0
    finally:
        reckoner.bury()
