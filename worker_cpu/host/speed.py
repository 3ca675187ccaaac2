"""How fast cores are: nodes a second of the farm's own engine, for the gate of test matches.

A test match may ask for a least speed (``farm test --min-nps``), so that a slow or busy
host does not distort its clock. The same search on every host; its tree does not depend
on time.
"""

from __future__ import annotations

import os
import statistics
import time

import chess

from worker_cpu.builtin_engine import search as builtin_engine_search

NODES = 3_000  # a tenth of a second on a core of today
RUNS = 3  # the median is told: one run may meet somebody else's time slice
POSITION = "r3kb1r/3n1pp1/p6p/2pPp2q/Pp2N3/3B2PP/1PQ2P2/R3K2R w KQkq - 0 1"


def nps(cpus: frozenset[int]) -> int:
    """Measure on one of these cores; the process is bound to them meanwhile."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpus)
    try:
        return round(statistics.median(_run() for _ in range(RUNS)))
    finally:
        os.sched_setaffinity(0, before)


def _run() -> float:
    search = builtin_engine_search.Search()
    limits = builtin_engine_search.Limits(nodes=NODES)
    began = time.perf_counter()
    search.run(chess.Board(POSITION), limits, lambda: False, lambda _: None)
    return NODES / (time.perf_counter() - began)
