"""Schedules: who plays whom, colours, openings and pairs."""

from __future__ import annotations

import collections

from hypothesis import given
from hypothesis import strategies as st

from worker_cpu.match import cores, schedule

PLANS = st.builds(
    schedule.Plan,
    engines=st.integers(2, 7),
    rounds=st.integers(1, 4),
    games=st.integers(1, 4),
    repeat=st.sampled_from((1, 2)),
    reverse=st.booleans(),
)


@given(PLANS)
def test_every_two_engines_meet_equally_often(plan: schedule.Plan) -> None:
    """In a round robin each two engines play rounds x games, colours as even as can be."""
    slots = schedule.slots(plan)
    met = collections.Counter(slot.engines for slot in slots)
    expected = plan.engines * (plan.engines - 1) // 2
    assert len(met) == expected
    assert set(met.values()) == {plan.rounds * plan.games}
    whites = collections.Counter((slot.white, slot.black) for slot in slots)
    for (white, black), count in whites.items():
        assert abs(count - whites[black, white]) <= 1


@given(PLANS)
def test_no_two_encounters_share_an_opening(plan: schedule.Plan) -> None:
    """An opening belongs to one pair of engines, and comes at most ``repeat`` times."""
    users = collections.defaultdict(set)
    uses: collections.Counter[int] = collections.Counter()
    for slot in schedule.slots(plan):
        users[slot.opening].add(slot.engines)
        uses[slot.opening] += 1
    assert all(len(engines) == 1 for engines in users.values())
    assert max(uses.values()) <= plan.repeat


@given(PLANS)
def test_a_longer_match_begins_with_the_same_games(plan: schedule.Plan) -> None:
    """More rounds only add games, so that a match can be made longer and resumed."""
    longer = schedule.Plan(
        plan.engines, plan.kind, plan.seeds, plan.rounds + 1, plan.games, plan.repeat,
        reverse=plan.reverse,
    )  # fmt: skip
    slots = schedule.slots(plan)
    same = [(s.number, s.white, s.black, s.opening) for s in schedule.slots(longer)]
    assert same[: len(slots)] == [(s.number, s.white, s.black, s.opening) for s in slots]


def test_pairs_have_one_opening_and_both_colours() -> None:
    """With -games 2 -repeat every two games are a pair."""
    slots = schedule.slots(schedule.Plan(3, rounds=2, games=2, repeat=2))
    pairs = collections.defaultdict(list)
    for slot in slots:
        pairs[slot.pair].append(slot)
    assert None not in pairs
    for one, two in pairs.values():
        assert (one.white, one.black, one.opening) == (two.black, two.white, two.opening)


def test_without_repeat_or_swap_there_are_no_pairs() -> None:
    """Games of different openings, or with the same colours, are no pair."""
    for plan in (schedule.Plan(2, games=4), schedule.Plan(2, games=4, repeat=2, swap=False)):
        assert {slot.pair for slot in schedule.slots(plan)} == {None}


def test_the_round_robin_of_four_is_the_circle() -> None:
    """Rounds and pairings are those of cutechess' circle."""
    slots = schedule.slots(schedule.Plan(4))
    found = [(slot.round, slot.white, slot.black) for slot in slots]
    assert found == [(1, 0, 3), (1, 1, 2), (2, 0, 2), (2, 3, 1), (3, 0, 1), (3, 2, 3)]


def test_a_gauntlet_is_the_first_against_the_rest() -> None:
    """Seeds play all others and not each other."""
    slots = schedule.slots(schedule.Plan(4, kind="gauntlet"))
    assert [(slot.white, slot.black) for slot in slots] == [(0, 1), (0, 2), (0, 3)]
    slots = schedule.slots(schedule.Plan(4, kind="gauntlet", seeds=2))
    assert {slot.engines for slot in slots} == {(0, 2), (1, 2), (0, 3), (1, 3)}


def test_fastchess_pairs_in_the_order_of_its_list() -> None:
    """As fastchess 1.8.2 wrote its PGN: a round an encounter; seeds of a gauntlet meet too."""
    slots = schedule.slots(schedule.Plan(3, rounds=2, games=2, repeat=2, listed=True))
    found = [(slot.round, slot.white, slot.black) for slot in slots]
    assert found[:6] == [(1, 0, 1), (1, 1, 0), (2, 0, 2), (2, 2, 0), (3, 1, 2), (3, 2, 1)]
    assert [slot.round for slot in slots[6:]] == [4, 4, 5, 5, 6, 6]
    assert [slot.engines for slot in slots[6:]] == [slot.engines for slot in slots[:6]]
    slots = schedule.slots(schedule.Plan(4, kind="gauntlet", seeds=2, listed=True))
    assert [slot.engines for slot in slots] == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


def test_policies_share_openings_by_round_or_encounter() -> None:
    """policy=round gives a round one opening, policy=encounter each encounter one."""
    by_round = schedule.slots(schedule.Plan(4, games=2, policy="round"))
    assert [slot.opening for slot in by_round] == [0] * 4 + [1] * 4 + [2] * 4
    by_encounter = schedule.slots(schedule.Plan(4, games=4, repeat=2, policy="encounter"))
    assert [slot.opening for slot in by_encounter] == [at // 4 for at in range(24)]


@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 32))
def test_core_sets_are_disjoint_or_nobody_is_bound(games: int, threads: int, cpus: int) -> None:
    """Each game's cores are its own, and its engines have as many as they have threads."""
    lanes = cores.allot(games, threads, range(cpus))
    assert len(lanes) == games
    used = [cpu for lane in lanes for cpu in lane.referee | lane.engines]
    assert len(used) == len(set(used)) <= cpus
    assert {len(lane.engines) for lane in lanes} in ({threads}, {0})
    assert bool(used) == (games * threads <= cpus)


def test_the_rest_of_a_match_keeps_off_the_games_cores() -> None:
    """Engines of one thread share their core with the referee; what is left is the match's."""
    one, many = cores.allot(2, 1, range(4)), cores.allot(1, 2, range(4))
    assert [(lane.referee, lane.engines) for lane in one] == [({0}, {0}), ({1}, {1})]
    assert cores.left_over(one, range(4)) == {2, 3}
    assert [(lane.referee, lane.engines) for lane in many] == [({0}, {1, 2})]
    assert cores.left_over(many, range(4)) == {3}


def test_second_threads_of_a_core_are_taken_last() -> None:
    """CPUs are dealt a whole core each before any core is shared."""
    siblings = {0: [0, 2], 1: [1, 3], 2: [0, 2], 3: [1, 3]}
    assert cores.whole_cores_first(siblings) == [0, 1, 2, 3]
    neighbours = {0: [0, 1], 1: [0, 1], 2: [2, 3], 3: [2, 3]}
    assert cores.whole_cores_first(neighbours) == [0, 2, 1, 3]
