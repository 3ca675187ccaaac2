"""The dead man: every cause is written down before the kill, and nothing is left."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import hall
import harness
import pytest

from orchestrator import contract
from worker_cpu.engines import local, supervisor_client
from worker_cpu.engines import supervisor as program

SLEEPER = "import time; time.sleep(300)"
ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"


class Bench:
    """A dead man whose link and referee are this test."""

    def __init__(
        self, directory: pathlib.Path, limit_ms: int = 60_000, program: str = program.__file__
    ) -> None:
        self.log = directory / "log.jsonl"
        self.game = f"deadman-test-{os.getpid()}-{time.monotonic_ns()}"
        self.lock_path = directory / "lock"
        ours, theirs = socket.socketpair()
        reader, self.link = os.pipe()
        with theirs, self.lock_path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", program),
                    *("--link-fd", str(reader), "--referee-fd", str(theirs.fileno())),
                    *("--log", str(self.log), "--limit-ms", str(limit_ms)),
                    *("--lock-fd", str(lock.fileno())),
                ],
                pass_fds=(reader, theirs.fileno(), lock.fileno()),
            )
        os.close(reader)
        self.socket = ours
        self.client = supervisor_client.DeadMan(ours)
        self.seats: list[local.LocalSeat] = []

    def spawn(self, text: str, side: contract.Side = "white") -> local.LocalSeat:
        """Start a Python program at a seat."""
        seat = local.LocalSeat(side)
        self.seats.append(seat)
        environment = {"FARM_GAME": self.game, "PATH": os.environ["PATH"]}
        assert self.client.spawn(seat, hall.program(text), environment, None) == ""
        return seat

    def say(self, line: str) -> None:
        """Write a line into the link's pipe."""
        os.write(self.link, line.encode() + b"\n")

    def ended(self) -> list[dict[str, object]]:
        """Wait for the dead man's end; nothing of the game lives; return its log."""
        assert self.process.wait(hall.PATIENCE) == 0
        assert hall.survivors(self.game) == []
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def close(self) -> None:
        """End the dead man and close all descriptors."""
        for seat in self.seats:
            seat.close()
        self.client.close()
        with contextlib.suppress(OSError):
            os.close(self.link)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def bench(tmp_path: pathlib.Path) -> Iterator[Bench]:
    """A dead man with a long limit."""
    made = Bench(tmp_path)
    yield made
    made.close()


def comes(descriptor: int) -> bool:
    """Wait until there is something to read, of a process' descriptor: until it has ended."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(hall.PATIENCE * 1000))


def read_line(seat: local.LocalSeat) -> bytes:
    """Wait for a line of an engine's output."""
    text = b""
    while not text.endswith(b"\n"):
        assert comes(seat.stdout), text
        text += seat.read() or b""
    return text


def test_a_spawned_engine_speaks_through_the_passed_pipes(bench: Bench) -> None:
    """What goes into an engine's stdin comes out of its stdout."""
    seat = bench.spawn(ECHO)
    assert seat.write(b"hello\n")
    assert read_line(seat) == b"hello\n"


def test_engines_hold_nothing_but_their_three_pipes(bench: Bench) -> None:
    """An engine inherits neither the lock nor any socket, and leads its own session."""
    seat = bench.spawn(ECHO)
    assert seat.write(b"up\n")
    assert read_line(seat) == b"up\n"
    fds = sorted(int(path.name) for path in pathlib.Path(f"/proc/{seat.pid}/fd").iterdir())
    assert fds == [0, 1, 2]
    assert os.getsid(seat.pid) == seat.pid


def test_the_lock_is_held_until_no_engine_is_left(bench: Bench) -> None:
    """The hall's lock is free only when the dead man has ended."""
    bench.spawn(SLEEPER)
    with bench.lock_path.open("w") as lock:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        bench.say("end")
        bench.ended()
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_missing_program_is_an_answer(bench: Bench) -> None:
    """A command that does not exist is told, and the seat stays free."""
    seat = local.LocalSeat("white")
    bench.seats.append(seat)
    spec = contract.EngineSpec(id="x", name="X", command=("/nowhere/engine",))
    assert "No such file" in bench.client.spawn(seat, spec, {}, None)
    assert bench.client.ask("white", 0).status is None
    bench.spawn(SLEEPER)


