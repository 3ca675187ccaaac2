"""How late this machine wakes a process that sleeps: ``python wakeups.py real-time|ordinary``.

The control beside a measured clock: where a sleeper at the same priority is woken late, no
clock can be measured better. It ends with its stdin, and tells the 99th percentile in ms.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time

PAUSE_SECONDS = 0.01  # s: 100 looks a second cost nothing


def main(kind: str) -> None:
    """Sleep and note how late it woke, until stdin ends."""
    if kind == "real-time":
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    late: list[float] = []
    while True:
        before = time.monotonic_ns()
        if select.select([0], [], [], PAUSE_SECONDS)[0]:
            break
        late.append((time.monotonic_ns() - before) / 1e6 - PAUSE_SECONDS * 1e3)
    late.sort()
    print(f"{late[int(len(late) * 0.99) - 1]:.3f}")


if __name__ == "__main__":
    main(sys.argv[1])
