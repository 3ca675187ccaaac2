"""Amendments of a running season: what they change, what they refuse, what stays."""

from __future__ import annotations

from pathlib import Path

import driver
import pytest

from orchestrator import contract
from orchestrator.broadcast.content import tables
from orchestrator.common import errors
from orchestrator.season import audit_log, decide, decisions, verify_seed, views
from orchestrator.season.amend import amending, operations
from orchestrator.season.amend import substitute as amend_substitute
from orchestrator.season.file import load
from orchestrator.season.fold import (
    amendment_entries,
    corrections,
    disqualification,
    entries,
    events,
    orders,
    own_book,
    progress,
    seeding,
    state,
)

WHY = ("ann", "the author asked")
BEHIND = """
[[event]]
id = "last"
name = "Last"
format = { kind = "match", games = 2 }
break = "60m"
time_control = "60+5"
"""
NEW = contract.EngineSpec(id="new", name="Newcomer", command=("new",))


def launched(tmp_path: Path, text: str = "", games: int = 0) -> driver.Driver:
    """Launch a season and play so many games of it."""
    loaded = driver.load(tmp_path, text or driver.season_text())
    played = driver.Driver.launched(loaded)
    played.settle()
    for _ in range(games):
        played.play_one()
        played.settle()
    return played


def at_the_gate(tmp_path: Path) -> driver.Driver:
    """Play a season up to the gate before its final."""
    played = launched(tmp_path, games=11)
    played.play_one()
    while drafts := played.undelayed():
        played.append(drafts)
    assert played.state.events["final"].status is events.Status.GATE
    return played


# -- engines -------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["keep", "annul", "replay"])
def test_a_substitute_plays_on_in_the_seat(
    tmp_path: Path, choice: amendment_entries.Played
) -> None:
    """It has seed and open games; played ones count for it, for nobody, or are played again."""
    played = driver.paused(launched(tmp_path, games=7))
    league = played.state.events["league"]
    before = league.tally.scores["e1"]
    points, done = before.half_points, before.games
    seed = league.entrants.index("e1")
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, choice, *WHY))
    assert league.entrants[seed] == "new"
    score = league.tally.scores["new"]
    assert "e1" not in league.tally.scores
    assert (score.half_points, score.games) == ((points, done) if choice == "keep" else (0, 0))
    driver.resumed(played).play()
    games = 6 if choice != "annul" else 6 - done
    assert played.state.finished
    assert league.tally.scores["new"].games == games
    assert sum(s.games for s in league.tally.scores.values()) == 2 * league.tally.games
    again = driver.Driver.replayed(played.journal)
    assert again.state.events["league"].rows == league.rows


def test_replaced_games_keep_their_record_and_get_ids_of_their_own(tmp_path: Path) -> None:
    """Games to be played again stand in the same place; the old ones are never lost."""
    played = driver.paused(launched(tmp_path, games=5))
    league = played.state.events["league"]
    old = [
        g for g in league.order if "e1" in (played.state.game(g).white, played.state.game(g).black)
    ]
    done = [g for g in old if not played.state.game(g).open]
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, "replay", *WHY))
    for game in done:
        assert played.state.game(game).cancelled
        again = played.state.game(f"{game}.replay1")
        assert again.open
        assert again.opening == played.state.game(game).opening
    assert played.state.ready_game() is None  # paused
    assert driver.resumed(played).state.ready_game() == f"{done[0]}.replay1"


def test_a_substitute_waits_for_an_event_that_has_not_begun(tmp_path: Path) -> None:
    """Whoever is promoted, the substitute starts in that seat, and in no other event."""
    played = at_the_gate(tmp_path)
    first = played.state.events["league"].rows[0].engine
    event = played.state.events["final"]
    played.append(amend_substitute.replace(played.state, "final", first, NEW, "keep", *WHY))
    played.play()
    assert event.entrants[0] == "new"
    assert first not in event.entrants
    assert "new" not in played.state.events["league"].entrants
    assert played.state.finished