def test_cores_are_bound_before_the_program_runs(bench: Bench) -> None:
    """An engine starts on the cores of its order."""
    seat = local.LocalSeat("white")
    bench.seats.append(seat)
    core = min(os.sched_getaffinity(0))
    assert bench.client.spawn(seat, hall.program(SLEEPER), {}, [core]) == ""
    assert os.sched_getaffinity(seat.pid) == {core}


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("raise SystemExit(3)", "exit 3"),
        ("import os; os.abort()", "signal SIGABRT"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL"),
    ],
)
def test_an_engines_own_end_is_its_own(bench: Bench, text: str, status: str) -> None:
    """An engine that ends by itself is told with status, and not as the farm's deed."""
    bench.spawn(text)
    end = bench.client.ask("white", 50_000)
    assert (end.running, end.status, end.by_farm) == (False, status, False)


def test_a_running_engine_is_told_so(bench: Bench) -> None:
    """A question about an engine that lives is answered when its time has come."""
    bench.spawn(SLEEPER)
    assert bench.client.ask("white", 20).running


def test_killing_one_seat_takes_its_children_and_leaves_the_other(bench: Bench) -> None:
    """A seat is killed with children in other groups; the other seat lives; it is logged."""
    child = "import os, time\nif os.fork() == 0: os.setpgid(0, 0)\nprint('up', flush=True)\n"
    white = bench.spawn(child + "time.sleep(300)")
    black = bench.spawn(SLEEPER, "black")
    read_line(white)
    end = bench.client.kill("white", "ignored quit")
    assert (end.status, end.by_farm, end.reason) == ("signal SIGKILL", True, "ignored quit")
    assert bench.client.ask("black", 0).running
    # Killed, and not yet scheduled to end.
    harness.wait(lambda: hall.survivors(bench.game) == [black.pid], "the end of White's")
    assert json.loads(bench.log.read_text())["why"] == "ignored quit"


def test_killing_what_has_quit_writes_nothing(bench: Bench) -> None:
    """An engine that is gone is reaped with its own status and without a kill."""
    assert comes(bench.spawn("raise SystemExit(0)").pidfd)
    end = bench.client.kill("white", "ignored quit")
    assert (end.status, end.by_farm) == ("exit 0", False)
    assert not bench.log.exists()
    bench.say("end")
    assert bench.ended() == []


COUNTING = """
import importlib.util, pathlib, sys
spec = importlib.util.spec_from_file_location("supervisor", {program!r})
supervisor = importlib.util.module_from_spec(spec)
spec.loader.exec_module(supervisor)
whole = supervisor.process_table
def counted():
    with pathlib.Path({looks!r}).open("a") as looks:
        looks.write("x")
    return whole()
supervisor.process_table = counted
sys.exit(supervisor.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("leaves", [False, True])
def test_an_engine_that_quits_alone_costs_no_look_at_all_processes(
    tmp_path: pathlib.Path, leaves: bool
) -> None:
    """Of many games at a time each would read the processes of all; what it leaves is found."""
    looks, script = tmp_path / "looks", tmp_path / "counting.py"
    script.write_text(COUNTING.format(program=program.__file__, looks=str(looks)))
    bench = Bench(tmp_path, program=str(script))
    try:
        child = "import os, time\nif os.fork() == 0: time.sleep(300)\n" if leaves else ""
        black = bench.spawn(SLEEPER, "black")
        white = bench.spawn(f"{child}raise SystemExit(0)")
        assert comes(white.pidfd)
        assert bench.client.kill("white", "ignored quit").status == "exit 0"
        assert looks.exists() == leaves
        harness.wait(lambda: hall.survivors(bench.game) == [black.pid], "the end of White's")
        looks.unlink(missing_ok=True)
        bench.say("end")
        bench.ended()
        assert not looks.exists()
    finally:
        bench.close()


def test_the_reason_is_on_disk_before_the_kill(bench: Bench) -> None:
    """When an engine's end can be seen, the reason is already in the log."""
    seat = bench.spawn(SLEEPER)
    bench.say("kill fenced: another attempt has the hall")
    assert comes(seat.pidfd)
    assert json.loads(bench.log.read_text())["why"] == "fenced: another attempt has the hall"
    with pytest.raises(supervisor_client.DeadManKillsError, match="fenced"):
        bench.client.ask("white", 0)
    bench.ended()


