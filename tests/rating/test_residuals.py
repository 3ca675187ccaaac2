"""Evidence on the owners of workers: fair, of a crowd, and carried from match to match."""

from __future__ import annotations

import random

import pytest

from orchestrator.rating import residuals


def test_evidence_is_fair() -> None:
    """Over all orders of a block's pairs the evidence on an owner is 1 on average, or less.

    Without what machines may differ in it is exactly 1: that is why one may look at it so often.
    """
    shares, draw = (1, 4, 6, 4, 1), random.Random(5)
    total, runs = 0.0, 400
    for _ in range(runs):
        one, crowd = residuals.Residuals(), draw.choices(range(5), shares, k=8)
        for at, half_points in enumerate(crowd):
            one.add(f"t{at}", "m", residuals.Pair(half_points))
        total += sum(2.718281828 ** one.of(f"t{at}").nats for at in range(8)) / 8
    assert 0.7 < total / runs <= 1.0


def test_evidence_of_earlier_matches_counts() -> None:
    """All but a tenth of the stake goes on with it, and a new match does not begin below that."""
    before, one = residuals.Residuals(), residuals.Residuals()
    for _ in range(40):
        for token in ("bad", "a", "b", "c", "d", "e", "f", "g"):
            before.add(token, "m", residuals.Pair(4 if token == "bad" else 2))
    one.carry(before.carried() | {"good": [-30.0] * 12, "of another version": [30.0]})
    assert one.of("bad").nats == pytest.approx(before.of("bad").nats - 0.02, abs=0.01)
    assert one.of("good").nats == pytest.approx(-3.912, abs=0.001)
    assert one.of("of another version").nats == one.of("new").nats == 0.0
    assert one.carried() == {}  # nobody has played


def test_two_owners_are_a_crowd_and_one_is_none() -> None:
    """However much one plays alone, nothing is said of him before another one has a pair."""
    one = residuals.Residuals()
    alone = [one.add("a", "m", residuals.Pair(4)) for _ in range(2 * residuals.LEAST_BLOCK)]
    assert not any(alone)
    assert one.carried() == {}
    assert one.add("b", "m", residuals.Pair(2))
    assert set(one.evidence()) == {"a", "b"}


def test_the_last_pairs_of_a_match_of_many_owners_count() -> None:
    """A match of many owners has large blocks; at its end the least one that says anything does."""
    evidence = []
    for left in (residuals.LEAST_BLOCK - 1, residuals.LEAST_BLOCK):
        one, at = residuals.Residuals(), 0
        while len(one.evidence()) < residuals.SHARE * (residuals.LEAST_BLOCK + 1):
            one.add(f"t{at}", "m", residuals.Pair(2))
            at += 1
        for name in ("bad", *(f"t{at}" for at in range(left - 1))):
            assert not one.add(name, "m", residuals.Pair(4 if name == "bad" else 2))
        evidence.append(one.carried().get("bad"))
    assert evidence[0] is None
    assert evidence[1] is not None
