"""Update windows of the five rule texts, pins, submission deadlines, engines that join."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import driver
import pytest
import test_season_rulebook as rulebook

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.season import blockers, decide, decisions, graph, views
from orchestrator.season.amend import amending, engine_update, operations
from orchestrator.season.file import roster
from orchestrator.season.fold import engine_update_entries, entries, events, orders, state
from orchestrator.season.spec import model

WHY = "sent by the author"
HOUR_MS = 3_600_000


@functools.cache
def journal(season: str, kind: str, event: str) -> tuple[contract.Entry, ...]:
    """Return a season's journal up to the first entry of a kind about an event."""
    whole = rulebook.played(season).journal
    if kind == entries.LAUNCHED:
        return tuple(whole[:1])
    found = next(e.seq for e in whole if e.kind == kind and e.data["event"] == event)
    return tuple(whole[:found])


def at(season: str, kind: str, event: str = "") -> state.SeasonState:
    """Return a season's state at that moment."""
    return state.fold(journal(season, kind, event))


def newer(now: state.SeasonState, engine: str, **changes: Any) -> model.EngineEntry:
    """Return an engine's entry in a newer version."""
    return engine_update.entries_of(now)[engine].model_copy(update={"version": "2", **changes})


def entrant(now: state.SeasonState, event: str, place: int = 0) -> str:
    """Return somebody who plays, or has played, an event."""
    return now.events[event].entrants[place]


def ask(now: state.SeasonState, engine: str, event: str | None = None) -> list[contract.Draft]:
    """Ask for an update of an engine."""
    return engine_update.update(now, newer(now, engine), event, now.at_ms, "ann", WHY)


def refused(now: state.SeasonState, engine: str, clause: str, event: str | None = None) -> None:
    """Demand that an update is refused with its clause."""
    with pytest.raises(errors.RefusedError) as refusal:
        ask(now, engine, event)
    assert f"({clause})" in str(refusal.value), str(refusal.value)


def extended(now: state.SeasonState, drafts: list[contract.Draft], at_ms: int = 0) -> None:
    """Journal drafts on top of a state."""
    for draft in drafts:
        moment = max(at_ms, now.at_ms)
        entry = contract.Entry(now.seq + 1, moment, draft.kind, "ann", draft.data)
        now.apply(contract.Entry.from_line(entry.line()))


# -- the windows of the texts -------------------------------------------------------------


@pytest.mark.parametrize("season", ["season16", "season17"])
def test_a_league_is_updated_until_the_last_game_before_it(season: str) -> None:
    """S16-13a, 13c, S17-13a, 13c: before the start, and while the event before is played."""
    text = "S16" if season == "season16" else "S17"
    before = at(season, entries.LAUNCHED)
    assert ask(before, "ql-1")
    assert ask(before, "l2-1")
    running = at(season, entries.EVENT_STARTED, "ql")
    assert ask(running, "l2-1")
    refused(running, "ql-1", f"{text}-13e")
    refused(running, "ql-1", f"{text}-13e", event="ql")
    assert ask(running, "ql-1", event="l2")
    over = at(season, entries.EVENT_RANKED, "ql")
    refused(over, "l2-1", f"{text}-13c")
    refused(at(season, entries.EVENT_STARTED, "l2"), "l2-1", f"{text}-13e")


def test_no_update_between_league_1_and_its_playoff() -> None:
    """S16-13f: the League 1 versions compete, whatever deadline anybody sets."""
    running = at("season16", entries.EVENT_STARTED, "l1")
    refused(running, "l1-1", "S16-13f", event="l1-playoff")
    with pytest.raises(errors.RefusedError, match="S16-13f"):
        engine_update.set_deadline(running, "l1-playoff", "", running.at_ms + HOUR_MS, "ann", WHY)
    promoted = at("season16", entries.PROMOTED, "l1")
    refused(promoted, entrant_of_arrival(promoted, "l1-playoff"), "S16-13f")
    playoff = at("season16", entries.EVENT_STARTED, "l1-playoff")
    assert ask(playoff, entrant(playoff, "l1-playoff"), event="divp")


def entrant_of_arrival(now: state.SeasonState, event: str) -> str:
    """Return somebody who was promoted to an event."""
    return next(iter(now.events[event].arrivals.values())).engines[0]


