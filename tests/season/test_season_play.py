"""Whole seasons, played by the driver: decisions, the fold, operators, cuts."""

from __future__ import annotations

import dataclasses
import pickle
import time
from pathlib import Path

import driver
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import orchestrator
from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season import blockers, decide, interruption, views
from orchestrator.season.amend import amending, operations
from orchestrator.season.file import load
from orchestrator.season.fold import corrections, entries, events, orders, state
from orchestrator.season.spec import seeded_random

DEMO = Path(orchestrator.__file__).parent / "seasons" / "demo.toml"


@pytest.fixture(name="loaded", scope="module")
def _loaded(tmp_path_factory: pytest.TempPathFactory) -> load.Loaded:
    """A league of four whose top two play a match of four."""
    return driver.load(tmp_path_factory.mktemp("season"), driver.season_text())


@pytest.fixture(name="played", scope="module")
def _played(loaded: load.Loaded) -> driver.Driver:
    """The same season, played to its end."""
    return driver.Driver.launched(loaded).play()


def kinds(played: driver.Driver) -> list[str]:
    """Return the kinds of the journal without those of single games."""
    single = {"attempt_started", "game_finished", "games_paired"}
    return [entry.kind for entry in played.journal if entry.kind not in single]


def test_demo_season_plays_to_its_end() -> None:
    """The demo's 12 + 4 games are played in order, and the final's winner is champion."""
    loaded = load.load(DEMO, find=lambda names: [])
    demo = driver.Driver.launched(loaded).play()
    assert demo.state.finished
    assert [entry.data["game"] for entry in demo.journal if entry.kind == "game_finished"] == [
        *(f"league.{number}" for number in range(1, 13)),
        *(f"final.{number}" for number in range(1, 5)),
    ]
    league, final = demo.state.events.values()
    assert final.entrants == tuple(row.engine for row in league.rows[:2])
    assert demo.state.champion == final.rows[0].engine


def test_facts_come_in_the_order_of_the_season(played: driver.Driver) -> None:
    """Each event is started, ranked, promoted; the gate opens between them."""
    assert kinds(played) == [
        "launched",
        "event_started",
        "event_ranked",
        "promoted",
        "gate_set",
        "gate_opened",
        "event_started",
        "event_ranked",
        "season_finished",
    ]


def test_the_gate_opens_a_break_after_the_promotion(played: driver.Driver) -> None:
    """The break counts from the journaled promotion, and nothing starts before its end."""
    at = {entry.kind: entry for entry in played.journal if entry.data.get("event") == "final"}
    promoted = next(entry for entry in played.journal if entry.kind == "promoted")
    assert at["gate_set"].data["opens_at_ms"] == promoted.at_ms + 600_000
    assert at["gate_opened"].at_ms >= at["gate_set"].data["opens_at_ms"]
    assert at["gate_opened"].data["cause"] == "deadline"


def test_pairs_share_their_opening_and_events_do_not(played: driver.Driver) -> None:
    """Both games of a pair start alike; the final goes on in the book after the league."""
    games = played.state.games.values()
    openings: dict[tuple[str, frozenset[str]], set[int | None]] = {}
    for game in games:
        openings.setdefault((game.event, frozenset({game.white, game.black})), set()).add(
            game.opening
        )
    league = [exits for (event, _), exits in openings.items() if event == "league"]
    assert sorted(exits.pop() or 0 for exits in league) == [0, 1, 2, 3, 4, 5]
    assert [game.opening for game in games if game.event == "final"] == [6, 6, 7, 7]
    assert len(played.state.launched.books["short"]) == 8


