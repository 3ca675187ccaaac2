"""Measure what a host took away from an engine while its clock ran.

The pulse (``pulse.py``, a process of its own) looks at the host all the time; asked after a
flag, it tells the counters around that clock and how long the host stood still in it. Sources:
``/proc/stat`` (busy and stolen time of the engines' cores), the engines' own processor time,
the kernel's counters of throttling and quotas, and how late the pulse itself was woken.

A stall is *proven* when the time taken away is at least what the engine was late by, even
if all that was taken in the part of the window outside its clock is left out (S16-15b "time
loss due to lag"). No host can take more than the window holds, nor more than the engine left
unused. Load of others counts only on cores that are the engines' alone, and only where control
groups count all that the engines do: else children whom nobody waited for would look like
strangers. Everything else is told but proves nothing, as a low frequency does. What the opponent
took out of its turn is told apart. An engine on a GPU box is watched by its agent, which tells
the same counters of its own host (``told``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from orchestrator import contract

PROC = pathlib.Path("/proc")
PULSE = pathlib.Path(__file__).with_name("pulse.py")
ANSWER_SECONDS = 10.0  # s: the pulse answers within a beat, unless its host stands still
READ_BYTES = 1 << 20
_NS = 1_000_000_000
_TICK_NS = _NS // os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)  # utime, stime, and those of ended children: behind the name in its stat


@dataclasses.dataclass(frozen=True)
class Sample:
    """Counters at one moment, in ns; by core, and what each engine and the farm have used."""

    at_ns: int
    busy: Mapping[int, int]
    steal: Mapping[int, int]
    throttled: Mapping[int, int]
    used: Mapping[str, int]
    farm_ns: int = 0


@dataclasses.dataclass(frozen=True)
class Loss:
    """What was taken away between two samples, in milliseconds.

    ``steal`` and ``throttled`` are the worst core's, ``foreign`` the mean of all cores (0
    where nothing is proven by it: it is ``shared`` there), ``frozen`` how long the host stood
    still, ``quota`` how long a quota of processor time held everything up, ``opponent`` what
    the engine that was not on move took, as the mean of all cores.
    """

    window: float
    steal: float
    throttled: float
    foreign: float
    frozen: float
    mhz: float | None
    shared: float | None = None
    quota: float = 0.0
    opponent: float = 0.0

    @property
    def worst(self) -> float:
        """Return the largest of the times that prove something, never more than the window."""
        largest = max(self.steal, self.throttled, self.foreign, self.frozen, self.quota)
        return min(self.window, largest)

    def proves(self, think_ms: float, late_ms: float) -> bool:
        """Say whether an engine that was so late would have been in time without it."""
        return self._enough(self.worst, think_ms, late_ms)

    def convicts(self, think_ms: float, late_ms: float) -> bool:
        """Say whether it would have been in time without its opponent's work, and that of others.

        Both are taken on the same cores, so they add up.
        """
        return self._enough(min(self.window, self.opponent + self.foreign), think_ms, late_ms)

    def _enough(self, taken_ms: float, think_ms: float, late_ms: float) -> bool:
        outside_ms = max(0.0, self.window - think_ms)
        return late_ms >= 0 and taken_ms - outside_ms >= max(late_ms, 1.0)

    def __str__(self) -> str:
        """Write the evidence for the record."""
        frequency = "unknown" if self.mhz is None else f"{self.mhz:.0f} MHz"
        return (
            f"host in the last {self.window:.0f} ms: steal {self.steal:.0f} ms, throttled"
            f" {self.throttled:.0f} ms, quota {self.quota:.0f} ms, {self._load()}, opponent"
            f" {self.opponent:.0f} ms, frozen {self.frozen:.0f} ms, frequency {frequency}"
        )

    def _load(self) -> str:
        if self.shared is None:
            return f"foreign load {self.foreign:.0f} ms"
        return f"load of others {self.shared:.0f} ms (it proves nothing here)"


class StallDetector:
    """This host as the pulse sees it; ``cores`` are the engines' own, none: those of all."""

    def __init__(self, cores: Iterable[int] = (), aside: Iterable[int] = ()) -> None:
        """Watch the engines' own cores; the pulse runs on none of them, nor on ``aside``."""
        self._own = frozenset(cores)
        here = frozenset(os.sched_getaffinity(0))
        self._cores = self._own or here
        self._aside = here - self._own - frozenset(aside)
        self._pulse: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._ending: weakref.finalize[..., StallDetector] | None = None
        self._counts_all = False

    def watch(
        self, referee: int, farm: Sequence[int], groups: Mapping[contract.Side, str | None]
    ) -> None:
        """Watch a game's processes: its referee, the farm's own, and this host's engines.

        ``groups`` are their control groups, ``None`` for an engine that has none.
        """
        known_groups = {side: group for side, group in groups.items() if group is not None}
        self._counts_all = len(known_groups) == len(groups)
        self._say({"watch": {"referee": referee, "farm": list(farm), "groups": known_groups}})

    def mark(self, start_ns: int) -> None:
        """Keep what was known when this clock started."""
        self._say({"mark": start_ns})

    def loss(
        self, start_ns: int, stop_ns: int, side: contract.Side = "white", threads: int = 1
    ) -> Loss | None:
        """Return what was taken from an engine between two times, ``None`` if nobody knows."""
        self._say({"tell": [start_ns, stop_ns], "side": side, "threads": threads})
        answer = self._answer()
        if answer is None:
            return None
        return lost(
            _sample(answer["before"]),
            _sample(answer["after"]),
            int(answer["frozen_ns"]),
            side,
            own_cores=bool(self._own) and self._counts_all,
            quota_ns=int(answer["quota_ns"]),
            mhz=self._mhz(),
        )

    def end(self) -> None:
        """Let the pulse end, and reap it."""
        if self._ending is not None:
            self._ending()
        self._socket = self._pulse = self._ending = None

    def _say(self, request: Mapping[str, Any]) -> None:
        """Write to the pulse, to a new one where the last one has ended: it knows nothing yet."""
        line = json.dumps(request).encode() + b"\n"
        for _ in range(2):
            try:
                self._started().sendall(line)
            except OSError:
                self.end()
            else:
                return

    def _started(self) -> socket.socket:
        if self._socket is not None:
            return self._socket
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(ANSWER_SECONDS)
        with theirs:
            self._pulse = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", str(PULSE), "--fd", str(theirs.fileno())),
                    *("--cores", ",".join(map(str, sorted(self._own)))),
                    *("--aside", ",".join(map(str, sorted(self._aside)))),
                ],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        self._ending = weakref.finalize(self, _end_pulse, self._pulse, self._socket)
        return self._socket

    def _answer(self) -> dict[str, Any] | None:
        """Read one line; a pulse that does not answer proves nothing."""
        text = b""
        deadline = time.monotonic() + ANSWER_SECONDS
        with contextlib.suppress(OSError, ValueError):
            while self._socket is not None and not text.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([self._socket], [], [], left)[0]:
                    break
                data = self._socket.recv(READ_BYTES)
                if not data:
                    break
                text += data
            answer: dict[str, Any] = json.loads(text)
            return answer
        self.end()
        return None

    def _mhz(self) -> float | None:
        root = pathlib.Path("/sys/devices/system/cpu")
        paths = (root / f"cpu{c}" / "cpufreq" / "scaling_cur_freq" for c in self._cores)
        readable = [khz for khz in map(_number, paths) if khz]
        return min(readable) / 1000 if readable else None


