"""Playing matches in tests: the real command in a process of its own, tiny engines."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

ENGINES = pathlib.Path(__file__).parents[1] / "engines"
# A match locks cores in its own directory: beside other tests' matches it would find none.
LOCKS = ".locks"
SCRATCH = ".tmp"
MAIN = (
    "import pathlib; from worker_cpu.match import cores;"
    f" cores.LOCKS = (pathlib.Path({LOCKS!r}),);"
    " from orchestrator.commands import main; main()"
)
FARM = (sys.executable, "-c", MAIN)
PATIENCE = 180.0  # s: a match that hangs fails its test after this long


def mating(skill: str, name: str, *more: str) -> list[str]:
    """Return ``-engine`` and its words for the engine of known mates."""
    program = ENGINES / "mating.py"
    command = [f"cmd={sys.executable}", "arg=-I", "arg=-S", f"arg={program}", f"arg={skill}"]
    return ["-engine", *command, f"name={name}", *more]


def scripted(name: str, *arguments: str) -> list[str]:
    """Return ``-engine`` and its words for the scripted engine."""
    words = [f"arg={word}" for word in (str(ENGINES / "scripted.py"), "--name", name, *arguments)]
    return ["-engine", f"cmd={sys.executable}", f"name={name}", *words]


def good_and_bad(*more: str) -> list[str]:
    """Return both engines of known mates with a clock."""
    engines = [*mating("good", "Good"), *mating("bad", "Bad")]
    return [*engines, "-each", "tc=10+0.1", *more]


def start(directory: pathlib.Path, *words: str, first: str = "") -> subprocess.Popen[str]:
    """Start ``farm match``; ``first`` is Python that runs before it."""
    (directory / LOCKS).mkdir(exist_ok=True)
    (directory / LOCKS).chmod(0o1777)
    scratch = directory / SCRATCH  # a match that a test kills leaves its folder there
    scratch.mkdir(exist_ok=True)
    return subprocess.Popen(
        [*FARM[:-1], first + FARM[-1], "match", *words],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONWARNINGS": "default", "TMPDIR": str(scratch)},
    )


def play(
    directory: pathlib.Path, *words: str, code: int = 0, first: str = ""
) -> subprocess.CompletedProcess[str]:
    """Play a match to its end; its exit code must be the one given."""
    process = start(directory, *words, first=first)
    try:
        out, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == code, f"exit code {process.returncode}\n{out}\n{err}"
    return subprocess.CompletedProcess(words, code, out, err)


def run_json(directory: pathlib.Path, *words: str, code: int = 0) -> dict[str, Any]:
    """Play a match with ``--json`` and return what it printed."""
    found: dict[str, Any] = json.loads(play(directory, *words, "--json", code=code).stdout)
    return found


def games(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the games of a journal."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in lines if line["kind"] == "game"]


def survivors(directory: pathlib.Path) -> list[str]:
    """Return the commands of processes whose working directory is this one."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cwd").readlink() == directory:
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
