"""An engine's fault or the host's: stalls proven by counters, sick hosts by the farm's engine."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping

import groups
import hall
import pytest

from orchestrator import contract
from orchestrator.arbiter import verdict
from worker_cpu.engines import handles
from worker_cpu.host import cgroups, pulse, stall
from worker_cpu.link import blame, host_probe

MS = 1_000_000  # ns
ENGINES = str(pathlib.Path(handles.__file__).parent)


def sample(at_ms: int, busy_ms: int = 0, **more: int | Mapping[str, int]) -> stall.Sample:
    """Return counters of two cores that stand the same."""
    by_core = {name: int(more.pop(name, 0)) * MS for name in ("steal", "throttled")}  # type: ignore[call-overload]
    used = {side: ms * MS for side, ms in dict(more.pop("used", {})).items()}  # type: ignore[call-overload]
    cores = {name: {1: ns, 2: ns} for name, ns in by_core.items()}
    busy = {1: busy_ms * MS, 2: busy_ms * MS}
    return stall.Sample(at_ms * MS, busy, cores["steal"], cores["throttled"], used)


def lost(window_ms: int, *, frozen_ms: int = 0, own: bool = True, **grown: int) -> stall.Loss:
    """Return what is lost by White's engine while counters grow from zero."""
    used = {side: grown.pop(side, 0) for side in ("white", "black")}
    before = sample(0, used={"white": 0, "black": 0})
    after = sample(window_ms, used=used, **grown)  # type: ignore[arg-type]
    return stall.lost(before, after, frozen_ms * MS, "white", own_cores=own)


def test_stolen_time_proves_a_stall() -> None:
    """An engine that is later than what was stolen has lost; one that is not was stalled."""
    loss = lost(5000, steal=300)
    assert loss.proves(think_ms=5000, late_ms=299)
    assert loss.proves(think_ms=5000, late_ms=300)
    assert not loss.proves(think_ms=5000, late_ms=301)
    assert "steal 300 ms" in str(loss)


def test_throttling_and_a_frozen_host_prove_a_stall() -> None:
    """So do the kernel's throttling counters, and a pulse that was woken late."""
    assert lost(5000, throttled=80).proves(5000, 80)
    assert lost(5000, frozen_ms=700).proves(5000, 650)
    assert not lost(5000).proves(5000, 1)


def test_a_host_takes_no_more_than_the_window_holds() -> None:
    """Whatever counters say, 55 ms cannot hold 1,810."""
    for taken in ({"frozen_ms": 1810}, {"steal": 1810}, {"throttled": 1810}, {"busy_ms": 1810}):
        loss = lost(55, **taken)
        assert loss.worst <= loss.window == 55
        assert not loss.proves(think_ms=957, late_ms=383)


def test_foreign_load_counts_on_the_engines_own_cores_only() -> None:
    """The engines' own work is no foreign load; that of others on shared cores is only told."""
    assert lost(5000, busy_ms=1000, white=2000).foreign == 0
    assert lost(5000, busy_ms=1000, white=1000).foreign == 500
    shared = lost(5000, own=False, busy_ms=1000)
    assert shared.foreign == 0
    assert not shared.proves(5000, 1)
    assert "load of others" in str(shared)


def test_what_the_opponent_took_is_told_apart() -> None:
    """Work of the engine that is not on move is no stall of the host."""
    loss = lost(5000, busy_ms=4000, white=2000, black=6000)
    assert (loss.foreign, loss.opponent) == (0, 3000)
    assert not loss.proves(5000, 1)
    assert loss.convicts(5000, 3000)
    assert not loss.convicts(5000, 3001)
    both = lost(5000, busy_ms=4000, white=2000, black=2000)
    assert (both.foreign, both.opponent) == (2000, 1000)
    assert both.convicts(5000, 3000)
    assert not both.proves(5000, 2001)


def test_what_was_taken_outside_the_clock_proves_nothing() -> None:
    """The part of the window in which no clock ran is taken off the evidence."""
    loss = stall.Loss(window=1500, steal=400, throttled=0, foreign=0, frozen=0, mhz=None)
    assert loss.proves(think_ms=1500, late_ms=400)
    assert loss.proves(think_ms=1400, late_ms=300)
    assert not loss.proves(think_ms=1400, late_ms=301)
    assert not loss.proves(think_ms=1000, late_ms=1)


