"""What an act says before and after it: what changes, what follows, whether there is a way back."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator

import driver
import harness
import on_paper
import pytest

from orchestrator import contract
from orchestrator.commands import change_words
from orchestrator.ledger import store
from orchestrator.season import consequences
from orchestrator.season.fold import state

farm, play = harness.farm, on_paper.play
WHY = ("--by", "ann", "--reason", "a question")
NO_WAY_BACK = "it cannot be taken back"
ANNULLED = "league.2 (Engine 2 - Engine 3, 1/2-1/2), league.4 (Engine 1 - Engine 2, 1/2-1/2)"


@pytest.fixture(name="ledger")
def _ledger(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[store.RedisLedger]:
    """A ledger in real Redis with a launched season whose league ends with its organizers."""
    with on_paper.launched(tmp_path, monkeypatch, on_paper.ORGANIZED) as opened:
        yield opened


def dry(*words: str, code: int = 0) -> str:
    """Return what a dry run says; it has written nothing."""
    return farm(*words, "--dry-run", *WHY, code=code)


def test_a_withdrawal_names_all_that_it_takes(ledger: store.RedisLedger) -> None:
    """Annulled and cancelled games, points, places, no way back: before, and the same after."""
    play(ledger, 4)
    farm("pause")
    words = ("withdraw", "e2", "--event", "league")
    before = dry(*words)
    assert "e2 will leave league\n" in before
    assert f"2 games will be annulled: {ANNULLED}\n" in before
    assert "4 games will be cancelled: league.5 (Engine 2 - Engine 4), " in before
    assert re.search(r"points: .*e1 1 to 0.5.*e2 1 to 0 \(place [0-9] to 4\)", before)
    assert before.endswith(f"{NO_WAY_BACK} (nothing was changed)\n")
    after = farm(*words, *WHY)
    assert "e2 has left league; `farm season resume` goes on\n" in after
    assert f"2 games annulled: {ANNULLED}\n" in after
    assert after.splitlines()[3] == before.splitlines()[3], "the same points"
    assert after.endswith(f"{NO_WAY_BACK}\n")


def test_an_adjudication_names_players_and_the_result_that_falls(
    ledger: store.RedisLedger,
) -> None:
    """A typo in the id is seen: who plays, whether it was played, what it was."""
    play(ledger, 3)
    farm("pause")
    played = ("adjudicate", "league.1", "--result", "1-0")
    typo = ("adjudicate", "league.11", "--result", "1-0")
    assert dry(*played).startswith("league.1 (Engine 1 - Engine 4), 1/2-1/2, will be 1-0\n")
    assert dry(*typo).startswith("league.11 (Engine 4 - Engine 2), not played yet, will be 1-0\n")
    assert "e1 0.5 to 1" in dry(*played)
    assert "it can be taken back: `farm game adjudicate`" in dry(*played)
    done = farm(*played, *WHY)
    assert done.startswith("league.1 (Engine 1 - Engine 4), 1/2-1/2, is now 1-0; `farm season")
    before = ledger.last("test")
    for again in (dry(*played, code=3), farm(*played, *WHY, code=3)):
        assert "is 1-0 by the organizers' decision already; nothing would change" in again
    assert ledger.last("test") == before
    assert "is now 1/2-1/2" in farm("adjudicate", "league.1", "--result", "1/2-1/2", *WHY)


def test_a_result_that_stands_by_another_word_is_said(ledger: store.RedisLedger) -> None:
    """The organizers confirm a draw that was played: how it ended changes, no point does."""
    play(ledger, 1)
    farm("pause")
    said = dry("adjudicate", "league.1", "--result", "1/2-1/2")
    assert "will be 1/2-1/2 by organizers, it was by threefold" in said
    assert "points" not in said


def test_a_crash_that_stays_counted_is_said(ledger: store.RedisLedger) -> None:
    """Its result falls, the crash does not, unless it is taken back by the engine's name."""
    folded = play(ledger, 0)
    crash = driver.finished("league.1", "a", ("1-0", driver.Ending.DISCONNECT))
    ledger.append("test", folded.seq, [contract.Draft.of("game_finished", crash)], "worker")
    farm("pause")
    for words in (("replay", "league.1"), ("adjudicate", "league.1", "--result", "0-1")):
        assert "; the crash of e4 stays counted (--take-back-crash e4)\n" in dry(*words)
        assert "stays counted" not in dry(*words, "--take-back-crash", "e4")


