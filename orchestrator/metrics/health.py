"""Redis' own health, the feeds' and the archive's: what stands around the ledger."""

from __future__ import annotations

import pathlib
import shutil
import time
from collections.abc import Sequence
from typing import Any, Final

from orchestrator import contract
from orchestrator.contract import bells
from orchestrator.ledger import services, store
from orchestrator.metrics import families

OTHER: Final = "other"
DIGITS: Final = 19  # of the largest count that Redis can raise
FRESH_MS: Final = 60_000  # ms: six beats of `farm serve`


def redis(sheet: families.Sheet, ledger: store.RedisLedger) -> tuple[int, services.Serve | None]:
    """Write Redis' samples, and what services reported last.

    Return Redis' time of day in ms, and the last report of ``serve``.

    Raises:
        LedgerAwayError: Redis does not answer.
    """
    began = time.perf_counter()
    now_ms = ledger.now_ms()
    sheet.set("farm_redis_time_seconds", now_ms / 1000)
    sheet.set("farm_redis_ping_seconds", time.perf_counter() - began)
    with ledger.server.asked():
        info: dict[str, Any] = ledger.server.client.info()
    _info(sheet, info, now_ms)
    serve = _serve(sheet, ledger)
    _backup(sheet, ledger)
    # What may lose a write only `farm serve` may read whole: while it is fresh, its report counts.
    durable = info.get("aof_enabled") == 1 and info.get("maxmemory_policy") == "noeviction"
    unsafe = serve is not None and now_ms - serve.at_ms < FRESH_MS and serve.unsafe
    sheet.set("farm_redis_durable", durable and not unsafe)
    return now_ms, serve


def queue(sheet: families.Sheet, ledger: store.RedisLedger, place: str) -> None:
    """Write how many rings wait in the queue of a hall or lane."""
    name = bells.queue(place)
    with ledger.server.asked():
        length = ledger.server.client.llen(bells.KEYS + name)
    sheet.set("farm_queue_length", float(str(length)), queue=name)


def dropped(sheet: families.Sheet, ledger: store.RedisLedger, places: Sequence[str]) -> None:
    """Write how many messages were dropped, by queue of a hall or lane.

    Whoever may ring may also write this table, so that no name in it becomes a label: what is
    no known queue's (remote control, GPU boxes) counts as ``other``. Queues without any are 0:
    a first drop is an increase only of what was there before.
    """
    counts = dict.fromkeys((*map(bells.queue, places), OTHER), 0)
    with ledger.server.asked():
        table: dict[Any, Any] = ledger.server.client.hgetall(bells.DROPPED)
    for raw_name, digits in table.items():
        name = raw_name.decode(errors="replace")
        counts[name if name in counts else OTHER] += int(digits[:DIGITS])
    for name, count in counts.items():
        sheet.set("farm_messages_dropped_total", count, queue=name)


def _info(sheet: families.Sheet, info: dict[str, Any], now_ms: int) -> None:
    sheet.set("farm_redis_aof_write_ok", info.get("aof_last_write_status") == "ok")
    sheet.set("farm_redis_aof_rewrite_ok", info.get("aof_last_bgrewrite_status") == "ok")
    sheet.set("farm_redis_aof_rewrite_seconds", max(0, info.get("aof_current_rewrite_time_sec", 0)))
    sheet.set("farm_redis_aof_size_bytes", info.get("aof_current_size"))
    sheet.set("farm_redis_aof_delayed_writes_total", info.get("aof_delayed_fsync"))
    sheet.set("farm_redis_memory_used_bytes", info.get("used_memory"))
    sheet.set("farm_redis_memory_limit_bytes", info.get("maxmemory"))
    sheet.set("farm_redis_clients", info.get("connected_clients"))
    started = now_ms / 1000 - float(info.get("uptime_in_seconds", 0))
    sheet.set("farm_redis_start_timestamp_seconds", round(started))


def _serve(sheet: families.Sheet, ledger: store.RedisLedger) -> services.Serve | None:
    serve = services.read(ledger, services.SERVE, services.Serve)
    sheet.set("farm_serve_clock_skew_seconds", serve.clock_skew_seconds if serve else None)
    sheet.set("farm_serve_last_beat_timestamp_seconds", serve.at_ms / 1000 if serve else 0)
    if serve is not None:
        sheet.set("farm_serve_info", 1, version=serve.version, host=serve.host)
    return serve


def _backup(sheet: families.Sheet, ledger: store.RedisLedger) -> None:
    copy = services.read(ledger, services.BACKUP, services.Backup)
    complete_ms, away_ms = (copy.complete_ms, copy.away_ms) if copy else (0, 0)
    sheet.set("farm_backup_last_success_timestamp_seconds", complete_ms / 1000)
    sheet.set("farm_backup_last_offsite_timestamp_seconds", away_ms / 1000)
    if copy is not None:
        sheet.set("farm_backup_failed", bool(copy.error))
        sheet.set("farm_backup_duration_seconds", copy.seconds)
        sheet.set("farm_backup_journal_entries", copy.entries)


def notices(sheet: families.Sheet, outbox: pathlib.Path) -> None:
    """Write what the outbox of ``farm notify run`` holds; nothing where there is none."""
    try:
        passed, kept = outbox.stat().st_mtime, contract.loads(outbox.read_bytes())
        waiting = kept.get("waiting", [])
        failed = sum(1 for notice in waiting if notice.get("failed"))
    except (OSError, ValueError, AttributeError):
        return  # no notices on this host, or a file that `farm notify run` itself refuses
    sheet.set("farm_notify_last_beat_timestamp_seconds", passed)
    sheet.set("farm_notices_waiting", len(waiting))
    sheet.set("farm_notices_failed", failed)


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
