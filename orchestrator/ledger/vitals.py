"""What a host tells of itself: a small message a beat, the last one of each host kept.

Shown and alarmed on; nothing in a season is decided by it. Times of day are those of
Redis (``at_ms``), so that a host whose own clock is wrong is still seen to be alive.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

import pydantic

from orchestrator import contract

BEAT_SECONDS: Final = 10.0  # s: alarms wait for several of them


class Gpu(contract.Message):
    """One GPU as its driver sees it; ``None`` is what the driver does not tell."""

    index: int
    uuid: str
    name: str = ""
    utilization_ratio: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    sm_clock_hertz: float | None = None
    throttled: bool | None = None


class Vitals(contract.Message):
    """How a host is; ratios are 0 to 1, ``None`` is what this kernel does not tell.

    ``boot`` is the running kernel's boot id: the same for all that runs on one machine, by
    whatever name. ``cores`` are the hall's logical CPUs, none where it is bound to none.
    ``foreign_cpu_ratio`` is the use of the engines' cores by others than this hall's own
    processes, ``quiet`` whether governor, swap and load are as a clocked game wants them.
    ``problem`` says why the worker has ended without opening its hall, '' where it has opened it.
    """

    schema_version: int = contract.SCHEMA
    host: str
    at_ms: int
    version: str = ""
    role: str = "hall"
    hall: str = ""
    cpu: str = ""
    kernel: str = ""
    governor: str = ""
    boot: str = ""
    cores: tuple[int, ...] = ()
    cpus: int = 0
    cpu_ratio: float | None = None
    foreign_cpu_ratio: float | None = None
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    temperature_celsius: float | None = None
    frequency_hertz: float | None = None
    throttles: int | None = None
    clock_offset_seconds: float | None = None
    clock_synchronized: bool | None = None
    quiet: bool | None = None
    bench_ratio: float | None = None
    spooled: int | None = None
    refused: int | None = None
    gpus: tuple[Gpu, ...] = ()
    problem: str = ""


class Source(Protocol):
    """The one verb of the ledger that is wanted here."""

    def vitals(self) -> dict[str, str]:
        """Return what each host told of itself last."""


def read(ledger: Source) -> Mapping[str, Vitals]:
    """Return each host's last word; one that this version cannot read is left out."""
    found: dict[str, Vitals] = {}
    for host, payload in ledger.vitals().items():
        try:
            found[host] = Vitals.decode(payload)
        except pydantic.ValidationError:
            continue  # a later version's host: its figures wait for this one's upgrade
    return found
