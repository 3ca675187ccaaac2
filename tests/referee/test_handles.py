"""The processes that a link starts: what they are waited for, and what is started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from worker_cpu.engines import handles

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
