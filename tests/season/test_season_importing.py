"""Games that were played elsewhere: mapped onto the schedule, or refused as a whole."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

import driver
import pytest

from orchestrator import contract
from orchestrator.arbiter import record
from orchestrator.audit import reading
from orchestrator.forecast import rating_list
from orchestrator.ops import import_games
from orchestrator.season import verify_seed, views
from orchestrator.season.amend import operations
from orchestrator.season.fold import amendment_entries, entries, events, openings, state

MATE = {
    "1-0": "1. e4 f5 2. d4 g5 3. Qh5# 1-0",
    "0-1": "1. f3 e5 2. g4 Qh4# 0-1",
    "1/2-1/2": "1. Nf3 Nf6 2. Ng1 Ng8 3. Nf3 Nf6 4. Ng1 Ng8 1/2-1/2",
}
SOURCE = import_games.Source("old.pgn", "0" * 64, "the hall has moved", "ann")
SWISS = 'format = { kind = "swiss", rounds = 3 }'


def pgn(white: str, black: str, result: str = "1-0", **tags: str) -> str:
    """Return a game as another program would have written it."""
    told = {"Event": "old", "White": white, "Black": black, "Result": result} | tags
    head = "\n".join(f'[{tag} "{value}"]' for tag, value in told.items())
    return f"{head}\n\n{MATE[result]}"


def paused(tmp_path: Path, text: str = "", games: int = 0) -> driver.Driver:
    """Launch a season, play so many games and pause it."""
    played = driver.Driver.launched(driver.load(tmp_path, text or driver.season_text()))
    played.settle()
    for _ in range(games):
        played.play_one()
        played.settle()
    played.append(operations.pause(played.state, "ann", "an import"))
    return played


def planned(
    played: driver.Driver,
    texts: Sequence[str],
    source: import_games.Source = SOURCE,
    now_ms: int = 0,
) -> import_games.Plan:
    """Plan the import of PGN texts."""
    recorded = list(zip(reading.games("\n\n".join(texts)), texts, strict=True))
    return import_games.plan(played.state, recorded, source, now_ms or played.now_ms)


def due(played: driver.Driver, results: Sequence[str]) -> list[str]:
    """Return the next games of the schedule as PGN with these results."""
    event = played.state.current
    assert event is not None
    waiting = [played.state.game(game) for game in event.order[event.cursor :]]
    return [
        pgn(played.state.engines[game.white].name, played.state.engines[game.black].name, result)
        for game, result in zip(waiting, results, strict=False)
    ]


def test_imported_games_are_the_next_results(tmp_path: Path) -> None:
    """Result, end and checksum stand in the journal; the season goes on behind them."""
    played = paused(tmp_path, games=2)
    plan = planned(played, due(played, ["1-0", "0-1", "1/2-1/2"]))
    assert (plan.problems, plan.doubts) == ([], [])
    assert [line.game for line in plan.lines] == ["league.3", "league.4", "league.5"]
    before = played.state.seq
    assert played.state.events["league"].tally.games == 2  # planning changes nothing
    played.append(plan.drafts)
    assert played.state.seq == before + len(plan.drafts)
    fact = amendment_entries.GamesImported.model_validate(played.journal[before].data)
    assert (fact.sha256, fact.reason, fact.name) == ("0" * 64, "the hall has moved", "ann")
    ends = [game.finished.ending for game in fact.games]
    assert ends == [contract.Ending.CHECKMATE, contract.Ending.CHECKMATE, contract.Ending.THREEFOLD]
    row = views.game(played.state, "league.3")
    assert (row["result"], row["opening"]) == ("1-0", "")
    played.append(operations.resume(played.state, "ann", ""))
    assert played.state.ready_game() == "league.6"
    assert played.play().state.finished
    assert state.fold(played.journal).champion == played.state.champion


def test_results_that_organizers_had_set_are_taken_over(tmp_path: Path) -> None:
    """Of another season's record: against the board with a doubt, without a move without one."""
    played = paused(tmp_path)
    mate, unplayed = due(played, ["1-0", "0-1"])
    by_people = '[TerminationDetails "Manual adjudication"]\n[Result'
    mate = mate.replace("1-0", "0-1").replace("[Result", by_people)
    unplayed = unplayed.replace(MATE["0-1"], "0-1").replace("[Result", by_people)
    plan = planned(played, [mate, unplayed])
    assert plan.problems == []
    assert len(plan.doubts) == 1
    other = "the event's rules end it at ply 5 with another result than people set"
    assert plan.doubts == [f"game 1: board: {other}"]
    played.append(plan.drafts)
    told = [played.state.game(f"league.{number}").finished for number in (1, 2)]
    organizers = contract.Ending.ORGANIZERS
    assert [(one.result, one.ending) for one in told if one] == [("0-1", organizers)] * 2


