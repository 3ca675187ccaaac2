"""Matching of greatest weight, against trying all matchings."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.season.formats import matching

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


def test_an_odd_number_cannot_be_matched() -> None:
    """Three vertices have no perfect matching."""
    assert matching.perfect([[None, 1, 1], [1, None, 1], [1, 1, None]]) is None
