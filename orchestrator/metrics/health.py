"""Health of what stands around the ledger: Redis and its certificate, feeds, archive, hosts."""

from __future__ import annotations

import pathlib
import shutil
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import structlog

from orchestrator import contract
from orchestrator.contract import bells
from orchestrator.ledger import connection, services, store, vitals
from orchestrator.metrics import families

log = structlog.get_logger()

OTHER: Final = "other"
DIGITS: Final = 19  # of the largest count that Redis can raise
FRESH_MS: Final = 60_000  # ms: six beats of `farm serve`
AGAIN_SECONDS: Final = 600.0  # s: between two handshakes for the certificate
AGAIN_AFTER_FAILURE_SECONDS: Final = 60.0
GONE_MS: Final = 7 * 86_400_000  # ms: a host that was silent for so long is no more


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


def queue(sheet: families.Sheet, ledger: store.RedisLedger, worker: str) -> None:
    """Write how many rings wait in the queue of a hall or lane."""
    name = bells.queue(worker)
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


class Certificate:
    """The TLS certificate that Redis shows to a client that trusts the farm's CA.

    It is asked for every ten minutes, by a handshake of its own: the connection that carries
    the ledger may be older than the certificate. Where Redis speaks no TLS there is no sample.
    """

    def __init__(self, server: connection.Server) -> None:
        """Take address and files from the server's own client; nothing is sent yet."""
        self._told: dict[str, Any] = server.client.connection_pool.connection_kwargs
        self._expires: float | None = None
        self._next = float("-inf")

    def write(self, sheet: families.Sheet) -> None:
        """Write when it ends; what was seen last where the handshake fails."""
        if "ssl_ca_certs" in self._told and time.monotonic() >= self._next:
            try:
                self._expires = self._look()
                self._next = time.monotonic() + AGAIN_SECONDS
            except OSError as error:
                self._next = time.monotonic() + AGAIN_AFTER_FAILURE_SECONDS
                log.warning("certificate.unseen", error=str(error))
        sheet.set("farm_redis_certificate_expiry_timestamp_seconds", self._expires)

    def _look(self) -> float | None:
        context = ssl.create_default_context(cafile=self._told["ssl_ca_certs"])
        if self._told.get("ssl_certfile"):
            context.load_cert_chain(self._told["ssl_certfile"], self._told.get("ssl_keyfile"))
        server = (self._told["host"], int(self._told.get("port", 6379)))
        with (
            socket.create_connection(server, connection.SOCKET_TIMEOUT) as plain,
            context.wrap_socket(plain, server_hostname=server[0]) as secure,
        ):
            shown: Any = secure.getpeercert()
        return float(ssl.cert_time_to_seconds(shown["notAfter"]))


def host(
    sheet: families.Sheet, host: str, seen: vitals.Vitals, now_ms: int, *, drained: bool = False
) -> None:
    """Write the heartbeat of a host and its GPUs, unless it is older than ``GONE_MS``."""
    if now_ms - seen.at_ms >= GONE_MS:
        return
    labels = {name: getattr(seen, name) for name in ("role", "version", "cpu", "kernel")}
    sheet.set("farm_host_info", 1, host=host, governor=seen.governor, **labels)
    gauges: Mapping[str, float | None] = {
        "last_seen_timestamp_seconds": seen.at_ms / 1000,
        "drained": drained,
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