def test_what_was_imported_stands_whatever_a_hall_tells_later(tmp_path: Path) -> None:
    """A hall that had the game in flight when it was lost may come back with an end of its own."""
    played = paused(tmp_path, games=2)
    played.append(planned(played, due(played, ["0-1"])).drafts)
    before = views.standings(played.state, "league")
    played.finish("league.3", "the-halls", ("1-0", contract.Ending.CHECKMATE))
    assert views.standings(played.state, "league") == before
    assert views.game(played.state, "league.3")["result"] == "0-1"


def test_engines_are_found_by_name_family_and_the_operator_s_word(tmp_path: Path) -> None:
    """Versions of an engine are one engine; names that fit nobody are refused with who plays."""
    text = driver.season_text()
    for number, name in enumerate(("Alpha 2", "Beta 2", "Gamma 2", "Delta 2"), start=1):
        text = text.replace(f'"Engine {number}"', f'"{name}"')
    played = paused(tmp_path, text)
    game = played.state.game("league.1")
    white, black = (played.state.engines[one].name.split()[0] for one in (game.white, game.black))
    assert planned(played, [pgn(f"{white} 1.9", black)]).problems == []
    unknown = planned(played, [pgn("Somebody", black)])
    assert "'Somebody' is no engine of this season" in unknown.problems[0]
    named = import_games.Source("old.pgn", "0" * 64, "why", "ann", {"Somebody": game.white})
    assert planned(played, [pgn("Somebody", black)], named).problems == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w, b, later: pgn(b, w), "colours are reversed"),
        (lambda w, b, later: later, "out of order: next in the schedule is league.3"),
        (lambda w, b, later: pgn(w, w), "is not in the schedule of league"),
        (lambda w, b, later: pgn(w, b).replace("1-0", "*"), "was not finished"),
        (lambda w, b, later: pgn(w, b).replace("1-0", "0-1"), "the board ends it 1-0 at ply 5"),
        (lambda w, b, later: pgn(w, b, Variant="fischerandom"), "fischerandom chess in an event"),
    ],
)
def test_what_contradicts_schedule_or_rules_is_refused(
    tmp_path: Path, change: object, message: str
) -> None:
    """Colours, order, unknown pairings, unfinished games, results that the board denies."""
    played = paused(tmp_path, games=2)
    first, second = due(played, ["1-0", "1-0"])
    white, black = next(reading.games(first)).white, next(reading.games(first)).black
    assert callable(change)
    plan = planned(played, [change(white, black, second), first])
    assert message in plan.problems[0]
    assert len(plan.lines) == 1
    assert plan.drafts == []


@pytest.mark.parametrize(
    ("order", "wanted"),
    [
        (["BC", "CB", "AC", "CA", "AB", "BA"], 'table = "cutechess", reverse = "at-once" }:'),
        (["AB", "BA", "AC", "CA", "BC", "CB"], '} and entrants = ["e'),
        (["AB", "AB"], ""),  # no table has that
    ],
)
def test_a_refusal_names_the_format_that_has_the_record_s_order(
    tmp_path: Path, order: list[str], wanted: str
) -> None:
    """A file that says so takes all of the games; where no format of the farm's does, none is."""
    text = driver.season_text(engines=3)
    texts = [pgn(*(f"Engine {'ABC'.index(side) + 1}" for side in pair)) for pair in order]
    plan = planned(paused(tmp_path, text), texts)
    assert plan.problems
    if not wanted:
        assert plan.hints == ()
        return
    (hint,) = plan.hints
    assert wanted in hint
    told = re.search(r"this is the order of (format = {.*?})(?: and (entrants = \[.*?\]))?:", hint)
    assert told is not None
    changed = re.sub("format = {.*}", told[1], text, count=1)
    if told[2]:
        changed = changed.replace('entrants = "roster"', told[2], 1)
    assert planned(paused(tmp_path, changed), texts).problems == []


