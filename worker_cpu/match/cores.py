"""Which logical CPUs each concurrent game gets: disjoint sets, whole cores first.

A game takes as many cores as its engines have threads (only one side thinks at a time).
The referee of engines with one thread is on their core: waking it there takes 3 to 5 µs,
on a core that sleeps 30 µs and more (decision 021). With more threads it gets one more core
where the machine has it: output is then not read at the expense of a thread that thinks.
Second threads of a core are taken last. Where the machine is too small for disjoint sets
nobody is bound.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Mapping, Sequence

from worker_cpu.engines import handles

TOPOLOGY = pathlib.Path("/sys/devices/system/cpu")


def allot(games: int, threads: int, cpus: Sequence[int]) -> list[handles.Cores]:
    """Return the cores of each game; ``ANYWHERE`` for all when they do not suffice.

    ``cpus`` are in the order in which they are taken (``whole_cores_first``).
    """
    if threads > 1 and games * (threads + 1) <= len(cpus):
        return [_separate(cpus[at : at + threads + 1]) for at in _starts(games, threads + 1)]
    if games * threads <= len(cpus):
        sets = [frozenset(cpus[at : at + threads]) for at in _starts(games, threads)]
        return [handles.Cores(own, own) for own in sets]
    return [handles.ANYWHERE] * games


def left_over(lanes: Sequence[handles.Cores], cpus: Sequence[int]) -> frozenset[int]:
    """Return the CPUs that no game is bound to, for everything else of the match."""
    return frozenset(cpus).difference(*(lane.referee | lane.engines for lane in lanes))


def _starts(games: int, width: int) -> range:
    return range(0, games * width, width)


def _separate(own: Sequence[int]) -> handles.Cores:
    return handles.Cores(frozenset(own[:1]), frozenset(own[1:]))


def available(wanted: frozenset[int]) -> list[int]:
    """Return the CPUs a match may use, siblings last: those wanted, else all it has."""
    allowed = os.sched_getaffinity(0)
    cpus = wanted & allowed or allowed
    return whole_cores_first({cpu: _siblings(cpu) for cpu in cpus})


def whole_cores_first(siblings: Mapping[int, Sequence[int]]) -> list[int]:
    """Order CPUs, given those of the same core, second threads after every first one."""
    return sorted(siblings, key=lambda cpu: (sorted(siblings[cpu]).index(cpu), cpu))


def _siblings(cpu: int) -> list[int]:
    """Return the CPUs that share a core with this one, itself included."""
    with contextlib.suppress(OSError, ValueError):
        text = (TOPOLOGY / f"cpu{cpu}/topology/thread_siblings_list").read_text()
        found: list[int] = []
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            found += range(int(first), int(last or first) + 1)
        return found if cpu in found else [cpu]
    return [cpu]