def _end_pulse(pulse: subprocess.Popen[bytes], link: socket.socket) -> None:
    link.close()
    pulse.kill()  # also one that is stopped
    pulse.wait()


def lost(
    before: Sample,
    after: Sample,
    frozen_ns: int,
    side: str,
    *,
    own_cores: bool,
    quota_ns: int = 0,
    mhz: float | None = None,
) -> Loss:
    """Return what a host took away from the engine of a side between two samples.

    ``own_cores``: the cores are the engines' alone, and all that both do is counted.
    """
    window_ns = after.at_ns - before.at_ns
    used = {group: max(0, ns - before.used.get(group, ns)) for group, ns in after.used.items()}
    cores = max(1, len(after.busy))
    known_ns = sum(used.values()) + max(0, after.farm_ns - before.farm_ns)
    others = 0.0
    if after.busy:
        others = max(0.0, (sum(_grown(before.busy, after.busy).values()) - known_ns) / cores)
    opponent_ns = sum(ns for group, ns in used.items() if group != side) / cores
    return Loss(
        window=window_ns / 1e6,
        steal=max(_grown(before.steal, after.steal).values(), default=0) / 1e6,
        throttled=max(_grown(before.throttled, after.throttled).values(), default=0) / 1e6,
        foreign=others / 1e6 if own_cores else 0.0,
        frozen=min(frozen_ns, window_ns) / 1e6,
        mhz=mhz,
        shared=None if own_cores else others / 1e6,
        quota=min(quota_ns, window_ns) / 1e6,
        opponent=opponent_ns / 1e6,
    )


def reported_loss(report: Mapping[str, Any]) -> Loss:
    """Return what a GPU box took from an engine, as its agent tells it."""
    before, after = (_sample(report[when]) for when in ("before", "after"))
    frozen_ns, window_ns = int(report["frozen_ns"]), after.at_ns - before.at_ns
    # A box on which the engine ran meanwhile did not stand still: it kept all cores busy itself.
    ran_ns = max(0, after.used[""] - before.used[""]) // max(1, int(report["cpus"]))
    frozen_ns -= min(frozen_ns, max(0, ran_ns - max(0, window_ns - frozen_ns)))
    return lost(before, after, frozen_ns, "", own_cores=bool(report["own_cores"]))


def _sample(report: Mapping[str, Any]) -> Sample:
    busy, steal, throttled = (
        {int(core): int(ns) for core, ns in report[name].items()}
        for name in ("busy", "steal", "throttled")
    )
    used = report.get("used", {"": report.get("engines_ns", 0)})
    return Sample(int(report["at_ns"]), busy, steal, throttled, used, int(report.get("farm", 0)))


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
