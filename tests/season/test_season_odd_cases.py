"""What the rule texts ask of cases that hardly ever occur: ties over lines, crashes, seats."""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import driver
import pytest

import orchestrator
from orchestrator import contract
from orchestrator.arbiter.adjudication import interruption
from orchestrator.common import errors
from orchestrator.forecast import rating_list
from orchestrator.season import decide, decisions, needs, views
from orchestrator.season import interruption as season_interruption
from orchestrator.season.amend import engine_update
from orchestrator.season.amend import substitute as amend_substitute
from orchestrator.season.file import load
from orchestrator.season.fold import corrections, entries, events, standings
from orchestrator.season.formats import base, match, registry, swiss
from orchestrator.season.spec import model

Ending = contract.Ending
WHY: Final = ("ann", "the author asked")
CHAIN: Final = 'tiebreaks = ["crashes", "direct-encounter", "wins", "organizers"]\n'
NEW: Final = contract.EngineSpec(id="new", name="Newcomer", command=("new",))
RAPID: Final = '{ games = 4, time_control = "25+10", openings = "season" }'
BLITZ: Final = '{ games = 2, time_control = "3+2", openings = "season", repeat = true }'
VERDICTS: Final[Mapping[str, tuple[int, Ending]]] = {  # half points of the first engine
    "1": (2, Ending.CHECKMATE),
    "=": (1, Ending.THREEFOLD),
    "0": (0, Ending.TIME),  # a loss on time is no crash (S16-15a)
    "!": (0, Ending.DISCONNECT),
}
RESULTS: Final[tuple[contract.Result, ...]] = ("0-1", "1/2-1/2", "1-0")
DRAW: Final = ("1/2-1/2", Ending.THREEFOLD)


def by_id(game: events.Game) -> driver.Verdict:
    """Let the smaller id win."""
    return ("1-0" if game.white < game.black else "0-1"), Ending.CHECKMATE


# -- S17: the lines of GPU League 1 --------------------------------------------------


@pytest.fixture(name="season17", scope="module")
def _season17() -> load.Loaded:
    """Season 17's two Leagues 1 and their playoff as the file has them, with fewer engines."""
    loaded = load.load(Path(orchestrator.__file__).parent / "seasons" / "season17.toml")
    cpu, gpu = loaded.season.event("l1-cpu"), loaded.season.event("l1-gpu")
    cut = (
        cpu.model_copy(update={"entrants": cpu.entrants[:6], "relegate": 2}),
        gpu.model_copy(update={"entrants": gpu.entrants[:4]}),
        loaded.season.event("playoff").model_copy(update={"promote": ()}),
    )
    return dataclasses.replace(loaded, season=loaded.season.model_copy(update={"events": cut}))


def gpu_results(table: Mapping[str, str]) -> driver.Results:
    """Read results of GPU League 1: by pair, such as 12, those of its six games in order."""

    def results(game: events.Game) -> driver.Verdict:
        if game.event != "l1-gpu":
            return by_id(game)
        first, second = sorted((game.white, game.black))
        halves, ending = VERDICTS[table.get(first[-1] + second[-1], "======")[game.cycle - 1]]
        return RESULTS[halves if game.white == first else 2 - halves], ending

    return results


TOP: Final = {"12": "111111", "13": "111111", "14": "111111"}  # gpu-1 wins everything


@pytest.mark.parametrize(
    ("table", "decided_by"),
    [
        (TOP | {"24": "!11===", "34": "011==="}, "crashes"),  # S17-12b
        (TOP | {"23": "0=====", "24": "111===", "34": "1====="}, "direct-encounter"),  # S17-12c
        (TOP | {"24": "111===", "34": "11110="}, "wins"),  # S17-12d
        (
            {"14": "111111", "12": "1=====", "24": "1=====", "13": "0=====", "34": "0====="},
            "sonneborn-berger",  # S17-12e
        ),
    ],
)
def test_a_tie_at_gpu_league_1s_line_goes_by_the_chain(
    season17: load.Loaded, table: Mapping[str, str], decided_by: str
) -> None:
    """S17-5h, S17-12: gpu-3 goes on beside gpu-1, though gpu-2 stands before it on the list."""
    played = driver.Driver.launched(season17, gpu_results(table)).play()
    rows = played.state.events["l1-gpu"].rows
    assert [row.engine for row in rows[:3]] == ["gpu-1", "gpu-3", "gpu-2"]
    assert rows[1].decided_by == decided_by
    assert rows[1].half_points == rows[2].half_points
    assert played.state.events["playoff"].entrants[4:] == ("gpu-1", "gpu-3")


