"""How much of a machine's cores others use: samples in which all columns differ."""

from __future__ import annotations

import pathlib

import pytest

from orchestrator.common import processor

OWN = 10
NONE = (0,) * 8
# user nice system idle iowait irq softirq steal: 110 ticks of which 60 are nobody's
GREW = (1, 2, 4, 33, 27, 7, 15, 21)


def sample(proc: pathlib.Path, cores: dict[int, tuple[int, ...]], own: tuple[int, ...]) -> None:
    """Write the counters of two cores and of three processes: our own, its child, a stranger."""
    both = [sum(column) for column in zip(*cores.values(), strict=True)]
    lines = [("cpu", both), *((f"cpu{core}", ticks) for core, ticks in cores.items())]
    text = "".join(f"{name} {' '.join(map(str, ticks))} 0 0\n" for name, ticks in lines)
    (proc / "stat").write_text(f"{text}intr 1 2 3\n")
    for pid, parent, ticks in ((OWN, 1, own), (11, OWN, (1, 0, 0, 0)), (12, 1, (500, 0, 0, 0))):
        (proc / str(pid)).mkdir(exist_ok=True)
        words = ["S", parent, *[9] * 9, *ticks, 9]
        (proc / str(pid) / "stat").write_text(f"{pid} (an) engine) {' '.join(map(str, words))}\n")


@pytest.mark.parametrize(
    ("cores", "foreign"),
    [(frozenset({1}), (50 - 15) / 110), (frozenset(), (50 - 15) / 220)],
    ids=["one core", "all"],
)
def test_the_load_of_others_is_all_that_is_neither_idle_nor_ours(
    tmp_path: pathlib.Path, cores: frozenset[int], foreign: float
) -> None:
    """Idle time and waiting for a disk is no load; ours is what our tree used and has reaped."""
    watched = processor.Processor(cores, OWN, tmp_path)
    sample(tmp_path, {0: NONE, 1: NONE}, (0, 0, 0, 0))
    assert watched.look() == (None, None)
    sample(tmp_path, {0: (0, 0, 0, 110, 0, 0, 0, 0), 1: GREW}, (1, 2, 4, 8))
    assert watched.look() == pytest.approx((50 / 220, foreign))
