"""Engines that cheat at their clock, and hosts that really stall: who is excused, and who pays.

A real farm, its default sandbox and a plain one; the cheats are modes of
``tests/engines/hostile.c``. The short form plays two games of each; ``make cheats`` plays
FARM_CHEATS games (100) of each against an honest engine, and as many with a host that stalls in
each, and prints the figures.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import secrets
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import groups
import harness
import pytest

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.season.fold import state

GAMES = int(os.environ.get("FARM_CHEATS", "2"))
LONG = GAMES > 2
SOURCE = pathlib.Path(__file__).parents[1] / "engines" / "hostile.c"
MOVES = 12
CONTROL = "300ms+0.1s"  # far below LATE_MS of hostile.c
STALL_SECONDS = 1.0
EXCUSED = 2  # losses of one engine, where strangers' load on this machine may really be the reason
MEMORY_MB = 700  # of a hall whose engines starve
PATIENCE = 40 * GAMES + 120.0  # s: a game takes two or three


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile the engine, in a folder that all may read."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("package gcc is not installed")
    made = tmp_path_factory.mktemp("hostile") / "hostile"
    command = [compiler, "-O2", "-Wall", "-Werror", "-pthread", "-o", str(made), str(SOURCE)]
    subprocess.run(command, check=True)
    made.parent.chmod(0o755)  # a hall of root runs engines as nobody
    return str(made)


def launch(
    farm: harness.Farm,
    program: str,
    white: list[str],
    black: list[str],
    control: str = CONTROL,
    threads: int = 1,
    excused: str = "false",
    season: str = "cheats",
) -> None:
    """Launch a match between two modes of the engine; any number of losses may be excused."""
    modes = {"one": white, "two": black}
    entries = [
        {"id": name, "name": name.title(), "command": [program, *words]}
        for name, words in modes.items()
    ]
    rows = ['schema = 1\nid = "test"\nname = "Test"', "hold_after_attempts = 99", "[roster]"]
    rows += harness.roster(entries)
    rows.append(
        f"""[[event]]
