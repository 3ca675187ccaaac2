"""Was it the host? What a host took away from an engine while its clock ran.

The link takes a sample when a clock starts and one when the game has ended on it; the
referee's core is not used, and nothing is read in between. Sources: ``/proc/stat`` (busy and
stolen time of the engines' cores), the engines' own processor time, the kernel's throttling
counters and clock frequency, and how late this process itself was woken.

A stall is *proven* when the time taken away is at least what the engine was late by, even
if all that was taken in the part of the window outside its clock is left out (S16-15b "time
loss due to lag"). Load of others counts only on cores that are the engines' alone; on
shared ones it is told but proves nothing, as a low frequency does. An engine on a GPU box is
watched by its agent, which tells the same counters of its own host (``told``).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import time
from collections.abc import Iterable, Mapping
from typing import Any

PROC = pathlib.Path("/proc")
_NS = 1_000_000_000
_TICK_NS = _NS // os.sysconf("SC_CLK_TCK")
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL = 0, 1, 2, 5, 6, 7  # columns of /proc/stat
_TIMES = slice(11, 15)  # utime, stime, and those of ended children: behind the name in its stat


@dataclasses.dataclass(frozen=True)
class Sample:
    """Counters at one moment, in nanoseconds; ``busy`` and ``steal`` by core."""

    at_ns: int
    busy: Mapping[int, int]
    steal: Mapping[int, int]
    throttled: Mapping[int, int]
    engines_ns: int


@dataclasses.dataclass(frozen=True)
class Loss:
    """What was taken away between two samples, in milliseconds.

    ``steal`` and ``throttled`` are the worst core's, ``foreign`` the mean of all cores (0
    where they are shared with others: it is ``shared`` there), ``frozen`` how late the link was
    woken.
    """

    window: float
    steal: float
    throttled: float
    foreign: float
    frozen: float
    mhz: float | None
    shared: float | None = None

    @property
    def worst(self) -> float:
        """Return the largest of the times that prove something."""
        return max(self.steal, self.throttled, self.foreign, self.frozen)

    def proves(self, think_ms: float, late_ms: float) -> bool:
        """Say whether an engine that was so late would have been in time without it."""
        outside_ms = max(0.0, self.window - think_ms)
        return late_ms >= 0 and self.worst - outside_ms >= max(late_ms, 1.0)

    def __str__(self) -> str:
        """Write the evidence for the record."""
        frequency = "unknown" if self.mhz is None else f"{self.mhz:.0f} MHz"
        return (
            f"host in the last {self.window:.0f} ms: steal {self.steal:.0f} ms, throttled"
            f" {self.throttled:.0f} ms, {self._load()}, frozen"
            f" {self.frozen:.0f} ms, frequency {frequency}"
        )

    def _load(self) -> str:
        if self.shared is None:
            return f"foreign load {self.foreign:.0f} ms"
        return f"load of others {self.shared:.0f} ms (shared cores: it proves nothing)"


class Host:
    """The counters of this host's engine cores; ``proc`` and ``system`` are where they stand."""

    def __init__(
        self,
        cores: Iterable[int] = (),
        proc: pathlib.Path = PROC,
        system: pathlib.Path = pathlib.Path("/sys/devices/system/cpu"),
    ) -> None:
        """Watch the engines' own cores; without any, those that this process may use."""
        self._own = frozenset(cores)
        self._cores = self._own or frozenset(os.sched_getaffinity(0))
        self._proc, self._system = proc, system

    def sample(self, engines: Iterable[int]) -> Sample:
        """Read the counters now; ``engines`` are the engines' process ids."""
        lines = _read(self._proc / "stat").splitlines()
        busy, steal = dict[int, int](), dict[int, int]()
        for line in lines:
            name, _, rest = line.partition(" ")
            core = name.removeprefix("cpu")
            if name.startswith("cpu") and core.isdigit() and int(core) in self._cores:
                ticks = [int(word) for word in rest.split()]
                used = (ticks[at] for at in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ))
                busy[int(core)] = sum(used) * _TICK_NS
                steal[int(core)] = ticks[_STEAL] * _TICK_NS
        return Sample(
            at_ns=time.monotonic_ns(),
            busy=busy,
            steal=steal,
            throttled={core: self._throttled_ns(core) for core in self._cores},
            engines_ns=processor_ns(engines, self._proc),
        )

    def loss(self, before: Sample, after: Sample, frozen_ns: int = 0) -> Loss:
        """Return what was taken away between two samples of this host."""
        cpus = os.cpu_count() or 1
        return lost(before, after, frozen_ns, cpus, own_cores=bool(self._own), mhz=self._mhz())

    def _throttled_ns(self, core: int) -> int:
        path = self._system / f"cpu{core}" / "thermal_throttle" / "core_throttle_total_time_ms"
        return _number(path) * 1_000_000

    def _mhz(self) -> float | None:
        paths = (self._system / f"cpu{c}" / "cpufreq" / "scaling_cur_freq" for c in self._cores)
        known = [khz for khz in map(_number, paths) if khz]
        return min(known) / 1000 if known else None


