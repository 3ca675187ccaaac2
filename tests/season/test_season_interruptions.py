"""Interrupted games in the season: verdicts journaled, games resumed, moved, decided, asked."""

from __future__ import annotations

from pathlib import Path

import chess
import driver
import pytest

import orchestrator
from orchestrator import contract
from orchestrator.arbiter import game_zip, record
from orchestrator.arbiter.adjudication import interruption
from orchestrator.common import errors
from orchestrator.season import decisions, needs, views
from orchestrator.season import interruption as season_interruption
from orchestrator.season.amend import operations
from orchestrator.season.file import load
from orchestrator.season.fold import entries, orders, state

MOVES = ("a7a6", "a2a3", "b7b6", "b2b3", "c7c6", "c2c3")


def launched(folder: Path, rule: str) -> driver.Driver:
    """Launch a league and a final under a rule of interruptions."""
    text = driver.season_text().replace('book = "short"', f'book = "short"\ninterruptions = {rule}')
    played = driver.Driver.launched(driver.load(folder, text))
    played.settle()
    return played


def interrupt(
    season: driver.Driver, told: list[contract.PlyRecord], **wish: entries.Then
) -> entries.AttemptJudged:
    """Begin the ready game, interrupt it after these plies, and journal the verdict."""
    game = season.state.ready_game()
    assert game is not None
    attempt = season.start(game)
    if wish:
        season.append(operations.abort(season.state, "ann", "fire", **wish))
    season.interrupt(game, attempt, told[-1].ply if told else 0, "operator" if wish else "power")
    assert season.state.ready_game() is None, "nothing is played before the verdict"
    season.append(season_interruption.judge(season.state, told))
    facts = [e.data for e in season.journal if e.kind == entries.ATTEMPT_JUDGED]
    return entries.AttemptJudged.model_validate(facts[-1])


def test_a_resumed_game_is_offered_with_its_plies_and_clocks(tmp_path: Path) -> None:
    """Both sides get back what their own last move took; the game keeps its place."""
    season = launched(tmp_path, '"s16"')
    told = driver.plies(season, "league.1", 4)
    fact = interrupt(season, told)
    assert fact.scenario == interruption.Scenario.RESUMED
    assert season.state.ready_game() == "league.1"
    progress = orders.game_order(season.state, "league.1").progress
    assert progress is not None
    assert list(progress.plies) == told
    assert (progress.white_clock_ns, progress.black_clock_ns) == (1_007_000_000, 2_007_000_000)
    assert views.season(season.state)["interruptions"][0]["ply"] == 4


@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ('{ rules = "s16", excused_flags = 2 }', [2, 1, 0, 0]),
        ('{ rules = "s16", excused_flags = false }', [None] * 4),
        ('"s16"', [5, 4, 3, 2]),
    ],
)
def test_an_engines_excused_losses_are_counted_and_limited(
    tmp_path: Path, rule: str, left: list[int | None]
) -> None:
    """Each loss that a host's stall excused leaves one less, in all games of the engine."""
    season = launched(tmp_path, rule)
    found: list[int | None] = []
    for number in range(4):
        game = season.state.ready_game()
        assert game is not None
        order = orders.game_order(season.state, game)
        found.append(order.excuses.get("white"))
        assert order.excuses.get("black") == left[0], "only the late engine's are counted"
        attempt = season.start(game)
        season.interrupt(game, attempt, excused="white")
        season.append(season_interruption.judge(season.state, []))
        shown = next(
            one for one in views.season(season.state)["events"] if one["event"] == "league"
        )
        assert list(shown["excused"].values()) == [number + 1]
    assert found == left