def test_every_game_has_a_whole_order(played: driver.Driver, loaded: load.Loaded) -> None:
    """An order carries engines, opening and limits; it reads back from its JSON."""
    order = orders.game_order(played.state, "final.2")
    assert contract.GameOrder.decode(order.encode()) == order
    game = played.state.game("final.2")
    assert (order.white.id, order.black.id) == (game.white, game.black)
    assert (order.round, order.number, order.season) == ("2.1", 2, "test")
    assert order.opening in loaded.books["short"]
    assert str(order.time_control) == "3600+5"
    with pytest.raises(errors.RefusedError, match="no game"):
        orders.game_order(played.state, "final.5")


def test_the_seed_is_sealed_until_the_end(loaded: load.Loaded, played: driver.Driver) -> None:
    """Its hash is journaled at launch, the seed opens it at the end, another draws apart."""
    launched, finished = played.journal[0], played.journal[-1]
    assert seeded_random.commitment(finished.data["seed"]) == launched.data["seed_sha256"]
    again = operations.launch(loaded, "test", driver.SEED, "hall", "0.1.0")
    assert again[0].data == launched.data
    other = operations.launch(loaded, "test", "another seed", "hall", "0.1.0")
    assert other[0].data["books"] != launched.data["books"]


def test_a_sequential_book_keeps_its_order(tmp_path: Path) -> None:
    """``order = "sequential"`` takes the lines as they stand in the file."""
    text = driver.season_text().replace('"short.epd"', '"short.epd"\norder = "sequential"')
    loaded = driver.load(tmp_path, text)
    launched = driver.Driver.launched(loaded).state.launched
    assert launched.books["short"] == loaded.books["short"][:8]


def test_the_fold_of_the_journal_is_the_state(played: driver.Driver) -> None:
    """Folding from zero gives what applying in place gave."""
    folded = state.fold(played.journal)
    assert folded.games == played.state.games
    assert {e.id: e.rows for e in folded.events.values()} == {
        e.id: e.rows for e in played.state.events.values()
    }
    assert (folded.seq, folded.champion) == (len(played.journal), played.state.champion)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_cut_journal_goes_on_alike(played: driver.Driver, data: st.DataObject) -> None:
    """Whatever prefix of the journal survives, the season continues entry by entry alike."""
    cut = data.draw(st.integers(1, len(played.journal)))
    again = driver.Driver.replayed(played.journal[:cut]).play()
    assert [(e.kind, e.data) for e in again.journal] == [(e.kind, e.data) for e in played.journal]


def test_decide_is_pure(played: driver.Driver) -> None:
    """It answers the same twice and leaves the state as it was, after every entry."""
    growing = state.SeasonState()
    for entry in played.journal:
        growing.apply(entry)
        before = pickle.dumps(growing)
        now_ms = entry.at_ms + 3_600_000
        assert decide.decide(growing, now_ms) == decide.decide(growing, now_ms)
        assert pickle.dumps(growing) == before


def test_another_season_file_does_not_touch_the_past(played: driver.Driver) -> None:
    """Rows that were ranked stay as journaled, even if today's code would rank otherwise."""
    journal = []
    for entry in played.journal:
        data = dict(entry.data)
        if entry.kind == "event_ranked" and data["event"] == "league":
            data["rows"] = data["rows"][::-1]
        journal.append(dataclasses.replace(entry, data=data))
    folded = state.fold(journal)
    assert [r.rank for r in folded.events["league"].rows] == [4, 3, 2, 1]


# -- operators -----------------------------------------------------------------------


def test_a_pause_starts_nothing_new(loaded: load.Loaded) -> None:
    """While paused there is no ready game and no event starts; a result still counts."""
    paused = driver.Driver.launched(loaded).play(11)
    assert paused.play_one()
    paused.append(operations.pause(paused.state, "ann", "storm"))
    assert paused.state.paused == "storm"
    paused.settle()
    assert paused.state.ready_game() is None
    assert paused.state.events["final"].status is events.Status.OPEN
    with pytest.raises(errors.RefusedError, match="paused already"):
        operations.pause(paused.state, "ann", "again")
    paused.append(operations.resume(paused.state, "ann", "sun"))
    assert paused.play().state.finished
    for refused in (operations.pause, operations.resume, operations.abort):
        with pytest.raises(errors.RefusedError, match="season is over"):
            refused(paused.state, "ann", "late")


