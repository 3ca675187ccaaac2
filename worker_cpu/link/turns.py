"""Freeze an engine that works in its opponent's turn: the cores are the opponent's.

Pondering is off in every event. An engine that works on in its opponent's turn takes its
opponent's time; it is held (``cgroup.freeze``) from then on whenever it is not on move. The link
does so, so the referee's clock costs nothing; an engine that waits quietly is never touched.
Invariants:

* an engine is released while both clocks stand still, before its own can start;
* nothing but the engine's own control group is held, never a part of the farm.

Without a control group an engine cannot be held: what it took is evidence (``stall``).
"""

from __future__ import annotations

import pathlib
import time
from collections.abc import Mapping
from typing import Any

import structlog

from orchestrator import contract
from orchestrator.arbiter import verdict
from worker_cpu.host import cgroups

log = structlog.get_logger()

LOOK_SECONDS = 0.05  # s: between two looks at the engine that waits
ALLOWED_NS = 100_000_000  # ns of processor time after its move: to put its things in order
LATER = 3600.0  # s: nothing to look at
SIDES: tuple[contract.Side, ...] = ("white", "black")


class Turns:
    """Both engines of one game, and who of them has taken its opponent's time."""

    def __init__(self) -> None:
        self._groups: Mapping[contract.Side, pathlib.Path] = {}
        self._restless: dict[contract.Side, int] = {}  # ns used in the opponent's turns
        self._waiting: contract.Side | None = None
        self._before_ns = 0
        self._look_at = 0.0

    def watch(self, groups: Mapping[contract.Side, pathlib.Path | None]) -> None:
        """Take the control groups of the engines that have one."""
        self._groups = {side: group for side, group in groups.items() if group is not None}

    @property
    def rest_seconds(self) -> float:
        """Return how long the link may wait until the next look."""
        if self._waiting is None:
            return LATER
        return max(0.0, self._look_at - time.monotonic())

    def begin(self, side: contract.Side) -> None:
        """Note that a side's clock runs: the other one waits."""
        other = verdict.opponent(side)
        group = self._groups.get(other)
        if group is None or other in self._restless:
            self._waiting = None
            return
        self._waiting, self._before_ns = other, cgroups.used_ns(group)
        self._look_at = time.monotonic() + LOOK_SECONDS

    def look(self) -> None:
        """Hold the engine that waits when it has worked for longer than is allowed."""
        side = self._waiting
        if side is None or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        used_ns = cgroups.used_ns(self._groups[side]) - self._before_ns
        if used_ns > ALLOWED_NS:
            log.warning("engine.held", side=side, used_ms=used_ns // 1_000_000)
            cgroups.hold(self._groups[side])
            self._restless[side] = used_ns
            self._waiting = None

    def end(self, side: contract.Side) -> None:
        """Give the turn on: the side that has moved waits, its opponent may run."""
        self._waiting = None
        other = verdict.opponent(side)
        if side in self._restless:
            cgroups.hold(self._groups[side])
        if other in self._restless:
            cgroups.release(self._groups[other])

    def release(self) -> None:
        """Let both engines run: the game is over, and they may quit."""
        self._waiting = None
        for side in self._restless:
            cgroups.release(self._groups[side])

    @property
    def remarks(self) -> list[str]:
        """Return what the record has to say of engines that were held."""
        return [
            f"{side}'s engine worked for {used_ns // 1_000_000} ms in its opponent's turn;"
            " from then on it was held while it waited"
            for side, used_ns in self._restless.items()
        ]


def groups(reports: Mapping[str, Any]) -> dict[contract.Side, pathlib.Path | None]:
    """Return the control groups of READY's engines on this host, ``None`` for one without."""
    here = [side for side in SIDES if reports[side].get("pid") and not reports[side].get("box")]
    return {side: cgroups.of_process(reports[side]["pid"]) for side in here}