def test_an_attempt_without_a_new_ply_gets_no_second_compensation(tmp_path: Path) -> None:
    """Nothing was taken off the clocks since; the plies stay, and three such attempts hold."""
    season = launched(tmp_path, '"cup"')
    interrupt(season, driver.plies(season, "league.1", 4))
    for _ in range(2):
        fact = interrupt(season, [])
        assert (fact.progress.white_clock_ns, fact.progress.ply) == (1_007_000_000, 4)
    season.settle()
    assert season.state.fruitless == 2
    assert not season.state.held
    interrupt(season, driver.plies(season, "league.1", 4))  # repeats the known plies only
    season.settle()
    assert season.state.held


def test_a_second_interruption_goes_on_from_all_plies(tmp_path: Path) -> None:
    """The attempt's plies follow those of the one before, and the record tells of both."""
    season = launched(tmp_path, '"frc"')
    interrupt(season, driver.plies(season, "league.1", 2))
    fact = interrupt(season, driver.plies(season, "league.1", 6)[2:])
    assert [ply.ply for ply in fact.progress.plies] == [1, 2, 3, 4, 5, 6]
    assert [one.ply for one in fact.progress.interruptions] == [2, 6]


def test_a_verdict_with_a_result_ends_the_game(tmp_path: Path) -> None:
    """Result and verdict stand together in the journal; crashes are not counted."""
    season = launched(tmp_path, '"s17"')
    interrupt(season, driver.plies(season, "league.1", 4, cp=-1001))
    done = season.state.game("league.1").finished
    assert done is not None
    assert (done.result, done.loser, done.by_verdict) == ("0-1", "white", True)
    assert season.state.ready_game() == "league.2"
    assert not any(s.crashes for s in season.state.events["league"].tally.scores.values())
    made = season_interruption.record(season.state, done)
    assert made.outcome.ending is contract.Ending.INTERRUPTED
    text = record.pgn(made)
    assert '[Result "0-1"]' in text
    assert "-10.01" in " ".join(text.split())
    assert game_zip.unpack(game_zip.pack(made, text, b""))["game.pgn"].decode() == text


def test_the_end_of_the_round_is_the_operators_choice(tmp_path: Path) -> None:
    """CUP-7c: the other games of the round go first; the game then goes on from its plies."""
    season = launched(tmp_path, '"cup"')
    before = list(season.state.events["league"].order)
    interrupt(season, driver.plies(season, "league.1", 4), then="end-of-round")
    assert season.state.events["league"].order[:2] == ["league.2", "league.1"]
    assert season.state.ready_game() == "league.2"
    season.play_one()
    assert season.state.ready_game() == "league.1"
    assert season.state.game("league.1").progress is not None
    assert sorted(season.state.events["league"].order) == sorted(before)
    season.play()
    assert season.state.finished


def test_an_event_may_always_take_the_end_of_the_round(tmp_path: Path) -> None:
    """The policy of the event moves a game; the operator's word comes before it."""
    rule = '{ rules = "cup", when = "end-of-round" }'
    season = launched(tmp_path, rule)
    interrupt(season, driver.plies(season, "league.1", 4))
    assert season.state.ready_game() == "league.2"
    season = launched(tmp_path, rule)
    interrupt(season, driver.plies(season, "league.1", 4), then="at-once")
    assert season.state.ready_game() == "league.1"


def test_an_operator_may_restart_but_not_undo_a_result(tmp_path: Path) -> None:
    """``--then restart`` begins again after the opening, unless the evals have decided."""
    season = launched(tmp_path, '"s16"')
    fact = interrupt(season, driver.plies(season, "league.1", 4), then="restart")
    assert fact.scenario == interruption.Scenario.RESTARTED
    assert fact.progress.plies == ()
    fact = interrupt(season, driver.plies(season, "league.1", 4, cp=2000), then="restart")
    assert fact.scenario == interruption.Scenario.WON