@pytest.mark.parametrize(
    ("table", "place", "tied", "choose"),
    [
        ({}, 1, 4, 2),
        ({"12": "111000", "23": "111000", "13": "000111"}, 1, 3, 2),
        ({"14": "111111", "24": "111111", "34": "111111"}, 1, 3, 2),
        (TOP, 2, 3, 1),
        (TOP | {"24": "1=====", "34": "1====="}, 2, 2, 1),
    ],
)
def test_a_tie_across_gpu_league_1s_line_is_the_organizers(
    season17: load.Loaded, table: Mapping[str, str], place: int, tied: int, choose: int
) -> None:
    """S17-12f, S17-6c: only the playoff waits for the word, and comes next, after its break."""
    played = driver.Driver.launched(season17, gpu_results(table)).play()
    (asked,) = decisions.outstanding(played.state)
    assert (asked.event, asked.place, len(asked.engines)) == ("l1-gpu", place, tied)
    assert asked.choose == choose
    assert played.state.events["playoff"].status is events.Status.WAITING
    choice = asked.engines[::-1][:choose]
    played.append(decisions.decide(played.state, asked.decision, choice, "ann", "lots"))
    (gate,) = [draft for draft in until_game(played) if draft.kind == entries.GATE_SET]
    played.append(
        decide.decide(played.state, gate.data["opens_at_ms"]), at_ms=gate.data["opens_at_ms"]
    )
    (started,) = [draft for draft in until_game(played) if draft.kind == entries.EVENT_STARTED]
    coming = ("gpu-1", *choice) if place == 2 else choice
    assert tuple(started.data["entrants"]) == ("l1-1", "l1-2", "l1-3", "l1-4", *coming)


def until_game(played: driver.Driver) -> list[contract.Draft]:
    """Journal what is decided without a jump of the clock, and return it."""
    found: list[contract.Draft] = []
    while drafts := played.undelayed():
        played.append(drafts)
        found += drafts
    return found


def at_the_gate(played: driver.Driver) -> driver.Driver:
    """Play a season up to the gate before its final."""
    while played.state.events["final"].status is not events.Status.GATE:
        played.play_one()
        until_game(played)
    return played


def test_a_seat_is_for_an_engine_of_its_competition(season17: load.Loaded) -> None:
    """S17-2b: no GPU engine takes a seat of the CPU competition, nor the reverse."""
    played = driver.Driver.launched(season17, by_id)
    for event, engine, other in (("l1-cpu", "l1-1", "gpu-9"), ("l1-gpu", "gpu-1", "l1-9")):
        substitute = played.state.engines[other]
        with pytest.raises(errors.RefusedError, match="S17-2"):
            amend_substitute.replace(played.state, event, engine, substitute, "keep", *WHY)
    fits = played.state.engines["gpu-9"]
    assert amend_substitute.replace(played.state, "l1-gpu", "gpu-1", fits, "keep", *WHY)


# -- crashes -------------------------------------------------------------------------


def league(folder: Path, text: str, results: driver.Results, **sizes: int) -> driver.Driver:
    """Launch the driver's season with lines added to its league's table."""
    whole = driver.season_text(**sizes).replace("promote =", text + "promote =")
    return driver.Driver.launched(driver.load(folder, whole), results)


