"""When this machine stood still: ``python wakeups.py CORE``, a sleeper on one core.

The control beside a measured clock. It looks at the clock 2,000 times a second at real-time
priority 2, before all that is measured (1) and is delayed by nothing of it: where it is woken
late, the machine itself stood still (its hypervisor, a kernel that does not let go). It ends
with its stdin and tells each late wake-up in a line: when it was due, when it woke
(monotonic ns).
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import sys
import time

PAUSE_NS = 500_000  # ns: what stands still for longer is seen
LATE_NS = 100_000  # ns: an undisturbed wake-up takes a tenth of it
PRIORITY = 2  # of 1 to 99: one above the agent's and the probe's


def main(core: int) -> None:
    """Sleep and note each late wake-up, until stdin ends."""
    os.sched_setaffinity(0, {core})
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    gc.disable()
    late: list[tuple[int, int]] = []
    while True:
        due_ns = time.monotonic_ns() + PAUSE_NS
        if select.select([0], [], [], PAUSE_NS / 1e9)[0]:
            break
        woken_ns = time.monotonic_ns()
        if woken_ns - due_ns > LATE_NS:
            late.append((due_ns, woken_ns))
    for due_ns, woken_ns in late:
        print(due_ns, woken_ns)


if __name__ == "__main__":
    main(int(sys.argv[1]))
