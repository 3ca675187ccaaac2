"""This host's heartbeat: load, memory, disk, heat, clocks.

Runs in the worker's main process, never beside a running clock's referee, and reads only
``/proc`` and the sysfs tree (``FARM_SYSFS``, so that a test may copy one). What a kernel
does not tell is ``None``. No failure here ends anything: the next beat tries again.
"""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import platform
import shutil
import threading
from collections.abc import Callable
from typing import Final

import structlog

from orchestrator.common import errors, processor, version
from orchestrator.ledger import store, vitals
from worker_cpu import settings

log = structlog.get_logger()

PROC: Final = pathlib.Path("/proc")
QUIET_FOREIGN: Final = 0.02  # of the engines' cores: more foreign load than that is not quiet
BENCH: Final = "bench.json"  # in the hall's folder, by `farm doctor`
GOVERNORS: Final = "cpu*/cpufreq/scaling_governor"  # below the cores' folder: ``of_cores``
_TIME_ERROR: Final = 5  # adjtimex: the clock is not synchronized
_STA_NANO: Final = 0x2000


class Sampler:
    """Takes one host's vitals."""

    def __init__(self, hall: settings.HallSettings, sysfs: pathlib.Path | None = None) -> None:
        """Watch this hall's host."""
        self._hall = hall
        self._sys = sysfs or pathlib.Path(os.environ.get("FARM_SYSFS", "/sys"))
        self._processor = processor.Processor(hall.engine_cpus, os.getpid())

    def sample(self, now_ms: int) -> vitals.Vitals:
        """Return how the host is now."""
        whole, foreign = self._processor.look()
        memory = _memory()
        disk = shutil.disk_usage(_existing(self._hall.directory))
        offset, kept = clock()
        governors = of_cores(self._sys, GOVERNORS)
        return vitals.Vitals(
            host=self._hall.host,
            at_ms=now_ms,
            version=version.build(),
            hall=self._hall.hall,
            cpu=_model(),
            kernel=platform.release(),
            governor=",".join(sorted(set(governors))),
            boot=boot_id(),
            cores=tuple(sorted(self._hall.referee_cpus | self._hall.engine_cpus)),
            cpus=self._processor.count,
            cpu_ratio=whole,
            foreign_cpu_ratio=foreign,
            memory_total_bytes=memory.get("MemTotal"),
            memory_available_bytes=memory.get("MemAvailable"),
            swap_used_bytes=_difference(memory, "SwapTotal", "SwapFree"),
            disk_free_bytes=disk.free,
            disk_total_bytes=disk.total,
            temperature_celsius=self._hottest(),
            frequency_hertz=_mean(self._numbers("cpu*/cpufreq/scaling_cur_freq"), 1000),
            throttles=self._throttles(),
            clock_offset_seconds=offset,
            clock_synchronized=kept,
            quiet=quiet(governors, _difference(memory, "SwapTotal", "SwapFree"), foreign),
            bench_ratio=bench_ratio(self._hall.directory),
            spooled=_files(self._hall.directory / "spool", "*.spool"),
            refused=_files(self._hall.directory / "refused", "*.spool"),
        )

    def _numbers(self, pattern: str) -> list[int]:
        return [int(word) for word in of_cores(self._sys, pattern) if word.isdigit()]

    def _throttles(self) -> int | None:
        counts = self._numbers("cpu*/thermal_throttle/core_throttle_count")
        return sum(counts) if counts else None

    def _hottest(self) -> float | None:
        celsius = []
        for path in (self._sys / "class/hwmon").glob("hwmon*/temp*_input"):
            try:
                celsius.append(int(path.read_text()) / 1000)
            except (OSError, ValueError):
                continue  # a sensor that is asleep
        return max(celsius, default=None)


def of_cores(sysfs: pathlib.Path, pattern: str) -> list[str]:
    """Return what the files of a pattern say, below the cores' folder of a sysfs tree."""
    contents = []
    for path in sorted((sysfs / "devices/system/cpu").glob(pattern)):
        try:
            contents.append(path.read_text().strip())
        except OSError:
            continue  # a core that is offline has the file and does not answer
    return contents