@pytest.mark.parametrize("still", ["paused", "held"])
def test_a_season_does_not_end_while_it_stands_still(loaded: load.Loaded, still: str) -> None:
    """A protest about the last game is decided between its end and ``resume``: the season waits."""
    season = driver.Driver.launched(loaded, driver.drawn).play(15)
    game = season.state.ready_game() or ""
    attempt = season.start(game)
    if still == "paused":
        season.append(operations.pause(season.state, "ann", "a protest"))
    else:
        held = entries.Held(reason="a sick host")
        season.append([contract.Draft.of(entries.HELD, held)])
    season.finish(game, attempt, ("1/2-1/2", driver.Ending.THREEFOLD))
    season.settle()
    assert season.state.events["final"].status is events.Status.RANKED
    assert not season.state.over
    assert views.season(season.state)["waits"][0]["for"] in {"pause", "hold"}
    first, second = (row.engine for row in season.state.final.rows)
    won = "1-0" if season.state.game(game).white == second else "0-1"
    now = season.state
    season.append(corrections.adjudicate(now, game, won, "ann", "a protest", ("final",)))
    season.settle()
    assert (season.state.final.rows[0].engine, season.state.over) == (second, False)
    season.append(operations.resume(season.state, "ann", "decided"))
    season.settle()
    assert season.state.champion == second != first
    assert views.season(season.state)["reason"] == ""
    with pytest.raises(errors.RefusedError, match="season import"):
        operations.pause(season.state, "ann", "late")


def test_the_game_in_flight_ends_during_a_pause(loaded: load.Loaded) -> None:
    """A pause lets the running attempt finish and takes the offer back."""
    paused = driver.Driver.launched(loaded)
    paused.settle()
    attempt = paused.start("league.1")
    paused.append(operations.pause(paused.state, "ann", ""))
    assert paused.state.paused == "paused by ann"
    assert paused.state.running is not None
    paused.finish("league.1", attempt, ("1-0", contract.Ending.CHECKMATE))
    assert paused.state.running is None
    assert paused.state.events["league"].tally.games == 1


def test_resume_needs_a_pause(loaded: load.Loaded) -> None:
    """Resuming what runs is refused."""
    with pytest.raises(errors.RefusedError, match="nothing to resume"):
        operations.resume(driver.Driver.launched(loaded).state, "ann", "")


def test_an_operator_opens_the_gate_early(loaded: load.Loaded) -> None:
    """An open gate starts the event at once; who and why are journaled."""
    season = driver.Driver.launched(loaded)
    with pytest.raises(errors.RefusedError, match="waits for league"):
        operations.open_gate(season.state, "final", "ann", "")
    with pytest.raises(errors.RefusedError, match="no gate before it"):
        operations.open_gate(season.state, "league", "ann", "")
    with pytest.raises(errors.RefusedError, match="league, final"):
        operations.open_gate(season.state, "finale", "ann", "")
    season.settle()
    while season.state.current is not None:
        season.play_one()
        while drafts := season.undelayed():
            season.append(drafts)
    assert season.state.events["final"].status is events.Status.GATE
    assert season.state.next_deadline_ms() == season.state.events["final"].opens_at_ms
    assert season.state.ready_game() is None
    season.append(operations.open_gate(season.state, "final", "ann", "all are here"))
    assert season.journal[-1].data["reason"] == "all are here"
    with pytest.raises(errors.RefusedError, match="open already"):
        operations.open_gate(season.state, "final", "ann", "")
    assert season.state.next_deadline_ms() is None
    assert season.play().state.finished


