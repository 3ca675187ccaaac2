"""Knockouts: brackets, lengths of matches, whole Cups; TCEC's real Cups.

Source of the real Cups: the public TCEC game archive, © TCEC organization, CC BY-SA 3.0.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import driver
import pytest
import tcec_events
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.season import graph
from orchestrator.season.fold import events, plan, progress, standings, tally
from orchestrator.season.formats import base, knockout

ROUNDS = ["Round32", "Round16", "Quarterfinal", "Semifinal", "Final"]
TAKEN = {"1": 2, "=": 1, "0": 0}
lots = st.integers(2, 32).flatmap(lambda n: st.permutations(range(n)))


def play(
    schedule: knockout.Knockout, results: dict[int, str]
) -> tuple[list[base.Game], list[base.Pairing]]:
    """Play a round; ``results`` are, by match from 1, those of game 1's White."""
    games: list[base.Game] = []
    drawn: list[base.Pairing] = []
    left = {number: iter(text) for number, text in results.items()}
    while True:
        played = base.History(len(drawn), games.copy)
        pairing = schedule.pair(len(drawn), played)
        assert schedule.complete(len(drawn), played) == (pairing is None)
        if pairing is None:
            return games, drawn
        drawn.append(pairing)
        for board in pairing.boards:
            first = TAKEN[next(left[pairing.round])]
            begun = sum(game.round == pairing.round for game in games)
            halves = (first, 2 - first) if begun % 2 == 0 else (2 - first, first)
            games.append(base.Game(board.white, board.black, pairing.round, halves))


# -- brackets ------------------------------------------------------------------------


def test_the_eight_placed_seeds_stand_at_equal_distance() -> None:
    """CUP-2c: matches 1, 3, … 15 hold seeds 1, 5, 3, 7, 2, 6, 4, 8."""
    slots = knockout.bracket(32, 8, range(32))
    assert [(slots[4 * m] or 0) + 1 for m in range(8)] == [1, 5, 3, 7, 2, 6, 4, 8]


