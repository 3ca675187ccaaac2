"""What an engine computed and how long it waited for a core, as it is told of a loss on time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

from worker_cpu.engines import local

PROGRAM = """
import os, subprocess, sys, threading, time

def burn():
    end = time.thread_time() + 0.2
    while time.thread_time() < end:
        pass

print("ready", flush=True)
for line in sys.stdin:
    if line == "burn\\n":
        burn()
    elif line == "thread\\n":
        thread = threading.Thread(target=burn)
        thread.start()
        thread.join()
        while len(os.listdir("/proc/self/task")) > 1:  # joined, it is not yet gone for the kernel
            time.sleep(0.001)
    elif line == "child\\n":
        subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE)
    print("done", flush=True)
"""


def told(deed: str) -> str:
    """Return what is told of a process after it did something."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdout.readline()
        core_time = local.CoreTime(process.pid)
        core_time.mark()
        print(deed, file=process.stdin, flush=True)
        process.stdout.readline()
        said = core_time.spoken()
        os.killpg(process.pid, signal.SIGKILL)
    assert not core_time.spoken(), "of a process that has ended nothing is known"
    return said


def test_what_a_process_computed_and_waited_is_told() -> None:
    """Both are of the process, not of the clock on the wall."""
    words = r"computed (\d+\.\d) ms of these, waited \d+\.\d ms for a core in the whole game"
    computed = re.fullmatch(words, told("burn"))
    assert computed
    assert float(computed[1]) >= 200


def test_what_an_ended_thread_waited_is_not_guessed() -> None:
    """Its computing still counts, its waiting is gone with it."""
    computed = re.fullmatch(r"computed (\d+\.\d) ms of these", told("thread"))
    assert computed
    assert float(computed[1]) >= 200


def test_of_a_process_with_a_child_nothing_is_told() -> None:
    """It may be the child that plays."""
    assert told("child") == ""