def test_what_is_played_again_and_what_falls_are_named(ledger: store.RedisLedger) -> None:
    """A replay, a void game: the result that falls with its players, and the new game's id."""
    play(ledger, 2)
    farm("pause")
    replayed = dry("replay", "league.1")
    assert "will be played again, as league.1.replay1\n" in replayed
    assert "1 game will be annulled: league.1 (Engine 1 - Engine 4, 1/2-1/2)\n" in replayed
    assert "1 game will be played: league.1.replay1 (Engine 1 - Engine 4)\n" in replayed
    assert NO_WAY_BACK in replayed
    void = dry("void", "league.2")
    assert "league.2 (Engine 2 - Engine 3), 1/2-1/2, will count no longer\n" in void
    assert "it can be taken back: `farm game adjudicate` gives it a result" in void
    farm("void", "league.2", *WHY)
    assert "it was annulled" not in dry("adjudicate", "league.1", "--result", "1-0")
    farm("adjudicate", "league.2", "--result", "1-0", *WHY)


def test_what_the_farm_does_next_is_said(ledger: store.RedisLedger) -> None:
    """A decision sends engines on and sets a gate; a cascade says which events begin again."""
    play(ledger, 12)
    said = dry("decide", "league:place-1", "--choose", "e3,e1")
    assert "league:place-1 will be decided: e3, e1\n" in said
    assert "what follows: e3, e1 go on to final; the gate before final opens" in said
    assert NO_WAY_BACK not in said
    play(ledger, 0)
    farm("pause")
    undone = dry("adjudicate", "league.1", "--result", "1-0", "--cascade", "league")
    assert "event league" not in undone, "it is ranked again a moment later"
    assert "what follows: league is ranked: e1, " in undone


def test_a_decision_is_taken_back_as_it_says(ledger: store.RedisLedger) -> None:
    """The command that it names asks the organizers again; a gate's time that falls is told."""
    play(ledger, 12)
    said = farm("decide", "league:place-1", "--choose", "e3,e1", *WHY)
    named = re.search("it can be taken back: `farm (.*?)` of a game of league", said)
    assert named is not None
    play(ledger, 0)
    assert "no decision is waiting" in farm("decisions")
    farm("amend", "gate", "final", "--at", "2036-01-02T18:00+00:00", *WHY)
    farm("pause")
    words = (*named[1].split(), "league.1", "--result", "1/2-1/2")
    before, after = dry(*words), farm(*words, *WHY)
    gate = r"the time set for the gate before final, 2036-01-0[23] .*{}; `farm season amend gate"
    assert re.search(gate.format("will be dropped"), before)
    assert re.search(gate.format("is dropped"), after)
    assert "that --cascade took back do not come back" in before
    assert "the organizers are asked league:place-1" in before
    play(ledger, 0)
    assert "choose 2 of e1, e2, e3, e4" in farm("decisions")
    assert "no game begins before `farm season resume`" in dry(
        "decide", "league:place-1", "--choose", "e3,e1"
    )