def test_all_names_that_no_engine_has_are_told_at_once(tmp_path: Path) -> None:
    """Before anything else is judged: an order that is known in part would be another one."""
    played = paused(tmp_path)
    first, second = (next(reading.games(text)) for text in due(played, ["1-0", "1-0"]))
    texts = [
        pgn(first.black, first.white),  # reversed, and not said yet
        pgn("Some Body", first.black),
        pgn(first.white, first.black),
        pgn(second.white, "Other"),
        pgn("Other", "Some Body"),  # each name once, however many games it has
    ]
    plan = planned(played, texts)
    assert plan.problems == [
        "game 2: 'Some Body' is no engine of this season",
        "game 4: 'Other' is no engine of this season",
    ]
    (hint,) = plan.hints
    assert "--engine 'Some Body=ID' --engine Other=ID, of e1 (Engine 1), " in hint
    wrong = import_games.Source("old.pgn", "0" * 64, "", "", {"Some Body": "e77"})
    told = planned(played, texts[:3], wrong).problems
    assert told == ["game 2: 'e77', as --engine calls 'Some Body', is no engine of this season"]
    (hint,) = planned(played, texts[1:2]).hints
    assert "--engine 'Some Body=ID'" in hint, "of a single one, too"


def test_a_game_that_was_played_here_is_refused(tmp_path: Path) -> None:
    """A game has one result; an import never overrides it."""
    played = paused(tmp_path, games=1)
    game = played.state.game("league.1")
    names = (played.state.engines[one].name for one in (game.white, game.black))
    assert "has its result already" in planned(played, [pgn(*names)]).problems[0]


def test_doubts_are_named_and_journaled(tmp_path: Path) -> None:
    """Another time control, another opening in the reverse game: an operator may insist."""
    played = paused(tmp_path)
    text = due(played, ["1-0"])[0].replace('"]\n\n', '"]\n[TimeControl "60+1"]\n\n')
    plan = planned(played, [text])
    assert plan.problems == []
    assert plan.doubts == ["game 1: time control 60+1, not 1800+5"]
    assert amendment_entries.GamesImported.model_validate(plan.drafts[0].data).doubts == tuple(
        plan.doubts
    )


def test_a_game_that_the_season_has_is_a_doubt(tmp_path: Path) -> None:
    """Games imported twice are doubted as a whole; two games alike in one file are not."""
    played = paused(tmp_path, driver.season_text(double_rounds=2))
    size = len(played.state.events["league"].order) // 2
    first = due(played, ["1-0"] * size)
    played.append(planned(played, first).drafts)
    again = due(played, ["1-0"] * size)
    assert again == first  # the second cycle has the pairs of the first in the same order
    doubts = planned(played, again).doubts
    assert doubts[0] == "game 1: the season has it already as league.1: the same text was imported"
    assert len(doubts) == size
    both = paused(tmp_path, driver.season_text(double_rounds=2))
    assert planned(both, first + again).doubts == []


def test_the_rules_own_end_of_a_game_is_no_doubt(tmp_path: Path) -> None:
    """A game that this event's most moves ended is imported without a question."""
    text = driver.season_text().replace("promote =", "adjudication = { max_moves = 2 }\npromote =")
    played = paused(tmp_path, text)
    (game,) = due(played, ["1/2-1/2"])
    head, _, _ = game.partition("\n\n")
    told = f'{head}\n[TerminationDetails "TCEC max moves rule"]\n\n'
    assert planned(played, [f"{told}1. Nf3 Nf6 2. Ng1 Ng8 1/2-1/2"]).doubts == []
    otherwise = planned(played, [f"{told}1. Nf3 Nf6 2. Ng1 1/2-1/2"])
    assert otherwise.doubts != []
    assert "--insist takes them as they were played" in otherwise.hints[0]


