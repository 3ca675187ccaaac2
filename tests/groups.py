"""Control groups for tests, below the one this process runs in: without, tests skip by name."""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from worker_cpu.host import cgroups

ROOT = pathlib.Path("/sys/fs/cgroup")
PATIENCE = 60.0  # s: processes that were killed leave their group


def parent() -> pathlib.Path:
    """Return the group below which memory can be bounded; skip by name where there is none."""
    if os.geteuid() != 0:
        pytest.skip("hardware: a control group of memory needs root")
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if "memory" in kinds.split(","):
            return ROOT / "memory" / path.strip("/")
    control = ROOT / "cgroup.subtree_control"
    if not control.exists() or "memory" not in control.read_text().split():
        pytest.skip("hardware: this machine gives no control group of memory")
    return ROOT  # only the root may hold processes and groups at once


def of_engines() -> pathlib.Path:
    """Return where a hall of this user makes its engines' groups; skip by name where it may not."""
    base = cgroups.parent()
    if base is None:
        pytest.skip(
            "hardware: this user may make no control group (version 2) for engines: root may, and"
            " a service or user session to which systemd delegates one"
        )
    return base


def need_proof_of_stalls(*, of_engines: bool) -> None:
    """Skip by name where busy cores hide that the host stood still: see ``pulse``.

    ``of_engines``: whether the engines' control groups would prove it, too.
    """
    ask = "import sys; from worker_cpu.host import pulse; sys.exit(not pulse.run_at_once())"
    prompt = subprocess.run([sys.executable, "-c", ask], check=False).returncode == 0
    if not prompt and not (of_engines and cgroups.parent()):
        pytest.skip(
            "hardware: without real-time priority and without control groups for engines a busy"
            " machine proves no stall: this user may have neither"
        )


@contextlib.contextmanager
def room() -> Iterator[pathlib.Path]:
    """Make a group below which seats get theirs; all are removed when nobody runs in them."""
    group = parent() / f"farm-test-{secrets.token_hex(4)}"
    group.mkdir()
    with contextlib.suppress(OSError):  # version 1 hands on what it has by itself
        (group / "cgroup.subtree_control").write_text("+memory")
    try:
        yield group
    finally:
        for place in (*group.glob("*/"), group):
            _remove(place)


def _remove(group: pathlib.Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while group.is_dir():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def enter(group: pathlib.Path, pid: int) -> None:
    """Move a process into a group: what it starts is born there."""
    (group / "cgroup.procs").write_text(str(pid))