def test_the_entrance_playoff_is_open_until_the_later_league_1_ends() -> None:
    """S17-6d: CPU engines that have qualified may change while the GPU league is played."""
    gpu = at("season17", entries.EVENT_STARTED, "l1-gpu")
    assert ask(gpu, entrant_of_arrival(gpu, "playoff"))
    assert ask(gpu, "gpu-1", event="playoff")
    refused(gpu, "gpu-1", "S17-13e")
    ranked = at("season17", entries.EVENT_RANKED, "l1-gpu")
    assert ask(ranked, entrant_of_arrival(ranked, "playoff"))


def test_gpu_engines_have_a_break_before_the_entrance_playoff() -> None:
    """S17-6d: "updates after the respective League 1 events are allowed", also of the later one."""
    gate = at("season17", entries.GATE_SET, "playoff")
    opens_at_ms = gate.events["playoff"].opens_at_ms
    assert opens_at_ms is not None
    assert opens_at_ms > gate.at_ms
    for engine in gate.events["playoff"].arrivals["l1-gpu"].engines:
        assert ask(gate, engine)
    begun = at("season17", entries.EVENT_STARTED, "playoff")
    refused(begun, entrant(begun, "playoff"), "S17-13e")


@pytest.mark.parametrize(
    ("season", "first", "last", "clause"),
    [("cup", "round-32", "final", "CUP-8a"), ("frc", "league-a", "final", "FRC-8a")],
)
def test_nothing_is_updated_after_the_start(
    season: str, first: str, last: str, clause: str
) -> None:
    """CUP-8a, FRC-8a: under no circumstances, also not for an event far away."""
    before = at(season, entries.LAUNCHED)
    for engine in before.engines:
        assert ask(before, engine)
    begun = at(season, entries.EVENT_STARTED, first)
    for engine in begun.engines:
        refused(begun, engine, clause)
    refused(begun, entrant(begun, first), clause, event=_next(begun, first))
    with pytest.raises(errors.RefusedError, match=clause):
        engine_update.set_deadline(begun, last, "", begun.at_ms + HOUR_MS, "ann", WHY)


def _next(now: state.SeasonState, event: str) -> str:
    return now.events[event].spec.promote[0].to


def test_ntcec_updates_between_all_stages() -> None:
    """N1: in each break, 2a and 2b included; never by an engine that plays a stage."""
    clause = "N1 Engine Updates"
    running = at("ntcec1", entries.EVENT_STARTED, "stage-1")
    refused(
        running, "seed-1" if "seed-1" in running.engines else next(iter(running.engines)), clause
    )
    refused(running, entrant(running, "stage-1"), clause, event="stage-2a")
    between = at("ntcec1", entries.GATE_SET, "stage-2a")
    assert ask(between, entrant_of_arrival(between, "stage-2a"))
    first = at("ntcec1", entries.EVENT_STARTED, "stage-2a")
    assert ask(first, entrant_of_arrival(first, "stage-2b"))
    refused(first, entrant(first, "stage-2a"), clause, event="stage-3")
    done = at("ntcec1", entries.GATE_SET, "stage-2b")
    assert ask(done, entrant_of_arrival(done, "stage-3"))


# -- the director's deadline --------------------------------------------------------------


def test_the_director_sets_another_deadline_also_for_one_engine() -> None:
    """S16-13c: a specific deadline opens the break, for whom it names, until its moment."""
    over = at("season16", entries.EVENT_RANKED, "ql")
    until = over.at_ms + HOUR_MS
    extended(over, engine_update.set_deadline(over, "l2", "l2-1", until, "ann", WHY))
    refused(over, "l2-2", "S16-13c")
    entry = newer(over, "l2-1")
    with pytest.raises(errors.RefusedError, match="deadline for l2 has passed"):
        engine_update.update(over, entry, None, until, "ann", WHY)
    extended(over, ask(over, "l2-1"))
    assert over.engines["l2-1"].version == "2"
    extended(over, engine_update.set_deadline(over, "l2", "", until, "ann", WHY))
    assert ask(over, "l2-2")


