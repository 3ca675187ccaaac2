"""Drawing lots from the season's seed."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.season.spec import seeded_random


def test_published_vectors() -> None:
    """A draw is SHA-256 of the JSON list of seed, node and k, so anyone can check it."""
    text = "4a480b1e"  # first digits of sha256('["seed","node",0]')
    assert f"{seeded_random.number('seed', 'node', 0):064x}".startswith(text)
    assert seeded_random.commitment("seed").startswith("19b25856e1c150ca")


@given(st.text(), st.text(), st.integers(0, 60))
def test_shuffle_is_a_permutation_and_repeats(seed: str, node: str, count: int) -> None:
    """A shuffle holds every number once and is the same whenever it is drawn."""
    order = seeded_random.shuffle(seed, node, count)
    assert sorted(order) == list(range(count))
    assert seeded_random.shuffle(seed, node, count) == order


def test_shuffles_are_fair() -> None:
    """All orders of three come up about equally often over many nodes."""
    orders = Counter(tuple(seeded_random.shuffle("seed", f"node {n}", 3)) for n in range(6000))
    assert len(orders) == 6
    assert all(850 < count < 1150 for count in orders.values())


def test_biased_values_are_thrown_away() -> None:
    """A value beyond the last whole multiple of the bound is drawn again."""
    assert seeded_random.below(iter([(1 << 256) - 1, 4]), 3) == 1


@given(st.integers(0, 50))
def test_nodes_and_seeds_draw_apart(k: int) -> None:
    """Another node, another seed or another k gives another number."""
    numbers = {
        seeded_random.number("a", "n", k),
        seeded_random.number("b", "n", k),
        seeded_random.number("a", "m", k),
        seeded_random.number("a", "n", k + 1),
    }
    assert len(numbers) == 4
