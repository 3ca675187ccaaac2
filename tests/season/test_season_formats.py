"""The schedules of round robins and matches."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.season.formats import base, match, round_robin

NOBODY = base.History()

BERGER = {
    4: "1-4 2-3 | 4-3 1-2 | 2-4 3-1",
    6: "1-6 2-5 3-4 | 6-4 5-3 1-2 | 2-6 3-1 4-5 | 6-5 1-4 2-3 | 3-6 4-2 5-1",
    3: "2-3 | 1-2 | 3-1",
    5: "2-5 3-4 | 5-3 1-2 | 3-1 4-5 | 1-4 2-3 | 4-2 5-1",
}


def rounds(schedule: base.Format) -> list[base.Pairing]:
    """Return all rounds of a schedule that needs no results."""
    drawn = [schedule.pair(index, NOBODY) for index in range(schedule.rounds)]
    return [pairing for pairing in drawn if pairing is not None]


def boards(schedule: base.Format) -> list[base.Board]:
    """Return all games in their order of play."""
    return [board for pairing in rounds(schedule) for board in pairing.boards]


@pytest.mark.parametrize("entrants", sorted(BERGER))
def test_first_cycle_is_the_fide_table(entrants: int) -> None:
    """The first cycle is the published Berger table; odd fields leave out the bye."""
    schedule = round_robin.RoundRobin(entrants, 1)
    first_cycle = [pairing for pairing in rounds(schedule) if pairing.cycle == 1]
    text = " | ".join(
        " ".join(f"{board.white + 1}-{board.black + 1}" for board in pairing.boards)
        for pairing in first_cycle
    )
    assert text == BERGER[entrants]


fields = st.integers(2, 17)
doubles = st.integers(1, 4)
tables = st.sampled_from(["berger", "circle"])


@given(fields, doubles, tables)
def test_each_pair_meets_equally_often_with_each_colour(n: int, k: int, table: str) -> None:
    """Every ordered pair of engines meets exactly k times."""
    schedule = round_robin.RoundRobin(n, k, "berger" if table == "berger" else "circle")
    met = Counter((board.white, board.black) for board in boards(schedule))
    assert met == {(a, b): k for a in range(n) for b in range(n) if a != b}


@given(fields, doubles)
def test_totals_are_what_is_drawn(n: int, k: int) -> None:
    """Games, openings, rounds and boards are announced as they are drawn later."""
    schedule = round_robin.RoundRobin(n, k)
    drawn = rounds(schedule)
    assert len(drawn) == schedule.rounds
    assert [(p.round, len(p.boards)) for p in drawn] == list(schedule.remaining(NOBODY))
    assert len(boards(schedule)) == schedule.games == k * n * (n - 1)
    assert {board.slot for board in boards(schedule)} == set(range(schedule.openings))
    assert not schedule.complete(schedule.rounds - 1, NOBODY)
    assert schedule.complete(schedule.rounds, NOBODY)


@given(fields, doubles)
def test_nobody_plays_twice_in_a_round_and_byes_are_shared(n: int, k: int) -> None:
    """A round holds each engine once; in an odd field everybody has one bye a cycle."""
    seen: Counter[int] = Counter()
    for pairing in rounds(round_robin.RoundRobin(n, k)):
        playing = [e for board in pairing.boards for e in (board.white, board.black)]
        assert len(set(playing)) == len(playing)
        seen.update(set(range(n)) - set(playing))
    assert seen == (dict.fromkeys(range(n), 2 * k) if n % 2 else {})


@given(fields, doubles)
def test_reverse_game_comes_one_cycle_later_with_the_same_opening(n: int, k: int) -> None:
    """Game i + n(n-1)/2 reverses game i within a double cycle and shares its opening."""
    games = boards(round_robin.RoundRobin(n, k))
    cycle = n * (n - 1) // 2
    for start in range(0, len(games), 2 * cycle):
        for game, reverse in zip(
            games[start : start + cycle], games[start + cycle : start + 2 * cycle], strict=True
        ):
            assert (game.white, game.black) == (reverse.black, reverse.white)
            assert game.slot == reverse.slot


@given(st.integers(1, 60), st.sampled_from([0, 1]))
def test_match_reverses_at_once_and_takes_openings_in_pairs(pairs: int, first: int) -> None:
    """Openings run 1, 1, 2, 2 … and colours turn with every game."""
    games = boards(match.Match(2 * pairs, first))
    assert [game.slot for game in games] == [number // 2 for number in range(2 * pairs)]
    assert [game.white for game in games] == [first, 1 - first] * pairs
    assert [game.tag for game in games] == [f"{n}.1" for n in range(1, 2 * pairs + 1)]
