"""The clock's arithmetic, for any sequence of thinking times."""

from __future__ import annotations

import made
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


@given(st.integers(1, 60), st.integers(0, 40), st.integers(1, 100_000), st.integers(0, 50))
def test_a_period_brings_its_time_after_its_last_move(
    period: int, book_moves: int, base_ms: int, moves: int
) -> None:
    """The base time comes again after each period, book moves counted, never before."""
    control = contract.TimeControl(base_ms=base_ms, moves=period)
    engine = clock.EngineClock(control, book_moves=book_moves)
    for number in range(book_moves + 1, book_moves + moves + 1):
        assert engine.moves_to_go == period - (number - 1) % period
        engine.charge(0)
        periods = 1 + number // period
        assert engine.remaining_ns == periods * base_ms * clock.NS_PER_MS


def test_the_flag_is_judged_before_the_new_period() -> None:
    """The last move of a period has to arrive within what was left."""
    engine = clock.EngineClock(contract.TimeControl(base_ms=1_000, moves=1))
    assert engine.charge(1_001 * clock.NS_PER_MS).flagged


@given(st.integers(1, 100_000), st.lists(st.integers(0, 10**11), max_size=5))
def test_a_fixed_time_is_there_again_before_every_move(move_ms: int, thoughts: list[int]) -> None:
    """Nothing is saved and nothing is owed from one move to the next."""
    engine = clock.EngineClock(contract.TimeControl(move_ms=move_ms))
    for think_ns in thoughts:
        assert engine.told_ms() == move_ms
        charge = engine.charge(min(think_ns, engine.allowance_ns()))
        assert not charge.flagged
    assert engine.charge(engine.allowance_ns() + 1).flagged


def test_an_engine_without_a_clock_has_a_bound() -> None:
    """Nodes and depth are limits of the engine's own; the referee's is the bound."""
    engine = clock.EngineClock(contract.TimeControl(nodes=100), bound_ms=2_000)
    assert engine.allowance_ns() == 2_000 * clock.NS_PER_MS
    assert engine.charge(10**9).margin_ns == 10**9
    assert engine.allowance_ns() == 2_000 * clock.NS_PER_MS
    assert engine.charge(2 * 10**9 + 1).flagged


@pytest.mark.parametrize(
    ("text", "fields", "shown"),
    [
        ("30+5", {"base_ms": 1_800_000, "increment_ms": 5_000}, "1800+5"),
        ("2s + 50ms", {"base_ms": 2_000, "increment_ms": 50}, "2+0.05"),
        (
            "40/60+0.5",
            {"base_ms": 3_600_000, "increment_ms": 500, "moves": 40},
            "40/3600+0.5",
        ),
        ("5s/move", {"move_ms": 5_000}, "5/move"),
        ("inf depth=8", {"depth": 8}, "- depth=8"),
        ("nodes=1000", {"nodes": 1_000}, "- nodes=1000"),
        (
            "1+0 depth=3 nodes=9",
            {"base_ms": 60_000, "depth": 3, "nodes": 9},
            "60+0 nodes=9 depth=3",
        ),
    ],
)
def test_time_controls_are_read_and_shown(text: str, fields: dict[str, int], shown: str) -> None:
    """All forms are read as written, and shown as PGN's tag has them."""
    control = contract.TimeControl.parse(text)
    assert control == contract.TimeControl.model_validate(fields)
    assert str(control) == shown


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("8+0.08", "8 s + 0.08 s"),
        ("60+0.6", "1 min + 0.6 s"),
        ("90", "90 s"),
        ("2m+500ms", "2 min + 0.5 s"),
        ("40/15+1", "40 moves in 15 s + 1 s"),
        ("0.5/move depth=4", "0.5 s a move, depth 4"),
        ("nodes=20000", "20000 nodes a move"),
    ],
)
def test_engine_authors_write_seconds_and_read_units(text: str, spoken: str) -> None:
    """Where seconds are meant a plain number is seconds; what is said has its units."""
    assert contract.TimeControl.parse(text, "s").spoken == spoken


@pytest.mark.parametrize(
    "text", ["", "inf", "0+5", "40/", "x+5", "5s/move+3", "1+1 fast", "1 1", "nodes=x", "depth=0"]
)
def test_what_is_no_time_control_is_refused(text: str) -> None:
    """A clock or a limit is wanted, and nothing is guessed."""
    with pytest.raises(ValueError, match=r"."):
        contract.TimeControl.parse(text)


def test_a_side_may_have_its_own_time_and_margin() -> None:
    """An engine's own control and margin go before the order's."""
    odds = contract.TimeControl.parse("1+0")
    plain = contract.EngineSpec(id="a", name="A", command=("a",))
    other = plain.model_copy(update={"time_control": odds, "time_margin_ms": 0})
    control = contract.TimeControl.parse("2+1")
    order = made.order(plain, other, time_control=control, time_margin_ms=9)
    assert (order.control("black"), order.margin_ms("black")) == (odds, 0)
    assert (str(order.control("white")), order.margin_ms("white")) == ("120+1", 9)
