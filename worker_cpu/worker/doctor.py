"""What this machine offers as a hall: sandbox, cores, memory, disk, frequency, speed.

Found by ``farm doctor`` through the entry-point group ``farm.checks``. Reads only, but for its
speed: that is measured on the engines' cores, never beside a game, and
kept in the hall's folder, where the vitals take it from.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
from collections.abc import Iterator, Mapping
from concurrent import futures
from typing import Final

from orchestrator import contract
from orchestrator.common import errors, files
from worker_cpu import settings
from worker_cpu.engines import sandbox
from worker_cpu.hall import directory as hall_files
from worker_cpu.host import heartbeat, pulse, speed

FREE_BYTES: Final = 5 << 30  # a season of long games with their protocol logs
SLOW: Final = 0.97  # of the recorded speed (reference C5)
NOWHERE: Final = "unix://"  # the address of no Redis
GOVERNOR: Final = "performance"
LOCK_SECONDS: Final = 1.0  # s: a worker that only looks has the lock for less


def check(in_play: Mapping[str, str]) -> Iterator[contract.Finding]:
    """Yield what is found of this machine; ``in_play`` names the game in flight by host."""
    try:
        hall = settings.from_environment(
            {"FARM_REDIS_URL": NOWHERE, **os.environ}  # no Redis is asked here
        )
    except errors.UsageError as error:
        yield _finding("settings", "failed", str(error), "a hall is told what it is", "correct it")
        return
    yield _sandbox(hall)
    yield from _cores(hall)
    yield _priority()
    yield _disk(hall)
    yield from _steady()
    yield _speed(hall, in_play.get(hall.host, ""))


def _finding(name: str, status: str, actual: str, why: str, do: str) -> contract.Finding:
    fields = {"area": "here", "name": name, "status": status, "found": actual, "why": why, "do": do}
    return contract.Finding.model_validate(fields)


def _sandbox(hall: settings.HallSettings) -> contract.Finding:
    why = "engines are strangers' programs (docs/security.md)"
    try:
        kind = hall.confinement().kind
    except errors.HostError as error:
        return _finding("sandbox", "failed", str(error), why, "install bubblewrap")
    support = sandbox.describe()
    if kind == "bubblewrap" and not support.filtered:
        actual = "bubblewrap, without a filter of system calls"
        return _finding("sandbox", "warning", actual, why, "run Linux 5.16 or later")
    status = "ok" if kind == "bubblewrap" else "warning"
    return _finding("sandbox", status, kind, why, f"install bubblewrap: {support.problem}")


def _cores(hall: settings.HallSettings) -> Iterator[contract.Finding]:
    why = "the referee has a core of its own, engines have theirs (docs/explanation/clock.md)"
    do = "set FARM_REFEREE_CPUS and FARM_ENGINE_CPUS"
    here = os.sched_getaffinity(0)
    wanted = hall.referee_cpus | hall.engine_cpus
    if not wanted:
        yield _finding("cores", "warning", "no cores are set aside", why, do)
    elif missing := wanted - here:
        actual = f"cores {sorted(missing)} are not this process' to use"
        yield _finding("cores", "failed", actual, why, do)
    elif both := hall.referee_cpus & hall.engine_cpus:
        yield _finding(
            "cores",
            "failed",
            f"cores {sorted(both)} are assigned to both the referee and the engines",
            why,
            do,
        )
    else:
        actual = f"{len(hall.engine_cpus)} for engines, {len(hall.referee_cpus)} for the referee"
        yield _finding("cores", "ok", actual, why, do)


def _priority() -> contract.Finding:
    """Look whether a referee that is started from here may put its clock before other programs."""
    why = "on a busy machine the clock is late by what others take (docs/tutorial.md)"
    do = (
        "LimitRTPRIO=1 in the unit, or `rtprio 1` in /etc/security/limits.conf; where that is there"
        " already, this machine or its container gives none (`grep -i realtime /proc/PID/limits`)"
    )
    with futures.ThreadPoolExecutor(1) as pool:  # this thread's own priority stays
        granted = pool.submit(pulse.run_at_once).result()
    if granted:
        return _finding("real-time priority", "ok", "granted", why, do)
    return _finding("real-time priority", "warning", "this user has no right to it", why, do)


def _disk(hall: settings.HallSettings) -> contract.Finding:
    existing = next(
        folder for folder in (hall.directory, *hall.directory.parents) if folder.exists()
    )
    free = shutil.disk_usage(existing).free
    status = "ok" if free >= FREE_BYTES else "failed"
    actual = f"{free / (1 << 30):.1f} GiB free at {existing}"
    why = "every ply is synced to disk before the next clock starts"
    return _finding("disk", status, actual, why, "make room, or move FARM_HALL_DIR")


def _steady() -> Iterator[contract.Finding]:
    sysfs = pathlib.Path(os.environ.get("FARM_SYSFS", "/sys"))
    governors = set(heartbeat.of_cores(sysfs, heartbeat.GOVERNORS))
    status = "unknown" if not governors else "ok" if governors == {GOVERNOR} else "warning"
    why = "both sides think at one frequency (docs/explanation/one-referee-host.md)"
    governor = ", ".join(sorted(governors)) or "this kernel does not tell"
    yield _finding("governor", status, governor, why, "set it to performance")
    source = sysfs / "devices/system/clocksource/clocksource0/current_clocksource"
    name = source.read_text().strip() if source.exists() else ""
    status = "ok" if name in {"tsc", "kvm-clock", "arch_sys_counter"} else "warning"
    why = "a slow clock source costs every stamp microseconds"
    clock_source = name or "this kernel does not tell"
    yield _finding(
        "clock source", status if name else "unknown", clock_source, why, "boot with tsc"
    )
    _, kept = heartbeat.clock()
    status = "unknown" if kept is None else "ok" if kept else "warning"
    why = "dates in PGN and logs"
    words = {True: "kept", False: "not kept", None: "this kernel does not tell"}
    do = "start chrony, on the machine below where this is a container"
    yield _finding("time of day", status, words[kept], why, do)


def _speed(hall: settings.HallSettings, in_play: str) -> contract.Finding:
    """Measure the speed of a core; the first figure of a hall is its reference.

    Never beside a game: it would slow its engines down, and be slowed down by them.
    """
    why = f"a host below {SLOW:.0%} of its recorded speed plays another season"
    path = hall.directory / heartbeat.BENCH
    still: contextlib.AbstractContextManager[bool] = (
        contextlib.nullcontext(enter_result=False) if in_play else _standing_still(hall.directory)
    )
    with still as free:
        if not free:
            actual = f"a game is in play{in_play and f' ({in_play})'}: not benched"
            return _finding("speed", "unknown", actual, why, "look again between two events")
        nps, reference = _measured(hall, path)
    if reference is None:
        kept = (
            "kept to compare the next ones with" if path.exists() else f"no hall at {path.parent}"
        )
        return _finding("speed", "ok", f"{nps} nodes/s, the first figure: {kept}", why, "")
    ratio = nps / reference
    actual = f"{nps} nodes/s, {ratio:.0%} of the recorded {reference}"
    status = "ok" if ratio >= SLOW else "warning"
    return _finding("speed", status, actual, why, f"find the load; or delete {path}")


def _measured(hall: settings.HallSettings, path: pathlib.Path) -> tuple[int, int | None]:
    """Measure and keep; return the speed and the reference, None where this is the first figure."""
    here = frozenset(os.sched_getaffinity(0))
    nps = speed.nps((hall.engine_cpus & here) or here)
    reference = heartbeat.kept_bench(path).get("reference")
    if hall.directory.is_dir():
        text = json.dumps({"reference": reference or nps, "nps": nps})
        files.write(path, f"{text}\n".encode())
    return nps, reference


@contextlib.contextmanager
def _standing_still(directory: pathlib.Path) -> Iterator[bool]:
    """Keep games of the hall and its lanes from beginning; yield whether none is in play."""
    if not directory.is_dir():
        yield True
        return
    with hall_files.HallDirectory(directory).locked(LOCK_SECONDS) as lock:
        yield lock is not None
