"""Heartbeats of hosts: a small message a beat, the last one of each host kept.

Shown and alarmed on; nothing in a season is decided by it. Times of day are those of
Redis (``at_ms``), so that a host whose own clock is wrong is still seen to be alive.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Final, Protocol, TypeAlias

import pydantic

from orchestrator import contract
from orchestrator.ledger import api

BEAT_SECONDS: Final = 10.0  # s: alarms wait for several of them
SILENT_SECONDS: Final = 60.0  # s: a host that was silent for longer is told of (FarmHostSilent)
SKEW_SECONDS: Final = 1.0  # s: a host's clock so far from Redis' is shown
SURE_SECONDS: Final = 0.5  # s: a question that takes longer tells no skew
# What no host measures is no heartbeat: who shows one divides it, and writes it as JSON.
_Count: TypeAlias = Annotated[int, pydantic.Field(gt=-(1 << 63), lt=1 << 63)]
_Measure: TypeAlias = Annotated[float, pydantic.Field(ge=-1e18, le=1e18, allow_inf_nan=False)]


class Gpu(contract.Message):
    """One GPU as its driver sees it; ``None`` is what the driver does not tell."""

    index: _Count
    uuid: str
    name: str = ""
    utilization_ratio: _Measure | None = None
    memory_used_bytes: _Count | None = None
    memory_total_bytes: _Count | None = None
    temperature_celsius: _Measure | None = None
    power_watts: _Measure | None = None
    sm_clock_hertz: _Measure | None = None
    throttled: bool | None = None


class Vitals(contract.Message):
    """How a host is; ratios are 0 to 1, ``None`` is what this kernel does not tell.

    ``boot`` is the running kernel's boot id: the same for all that runs on one machine, by
    whatever name. ``cores`` are the hall's logical CPUs, none where it is bound to none.
    ``foreign_cpu_ratio`` is the use of the engines' cores by others than this hall's own
    processes, ``quiet`` whether governor, swap and load are as a clocked game wants them.
    ``clock_skew_seconds`` is how far its time of day is ahead of Redis', negative for behind.
    ``problem`` says why the worker has ended without opening its hall, '' where it has opened it.
    """

    schema_version: int = contract.SCHEMA
    host: str
    at_ms: contract.Moment
    version: str = ""
    role: str = "hall"
    hall: str = ""
    cpu: str = ""
    kernel: str = ""
    governor: str = ""
    boot: str = ""
    cores: tuple[int, ...] = ()
    cpus: _Count = 0
    cpu_ratio: _Measure | None = None
    foreign_cpu_ratio: _Measure | None = None
    memory_total_bytes: _Count | None = None
    memory_available_bytes: _Count | None = None
    swap_used_bytes: _Count | None = None
    disk_free_bytes: _Count | None = None
    disk_total_bytes: _Count | None = None
    temperature_celsius: _Measure | None = None
    frequency_hertz: _Measure | None = None
    throttles: _Count | None = None
    clock_offset_seconds: _Measure | None = None
    clock_synchronized: bool | None = None
    clock_skew_seconds: _Measure | None = None
    quiet: bool | None = None
    bench_ratio: _Measure | None = None
    spooled: _Count | None = None
    refused: _Count | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""


class Clock(Protocol):
    """The ledger's clock."""

    def now_ms(self) -> int:
        """Return Redis' time of day in milliseconds."""


def now_and_skew(ledger: Clock) -> tuple[int, float | None]:
    """Return Redis' time in ms, and how many seconds this host's clock is ahead of it.

    The skew is shown and alerted on, and no rule rests on it. Half the time of the question is its
    error; after a long one it is unknown.
    """
    before = time.time()
    now_ms = ledger.now_ms()
    after = time.time()
    if not 0 <= after - before < SURE_SECONDS:
        return now_ms, None
    return now_ms, round((before + after) / 2 - now_ms / 1000, 3)


class Source(Protocol):
    """The one verb of the ledger that is wanted here."""

    def vitals(self) -> dict[str, str]:
        """Return each host's last heartbeat."""


class Drains(Protocol):
    """The verbs of the ledger that tell of drains."""

    def worker(self, hall: str) -> str:
        """Return the worker that opened the hall last."""

    def drained(self, hall: str, worker: str) -> str:
        """Return why this worker should end."""

    def slot(self, hall: str) -> api.Slot | None:
        """Return who holds the hall."""


def drained(ledger: Drains, hall: str) -> str:
    """Return why a hall's worker was told to end, once its game is over; '' for any other hall.

    Such a hall stands still, and its host is silent, because somebody wants it so.
    """
    worker = ledger.worker(hall)
    reason = ledger.drained(hall, worker) if worker else ""
    return reason if reason and ledger.slot(hall) is None else ""


def host_drained(ledger: Drains, seen: Vitals) -> str:
    """Return why the worker of a host was told to end; '' where its silence was not wanted."""
    return drained(ledger, seen.hall) if seen.hall and not seen.problem else ""


def read(ledger: Source) -> Mapping[str, Vitals]:
    """Return each host's last word; one that this version cannot read is left out."""
    by_host: dict[str, Vitals] = {}
    for host, payload in ledger.vitals().items():
        try:
            by_host[host] = Vitals.decode(payload)
        except pydantic.ValidationError:
            continue  # a later version's host: its figures wait for this one's upgrade
    return by_host