def test_the_organizers_are_asked_while_others_play(tmp_path: Path) -> None:
    """Seven men and no tables: the game stands behind the others until it is answered."""
    season = launched(tmp_path, '{ rules = "s16", tablebase_men = 7 }')
    question = "league.1:interruption"
    game = season.state.ready_game()
    season.interrupt("league.1", season.start(game or ""), ply=4)
    found = interruption.Facts(90, 4, 7, contract.Score(cp=300), contract.Score(cp=300))
    season.append(
        season_interruption.judged_by(season.state, found, driver.plies(season, "league.1", 4))
    )
    assert season_interruption.outstanding(season.state) == [question]
    (need,) = needs.of_season(season.state)
    assert need.urgent
    assert need.text == f"{question}: choose 1-0, 0-1, 1/2-1/2, resume"
    assert season.state.events["league"].order[-1] == "league.1"
    season.play()
    assert season.state.ready_game() is None
    assert not season.state.finished
    with pytest.raises(errors.UsageError, match="allowed: 1-0"):
        season_interruption.answer(season.state, question, "2-0", "ann", "table")
    with pytest.raises(errors.UsageError, match="reason"):
        season_interruption.answer(season.state, question, "1-0", "ann", "")
    with pytest.raises(errors.RefusedError, match=question):
        season_interruption.answer(season.state, "league.2:interruption", "1-0", "ann", "table")
    season.append(
        season_interruption.answer(season.state, question, "resume", "ann", "tables are wrong")
    )
    assert season.state.ready_game() == "league.1"
    assert season.state.game("league.1").progress is not None
    season.play()
    assert season.state.finished
    assert not decisions.outstanding(season.state)


def test_unplayable_plies_are_left_to_the_organizers(tmp_path: Path) -> None:
    """A ply that is not legal proves nothing; any answer goes on from the plies before it."""
    season = launched(tmp_path, '"s16"')
    told = driver.plies(season, "league.1", 2)
    broken = [told[0], told[1].model_copy(update={"move": "a1a8"})]
    assert interrupt(season, broken).asks
    question = "league.1:interruption"
    drawn = season_interruption.answer(season.state, question, "1/2-1/2", "ann", "nobody knows")
    assert drawn[-1].data["result"] == "1/2-1/2"
    season.append(
        season_interruption.answer(season.state, question, "resume", "ann", "as far as we know")
    )
    progress = orders.game_order(season.state, "league.1").progress
    assert progress is not None
    assert list(progress.plies) == told[:1]


def test_a_hall_that_comes_back_in_time_needs_no_verdict(tmp_path: Path) -> None:
    """A spool that is accepted before the verdict is the result."""
    season = launched(tmp_path, '"s16"')
    attempt = season.start("league.1")
    season.interrupt("league.1", attempt, ply=4)
    season.finish("league.1", attempt, ("1-0", contract.Ending.CHECKMATE))
    assert season_interruption.judge(season.state, ()) == []
    assert season.state.ready_game() == "league.2"


def test_a_replayed_game_begins_with_no_progress(tmp_path: Path) -> None:
    """What was played of a game that counts no longer is not played on."""
    season = launched(tmp_path, '"s16"')
    interrupt(season, driver.plies(season, "league.1", 4))
    season.play(1)
    replay = entries.GameVoided(game="league.1", replay="league.1.replay1", reason="r", name="n")
    season.append([contract.Draft(entries.GAME_VOIDED, replay.model_dump(mode="json"))])
    assert season.state.game("league.1.replay1").progress is None


def test_the_fold_of_any_prefix_agrees(tmp_path: Path) -> None:
    """Verdicts are facts: folding the journal again computes nothing."""
    season = launched(tmp_path, '"s16"')
    interrupt(season, driver.plies(season, "league.1", 4), then="end-of-round")
    season.play()
    again = state.fold(season.journal)
    assert again.events["league"].order == season.state.events["league"].order
    assert again.games == season.state.games


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ('"s16"', interruption.PRESETS["s16"]),
        ('{ rules = "cup", win_cp = false }', {"rules": "cup", "win_cp": None, "draw_cp": 15}),
        ("{ compensation_ms = 500 }", {"rules": "", "win_cp": None, "compensation_ms": 500}),
    ],
)
def test_a_season_file_chooses_the_rules(
    tmp_path: Path, rule: str, expected: contract.Interruptions | dict[str, object]
) -> None:
    """By a text's name, with keys of its own, or without a name."""
    chosen = launched(tmp_path, rule).state.events["league"].spec.interruptions
    wanted = expected if isinstance(expected, dict) else expected.model_dump()
    assert wanted.items() <= chosen.model_dump().items()


