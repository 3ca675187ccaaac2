"""Which of an engine's builds a host plays with (N1 Compiles).

Invariants: the best build that the host's processor supports is chosen, 64-bit first; the
same host always chooses the same one. ``gpu`` is the build of the GPU competition's hosts
(S17-2) and chosen by the roster, never by a processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from orchestrator import contract

GPU: Final = "gpu"
_AVX2: Final = frozenset({"avx2", "popcnt"})
# Best first; what each asks of the processor, in the words of Linux' /proc/cpuinfo.
CLASSES: Final[Mapping[str, frozenset[str]]] = {
    GPU: frozenset({"no processor tells it"}),
    "avx512": _AVX2 | {"bmi2", "avx512f", "avx512bw", "avx512dq", "avx512vl"},
    "bmi2": _AVX2 | {"bmi2"},
    "avx2": _AVX2,
    "popcnt": frozenset({"sse4_1", "popcnt"}),
    "x86-64": frozenset({"lm"}),
    "arm64": frozenset({"asimd"}),
    "cpu": frozenset(),
}


def best(spec: contract.EngineSpec, flags: AbstractSet[str]) -> contract.EngineSpec:
    """Return an engine with the command of its best build for a processor with these flags.

    An engine without builds, or none of whose builds fits, keeps its command.
    """
    for name, needed in CLASSES.items():
        if name in spec.builds and needed <= flags:
            return spec.model_copy(update={"command": spec.builds[name], "build": name})
    return spec


def processor_flags(cpuinfo: str) -> frozenset[str]:
    """Return the flags of the first processor in the text of Linux' ``/proc/cpuinfo``."""
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in {"flags", "Features"}:
            return frozenset(value.split())
    return frozenset()


def files(spec: contract.EngineSpec) -> tuple[str, ...]:
    """Return the files of an engine's chosen build as the roster names them, its program first.

    Checksums of other builds are of no concern to the host that has chosen.
    """
    others = {command[0] for command in spec.builds.values()} - {spec.command[0]}
    named = [spec.command[0], *([spec.network] if spec.network else []), *spec.checksums]
    return tuple(name for name in dict.fromkeys(named) if name not in others)