# -- the pulse -------------------------------------------------------------------------


def beating(*, prompt: bool = True, late: tuple[int, ...], used_ms: int = 0) -> pulse.Pulse:
    """Return a pulse after some beats, each so many ms late; White used some in each."""
    made = pulse.Pulse([], prompt=prompt)
    made.looks.clear()
    looks = [pulse.Look(0, {0: 0}, {0: 0}, {0: 0}, 0, {"white": 0}, 0, 0)]
    for ms in late:
        last = looks[-1]
        at_ns = last.at_ns + pulse.BEAT_NS + ms * MS
        used = {"white": last.used["white"] + used_ms * MS}
        looks.append(last._replace(at_ns=at_ns, used=used))
    made.looks.append(looks[0])
    made.groups = {"white": "/nowhere"}
    for look in looks[1:]:
        made.look = lambda look=look: look  # type: ignore[method-assign, misc]
        made.beat()
    return made


def frozen_ms(made: pulse.Pulse, start_ms: int, stop_ms: int, threads: int = 1) -> int:
    """Return how long the host stood still between two times, as the pulse tells."""
    told = made._taken(start_ns=start_ms * MS, stop_ns=stop_ms * MS, side="white", threads=threads)
    return told["frozen_ns"] // MS


def test_a_late_beat_is_the_hosts_for_as_long_as_the_clock_ran() -> None:
    """Beats that are in time count nothing, and what lies outside the clock counts nothing."""
    made = beating(late=(0, 500, 0))  # from 50 ms to 600 ms
    assert frozen_ms(made, 0, 1000) == 500
    assert frozen_ms(made, 300, 500) == 200
    assert frozen_ms(made, 0, 40) == 0
    assert frozen_ms(beating(late=(0, 40, 0)), 0, 1000) == 0
    assert frozen_ms(beating(late=(100,), prompt=False), 0, 1000) == 0


def test_an_engine_that_ran_meanwhile_was_not_frozen() -> None:
    """A late beat is the host's only as far as the engine's threads stood still in it."""
    assert frozen_ms(beating(late=(500,), used_ms=550), 0, 1000) == 0
    assert frozen_ms(beating(late=(500,), used_ms=150), 0, 1000) == 400
    assert frozen_ms(beating(late=(500,), used_ms=550), 0, 1000, threads=2) == 275


def test_a_quota_that_is_counted_at_its_end_held_the_beats_before() -> None:
    """The kernel counts a second without a processor when it is over: in the last beat of it."""
    made = beating(late=(0,) * 40)  # two seconds of beats that are in time
    made.looks[-1] = made.looks[-1]._replace(quota=1000 * MS)
    made._note_quota(1000 * MS)

    def quota_ms(start_ms: int, stop_ms: int) -> int:
        told = made._taken(start_ms * MS, stop_ms * MS, "white", threads=1)
        return told["quota_ns"] // MS

    assert quota_ms(0, 3000) == 1000
    assert quota_ms(900, 1500) == 500
    assert quota_ms(0, 1000) == 0
    made._note_quota(1000 * MS)  # another processor's, of the same time or of the time before
    assert quota_ms(0, 3000) == 2000
    made._note_quota(1000 * MS)  # more than time holds
    assert quota_ms(0, 3000) == 2000
    ran = beating(late=(0,) * 40, used_ms=50)
    ran._note_quota(1000 * MS)
    assert ran._taken(0, 3000 * MS, "white", threads=1)["quota_ns"] == 0


@pytest.fixture
def host() -> Iterator[stall.StallDetector]:
    """This host, with its pulse."""
    made = stall.StallDetector()
    made.watch(0, (), {})
    yield made
    made.end()


