"""Adaptive pairing: fewer games to a list in order, error bars that hold, the same for the same."""

from __future__ import annotations

import dataclasses
import os
import statistics

import pytest
import simulated_field

from orchestrator.rating import adaptive

TARGET = adaptive.Target(0.95, 40)
LONG = bool(os.environ.get("FARM_LONG"))
RUNS = 60 if LONG else 3


def outcomes(*, choose: bool) -> list[simulated_field.Outcome]:
    """Play fields of ten until they are in order."""
    worlds = (simulated_field.World(10, 150, seed) for seed in range(RUNS))
    target = dataclasses.replace(TARGET, within=10) if LONG else TARGET
    return [simulated_field.play(world, target, choose=choose, at_once=5) for world in worlds]


def test_a_list_is_in_order_after_half_of_a_round_robins_games() -> None:
    """And what is said of the round robin is about what it takes; error bars hold."""
    chosen, round_robin = outcomes(choose=True), outcomes(choose=False)
    needed = statistics.fmean(one.pairs for one in round_robin)
    assert statistics.fmean(one.pairs for one in chosen) <= needed / 2
    foretold = statistics.fmean(one.expected_pairs for one in chosen)
    assert needed / 2 < foretold < needed * 2
    inside = statistics.fmean(one.inside for one in chosen)
    assert inside > (0.93 if LONG else 0.8)
    assert statistics.fmean(one.ordered for one in chosen) > (0.94 if LONG else 0.8)


def played(seed: int) -> tuple[adaptive.Results, adaptive.Belief]:
    """Let six engines play twenty pairs, one after the other."""
    world, results = simulated_field.World(6, 150, seed), adaptive.Results(6)
    belief = adaptive.Belief(results)
    for number in range(20):
        one, other = belief.next_couple((), None, number)
        results.add(one, other, world.pair(one, other))
        belief = adaptive.Belief(results, belief)
    return results, belief


def test_a_belief_is_a_function_of_the_results() -> None:
    """Reached step by step or at once: the same ratings, errors and next couples."""
    results, belief = played(4)
    again = adaptive.Belief(results)
    assert [again.elo(e) for e in range(6)] == pytest.approx([belief.elo(e) for e in range(6)])
    assert [again.error(e) for e in range(6)] == pytest.approx([belief.error(e) for e in range(6)])
    for target in (None, TARGET):
        assert again.next_couple((), target, 5) == belief.next_couple((), target, 5)


def test_pairs_in_flight_are_no_reason_to_play_the_same_again() -> None:
    """Eight pairs that are chosen at once are not all of one couple; a lot decides at the start."""
    _, belief = played(4)
    couples: list[tuple[int, int]] = []
    for number in range(8):
        couples.append(belief.next_couple(couples, TARGET, number))
    assert len(set(couples)) > 2
    fresh = adaptive.Belief(adaptive.Results(6))
    assert len({fresh.next_couple((), None, number) for number in range(15)}) == 15


def test_who_won_everything_has_a_rating_with_an_error() -> None:
    """No engine is without a number: the field's width bounds what nothing else does."""
    results = adaptive.Results(3)
    for _ in range(4):
        results.add(1, 0, (2, 2))
        results.add(0, 2, (1, 1))
    belief = adaptive.Belief(results)
    assert belief.ranked()[0] == 1
    assert belief.superiority(1, 0) > 0.95
    assert 0 < belief.error(1) < 1_000
    assert belief.unsure(adaptive.Target(0.95)) == 1
    assert belief.wrong() < 0.5
    assert belief.round_robin_pairs(None) > 0
