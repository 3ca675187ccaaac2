"""Swiss: FIDE Dutch against recorded tournaments, and what holds in every field."""

from __future__ import annotations

import csv
import os
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Literal

import driver
import pytest
import tcec_events
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.season import graph
from orchestrator.season.fold import entries, tally, tiebreaks
from orchestrator.season.formats import base, colours, dutch, registry, swiss
from orchestrator.season.spec import model

RECORDED = Path(__file__).parents[1] / "data" / "swiss" / "swiss_dutch.csv"
HALVES = {"1-0": (2, 0), "1/2-1/2": (1, 1), "0-1": (0, 2)}
LONG = os.environ.get("FARM_LONG") == "1"
TOURNAMENTS = range(20) if LONG else (0, 7, 13)

Recorded = dict[int, list[base.Game]]


@pytest.fixture(name="recorded", scope="module")
def _recorded() -> dict[int, Recorded]:
    """The rounds of all recorded tournaments, in the order of their boards."""
    found: dict[int, Recorded] = {}
    for row in csv.DictReader(RECORDED.read_text().splitlines()):
        number = int(row["round"])
        white, black = int(row["white_seed"]) - 1, int(row["black_seed"]) - 1
        game = base.Game(white, black, number, HALVES[row["result"]])
        found.setdefault(int(row["tournament"]), {}).setdefault(number, []).append(game)
    return found


@pytest.mark.parametrize("tournament", TOURNAMENTS)
def test_recorded_tournaments_are_reproduced(
    recorded: dict[int, Recorded], tournament: int
) -> None:
    """Pairs, colours and boards of all seven rounds are those of bbpPairings 6."""
    rounds = recorded[tournament]
    games: list[base.Game] = []
    for number in sorted(rounds):
        played = base.History(number - 1, games.copy)
        pairing = swiss.Swiss(32, 7).pair(number - 1, played)
        assert pairing is not None
        pairs = [(board.white, board.black) for board in pairing.boards]
        assert pairs == [(game.white, game.black) for game in rounds[number]], number
        games += rounds[number]


def test_season_5_is_reproduced_as_far_as_any_rule_does() -> None:
    """N1 ranking: 106 of 126 pairs with their colours, rounds 1 and 3 complete."""
    event = tcec_events.expected("Season_5_-_Stage_1")
    real: dict[int, dict[int, base.Game]] = {}
    for row in event["games"]:
        game = dict(zip(event["columns"], row, strict=True))
        number, board = map(int, game["round"].split("."))
        real.setdefault(number, {})[board] = base.Game(
            game["white"], game["black"], number, HALVES[game["result"]]
        )
    seed: dict[int, int] = {}  # round 1 tells the seeds: board b is seed b v seed b + 18
    for board, first in real[1].items():
        better, other = (first.white, first.black) if board % 2 else (first.black, first.white)
        seed[better], seed[other] = board - 1, board + 17
    games: list[base.Game] = []
    found = {}
    for number in sorted(real):
        played = base.History(number - 1, games.copy)
        pairing = swiss.Swiss(36, 7, "opponents-score", "bottom").pair(number - 1, played)
        assert pairing is not None
        assert [board.tag for board in pairing.boards] == [
            f"{number}.{b}" for b in range(18, 0, -1)
        ]
        now = [
            base.Game(seed[game.white], seed[game.black], number, game.half_points)
            for game in real[number].values()
        ]
        ours = {(board.white, board.black) for board in pairing.boards}
        found[number] = len(ours & {(game.white, game.black) for game in now})
        games += now
    assert found[1] == found[3] == 18
    assert sum(found.values()) == 106


def played_out(
    schedule: swiss.Swiss, results: list[tuple[int, int]]
) -> tuple[list[base.Game], list[tuple[int, int]]]:
    """Play a tournament; ``results`` are the half points of its games in order."""
    games: list[base.Game] = []
    byes: list[tuple[int, int]] = []
    while not schedule.complete(number := len({g.round for g in games}), base.History(number)):
        pairing = schedule.pair(number, base.History(number, games.copy, byes))
        assert pairing is not None
        for board in pairing.boards:
            game = base.Game(board.white, board.black, number + 1, results[len(games)])
            games.append(game)
        byes += [(number + 1, engine) for engine in pairing.byes]
    return games, byes


points = st.sampled_from([(2, 0), (1, 1), (0, 2)])
tournaments = st.tuples(
    st.integers(3, 17),
    st.sampled_from(["seed", "opponents-score"]),
    st.lists(points, min_size=80, max_size=80),
)