def test_a_host_that_stands_still_is_seen(host: stall.StallDetector) -> None:
    """A pulse that is stopped for half a second tells of about that, and bounds it."""
    groups.need_proof_of_stalls(of_engines=False)  # no engine is watched here
    assert host._pulse is not None
    settled(host)
    start_ns = time.monotonic_ns()
    host.mark(start_ns)
    os.kill(host._pulse.pid, signal.SIGSTOP)
    time.sleep(0.6)
    os.kill(host._pulse.pid, signal.SIGCONT)
    stop_ns = time.monotonic_ns()
    loss = host.loss(start_ns, stop_ns)
    assert loss is not None
    assert loss.window >= loss.frozen
    assert loss.frozen > 0


def settled(host: stall.StallDetector) -> None:
    """Wait until the pulse beats."""
    assert host.loss(time.monotonic_ns(), time.monotonic_ns()) is not None


def test_a_pulse_that_has_ended_proves_nothing_and_begins_again(host: stall.StallDetector) -> None:
    """Without its looks at that time there is no evidence; the next clock has them again."""
    settled(host)
    assert host._pulse is not None
    host._pulse.kill()
    host._pulse.wait()
    now = time.monotonic_ns()
    loss = host.loss(now - 1000 * MS, now)
    assert loss is None or not loss.proves(1000, 1)
    settled(host)


def test_a_signal_to_the_whole_group_ends_no_pulse(host: stall.StallDetector) -> None:
    """Ctrl-C in the terminal of `farm up` reaches it too; it ends with its link."""
    settled(host)
    assert host._pulse is not None
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(host._pulse.pid, number)
    settled(host)
    assert host._pulse.poll() is None
    host.end()
    assert host._pulse is None


def test_a_process_that_ends_while_it_is_counted_costs_no_game(tmp_path: pathlib.Path) -> None:
    """A child that ends between being found and being looked into counts as nothing."""
    proc = tmp_path / "proc"
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "stat").write_text(f"7 (an (engine)) R {'0 ' * 10}0 0 0\n")
    with subprocess.Popen(["sleep", "60"]) as child:
        held = os.open(f"/proc/{child.pid}/task", os.O_RDONLY)
        child.kill()
    threads = proc / "7" / "task"
    threads.symlink_to(f"/proc/self/fd/{held}")  # a folder still, of a process that is no more
    try:
        assert threads.is_dir()
        assert stall.processor_ns([7], proc) == 0
    finally:
        os.close(held)


# -- control groups ----------------------------------------------------------------------

CHURN = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
input()
for _ in range(25):
    if os.fork() == 0:
        stop = time.process_time() + 0.02
        while time.process_time() < stop: pass
        os._exit(0)
    try: os.wait()
    except ChildProcessError: pass
print("done", flush=True)
input()
"""


@pytest.fixture
def group() -> Iterator[pathlib.Path]:
    """Make a control group, as for an engine."""
    made = groups.of_engines() / f"{cgroups.NAME}{os.getpid()}-test"
    made.mkdir()
    try:
        yield made
    finally:
        made.rmdir()


def test_a_control_group_counts_children_that_nobody_waited_for(group: pathlib.Path) -> None:
    """Work of children under an ignored SIGCHLD is in no process' account, but in the group's."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", CHURN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as engine:
        assert engine.stdout is not None
        assert engine.stdin is not None
        (group / "cgroup.procs").write_text(str(engine.pid))
        engine.stdin.write(b"\n")
        engine.stdin.flush()
        assert engine.stdout.readline() == b"done\n"
        own_ns, all_ns = stall.processor_ns([engine.pid]), cgroups.used_ns(group)
        engine.stdin.write(b"\n")
        engine.stdin.flush()
    assert all_ns > own_ns + 400 * MS
    assert pulse.usage_ns(str(group)) >= all_ns


FORK = """
import os, sys
sys.path.append(sys.argv[1])
import supervisor
moved = []
supervisor.write_if_there, real = (
    lambda path, content: (moved.append(path), real(path, content)), supervisor.write_if_there
)
for number in (supervisor.CLONE3, 1 << 20):  # as the kernel has it, and where it has none
    supervisor.CLONE3 = number
    read, write = os.pipe()
    pid = supervisor.fork(sys.argv[2])
    if pid == 0:
        os.write(write, open("/proc/self/cgroup", "rb").read() + str(len(moved)).encode())
        os._exit(0)
    os.close(write)
    told = os.fdopen(read).read()
    os.waitpid(pid, 0)
    print(os.path.basename(sys.argv[2]) in told, told[-1])
"""


