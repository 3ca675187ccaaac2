"""The pulse: measure whether this host stood still, and what it took from an engine.

One standard-library file, run as ``python -I -S pulse.py --fd N --cores 1,2`` beside the link.
It sleeps for ``BEAT_NS``, looks at the host's counters, and sleeps again. Invariants:

* it reads nothing that an engine writes, so no engine's output makes it late;
* where it may, it runs with real-time priority, which no engine has: then no work of an
  engine makes it late either, and a late beat means that the host stood still;
* what it credits to the host for one late beat is bounded by the beat, by what the watched
  engine ran meanwhile, and, without real-time priority and without a control group that counts
  all of the engine's work, by what anybody ran meanwhile.

Requests are JSON lines on the socket: ``watch`` (the referee's and the farm's process ids, the
engines' control groups), ``mark`` (keep the look before this time), ``tell`` (what was taken
between two times, both CLOCK_MONOTONIC in ns); only ``tell`` is answered.
"""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

BEAT_NS = 50_000_000  # ns: between two looks
LATE_NS = 50_000_000  # ns: a beat that is later than this was held up by its host
ORDINARY_LATE_NS = 200_000_000  # ns: the same without real-time priority
KEPT = 200  # looks: ten seconds of them
INCIDENTS = 10_000  # late beats that are kept
MARKS = 4  # looks that are kept for clocks which run for longer than that
HEAT_NS = 1_000_000_000  # ns: between two looks at the cores' thermal counters
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
READ_BYTES = 1 << 20
PRIORITY = 1  # as referee/process.py
USER, NICE, SYSTEM, STEAL = 0, 1, 2, 7  # columns of /proc/stat


class Look(NamedTuple):
    """The host's counters at one moment, in ns; by core, then by engine."""

    at_ns: int
    busy: dict[int, int]
    steal: dict[int, int]
    throttled: dict[int, int]
    quota: int
    used: dict[str, int]
    farm: int
    own: int  # the pulse's own processor time


class Incident(NamedTuple):
    """A time in which the host took something: how much, and what the engines ran, in ns."""

    from_ns: int
    until_ns: int
    taken_ns: int
    used: dict[str, int]


