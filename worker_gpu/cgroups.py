"""Bound an engine's memory on a box: a control group for each seat, of either version.

Never by RLIMIT_AS: CUDA reserves far more address space than it uses. Invariants: a group is
bounded before anything runs in it, swap included; only groups of seats that nobody will take
any more are removed.
"""

from __future__ import annotations

import contextlib
import pathlib
import time
from typing import Final

from orchestrator.common import errors

OLD_SECONDS: Final = 3600.0  # s: a seat is taken within minutes; an empty group is over by then
# The file of the bound on memory, and that of swap: version 2 bounds swap alone, version 1
# memory and swap together.
_UNIFIED: Final = ("memory.max", "memory.swap.max")
_LEGACY: Final = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")


def bounded(parent: pathlib.Path, seat: str, limit_mb: int) -> pathlib.Path:
    """Make the group of a seat below ``parent``; raise ``HostError`` where none can be made."""
    _forget_old(parent)
    group = parent / f"seat-{seat}"
    limit = str(limit_mb << 20)
    try:
        group.mkdir()
        legacy = (group / _LEGACY[0]).exists()
        memory, swap = _LEGACY if legacy else _UNIFIED
        (group / memory).write_text(limit)
        with contextlib.suppress(OSError):  # version 2: who is killed for memory, is killed whole
            (group / "memory.oom.group").write_text("1")
        with contextlib.suppress(OSError):  # a host without swap has no such file
            (group / swap).write_text(limit if legacy else "0")
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise errors.HostError(
            f"no control group for memory can be made in {parent}: {error}; delegate one to this"
            " user (FARM_BOX_CGROUP), or unset FARM_BOX_MEMORY_MB"
        ) from error
    return group


def _forget_old(parent: pathlib.Path) -> None:
    for old in parent.glob("seat-*"):
        with contextlib.suppress(OSError):  # somebody still runs in it, or it is gone
            if time.time() - old.stat().st_mtime > OLD_SECONDS:
                old.rmdir()