def test_an_engine_is_made_in_its_control_group(group: pathlib.Path) -> None:
    """It is not moved there, which costs 10 ms, where the kernel can make it there."""
    script = [sys.executable, "-I", "-S", "-c", FORK, ENGINES, str(group)]
    told = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    assert told == "True 0\nTrue 1\n"


# -- the link's witness ----------------------------------------------------------------


class Refusing:
    """A probe's stand-in place: the real probe is tested below; here only whether it is asked."""

    asked = 0

    def run(self, *_words: object) -> str:
        """Count, and find nothing wrong."""
        self.asked += 1
        return ""


class Taken(stall.StallDetector):
    """A host that took what a test says."""

    def __init__(self, **taken: float) -> None:
        """Take steal, throttled, foreign, frozen or opponent, in ms."""
        nothing = {"steal": 0.0, "throttled": 0.0, "foreign": 0.0, "frozen": 0.0}
        self.taken = nothing | taken

    def watch(self, *_words: object) -> None:
        """Watch nothing."""

    def loss(self, start_ns: int, stop_ns: int, *_words: object) -> stall.Loss:
        """Return it."""
        return stall.Loss(window=(stop_ns - start_ns) / MS, mhz=None, **self.taken)  # type: ignore[arg-type]


def finished_content(outcome: contract.Outcome, **late: object) -> dict[str, object]:
    """Return FINISHED's content."""
    return {"outcome": outcome.model_dump(mode="json"), "late": late or None, "remarks": []}


FLAG = verdict.time("white", "1250.000 ms of 1000.000 ms")
LATE = {"think_ns": 1250 * MS, "late_ns": 250 * MS, "start_ns": 0, "stop_ns": 1250 * MS}


def seen(root: pathlib.Path, **taken: float) -> tuple[blame.FaultAttribution, Refusing]:
    """Return a witness of a host that took so much, and its probe."""
    probe = Refusing()
    memory = host_probe.LastFault(root / "last-fault.json")
    made = blame.FaultAttribution(Taken(**taken), memory, probe)  # type: ignore[arg-type]
    made.engines_ready(0, (), {})
    return made, probe


def test_a_flag_during_a_proven_stall_is_an_interruption(tmp_path: pathlib.Path) -> None:
    """S16-15b "time loss due to lag": no verdict, and the evidence says why."""
    order = hall.order(hall.scripted(), hall.scripted())
    for steal, interrupted in ((0, False), (249, False), (250, True)):
        made, _ = seen(tmp_path, steal=steal)
        content = finished_content(FLAG, **LATE)
        fault = made.judge(order, content, lambda: None)
        assert (fault is not None) is interrupted
        if fault is not None:
            assert (fault.cause, fault.hold) == (blame.STALLED, False)
            assert fault.excused == "white"
        evidence = str(content["remarks"]) if fault is None else fault.evidence
        assert f"steal {steal} ms" in evidence


def test_an_engine_is_excused_as_often_as_its_event_says(tmp_path: pathlib.Path) -> None:
    """With no excuse left a flag counts, whatever the host took; the record says so."""
    order = hall.order(hall.scripted(), hall.scripted())
    for left, interrupted in (({"white": 1, "black": 0}, True), ({"white": 0, "black": 9}, False)):
        made, _ = seen(tmp_path, steal=400)
        content = finished_content(FLAG, **LATE)
        limited = order.model_copy(update={"excuses": left})
        fault = made.judge(limited, content, lambda: None)
        assert (fault is not None) is interrupted
        assert ("are excused" in str(content["remarks"])) is not interrupted


def test_an_opponent_that_worked_on_costs_nobody_the_game(tmp_path: pathlib.Path) -> None:
    """What the opponent took is no verdict on its victim, and counts as no excuse of it."""
    made, _ = seen(tmp_path, opponent=300.0)
    order = hall.order(hall.scripted(), hall.scripted())
    order = order.model_copy(update={"excuses": {"white": 0, "black": 0}})
    fault = made.judge(order, finished_content(FLAG, **LATE), lambda: None)
    assert fault is not None
    assert (fault.cause, fault.excused) == (blame.DISTURBED, None)