@pytest.mark.parametrize(
    ("season", "event", "text"), [("season16", "l2", "S16"), ("season17", "playoff", "S17")]
)
def test_a_gate_that_is_set_moves_to_the_director_s_deadline(
    season: str, event: str, text: str
) -> None:
    """S16-13c, S17-13c, S17-6d: who was given until then is not played before."""
    now = at(season, entries.GATE_SET, event)
    opens_at_ms = now.events[event].opens_at_ms or 0
    later, engine = opens_at_ms + 34 * HOUR_MS, entrant_of_arrival(now, event)
    extended(now, engine_update.set_deadline(now, event, engine, later, "ann", WHY))
    assert now.events[event].opens_at_ms == later
    assert decide.decide(now, opens_at_ms) == []
    entry = newer(now, engine)
    assert engine_update.update(now, entry, None, later - 1, "ann", WHY)
    with pytest.raises(errors.RefusedError, match=f"deadline.*{text}-"):
        operations.open_gate(now, event, "ann", "now", opens_at_ms)
    with pytest.raises(errors.RefusedError, match=f"deadline.*{text}-"):
        amending.move_gate(now, event, opens_at_ms, now.at_ms, "ann", "now")
    assert [d.kind for d in decide.decide(now, later)] == [entries.GATE_OPENED]
    extended(now, engine_update.set_deadline(now, event, engine, now.at_ms, "ann", "it has come"))
    assert operations.open_gate(now, event, "ann", "all are here", opens_at_ms)


def test_a_gate_to_come_waits_for_the_director_s_deadline() -> None:
    """S16-13c: set while the event before is played; not for who does not come after all."""
    gate = at("season16", entries.GATE_SET, "l2")
    out = next(one for one in gate.events["ql"].entrants if one not in promoted_to(gate, "l2"))
    before = journal("season16", entries.EVENT_STARTED, "ql")
    season = driver.Patient.replayed(before, rulebook.results)
    until = gate.at_ms + 1000 * HOUR_MS
    season.append(engine_update.set_deadline(season.state, "l2", "l2-1", until, "ann", WHY))
    season.append(engine_update.set_deadline(season.state, "l2", out, until + HOUR_MS, "ann", WHY))
    season.play()
    while asked := decisions.outstanding(season.state):
        choice = asked[0].engines[: asked[0].choose]
        season.append(decisions.decide(season.state, asked[0].decision, choice, "ann", "lots"))
        season.play()
    assert season.state.events["l2"].status is events.Status.GATE
    assert season.state.events["l2"].opens_at_ms == until


def test_an_event_without_a_break_waits_for_the_director_s_deadline(tmp_path: Path) -> None:
    """S17-13c: it begins at the deadline, and its engines may be updated until then."""
    text = driver.season_text().replace('break = "10m"\n', "")
    season = driver.Patient.launched(driver.load(tmp_path, text)).play(1)
    until = season.now_ms + 100 * HOUR_MS
    season.append(engine_update.set_deadline(season.state, "final", "", until, "ann", WHY))
    season.play()
    final = season.state.events["final"]
    assert (final.status, final.opens_at_ms) == (events.Status.GATE, until)
    assert [wait["until_ms"] for wait in blockers.waits(season.state)] == [until]
    assert "final:gate" in {node.id for node in graph.build(season.state).nodes}
    assert ask(season.state, final.arrivals["league"].engines[0])
    season.append(decide.decide(season.state, until), at_ms=until)
    season.play()
    assert season.state.finished


def test_a_deadline_that_can_hold_nothing_is_refused() -> None:
    """S16-13c: for who cannot come any more, and once the gate is open."""
    gate = at("season16", entries.GATE_SET, "l2")
    out = next(one for one in gate.events["ql"].entrants if one not in promoted_to(gate, "l2"))
    with pytest.raises(errors.RefusedError, match="cannot play l2 any more"):
        engine_update.set_deadline(gate, "l2", out, gate.at_ms + HOUR_MS, "ann", WHY)
    opened = at("season16", entries.GATE_OPENED, "l2")
    with pytest.raises(errors.RefusedError, match="the gate before l2 is open"):
        engine_update.set_deadline(opened, "l2", "", opened.at_ms + HOUR_MS, "ann", WHY)