def lost(
    before: Sample,
    after: Sample,
    frozen_ns: int,
    cpus: int,
    *,
    own_cores: bool,
    mhz: float | None = None,
) -> Loss:
    """Return what a host of so many cores took away between two samples.

    A host in which engines ran meanwhile was not frozen: who keeps all cores busy wakes
    the sleeper by whom that is seen late by itself.
    """
    window_ns = after.at_ns - before.at_ns
    others, own = 0.0, max(0, after.engines_ns - before.engines_ns)
    if after.busy:
        others = max(0.0, (sum(_grown(before.busy, after.busy).values()) - own) / len(after.busy))
    ran_meanwhile_ns = min(frozen_ns, max(0.0, own / cpus - max(0, window_ns - frozen_ns)))
    return Loss(
        window=window_ns / 1e6,
        steal=max(_grown(before.steal, after.steal).values(), default=0) / 1e6,
        throttled=max(_grown(before.throttled, after.throttled).values(), default=0) / 1e6,
        foreign=others / 1e6 if own_cores else 0.0,
        frozen=(frozen_ns - ran_meanwhile_ns) / 1e6,
        mhz=mhz,
        shared=None if own_cores else others / 1e6,
    )


def told(words: Mapping[str, Any]) -> Loss:
    """Return what a GPU box took from an engine, as its agent tells it."""
    before, after = (_sample(words[when]) for when in ("before", "after"))
    own_cores = bool(words["own_cores"])
    return lost(before, after, int(words["frozen_ns"]), int(words["cpus"]), own_cores=own_cores)


def _sample(words: Mapping[str, Any]) -> Sample:
    busy, steal, throttled = (
        {int(core): int(ns) for core, ns in words[name].items()}
        for name in ("busy", "steal", "throttled")
    )
    return Sample(int(words["at_ns"]), busy, steal, throttled, int(words["engines_ns"]))


def processor_ns(engines: Iterable[int], proc: pathlib.Path = PROC) -> int:
    """Return the processor time of processes and their children, ended children included."""
    return sum(_processor_ns(pid, proc) for pid in engines)


def _processor_ns(pid: int, proc: pathlib.Path) -> int:
    fields = _read(proc / str(pid) / "stat").rpartition(")")[2].split()
    own = sum(map(int, fields[_TIMES])) * _TICK_NS
    return own + sum(_processor_ns(child, proc) for child in _children(pid, proc))


def _children(pid: int, proc: pathlib.Path) -> list[int]:
    """Return the children of a process's threads, none where it ends while it is looked at."""
    try:
        threads = list((proc / str(pid) / "task").iterdir())
    except OSError:
        return []
    return [int(child) for thread in threads for child in _read(thread / "children").split()]


def _grown(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    return {core: after[core] - before[core] for core in after if core in before}


def _number(path: pathlib.Path) -> int:
    text = _read(path).strip()
    return int(text) if text.isdigit() else 0


def _read(path: pathlib.Path) -> str:
    """Read a small file of the kernel's, '' where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