def test_a_roster_event_does_not_take_a_substitute_in(tmp_path: Path) -> None:
    """``entrants = "roster"`` means the roster of the launch."""
    text = driver.season_text().replace('id = "final"\n', 'id = "final"\nentrants = "roster"\n')
    text = text.replace('promote = [{ top = 2, to = "final" }]', "")
    text = text.replace('{ kind = "match", games = 4 }', '{ kind = "round-robin" }')
    played = launched(tmp_path, text, games=3)
    played.append(
        amend_substitute.replace(driver.paused(played).state, "league", "e2", NEW, "keep", *WHY)
    )
    driver.resumed(played).play()
    assert set(played.state.events["final"].entrants) == {"e1", "e2", "e3", "e4"}


def test_who_cannot_leave_an_event_is_told_what_can_be_done(tmp_path: Path) -> None:
    """At a gate: who comes next may have the seat; in the event before: the seat to come."""
    played = at_the_gate(tmp_path)
    first, _, third, _ = (row.engine for row in played.state.events["league"].rows)
    way = f"`farm engine disqualify {first} --event final --with SUBSTITUTE`"
    asked = (played.state, "final", first, *WHY, "disqualification")
    with pytest.raises(errors.RefusedError, match="not being played yet") as refused:
        disqualification.withdraw(*asked)
    assert way in str(refused.value)
    assert f"next in league is {third}" in str(refused.value)
    assert "open-gate" not in str(refused.value)  # a match is not left either
    with pytest.raises(errors.RefusedError, match="'league' is over") as refused:
        disqualification.withdraw(played.state, "league", first, *WHY, "disqualification")
    assert way in str(refused.value)
    with pytest.raises(errors.RefusedError) as refused:
        disqualification.withdraw(played.state, "final", first, *WHY)
    assert f"`farm season amend engine {first} --event final --with SUBSTITUTE`" in str(
        refused.value
    )
    new = played.state.engines[third]
    played.append(amend_substitute.replace(played.state, "final", first, new, "keep", *WHY))
    assert played.play().state.events["final"].entrants[0] == third


def test_who_leaves_no_league_to_come_is_told_to_let_it_begin(tmp_path: Path) -> None:
    """A league may go on without a substitute, once it is played."""
    text = driver.season_text().replace('{ kind = "match", games = 4 }', '{ kind = "round-robin" }')
    played = launched(tmp_path, text, games=11)
    played.play_one()
    while drafts := played.undelayed():
        played.append(drafts)
    first = played.state.events["league"].rows[0].engine
    with pytest.raises(errors.RefusedError, match=r"begin \(`farm season open-gate final`\)"):
        disqualification.withdraw(played.state, "final", first, *WHY, "disqualification")
    played.append(operations.open_gate(played.state, "final", *WHY))
    played.append(played.undelayed())
    driver.paused(played)
    played.append(disqualification.withdraw(played.state, "final", first, *WHY, "disqualification"))
    assert first in played.state.events["final"].excluded


def test_a_seat_may_change_hands_again_and_back(tmp_path: Path) -> None:
    """The chain of substitutes leads to the last one; the first may come back."""
    played = at_the_gate(tmp_path)
    engine = played.state.events["league"].rows[0].engine
    back = played.state.engines[engine]
    other = NEW.model_copy(update={"id": "third", "name": "Third"})
    event = played.state.events["final"]
    for old, new in ((engine, NEW), ("new", other), ("third", back)):
        played.append(amend_substitute.replace(played.state, "final", old, new, "keep", *WHY))
        assert event.seat(engine) == new.id
    assert seeding.started(played.state, event) is not None


@pytest.mark.parametrize(
    ("engine", "substitute", "choice", "message"),
    [
        ("e9", NEW, "keep", "does not play"),
        ("e1", "e2", "keep", "plays league already"),
        (
            "e1",
            NEW.model_copy(update={"id": "e1x", "options": {"OwnBook": True}}),
            "keep",
            "OwnBook",
        ),
        ("e1", NEW.model_copy(update={"id": "e2"}), "keep", "other settings"),
    ],
)
def test_impossible_substitutes_are_refused(
    tmp_path: Path,
    engine: str,
    substitute: contract.EngineSpec | str,
    choice: amendment_entries.Played,
    message: str,
) -> None:
    """Unknown seats, engines that play already, settings that break a limit."""
    played = driver.paused(launched(tmp_path, games=2))
    new = played.state.engines[substitute] if isinstance(substitute, str) else substitute
    with pytest.raises(errors.RefusedError, match=message):
        amend_substitute.replace(played.state, "league", engine, new, choice, *WHY)