def promoted_to(now: state.SeasonState, event: str) -> set[str]:
    """Return who was promoted to an event."""
    return {e for arrival in now.events[event].arrivals.values() for e in arrival.engines}


def test_a_deadline_may_close_early() -> None:
    """The director's deadline goes before the last game, too."""
    running = at("season16", entries.EVENT_STARTED, "ql")
    extended(running, engine_update.set_deadline(running, "l2", "", running.at_ms, "ann", WHY))
    refused(running, "l2-1", "S16-13c")


def test_a_started_event_has_no_deadline_left() -> None:
    """An event that is played takes no submissions, and who names nobody is refused."""
    running = at("season16", entries.EVENT_STARTED, "ql")
    for event, engine, found in (
        ("ql", "", "has started"),
        ("l2", "nobody", "no engine"),
        ("l9", "", "no event"),
    ):
        with pytest.raises(errors.RefusedError, match=found):
            engine_update.set_deadline(running, event, engine, running.at_ms, "ann", WHY)


# -- pins ---------------------------------------------------------------------------------


def _bundled(engine: str) -> str:
    """Return an engine's version in the season file."""
    return next(e.version for e in driver.shipped("season16").engines if e.id == engine)


def test_an_update_plays_from_the_next_event_on() -> None:
    """What plays is pinned at an event's start; the running one never changes (S16-13e)."""
    played = driver.Organized.replayed(
        journal("season16", entries.EVENT_STARTED, "ql"), rulebook.results
    )
    played.append(ask(played.state, "ql-1", event="l2"), by="ann")
    played.append(ask(played.state, "l2-1"), by="ann")
    played.settle()
    ready = next(g for g in played.state.events["ql"].order if "ql-1" in _pair(played.state, g))
    assert "2" not in _versions(played.state, ready)
    while played.state.events["l2"].status.value != "running" and played.play_one():
        played.settle()
    started = next(
        e for e in played.journal if e.kind == entries.EVENT_STARTED and e.data["event"] == "l2"
    )
    pinned = {engine["id"]: engine["version"] for engine in started.data["engines"]}
    assert pinned["l2-1"] == "2"
    assert pinned["l2-2"] == _bundled("l2-2")
    game = next(g for g in played.state.events["l2"].order if "l2-1" in _pair(played.state, g))
    assert "2" in _versions(played.state, game)


def test_a_new_name_is_told_of_the_events_that_it_plays() -> None:
    """Tables, schedule and graph of a running event keep the name that its games' PGN has."""
    now = at("season16", entries.GAMES_PAIRED, "ql")
    old = now.engines["ql-1"].name
    entry = newer(now, "ql-1", name="Another 2")
    extended(now, engine_update.update(now, entry, "l2", now.at_ms, "ann", WHY))
    assert now.engines["ql-1"].name == "Another 2"
    playing = views.event(now, "ql")["entrants"]
    playing += [row["name"] for row in views.standings(now, "ql")["rows"]]
    playing += [row[side] for row in views.schedule(now, "ql", 0) for side in ("white", "black")]
    assert playing.count(old) == 3  # among the entrants, in the table, in a game of round 1
    assert "Another 2" not in [*playing, *(blockers.coming(now) or {"engines": []})["engines"]]
    assert not any("Another 2" in node.label for node in graph.build(now).nodes)


def _pair(now: state.SeasonState, game: str) -> tuple[str, str]:
    return now.game(game).white, now.game(game).black


def _versions(now: state.SeasonState, game: str) -> set[str]:
    order = orders.game_order(now, game)
    return {order.white.version, order.black.version}


def test_files_that_the_hall_saw_first_are_pinned_for_the_event(tmp_path: Path) -> None:
    """The first game's entry pins what nobody had pinned; a pinned file stays as it was."""
    played = driver.Driver.launched(driver.load(tmp_path, driver.season_text(engines=2)))
    played.settle()
    first, second = played.state.events["league"].order[:2]
    found = driver.finished(first, played.start(first), driver.by_name(played.state.game(first)))
    game = played.state.game(first)
    seen = found.model_copy(update={"white_files": {game.white: "aa"}, "black_files": {}})
    played.append([contract.Draft("game_finished", seen.model_dump(mode="json"))], "worker")
    order = orders.game_order(played.state, second)
    pins = {order.white.id: order.white.checksums, order.black.id: order.black.checksums}
    assert pins == {game.white: {game.white: "aa"}, game.black: {}}
    later = driver.finished(second, played.start(second), ("1-0", driver.Ending.CHECKMATE))
    swapped = later.model_copy(update={"black_files": {game.white: "bb"}})
    played.append([contract.Draft("game_finished", swapped.model_dump(mode="json"))], "worker")
    assert played.state.events["league"].pinned[game.white].checksums == {game.white: "aa"}