class Pulse:
    """The looks of the last seconds, and the late beats of the last hours."""

    def __init__(self, cores: list[int], *, prompt: bool) -> None:
        self.cores = frozenset(cores or os.sched_getaffinity(0))
        self.prompt = prompt
        self.late_ns = LATE_NS if prompt else ORDINARY_LATE_NS
        self.referee, self.farm = 0, list[int]()
        self.groups: dict[str, str] = {}
        self.quota_files = quota_files()
        self.looks: collections.deque[Look] = collections.deque(maxlen=KEPT)
        self.marks: collections.deque[Look] = collections.deque(maxlen=MARKS)
        self.frozen: collections.deque[Incident] = collections.deque(maxlen=INCIDENTS)
        self.held: dict[int, Incident] = {}  # by the end of the beat
        self.heat: dict[int, int] = {}
        self.heat_ns = 0
        self.looks.append(self.look())

    def look(self) -> Look:
        """Read the counters now."""
        busy, steal = dict[int, int](), dict[int, int]()
        for line in read("/proc/stat").split(b"\nintr")[0].splitlines():
            name, _, rest = line.partition(b" ")
            if name[3:].isdigit() and int(name[3:]) in self.cores:
                ticks = rest.split()
                used = int(ticks[USER]) + int(ticks[NICE]) + int(ticks[SYSTEM])
                busy[int(name[3:])] = used * TICK_NS
                steal[int(name[3:])] = int(ticks[STEAL]) * TICK_NS
        now = time.monotonic_ns()
        if now - self.heat_ns > HEAT_NS:
            self.heat = {core: throttled_ns(core) for core in self.cores}
            self.heat_ns = now
        used_by = {side: usage_ns(group) for side, group in self.groups.items()}
        quota = sum(quota_ns(path) for path in self.quota_files)
        farm = sum(processor_ns(pid)[1] for pid in self.farm)
        own_ns = time.thread_time_ns()
        return Look(time.monotonic_ns(), busy, steal, self.heat, quota, used_by, farm, own_ns)

    def beat(self) -> None:
        """Look once more, and note what the host took since the last look."""
        last, now = self.looks[-1], self.look()
        self.looks.append(now)
        length_ns = now.at_ns - last.at_ns
        late_ns = length_ns - BEAT_NS - (now.own - last.own)
        frozen_ns = late_ns if late_ns > self.late_ns else 0
        if self.referee and processor_ns(self.referee)[0] == b"T":
            frozen_ns = length_ns  # a stopped referee reads no answer
        if frozen_ns and not self.prompt and not self.groups and now.busy:
            ran_ns = sum(now.busy[core] - last.busy[core] for core in now.busy) // len(now.busy)
            frozen_ns = min(frozen_ns, length_ns - ran_ns)
        if frozen_ns > 0:
            used = _ran(last, now)
            self.frozen.append(Incident(last.at_ns, now.at_ns, frozen_ns, used))
        if now.used and now.quota > last.quota:
            self._note_quota(now.quota - last.quota)

    def _note_quota(self, quota_ns: int) -> None:
        """Note how long a used-up quota held everything up until the last look.

        The kernel counts such a time when it has ended, and all of it at once: it is laid over the
        beats before, from the last one back, and no beat is filled twice.
        """
        for now, last in itertools.pairwise(reversed(self.looks)):
            filled = self.held.get(now.at_ns)
            taken_ns = 0 if filled is None else filled.taken_ns
            more_ns = min(quota_ns, now.at_ns - last.at_ns - taken_ns)
            if more_ns > 0:
                beat = Incident(last.at_ns, now.at_ns, taken_ns + more_ns, _ran(last, now))
                self.held[now.at_ns] = beat
            quota_ns -= more_ns
            if quota_ns <= 0:
                break
        while len(self.held) > INCIDENTS:
            del self.held[min(self.held)]

    def obey(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Do what the link asks for; return the answer, where there is one."""
        if "watch" in request:
            processes = request["watch"]
            self.referee, self.farm = (
                int(processes["referee"]),
                [int(pid) for pid in processes["farm"]],
            )
            self.groups = {str(side): str(group) for side, group in processes["groups"].items()}
            self.marks.clear()
            self.beat()
            return None
        if "mark" in request:
            self.marks.append(self._before(int(request["mark"])))
            return None
        start_ns, stop_ns = request["tell"]
        while self.looks[-1].at_ns < stop_ns:
            self.beat()
        before, after = self._before(start_ns), self._after(stop_ns)
        losses = self._taken(start_ns, stop_ns, str(request["side"]), int(request["threads"]))
        return {"before": before._asdict(), "after": after._asdict(), **losses}

    def _before(self, at_ns: int) -> Look:
        """Return the last look before a time, the first where none is as old."""
        earlier = [look for look in (*self.marks, *self.looks) if look.at_ns <= at_ns]
        return max(earlier, key=lambda look: look.at_ns) if earlier else self.looks[0]

    def _after(self, at_ns: int) -> Look:
        return next(look for look in self.looks if look.at_ns >= at_ns)

    def _taken(self, start_ns: int, stop_ns: int, side: str, threads: int) -> dict[str, int]:
        """Add up what was taken between two times from an engine with so many threads."""
        clock = start_ns, stop_ns, side, max(1, threads)
        frozen_ns = sum(_credit(loss, *clock) for loss in self.frozen)
        quota_ns = sum(_credit(loss, *clock) for loss in self.held.values())
        return {"frozen_ns": frozen_ns, "quota_ns": quota_ns}


def _ran(before: Look, after: Look) -> dict[str, int]:
    """Return what each engine ran between two looks, in ns."""
    return {side: after.used[side] - before.used.get(side, after.used[side]) for side in after.used}


def _credit(loss: Incident, start_ns: int, stop_ns: int, side: str, threads: int) -> int:
    """Return what an incident took between two times from an engine with so many threads."""
    common_ns = min(stop_ns, loss.until_ns) - max(start_ns, loss.from_ns)
    free_ns = loss.until_ns - loss.from_ns - loss.used.get(side, 0) // threads
    return max(0, min(loss.taken_ns, common_ns, free_ns))


def serve(link: socket.socket, pulse: Pulse) -> None:
    """Beat, and answer the link, until it is gone."""
    poll = select.poll()
    poll.register(link, select.POLLIN)
    text = b""
    due_ns = time.monotonic_ns() + BEAT_NS
    while True:
        ready = poll.poll(max(0, due_ns - time.monotonic_ns()) / 1e6)
        if time.monotonic_ns() >= due_ns:
            pulse.beat()
            due_ns = pulse.looks[-1].at_ns + BEAT_NS
        if not ready:
            continue
        data = link.recv(READ_BYTES)
        if not data:
            return
        *lines, text = (text + data).split(b"\n")
        for line in lines:
            answer = pulse.obey(json.loads(line))
            if answer is not None:
                link.sendall(json.dumps(answer).encode() + b"\n")


# -- what the kernel tells -----------------------------------------------------------------


def quota_files() -> list[str]:
    """Return the files that tell how long a quota of processor time held this process up.

    Those of its own control group and of all above it, in version 2, or in version 1.
    """
    stat_files = []
    for line in read("/proc/self/cgroup").decode().splitlines():
        _, names, path = line.split(":", 2)
        for mount in mounts(names):
            parts = [part for part in path.split("/") if part]
            places = ["/".join([mount, *parts[:depth]]) for depth in range(len(parts) + 1)]
            stat_files += [f"{folder}/cpu.stat" for folder in places]
    return [path for path in stat_files if b"throttled_" in read(path)]


def mounts(names: str) -> list[str]:
    """Return where a hierarchy of control groups is mounted: version 2, or version 1's cpu."""
    kind = "cgroup2" if not names else "cgroup" if "cpu" in names.split(",") else ""
    rows = [row.split(" ") for row in read("/proc/self/mounts").decode().splitlines()]
    return [
        row[1]
        for row in rows
        if row[2] == kind and (kind == "cgroup2" or "cpu" in row[3].split(","))
    ]


def quota_ns(path: str) -> int:
    """Return for how long a group had no processor because its quota was used up."""
    fields = dict(line.split(b" ", 1) for line in read(path).splitlines() if b" " in line)
    if b"throttled_usec" in fields:
        return int(fields[b"throttled_usec"]) * 1_000
    return int(fields.get(b"throttled_time", 0))


def usage_ns(group: str) -> int:
    """Return the processor time of all that has ever run in a control group (version 2)."""
    fields = read(f"{group}/cpu.stat").split(None, 2)
    return int(fields[1]) * 1_000 if fields[:1] == [b"usage_usec"] else 0


def processor_ns(pid: int) -> tuple[bytes, int]:
    """Return the state of a process, and the processor time of itself alone."""
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return (fields[0], (int(fields[11]) + int(fields[12])) * TICK_NS) if fields else (b"", 0)


def throttled_ns(core: int) -> int:
    """Return for how long a core was throttled for its heat since the host's start."""
    counter = f"/sys/devices/system/cpu/cpu{core}/thermal_throttle/core_throttle_total_time_ms"
    return int(read(counter) or 0) * 1_000_000


def read(path: str) -> bytes:
    """Read a small file of the kernel's, b"" where there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, READ_BYTES)
    except OSError:
        return b""
    finally:
        os.close(fd)


def run_at_once() -> bool:
    """Ask for real-time priority; say whether it was given."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return False
    return True


def main(arguments: list[str]) -> int:
    """Run the pulse: ``--fd N --cores 1,2 --aside 3``; ``aside`` are cores to run on."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its link
    options = dict(zip(arguments[::2], arguments[1::2], strict=True))
    aside = [int(core) for core in options["--aside"].split(",") if core]
    if aside:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, aside)
    cores = [int(core) for core in options["--cores"].split(",") if core]
    prompt = run_at_once()
    serve(socket.socket(fileno=int(options["--fd"])), Pulse(cores, prompt=prompt))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
