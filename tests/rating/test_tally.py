"""What a test match has brought: pairs in any order, results set aside and replayed."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator import contract
from orchestrator.rating import results, tally
from orchestrator.testmatch import orders

POINTS = some.sampled_from([0.0, 0.5, 1.0])


@given(some.dictionaries(some.integers(1, 40), POINTS), some.randoms(), some.integers(1, 3))
def test_counts_depend_on_what_was_played_alone(
    played: dict[int, float], chance: random.Random, opponents: int
) -> None:
    """Whatever the order of results and of games set aside, the counts are those of the rest."""
    games = list(played)
    chance.shuffle(games)
    told = tally.Tally(opponents)
    for game in games:
        assert told.add(game, played[game], f"host-{game % 3}")
        assert not told.add(game, 1 - played[game], "late")
    aside = games[: len(games) // 2]
    told.aside(aside)
    told.aside(aside)
    kept = {game: played[game] for game in games if game not in aside}
    assert told.set_aside == len(aside)
    assert told.games == len(kept)
    assert told.counts() == results.total(
        _counts({g: p for g, p in kept.items() if (g - 1) // 2 % opponents == one})
        for one in range(opponents)
    )
    assert told.of_host("host-1") == sorted(game for game in kept if game % 3 == 1)
    assert told.next == max(kept, default=0) + 1
    assert told.missing() == [game for game in range(1, told.next) if game not in kept]


def _counts(kept: dict[int, float]) -> results.Counts:
    pairs = [0] * 5
    for game, points in kept.items():
        if game % 2 and game + 1 in kept:
            pairs[round(2 * (points + kept[game + 1]))] += 1
    values = list(kept.values())
    first, second, third, fourth, fifth = pairs
    told = (first, second, third, fourth, fifth)
    return results.Counts(values.count(1.0), values.count(0.5), values.count(0.0), told)


def _spec(opponents: int, openings: int, seed: str) -> orders.Spec:
    engines = [
        contract.EngineSpec(id=f"e{n}", name=f"E{n}", command=("x",)) for n in range(opponents + 1)
    ]
    lines = [contract.Opening(fen="", name=str(n)) for n in range(openings)]
    clock = contract.TimeControl(base_ms=1000)
    return orders.Spec(
        id="t",
        engines=tuple(engines),
        time_control=clock,
        games=10_000,
        openings=tuple(lines),
        seed=seed,
    )


@given(some.integers(1, 3), some.integers(1, 30), some.sampled_from(["", "seed"]))
def test_a_pair_shares_opponent_and_opening(opponents: int, openings: int, seed: str) -> None:
    """Both games of a pair differ in colours only; all meet all openings."""
    spec = _spec(opponents, openings, seed)
    met = []
    for pair in range(opponents * openings):
        first, second = spec.order(2 * pair + 1), spec.order(2 * pair + 2)
        assert first.opening == second.opening
        assert (first.white, first.black) == (second.black, second.white)
        assert first.white.id == "e0"
        met.append((first.black.id, first.opening.name))
    assert len(set(met)) == opponents * openings


def test_there_is_no_game_beyond_the_last() -> None:
    """A number outside the match is refused."""
    for number in (0, 10_001):
        with pytest.raises(ValueError, match="no game"):
            _spec(1, 1, "").order(number)