def test_a_journal_without_pins_plays_what_was_launched() -> None:
    """Events of older journals pinned nothing: their orders are as they were."""
    whole = rulebook.played("cup").journal
    started = next(e for e in whole if e.kind == entries.EVENT_STARTED)
    data = {key: value for key, value in started.data.items() if key != "engines"}
    old = contract.Entry(started.seq, started.at_ms, started.kind, started.by, data)
    now = state.fold([*whole[: started.seq - 1], old, *whole[started.seq : started.seq + 1]])
    order = orders.game_order(now, now.events["round-32"].order[0])
    assert order.white.command == now.engines[order.white.id].command


def test_an_unpinned_engine_is_pinned_by_its_update() -> None:
    """Also in an event that pinned nothing, an update is for the events to come alone."""
    head = journal("season16", entries.EVENT_STARTED, "ql")
    data = {key: value for key, value in head[-1].data.items() if key != "engines"}
    last = head[-1]
    old = contract.Entry(last.seq, last.at_ms, last.kind, last.by, data)
    now = state.fold([*head[:-1], old])
    extended(now, ask(now, "ql-1", event="l2"))
    assert now.engines["ql-1"].version == "2"
    assert orders.pinned(now, now.events["ql"], "ql-1").version == _bundled("ql-1")


# -- the rules of a roster ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"options": {"Threads": 64}}, "Threads = 64 in event .*S16 Engine configuration"),
        ({"settings": {"l2": {"Hash": 99999}}}, "Hash = 99999 in event l2.*S16"),
        ({"settings": {"l9": {"Hash": 1}}}, "no such event"),
        ({"name": "Stoofvlees"}, "another engine's"),
        ({"dropped": "gone"}, "farm engine withdraw"),
    ],
)
def test_an_update_that_breaks_a_rule_is_refused(changes: dict[str, Any], found: str) -> None:
    """An update is held to what a roster is held to, with the clause."""
    now = at("season16", entries.LAUNCHED)
    with pytest.raises(errors.RefusedError, match=found):
        engine_update.update(now, newer(now, "l2-1", **changes), None, now.at_ms, "ann", WHY)


def test_an_update_keeps_the_competition_and_stays_unique() -> None:
    """S17-2, S16-16: no engine changes sides, no update copies another's parts."""
    now = at("season17", entries.LAUNCHED)
    gpu = newer(now, "l2-1", competition="gpu", box="gpu-1")
    with pytest.raises(errors.RefusedError, match=r"l2 is for cpu \(S17-2\)"):
        engine_update.update(now, gpu, None, now.at_ms, "ann", WHY)
    parts = model.NeuralParts(training="Zero", network="T40", engine="Lc0")
    first = newer(now, "gpu-1", neural=parts)
    extended(now, engine_update.update(now, first, None, now.at_ms, "ann", WHY))
    clone = newer(now, "gpu-2", neural=parts.model_copy(update={"network": "T41"}))
    with pytest.raises(errors.RefusedError, match=r"same training and engine as .*S16-16"):
        engine_update.update(now, clone, None, now.at_ms, "ann", WHY)
    voted = clone.model_copy(update={"exception": "voted by the committee"})
    assert engine_update.update(now, voted, None, now.at_ms, "ann", WHY)


def test_updates_need_a_reason_an_engine_and_a_change() -> None:
    """Who, why and what: none of them may be missing."""
    now = at("season16", entries.LAUNCHED)
    with pytest.raises(errors.UsageError, match="--reason"):
        engine_update.update(now, newer(now, "l2-1"), None, now.at_ms, "ann", "")
    with pytest.raises(errors.RefusedError, match="what this entry says already"):
        engine_update.update(
            now, engine_update.entries_of(now)["l2-1"], None, now.at_ms, "ann", WHY
        )
    unknown = newer(now, "l2-1", id="nobody", name="Nobody")
    with pytest.raises(errors.RefusedError, match="no engine 'nobody'"):
        engine_update.update(now, unknown, None, now.at_ms, "ann", WHY)
    over = rulebook.played("season16").state
    with pytest.raises(errors.RefusedError, match="season is over"):
        ask(over, "l2-1")


