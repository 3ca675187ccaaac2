"""Redis' own health, the feeds' and the archive's: what stands around the ledger."""

from __future__ import annotations

import pathlib
import shutil
import time
from typing import Any

from orchestrator.contract import bells
from orchestrator.ledger import store
from orchestrator.metrics import families


def redis(sheet: families.Sheet, ledger: store.RedisLedger, halls: tuple[str, ...]) -> int:
    """Write Redis' samples; return its time of day in ms. Raise ``LedgerAwayError``."""
    began = time.perf_counter()
    now_ms = ledger.now_ms()
    sheet.set("farm_redis_ping_seconds", time.perf_counter() - began)
    with ledger.server.asked():
        info: dict[str, Any] = ledger.server.client.info()
        waiting = {
            bells.queue(hall): ledger.server.client.llen(bells.KEYS + bells.queue(hall))
            for hall in halls
        }
    for queue, length in waiting.items():
        sheet.set("farm_queue_length", float(str(length)), queue=queue)
    _info(sheet, info, now_ms)
    return now_ms


def _info(sheet: families.Sheet, info: dict[str, Any], now_ms: int) -> None:
    durable = info.get("aof_enabled") == 1 and info.get("maxmemory_policy") == "noeviction"
    sheet.set("farm_redis_durable", durable)
    sheet.set("farm_redis_aof_write_ok", info.get("aof_last_write_status") == "ok")
    sheet.set("farm_redis_aof_size_bytes", info.get("aof_current_size"))
    sheet.set("farm_redis_aof_delayed_writes_total", info.get("aof_delayed_fsync"))
    sheet.set("farm_redis_memory_used_bytes", info.get("used_memory"))
    sheet.set("farm_redis_memory_limit_bytes", info.get("maxmemory"))
    sheet.set("farm_redis_clients", info.get("connected_clients"))
    started = now_ms / 1000 - float(info.get("uptime_in_seconds", 0))
    sheet.set("farm_redis_start_timestamp_seconds", round(started))


def files(sheet: families.Sheet, archive: pathlib.Path, feeds: pathlib.Path) -> None:
    """Write how fresh the feeds are and how full the archive's disk is; none, no samples."""
    for path in sorted(feeds.glob("*")):
        if path.is_file() and not path.name.startswith("."):
            at = path.stat().st_mtime
            sheet.set("farm_feed_last_write_timestamp_seconds", at, file=path.name)
    try:
        usage = shutil.disk_usage(archive)
    except OSError:
        return  # the archive is not on this host
    sheet.set("farm_archive_disk_free_bytes", usage.free)
    sheet.set("farm_archive_disk_size_bytes", usage.total)
