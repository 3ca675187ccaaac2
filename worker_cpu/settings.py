"""The settings of a hall from its environment: folders, lease, cores.

Every setting is an environment variable, so that systemd units, ``farm up`` and tests
give them the same way. The lease's numbers belong together: an engine is dead before
its lease can be given to somebody else (beat < dead man < lease).
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import socket
from collections.abc import Mapping

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import address
from worker_cpu.engines import mounts, sandbox

BEAT_SECONDS = 10.0  # s: renewals, and so the delay of an operator's wish
DEAD_MAN_SECONDS = 90.0  # s: engines die this long after the last renewal was sent
LEASE_SECONDS = 120.0  # s: only after this can a lease be suspected, and revoked
WHOLE = "whole"  # the lane of a worker that plays official games: it takes the hall alone
KEEP_ATTEMPTS_DAYS = 30.0  # days: logs of interrupted attempts, for authors who ask for evidence


@dataclasses.dataclass(frozen=True)
class HallSettings:
    """The settings of one hall on this host; durations in seconds."""

    hall: str
    directory: pathlib.Path
    redis_url: str
    host: str
    worker: str
    lane: str = WHOLE
    lane_memory_mb: int | None = None
    lane_gpus: int = 0
    lane_gpu_ids: tuple[str, ...] = ()  # those that its engines see, by number or UUID
    lane_boxes: tuple[str, ...] = ()  # boxes of ``boxes`` where its engines may play
    beat_seconds: float = BEAT_SECONDS
    dead_man_seconds: float = DEAD_MAN_SECONDS
    lease_seconds: float = LEASE_SECONDS
    referee_cpus: frozenset[int] = frozenset()
    engine_cpus: frozenset[int] = frozenset()
    engine_sandbox: sandbox.Wish = "auto"
    engine_memory_mb: int | None = None
    engine_processes: int = sandbox.Confinement.processes
    engine_scratch_mb: int = sandbox.Confinement.scratch_mb
    keep_attempts_days: float = KEEP_ATTEMPTS_DAYS
    boxes: pathlib.Path | None = None  # how the GPU boxes are reached: ``gpu_hosts.load``
    data: pathlib.Path | None = None  # the farm's data directory
    farm_places: tuple[str, ...] = ()  # what of this host no engine may see

    def __post_init__(self) -> None:
        """Refuse names that are none, and numbers with which an engine could outlive its lease."""
        named = [("FARM_LANE_BOXES", box) for box in self.lane_boxes]
        for variable, name in (("FARM_HALL", self.hall), ("FARM_HOST", self.host), *named):
            if not contract.is_name(name):
                raise errors.UsageError(
                    f"{variable}: found {name[:80]!r}; allowed: {contract.ids.ALLOWED}"
                )
        if not 0 < 2 * self.beat_seconds <= self.dead_man_seconds < self.lease_seconds:
            raise errors.UsageError(
                f"hall {self.hall}: the lease needs 2 x beat <= dead man < lease, got"
                f" FARM_BEAT_SECONDS={self.beat_seconds:g},"
                f" FARM_DEAD_MAN_SECONDS={self.dead_man_seconds:g},"
                f" FARM_LEASE_SECONDS={self.lease_seconds:g}"
            )
        if not self.keep_attempts_days >= 0:
            raise errors.UsageError(
                f"FARM_KEEP_ATTEMPTS_DAYS: found {self.keep_attempts_days:g}; allowed: 0 or more"
            )

    def confinement(self) -> sandbox.Confinement:
        """Return what this host does to engines; raise ``HostError`` when it cannot."""
        return sandbox.Confinement(
            kind=sandbox.choose(self.engine_sandbox),
            memory_mb=self.engine_memory_mb,
            processes=self.engine_processes,
            scratch_mb=self.engine_scratch_mb,
            hidden=(str(self.directory), *self.farm_places),
            data=str(self.data or ""),
        )


def from_environment(environment: Mapping[str, str] | None = None) -> HallSettings:
    """Read the hall's settings; raise ``UsageError`` naming the variable that is wrong."""
    env = os.environ if environment is None else environment
    hall = env.get("FARM_HALL", "hall-1")
    data = pathlib.Path(env.get("FARM_DATA", ".farm")).absolute()
    host = env.get("FARM_HOST", socket.gethostname())
    url = address.url(env)
    if not url:
        raise errors.UsageError(
            "neither FARM_REDIS_URL nor FARM_REDIS_URL_FILE is set: the hall needs the farm's"
            " Redis; `farm up` sets it"
        )
    gpu_ids = tuple(filter(None, env.get("FARM_LANE_GPU_IDS", "").split(",")))
    return HallSettings(
        hall=hall,
        directory=pathlib.Path(env.get("FARM_HALL_DIR", str(data / "halls" / hall))),
        redis_url=url,
        host=host,
        worker=env.get("FARM_WORKER", host),
        lane=env.get("FARM_LANE") or WHOLE,
        lane_memory_mb=_count(env, "FARM_LANE_MEMORY_MB"),
        lane_gpus=_count(env, "FARM_LANE_GPUS") or len(gpu_ids),
        lane_gpu_ids=gpu_ids,
        lane_boxes=tuple(filter(None, env.get("FARM_LANE_BOXES", "").split(","))),
        beat_seconds=_seconds(env, "FARM_BEAT_SECONDS", BEAT_SECONDS),
        dead_man_seconds=_seconds(env, "FARM_DEAD_MAN_SECONDS", DEAD_MAN_SECONDS),
        lease_seconds=_seconds(env, "FARM_LEASE_SECONDS", LEASE_SECONDS),
        keep_attempts_days=_seconds(env, "FARM_KEEP_ATTEMPTS_DAYS", KEEP_ATTEMPTS_DAYS),
        boxes=pathlib.Path(env["FARM_BOXES"]) if env.get("FARM_BOXES") else None,
        data=data,
        farm_places=mounts.farm_places(env, data, url),
        referee_cpus=_cpus(env, "FARM_REFEREE_CPUS"),
        engine_cpus=_cpus(env, "FARM_ENGINE_CPUS"),
        engine_sandbox=sandbox.wish(env.get("FARM_SANDBOX") or "auto", "FARM_SANDBOX"),
        engine_memory_mb=_count(env, "FARM_ENGINE_MEMORY_MB"),
        engine_processes=_count(env, "FARM_ENGINE_PROCESSES") or sandbox.Confinement.processes,
        engine_scratch_mb=_count(env, "FARM_ENGINE_SCRATCH_MB") or sandbox.Confinement.scratch_mb,
    )


def _count(env: Mapping[str, str], name: str) -> int | None:
    text = env.get(name, "")
    if text and not (text.isascii() and text.isdigit() and int(text)):
        raise errors.UsageError(f"{name}: found {text!r}; allowed: a whole number from 1")
    return int(text) if text else None


def _seconds(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        unit = "days" if name.endswith("_DAYS") else "seconds"
        raise errors.UsageError(f"{name}: found {text!r}; allowed: {unit} such as 10") from None


def _cpus(env: Mapping[str, str], name: str) -> frozenset[int]:
    return cpus_of(env.get(name, ""), name)


def cpus_of(text: str, name: str) -> frozenset[int]:
    """Read a CPU list as the kernel writes them: ``0-3,8``; empty means no binding.

    Raise ``UsageError`` that names the setting.
    """
    cpus: set[int] = set()
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    except ValueError:
        raise errors.UsageError(f"{name}: found {text!r}; allowed: a list such as 0-3,8") from None
    return frozenset(cpus)
