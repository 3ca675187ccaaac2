"""What a GPU box is told by its environment: its name, its directory, its GPUs and cores."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import socket
from collections.abc import Mapping
from typing import Final

from orchestrator.common import errors
from orchestrator.ledger import address
from worker_gpu import gpus

ALL: Final = "all"
NONE: Final = "none"  # a box without GPUs: engines of any kind on a second host


@dataclasses.dataclass(frozen=True)
class BoxSettings:
    """The settings of one GPU box.

    ``gpu_uuids`` are in their order of use, None for all that the driver shows.
    ``engines`` is the one directory into which files are put. ``engine_users`` is the first of 100
    user numbers that belong to nobody: engines run as these, where agents may change their user.
    """

    box: str
    directory: pathlib.Path
    engines: pathlib.Path
    redis_url: str
    host: str
    gpu_uuids: tuple[str, ...] | None = None
    cpus: tuple[int, ...] = ()
    memory_mb: int | None = None
    cgroup: pathlib.Path | None = None
    max_celsius: float = gpus.MAX_CELSIUS
    sample_seconds: float = 5.0
    engine_users: int | None = None


def from_environment(environment: Mapping[str, str] | None = None) -> BoxSettings:
    """Read the box's settings; raise ``UsageError`` naming the variable that is wrong."""
    env = os.environ if environment is None else environment
    url = address.url(env)
    if not url:
        raise errors.UsageError(
            "neither FARM_REDIS_URL nor FARM_REDIS_URL_FILE is set: the box needs the farm's Redis"
        )
    host = env.get("FARM_HOST", socket.gethostname())
    directory = pathlib.Path(env.get("FARM_BOX_DIR", "/var/lib/farm-gpu")).absolute()
    memory = env.get("FARM_BOX_MEMORY_MB", "")
    if memory and not memory.isdigit():
        raise errors.UsageError(f"FARM_BOX_MEMORY_MB: found {memory!r}; allowed: a whole number")
    users = env.get("FARM_BOX_ENGINE_USERS", "")
    if users and not (users.isdigit() and int(users) > 0):
        raise errors.UsageError(
            f"FARM_BOX_ENGINE_USERS: found {users!r}; allowed: the first of 100 free user numbers"
        )
    return BoxSettings(
        box=env.get("FARM_BOX", host),
        directory=directory,
        engines=pathlib.Path(env.get("FARM_BOX_ENGINES", str(directory / "engines"))).absolute(),
        redis_url=url,
        host=host,
        gpu_uuids=_gpus(env.get("FARM_BOX_GPUS", ALL)),
        cpus=_cpus(env.get("FARM_BOX_CPUS", "")),
        memory_mb=int(memory) if memory else None,
        cgroup=pathlib.Path(env["FARM_BOX_CGROUP"]) if env.get("FARM_BOX_CGROUP") else None,
        max_celsius=_number(env, "FARM_BOX_MAX_CELSIUS", gpus.MAX_CELSIUS),
        sample_seconds=_number(env, "FARM_BOX_SAMPLE_SECONDS", BoxSettings.sample_seconds),
        engine_users=int(users) if users else None,
    )


def _gpus(text: str) -> tuple[str, ...] | None:
    if text == ALL:
        return None
    return () if text == NONE else tuple(filter(None, text.split(",")))


def _cpus(text: str) -> tuple[int, ...]:
    """Read a CPU list as the kernel writes them: ``0-3,8``; empty means no binding."""
    cpus: set[int] = set()
    try:
        for part in filter(None, text.split(",")):
            first, _, last = part.partition("-")
            cpus.update(range(int(first), int(last or first) + 1))
    except ValueError:
        allowed = "a list such as 0-3,8"
        raise errors.UsageError(f"FARM_BOX_CPUS: found {text!r}; allowed: {allowed}") from None
    return tuple(sorted(cpus))


def _number(env: Mapping[str, str], name: str, default: float) -> float:
    text = env.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise errors.UsageError(f"{name}: found {text!r}; allowed: a number") from None
