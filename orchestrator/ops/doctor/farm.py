"""Checks of the farm as Redis knows it: durability, serve, halls, hosts, versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from orchestrator import contract
from orchestrator.common import errors, version
from orchestrator.ledger import store, vitals

SKEW_SECONDS: Final = 0.05
OUT_OF_SERVICE: Final = "docs/runbooks/FarmSeasonOutOfService.md"


def redis(ledger: store.RedisLedger) -> Iterator[contract.Finding]:
    """Look at Redis' settings and version."""
    why = "an acknowledged fact is never lost (docs/reliability.md)"
    complaints = ledger.check_durability()
    for complaint in complaints:
        unseen = "cannot be seen" in complaint
        yield contract.Finding(
            area="redis",
            name=complaint.split()[0],
            status="unknown" if unseen else "failed",
            found=complaint,
            why=why,
            do=_remedy(complaint, unseen=unseen),
        )
    if not complaints:
        actual = "appendonly yes, appendfsync always, noeviction; a restart keeps transactions"
        yield contract.Finding(area="redis", name="settings", status="ok", found=actual, why=why)
    with ledger.server.asked():
        info = dict(ledger.server.client.info("server"))
    number = str(info.get("redis_version", "0"))
    yield contract.Finding(
        area="redis",
        name="version",
        status="ok" if int(number.split(".", maxsplit=1)[0]) >= 7 else "warning",
        found=number,
        why="users by role need Redis 7 (docs/security.md)",
        do="install Redis 7 or later",
    )


def _remedy(complaint: str, *, unseen: bool) -> str:
    if unseen:
        return "ask as an operator: CONFIG GET and ACL DRYRUN are not for this user"
    if complaint.startswith("default-user"):
        return "before Redis restarts: print the users again (`farm acl`) and apply them (--apply)"
    return "set it in redis.conf"


def journals(ledger: store.RedisLedger) -> Iterator[contract.Finding]:
    """Look whether every journal can be read, and ``serve`` keeps up with it."""
    alarms = ledger.alarms()
    for season in ledger.seasons():
        complaint, do = alarms.pop(season, ""), OUT_OF_SERVICE
        try:
            lag = ledger.last(season) - ledger.mirrored(season)
        except errors.FarmError as error:
            if errors.is_outage(error):
                raise
            complaint = complaint or str(error)
        else:
            if lag and not complaint:
                complaint = f"{lag} entries are not in the mirror"
                do = "start `farm serve`; if it runs, look for season.damaged in its log"
        yield contract.Finding(
            area="journal",
            name=season,
            status="failed" if complaint else "ok",
            found=complaint or "mirrored to its last entry",
            why="nothing is acted on before it is on disk (docs/reliability.md)",
            do=do,
        )
    for season, reason in alarms.items():  # such as those that Redis had, and has no more
        yield contract.Finding(
            area="journal",
            name=season,
            status="failed",
            found=reason,
            why="nothing of it is played (docs/reliability.md)",
            do=OUT_OF_SERVICE,
        )


def hall(ledger: store.RedisLedger, name: str) -> Iterator[contract.Finding]:
    """Look whether a hall can play: opened by a worker, not held."""
    worker, holds = ledger.worker(name), ledger.holds(f"hall:{name}")
    yield contract.Finding(
        area="hall",
        name=name,
        status="failed" if not worker or holds else "ok",
        found="; ".join(holds.values()) or worker or "no worker has ever opened it",
        why="one host plays the season's games (docs/explanation/one-referee-host.md)",
        do="repair the host and `farm host release`" if holds else "start the hall's worker",
    )


def hosts(
    heartbeats: Mapping[str, vitals.Vitals], now_ms: int, drained: Mapping[str, str] = {}
) -> Iterator[contract.Finding]:
    """Check the hosts' last heartbeats, and whether all run one version.

    ``drained`` says of hosts that are silent on purpose why their halls were drained.
    """
    for name, seen in sorted(heartbeats.items()):
        yield from _host(name, seen, now_ms, drained.get(name, ""))
    versions = {version.build(), *(seen.version for seen in heartbeats.values() if seen.version)}
    yield contract.Finding(
        area="versions",
        name="farm",
        status="ok" if len(versions) == 1 else "failed",
        found=", ".join(sorted(versions)),
        why="a version refuses a journal of a later one (docs/operating.md, Upgrades)",
        do="finish the upgrade: ansible-playbook playbooks/upgrade.yml",
    )


def _host(name: str, seen: vitals.Vitals, now_ms: int, drained: str) -> Iterator[contract.Finding]:
    silent = now_ms - seen.at_ms
    purpose = f", {seen.hall} is drained ({drained})" if drained else ""
    yield contract.Finding(
        area="host",
        name=f"{name}: alive",
        status="ok" if silent <= vitals.SILENT_SECONDS * 1000 or drained else "failed",
        found=f"last heartbeat {silent / 1000:.0f} s ago{purpose}",
        why="a host that is away holds the games that need it up",
        do="start its worker, `farm season amend host --away`, or `farm host forget`",
    )
    offset, kept = seen.clock_offset_seconds, seen.clock_synchronized
    skewed = kept is False or (offset is not None and abs(offset) > SKEW_SECONDS)
    apart = seen.clock_skew_seconds or 0.0
    skewed = skewed or abs(apart) > vitals.SKEW_SECONDS
    yield contract.Finding(
        area="host",
        name=f"{name}: time of day",
        status="warning" if skewed else "unknown" if kept is None else "ok",
        found=f"offset {offset or 0:.4f} s, {'kept' if kept else 'not synchronized'},"
        f" {apart:+.1f} s from Redis' clock",
        why="dates in PGN and logs; no clock of a game depends on it",
        do="start chrony on that host, on the machine below where it is a container",
    )
    for gpu in seen.gpus:
        yield contract.Finding(
            area="gpu",
            name=f"{name}: GPU {gpu.index}",
            status="failed" if gpu.throttled else "ok",
            found=f"{gpu.name} {gpu.uuid}, {gpu.temperature_celsius} °C",
            why="both sides play under equal terms (S17 GPU rules)",
            do="cool it, lock its clocks (role gpu_box)",
        )