def test_a_pause_during_the_last_game_keeps_the_season_open(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so, and so do status and resume; what was the last result is corrected meanwhile."""
    season = driver.season_text(engines=2).replace('break = "10m"\n', "")
    with on_paper.launched(tmp_path, monkeypatch, season) as ledger:
        assert "No game is planned behind it" not in begin(ledger, play(ledger, 0))
        farm("resume")
        begun = play(ledger, 5)
        assert "the season does not end before `farm season resume`" in begin(ledger, begun)
        game = begun.ready_game() or ""
        fact = driver.finished(game, f"{game}-a", ("1/2-1/2", driver.Ending.THREEFOLD))
        now = play(ledger, 0)
        ledger.append("test", now.seq, [contract.Draft.of("game_finished", fact)], "worker")
        assert not play(ledger, 0).over
        assert "every game is played: `farm season resume` ends the season" in farm("status")
        farm("adjudicate", "final.1", "--result", "1-0", "--cascade", "final", *WHY)
        play(ledger, 0)
        resumed = dry("resume")
        assert "what follows: the season is over, its champion is e" in resumed
        assert NO_WAY_BACK in resumed
        farm("resume")
        assert play(ledger, 0).over
        assert "a protest" not in farm("status")
        assert "`farm season import`" in farm("pause", code=3)


def begin(ledger: store.RedisLedger, folded: state.SeasonState) -> str:
    """Begin the game that is ready, pause the season, and return what the pause says."""
    game = folded.ready_game() or ""
    fact = contract.AttemptStarted(
        game=game, attempt=f"{game}-a", hall=driver.HALL, lane="", host="host", worker="worker"
    )
    ledger.append("test", folded.seq, [contract.Draft.of("attempt_started", fact)], "worker")
    return farm("pause", "--reason", "a protest")


def test_resume_names_the_game_behind_the_one_in_flight(ledger: store.RedisLedger) -> None:
    """The pause has said that league.1 is played to its end: it is not the next one."""
    begin(ledger, play(ledger, 0))
    assert "the next game will be league.2\n" in dry("resume")


def test_games_that_are_paired_are_counted_together(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event's rounds are paired one by one: one sum is said, and that a pause keeps it back."""
    season = driver.season_text().replace('id = "league"', 'id = "league"\nbreak = "operator"')
    with on_paper.launched(tmp_path, monkeypatch, season) as ledger:
        play(ledger, 0)
        said = dry("open-gate", "league")
        assert "league begins; 12 games of league are paired\n" in said
        assert "event league will be running, it was gate\n" in said
        farm("pause", "--reason", "lunch")
        waits = "; no game begins before `farm season resume` (paused: lunch)\n"
        assert f"will be open{waits}" in dry("open-gate", "league")
        farm("open-gate", "league", *WHY)
        assert "league begins; 12 games of league are paired\n" in dry("resume")


def test_a_result_that_was_set_without_play_is_not_played_again(
    ledger: store.RedisLedger,
) -> None:
    """Nobody has played it: it is played after all, and no game is annulled."""
    play(ledger, 1)
    farm("pause")
    farm("adjudicate", "league.3", "--result", "1-0", *WHY)
    said = dry("replay", "league.3")
    assert ", will be played after all, as league.3.replay1\n" in said
    assert "1 game will lose the result that was set: league.3 (" in said
    assert "again, as" not in said
    assert "annulled" not in said


def test_a_preview_needs_no_pause_and_says_that_the_act_does(ledger: store.RedisLedger) -> None:
    """What it would change is shown, the refusal with it; a wrong id is told before the pause."""
    play(ledger, 2)
    before = ledger.last("test")
    words = ("withdraw", "e2", "--event", "league")
    said = dry(*words, code=3)
    assert "e2 will leave league\n" in said
    assert "pause the season first" in said
    assert "pause the season first" in farm(*words, *WHY, code=3)
    assert "no game 'league.99'" in dry("void", "league.99", code=3)
    assert ledger.last("test") == before


def test_a_game_is_found_by_the_round_that_page_and_pgn_show(ledger: store.RedisLedger) -> None:
    """Its number decides nothing by itself, since events share it: the error names the id."""
    play(ledger, 1)
    farm("pause")
    refused = dry("adjudicate", "1.1", "--result", "1-0", code=3)
    assert "round 1.1 is league.1 (e1 - e4): give the id" in refused
    assert "round 1.1 is league.1" in farm("trace", "1.1", code=3)


def test_programs_are_told_the_same(ledger: store.RedisLedger) -> None:
    """Whole lists, before and after; no opening and no seed is among them."""
    play(ledger, 4)
    farm("pause")
    words = ("withdraw", "e2", "--event", "league", "--json")
    planned, done = (json.loads(text) for text in (dry(*words), farm(*words, *WHY)))
    assert planned["changes"] == done["changes"]
    assert (planned["dry_run"], done["dry_run"]) == (True, False)
    games = {game["game"]: game["after"] for game in done["changes"]["games"]}
    assert sorted(games.values()) == ["annulled"] * 2 + ["cancelled"] * 4
    assert games["league.2"] == "annulled"
    score = next(each for each in done["changes"]["scores"] if each["engine"] == "e1")
    assert (score["points_before"], score["points_after"]) == (1.0, 0.5)
    assert done["changes"]["taken_back_by"] == ""


OPEN = (
    consequences.TO_PLAY,
    consequences.RUNNING,
    consequences.INTERRUPTED,
    consequences.ASKS,
)


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((was, "1-0") for was in (*OPEN, consequences.CANCELLED, consequences.ANNULLED, "0-1")),
        *((was, consequences.CANCELLED) for was in OPEN),
        *((was, consequences.TO_PLAY) for was in (*OPEN, consequences.NO_GAME)),
        ("1-0", consequences.ANNULLED),
        ("1-0", "1-0"),
        (consequences.ANNULLED, consequences.ANNULLED),
        (consequences.ASKS, consequences.INTERRUPTED),
    ],
)
def test_no_change_of_a_game_is_passed_over(before: str, after: str, *, dry_run: bool) -> None:
    """Whatever becomes of a game, one line names it with its players."""
    game = consequences.GameChange("main.3", "main", "Toga", "Fruit", before, after, "", "")
    change = consequences.Consequences((game,), (), (), (), "", "")
    said = list(change_words.lines(change, dry_run=dry_run))
    assert [line.count("main.3 (Toga - Fruit") for line in said] == [1, 0]