def test_an_aborted_game_is_played_again(loaded: load.Loaded) -> None:
    """The wish is told once; the attempt ends as interruption; the game stays ready."""
    season = driver.Driver.launched(loaded)
    season.settle()
    with pytest.raises(errors.RefusedError, match="no game is in flight"):
        operations.abort(season.state, "ann", "fire")
    attempt = season.start("league.1")
    season.append(operations.abort(season.state, "ann", "fire"))
    assert season.state.running is not None
    assert season.state.running.abort == "fire"
    with pytest.raises(errors.RefusedError, match="on its way"):
        operations.abort(season.state, "ann", "fire")
    season.interrupt("league.1", attempt, cause="operator")
    assert season.state.ready_game() is None, "a verdict is awaited"
    season.settle()
    assert season.state.ready_game() == "league.1"
    assert season.state.fruitless == 0
    assert season.play().state.finished


def test_three_attempts_without_a_ply_hold_the_season(loaded: load.Loaded) -> None:
    """The third in a row holds; a ply in between starts the count anew; resume lifts it."""
    season = driver.Driver.launched(loaded)
    season.settle()
    for count in (0, 0, 5, 0, 0):
        told = driver.plies(season, "league.1", count)
        season.interrupt("league.1", season.start("league.1"), told[-1].ply if told else 0)
        season.append(interruption.judge(season.state, told))
        season.settle()
        assert season.state.ready_game() == "league.1"
    season.interrupt("league.1", season.start("league.1"))
    season.settle()
    assert season.journal[-1].kind == "held"
    assert "league.1" in season.state.held
    assert season.state.ready_game() is None
    season.append(operations.resume(season.state, "ann", "cable was out"))
    season.settle()
    assert not season.state.held
    assert season.play().state.finished


# -- what the fold refuses -----------------------------------------------------------


def damaged(journal: list[contract.Entry], match: str) -> None:
    """Expect the fold to refuse a journal."""
    with pytest.raises(errors.LedgerDamagedError, match=match):
        state.fold(journal)


def renumbered(journal: list[contract.Entry]) -> list[contract.Entry]:
    """Number a journal anew, so that only its contents are wrong."""
    return [dataclasses.replace(e, seq=n) for n, e in enumerate(journal, start=1)]


def test_a_gap_is_damage(played: driver.Driver) -> None:
    """A missing, repeated or first-but-not-first entry is refused."""
    damaged([*played.journal[:5], played.journal[6]], "entry 7 follows entry 5")
    damaged([*played.journal[:5], played.journal[4]], "entry 5 follows entry 5")
    damaged(renumbered(played.journal[1:]), "exactly the first one launches")
    damaged(renumbered([played.journal[0], *played.journal]), "exactly the first one launches")


def test_an_unknown_kind_is_damage(played: driver.Driver) -> None:
    """A kind this version does not know is refused, never skipped."""
    damaged([dataclasses.replace(played.journal[0], kind="lauched")], "unknown kind 'lauched'")
    damaged(
        [played.journal[0], dataclasses.replace(played.journal[1], data={"x": 1})],
        r"entry 2 \(event_started\)",
    )


def test_a_second_result_is_damage(played: driver.Driver) -> None:
    """A later result for a finished game is refused."""
    index = next(n for n, e in enumerate(played.journal) if e.kind == "game_finished")
    repeated = [*played.journal[: index + 1], played.journal[index]]
    damaged(renumbered(repeated), "has a result already")


def test_a_second_game_in_flight_is_damage(played: driver.Driver) -> None:
    """Two attempts at once are refused."""
    index = next(n for n, e in enumerate(played.journal) if e.kind == "attempt_started")
    doubled = [*played.journal[: index + 1], played.journal[index]]
    damaged(renumbered(doubled), "another game is in flight")