def test_what_is_built_on_the_games_is_in_the_way(tmp_path: Path) -> None:
    """No substitute for a ranked event, a running game, an annulled match; never without why."""
    played = launched(tmp_path, games=3)
    with pytest.raises(errors.RefusedError, match="farm season pause"):
        amend_substitute.replace(played.state, "league", "e1", NEW, "keep", *WHY)
    with pytest.raises(errors.UsageError, match="--reason"):
        amend_substitute.replace(played.state, "league", "e1", NEW, "keep", "ann", "")
    played.play(9)
    assert played.state.events["league"].status is events.Status.RANKED
    with pytest.raises(errors.RefusedError, match="ranked"):
        amend_substitute.replace(played.state, "league", "e1", NEW, "keep", *WHY)
    played.play(2)
    finalist = played.state.events["final"].entrants[0]
    with pytest.raises(errors.RefusedError, match="no winner"):
        amend_substitute.replace(driver.paused(played).state, "final", finalist, NEW, "annul", *WHY)
    with pytest.raises(errors.RefusedError, match="no event"):
        amend_substitute.replace(played.state, "cup", "e1", NEW, "keep", *WHY)


def test_an_annulled_game_of_a_replaced_engine_cannot_be_adjudicated(tmp_path: Path) -> None:
    """Its engine has no row in the table any more."""
    played = driver.paused(launched(tmp_path, games=4))
    game = next(
        g for g in played.state.events["league"].order if played.state.game(g).white == "e1"
    )
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, "annul", *WHY))
    if played.state.game(game).cancelled:
        with pytest.raises(errors.RefusedError, match="replaced"):
            corrections.adjudicate(played.state, game, "1-0", *WHY)


# -- books ---------------------------------------------------------------------------


def fresh(tmp_path: Path, lines: int = 20, name: str = "new.pgn") -> tuple[contract.Opening, ...]:
    """Return the exits of a new book that shares nothing with the old one."""
    moves = [
        f"1. {a} {b}" for a in ("a3", "b3", "c3", "h3", "g3") for b in ("a6", "b6", "h6", "g6")
    ]
    games = "\n\n".join(f'[Event "{m}"]\n[Result "*"]\n\n{m} *' for m in moves[:lines])
    (tmp_path / name).write_text(games + "\n")
    book = load.model.Book(file=name)
    return load.load_book(tmp_path / name, "short", book)


def test_a_mended_book_deals_new_openings_only(tmp_path: Path) -> None:
    """What was played stays, for the reverse game too; every other opening is a new one."""
    played = launched(tmp_path, games=3)
    state_ = driver.paused(played).state
    old = {game: orders.game_order(state_, game).opening for game in state_.games}
    done = [state_.game(game).opening for game in state_.games if state_.game(game).counts]
    exits = fresh(tmp_path)
    source = ("new.pgn", "0" * 64)
    played.append(amending.mend_book(state_, "short", exits, source, (), *WHY))
    for game in state_.games:
        now = orders.game_order(state_, game).opening
        assert (now == old[game]) == (state_.game(game).opening in done)
        assert now in exits or state_.game(game).opening in done
    whole = driver.resumed(played).play()
    assert verify_seed.verify(whole.journal).mismatches == ()


def test_the_order_of_a_mended_book_is_drawn(tmp_path: Path) -> None:
    """A random book's new exits come by lot from the sealed seed, the same at every try."""
    played = driver.paused(launched(tmp_path))
    exits, source = fresh(tmp_path), ("new.pgn", "0" * 64)
    drafts = amending.mend_book(played.state, "short", exits, source, (), *WHY)
    taken = list(drafts[0].data["exits"].values())
    assert taken != [exit_.model_dump(mode="json") for exit_ in exits[: len(taken)]]
    assert amending.mend_book(played.state, "short", exits, source, (), *WHY) == drafts