def test_a_third_crash_in_the_last_game_disqualifies(tmp_path: Path) -> None:
    """S16-15c: it comes before the ranking, and whoever it leaves behind goes on."""
    seen = collections.Counter[str]()

    def results(game: events.Game) -> driver.Verdict:
        if "e1" not in (game.white, game.black):
            return by_id(game)
        seen["e1"] += 1
        if seen["e1"] <= 3:
            return by_id(game)
        return ("0-1" if game.white == "e1" else "1-0"), Ending.STALL

    played = league(tmp_path, CHAIN + "disqualify_after = 3\n", results).play()
    rows = played.state.events["league"].rows
    assert [row.engine for row in rows] == ["e2", "e3", "e4", "e1"]
    assert [row.games for row in rows] == [4, 4, 4, 0]
    assert played.state.events["final"].entrants == ("e2", "e3")
    crashes = model.Criterion.CRASHES
    final = played.state.events["final"].rows
    assert [row.tiebreaks[crashes] for row in (*rows, *final)] == [0, 0, 0, 3, 0, 0]  # S16-15e


def test_crashes_against_a_replaced_engine_stay_counted(tmp_path: Path) -> None:
    """S16-15d: its games are annulled, who crashed in them has crashed; nothing else counts."""

    def results(game: events.Game) -> driver.Verdict:
        if game.event == "league" and {game.white, game.black} == {"e1", "e2"}:
            return ("0-1" if game.white == "e2" else "1-0"), Ending.DISCONNECT
        return DRAW

    text = CHAIN + "disqualify_after = 3\n"
    played = league(tmp_path, text, results, double_rounds=2).play(13)
    scores = played.state.events["league"].tally.scores
    assert scores["e2"].crashes == 2
    driver.paused(played)
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, "annul", *WHY))
    counted = played.state.events["league"].tally
    assert counted.scores["e2"].crashes == counted.crashed["e2"] == 2
    assert counted.scores["new"] == dataclasses.replace(counted.scores["new"], crashes=0, losses=0)
    assert sum(score.wins + score.losses for score in counted.scores.values()) == 0
    again = driver.Driver.replayed(played.journal)
    assert again.state.events["league"].tally.scores == counted.scores


CORRECTED: Final = {
    "adjudicate": lambda now, game, **told: corrections.adjudicate(
        now, game, "0-1" if now.game(game).finished.result == "0-1" else "1-0", *WHY, **told
    ),
    "replay": lambda now, game, **told: corrections.replay(now, game, *WHY, **told),
    "void": lambda now, game, **told: corrections.void(now, game, *WHY, **told),
}


def crashing(tmp_path: Path, engine: str, *, least: int = 3) -> driver.Driver:
    """Play a league of e1 to e4 until an engine has crashed in its first two games."""

    def results(game: events.Game) -> driver.Verdict:
        if engine in (game.white, game.black) and game.event == "league":
            return ("0-1" if game.white == engine else "1-0"), Ending.DISCONNECT
        return DRAW

    played = league(tmp_path, f"{CHAIN}disqualify_after = {least}\n", results)
    played.settle()
    while played.state.events["league"].tally.crashed.get(engine, 0) < 2:
        played.play_one()
        played.settle()
    return driver.paused(played)


@pytest.mark.parametrize("verb", CORRECTED)
def test_a_crash_stays_a_fact_when_its_games_result_is_set(tmp_path: Path, verb: str) -> None:
    """S16-12b, S16-15c, S16-15d: the third crash disqualifies, whatever became of the first."""
    played = crashing(tmp_path, "e1")
    tally = lambda: played.state.events["league"].tally  # noqa: E731 - made again by each change
    first = next(game for game in played.state.games.values() if "e1" in game.players)
    played.append(CORRECTED[verb](played.state, first.id))
    assert tally().scores["e1"].crashes == tally().crashed["e1"] == 2
    driver.resumed(played).play()
    (out,) = [e.data for e in played.journal if e.kind == entries.ENGINE_EXCLUDED]
    assert (out["engine"], out["crashes"]) == ("e1", 3)
    again = driver.Driver.replayed(played.journal)
    assert again.state.events["league"].tally.scores == tally().scores


