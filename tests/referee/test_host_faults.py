"""An engine's fault or the host's: stalls proven by counters, sick hosts by the farm's engine."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import time

import hall
import pytest

from orchestrator import contract
from orchestrator.arbiter import verdict
from worker_cpu import processes, stalls, suspicion, witness

TICK_MS = 10  # one tick of /proc/stat


class Counters:
    """A host's counters in files, as the kernel writes them."""

    def __init__(self, root: pathlib.Path) -> None:
        self.proc, self.system = root / "proc", root / "cpu"
        self.busy = self.steal = self.engine = self.throttled = 0
        self.write()

    def write(self) -> None:
        """Write what the counters stand at: ticks, and milliseconds for throttling."""
        pid = self.proc / "7"
        (pid / "task" / "7").mkdir(parents=True, exist_ok=True)
        (pid / "task" / "7" / "children").write_text("")
        (pid / "stat").write_text(f"7 (an (engine)) R {'0 ' * 10}{self.engine} 0 0\n")
        line = f"{self.busy} 0 0 999 0 0 0 {self.steal} 0 0"
        (self.proc / "stat").write_text(f"cpu  1 1\ncpu1 {line}\ncpu2 {line}\nintr 5\n")
        for core in (1, 2):
            place = self.system / f"cpu{core}" / "thermal_throttle"
            place.mkdir(parents=True, exist_ok=True)
            (place / "core_throttle_total_time_ms").write_text(f"{self.throttled}\n")

    def host(self, *cores: int) -> stalls.Host:
        """Return a host that reads them."""
        return stalls.Host(cores, self.proc, self.system)


@pytest.fixture
def counters(tmp_path: pathlib.Path) -> Counters:
    """Counters of two cores at zero."""
    return Counters(tmp_path)


def lost(counters: Counters, *cores: int, frozen_ms: int = 0, **grown: int) -> stalls.Loss:
    """Return what is lost while counters grow."""
    host = counters.host(*cores)
    before = host.sample([7])
    for name, amount in grown.items():
        setattr(counters, name, getattr(counters, name) + amount)
    counters.write()
    return host.loss(before, host.sample([7]), frozen_ms * 1_000_000)


def test_stolen_time_proves_a_stall(counters: Counters) -> None:
    """An engine that is later than what was stolen has lost; one that is not was stalled."""
    loss = lost(counters, 1, 2, steal=30)
    assert loss.steal == 30 * TICK_MS
    assert loss.proves(think_ms=5000, late_ms=299)
    assert loss.proves(think_ms=5000, late_ms=300)
    assert not loss.proves(think_ms=5000, late_ms=301)
    assert "steal 300 ms" in str(loss)


def test_throttling_and_a_frozen_host_prove_a_stall(counters: Counters) -> None:
    """So do the kernel's throttling counters, and a link that was woken late."""
    assert lost(counters, 1, throttled=80).proves(5000, 80)
    assert lost(counters, 1, frozen_ms=700).proves(5000, 650)
    assert not lost(counters, 1).proves(5000, 1)


def test_foreign_load_counts_on_the_engines_own_cores_only(counters: Counters) -> None:
    """The engine's own work is no foreign load; that of others on shared cores is only told."""
    assert lost(counters, 1, 2, busy=100, engine=200).foreign == 0
    assert lost(counters, 1, 2, busy=100, engine=100).foreign == 100 * TICK_MS / 2
    shared = lost(counters, busy=100)
    assert shared.foreign == 0
    assert not shared.proves(5000, 1)
    assert "load of others" in str(shared)


def test_who_keeps_all_cores_busy_was_not_frozen(counters: Counters) -> None:
    """A swarm that wakes the link late by itself has no claim: its own work is seen."""
    ticks = 4000 * (os.cpu_count() or 1) // TICK_MS  # far more than any window of this test
    assert lost(counters, 1, frozen_ms=700, engine=ticks).frozen == 0
    assert lost(counters, 1, frozen_ms=700).frozen == 700


def test_what_was_taken_outside_the_clock_proves_nothing() -> None:
    """The part of the window in which no clock ran is taken off the evidence."""
    loss = stalls.Loss(window=1500, steal=400, throttled=0, foreign=0, frozen=0, mhz=None)
    assert loss.proves(think_ms=1500, late_ms=400)
    assert loss.proves(think_ms=1400, late_ms=300)
    assert not loss.proves(think_ms=1400, late_ms=301)
    assert not loss.proves(think_ms=1000, late_ms=1)


