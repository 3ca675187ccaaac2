"""A host's parts for tests of scripts and playbooks; whole hosts are made by ``tests/lab``."""

from __future__ import annotations

import pathlib
import shlex
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def run(*words: str | pathlib.Path, timeout: float = 600) -> str:
    """Run a command; fail with all that it printed."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def sysfs(root: pathlib.Path) -> None:
    """Write a copy of the part of sysfs that the roles set, as a noisy host has it."""
    cpu = root / "devices/system/cpu"
    for number in range(4):
        governor = cpu / f"cpu{number}/cpufreq/scaling_governor"
        governor.parent.mkdir(parents=True, exist_ok=True)
        governor.write_text("powersave\n")
    for name, text in (("intel_pstate/no_turbo", "1"), ("smt/control", "on")):
        (cpu / name).parent.mkdir(parents=True, exist_ok=True)
        (cpu / name).write_text(f"{text}\n")