@pytest.mark.parametrize("verb", CORRECTED)
def test_the_organizers_take_a_crash_back_by_name(tmp_path: Path, verb: str) -> None:
    """S16-15c: by the engine's name, once it is proven that it was not at fault."""
    played = crashing(tmp_path, "e1")
    first = next(game for game in played.state.games.values() if "e1" in game.players)
    rival = next(engine for engine in first.players if engine != "e1")
    with pytest.raises(errors.RefusedError, match=f"no crash of '{rival}'.*e1 crashed"):
        CORRECTED[verb](played.state, first.id, uncrashed=rival)
    played.append(CORRECTED[verb](played.state, first.id, uncrashed="e1"))
    assert played.state.events["league"].tally.scores["e1"].crashes == 1


def test_a_void_game_of_a_superfinal_is_played_again(tmp_path: Path) -> None:
    """S16-8a, S16-8b, S17-8b: all its games count, each opening with both colours."""
    played = driver.Driver.launched(driver.load(tmp_path, driver.season_text(4)), by_id)
    played.settle()
    while played.state.events["final"].tally.games < 2:
        played.play_one()
        played.settle()
    driver.paused(played)
    first, *_, last = (played.state.game(game) for game in played.state.events["final"].order)
    with pytest.raises(errors.RefusedError, match="S16-8a, S16-8b"):
        corrections.void(played.state, last.id, *WHY)
    played.append(corrections.void(played.state, first.id, *WHY))
    final = driver.resumed(played).play().state.events["final"]
    again = played.state.game(f"{first.id}.replay1")
    assert (again.white, again.black, again.opening) == (first.white, first.black, first.opening)
    assert final.tally.games == 4
    assert [row.games for row in final.rows] == [4, 4]


def test_a_result_that_is_set_twice_keeps_the_crash(tmp_path: Path) -> None:
    """S16-15d: also after a void, and a second word about the same game."""
    played = crashing(tmp_path, "e1")
    first = next(game for game in played.state.games.values() if "e1" in game.players)
    for verb in ("adjudicate", "void", "adjudicate"):
        played.append(CORRECTED[verb](played.state, first.id))
        assert played.state.events["league"].tally.scores["e1"].crashes == 2


def test_a_crash_in_a_game_that_a_substitute_plays_again_stays(tmp_path: Path) -> None:
    """S16-15d: who crashed against the engine that was replaced has crashed."""
    played = crashing(tmp_path, "e1")
    game = next(game for game in played.state.games.values() if "e1" in game.players)
    rival = next(engine for engine in game.players if engine != "e1")
    played.append(amend_substitute.replace(played.state, "league", rival, NEW, "replay", *WHY))
    assert played.state.events["league"].tally.scores["e1"].crashes == 2


def test_who_cannot_play_the_event_is_out_and_has_not_crashed(tmp_path: Path) -> None:
    """FRC-1c: refused at its first handshake; its other games are not played, nobody gains."""
    played = league(tmp_path, f"{CHAIN}disqualify_after = 3\n", by_id)
    played.settle()
    while "e4" not in (game := played.state.game(played.state.ready_game() or "")).players:
        played.play_one()
        played.settle()
    side: contract.Side = "white" if game.white == "e4" else "black"
    fact = driver.finished(
        game.id,
        played.start(game.id),
        ("0-1" if side == "white" else "1-0", Ending.DISCONNECT),
        played.now_ms,
    ).model_copy(
        update={"refused": True, "note": "cannot play this game: it has no option UCI_Chess960"}
    )
    played.append([contract.Draft("game_finished", fact.model_dump(mode="json"))], "worker")
    league_ = played.play().state.events["league"]
    left = league_.excluded["e4"]
    assert (left.cause, left.crashes) == ("refusal", 0)
    assert "UCI_Chess960" in left.reason
    assert league_.rows[-1].engine == "e4"
    assert league_.rows[-1].tiebreaks[model.Criterion.CRASHES] == 0
    assert played.state.finished


VACANT: Final = """
[[event]]
id = "second"
name = "Second"
format = { kind = "round-robin" }
entrants = ["e5", "e6"]
time_control = "30+5"
promote = [{ ranks = [1, 2], to = "final" }]
"""