@given(tournaments)
@settings(max_examples=25, deadline=None)
def test_nobody_meets_twice_and_colours_stay_even(
    drawn: tuple[int, Literal["seed", "opponents-score"], list[tuple[int, int]]],
) -> None:
    """No rematch, no second bye, all play each round; colours differ by two at most."""
    entrants, ranking, results = drawn
    rounds = (entrants + 1) // 2
    assert registry.field_error(model.Swiss(kind="swiss", rounds=rounds), entrants) is None
    games, byes = played_out(swiss.Swiss(entrants, rounds, ranking), results)
    met = Counter(frozenset((game.white, game.black)) for game in games)
    assert set(met.values()) == {1}
    assert len(games) == rounds * (entrants // 2)
    assert len({engine for _, engine in byes}) == len(byes) == rounds * (entrants % 2)
    for number in range(1, rounds + 1):
        playing = [e for g in games if g.round == number for e in (g.white, g.black)]
        playing += [engine for round_number, engine in byes if round_number == number]
        assert sorted(playing) == list(range(entrants))


@given(st.lists(points, min_size=112, max_size=112))
@settings(max_examples=4, deadline=None)
def test_stage_1_keeps_what_held_in_the_real_event(results: list[tuple[int, int]]) -> None:
    """N1: no three equal colours in a row before the last round, difference one at most."""
    games, _ = played_out(swiss.Swiss(32, 7, "opponents-score"), results)
    for engine in range(32):
        colours = ["w" if g.white == engine else "b" for g in games if engine in (g.white, g.black)]
        assert not {"www", "bbb"} & {"".join(colours[n : n + 3]) for n in range(4)}
        assert abs(colours.count("w") - colours.count("b")) <= 3


def test_a_round_without_a_game_scores_a_bye_or_nothing() -> None:
    """FIDE C.04: the score that the next round is paired by: a bye is a win, an absence nothing."""
    games = [base.Game(0, 2, 1, (2, 0)), base.Game(1, 3, 1, (1, 1))]
    played = base.History(1, lambda: games, [(1, 4)], [])
    scores = {player.number: player.score for player in swiss.ranking(6, "seed", played)}
    assert scores == {0: 2, 1: 1, 2: 0, 3: 1, 4: 2, 5: 0}


def test_a_bye_s_share_of_the_opponents_score_ranks_the_next_round() -> None:
    """FIDE C.07: the bye counts as a game against an opponent like oneself."""
    games = [
        *(base.Game(0, 1, 1, (2, 0)), base.Game(2, 3, 1, (1, 1))),
        *(base.Game(0, 2, 2, (2, 0)), base.Game(4, 1, 2, (2, 0))),
    ]
    played = base.History(2, lambda: games, [(1, 4), (2, 3)], [])
    ranked = [player.number for player in swiss.ranking(5, "opponents-score", played)]
    assert ranked[:2] == [4, 0]  # both have 4: 4 has 0 + 4 of its bye, 0 has 0 + 1


def test_who_has_left_is_not_paired() -> None:
    """An engine that left meets nobody; its results no longer rank its opponents."""
    schedule = swiss.Swiss(8, 4)
    first = schedule.pair(0, base.History())
    assert first is not None
    games = [base.Game(board.white, board.black, 1, (2, 0)) for board in first.boards]
    pairing = schedule.pair(1, base.History(1, games.copy, out=[0]))
    assert pairing is not None
    assert len(pairing.byes) == 1
    playing = {e for b in pairing.boards for e in (b.white, b.black)} | set(pairing.byes)
    assert playing == set(range(1, 8))


@pytest.mark.parametrize("entrants", [32, 64])
def test_a_round_looks_at_each_pair_a_few_times(entrants: int) -> None:
    """Calls of functions for the fourth round: 14 to 18 for each pair, 32 to 39 before."""
    format_, results, calls = swiss.Swiss(entrants, 5), random.Random(7), 0
    played: list[base.Game] = []

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    for number in range(4):
        history = base.History(number, lambda: tuple(played))
        sys.setprofile(counted if number == 3 else None)
        paired = format_.pair(number, history)
        sys.setprofile(None)
        assert paired is not None
        played.extend(
            base.Game(board.white, board.black, number + 1, results.choice([*HALVES.values()]))
            for board in paired.boards
        )
    assert calls < 22 * entrants**2


def test_an_event_that_cannot_be_paired_well_is_paired_all_the_same() -> None:
    """When everybody has met, a rematch is better than a season that stands still."""
    met = [colours.Player(n, 0, frozenset({0, 1} - {n}), "wb", ("", "")) for n in range(2)]
    pairs, bye = dutch.pair(met)
    assert (sorted(pairs[0]), bye) == ([0, 1], None)


@pytest.mark.parametrize(
    ("first", "second", "third", "fourth"),
    [
        ("bww", "wbw", "bww", "wbw"),  # [C11]: two with a third White in a row, or none
        ("wwbw", "bbww", "wwbw", "bbww"),  # [C10]: a difference of three, or two third Whites
    ],
)
def test_a_topscorer_gets_no_third_colour_that_can_be_avoided(
    first: str, second: str, third: str, fourth: str
) -> None:
    """[C10] [C11]: the last round's leaders are not paired by halves at that price."""
    played = (first, second, third, fourth)
    rounds = max(map(len, played)) + 1
    leaders = [
        colours.Player(n, rounds, frozenset(), games.rjust(rounds - 1, "-"), ("",) * (rounds - 1))
        for n, games in enumerate(played)
    ]
    pairs, _ = dutch.pair(leaders, last_round_of=rounds)
    assert {frozenset(pair) for pair in pairs} == {frozenset({0, 3}), frozenset({1, 2})}


@pytest.mark.parametrize(
    ("higher", "lower", "first"),
    [
        ("", "", True),  # 5.2.5: start number 1 begins with White
        ("w", "b", False),
        ("ww", "bw", False),
        ("bw", "bb", False),  # the stronger preference
        ("bbwbbww", "bwbwbwb", False),  # 1.7.1: Black after two Whites, though behind in Whites
        ("bw", "wb", False),  # opposite preferences
        ("wbw", "bww", True),  # equal ones: the last time that their colours differed
        ("wb", "wb", True),  # all alike: the higher ranked has what is due
    ],
)
def test_colours(higher: str, lower: str, first: bool) -> None:
    """Preferences, their strength, then history decide who has White."""
    floats = ("",) * len(higher)
    one = colours.Player(0, 0, frozenset(), higher, floats)
    two = colours.Player(1, 0, frozenset(), lower, floats)
    assert colours.white_is_first(one, two) is first


# -- in a season ---------------------------------------------------------------------


def season_text(engines: int) -> str:
    """Return a Swiss of so many, whose top two play a match."""
    text = driver.season_text(engines).replace(
        'kind = "round-robin", double_rounds = 1', 'kind = "swiss", rounds = 4'
    )
    return text.replace('file = "short.epd"', 'file = "short.epd"\nrepeat = true')


def test_a_bye_is_a_win_without_a_game(tmp_path: Path) -> None:
    """The journal tells who had a bye; the table counts its point, but neither game nor win."""
    played = driver.Driver.launched(driver.load(tmp_path, season_text(7))).play()
    facts = [entry.data for entry in played.journal if entry.kind == entries.GAMES_PAIRED]
    byes = [engine for fact in facts if fact["event"] == "league" for engine in fact["byes"]]
    assert len(set(byes)) == len(byes) == 4
    for row in played.state.events["league"].rows:
        assert row.games == 4 - (row.engine in byes)
        assert row.half_points == 2 * row.wins + row.draws + 2 * (row.engine in byes)
    assert played.state.finished


def test_pairings_are_told_to_go_on_until_the_last_round(tmp_path: Path) -> None:
    """The graph has them planned before the first round is paired, done with the last one."""
    season = driver.Driver.launched(driver.load(tmp_path, season_text(8)))
    drawn = [graph.build(season.state)]
    for games in (0, 4, 4, 4):
        season.play(games)
        drawn.append(graph.build(season.state))
    told = [node.state.value for one in drawn for node in one.nodes if node.id == "league:pairing"]
    assert told == ["planned", "running", "running", "running", "done"]


def test_a_bye_counts_in_tiebreaks_as_an_opponent_like_oneself() -> None:
    """FIDE C.07: Buchholz and Sonneborn-Berger count the engine's own points."""
    counted = tally.Tally(("a", "b", "c"))
    counted.add("a", "b", driver.finished("g", "x", ("1-0", contract.Ending.CHECKMATE)))
    counted.bye("c")
    counted.add("c", "a", driver.finished("h", "x", ("1/2-1/2", contract.Ending.THREEFOLD)))
    assert counted.scores["c"].half_points == 3
    assert tiebreaks.opponents_score(counted, "c") == 3 + 3
    assert tiebreaks.sonneborn_berger(counted, "c") == 2 * 3 + 1 * 3
    assert tiebreaks.opponents_score(counted, "a") == 0 + 3


@pytest.fixture(name="seven", scope="module")
def _seven(tmp_path_factory: pytest.TempPathFactory) -> driver.Driver:
    """A Swiss of seven and its final, played to the end."""
    loaded = driver.load(tmp_path_factory.mktemp("swiss"), season_text(7))
    return driver.Driver.launched(loaded).play()


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_a_cut_swiss_goes_on_alike(seven: driver.Driver, data: st.DataObject) -> None:
    """Whatever prefix of the journal is left, the tournament goes on to the same pairings."""
    cut = data.draw(st.integers(1, len(seven.journal)))
    again = driver.Driver.replayed(seven.journal[:cut]).play()
    paired = [entry.data for entry in again.journal if entry.kind == entries.GAMES_PAIRED]
    assert paired == [e.data for e in seven.journal if e.kind == entries.GAMES_PAIRED]