def quiet(governors: list[str], swap_used: int | None, foreign: float | None) -> bool | None:
    """Say whether a host is as clocked games want it; None where nothing is known."""
    if not governors and swap_used is None and foreign is None:
        return None
    steady = all(governor == "performance" for governor in governors)
    return steady and not swap_used and (foreign or 0.0) <= QUIET_FOREIGN


def clock() -> tuple[float | None, bool | None]:
    """Return the kernel's estimate of its offset in seconds, and whether it is kept."""

    class Timex(ctypes.Structure):
        _fields_ = (
            ("modes", ctypes.c_uint),
            ("offset", ctypes.c_long),
            ("freq", ctypes.c_long),
            ("maxerror", ctypes.c_long),
            ("esterror", ctypes.c_long),
            ("status", ctypes.c_int),
            ("rest", ctypes.c_byte * 192),
        )

    adjustment = Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(adjustment))
    except (OSError, AttributeError):
        return None, None
    if state < 0:
        return None, None
    unit = 1e9 if adjustment.status & _STA_NANO else 1e6
    return adjustment.offset / unit, state != _TIME_ERROR


def boot_id() -> str:
    """Return what tells this machine, as it runs now, from any other; '' where it is hidden."""
    try:
        return (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _memory() -> dict[str, int]:
    lines = (line.split() for line in (PROC / "meminfo").read_text().splitlines())
    return {fields[0].rstrip(":"): int(fields[1]) * 1024 for fields in lines}


def _difference(numbers: dict[str, int], whole: str, left: str) -> int | None:
    return numbers[whole] - numbers[left] if whole in numbers and left in numbers else None


def _model() -> str:
    for line in (PROC / "cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _mean(numbers: list[int], factor: int) -> float | None:
    return factor * sum(numbers) / len(numbers) if numbers else None


def _files(directory: pathlib.Path, pattern: str) -> int:
    return sum(1 for _ in directory.glob(pattern))


def _existing(path: pathlib.Path) -> pathlib.Path:
    return next(candidate for candidate in (path, *path.parents) if candidate.exists())


def tell(ledger: store.RedisLedger, sample: Callable[[int], vitals.Vitals]) -> None:
    """Publish one sample; an away Redis and an unreadable kernel file are logged alone."""
    try:
        now_ms, skew = vitals.now_and_skew(ledger)
        heartbeat = sample(now_ms).model_copy(update={"clock_skew_seconds": skew})
        ledger.set_vitals(heartbeat.host, heartbeat.encode())
    except (errors.LedgerAwayError, OSError, ValueError) as error:
        log.debug("vitals.failed", error=str(error))


def beat(hall: settings.HallSettings, stop: threading.Event) -> None:
    """Tell of this host until ``stop`` is set."""
    ledger, sampler = store.connect(hall.redis_url), Sampler(hall)
    while not stop.is_set():
        tell(ledger, sampler.sample)
        stop.wait(min(vitals.BEAT_SECONDS, hall.beat_seconds * 2))
    ledger.close()


def publish_problem(hall: settings.HallSettings, problem: str) -> None:
    """Tell that the hall cannot be opened on this host, and why; an away Redis is logged alone."""
    ledger, sampler = store.connect(hall.redis_url), Sampler(hall)
    tell(ledger, lambda now: sampler.sample(now).model_copy(update={"problem": problem}))
    ledger.close()


def kept_bench(path: pathlib.Path) -> dict[str, int]:
    """Return the hall's reference speed and its last one, {} before the first bench."""
    try:
        speeds = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return {name: int(value) for name, value in speeds.items()} if isinstance(speeds, dict) else {}


def bench_ratio(directory: pathlib.Path) -> float | None:
    """Return the hall's last speed against its reference, None before the first bench."""
    kept = kept_bench(directory / BENCH)
    return kept["nps"] / kept["reference"] if kept.get("reference") and "nps" in kept else None
