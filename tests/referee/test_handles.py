"""The processes that a link starts: what they are waited for, and what is started again."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys

import hall
import harness
import pytest

from orchestrator.common import errors
from worker_cpu.engines import handles
from worker_cpu.referee import session

SHORT = 0.3  # s: instead of END_SECONDS
SLOW = 'sleep "$1"; shift; exec "$@"'


def slowly(theirs: socket.socket) -> handles.Child:
    """Start a fork server on a host that takes much longer than SHORT for its imports."""
    serve = [sys.executable, "-m", "worker_cpu.referee.forkserver", str(theirs.fileno())]
    command = ["sh", "-c", SLOW, "sh", str(4 * SHORT), *serve]
    return subprocess.Popen(command, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[handles.Child]:
    """Make END_SECONDS short; give the list of the fork servers that ``begun`` will start."""
    monkeypatch.setattr(handles, "END_SECONDS", SHORT)
    return []


def begun(started: list[handles.Child]) -> handles.ForkServer:
    """Begin with a fork server that is slow, as every one after it."""

    def begin(theirs: socket.socket) -> handles.Child:
        started.append(slowly(theirs))
        return started[-1]

    return handles.ForkServer(begin=begin)


def test_a_fork_server_that_starts_slowly_is_waited_for(started: list[handles.Child]) -> None:
    """Its first answer may take long: one that is started again instead would take as long."""
    fork_server = begun(started)
    try:
        fork_server.referee().end()
    finally:
        fork_server.end()
    assert len(started) == 1


def test_a_fork_server_that_has_answered_and_does_not_again_is_replaced(
    started: list[handles.Child],
) -> None:
    """A frozen one costs END_SECONDS, not the time of a start."""
    fork_server = begun(started)
    try:
        fork_server.referee().end()
        os.kill(started[0].pid, signal.SIGSTOP)
        fork_server.referee().end()
    finally:
        fork_server.end()
    assert len(started) == 2


def test_a_fork_server_that_is_late_with_a_dead_man_is_replaced(
    started: list[handles.Child], tmp_path: pathlib.Path
) -> None:
    """Its late answer would be taken for that to the next question; no descriptor is left."""

    def begin(theirs: socket.socket) -> handles.Child:
        started.append(handles.start_fork_server(theirs))
        return started[-1]

    fork_server = handles.ForkServer(begin=begin)
    try:
        referee = fork_server.referee()
        os.kill(started[0].pid, signal.SIGSTOP)
        descriptors = len(list(pathlib.Path("/proc/self/fd").iterdir()))
        with pytest.raises(errors.HostError, match="dead man"):
            handles.DeadMan(tmp_path / "log", tmp_path, None, 1.0, referee, fork_server)
        assert len(list(pathlib.Path("/proc/self/fd").iterdir())) == descriptors
        referee.end()
    finally:
        fork_server.end()
    assert len(started) == 2


@pytest.mark.parametrize("games", [1, 3])
def test_games_side_by_side_start_one_interpreter(
    games: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Referees and dead men are forks of one process, whose memory they share."""
    started: list[object] = []
    begin = subprocess.Popen.__init__

    def counted(process: subprocess.Popen[bytes], *words: object, **more: object) -> None:
        started.append(words)
        begin(process, *words, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess.Popen, "__init__", counted)
    fork_server = handles.ForkServer()
    seated = [session.seat(fork_server, handles.ANYWHERE, tmp_path) for _ in range(games)]
    pids = [pid for one in seated for pid in (one.referee.pid, one.dead_man.pid)]
    assert all(map(harness.alive, pids))
    for one in seated:
        place = pathlib.Path(f"/proc/{one.dead_man.pid}/cwd")
        harness.wait(
            lambda place=place: place.readlink() == tmp_path, "a dead man in its directory"
        )
    for one in seated:
        one.leave()
    fork_server.end()
    assert len(started) == 1
    assert not any(map(harness.alive, pids))


LINK = """
import pathlib, time
from worker_cpu.engines import handles
from worker_cpu.referee import session
seated = session.seat(handles.ForkServer(), handles.ANYWHERE, pathlib.Path(), None, 2.0)
print(seated.dead_man.pid, seated.referee.pid, flush=True)
while True:
    seated.feed()
    time.sleep(0.05)
"""


def test_a_forked_dead_man_kills_its_frozen_link(tmp_path: pathlib.Path) -> None:
    """Its parent is the fork server; who falls silent is the match, and it dies."""
    link = subprocess.Popen(
        [sys.executable, "-c", LINK],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert link.stdout is not None
    pids = [int(word) for word in link.stdout.readline().split()]
    link.send_signal(signal.SIGSTOP)
    assert link.wait(hall.PATIENCE) == -signal.SIGKILL
    for pid in pids:
        harness.wait(lambda pid=pid: not harness.alive(pid), "the end of the game's processes")
    link.stdout.close()


LANE = """
import gc, os, pathlib, sys
from worker_cpu import tasks
from worker_cpu.engines import handles
from worker_cpu.referee import forkserver
def held(pid):
    lines = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:"))
read, write = os.pipe()
tasks._share_memory()
if os.fork() == 0:
    gc.collect()
    os.write(write, str(held("self")).encode())
    os._exit(0)
child = int(os.read(read, 100))
os.wait()
kept = pathlib.Path("open").open("w")
fork_server = handles.ForkServer(begin=forkserver.forked)
referee = fork_server.referee()
pid = fork_server._process.pid
opened = [os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()]
print(child, held(pid), any(str(kept.name) in name for name in opened), flush=True)
referee.end()
fork_server.end()
"""


def test_a_lanes_processes_share_one_memory(tmp_path: pathlib.Path) -> None:
    """Its child and its fork server are forks: what either has for itself is a tenth of a program.

    A look for garbage writes to all that it looks at; a fork has nothing open of its parent's.
    """
    said = subprocess.run(
        [sys.executable, "-c", LANE],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "FARM_REDIS_URL": "redis://localhost:1/0",
        },
    ).stdout
    child, server, opened = said.split()
    assert int(child) < 5_000  # KB: 1,200; a look that copies what it shares: 28,000
    assert int(server) < 5_000  # KB: 1,100; of a program of its own 20,000
    assert opened == "False"


USED = """
import os, select, socket, time
from orchestrator import contract
from worker_cpu.engines import supervisor
from worker_cpu.referee import forkserver

def burn(arguments):
    while time.process_time() < 0.3:
        pass
    return 0

supervisor.main = burn
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server = forkserver.forked(theirs)
theirs.close()
for _ in range(2):
    ours.send(contract.dumps(["supervisor"]).encode())
    ended = os.pidfd_open(int(ours.recv(100)))
    waiting = select.poll()
    waiting.register(ended, select.POLLIN)
    waiting.poll()
ours.close()
server.wait()
after = os.times()
print(after.children_user + after.children_system)
"""


def test_what_games_have_used_is_not_other_programs_use() -> None:
    """Referees and dead men that have ended leave their processor time with the fork server."""
    done = subprocess.run(
        [sys.executable, "-c", USED], capture_output=True, text=True, check=True, timeout=60
    )
    assert float(done.stdout) >= 0.6
