"""Metrics of hosts and GPUs, from each host's heartbeat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestrator.ledger import vitals
from orchestrator.metrics import families

GONE_MS: Final = 7 * 86_400_000  # ms: a host that was silent for so long is no more


def write(sheet: families.Sheet, host: str, seen: vitals.Vitals, now_ms: int) -> None:
    """Write all samples of a host, unless its last report is older than ``GONE_MS``."""
    if now_ms - seen.at_ms >= GONE_MS:
        return
    labels = {name: getattr(seen, name) for name in ("role", "version", "cpu", "kernel")}
    sheet.set("farm_host_info", 1, host=host, governor=seen.governor, **labels)
    gauges: Mapping[str, float | None] = {
        "last_seen_timestamp_seconds": seen.at_ms / 1000,
        "cpus": seen.cpus,
        "cpu_ratio": seen.cpu_ratio,
        "foreign_cpu_ratio": seen.foreign_cpu_ratio,
        "memory_size_bytes": seen.memory_total_bytes,
        "memory_available_bytes": seen.memory_available_bytes,
        "swap_used_bytes": seen.swap_used_bytes,
        "disk_free_bytes": seen.disk_free_bytes,
        "disk_size_bytes": seen.disk_total_bytes,
        "temperature_celsius": seen.temperature_celsius,
        "frequency_hertz": seen.frequency_hertz,
        "throttles_total": seen.throttles,
        "clock_offset_seconds": seen.clock_offset_seconds,
        "clock_skew_seconds": seen.clock_skew_seconds,
        "clock_synchronized": seen.clock_synchronized,
        "quiet": seen.quiet,
        "bench_ratio": seen.bench_ratio,
        "spooled_games": seen.spooled,
        "refused_games": seen.refused,
    }
    for name, value in gauges.items():
        sheet.set(f"farm_host_{name}", value, host=host)
    for gpu in seen.gpus:
        _gpu(sheet, host, gpu)


def _gpu(sheet: families.Sheet, host: str, gpu: vitals.Gpu) -> None:
    gauges: Mapping[str, float | None] = {
        "utilization_ratio": gpu.utilization_ratio,
        "memory_used_bytes": gpu.memory_used_bytes,
        "memory_size_bytes": gpu.memory_total_bytes,
        "temperature_celsius": gpu.temperature_celsius,
        "power_watts": gpu.power_watts,
        "sm_clock_hertz": gpu.sm_clock_hertz,
        "throttled": gpu.throttled,
    }
    for name, value in gauges.items():
        sheet.set(f"farm_gpu_{name}", value, host=host, gpu=str(gpu.index), uuid=gpu.uuid)
