"""What the driver shows of the GPUs, and which of them may be played on."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import pytest
from twins import memory, seat_memory

from orchestrator import contract
from orchestrator.ledger import seats
from worker_cpu.hall import gpu_hosts, gpu_seats
from worker_cpu.worker import fairness
from worker_gpu import gpus

PROGRAM = """
import dataclasses, json, sys
from worker_gpu import gpus
try:
    shown = gpus.inventory()
    print(json.dumps([[dataclasses.asdict(g) for g in shown], gpus.refusal(shown, sys.argv[1:])]))
except gpus.NvmlError as error:
    print(json.dumps([[], str(error)]))
"""


def ask(nvml: pathlib.Path, told: str | None, *wanted: str) -> tuple[list[dict[str, object]], str]:
    """Return inventory and refusal, asked of the library in a process of its own."""
    listed = nvml / "gpus.txt"
    listed.unlink(missing_ok=True)
    if told is not None:
        listed.write_text(told)
    environment = os.environ | {"LD_LIBRARY_PATH": str(nvml), "FARM_FAKE_NVML": str(listed)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *wanted],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    shown, refusal = json.loads(done.stdout)
    return shown, refusal


def test_the_inventory_tells_all_the_driver_does(nvml: pathlib.Path) -> None:
    """Name, UUID, driver, memory, heat, clocks, power; what is not supported is none."""
    shown, refusal = ask(nvml, "GPU-a RTX-2080-Ti 45 1545 120 4 0\n", "GPU-a")
    assert refusal == "", "a power cap is a setting, not a fault"
    (gpu,) = shown
    assert gpu["uuid"] == "GPU-a"
    assert gpu["driver"] == "535.0-fake"
    assert gpu["memory_total_bytes"] == 11 << 30
    assert gpu["sm_clock_hertz"] == 1_545_000_000
    assert gpu["sm_clock_max_hertz"] is None
    assert gpu["power_watts"] == 120
    assert gpu["throttled"] == ["sw power cap"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("GPU-b X 45 1 1 0 0\n", "GPU GPU-a is missing; the driver shows GPU-b"),
        ("GPU-a X 45 1 1 0 1\n", "busy with a foreign process: 1"),
        ("GPU-a X 90 1 1 0 0\n", "too hot: 90 °C"),
        ("GPU-a X 45 1 1 64 0\n", "throttled: hw thermal slowdown"),
        (None, "Driver Not Loaded"),
    ],
)
def test_a_gpu_that_is_not_fit_is_refused_with_the_reason(
    nvml: pathlib.Path, told: str | None, why: str
) -> None:
    """Missing, busy, hot, throttled, or without a driver: the refusal says which."""
    assert why in ask(nvml, told, "GPU-a")[1]


SEEN = gpus.Gpu(
    index=0,
    uuid="GPU-a",
    name="X",
    driver="1",
    memory_total_bytes=None,
    memory_used_bytes=None,
    utilization_ratio=None,
    temperature_celsius=60.0,
    sm_clock_hertz=1e9,
    sm_clock_max_hertz=None,
    power_watts=None,
    power_limit_watts=None,
    throttled=("sw power cap",),
    processes=(),
)


def test_a_driver_that_falls_silent_takes_no_sample_with_it() -> None:
    """What was seen of a GPU stays; why it is not seen now is told until it is seen again."""
    first = gpus.used(None, "GPU-a", SEEN)
    lost = gpus.used(first, "GPU-a", "NVML: GPU is lost")
    assert lost == first.model_copy(update={"lost": "NVML: GPU is lost"})
    again = gpus.used(lost, "GPU-a", dataclasses.replace(SEEN, sm_clock_hertz=2e9, throttled=()))
    assert (again.samples, again.lost, again.throttled) == (2, "", ("sw power cap",))
    assert (again.sm_clock_min_hertz, again.sm_clock_max_hertz) == (1e9, 2e9)


class Looking:
    """A box that looks at its GPU whenever its hall waits, and tells the next of these reasons."""

    def __init__(self, *lost: str) -> None:
        self._lost = iter(lost)
        self._looks = 0
        self._seats = seat_memory.MemorySeats(memory.MemoryLedger())
        self._seating = seats.Seating("box-1", "main", "trial-1", None)
        self._seats.take_seats(self._seating, ["GPU-a"], self._answer())
        known = {"box-1": gpu_hosts.BoxAddress(address="", key="", host_key="a b")}
        self.hall = gpu_seats.Seating(self._seats, known, "main", "trial-1", None)

    def _answer(self) -> str:
        use = gpus.used(None, "GPU-a", next(self._lost) or SEEN)
        return contract.SeatAnswer(state="ready", use=(use,), looks=self._looks).encode()

    def look(self) -> None:
        """Look once more."""
        self._looks += 1
        self.tell(self._answer())

    def tell(self, answer: str) -> None:
        """Put an answer in the place of the last one."""
        self._seats.tell_seats(self._seating, answer)


@pytest.mark.parametrize(
    ("lost", "told"),
    [
        (("", "", ""), ""),
        (("", "", "gone"), "GPU GPU-a: gone"),
        (("gone",), "GPU GPU-a: gone"),
    ],
)
def test_a_fault_waits_for_a_look_that_began_after_it(lost: tuple[str, ...], told: str) -> None:
    """An older look may say that a GPU is gone, never that it is there."""
    box = Looking(*lost)
    report = {"box": "box-1", "gpus": ["X GPU-a"]}
    assert box.hall.lost_gpu(report, box.look) == told
    assert box.hall.lost_gpu({"box": "box-1", "gpus": []}, box.look) == "", "it had none"


def test_a_damaged_answer_ends_no_game() -> None:
    """It tells of no GPU, neither at a fault nor for the record."""
    box = Looking("gone")
    box.tell('{"state": "odd"}')
    report = {"box": "box-1", "gpus": ["X GPU-a"]}
    assert box.hall.lost_gpu(report, box.look) == ""
    box.hall._asked["box-1"] = None
    assert box.hall.use_by_side({"white": report, "black": report}) == {}


def test_another_gpu_or_driver_is_another_box() -> None:
    """A band holds which GPUs there were, and under which driver; an old one does not ask."""
    before = fairness.Figures(host="h", nps=100, signature="s", gpus=("X GPU-a, driver 1",))
    other = before.model_copy(update={"gpus": ("X GPU-a, driver 2",)})
    now = fairness.Band(hosts={"box-1": other})
    assert fairness.problems(now, now) == []
    assert fairness.problems(fairness.Band(hosts={"box-1": before}), now) == [
        "box-1: GPUs: X GPU-a, driver 2; recorded: X GPU-a, driver 1"
    ]
    old = fairness.Band(hosts={"box-1": before.model_copy(update={"gpus": None})})
    assert fairness.problems(old, now) == []


RECORDED = fairness.Figures(
    host="h", nps=1000, signature="s", rtt_ms=10.0, jitter_ms=1.0, offset_ms=0.0, gpus=()
)


@pytest.mark.parametrize(
    ("figure", "within", "beyond", "words"),
    [
        ("nps", (900, 1150), (899, 1151), "allowed: 90% to 115%"),
        ("signature", ("s",), ("t",), "signature t; recorded: s"),
        ("rtt_ms", (0.1, 25.0), (25.1,), "round trip 25.1 ms; allowed: 25.0 ms"),
        ("jitter_ms", (None, 8.0), (8.1,), "jitter 8.1 ms; allowed: 8.0 ms"),
        ("offset_ms", (None, -500.0, 500.0), (-501.0, 501.0), "01 ms; allowed: 500 ms"),
    ],
)
def test_a_host_out_of_its_band_is_told_with_both_figures(
    figure: str, within: tuple[object, ...], beyond: tuple[object, ...], words: str
) -> None:
    """Both ends of each band belong to it; a hall has no way to itself that could be slow."""

    def problems(value: object, recorded: fairness.Figures = RECORDED) -> list[str]:
        now = RECORDED.model_copy(update={figure: value})
        return fairness.problems(
            fairness.Band(hosts={"box-1": recorded}), fairness.Band(hosts={"box-1": now})
        )

    assert [problems(value) for value in within] == [[]] * len(within)
    for value in beyond:
        (problem,) = problems(value)
        assert problem.startswith("box-1: ")
        assert words in problem
    hall = RECORDED.model_copy(update={"rtt_ms": None})
    assert bool(problems(beyond[0], hall)) == (figure in {"nps", "signature"})


def test_a_hall_is_held_to_the_band_that_was_recorded_last(tmp_path: pathlib.Path) -> None:
    """Nothing is recorded at first; a later record takes the place of the one before."""
    assert fairness.recorded(tmp_path) is None
    for nps in (900, 1000):
        band = fairness.Band(hosts={"hall": RECORDED.model_copy(update={"nps": nps})})
        fairness.keep(tmp_path, band)
        assert fairness.recorded(tmp_path) == band


def test_a_host_that_was_recorded_and_is_gone_is_told() -> None:
    """One that is new has nothing to be compared with."""
    empty, known = fairness.Band(hosts={}), fairness.Band(hosts={"box-1": RECORDED})
    assert fairness.problems(known, empty) == ["box-1: recorded, and not there now"]
    assert fairness.problems(empty, known) == []
