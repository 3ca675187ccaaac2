"""How soon the referee runs when an engine has answered: before anybody else on its core.

A process of the ordinary kind that is woken waits for the time slice of whoever runs on its
core, 3 ms and more. A referee that may (root, CAP_SYS_NICE, or RLIMIT_RTPRIO) asks for the
lowest real-time priority: it sleeps while engines think, so it takes nothing from them but
the moments in which it reads. Its children would not have the priority.
"""

from __future__ import annotations

import contextlib
import os

PRIORITY = 1  # of 1 to 99: before every ordinary process, behind every other real-time one


def run_at_once() -> None:
    """Ask for real-time priority; without the right to it nothing changes."""
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))