id = "m"
name = "Match"
format = {{ kind = "match", games = {GAMES} }}
entrants = "roster"
time_control = "{control}"
tiebreaks = ["seed"]
adjudication = {{ max_moves = {MOVES} }}
limits = {{ threads = {threads} }}
interruptions = {{ rules = "s16", excused_flags = {excused} }}
"""
    )
    path = farm.root / f"{season}.toml"
    path.write_text("\n".join(rows))
    farm.launch(path, season)


def endings_and_interruptions(
    farm: harness.Farm, folded: state.SeasonState, what: str, season: str = "cheats"
) -> tuple[Counter[str], list[str]]:
    """Return how the games ended, by ending and loser, and what was interrupted; print both."""
    ended: Counter[str] = Counter()
    for game in folded.games.values():
        assert game.finished is not None
        loser = game.finished.loser
        who = "" if loser is None else f" of {game.white if loser == 'white' else game.black}"
        ended[f"{game.finished.ending.value}{who}"] += 1
    attempts = [e.data for e in farm.ledger.read(season) if e.kind == "attempt_ended"]
    lost = [f"{one['cause']}: {one['evidence']}" for one in attempts]
    print(f"\n{what}: {dict(ended)}; interruptions: {len(lost)}")
    for line in lost[:5]:
        print(f"  {line[:300]}")
    return ended, lost


@contextlib.contextmanager
def hall(root: pathlib.Path, sandbox: str, **more: str) -> Iterator[harness.Farm]:
    """Run a farm whose hall gives this sandbox."""
    with harness.running(root, {"FARM_SANDBOX": sandbox, **more}) as farm:
        yield farm


SANDBOXES = ["bubblewrap", "plain"]


@pytest.fixture(scope="module", params=SANDBOXES if LONG else SANDBOXES[:1])
def shared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[harness.Farm]:
    """Run a farm that plays a season of each cheat, one after the other."""
    with hall(tmp_path_factory.mktemp(request.param), request.param) as farm:
        yield farm


@pytest.mark.parametrize("mode", ["late", "flood", "drizzle", "reap", "stand", "crowd"])
def test_a_cheat_is_excused_by_nothing_that_it_did_itself(
    shared: harness.Farm, program: str, mode: str
) -> None:
    """Every game in which it is late is lost by it; none is an interruption."""
    launch(shared, program, [mode], ["honest", "1"], season=mode)
    folded = shared.finish(mode, PATIENCE)
    ended, lost = endings_and_interruptions(shared, folded, mode, season=mode)
    assert not lost
    assert set(ended) <= {f"{ending.value} of one" for ending in _LATE}


_LATE = (contract.Ending.TIME, contract.Ending.STALL)


@pytest.mark.parametrize("mode", ["reap", "late"] if LONG else ["reap"])
def test_on_cores_of_their_own_a_cheats_own_work_is_no_load_of_others(
    tmp_path: pathlib.Path, program: str, mode: str
) -> None:
    """Where load of others would prove a stall, children that nobody waits for are none."""
    if len(harness.CORES) < 2:
        pytest.skip("hardware: the referee and the engines need two cores")
    cores = harness.pinned(2)
    with hall(tmp_path, "bubblewrap", **cores) as farm:
        launch(farm, program, [mode], ["honest", "1"], excused=str(EXCUSED))
        folded = farm.finish("cheats", PATIENCE)
        ended, lost = endings_and_interruptions(farm, folded, f"{mode}, own cores")
    # Strangers do work on this machine's cores: so often their load may be the reason.
    assert ended["time of one"] + ended["stall of one"] == GAMES, ended
    assert len(lost) <= EXCUSED, lost


@pytest.mark.parametrize("mode", ["spin"])
def test_an_engine_that_works_in_its_opponents_turn_harms_nobody(
    tmp_path: pathlib.Path, program: str, mode: str
) -> None:
    """It is held while it waits: an opponent that needs most of its time keeps it."""
    if len(harness.CORES) < 2:
        pytest.skip("hardware: the referee and the engines need two cores")
    groups.of_engines()  # without one an engine cannot be held
    cores = harness.pinned(2)
    with hall(tmp_path, "bubblewrap", **cores) as farm:
        launch(farm, program, [mode, "24"], ["honest", "40"], "600ms+0.15s")
        folded = farm.finish("cheats", PATIENCE)
        ended, _ = endings_and_interruptions(farm, folded, mode)
        held = (farm.root / "logs" / "worker.log").read_text().count("engine.held")
    print(f"held {held} times")
    assert held > 0
    assert not [ending for ending in ended if ending.endswith("of two")], ended


def test_a_childs_death_for_lack_of_memory_is_no_engines(
    tmp_path: pathlib.Path, program: str
) -> None:
    """An engine that ends itself once the kernel has killed its child has crashed."""
    with groups.room() as room:
        group = room / "hall"
        group.mkdir()
        limit = group / "memory.limit_in_bytes"
        (limit if limit.exists() else group / "memory.max").write_text(str(MEMORY_MB << 20))
        with hall(tmp_path, "bubblewrap") as farm:
            for pid in [farm.worker.pid, *harness.descendants(farm.worker.pid)]:
                groups.enter(group, pid)
            launch(farm, program, ["starve"], ["honest", "1"])
            folded = farm.finish("cheats", PATIENCE)
            ended, lost = endings_and_interruptions(farm, folded, "starve")
    assert not lost
    assert ended == {"disconnect of one": GAMES}


def test_no_room_for_threads_is_no_engines_fault(tmp_path: pathlib.Path, program: str) -> None:
    """An engine that ends because the host refuses it a thread has not crashed: the hall is held.

    The farm's own engine is refused as many threads and processes in the same place.
    """
    pids = pathlib.Path("/sys/fs/cgroup/pids")
    if os.geteuid() != 0 or not (pids / "cgroup.procs").exists():
        pytest.skip("hardware: a control group of processes (version 1) needs root")
    group = pids / f"farm-test-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        with hall(tmp_path, "bubblewrap") as farm:
            for pid in [farm.worker.pid, *harness.descendants(farm.worker.pid)]:
                groups.enter(group, pid)
            (group / "pids.max").write_text("26")  # enough for the farm and two small engines
            launch(farm, program, ["threads", "20"], ["honest", "1"], threads=20)
            holds = f"hall:{harness.HALL}"
            farm.wait(lambda: bool(farm.ledger.holds(holds)), 60, "the hold")
            (reason,) = farm.ledger.holds(holds).values()
            ended = [
                e.data["cause"] for e in farm.ledger.read("cheats") if e.kind == "attempt_ended"
            ]
            finished = [e for e in farm.ledger.read("cheats") if e.kind == "game_finished"]
    finally:
        _remove(group)
    assert "the host refused" in reason
    assert "the farm's own engine fails here, too" in reason
    assert set(ended) <= {"host sick"}
    assert not finished


def _remove(group: pathlib.Path) -> None:
    """Remove a control group when all in it have ended."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            group.rmdir()
            return
        time.sleep(0.1)


