"""The match runners that are measured, all started by the same command language.

The farm's own is always there; a peer is there when its path is given: ``FARM_FASTCHESS``,
``FARM_CUTECHESS``, ``FARM_CCHESS``. Every runner gets the same probe, game and clock.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

import clock_figures
import clock_script

SOURCE = pathlib.Path(__file__).with_name("probe.c")
CLOCK = "10+0.1"
QUIET = 0.15  # of the machine: a run beside more foreign work than this is played again
TRIES = 3  # times a run is played at most to find a quiet one
RUN_SECONDS = 900  # s: a run that takes longer is broken
_QUIET = {"QT_QPA_PLATFORM": "offscreen"}  # cutechess is linked to a graphics library


@dataclasses.dataclass(frozen=True)
class Setting:
    """What the probes do, and how many games of it are played."""

    think_us: int
    lines: int
    concurrency: int
    games: int


@dataclasses.dataclass(frozen=True)
class Probe:
    """The compiled probe and its written game."""

    program: pathlib.Path
    script: pathlib.Path

    def arguments(self, logs: pathlib.Path, setting: Setting) -> list[str]:
        """Return the probe's own command line."""
        return [str(self.script), str(logs), str(setting.think_us), str(setting.lines)]


@dataclasses.dataclass(frozen=True)
class Runner:
    """A program that plays matches: how it is started, and which version it says it is."""

    name: str
    version: str
    command: Callable[[Probe, pathlib.Path, Setting], list[str]]


@dataclasses.dataclass(frozen=True)
class Run:
    """One whole run: the probes' stamps, its life in seconds, and who else was busy."""

    sides: list[clock_figures.Side]
    seconds: float
    foreign: float  # share of the machine's cores that others used meanwhile


def build(directory: pathlib.Path) -> Probe:
    """Compile the probe and write its game into a folder."""
    program = directory / "probe"
    found = compiler()
    if found is None:
        raise RuntimeError("the probe is written in C: gcc is wanted")
    subprocess.run([found, "-O2", "-o", str(program), str(SOURCE)], check=True)
    return Probe(program, clock_script.write(directory / "game.txt"))


def compiler() -> str | None:
    """Return the C compiler of this machine."""
    return shutil.which("gcc") or shutil.which("cc")


def available() -> list[Runner]:
    """Return the farm's runner and the peers whose paths are given."""
    found = [Runner("farm match", _farm_version(), _farm)]
    for name, variable, version, language in (
        ("fastchess", "FARM_FASTCHESS", "-version", _fastchess),
        ("cutechess-cli", "FARM_CUTECHESS", "-version", _cutechess),
        ("c-chess-cli", "FARM_CCHESS", "-version", _cchess),
    ):
        path = os.environ.get(variable)
        if path:
            found.append(Runner(name, _said(path, version), language))
    return found


def play(runner: Runner, probe: Probe, setting: Setting, directory: pathlib.Path) -> Run:
    """Play one run; where others were busy, play it again and keep the quietest."""
    runs: list[Run] = []
    while len(runs) < TRIES:
        runs.append(_play(runner, probe, setting, directory / str(len(runs))))
        if runs[-1].foreign <= QUIET:
            break
    return min(runs, key=lambda run: run.foreign)


def _play(runner: Runner, probe: Probe, setting: Setting, directory: pathlib.Path) -> Run:
    """Play one run in a fresh folder; raise ``RuntimeError`` when the runner fails."""
    logs = directory / "logs"
    logs.mkdir(parents=True)
    busy, own, begin = _busy_seconds(), _children_seconds(), time.monotonic()
    done = subprocess.run(
        runner.command(probe, logs, setting),
        cwd=directory,
        env=os.environ | _QUIET,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=RUN_SECONDS,
        check=False,
    )
    seconds = time.monotonic() - begin
    sides = clock_figures.read(logs)
    if len(sides) != 2 * setting.games:
        words = done.stdout.decode(errors="replace")[-2000:]
        raise RuntimeError(f"{runner.name}: {len(sides)} of {2 * setting.games} sides:\n{words}")
    others = _busy_seconds() - busy - (_children_seconds() - own)
    return Run(sides, seconds, max(0.0, others / seconds / cores()))


def started(words: Sequence[str], here: pathlib.Path, mark: str = "") -> subprocess.Popen[bytes]:
    """Start a match in a folder, where what it says goes to ``said.txt``.

    ``mark``, ``NAME=VALUE``, is in the environment of all its processes.
    """
    marked = dict([mark.split("=", 1)]) if mark else {}
    with (here / "said.txt").open("wb") as said:
        return subprocess.Popen(
            words,
            cwd=here,
            env=os.environ | _QUIET | marked,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
        )


def ended(running: subprocess.Popen[bytes], here: pathlib.Path) -> None:
    """Wait for a match's end; it has to be a good one."""
    assert running.wait() == 0, (running.args, (here / "said.txt").read_text()[-2000:])


def cores() -> int:
    """Return how many cores the benchmark may use."""
    return len(os.sched_getaffinity(0))


def _farm(probe: Probe, logs: pathlib.Path, setting: Setting) -> list[str]:
    farm = pathlib.Path(sys.executable).with_name("farm")
    return [str(farm), "match", *_each_by_arg(probe, logs, setting), *_length(setting)]


def _cutechess(probe: Probe, logs: pathlib.Path, setting: Setting) -> list[str]:
    program = os.environ["FARM_CUTECHESS"]
    return [program, *_each_by_arg(probe, logs, setting), *_length(setting)]


def _fastchess(probe: Probe, logs: pathlib.Path, setting: Setting) -> list[str]:
    arguments = " ".join(probe.arguments(logs, setting))
    each = ["-each", f"cmd={probe.program}", f"args={arguments}", f"tc={CLOCK}"]
    engines = ["-engine", "name=A", "-engine", "name=B"]
    return [os.environ["FARM_FASTCHESS"], *engines, *each, *_length(setting)]


def _cchess(probe: Probe, logs: pathlib.Path, setting: Setting) -> list[str]:
    command = " ".join([str(probe.program), *probe.arguments(logs, setting)])
    engines = ["-each", f"cmd={command}", f"tc={CLOCK}", "-engine", "name=A", "-engine", "name=B"]
    length = ["-games", str(setting.games), "-concurrency", str(setting.concurrency)]
    return [os.environ["FARM_CCHESS"], *engines, *length]


def _each_by_arg(probe: Probe, logs: pathlib.Path, setting: Setting) -> list[str]:
    arguments = [f"arg={word}" for word in probe.arguments(logs, setting)]
    engines = []
    for name in "AB":
        engines += ["-engine", f"name={name}", f"cmd={probe.program}", "proto=uci", *arguments]
    return [*engines, "-each", f"tc={CLOCK}"]


def _length(setting: Setting) -> list[str]:
    rounds = ["-rounds", str(setting.games), "-games", "1"]
    return [*rounds, "-concurrency", str(setting.concurrency)]


def _farm_version() -> str:
    return f"this tree, Python {sys.version.split()[0]}"


def _said(program: str, argument: str) -> str:
    done = subprocess.run(
        [program, argument], capture_output=True, env=os.environ | _QUIET, check=False, timeout=30
    )
    said = done.stdout.decode(errors="replace").strip().splitlines()
    return said[0] if said else "it tells no version"


def _busy_seconds() -> float:
    """Return the seconds that all cores together were busy since the machine started."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
