"""What the driver shows of the GPUs, and which of them may be played on."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

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