def test_a_process_that_ends_while_it_is_counted_costs_no_game(counters: Counters) -> None:
    """A child that ends between being found and being looked into counts as nothing."""
    with subprocess.Popen(["sleep", "60"]) as child:
        held = os.open(f"/proc/{child.pid}/task", os.O_RDONLY)
        child.kill()
    threads = counters.proc / "7" / "task"
    shutil.rmtree(threads)
    threads.symlink_to(f"/proc/self/fd/{held}")  # a folder still, of a process that is no more
    try:
        assert threads.is_dir()
        assert stalls.processor_ns([7], counters.proc) == 0
    finally:
        os.close(held)


def test_a_host_without_counters_proves_nothing(tmp_path: pathlib.Path) -> None:
    """Where the kernel tells nothing, a flag is a flag."""
    host = stalls.Host((0,), tmp_path / "none", tmp_path / "none")
    before = host.sample([1])
    assert not host.loss(before, host.sample([1])).proves(100, 0.5)


# -- the link's witness ----------------------------------------------------------------


class Refusing:
    """A probe's stand-in place: the real probe is tested below; here only whether it is asked."""

    asked = 0

    def run(self, _meanwhile: object) -> str:
        """Count, and find nothing wrong."""
        self.asked += 1
        return ""


def told(outcome: contract.Outcome, **late: object) -> dict[str, object]:
    """Return FINISHED's content."""
    return {"outcome": outcome.model_dump(mode="json"), "late": late or None, "remarks": []}


def seen(counters: Counters, root: pathlib.Path) -> tuple[witness.Witness, Refusing]:
    """Return a witness of these counters, and its probe."""
    probe = Refusing()
    memory = suspicion.Memory(root / "last-fault.json")
    made = witness.Witness(counters.host(1, 2), memory, probe)  # type: ignore[arg-type]
    made.engines_ready(b'{"white":{"pid":7},"black":{"pid":7}}')
    return made, probe


def test_a_flag_during_a_proven_stall_is_an_interruption(
    counters: Counters, tmp_path: pathlib.Path
) -> None:
    """S16-15b "time loss due to lag": no verdict, and the evidence says why."""
    made, _ = seen(counters, tmp_path)
    order = hall.order(hall.scripted(), hall.scripted())
    flag = verdict.time("white", "1250.000 ms of 1000.000 ms")
    for steal, interrupted in ((0, False), (400, True)):
        made.clock_starts()
        counters.steal += steal
        counters.write()
        content = told(flag, think_ns=10**12, late_ns=250_000_000)
        fault = made.judge(order, content, lambda: None)
        assert (fault is not None) is interrupted
        if fault is not None:
            assert (fault.cause, fault.hold) == (witness.STALLED, False)
            assert "steal 4000 ms" in fault.evidence
        else:
            assert "steal 0 ms" in str(content["remarks"])


def of_a_box(frozen_ms: int) -> dict[str, object]:
    """Return what the agent on a GPU box tells of its host, after a think of 1,250 ms."""
    counted = {"busy": {"0": 0}, "steal": {"0": 0}, "throttled": {"0": 0}, "engines_ns": 0}
    return {
        "before": counted | {"at_ns": 0},
        "after": counted | {"at_ns": 1_250_000_000},
        "frozen_ns": frozen_ms * 1_000_000,
        "own_cores": False,
        "cpus": 2,
    }


def test_a_flag_on_a_gpu_box_is_weighed_by_what_the_box_took(
    counters: Counters, tmp_path: pathlib.Path
) -> None:
    """What the hall's host lost excuses no engine elsewhere; a stall of the box does."""
    made, _ = seen(counters, tmp_path)
    far = hall.scripted().model_copy(update={"box": "gpu-1"})
    order = hall.order(far, hall.scripted())
    flag = verdict.time("white", "1250.000 ms of 1000.000 ms")
    for frozen_ms, interrupted in ((0, False), (249, False), (250, True)):
        made.clock_starts()
        counters.steal += 400
        counters.write()
        late = {"think_ns": 1_250_000_000, "late_ns": 250_000_000, "host": of_a_box(frozen_ms)}
        content = told(flag, **late)
        fault = made.judge(order, content, lambda: None)
        assert (fault is not None) is interrupted
        evidence = str(content["remarks"]) if fault is None else fault.evidence
        assert "GPU box gpu-1, host in the last 1250 ms: steal 0 ms" in evidence
        assert f"frozen {frozen_ms} ms" in evidence


