"""How much of a machine's cores is used, and by how much others than one tree of processes.

Reads ``/proc`` only. The hall's beat tells it of the engines' cores
(``worker_cpu.host.heartbeat``), ``farm up`` and ``farm match`` of their own machine. A tree's use
counts what its processes have reaped, too.
"""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterable
from typing import Final

PROC: Final = pathlib.Path("/proc")
LOOK_SECONDS: Final = 5.0  # s: between two looks at all processes, a few ms each
BUSY: Final = 0.5  # cores that others use: less is what every desk does


def usable() -> int:
    """Return how many cores this process may use; where a system does not say, all of them."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processor:
    """The use of cores between two looks; ``cpus`` empty means all of them."""

    def __init__(self, cpus: frozenset[int], own: int, proc: pathlib.Path = PROC) -> None:
        """Watch the cores; ``own`` is the process whose tree is not foreign."""
        self._cpus, self._own, self._proc = cpus, own, proc
        self._before: tuple[int, int, int, int] | None = None

    def look(self) -> tuple[float | None, float | None]:
        """Return the use of all cores and the foreign use of the watched ones since last time."""
        now = (*self._cores(), *self._watched())
        before, self._before = self._before, now
        if before is None:
            return None, None
        busy, whole, engine_busy, own = (a - b for a, b in zip(now, before, strict=True))
        if whole <= 0:
            return None, None
        share = (len(self._cpus) or self.count) / max(1, self.count)
        foreign = max(0.0, engine_busy - own) / (whole * share)
        return max(0.0, busy / whole), min(1.0, foreign)

    @property
    def count(self) -> int:
        """Return how many cores there are."""
        return sum(1 for name, _ in self._lines() if name != "cpu")

    def _lines(self) -> Iterable[tuple[str, list[int]]]:
        for line in (self._proc / "stat").read_text().splitlines():
            name, *ticks = line.split()
            if name.startswith("cpu"):
                yield name, [int(word) for word in ticks[:8]]

    def _cores(self) -> tuple[int, int]:
        ticks = dict(self._lines())["cpu"]
        return sum(ticks) - ticks[3] - ticks[4], sum(ticks)

    def _watched(self) -> tuple[int, int]:
        wanted = {f"cpu{number}" for number in self._cpus}
        busy = 0
        for name, ticks in self._lines():
            if name in wanted or (not wanted and name != "cpu"):
                busy += sum(ticks) - ticks[3] - ticks[4]
        return busy, self._tree()

    def _tree(self) -> int:
        """Return the ticks that the own process, its children and what they reaped have used."""
        parents: dict[int, int] = {}
        used: dict[int, int] = {}
        for path in self._proc.glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has ended meanwhile
            pid = int(path.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(int(word) for word in fields[11:15])
        ours = {self._own}
        grown = True
        while grown:
            children = {pid for pid, parent in parents.items() if parent in ours} - ours
            ours |= children
            grown = bool(children)
        return sum(used.get(pid, 0) for pid in ours)


class Others:
    """The cores that others than this process and its children use, look by look.

    On a hall's machine an engine has cores of its own, and ``farm doctor`` measures that they are
    quiet. ``farm up`` and ``farm match`` share a desk's or a CI's machine: where others take what
    thinking engines need, a loss on time may be theirs. That is said, and nothing is decided by it.
    """

    def __init__(
        self,
        proc: pathlib.Path = PROC,
        look_seconds: float = LOOK_SECONDS,
        games: frozenset[int] = frozenset(),
    ) -> None:
        """Begin to watch the cores that games are bound to; none: those this process may use."""
        watched = games or frozenset(os.sched_getaffinity(0))
        self.cores = len(watched)
        self.used: float | None = None
        self._bound = bool(games)
        self._processor = Processor(watched, os.getpid(), proc)
        self._every, self._due = look_seconds, float("-inf")

    def look(self, *, at_once: bool = False) -> None:
        """Measure what others used since the last look, if it is time.

        ``at_once``: also before, where nothing has been measured yet.
        """
        if time.monotonic() >= self._due or (at_once and self.used is None):
            self._due = time.monotonic() + self._every
            ratio = self._processor.look()[1]
            self.used = None if ratio is None else ratio * self.cores

    def crowd(self, needed: int) -> str:
        """Say what others use where less than ``needed`` cores are left, else ''."""
        if self.used is None or self.used < BUSY or self.cores - self.used >= needed:
            return ""
        if self._bound:
            cores = "the games' core" if self.cores == 1 else f"the games' {self.cores} cores"
        else:
            cores = f"{self.cores} core{'' if self.cores == 1 else 's'} of this machine"
        return f"other programs use {self.used:.1f} of {cores}"