def vacant(tmp_path: Path, to: str = "second") -> driver.Driver:
    """Play a league of e1 to e4 whose first two go on and that all but e1 leave by a crash."""

    def results(game: events.Game) -> driver.Verdict:
        crashed = game.white if game.white != "e1" else game.black
        if game.event != "league" or crashed == "e1":
            return by_id(game)
        return ("0-1" if crashed == game.white else "1-0"), Ending.DISCONNECT

    text = driver.season_text(7).replace('"roster"', '["e1", "e2", "e3", "e4"]', 1)
    text = text.replace(
        "promote = [{ top = 2", f"disqualify_after = 1\n{CHAIN}promote = [{{ top = 2"
    )
    if to == "second":
        head, mark, tail = text.rpartition("[[event]]")
        text = head.replace('to = "final"', 'to = "second"') + VACANT + mark + tail
    return driver.Driver.launched(driver.load(tmp_path, text), results).play()


def test_a_place_that_only_a_disqualified_engine_is_left_for_is_asked_about(
    tmp_path: Path,
) -> None:
    """S16-15c, S17-15c: the organizers leave it empty; the next event is that much smaller."""
    played = vacant(tmp_path)
    league_ = played.state.events["league"]
    (asked,) = decisions.outstanding(played.state)
    assert (asked.place, asked.to, len(league_.excluded)) == (2, "second", 3)
    assert asked.engines == (league_.rows[1].engine,)
    (need,) = needs.of_season(played.state)
    choice = f"choose {asked.engines[0]}, another engine, or nobody: the place stays empty"
    assert (need.offers, choice in need.text) == ((*asked.engines, "nobody"), True)
    with pytest.raises(errors.UsageError, match="--reason"):
        decisions.decide(played.state, asked.decision, ["nobody"], "ann", "")
    played.append(decisions.decide(played.state, asked.decision, ["nobody"], *WHY))
    again = driver.Driver.replayed(played.play().journal)
    assert again.state.events["second"].entrants == ("e5", "e6", "e1")
    assert again.state.finished


@pytest.mark.parametrize("named", ["e7", "e3"])
def test_the_organizers_name_another_engine_for_the_place(tmp_path: Path, named: str) -> None:
    """S16-15c: one that played nowhere, or a disqualified one; none that is there already."""
    played = vacant(tmp_path)
    (asked,) = decisions.outstanding(played.state)
    for engine, why in (("e1", "already"), ("e5", "another way"), ("e9", "no engine")):
        with pytest.raises(errors.RefusedError, match=why):
            decisions.decide(played.state, asked.decision, [engine], *WHY)
    played.append(decisions.decide(played.state, asked.decision, [named], *WHY))
    assert played.play().state.events["second"].entrants == ("e5", "e6", "e1", named)
    assert played.state.finished


def test_a_match_is_not_left_without_a_player(tmp_path: Path) -> None:
    """S16-15c, S16-8a: the Superfinal has two, so somebody is named."""
    played = vacant(tmp_path, to="final")
    (asked,) = decisions.outstanding(played.state)
    with pytest.raises(errors.RefusedError, match="final would have a field of 1"):
        decisions.decide(played.state, asked.decision, ["nobody"], *WHY)
    played.append(decisions.decide(played.state, asked.decision, ["e7"], *WHY))
    assert played.play().state.events["final"].entrants == ("e1", "e7")


def test_a_disqualification_takes_questions_about_its_games_with_it(tmp_path: Path) -> None:
    """S16-15c: a game that waits for the organizers' word is cancelled like all others."""

    def results(game: events.Game) -> driver.Verdict:
        return ("0-1", Ending.DISCONNECT) if game.id == "league.12" else DRAW

    text = f'{CHAIN}disqualify_after = 1\ninterruptions = "s16"\n'
    played = league(tmp_path, text, results)
    played.settle()
    out = played.state.game("league.12").white
    while out not in played.state.game(played.state.ready_game() or "").players:
        played.play_one()
    asked = played.state.ready_game() or ""
    played.interrupt(asked, played.start(asked), ply=80)
    seven = interruption.Facts(ply=80, engine_plies=4, men=7)
    played.append(season_interruption.judged_by(played.state, seven))
    assert season_interruption.outstanding(played.state)
    played.play()
    assert played.state.game(asked).cancelled
    assert not season_interruption.outstanding(played.state)
    assert played.state.events["league"].rows[-1].engine == out


