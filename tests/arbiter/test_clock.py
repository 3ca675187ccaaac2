"""The clock's arithmetic, for any sequence of thinking times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from orchestrator.arbiter import clock

CONTROLS = st.builds(
    contract.TimeControl,
    base_ms=st.integers(1, 10_000_000),
    increment_ms=st.integers(0, 60_000),
)
THOUGHTS = st.lists(st.integers(0, 20_000_000_000), max_size=30)


def test_the_clock_starts_at_the_base_without_an_increment() -> None:
    """A game at 30+5 starts with 1 800 000 ms."""
    assert clock.EngineClock(contract.TimeControl.parse("30+5")).told_ms() == 1_800_000


@given(CONTROLS, st.integers(0, 5_000), THOUGHTS)
def test_no_nanosecond_is_lost_or_made(
    control: contract.TimeControl, margin_ms: int, thoughts: list[int]
) -> None:
    """What is left is base plus increments less all thinking, exactly, until a flag falls."""
    engine = clock.EngineClock(control, margin_ms)
    expected = control.base_ms * clock.NS_PER_MS
    for think_ns in thoughts:
        late = think_ns > expected + margin_ms * clock.NS_PER_MS
        charge = engine.charge(think_ns)
        assert charge.flagged is late
        assert charge.margin_ns == expected - think_ns
        expected -= think_ns
        if late:
            assert charge.remaining_ns == expected
            break
        expected += control.increment_ms * clock.NS_PER_MS
        assert charge.remaining_ns == engine.remaining_ns == expected


@given(CONTROLS, THOUGHTS)
def test_never_more_is_told_than_there_is(
    control: contract.TimeControl, thoughts: list[int]
) -> None:
    """The told time is what is left rounded down, and 1 ms where that would be nothing."""
    engine = clock.EngineClock(control)
    for think_ns in thoughts:
        if engine.charge(think_ns).flagged:
            return
        assert engine.told_ms() == max(1, engine.remaining_ns // clock.NS_PER_MS)
        assert engine.told_ms() * clock.NS_PER_MS <= max(engine.remaining_ns, clock.NS_PER_MS)


@given(CONTROLS, st.integers(0, 5_000))
def test_the_flag_falls_strictly_after_the_allowance(
    control: contract.TimeControl, margin_ms: int
) -> None:
    """A move that takes exactly the allowance is in time, a nanosecond more is late."""
    engine = clock.EngineClock(control, margin_ms)
    assert not clock.EngineClock(control, margin_ms).charge(engine.allowance_ns()).flagged
    assert clock.EngineClock(control, margin_ms).charge(engine.allowance_ns() + 1).flagged


@given(CONTROLS, st.integers(1, 5_000), THOUGHTS)
def test_the_margin_is_not_given_back(
    control: contract.TimeControl, margin_ms: int, thoughts: list[int]
) -> None:
    """However an engine lives on the margin, its debt never exceeds it."""
    engine = clock.EngineClock(control, margin_ms)
    for think_ns in thoughts:
        charge = engine.charge(min(think_ns, engine.allowance_ns()))
        assert charge.margin_ns >= -margin_ms * clock.NS_PER_MS


def test_a_negative_thinking_time_is_an_error() -> None:
    """Stamps in the wrong order are never turned into a gift of time."""
    with pytest.raises(ValueError, match="-1 ns"):
        clock.EngineClock(contract.TimeControl(base_ms=1000, increment_ms=0)).charge(-1)