def test_who_is_out_has_nothing_to_update_for() -> None:
    """An engine that plays no further event is told so."""
    now = at("season16", entries.EVENT_STARTED, "l2")
    out = next(e for e in now.events["ql"].entrants if e not in now.events["l2"].entrants)
    with pytest.raises(errors.RefusedError, match="no event that is still to come"):
        ask(now, out)


# -- engines that join ----------------------------------------------------------------------


def joining() -> model.EngineEntry:
    """Return the entry of an engine that nobody knows yet."""
    return model.EngineEntry(id="new", name="New One", command=("new",))


def test_an_added_engine_plays_its_event(tmp_path: Path) -> None:
    """It enters the event that is named, with a seed behind the listed, and no other."""
    text = driver.season_text().replace('file = "short.epd"', 'file = "short.epd"\nrepeat = true')
    played = driver.Driver.launched(driver.load(tmp_path, text))
    drafts = engine_update.add(played.state, joining(), "league", played.now_ms, "ann", WHY)
    assert drafts[0].kind == engine_update_entries.ENGINE_ADDED
    played.append(drafts, by="ann")
    played.play()
    league, final = played.state.events["league"], played.state.events["final"]
    assert league.entrants == ("e1", "e2", "e3", "e4", "new")
    assert len(league.order) == 20
    assert len(final.entrants) == 2
    assert played.state.finished


def test_a_reserve_enters_nothing(tmp_path: Path) -> None:
    """Without an event it can be tested, and take another's place, no more."""
    played = driver.Driver.launched(driver.load(tmp_path, driver.season_text()))
    played.append(
        engine_update.add(played.state, joining(), "", played.now_ms, "ann", WHY), by="ann"
    )
    played.settle()
    assert "new" in played.state.engines
    assert "new" not in played.state.events["league"].entrants


@pytest.mark.parametrize(
    ("event", "found"),
    [
        ("final", "a field of 3; allowed: exactly 2"),
        ("league", "would need 10 openings of the book short, which was dealt 6"),
        ("cup", "no event 'cup'"),
    ],
)
def test_an_engine_that_fits_nowhere_is_refused(tmp_path: Path, event: str, found: str) -> None:
    """Its event must have room in its format and in its book."""
    played = driver.Driver.launched(driver.load(tmp_path, driver.season_text()))
    with pytest.raises(errors.RefusedError, match=found):
        engine_update.add(played.state, joining(), event, played.now_ms, "ann", WHY)


def test_an_engine_joins_once_and_in_time() -> None:
    """Who is there already, and who comes too late, is refused: by which clause, or what to do."""
    now = at("season16", entries.EVENT_RANKED, "ql")
    with pytest.raises(errors.RefusedError, match="in this season already"):
        engine_update.add(now, newer(now, "l2-1"), "", now.at_ms, "ann", WHY)
    with pytest.raises(errors.RefusedError, match="S16-13c"):
        engine_update.add(now, joining(), "l2", now.at_ms, "ann", WHY)
    cup = at("cup", entries.EVENT_STARTED, "round-32")
    with pytest.raises(errors.RefusedError, match="CUP-8a"):
        engine_update.add(cup, joining(), "round-16", cup.at_ms, "ann", WHY)
    with pytest.raises(errors.RefusedError, match=r"nobody enters it .*amend engine"):
        engine_update.add(cup, joining(), "round-32", cup.at_ms, "ann", WHY)


def test_the_entry_and_the_spec_of_a_submission_agree() -> None:
    """The journal holds both: what was entered, and what a hall starts."""
    now = at("season16", entries.LAUNCHED)
    (draft,) = ask(now, "l2-1")
    fact = engine_update_entries.EngineUpdated.model_validate(draft.data)
    assert fact.engine == roster.spec(fact.entry)
    assert fact.events == ("l2",)