def test_an_engines_own_work_is_no_foreign_load_when_it_has_ended(
    counters: Counters, tmp_path: pathlib.Path
) -> None:
    """Cores that only the engine kept busy until its flag excuse nothing; those of others do."""
    order = hall.order(hall.scripted(), hall.scripted())
    flag = verdict.time("white", "1250.000 ms of 1000.000 ms")
    for own, interrupted in ((100, False), (0, True)):
        made, _ = seen(counters, tmp_path)
        made.clock_starts()
        counters.busy += 100
        counters.write()
        (counters.proc / "7" / "stat").unlink()  # as it is when the verdict comes
        used_ns = (counters.engine + 2 * own) * TICK_MS * 1_000_000  # on two cores
        content = told(flag, think_ns=10**12, late_ns=250_000_000, engines_ns=used_ns)
        fault = made.judge(order, content, lambda: None)
        assert (fault is not None) is interrupted
        counters.write()


def test_a_proven_stall_excuses_no_crash(counters: Counters, tmp_path: pathlib.Path) -> None:
    """An engine that goes away has crashed, however busy its host was."""
    made, _ = seen(counters, tmp_path)
    made.clock_starts()
    counters.steal += 400
    counters.write()
    content = told(verdict.disconnect("white"))
    order = hall.order(hall.scripted(), hall.scripted())
    assert made.judge(order, content, lambda: None) is None


def test_only_two_different_engines_in_a_row_raise_a_doubt(
    counters: Counters, tmp_path: pathlib.Path
) -> None:
    """The same engine again, or a clean game in between, doubts nobody but the engine."""
    made, probe = seen(counters, tmp_path)
    order = hall.order(hall.scripted(name="One"), hall.scripted(name="Two"))
    crash = {side: verdict.disconnect(side) for side in ("white", "black")}
    clean = verdict.threefold()
    asked = []
    for outcome in (crash["white"], crash["white"], clean, crash["black"], crash["white"]):
        made.judge(order, told(outcome), lambda: None)
        asked.append(probe.asked)
    assert asked == [0, 0, 0, 0, 1]


def test_a_fault_before_ready_raises_a_doubt(counters: Counters, tmp_path: pathlib.Path) -> None:
    """A failure before the first readyok is looked into at once."""
    made, probe = seen(counters, tmp_path)
    made.begin()
    content = told(verdict.disconnect("white", "cannot be started"))
    order = hall.order(hall.scripted(), hall.scripted())
    assert made.judge(order, content, lambda: None) is None
    assert probe.asked == 1
    assert "the fault is the engine's" in str(content["remarks"])


# -- the farm's own engine in the same place ---------------------------------------------


@pytest.mark.parametrize(("command", "healthy"), [((), True), (("/nowhere/engine",), False)])
def test_the_farms_own_engine_tells_a_sick_host(
    tmp_path: pathlib.Path, command: tuple[str, ...], healthy: bool
) -> None:
    """It plays two moves where a host is healthy, and says what fails where it is not."""
    for name in ("attempts", "scratch"):
        (tmp_path / name).mkdir()
    nursery = processes.Nursery()
    beats: list[float] = []
    try:
        probe = suspicion.Probe(nursery, processes.ANYWHERE, tmp_path, None, command)
        failed = probe.run(lambda: beats.append(time.monotonic()))
    finally:
        nursery.end()
    assert (failed == "") is healthy, failed
    assert beats, "the lease was not looked after"


def test_a_sick_host_holds_the_hall_and_counts_no_crash(
    counters: Counters, tmp_path: pathlib.Path
) -> None:
    """If the farm's own engine fails as well, the verdict does not stand."""
    nursery = processes.Nursery()
    for name in ("attempts", "scratch"):
        (tmp_path / name).mkdir()
    try:
        probe = suspicion.Probe(nursery, processes.ANYWHERE, tmp_path, None, ("/nowhere/engine",))
        memory = suspicion.Memory(tmp_path / "last-fault.json")
        made = witness.Witness(counters.host(1), memory, probe)
        order = hall.order(hall.scripted(), hall.scripted())
        fault = made.judge(order, told(verdict.disconnect("white")), lambda: None)
    finally:
        nursery.end()
    assert fault is not None
    assert (fault.cause, fault.hold) == (witness.SICK, True)
    assert "No such file" in fault.evidence