def test_every_kind_out_of_place_is_damage_or_harmless(played: driver.Driver) -> None:
    """No entry of a finished season can be appended to its launch but those without a past."""
    fits = set()
    for entry in played.journal[1:]:
        try:
            state.fold(renumbered([played.journal[0], entry]))
        except errors.LedgerDamagedError:
            continue
        fits.add((entry.kind, entry.data.get("event", "")))
    assert fits == {
        ("event_started", "league"),
        ("event_started", "final"),
        ("gate_set", "final"),
        ("season_finished", ""),
    }


# -- order of events, size -----------------------------------------------------------


def test_a_waiting_event_lets_the_next_one_go_first(tmp_path: Path) -> None:
    """While the final waits at its gate, a later event of the file is played."""
    season = driver.Driver.launched(
        driver.load(tmp_path, driver.season_text() + driver.SIDE)
    ).play()
    started = [e.data["event"] for e in season.journal if e.kind == "event_started"]
    assert started == ["league", "side", "final"]
    finals = [e.data["event"] for e in season.journal if e.kind == "event_ranked"]
    assert finals == ["league", "side", "final"]


def test_a_break_without_promotion_follows_the_event_before(tmp_path: Path) -> None:
    """A gate before an event with its own entrants waits for the event before it."""
    text = driver.season_text() + driver.SIDE + 'break = "5m"\n'
    season = driver.Driver.launched(driver.load(tmp_path, text)).play()
    ranked = {e.data["event"]: e for e in season.journal if e.kind == "event_ranked"}
    gate = next(e for e in season.journal if e.kind == "gate_set" and e.data["event"] == "side")
    assert gate.data["opens_at_ms"] == ranked["final"].at_ms + 300_000


def test_the_cost_of_a_result_does_not_grow(tmp_path: Path) -> None:
    """A league of 60 engines (7080 games) is decided with the same steps a game throughout."""
    text = driver.season_text(engines=60, double_rounds=2).replace(
        '"short.epd"', '"short.epd"\nrepeat = true'
    )
    began = time.process_time()
    big = driver.Driver.launched(driver.load(tmp_path, text)).play()
    print(f"\n{len(big.journal)} entries in {time.process_time() - began:.1f} s")
    began = time.process_time()
    folded = state.fold(big.journal)
    print(f"folded in {time.process_time() - began:.2f} s")
    assert folded.finished
    assert folded.events["league"].tally.games == 7080
    assert max(len(e.data["games"]) for e in big.journal if e.kind == "games_paired") == 30


# -- a gate that only the operator opens ------------------------------------------------


def test_a_cup_waits_for_its_operator() -> None:
    """CUP-2a: after the TCEC Swiss, which is another season: no time opens the gate by itself."""
    cup = driver.Patient.launched(driver.shipped("cup"))
    cup.play()
    first = cup.state.events["round-32"]
    assert (first.status, first.opens_at_ms) == (events.Status.GATE, None)
    assert decide.decide(cup.state, cup.now_ms + 10 * 365 * 86_400_000) == []
    assert cup.state.next_deadline_ms() is None
    (wait,) = blockers.waits(cup.state)
    assert (wait["for"], wait["event"], wait["until_ms"]) == ("gate", "round-32", None)
    cup.append(operations.open_gate(cup.state, "round-32", "ann", "the Swiss is over"))
    assert cup.play(1).state.ready_game() == "round-32.2"


def test_an_operator_s_gate_may_be_given_a_time(tmp_path: Path) -> None:
    """CUP-2a: before it is set, and after."""
    text = driver.season_text().replace('break = "10m"', 'break = "operator"')
    season = driver.Patient.launched(driver.load(tmp_path, text))
    season.play()
    assert season.state.events["final"].opens_at_ms is None
    at_ms = season.now_ms + 3_600_000
    moved = amending.move_gate(season.state, "final", at_ms, season.now_ms, "ann", "agreed")
    season.append(moved)
    assert season.state.next_deadline_ms() == at_ms
    season.append(decide.decide(season.state, at_ms), at_ms=at_ms)
    assert season.play().state.finished