def test_a_whole_swiss_is_imported_round_by_round(tmp_path: Path) -> None:
    """Pairings of later rounds follow from the imported results, as the farm would draw them."""
    text = driver.season_text(engines=6).replace(
        'format = { kind = "round-robin", double_rounds = 1 }', SWISS
    )
    played = driver.Driver.launched(driver.load(tmp_path, text))
    whole = driver.Driver.launched(driver.load(tmp_path, text)).play(9)
    games = [whole.state.game(game) for game in whole.state.events["league"].order]
    texts = [
        pgn(
            whole.state.engines[game.white].name,
            whole.state.engines[game.black].name,
            game.finished.result if game.finished else "1-0",
        )
        for game in games
    ]
    played.settle()
    played.append(operations.pause(played.state, "ann", "an import"))
    plan = planned(played, texts)
    assert plan.problems == []
    kinds = [draft.kind for draft in plan.drafts]
    assert kinds.count(entries.GAMES_PAIRED) == 2
    assert entries.EVENT_RANKED in kinds
    played.append(plan.drafts)
    league = played.state.events["league"]
    assert league.status is events.Status.RANKED
    points = [row.half_points for row in league.rows]
    assert points == [row.half_points for row in whole.state.events["league"].rows]
    extra = planned(played, texts[:1])
    assert "a gate or a decision is in the way" in extra.problems[0]


def test_a_season_is_launched_anew_with_what_was_played(tmp_path: Path) -> None:
    """Paused from its launch on, it takes event by event; ratings count each game once."""
    old = driver.Driver.launched(driver.load(tmp_path, driver.season_text())).play()
    changed = driver.season_text().replace(
        'id = "final"', 'id = "final"\nadjudication = { max_moves = 90 }'
    )
    new = driver.Driver.launched(driver.load(tmp_path, changed))
    new.append(operations.pause(new.state, "ann", "launched paused"))
    new.settle()
    assert new.state.current is None
    plan = planned(new, archived(old, "league"), now_ms=old.now_ms)
    assert plan.problems == []
    new.append(plan.drafts)
    assert points(old) == points(new)
    final = archived(old, "final")
    assert "farm season open-gate" in planned(new, final).problems[0]
    new.append(new.undelayed())
    new.append(operations.open_gate(new.state, "final", "ann", "it was played"))
    plan = planned(new, final, now_ms=old.now_ms)
    assert entries.EVENT_STARTED in [draft.kind for draft in plan.drafts]
    new.append(plan.drafts)
    assert not new.state.over, "it can be corrected before it ends"
    new.append(operations.resume(new.state, "ann", "all is taken over"))
    new.settle()
    assert new.state.champion == old.state.champion
    assert [game.finished.ended_ms for game in new.state.games.values() if game.finished] == [
        game.finished.ended_ms for game in old.state.games.values() if game.finished
    ]
    assert len(rating_list.results([new.state])) == len(old.state.games)
    assert rating_list.results([old.state, new.state]) == rating_list.results([old.state])
    assert verify_seed.verify(new.journal).mismatches == ()


@pytest.mark.parametrize("format_", ["double_rounds = 1", 'double_rounds = 1, reverse = "at-once"'])
def test_the_reverse_of_an_imported_game_begins_as_it_did(tmp_path: Path, format_: str) -> None:
    """By its marked moves or its start position, whatever the lot would have dealt (S16-8a)."""
    text = driver.season_text().replace("double_rounds = 1", format_)
    new = paused(tmp_path, text)
    assert new.state.current is not None
    first = new.state.game("league.1")
    names = [new.state.engines[one].name for one in (first.white, first.black)]
    marked = pgn(*names).replace("1. e4 f5 2.", "1. e4 {book} f5 {book} 2.")
    new.append(planned(new, [marked]).drafts)
    games = list(new.state.games.values())
    (reverse,) = (game for game in games if (game.white, game.black) == (first.black, first.white))
    assert openings.of_game(new.state, reverse).line == (None, ("e2e4", "f7f5"))
    others = [game for game in games if game.open and game.id != reverse.id]
    assert all(openings.of_game(new.state, game).fen for game in others), "they have their lots"