def test_a_pause_is_told_in_its_tense(ledger: store.RedisLedger) -> None:
    """Nothing that a dry run says is said as if it were so; the game in flight is named."""
    folded = play(ledger, 0)
    game = folded.ready_game() or ""
    begun = contract.AttemptStarted(
        game=game, attempt="a", hall=driver.HALL, lane="", host="host", worker="worker"
    )
    ledger.append("test", folded.seq, [contract.Draft.of("attempt_started", begun)], "worker")
    said = dry("pause")
    assert "test will be paused; league.1 (Engine 1 - Engine 4) is in flight" in said
    assert "is paused" not in said
    assert "it can be taken back: `farm season resume`" in said
    ended = dry("abort")
    assert "attempt at league.1 (Engine 1 - Engine 4) will end as an interruption" in ended
    assert "unless the game is over before its hall renews its lease" in ended
    assert "the game is played on from its position" in ended
    assert "begins again after its opening" in dry("abort", "--then", "restart")
    assert "test is paused" in farm("pause")
    assert "test will go on" in dry("resume")


def test_a_gate_that_is_not_set_names_what_sets_it(ledger: store.RedisLedger) -> None:
    """It cannot be opened yet; when it opens can be said already, in a day's date and zone."""
    play(ledger, 1)
    assert "`farm season amend gate final --at TIME`" in dry("open-gate", "final", code=3)
    at = ("amend", "gate", "final", "--at", "2036-01-02T18:00+00:00")
    assert re.search(r"will open by itself 2036-01-0[23] [0-9:]{5} \S+\n", dry(*at))
    farm(*at, *WHY)
    assert "at that time already" in farm(*at, *WHY, code=3)
    plan = ("pause", "--at", "2036-01-02T18:00+00:00")
    farm(*plan, *WHY)
    assert "at that time already" in farm(*plan, *WHY, code=3)


def test_a_drain_is_told_in_its_tense(ledger: store.RedisLedger) -> None:
    """A hall's acts say like all others what changes; what changes nothing is not journaled."""
    ledger.open_hall(driver.HALL, "host", "worker")
    said = dry("drain", driver.HALL)
    assert "worker will end after its running game" in said
    assert said.endswith("(nothing was changed)\n")
    assert "worker ends after" in farm("drain", driver.HALL, *WHY)
    before = ledger.last("farm")
    assert "nothing changes" in farm("drain", driver.HALL, *WHY)
    assert json.loads(farm("drain", driver.HALL, "--json", *WHY))["changed"] is False
    assert ledger.last("farm") == before
    assert "worker will go on" in dry("undrain", driver.HALL)
