"""The list of a field: opponents count, and errors know of pairs."""

from __future__ import annotations

import itertools
import random

import pytest

from orchestrator.rating import elo, field, ordo, pairings, results

NAMES = ("Hub", "Strong", "Weak", "Out")


def test_a_gauntlet_compares_engines_that_never_met() -> None:
    """Each opponent's distance to the hub is that of their own games; the mean is 0."""
    met = {(0, 1): results.Counts(30, 40, 50), (0, 2): results.Counts(70, 30, 20)}
    found = field.Field(NAMES[:3], met)
    ratings = [found.elo(engine) or 0.0 for engine in range(3)]
    assert sum(ratings) == pytest.approx(0, abs=0.01)
    for other in (1, 2):
        wanted = elo.difference(met[0, other].score)
        assert ratings[0] - ratings[other] == pytest.approx(wanted, abs=0.1)
    assert found.ranked() == [1, 0, 2]
    assert found.superiority(1, 2) == pytest.approx(1, abs=0.001)


def test_ratings_are_those_of_farm_rate_in_elo() -> None:
    """The same solver: Ordo's points, 0.9 % wider than logistic Elo."""
    met = {
        (0, 1): results.Counts(9, 5, 6),
        (0, 2): results.Counts(12, 4, 4),
        (1, 2): results.Counts(8, 8, 4),
    }
    games = {}
    for (first, second), counts in met.items():
        told = (("1-0", counts.wins), ("1/2-1/2", counts.draws), ("0-1", counts.losses))
        games |= {(NAMES[first], NAMES[second], result): number for result, number in told}
    rated = ordo.rate(pairings.count(pairings.Table.of(games), {}), ordo.Settings(average=0))
    found = field.Field(NAMES[:3], met)
    for engine, name in enumerate(NAMES[:3]):
        assert found.elo(engine) == pytest.approx((rated.rating(name) or 0) * field.UNIT, abs=0.2)
    assert pytest.approx(1 / 1.0088, abs=0.0005) == field.UNIT


def test_who_won_all_has_a_rating_and_no_error_and_who_did_not_play_has_none() -> None:
    """No number is made up."""
    met = {(0, 1): results.Counts(10, 0, 0), (1, 2): results.Counts(5, 5, 5)}
    found = field.Field(NAMES, met)
    assert (found.elo(0) or 0) > (found.elo(1) or 0)
    assert (found.error(0), found.elo(3), found.error(3)) == (None, None, None)
    assert found.ranked()[-1] == 3
    assert field.Field(NAMES, {}).elo(0) is None


def test_a_drawn_game_beside_lost_ones_is_no_certainty() -> None:
    """Two that drew and beat a third: nothing in their game varies, so neither has an error."""
    met = {
        (0, 1): results.Counts(0, 1, 0),
        (0, 2): results.Counts(1, 0, 0),
        (1, 2): results.Counts(1, 0, 0),
    }
    found = field.Field(NAMES[:3], met)
    assert found.elo(0) == pytest.approx(found.elo(1), abs=0.01)
    assert (found.error(0), found.error(1)) == (None, None)
    assert found.superiority(0, 1) is None


def test_errors_hold_95_percent_with_pairs_that_lean_on_their_opening() -> None:
    """Biased openings make pairs spread less than two games; the error bars follow."""
    random.seed(11)
    true = (60.0, 20.0, -20.0, -60.0)
    inside = total = 0
    narrower = []
    for _ in range(150):
        met = {}
        for first, second in itertools.combinations(range(4), 2):
            games, pairs = [0, 0, 0], [0] * 5
            for _ in range(25):
                bias = random.choice((-1, 1)) * 200  # the opening favours White, or Black
                lead = true[first] - true[second]
                points = [_half_points(lead + bias), _half_points(lead - bias)]
                pairs[sum(points)] += 1
                for half in points:
                    games[half] += 1
            met[first, second] = results.Counts(games[2], games[1], games[0], tuple(pairs))
        found = field.Field(NAMES, met)
        single = {key: results.Counts(one.wins, one.draws, one.losses) for key, one in met.items()}
        narrower.append((found.error(0) or 0) / (field.Field(NAMES, single).error(0) or 1))
        for engine in range(4):
            total += 1
            inside += abs((found.elo(engine) or 0) - true[engine] * SHRUNK) < (
                found.error(engine) or 0
            )
    assert 0.92 < inside / total < 0.985
    assert sum(narrower) / len(narrower) < 0.95


def _half_points(lead: float) -> int:
    """Draw a game without draws."""
    return 2 * (random.random() < elo.expected(lead))


# openings that favour one side by 200 Elo make scores flatter: what a lead of 120 then is worth
SHRUNK = elo.difference((elo.expected(320) + elo.expected(-80)) / 2) / 120