def test_orphans_in_sessions_of_their_own_are_killed_too(bench: Bench) -> None:
    """A grandchild that left group and session, and lost its parent, is found and killed."""
    seat = bench.spawn(
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        print('up', flush=True); time.sleep(300)\n"
        "    os._exit(0)\n"
        "os.wait(); time.sleep(300)"
    )
    read_line(seat)
    assert len(hall.survivors(bench.game)) == 2
    bench.say("end")
    assert [line["why"] for line in bench.ended()] == ["end of the game"]


def test_the_end_of_the_links_pipe_kills(bench: Bench) -> None:
    """A link that is gone takes its engines with it."""
    bench.spawn(SLEEPER)
    os.close(bench.link)
    assert [line["why"] for line in bench.ended()] == ["link gone: its pipe is closed"]


def test_the_end_of_the_referees_socket_kills(bench: Bench) -> None:
    """A referee that is gone takes its engines with it."""
    bench.spawn(SLEEPER)
    bench.client.close()
    assert [line["why"] for line in bench.ended()] == ["referee gone: its socket is closed"]


def test_sigterm_kills_as_a_shutdown(bench: Bench) -> None:
    """A dead man told to end writes a shutdown down, and kills."""
    bench.spawn(SLEEPER)
    bench.process.terminate()
    (line,) = bench.ended()
    assert str(line["why"]).startswith("shutdown")


def test_an_end_just_before_a_shutdown_is_the_farms(bench: Bench) -> None:
    """An engine that a shutdown reaches first is not blamed: the answer waits a moment."""
    seat = bench.spawn(SLEEPER)
    os.kill(seat.pid, signal.SIGTERM)
    bench.process.terminate()
    with pytest.raises(supervisor_client.DeadManKillsError, match="shutdown"):
        bench.client.ask("white", 1_000)


LINK = """
import os, socket, subprocess, sys, time
program, log, feeds = sys.argv[1:]
ours, theirs = socket.socketpair()
reader, writer = os.pipe()
process = subprocess.Popen(
    [sys.executable, "-I", "-S", program, "--link-fd", str(reader), "--referee-fd",
     str(theirs.fileno()), "--log", log, "--limit-ms", "2000"],
    pass_fds=(reader, theirs.fileno()))
now = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME)
for _ in range(int(feeds)):
    os.write(writer, b"feed %d\\n" % now())
    time.sleep(0.1)
    assert process.poll() is None
print("fed", flush=True)
os.write(writer, b"feed %d\\n" % (now() + 10**15))
time.sleep(300)
"""

FROZEN = """
import pathlib, signal, sys, threading, time
sys.path.insert(0, sys.argv[1])
import hall
from worker_cpu.wire import frames
made = hall.Hall(pathlib.Path(sys.argv[2]), limit_ms=2000)
order = hall.order(hall.program("import time; time.sleep(300)"), hall.scripted())
silent = threading.Event()
def feed():
    while not silent.wait(0.1):
        made.say(f"feed {time.clock_gettime_ns(time.CLOCK_BOOTTIME)}")
threading.Thread(target=feed).start()
def freeze(frame):
    # Black is spoken to last: both engines run by then.
    if frame.kind is frames.Kind.CHUNK and frames.Chunk.decode(frame.payload).seat == "b":
        silent.set()
        made.referee.send_signal(signal.SIGSTOP)
        print(order.game, made.referee.pid, made.dead_man.pid, flush=True)
made.play(order, freeze)
"""