# -- seats ---------------------------------------------------------------------------


@pytest.fixture(name="listed")
def _listed(tmp_path: Path) -> driver.Driver:
    """A league of e1 to e4 whose best meets e5, who waits in the final; e6 plays nowhere."""
    whole = driver.season_text(6).replace('"roster"', '["e1", "e2", "e3", "e4"]')
    whole = whole.replace("top = 2", "top = 1").replace(
        "games = 4 }", 'games = 4 }\nentrants = ["e5"]'
    )
    return driver.Driver.launched(driver.load(tmp_path, whole), by_id)


def test_no_engine_enters_an_event_twice(listed: driver.Driver) -> None:
    """A seat is refused to who has another one there, or may still earn it."""
    played = driver.paused(listed.play(2))
    take = {name: played.state.engines[name] for name in ("e1", "e5", "e6")}
    with pytest.raises(errors.RefusedError, match="e5 may come into final"):
        amend_substitute.replace(played.state, "league", "e2", take["e5"], "keep", *WHY)
    with pytest.raises(errors.RefusedError, match="e1 may come into final"):
        amend_substitute.replace(played.state, "final", "e5", take["e1"], "keep", *WHY)
    with pytest.raises(errors.RefusedError, match="e5 may come into final"):
        amend_substitute.replace(played.state, "final", "e1", take["e5"], "keep", *WHY)
    with pytest.raises(errors.RefusedError, match="e6 has no seat in final"):
        amend_substitute.replace(played.state, "final", "e6", NEW, "keep", *WHY)
    assert amend_substitute.replace(played.state, "league", "e2", take["e6"], "keep", *WHY)


def test_the_next_of_the_standings_may_take_a_seat(listed: driver.Driver) -> None:
    """CUP-1c: once the promoted are known the others may come in, and enter once."""
    played = at_the_gate(listed)
    second = played.state.engines["e2"]
    played.append(amend_substitute.replace(played.state, "final", "e1", second, "keep", *WHY))
    assert sorted(played.play().state.events["final"].entrants) == ["e2", "e5"]


def test_a_seat_goes_from_hand_to_hand(season17: load.Loaded) -> None:
    """Who takes another's seat keeps its own given away, and may come back to it."""
    event = events.EventState(season17.season.event("l1-gpu"))
    for engine, substitute in (("gpu-2", "new"), ("gpu-3", "other"), ("new", "gpu-3")):
        event.give_seat(engine, substitute)
    assert [event.seat(f"gpu-{number}") for number in (1, 2, 3)] == ["gpu-1", "gpu-3", "other"]
    event.give_seat("gpu-3", "third")
    event.give_seat("other", "gpu-3")
    assert event.substitutes == {"gpu-2": "third"}


def test_who_comes_in_its_own_right_leaves_the_seat_that_it_took(listed: driver.Driver) -> None:
    """No engine enters twice, also where results were taken back after it took a seat."""
    played = driver.paused(at_the_gate(listed))
    second = played.state.engines["e2"]
    played.append(amend_substitute.replace(played.state, "final", "e5", second, "keep", *WHY))
    for game in [g for g in played.state.games.values() if {"e1", "e2"} == {*g.players}]:
        result: contract.Result = "1-0" if game.white == "e2" else "0-1"
        cascade = corrections.hanging(played.state, "league")
        played.append(corrections.adjudicate(played.state, game.id, result, *WHY, cascade))
    assert driver.resumed(played).play().state.events["final"].entrants == ("e5", "e2")


def test_a_seat_that_was_given_away_is_not_earned_anew(listed: driver.Driver) -> None:
    """An engine whose place in a later event is another's takes no seat that leads there."""
    played = driver.paused(listed.play(2))
    played.append(amend_substitute.replace(played.state, "final", "e5", NEW, "keep", *WHY))
    for engine in ("e5", "new"):
        taker = played.state.engines[engine]
        with pytest.raises(errors.RefusedError, match="may come into final"):
            amend_substitute.replace(played.state, "league", "e2", taker, "keep", *WHY)


