"""Options: the event's limits are set, lowered where needed, and recorded."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import hall
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import contract
from worker_cpu.protocols import options, uci

STOCKFISH = (
    uci.Option("Debug Log File", "string", ""),
    uci.Option("Hash", "spin", "16", 1, 1024),
    uci.Option("Threads", "spin", "1", 1, 8),
    uci.Option("Clear Hash", "button"),
    uci.Option("Ponder", "check", "false"),
    uci.Option("OwnBook", "check", "true"),
    uci.Option("Style", "combo", "Solid", choices=("Solid", "Risky")),
    uci.Option("SyzygyPath", "string", "<empty>"),
    uci.Option("UCI_Chess960", "check", "false"),
)


def plan_of(
    offered: tuple[uci.Option, ...] = STOCKFISH,
    variant: str = "standard",
    limits: contract.Limits | None = None,
    author: Mapping[str, str | int | bool] = MappingProxyType({}),
) -> options.Plan:
    """Plan an engine's options with limits beyond what it can take."""
    limits = limits or contract.Limits(threads=16, hash_mb=512, syzygy_path="/tb")
    spec = contract.EngineSpec(id="x", name="X", command=("x",), options=author)
    order = hall.order(spec, spec, limits=limits, variant=variant)
    return options.plan(offered, order, spec)


def setting(plan: options.Plan, name: str) -> contract.OptionSetting:
    """Return the one record of an option."""
    (found,) = [setting for setting in plan.settings if setting.name == name]
    return found


def test_limits_come_first_and_threads_before_all() -> None:
    """Threads, Hash and tablebases are set in this order, then books and pondering off."""
    assert plan_of().commands == (
        b"setoption name Threads value 8\n",
        b"setoption name Hash value 512\n",
        b"setoption name SyzygyPath value /tb\n",
        b"setoption name OwnBook value false\n",
        b"setoption name Ponder value false\n",
    )


def test_a_limit_beyond_the_engines_is_lowered_and_recorded() -> None:
    """The record says what was asked, what is offered, what was set and why."""
    assert setting(plan_of(), "Threads") == contract.OptionSetting(
        name="Threads",
        asked="16",
        offered="spin 1..8, default 1",
        set="8",
        remark="lowered to the engine's maximum 8",
    )


def test_an_option_the_engine_lacks_is_recorded_and_not_sent() -> None:
    """Nothing is sent for it; the record says so."""
    plan = plan_of(offered=(), author={"Skill": 3})
    assert plan.commands == ()
    assert [s.name for s in plan.settings] == ["Threads", "Hash", "SyzygyPath", "Skill"]
    assert {s.remark for s in plan.settings} == {"engine has no such option"}


def test_author_options_are_set_in_their_order_by_the_engines_spelling() -> None:
    """Names match in any case; buttons are pressed; choices are checked; empties written."""
    plan = plan_of(author={"style": "risky", "clear hash": True, "Debug Log File": ""})
    assert plan.commands[-3:] == (
        b"setoption name Style value Risky\n",
        b"setoption name Clear Hash\n",
        b"setoption name Debug Log File value <empty>\n",
    )
    assert setting(plan_of(author={"Style": "wild"}), "Style").set is None


def test_the_event_wins_over_an_author() -> None:
    """An author cannot raise the limits or open an own book."""
    plan = plan_of(author={"Threads": 8, "OwnBook": True})
    assert b"OwnBook value true" not in b"".join(plan.commands)
    assert [s.remark for s in plan.settings if s.name == "OwnBook"] == [
        "",
        "the event sets this option",
    ]


def test_fischerandom_is_told_to_the_engine() -> None:
    """Chess960 is switched on for that variant only."""
    command = b"setoption name UCI_Chess960 value true\n"
    assert command in plan_of(variant="fischerandom").commands
    assert command not in plan_of().commands


@given(
    lines=st.lists(st.binary(max_size=80).map(lambda tail: b"option name A type spin " + tail)),
    value=st.text(max_size=20) | st.integers() | st.booleans(),
)
def test_any_offer_and_any_value_give_one_line_each(
    lines: list[bytes], value: str | int | bool
) -> None:
    """Whatever is offered and asked, every command is exactly one line."""
    offered = tuple(option for line in lines if (option := uci.option(line)) is not None)
    plan = plan_of(offered=offered, author={"A": value})
    assert all(c.endswith(b"\n") and c.count(b"\n") == 1 for c in plan.commands)
    assert all(s.set is not None or s.remark for s in plan.settings)