def test_one_broken_opening_is_mended_alone(tmp_path: Path) -> None:
    """Only the openings of the named games change, for both games of the pair."""
    played = driver.paused(launched(tmp_path, games=2))
    game = played.state.events["league"].order[4]
    number = played.state.game(game).opening
    source = ("new.pgn", "0" * 64)
    drafts = amending.mend_book(played.state, "short", fresh(tmp_path, 1), source, (game,), *WHY)
    assert [int(exit_) for exit_ in drafts[0].data["exits"]] == [number]


def test_openings_that_were_played_are_not_mended(tmp_path: Path) -> None:
    """Refused: a played opening, a book too small, a book nobody knows, a running season."""
    played = launched(tmp_path, games=2)
    exits, source = fresh(tmp_path), ("new.pgn", "0" * 64)
    with pytest.raises(errors.RefusedError, match="pause"):
        amending.mend_book(played.state, "short", exits, source, (), *WHY)
    now = driver.paused(played).state
    with pytest.raises(errors.RefusedError, match="was played in league"):
        amending.mend_book(now, "short", exits, source, ("league.1",), *WHY)
    with pytest.raises(errors.RefusedError, match="not played yet; new"):
        amending.mend_book(now, "short", exits[:2], source, (), *WHY)
    with pytest.raises(errors.RefusedError, match="no book 'long'"):
        amending.mend_book(now, "long", exits, source, (), *WHY)
    with pytest.raises(errors.UsageError, match="--reason"):
        amending.mend_book(now, "short", exits, source, (), "ann", "")


# -- gates and pauses ----------------------------------------------------------------


def test_a_gate_moves_before_and_after_it_is_set(tmp_path: Path) -> None:
    """It opens at the new time, not at the old one, and stays shut until its events are over."""
    played = at_the_gate(tmp_path)
    event = played.state.events["final"]
    later = played.now_ms + 90 * 60_000
    played.append(amending.move_gate(played.state, "final", later, played.now_ms, *WHY))
    assert event.opens_at_ms == later
    assert decide.decide(played.state, later - 1) == []
    sooner = played.now_ms + 60_000
    played.append(amending.move_gate(played.state, "final", sooner, played.now_ms, *WHY))
    assert played.state.next_deadline_ms() == sooner
    assert decide.decide(played.state, sooner)[0].kind == entries.GATE_OPENED
    played.play()
    with pytest.raises(errors.RefusedError, match="over"):
        amending.move_gate(played.state, "final", sooner * 2, played.now_ms, *WHY)


def test_the_time_left_counts_to_a_moved_gate(tmp_path: Path) -> None:
    """What is left of a season takes the operator's time for the file's break."""
    played = at_the_gate(tmp_path)
    games = progress.of_event(played.state, "final")
    games_seconds = games.mean_seconds * games.total
    for minutes in (90, 1):
        opens = played.now_ms + minutes * 60_000
        played.append(amending.move_gate(played.state, "final", opens, played.now_ms, *WHY))
        left = (opens - played.state.at_ms) / 1000
        assert progress.of_season(played.state).remaining_seconds == pytest.approx(
            left + games_seconds
        )
        assert tables.estimated_starts(played.state)["final"] == opens


def test_events_behind_a_moved_gate_follow_it(tmp_path: Path) -> None:
    """Also while it is not set yet: what comes after it is expected later, or sooner."""
    onward = 'break = "10m"\npromote = [{ top = 2, to = "last" }]'
    text = driver.season_text().replace('break = "10m"', onward) + BEHIND
    played = launched(tmp_path, text, games=2)
    before = tables.estimated_starts(played.state)
    for hours in (48, 1):
        opens = played.now_ms + hours * 3_600_000
        played.append(amending.move_gate(played.state, "final", opens, played.now_ms, *WHY))
        starts = tables.estimated_starts(played.state)
        games = progress.of_event(played.state, "final").mean_seconds * 4 * 1000
        assert starts["final"] == pytest.approx(opens, abs=2)
        assert starts["last"] == pytest.approx(opens + games + 60 * 60_000, abs=2)
        assert starts["last"] != before["last"]
        left = progress.of_season(played.state).remaining_seconds * 1000
        last = progress.of_event(played.state, "last")
        end = starts["last"] + last.mean_seconds * last.total * 1000
        assert played.state.at_ms + left == pytest.approx(end, abs=2)