# -- ratings -------------------------------------------------------------------------


def test_kept_games_rate_who_played_them(tmp_path: Path) -> None:
    """S16-14d: a substitute has the seat's points, not the other engine's rated games."""
    played = driver.paused(league(tmp_path, CHAIN, by_id).play(7))
    before = rating_list.results([played.state])
    played.append(amend_substitute.replace(played.state, "league", "e1", NEW, "keep", *WHY))
    assert rating_list.results([played.state]) == before
    done = next(g for g in played.state.events["league"].order if _white(played, g) == "new")
    played.append(corrections.replay(played.state, done, *WHY))
    driver.resumed(played).play(1)
    after = rating_list.results([played.state])
    assert after[:-1] == before
    assert after[-1][0] == "Newcomer"


def _white(played: driver.Driver, game: str) -> str:
    found = played.state.game(game)
    return found.white if found.counts else ""


def test_what_was_scored_without_a_game_is_not_rated(tmp_path: Path) -> None:
    """S16-14b: the list holds games; an unplayed one that the organizers score is none."""
    played = driver.paused(league(tmp_path, CHAIN, by_id).play(3))
    before = rating_list.results([played.state])
    played.append(corrections.adjudicate(played.state, "league.9", "1-0", *WHY))
    assert rating_list.results([played.state]) == before
    played.append(corrections.adjudicate(played.state, "league.1", "1/2-1/2", *WHY))
    assert rating_list.results([played.state])[0][2] == "1/2-1/2"


def test_a_new_version_inherits_the_rating(tmp_path: Path) -> None:
    """N1 Engine Ratings: what an update says of its rating is not where the engine starts."""
    whole = driver.season_text().replace(
        'command = ["engine-1"]', 'command = ["engine-1"]\nrating = 2900'
    )
    played = at_the_gate(driver.Driver.launched(driver.load(tmp_path, whole), by_id))
    entry = engine_update.entries_of(played.state)["e1"].model_copy(update={"rating": 3100})
    played.append(engine_update.update(played.state, entry, "final", played.now_ms, *WHY))
    assert played.state.engines["e1"].rating == 3100
    assert rating_list.first_ratings([played.state])["Engine 1"] == 2900


def test_who_was_disqualified_has_finished_no_event(tmp_path: Path) -> None:
    """S16-14e: its rating stays provisional, in the list as in the tables."""

    def results(game: events.Game) -> driver.Verdict:
        return ("0-1", Ending.STALL) if game.white == "e4" else by_id(game)

    played = league(tmp_path, CHAIN + "disqualify_after = 1\n", results).play()
    assert rating_list.established([played.state]) == {"Engine 1", "Engine 2", "Engine 3"}


# -- matches and rounds --------------------------------------------------------------


def test_a_match_is_corrected_pair_by_pair(tmp_path: Path) -> None:
    """S16-8b: its pairs rest on no results, so any may change until a set follows them."""
    whole = driver.season_text().replace("games = 4", f"games = 8, extensions = [{RAPID}, {BLITZ}]")
    played = driver.Driver.launched(driver.load(tmp_path, whole), driver.drawn).play(12 + 5)
    driver.paused(played)
    played.append(corrections.replay(played.state, "final.2", *WHY))
    played.append(corrections.adjudicate(played.state, "final.1", "1-0", *WHY))
    played.append(corrections.adjudicate(played.state, "final.1", "1/2-1/2", *WHY))
    driver.resumed(played)
    assert played.state.ready_game() == "final.2.replay1"
    played.play(1 + 3 + 1)
    driver.paused(played)
    with pytest.raises(errors.RefusedError, match=r"rounds 5, 6 of final were paired"):
        corrections.adjudicate(played.state, "final.1", "1-0", *WHY)
    played.append(corrections.adjudicate(played.state, "final.9", "1-0", *WHY))
    assert driver.resumed(played).play().state.events["final"].rows[0].half_points == 13