@given(lots, st.sampled_from([0, 2, 4, 8]))
def test_a_bracket_is_a_permutation_with_byes_for_the_best(lot: list[int], placed: int) -> None:
    """Each engine stands once, no match is empty, and placed seeds have byes before others."""
    entrants = len(lot)
    slots = knockout.bracket(entrants, placed, lot)
    assert sorted(e for e in slots if e is not None) == list(range(entrants))
    assert len(slots) == knockout.places(entrants) < 2 * entrants
    matches = list(zip(slots[::2], slots[1::2], strict=True))
    free = [a for a, b in matches if b is None]
    assert all(a is not None for a, _ in matches)
    seeds = range(min(placed, len(slots) // 2))
    assert set(seeds[: len(free)]) <= set(free)
    met = [a for a, _ in matches if a in seeds] + [b for _, b in matches if b in seeds]
    assert sorted(met, key=str) == sorted(seeds, key=str)  # never against each other


# -- matches -------------------------------------------------------------------------

texts = st.lists(st.sampled_from("1=0"), min_size=400, max_size=400).map("".join)


def by_the_rule(text: str, pairs: int) -> int:
    """Return a match's length as CUP-3a, d, e say it, counted game by game."""
    score = 0
    for games, result in enumerate(text, start=1):
        score += TAKEN[result]
        if games <= 2 * pairs:
            if max(score, 2 * games - score) > 2 * pairs:
                return games
        elif games % 2 == 0 and score != games:
            return games
    raise AssertionError("the text is too short")


@given(st.integers(1, 12), texts)
def test_a_match_ends_by_the_rule(pairs: int, text: str) -> None:
    """Early end in the middle of a pair, then whole pairs until one is decisive."""
    text = text[:200] + "11"
    games, drawn = play(knockout.Knockout(base.Field(2), pairs), {1: text})
    assert len(games) == by_the_rule(text, pairs)
    assert [game.white for game in games] == [1 - n % 2 for n in range(len(games))]
    slots = [board.slot for pairing in drawn for board in pairing.boards]
    assert slots == [n // 2 for n in range(len(games))]


@given(st.integers(1, 4), st.lists(texts, min_size=4, max_size=4))
@settings(max_examples=30)
def test_matches_follow_one_another(pairs: int, played: list[str]) -> None:
    """A match begins when the one before is over; no exit of the book is left out."""
    results = {number: text[:100] + "11" for number, text in enumerate(played, start=1)}
    schedule = knockout.Knockout(base.Field(8), pairs)
    games, drawn = play(schedule, results)
    assert [game.round for game in games] == sorted(game.round for game in games)
    slots = [board.slot for pairing in drawn for board in pairing.boards]
    assert sorted(set(slots)) == list(range(len(set(slots))))
    tags = [board.tag for pairing in drawn for board in pairing.boards]
    assert tags == [f"1.{n}" for n in range(1, len(games) + 1)]
    winners, losers = schedule.order(base.History(len(drawn), games.copy)) or ((), ())
    assert [w // 2 for w in winners] == [loser // 2 for loser in losers] == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("first_white", "white"),
    [("lower-seed", 0), ("higher-seed", 1), ("earlier-match", 0), ("later-match", 1)],
)
def test_who_has_white_first(first_white: knockout.FirstWhite, white: int) -> None:
    """CUP-3b goes by the Cup's seeds, TCEC's practice after upsets by the earlier round."""
    field = base.Field(2, ranks=(17, 4))
    pairing = knockout.Knockout(field, 2, first_white).pair(0, base.History())
    assert pairing is not None
    assert pairing.boards[0].white == white


# -- TCEC's Cups ---------------------------------------------------------------------


@pytest.fixture(name="cups", scope="module")
def _cups() -> dict[str, Any]:
    """The real Cups."""
    found: dict[str, Any] = tcec_events.expected("cups")
    return found


def test_real_matches_have_their_lengths_and_winners(cups: dict[str, Any]) -> None:
    """Game counts, scores, tiebreaks and winners of every round are TCEC's own."""
    checked = 0
    for cup in cups.values():
        for name, matches in cup["rounds"].items():
            pairs = cup["pairs"][name]
            field = base.Field(2 * len(matches))
            schedule = knockout.Knockout(field, pairs, "earlier-match")
            results = {n: m["results_of_first_white"] for n, m in enumerate(matches, start=1)}
            games, drawn = play(schedule, results)
            order = schedule.order(base.History(len(drawn), games.copy)) or ()
            for number, match in enumerate(matches):
                own = [game for game in games if game.round == number + 1]
                assert len(own) == match["games"]
                assert (len(own) > 2 * pairs) == match["tiebreak"]
                first_won = match["winner"] == match["first_white"]
                assert order[0][number] == 2 * number + int(not first_won)
                checked += 1
    assert checked >= 4 * 30


def test_real_brackets_are_winner_against_winner(cups: dict[str, Any]) -> None:
    """Match i of a round is winner (2i-1) v winner (2i), as winners enter the next round."""
    for cup in cups.values():
        rounds = [cup["rounds"][name] for name in ROUNDS if name in cup["rounds"]]
        for before, after in itertools.pairwise(rounds):
            if len(before) == 2 * len(after):
                winners = [match["winner"] for match in before]
                pairs = zip(winners[::2], winners[1::2], strict=True)
                met = [{match["first_white"], match["other"]} for match in after]
                assert met == [set(pair) for pair in pairs]


# -- whole Cups ----------------------------------------------------------------------

ROUND = """
[[event]]
id = "{id}"
name = "{id}"
format = {{ kind = "knockout", pairs = {pairs}{more} }}
entrants = {entrants}
time_control = "30+3"
book = "short"
promote = [{promote}]
"""


def cup_text(entrants: int, *, pairs: int = 1) -> str:
    """Return a Cup whose rounds end with a bronze match and a final."""
    head = driver.season_text(entrants).split("[[event]]")[0]
    size, text, field = knockout.places(entrants), head + "repeat = true\n", '"roster"'
    more = ', bracket = "equal-distance", placed = 4'
    while size > 4:
        promote = f'{{ top = {size // 2}, to = "r{size // 2}" }}'
        text += ROUND.format(id=f"r{size}", pairs=pairs, more=more, entrants=field, promote=promote)
        size, more, field = size // 2, "", "[]"
    promote = '{ ranks = [3, 4], to = "bronze" }, { top = 2, to = "final" }'
    text += ROUND.format(id="r4", pairs=pairs, more=more, entrants=field, promote=promote)
    for last in ("bronze", "final"):
        text += ROUND.format(id=last, pairs=pairs, more="", entrants="[]", promote="")
    return text


@pytest.mark.parametrize("entrants", [4, 8, 11, 16])
def test_a_cup_ends_with_bronze_then_the_final(tmp_path: Path, entrants: int) -> None:
    """Winners meet in the order of their matches; the losers of the semifinals play first."""
    loaded = driver.load(tmp_path, cup_text(entrants))
    cup = driver.Driver.launched(loaded).play()
    state = cup.state
    assert state.finished
    assert state.champion == state.events["final"].rows[0].engine
    assert set(state.events["bronze"].entrants) == {r.engine for r in state.events["r4"].rows[2:]}
    assert list(state.events)[-2:] == ["bronze", "final"]
    for event in state.events.values():
        first: dict[int, events.Game] = {}
        for game_id in event.order:
            game = state.games[game_id]
            first.setdefault(game.round_number, game)
        for game in first.values():
            seeds = list(state.engines)
            assert seeds.index(game.white) > seeds.index(game.black)  # CUP-3b
        assert all(row.decided_by == standings.MATCHES for row in event.rows)
        assert _counted(state.games[g] for g in event.order) == event.tally.games


def _counted(games: Any) -> int:
    return sum(tally.halves(game.finished.result) != () for game in games)


def test_the_seeds_of_the_first_round_stay(tmp_path: Path) -> None:
    """CUP-1d: after an upset the lower of the 16 seeds still has White."""
    upset = driver.Driver.launched(
        driver.load(tmp_path, cup_text(16)),
        results=lambda game: (
            ("1-0", driver.Ending.CHECKMATE)
            if game.white > game.black
            else ("0-1", driver.Ending.CHECKMATE)
        ),
    ).play()
    assert upset.state.champion == max(upset.state.engines)
    final = upset.state.events["final"]
    assert [list(upset.state.engines)[rank] for rank in final.ranks] == list(final.entrants)


@given(st.data())
@settings(max_examples=15, deadline=None)
def test_a_cut_cup_goes_on_alike(cup: driver.Driver, data: st.DataObject) -> None:
    """Whatever prefix of the journal is left, the Cup goes on to the same entries."""
    cut = data.draw(st.integers(1, len(cup.journal)))
    again = driver.Driver.replayed(cup.journal[:cut]).play()
    assert [entry.data for entry in again.journal if entry.kind != "attempt_started"] == [
        entry.data for entry in cup.journal if entry.kind != "attempt_started"
    ]


def test_a_cup_can_be_drawn_at_any_moment(cup: driver.Driver) -> None:
    """The graph and the progress of a Cup fit its games at every entry of the journal."""
    for cut in range(1, len(cup.journal) + 1, 7):
        at = driver.Driver.replayed(cup.journal[:cut]).state
        drawn = graph.build(at)
        ids = [node.id for node in drawn.nodes]
        assert len(set(ids)) == len(ids)
        games = [node for node in drawn.nodes if node.kind is graph.Kind.GAME]
        assert len(games) == progress.of_season(at).total
    assert progress.of_season(cup.state).share == 1.0


@pytest.fixture(name="cup", scope="module")
def _cup(tmp_path_factory: pytest.TempPathFactory) -> driver.Driver:
    """A Cup of 11, played to its end."""
    loaded = driver.load(tmp_path_factory.mktemp("cup"), cup_text(11))
    return driver.Driver.launched(loaded).play()


def test_the_size_of_a_cup_is_planned(cup: driver.Driver) -> None:
    """Byes count as no match; before its start a Cup is expected to use every pair."""
    season = cup.state.launched.season
    planned = plan.schedules(season, 11)
    assert {name: schedule.rounds for name, schedule in planned.items()} == {
        "r16": 3,
        "r8": 4,
        "r4": 2,
        "bronze": 1,
        "final": 1,
    }
    assert all(schedule.games == 2 * schedule.rounds for schedule in planned.values())
