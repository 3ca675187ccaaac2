"""Never on the hall's cores: what is known of them, and whether a kibitzer would touch them.

Halls tell of their cores with every beat (``ledger.vitals``). Which of them are on this
machine is told by the kernel's boot id, whatever the hosts are called; without one by
their names. A hall that is bound to no cores has all of its machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from orchestrator.common import errors
from orchestrator.ledger import vitals


def bind(wanted: frozenset[int]) -> frozenset[int]:
    """Bind this process, and so its engine, to cores; return those it has.

    No wish means all that it may use. Raise ``HostError`` for cores that it may not use.
    """
    allowed = frozenset(os.sched_getaffinity(0))
    if not wanted <= allowed:
        raise errors.HostError(
            f"--cpus: found {listed(wanted)}; this process may use {listed(allowed)}: correct it,"
            " or AllowedCPUs= of its unit"
        )
    if wanted:
        os.sched_setaffinity(0, wanted)
    return wanted or allowed


def check(own: frozenset[int], boot: str, host: str, told: Iterable[vitals.Vitals]) -> None:
    """Raise ``HostError`` when a hall or a GPU box on this machine has one of these cores."""
    for seen in told:
        here = seen.boot == boot if seen.boot and boot else seen.host == host
        if here and (not seen.cores or own & set(seen.cores)):
            raise errors.HostError(_refusal(seen, own))


def _refusal(seen: vitals.Vitals, own: frozenset[int]) -> str:
    occupant = f"hall {seen.hall}" if seen.hall else f"{seen.role} {seen.host}"
    remedy = (
        "run the kibitzer on another host, or give it cores (--cpus, FARM_KIBITZ_CPUS) that are"
        f" not the hall's; a host that is no more: `farm host forget {seen.host}`"
    )
    if not seen.cores:
        return (
            f"{occupant} is on this machine and bound to no cores (FARM_ENGINE_CPUS and"
            f" FARM_REFEREE_CPUS are not set): a kibitzer would disturb its games; {remedy}"
        )
    shared = listed(own & set(seen.cores))
    return (
        f"{occupant} plays on this machine's cores {shared}, which the kibitzer would use; {remedy}"
    )


def listed(cpus: Iterable[int]) -> str:
    """Write cores as ``0,1,5``."""
    return ",".join(map(str, sorted(cpus)))