def test_a_refusal_speaks_of_one_round_as_of_one(tmp_path: Path) -> None:
    """Only the rounds that are paired already are named, and one of them is no `rounds`."""
    whole = driver.season_text(engines=6).replace(
        'format = { kind = "round-robin", double_rounds = 1 }',
        'format = { kind = "swiss", rounds = 3 }',
    )
    played = driver.Driver.launched(driver.load(tmp_path, whole)).play(4)
    driver.paused(played)
    with pytest.raises(errors.RefusedError, match=r"^round 2 of league was paired on the result"):
        corrections.adjudicate(played.state, "league.1", "1/2-1/2", *WHY)


@pytest.mark.parametrize(
    ("number", "first"), [(1, 5), (4, 5), (5, 7), (6, 7), (7, 10), (9, 10), (10, 13), (14, 16)]
)
def test_what_is_built_on_a_pair_of_games(number: int, first: int) -> None:
    """S16-8c/d: the pairs of a set lead to the set behind it, and to no earlier one."""
    sets = (model.Extension(games=4), model.Extension(games=6, repeat=True))
    assert match.Match(8, extensions=sets).built_from(number) == first


def test_what_is_built_on_a_round() -> None:
    """A round robin rests on nothing; in Swiss and knockout the next round rests on each."""
    specs: list[model.Format] = [
        model.RoundRobin(kind="round-robin"),
        model.Swiss(kind="swiss", rounds=3),
        model.Knockout(kind="knockout", pairs=2),
    ]
    built = [registry.build(spec, base.Field(8)).built_from(2) for spec in specs]
    assert built == [None, 3, 3]


def test_every_opening_is_drawn_before_any_comes_again(tmp_path: Path) -> None:
    """S16-8c/d: also where one of the earlier games began from the start position."""
    whole = driver.season_text().replace("games = 4", f"games = 4, extensions = [{RAPID}, {BLITZ}]")

    def results(game: events.Game) -> driver.Verdict:
        won = game.event != "final" or game.number == 4 + 4 + 2 * 5
        return by_id(game) if won else DRAW

    loaded = driver.load(tmp_path, whole + driver.SIDE)
    played = driver.Driver.launched(loaded, results).play()
    final = played.state.events["final"]
    assert played.state.events["side"].ranked_ms < final.ranked_ms  # type: ignore[operator]
    replayed = [played.state.game(game).opening for game in final.order[4::2]]
    assert len(replayed) == len(set(replayed)) == 7
    assert None in replayed


def test_annulled_points_rank_no_opponents_in_a_swiss() -> None:
    """N1 Tiebreaks: the next round goes by the opponents' scores that the table shows."""
    games = [
        base.Game(0, 1, 1, (2, 0)),  # 0 leaves: what it took of 1 is annulled
        base.Game(2, 3, 1, (0, 2)),
    ]
    played = base.History(1, games.copy, out=[0])
    ranked = swiss.ranking(4, "opponents-score", played)
    assert [player.number for player in ranked] == [3, 2, 1]


def test_who_has_left_is_no_places_rival(tmp_path: Path) -> None:
    """S16-15c, S16-12c: annulled games decide no direct encounter of those who stay."""

    def results(game: events.Game) -> driver.Verdict:
        pair = {game.white, game.black}
        if "e4" in pair:  # e1 and e2 lose to it, e3 beats it: all annulled with its crashes
            lost = game.white == "e4" if "e3" in pair else game.white != "e4"
            return ("0-1" if lost else "1-0"), Ending.DISCONNECT if "e3" in pair else Ending.TIME
        return DRAW

    text = CHAIN + "disqualify_after = 2\n"
    played = league(tmp_path, text, results).play()
    rows = played.state.events["league"].rows
    assert [(row.engine, row.half_points) for row in rows[:3]] == [("e1", 4), ("e2", 4), ("e3", 4)]
    assert {row.rank for row in rows[:3]} == {1}
    assert (rows[3].engine, rows[3].decided_by) == ("e4", standings.EXCLUDED)
    (asked,) = decisions.outstanding(played.state)
    assert (asked.engines, asked.choose) == (("e1", "e2", "e3"), 2)
    assert views.season(played.state)["decisions"]