# -- hosts that really stall -----------------------------------------------------------------


@contextlib.contextmanager
def frozen(farm: harness.Farm) -> Iterator[None]:
    """Stop all of the hall's processes."""
    with harness.frozen([farm.worker.pid, *harness.descendants(farm.worker.pid)]):
        yield


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print("on", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end: pass
"""


@contextlib.contextmanager
def hogged(_farm: harness.Farm) -> Iterator[None]:
    """Take the engines' cores by processes that run before all others."""
    words = [sys.executable, "-I", "-S", "-c", HOG]
    hogs = [
        subprocess.Popen([*words, str(core), str(2 * STALL_SECONDS)], stdout=subprocess.PIPE)
        for core in harness.CORES[1:3]
    ]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()
            assert hog.stdout is not None
            hog.stdout.close()


class Quota:
    """A control group whose quota of processor time can be cut: version 1's, or version 2's."""

    def __init__(self) -> None:
        root = pathlib.Path("/sys/fs/cgroup/cpu")
        self.legacy = (root / "cpu.cfs_quota_us").exists() or (root / "cpu.shares").exists()
        self.group = (root if self.legacy else root.parent) / f"farm-test-{secrets.token_hex(4)}"
        try:
            self.group.mkdir()
            if self.legacy:  # or nothing in it may have real-time priority
                (self.group / "cpu.rt_runtime_us").write_text("300000")
        except OSError as error:
            pytest.skip(f"hardware: this machine gives no control group of processor time: {error}")

    @contextlib.contextmanager
    def __call__(self, _farm: harness.Farm) -> Iterator[None]:
        """Give the hall a hundredth of a core."""
        name = "cpu.cfs_quota_us" if self.legacy else "cpu.max"
        (self.group / name).write_text("1000" if self.legacy else "1000 100000")
        try:
            yield
        finally:
            (self.group / name).write_text("-1" if self.legacy else "max 100000")


def stalled(
    farm: harness.Farm, stall: Callable[[harness.Farm], contextlib.AbstractContextManager[None]]
) -> int:
    """Let a season end while its host stalls once in each attempt; return how often it did."""
    seen: set[str] = set()
    deadline = time.monotonic() + PATIENCE
    while not farm.state("cheats").finished:
        assert time.monotonic() < deadline, "the season does not end"
        slot = farm.ledger.slot(harness.HALL)
        if slot is None or slot.attempt in seen or len(farm.ledger.plies(slot.attempt)) < 2:
            time.sleep(0.01)
            continue
        seen.add(slot.attempt)
        if len(seen) <= GAMES:
            with stall(farm):
                time.sleep(STALL_SECONDS)
    return min(len(seen), GAMES)


@pytest.mark.parametrize("kind", ["frozen", "hogged", "quota"])
def test_a_host_that_stalls_costs_no_engine_the_game(
    tmp_path: pathlib.Path, program: str, kind: str
) -> None:
    """However the host takes the time, no engine is blamed, and all games are played out."""
    if os.geteuid() != 0 or len(harness.CORES) < 2:
        pytest.skip("hardware: stalls of a host need root and two cores")
    quota = Quota() if kind == "quota" else None
    stalls: dict[str, Any] = {"frozen": frozen, "hogged": hogged, "quota": quota}
    cores = harness.pinned(2)
    try:
        with hall(tmp_path, "bubblewrap", **cores) as farm:
            if quota is not None:
                farm.worker.kill()
                farm.worker.start()
                (quota.group / "cgroup.procs").write_text(str(farm.worker.pid))
            launch(farm, program, ["honest", "30"], ["honest", "30"])
            times = stalled(farm, stalls[kind])
            ended, lost = endings_and_interruptions(
                farm, farm.finish("cheats", PATIENCE), f"{kind} {times} times"
            )
    finally:
        if quota is not None:
            _remove(quota.group)
    assert set(ended) == {verdict.max_moves().ending.value}, (ended, lost)
    assert lost, "no stall has hit a clock"