def test_silence_kills_the_link(tmp_path: pathlib.Path) -> None:
    """Feeding holds the dead man off; silence kills; a feed from the future buys no time."""
    log = tmp_path / "log"
    link = subprocess.Popen(
        [sys.executable, "-c", LINK, program.__file__, str(log), "25"], stdout=subprocess.PIPE
    )
    with link:
        assert link.wait(hall.PATIENCE) == -signal.SIGKILL
        assert link.stdout is not None
        assert link.stdout.read() == b"fed\n"
    assert not log.exists()  # no engine ran: there was nothing to write down


def test_silence_kills_engines_and_a_frozen_referee(tmp_path: pathlib.Path) -> None:
    """A referee known by the kernel's word dies with the silent link, frozen or not."""
    room = str(pathlib.Path(__file__).parent)
    link = subprocess.Popen(
        [sys.executable, "-c", FROZEN, room, str(tmp_path)], stdout=subprocess.PIPE
    )
    with link:
        assert link.wait(hall.PATIENCE) == -signal.SIGKILL
        assert link.stdout is not None
        game, referee, dead_man = link.stdout.read().decode().split()[:3]
    for pid in (int(referee), int(dead_man)):
        wait_for_end(pid)
    assert hall.survivors(game) == []
    (line,) = map(json.loads, (tmp_path / "deadman.jsonl").read_text().splitlines())
    assert line["why"].startswith("link silent for more than 2000 ms")
    assert set(line["engines"]) == {"white", "black"}


def wait_for_end(pid: int) -> None:
    """Wait for the end of a process that is not this test's child."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended = comes(fd)
    os.close(fd)
    assert ended


@pytest.mark.parametrize(
    ("code", "status"),
    [(3, "exit 3"), (128, "exit 128"), (139, "signal SIGSEGV"), (255, "exit 255")],
)
def test_how_a_sandbox_ended_is_read_from_its_exit_status(code: int, status: str) -> None:
    """128 + N is bubblewrap's word for a signal that there is; no other status is one."""
    report, silent = os.pipe2(os.O_NONBLOCK)
    with subprocess.Popen(["sh", "-c", f"exit {code}"]) as process:
        engine = program.Engine("white", process.pid, -1, 1)
        engine.sandbox = program.Sandbox(report, "")
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        program.look(engine)
    os.close(report)
    os.close(silent)
    assert engine.status == status


@pytest.mark.parametrize("line", [b"garbage", b"[]", b'{"op":"spawn","id":99}', b'{"op":5}', b""])
def test_requests_that_are_none_do_not_end_it(bench: Bench, line: bytes) -> None:
    """Whatever the referee writes is answered, and the dead man goes on serving."""
    bench.socket.send(line + b"\n")
    assert comes(bench.socket.fileno())
    assert b"not understood" in bench.socket.recv(4096)
    seat = bench.spawn(SLEEPER)
    assert seat.pid > 0


def test_an_engine_is_waited_for_as_long_as_it_may_take_to_start(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where others use the cores up, making its sandbox takes longer than any other answer."""
    monkeypatch.setattr(supervisor_client, "REPLY_SECONDS", 0.0)
    seat = local.LocalSeat("white")
    bench.seats.append(seat)
    words = (seat, hall.program(SLEEPER), {"FARM_GAME": bench.game, "PATH": os.environ["PATH"]})
    with harness.frozen([bench.process.pid]), pytest.raises(supervisor_client.DeadManLostError):
        bench.client.spawn(*words, None)
    thaw = threading.Timer(0.3, os.kill, (bench.process.pid, signal.SIGCONT))
    os.kill(bench.process.pid, signal.SIGSTOP)
    thaw.start()
    late = local.LocalSeat("black")
    bench.seats.append(late)
    assert bench.client.spawn(late, *words[1:], None, start_ms=60_000) == ""