def test_draws_are_verified_whatever_another_version_calls_an_opening(tmp_path: Path) -> None:
    """Positions and moves are what was drawn; a line's name is the table's, which may grow."""
    loaded = driver.load(tmp_path, driver.season_text())
    journal = driver.Driver.launched(loaded).play().journal
    first = journal[0]
    book = [opening | {"name": "Old name"} for opening in first.data["books"]["short"]]
    data = first.data | {"books": {"short": book}}
    renamed = [dataclasses.replace(first, data=data), *journal[1:]]
    assert verify_seed.verify(renamed, loaded).mismatches == ()
    book.reverse()
    assert "book short comes out" in verify_seed.verify(renamed, loaded).mismatches[-1]


def test_a_reverse_game_is_dealt_its_opening_where_the_record_tells_none(tmp_path: Path) -> None:
    """A game without marks may have begun with any of its moves."""
    new = paused(tmp_path)
    new.append(planned(new, due(new, ["1-0"])).drafts)
    assert all(openings.of_game(new.state, game).fen for game in new.state.games.values())


def test_a_game_that_was_imported_into_two_seasons_counts_once(tmp_path: Path) -> None:
    """Also when the season that played it is gone and a later version has the engine's place."""
    old = driver.Driver.launched(driver.load(tmp_path, driver.season_text())).play()
    later = driver.season_text().replace('"Engine 1"', '"Engine 1.5"')
    seasons = []
    for text in (driver.season_text(), later):
        new = paused(tmp_path, text)
        games = archived(old, "league")
        if text == later:
            games = [one.replace('"Engine 1"', '"Engine 1.5"') for one in games]
        new.append(planned(new, games, now_ms=old.now_ms).drafts)
        seasons.append(new.state)
    first, second = rating_list.results(seasons[:1]), rating_list.results(seasons[1:])
    assert len(first) == len(second) == len(old.state.events["league"].order)
    assert rating_list.results(seasons) == first


def test_games_whose_records_tell_no_times_all_count(tmp_path: Path) -> None:
    """They end together at their import, and are no copies of one another."""
    text = driver.season_text().replace("double_rounds = 1", "double_rounds = 2")
    played = paused(tmp_path, text)
    games = due(played, ["1/2-1/2"] * 30)
    played.append(planned(played, games).drafts)
    told = rating_list.results([played.state])
    assert len(told) == len(games) > len(set(told))


def points(played: driver.Driver) -> list[tuple[str, int]]:
    """Return the league's table."""
    return [(row.engine, row.half_points) for row in played.state.events["league"].rows]


def archived(played: driver.Driver, event: str) -> list[str]:
    """Return an event's games as the farm's archive has them: with the times of their ends."""
    found = [played.state.game(game) for game in played.state.events[event].order]
    return [
        pgn(
            played.state.engines[game.white].name,
            played.state.engines[game.black].name,
            game.finished.result,
            GameStartTime=record.timestamp(game.finished.started_ms),
            GameEndTime=record.timestamp(game.finished.ended_ms),
        )
        for game in found
        if game.finished is not None
    ]


def test_r_mobility_and_crashes_of_imported_games_count(tmp_path: Path) -> None:
    """What tiebreaks need is read from the record: who crashed, who restricted whom."""
    played = paused(tmp_path)
    text = due(played, ["1-0"])[0].replace("1. e4 f5 2. d4 g5 3. Qh5# 1-0", "1. e4 e5 1-0")
    text = text.replace('"]\n\n', '"]\n[TerminationDetails "Black disconnects"]\n\n')
    plan = planned(played, [text])
    played.append(plan.drafts)
    game = played.state.game("league.1")
    score = played.state.events["league"].tally.scores[game.black]
    assert score.crashes == 1
    assert game.finished is not None
    assert game.finished.r_mobility == 1.0