def of_a_box(frozen_ms: int) -> dict[str, object]:
    """Return what the agent on a GPU box tells of its host, after a think of 1,250 ms."""
    counted = {"busy": {"0": 0}, "steal": {"0": 0}, "throttled": {"0": 0}, "engines_ns": 0}
    return {
        "before": counted | {"at_ns": 0},
        "after": counted | {"at_ns": 1_250_000_000},
        "frozen_ns": frozen_ms * MS,
        "own_cores": False,
        "cpus": 2,
    }


def test_a_flag_on_a_gpu_box_is_weighed_by_what_the_box_took(tmp_path: pathlib.Path) -> None:
    """What the hall's host lost excuses no engine elsewhere; a stall of the box does."""
    made, _ = seen(tmp_path, steal=400)
    far = hall.scripted().model_copy(update={"box": "gpu-1"})
    order = hall.order(far, hall.scripted())
    for frozen, interrupted in ((0, False), (249, False), (250, True)):
        late = {"think_ns": 1250 * MS, "late_ns": 250 * MS, "host": of_a_box(frozen)}
        content = finished_content(FLAG, **late)
        fault = made.judge(order, content, lambda: None)
        assert (fault is not None) is interrupted
        evidence = str(content["remarks"]) if fault is None else fault.evidence
        assert "GPU box gpu-1, host in the last 1250 ms: steal 0 ms" in evidence
        assert f"frozen {frozen} ms" in evidence


def test_a_proven_stall_excuses_no_crash(tmp_path: pathlib.Path) -> None:
    """An engine that goes away has crashed, however busy its host was."""
    made, _ = seen(tmp_path, steal=4000)
    content = finished_content(verdict.disconnect("white"))
    order = hall.order(hall.scripted(), hall.scripted())
    assert made.judge(order, content, lambda: None) is None


def test_only_two_different_engines_in_a_row_raise_a_doubt(tmp_path: pathlib.Path) -> None:
    """The same engine again, or a clean game in between, doubts nobody but the engine."""
    made, probe = seen(tmp_path)
    order = hall.order(hall.scripted(name="One"), hall.scripted(name="Two"))
    crash = {side: verdict.disconnect(side) for side in ("white", "black")}
    clean = verdict.threefold()
    asked = []
    for outcome in (crash["white"], crash["white"], clean, crash["black"], crash["white"]):
        made.judge(order, finished_content(outcome), lambda: None)
        asked.append(probe.asked)
    assert asked == [0, 0, 0, 0, 1]


def test_a_fault_before_ready_raises_a_doubt(tmp_path: pathlib.Path) -> None:
    """A failure before the first readyok is looked into at once."""
    made, probe = seen(tmp_path)
    made.begin()
    content = finished_content(verdict.disconnect("white", "cannot be started"))
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
    fork_server = handles.ForkServer()
    beats: list[float] = []
    try:
        probe = host_probe.HostProbe(fork_server, handles.ANYWHERE, tmp_path, None, command)
        failed = probe.run(lambda: beats.append(time.monotonic()))
    finally:
        fork_server.end()
    assert (failed == "") is healthy, failed
    assert beats, "the lease was not looked after"


def test_a_sick_host_holds_the_hall_and_counts_no_crash(tmp_path: pathlib.Path) -> None:
    """If the farm's own engine fails as well, the verdict does not stand."""
    fork_server = handles.ForkServer()
    for name in ("attempts", "scratch"):
        (tmp_path / name).mkdir()
    try:
        probe = host_probe.HostProbe(
            fork_server, handles.ANYWHERE, tmp_path, None, ("/nowhere/engine",)
        )
        memory = host_probe.LastFault(tmp_path / "last-fault.json")
        made = blame.FaultAttribution(Taken(), memory, probe)
        order = hall.order(hall.scripted(), hall.scripted())
        fault = made.judge(order, finished_content(verdict.disconnect("white")), lambda: None)
    finally:
        fork_server.end()
    assert fault is not None
    assert (fault.cause, fault.hold) == (blame.SICK, True)
    assert "No such file" in fault.evidence
