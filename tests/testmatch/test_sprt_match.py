"""The keeper of a test match: what a step asks of the ledger, however many lanes there are."""

from __future__ import annotations

import pathlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator import contract
from orchestrator.ledger import lane_memory, lanes, memory
from orchestrator.testmatch import orders, sprt_match

HALL = "main"
STEPS = 20


def keeper(root: pathlib.Path, number: int) -> tuple[sprt_match.Keeper, lane_memory.MemoryLanes]:
    """Return the keeper of a match with so many lanes to play in."""
    ledger = memory.MemoryLedger()
    known = lane_memory.MemoryLanes(ledger)
    for at in range(number):
        known.open_lane(lanes.Lane(HALL, f"l{at}", "h1", frozenset({at}), 1024))
    engines = tuple(contract.EngineSpec(id=n, name=n, command=("none",)) for n in "ab")
    clock = contract.TimeControl(base_ms=1000)
    spec = orders.Spec(id="m", engines=engines, time_control=clock, games=10)
    made = sprt_match.Keeper(ledger, known, root / "m", spec, sprt_match.Terms(halls=(HALL,)))
    made.open("test")
    return made, known


def looks(root: pathlib.Path, number: int, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Return how often lanes and leases are read in steps, and the lanes that were rung."""
    made, known = keeper(root, number)
    counts: Counter[str] = Counter()

    def counted(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any) -> Any:
            counts[name] += 1
            return real(*args)

        return count

    for name in ("lanes_of", "leases"):
        monkeypatch.setattr(known, name, counted(name, getattr(known, name)))
    monkeypatch.setattr(sprt_match, "LOOK_SECONDS", 3_600.0)  # no step is later than that
    rung: list[str] = []
    for _ in range(STEPS):
        made.step(rung.append, 0)
    made.close()
    assert len(rung) == len(set(rung)) == number
    return counts


def test_a_step_reads_lanes_now_and_then_whatever_their_number(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All lanes of a hall are one look, who plays there another; steps between have none."""
    few, many = (looks(tmp_path / str(n), n, monkeypatch) for n in (2, 40))
    assert few == many == {"lanes_of": 1, "leases": 1}


def test_a_lane_that_comes_later_is_rung(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next look finds it; one that plays is not rung, one that was rung only in time."""
    made, known = keeper(tmp_path, 1)
    rung: list[str] = []
    made.step(rung.append, 0)
    known.open_lane(lanes.Lane(HALL, "late", "h1", frozenset({9}), 1024))
    monkeypatch.setattr(sprt_match, "LOOK_SECONDS", 0.0)
    made.step(rung.append, 0)
    assert rung == [f"{HALL}.l0", f"{HALL}.late"]
    known.claim_lane(lanes.LaneClaim(HALL, "late", "late-1", "w", "h1", 60_000))
    monkeypatch.setattr(sprt_match, "RING_SECONDS", 0.0)
    made.step(rung.append, 0)
    assert rung[2:] == [f"{HALL}.l0"]
    made.close()