def test_a_gate_that_is_not_set_yet_opens_when_it_was_told(tmp_path: Path) -> None:
    """The operator's time takes the place of the file's break once the events before are over."""
    played = launched(tmp_path, games=2)
    later = played.now_ms + 90 * 60_000
    played.append(amending.move_gate(played.state, "final", later, played.now_ms, *WHY))
    assert played.state.events["final"].status is events.Status.WAITING
    whole = played.play()
    opened = next(e for e in whole.journal if e.kind == entries.GATE_OPENED)
    assert opened.at_ms == whole.state.events["final"].opens_at_ms == later


def test_gates_that_are_none_are_not_moved(tmp_path: Path) -> None:
    """Refused: an event without a gate, a gate that is open, a time that is past."""
    played = launched(tmp_path, games=1)
    now = played.now_ms
    with pytest.raises(errors.RefusedError, match="no gate before it"):
        amending.move_gate(played.state, "league", now + 1, now, *WHY)
    with pytest.raises(errors.UsageError, match="open-gate"):
        amending.move_gate(played.state, "final", now, now, *WHY)
    played.play(12)
    assert played.state.events["final"].status is events.Status.RUNNING
    with pytest.raises(errors.RefusedError, match="open already"):
        amending.move_gate(played.state, "final", played.now_ms + 9, played.now_ms, *WHY)


def test_a_planned_pause_comes_at_its_time(tmp_path: Path) -> None:
    """The game in flight goes on, none is begun after it; resume takes the pause back."""
    played = launched(tmp_path, games=1)
    at_ms = played.now_ms + 60_000
    played.append(amending.plan_pause(played.state, at_ms, played.now_ms, *WHY))
    assert views.season(played.state)["pauses_at_ms"] == at_ms
    assert decide.decide(played.state, at_ms - 1) == []
    drafts = decide.decide(played.state, at_ms)
    assert [draft.kind for draft in drafts] == [entries.PAUSED]
    played.append(drafts, at_ms=at_ms)
    assert played.state.ready_game() is None
    assert decide.decide(played.state, at_ms + 60_000) == []
    assert driver.resumed(played).play().state.finished


def test_a_planned_pause_is_taken_back_by_resume(tmp_path: Path) -> None:
    """Once: a season that has neither pause nor plan refuses to resume."""
    played = launched(tmp_path)
    now = played.now_ms
    played.append(amending.plan_pause(played.state, now + 1_000_000_000, now, *WHY))
    driver.resumed(played)
    assert played.state.planned_pause is None
    with pytest.raises(errors.RefusedError, match="nothing to resume"):
        operations.resume(played.state, "ann", "")
    with pytest.raises(errors.UsageError, match="past"):
        amending.plan_pause(played.state, now, now, *WHY)


def test_a_pause_meanwhile_keeps_the_plan(tmp_path: Path) -> None:
    """Pausing and resuming before the planned time leaves the plan as it is."""
    played = launched(tmp_path)
    at_ms = played.now_ms + 1_000_000_000
    played.append(amending.plan_pause(played.state, at_ms, played.now_ms, *WHY))
    driver.resumed(driver.paused(played))
    assert played.state.planned_pause is not None


# -- hosts that are away -------------------------------------------------------------


def away(played: driver.Driver, *engines: str) -> None:
    """Let a host go away with some engines."""
    played.append(amending.host_away(played.state, "box", engines, *WHY))


def test_the_season_waits_for_a_host_by_default(tmp_path: Path) -> None:
    """The order of play stands: nothing is played until the host is back."""
    played = launched(tmp_path, games=2)
    ready = played.state.ready_game()
    away(played, played.state.game(ready or "").white)
    assert played.state.ready_game() is None
    assert decide.decide(played.state, played.now_ms) == []
    played.append(amending.host_back(played.state, "box", *WHY))
    assert played.state.ready_game() == ready