def test_a_rule_that_is_none_is_refused(tmp_path: Path) -> None:
    """The error names the place and what is allowed."""
    with pytest.raises(errors.SeasonFileError, match="interruptions"):
        launched(tmp_path, '"s18"')


@pytest.mark.parametrize("season", ["season16", "season17", "cup", "frc", "ntcec1"])
def test_the_seasons_that_come_along_name_their_text(season: str) -> None:
    """Every event of a ready-made season plays by its own text's rules of interruption."""
    path = Path(orchestrator.__file__).parent / "seasons" / f"{season}.toml"
    texts = {"season16": "s16", "season17": "s17"}
    for event in load.load(path).season.events:
        assert event.interruptions == interruption.PRESETS[texts.get(season, season)]


def test_a_result_stands_where_the_organizers_gave_it(tmp_path: Path) -> None:
    """The order of play tells when a result came, also for a game that was asked about."""
    season = launched(tmp_path, '"s16"')
    season.interrupt("league.1", season.start("league.1"), ply=4)
    found = interruption.Facts(90, 4, 7, contract.Score(cp=300), contract.Score(cp=300))
    season.append(
        season_interruption.judged_by(season.state, found, driver.plies(season, "league.1", 4))
    )
    season.play_one()
    attempt = season.start(season.state.ready_game() or "")
    answer = season_interruption.answer(
        season.state, "league.1:interruption", "1-0", "ann", "table"
    )
    season.append(answer)
    assert season.state.events["league"].order[:3] == ["league.2", "league.1", "league.3"]
    season.finish("league.3", attempt, ("1-0", contract.Ending.CHECKMATE))
    season.play()
    assert season.state.finished


def test_an_answer_takes_no_other_games_verdict_away(tmp_path: Path) -> None:
    """While a second game waits for its verdict, the first one's answer is about the first."""
    season = launched(tmp_path, '"s16"')
    season.interrupt("league.1", season.start("league.1"), ply=4)
    found = interruption.Facts(90, 4, 7, contract.Score(cp=300), contract.Score(cp=300))
    season.append(
        season_interruption.judged_by(season.state, found, driver.plies(season, "league.1", 4))
    )
    told = driver.plies(season, "league.2", 6)
    season.interrupt("league.2", season.start("league.2"), ply=6)
    season.append(
        season_interruption.answer(season.state, "league.1:interruption", "1-0", "ann", "table")
    )
    assert season.state.game("league.1").finished is not None
    assert season.state.ready_game() is None, "league.2 still waits"
    season.append(season_interruption.judge(season.state, told))
    progress = season.state.game("league.2").progress
    assert progress is not None
    assert list(progress.plies) == told
    assert season.play().state.finished


def test_the_last_position_of_an_interrupted_game_is_that_after_its_plies(tmp_path: Path) -> None:
    """It stands in the record of a game that a verdict has ended (``FinalFen``)."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()))
    season.settle()
    game = season.state.ready_game() or ""
    order, told = orders.game_order(season.state, game), driver.plies(season, game, 6)
    board = chess.Board(order.opening.fen or chess.STARTING_FEN)
    for move in (*order.opening.moves, *(ply.move for ply in told)):
        board.push_uci(move)
    assert interruption.final_fen(order, told) == board.fen()
    assert interruption.final_fen(order, told[:3]) not in {"", board.fen()}
