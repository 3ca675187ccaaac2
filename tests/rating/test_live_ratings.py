"""nTCEC's live Elo."""

from __future__ import annotations

import pytest

from orchestrator.common import errors
from orchestrator.rating import live


def test_equals_move_by_half_of_k() -> None:
    """A win between equals gives half of K, which falls with the rating; draws give nothing."""
    for rating, k in ((2500.0, 17.0), (2700.0, 16.0), (3000.0, 13.0), (3200.0, 12.0)):
        table = live.LiveElo({"a": rating, "b": rating})
        assert table.play("a", "b", "1/2-1/2") == live.Change(0.0, 0.0)
        assert table.play("a", "b", "1-0") == live.Change(k / 2, -k / 2)
        assert table.rating("a") == rating + k / 2


def test_a_new_version_inherits_the_rating() -> None:
    """N1: a family has one rating, whichever version plays."""
    table = live.LiveElo({"H": 3000.0, "b": 3000.0}, {"H 3": "H", "H 4": "H"})
    table.play_all([("H 3", "b", "1-0"), ("b", "H 4", "0-1"), ("H 4", "b", "*")])
    assert table.rating("H 3") == table.rating("H 4") > 3012


def test_who_has_no_first_rating_is_refused() -> None:
    """Nobody gets a number from nothing."""
    with pytest.raises(errors.UsageError, match="roster"):
        live.LiveElo({"a": 3000.0}).play("a", "b", "1-0")