def test_others_are_played_meanwhile_and_then_what_waited(tmp_path: Path) -> None:
    """Other games of the event, then other events; the host's games come next when it is back."""
    played = launched(tmp_path, driver.season_text() + driver.SIDE, games=2)
    played.append(amending.set_away_policy(played.state, "others", *WHY))
    away(played, "e1")
    while (game := played.state.ready_game()) is not None:
        assert "e1" not in {played.state.game(game).white, played.state.game(game).black}
        played.play_one()
        played.settle()
    league, side = played.state.events["league"], played.state.events["side"]
    left = [g for g in league.order if played.state.game(g).open]
    assert left
    assert all("e1" in {played.state.game(g).white, played.state.game(g).black} for g in left)
    assert side.status is events.Status.RANKED
    played.append(amending.host_back(played.state, "box", *WHY))
    assert played.state.ready_game() == left[0]
    assert played.play().state.finished
    again = driver.Driver.replayed(played.journal)
    assert again.state.champion == played.state.champion


def test_a_game_in_flight_stays_the_ready_one(tmp_path: Path) -> None:
    """Whatever comes back meanwhile, one game at a time."""
    played = launched(tmp_path, games=1)
    played.append(amending.set_away_policy(played.state, "others", *WHY))
    ready = played.state.ready_game() or ""
    away(played, played.state.game(ready).white)
    other = played.state.ready_game() or ""
    assert other != ready
    attempt = played.start(other)
    played.append(amending.host_back(played.state, "box", *WHY))
    assert played.state.ready_game() == other
    played.finish(other, attempt, ("1-0", contract.Ending.CHECKMATE))
    assert played.state.ready_game() == ready


def test_hosts_are_named_once_and_with_their_engines(tmp_path: Path) -> None:
    """Refused: away twice, back without being away, unknown engines, the same policy again."""
    played = launched(tmp_path)
    with pytest.raises(errors.UsageError, match="e9"):
        amending.host_away(played.state, "box", ("e9",), *WHY)
    with pytest.raises(errors.RefusedError, match="not away"):
        amending.host_back(played.state, "box", *WHY)
    with pytest.raises(errors.RefusedError, match="already"):
        amending.set_away_policy(played.state, "wait", *WHY)
    away(played, "e1")
    with pytest.raises(errors.RefusedError, match="away already"):
        amending.host_away(played.state, "box", ("e1",), *WHY)


# -- hidden books --------------------------------------------------------------------


def quick(played: driver.Driver, engine: str, games: int, moves: int) -> None:
    """Play on; an engine answers its first moves in so many games without a search."""
    while games:
        game = played.state.game(played.state.ready_game() or "")
        fact = driver.finished(game.id, played.start(game.id), driver.by_name(game))
        side = "white" if game.white == engine else "black"
        if engine in (game.white, game.black):
            fact = fact.model_copy(update={f"{side}_unsearched": moves})
            games -= 1
        played.append([contract.Draft(entries.GAME_FINISHED, fact.model_dump(mode="json"))])
        played.settle()


def test_no_search_out_of_the_book_again_and_again_is_flagged(tmp_path: Path) -> None:
    """Three moves in three games: flagged once; two games or two moves may be chance."""
    played = launched(tmp_path)
    quick(played, "e2", 2, moves=3)
    quick(played, "e2", 2, moves=2)
    assert list(own_book.standing(played.state)) == []
    quick(played, "e2", 1, moves=9)
    flag = next(own_book.standing(played.state))
    assert (flag.engine, flag.event, len(flag.games)) == ("e2", "league", 3)
    assert [e.kind for e in played.journal].count(amendment_entries.ENGINE_FLAGGED) == 1
    assert views.season(played.state)["flags"][0]["engine"] == "e2"
    quick(played, "e2", 1, moves=9)
    assert [e.kind for e in played.journal].count(amendment_entries.ENGINE_FLAGGED) == 1


