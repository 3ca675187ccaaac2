"""How much a command does before its own work begins: counted, not timed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = ("pydantic", "redis", "chess", "numpy", "celery", "rich")
MOST_FAULTS = 60_000  # a command's own are 20,000; with memory mapped at each call 220,000
SHALLOW = 25  # frames above an import: click's are 10, a command's imports in each other 60


def python(code: str) -> str:
    """Run a few lines in a fresh interpreter; what they print."""
    return subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_the_list_of_commands_loads_none_of_them() -> None:
    """``farm --help`` takes each line of help from the source of its command."""
    loaded = python(
        "import sys; from orchestrator import commands\n"
        "try: commands.farm(['--help'])\n"
        f"except SystemExit: print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert "standings" in loaded
    assert loaded.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", ["status"])
def test_the_chess_library_is_imported_on_a_shallow_stack(command: str) -> None:
    """Wherever the imports above it end: CPython maps memory at each call on a chunk's edge."""
    depth = python(
        "import sys\n"
        "class Depth:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        frame, depth = sys._getframe(), 0\n"
        "        while frame := frame.f_back: depth += 1\n"
        "        if name == 'chess': print(depth)\n"
        "sys.meta_path.insert(0, Depth())\n"
        "import click; from orchestrator.commands import farm\n"
        f"farm.get_command(click.Context(farm), {command!r})"
    )
    assert int(depth) < SHALLOW


@pytest.mark.parametrize("command", ["up"])
def test_a_command_maps_no_memory_at_each_call(command: str) -> None:
    """The page faults of its start are those of its modules."""
    process = subprocess.Popen(
        [sys.executable, "-c", "from orchestrator.commands import main; main()", command, "-h"],
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    assert usage.ru_minflt < MOST_FAULTS


HELD = """
import gc, importlib, sys
def held():
    lines = open("/proc/self/smaps_rollup").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))
import orchestrator.contract
before = held()
importlib.import_module(sys.argv[1])
print(held() - before)
"""


@pytest.mark.parametrize("module", ["orchestrator.contract.remote", "orchestrator.engines.sources"])
def test_messages_are_small_in_memory(module: str) -> None:
    """Every lane and gateway holds them: a length written as a repeated class took 10 MB."""
    run = [sys.executable, "-c", HELD, module]
    said = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert int(said) < 4_000  # KB


def test_a_lane_loads_no_ssh_library() -> None:
    """It is 8 MB in a hall or lane, and of use to those alone that have a GPU box."""
    loaded = python("import sys, worker_cpu.tasks; print('paramiko' in sys.modules)")
    assert loaded.strip() == "False"


READY = """
import collections, sys
from orchestrator import contract
import orchestrator.commands.show
left, ready = [contract.Message], collections.Counter()
while left:
    kind = left.pop()
    left += kind.__subclasses__()
    ready[kind.__module__.startswith("orchestrator.season."), kind.__pydantic_complete__] += 1
print(ready[True, True], ready[True, False])
"""


def test_a_command_builds_no_validator_that_it_does_not_use() -> None:
    """Of a season's tables and entries those alone that are made at an import: 60 were built."""
    ready, later = map(int, python(READY).split())
    assert ready < 5
    assert later > 50


COLLECTED = """
import gc, sys
collections = [0, 0, 0]
def count(phase, info):
    collections[info["generation"]] += phase == "start"
import click
from orchestrator.commands import farm
gc.callbacks.append(count)
before = len(sys.modules)
farm.get_command(click.Context(farm), sys.argv[1])
print(collections[1] + collections[2], len(sys.modules) - before, gc.isenabled())
"""


@pytest.mark.parametrize(("command", "fewest"), [("completion", 1), ("status", 300)])
def test_no_garbage_is_looked_for_while_a_command_is_imported(command: str, fewest: int) -> None:
    """However many modules it takes: the looks were a seventh of a start."""
    run = [sys.executable, "-c", COLLECTED, command]
    said = subprocess.run(run, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
    assert int(said[0]) < 2  # the first one behind it
    assert int(said[1]) >= fewest
    assert said[2] == "True"
