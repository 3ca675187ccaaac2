"""Matching of greatest weight, against trying all matchings; what pairing a round costs."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.season.formats import base, dutch, matching, swiss

Weights = Sequence[Sequence[int | None]]


def best(weights: Weights) -> int | None:
    """Return the greatest weight of a perfect matching by trying all, None without one."""

    @functools.cache
    def rest(used: int) -> int | None:
        if used == (1 << len(weights)) - 1:
            return 0
        first = next(u for u in range(len(weights)) if not used >> u & 1)
        found = []
        for other in range(first + 1, len(weights)):
            weight, further = weights[first][other], None
            if weight is not None and not used >> other & 1:
                further = rest(used | 1 << first | 1 << other)
            if weight is not None and further is not None:
                found.append(weight + further)
        return max(found, default=None)

    return rest(0)


@st.composite
def graphs(draw: st.DrawFn) -> Weights:
    """Graphs of up to ten vertices, thin and full, of small and of huge weights."""
    size = 2 * draw(st.integers(0, 5))
    greatest = draw(st.sampled_from([1, 3, 50, 10**30]))
    edges = st.none() | st.integers(-greatest, greatest)
    weights: list[list[int | None]] = [[None] * size for _ in range(size)]
    for u in range(size):
        for v in range(u):
            weights[u][v] = weights[v][u] = draw(edges)
    return weights


@given(graphs())
@settings(max_examples=300)
def test_a_matching_is_perfect_and_the_greatest(weights: Weights) -> None:
    """Everybody has one partner, and no other matching weighs more."""
    found, greatest = matching.perfect(weights), best(weights)
    assert (found is None) == (greatest is None)
    if found is not None:
        assert all(found[found[u]] == u != found[u] for u in range(len(weights)))
        pairs = [(u, v) for u, v in enumerate(found) if u < v]
        assert sum(weights[u][v] or 0 for u, v in pairs) == greatest


def round_work(engines: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return what pairing the fourth round of a Swiss costs: pairs weighed, steps of the search."""
    games: list[base.Game] = []
    for number in range(1, 5):
        ranked = swiss.ranking(engines, "seed", base.History(number - 1, games.copy))
        counts: Counter[str] = Counter()
        with monkeypatch.context() as patched:
            for owner, name in (
                (dutch._Criteria, "quality"),
                (matching._Search, "_step"),
                (matching._Search, "_reduced"),
            ):
                patched.setattr(owner, name, counting(counts, name, getattr(owner, name)))
            pairs, _ = dutch.pair(ranked)
        for white, black in pairs:
            one, two = ranked[white].number, ranked[black].number
            result = ((2, 0), (1, 1), (0, 2))[(3 * one + 5 * two + number) % 3]
            games.append(base.Game(one, two, number, result))
    return counts


def counting(counts: Counter[str], name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that counts its calls."""

    def counted(*args: Any) -> Any:
        counts[name] += 1
        return real(*args)

    return counted


def test_a_round_costs_little_more_than_its_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of twice the engines there are four times the pairs, and as many brackets more as scores."""
    small, large = (round_work(engines, monkeypatch) for engines in (24, 48))
    assert large["quality"] < 6 * small["quality"]
    for work, engines in ((small, 24), (large, 48)):
        assert work["_reduced"] < 10 * work["quality"]  # each edge a few times, not at each step
        assert work["_step"] < 3 * engines


def test_an_odd_number_cannot_be_matched() -> None:
    """Three vertices have no perfect matching."""
    assert matching.perfect([[None, 1, 1], [1, None, 1], [1, 1, None]]) is None