def test_a_flag_stops_nothing_and_is_answered_by_the_organizers(tmp_path: Path) -> None:
    """Dismissed it does not come again; disqualified or replaced, the engine is gone."""
    played = launched(tmp_path)
    quick(played, "e2", 3, moves=4)
    assert played.state.ready_game() is not None
    with pytest.raises(errors.RefusedError, match="flagged: e2 in league"):
        own_book.dismiss(played.state, "league", "e1", *WHY)
    dismissed = driver.Driver.replayed(played.journal)
    dismissed.append(own_book.dismiss(dismissed.state, "league", "e2", *WHY))
    quick(dismissed, "e2", 1, moves=4)
    assert list(own_book.standing(dismissed.state)) == []
    out = disqualification.withdraw(
        driver.paused(played).state, "league", "e2", *WHY, "disqualification"
    )
    played.append(out)
    assert played.state.events["league"].excluded["e2"].cause == "disqualification"
    assert list(own_book.standing(played.state)) == []
    assert driver.resumed(played).play().state.events["league"].rows[-1].engine == "e2"


# -- ratings and the log -------------------------------------------------------------


def test_a_rating_is_provisional_until_an_event_is_finished(tmp_path: Path) -> None:
    """S16-14: a new engine has its rating from tests until then; an excluded one keeps it."""
    text = driver.season_text().replace(
        'command = ["engine-1"]', 'command = ["engine-1"]\nrating = 2900\nprovisional = true'
    )
    played = launched(tmp_path, text, games=3)

    def told() -> dict[str, bool]:
        rows = views.standings(played.state, "league")["rows"]
        return {row["engine"]: row["provisional"] for row in rows}

    assert told() == {"e1": True, "e2": False, "e3": False, "e4": False}
    gone = driver.Driver.replayed(played.journal)
    gone.append(disqualification.withdraw(driver.paused(gone).state, "league", "e1", *WHY))
    played.play(9)
    assert not any(told().values())
    played = driver.resumed(gone)
    played.play(9)
    assert told()["e1"]


def test_the_log_tells_every_act_and_no_secret(tmp_path: Path) -> None:
    """Who, when, what, why of each amendment; no opening, no seed."""
    played = driver.paused(launched(tmp_path, games=2))
    source = ("new.pgn", "0" * 64)
    played.append(amending.mend_book(played.state, "short", fresh(tmp_path), source, (), *WHY))
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, "keep", *WHY))
    acts = list(audit_log.acts(played.journal))
    assert [act["kind"] for act in acts] == [
        entries.LAUNCHED,
        entries.PAUSED,
        amendment_entries.BOOK_MENDED,
        amendment_entries.ENGINE_REPLACED,
    ]
    assert acts[0]["name"] == "operator"
    assert acts[2]["about"] == {
        "book": "short",
        "source": "new.pgn",
        "sha256": "0" * 64,
        "exits": 6,
    }
    assert acts[3]["about"]["substitute"] == "new"
    told = contract.dumps(acts)
    assert driver.SEED not in told
    assert "moves" not in told


def test_amended_seasons_go_on_the_same_from_every_cut(tmp_path: Path) -> None:
    """The journal alone decides what follows an amendment."""
    played = driver.paused(launched(tmp_path, games=4))
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, "replay", *WHY))
    played.append(amending.host_away(played.state, "box", ("e3",), *WHY))
    driver.resumed(played)
    played.append(amending.host_back(played.state, "box", *WHY))
    first = len(played.journal)
    played.play()
    assert decisions.outstanding(played.state) == []
    for cut in range(first, len(played.journal)):
        again = driver.Driver.replayed(played.journal[:cut]).play()
        assert [e.data for e in again.journal] == [e.data for e in played.journal]
        assert isinstance(again.state, state.SeasonState)


@pytest.mark.parametrize("line", ["", "agreed_draws = true\n"])
def test_agreed_draws_reach_the_hall(tmp_path: Path, line: str) -> None:
    """The event's key is in the order of each of its games, and of no other event's."""
    text = driver.season_text().replace("promote =", f"{line}promote =")
    played = launched(tmp_path, text, games=12)
    order = orders.game_order(played.state, "league.1")
    assert order.agreed_draws is bool(line)
    assert not orders.game_order(played.state, "final.1").agreed_draws
