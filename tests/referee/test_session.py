"""The one client of a referee: what it makes of one that says nothing, and of one that speaks."""

from __future__ import annotations

import os
import pathlib
import socket
import time
from collections.abc import Iterator

import pytest

from orchestrator import contract
from worker_cpu.engines import handles
from worker_cpu.referee import session
from worker_cpu.wire import frames

NONE = contract.Timeouts(start_ms=0, ready_ms=0, quit_ms=0)


class Scene:
    """A session whose referee is played by the test; the dead man is real and owns no engine."""

    def __init__(self, root: pathlib.Path) -> None:
        self._theirs, theirs = socket.socketpair()
        ours, other = socket.socketpair()
        referee = handles.RefereeProcess(handles.Fork(os.getpid(), 1), ours, theirs)
        self.dead_man = handles.DeadMan(root / "log", root, None, 600, referee)
        self.referee = frames.Channel(other)
        self.session = session.RefereeSession(referee, self.dead_man, NONE, 0.0)
        self._ours = ours

    def think(self, ply: int, stall_ns: int) -> None:
        """Let the referee say that a clock runs."""
        content = {"ply": ply, "side": "white", "monotonic_ns": 0, "stall_ns": stall_ns}
        self.referee.send(frames.Kind.THINK, contract.dumps(content).encode())

    def close(self) -> None:
        """End the dead man."""
        self.dead_man.end()
        self.dead_man.wait()
        self.referee.close()
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def scene(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """Give a session with a referee that is given up at once when word of it is overdue."""
    monkeypatch.setattr(session, "FROZEN_SECONDS", 0.0)
    made = Scene(tmp_path)
    yield made
    made.close()


def late_ns() -> int:
    """Return a deadline that has passed."""
    return time.monotonic_ns() - 1_000_000


def test_a_referee_that_misses_its_deadline_is_given_up_and_its_engines_are_killed(
    scene: Scene,
) -> None:
    """Between an order and the first clock, too: a match did not notice that."""
    scene.session.check()
    assert isinstance(scene.session.end, session.Interrupted)
    assert scene.session.end.cause == session.FROZEN
    scene.dead_man.wait()


def test_a_stall_that_is_told_ahead_is_waited_for(scene: Scene) -> None:
    """While a clock runs the deadline is the stall's, whatever time has passed since."""
    scene.think(1, time.monotonic_ns() + 10**12)
    assert scene.session.receive(10.0) is not None
    scene.session.check()
    assert scene.session.end is None
    assert scene.session.thinking is not None


def test_what_its_owner_has_not_read_yet_gives_no_referee_up(scene: Scene) -> None:
    """An owner that was stopped for a while finds a deadline passed, and the word that came."""
    scene.think(1, late_ns())
    assert scene.session.receive(10.0) is not None
    finished = {"outcome": {}, "plies": 1}
    scene.referee.send(frames.Kind.FINISHED, contract.dumps(finished).encode())
    scene.session.check()
    assert scene.session.end is None
    assert [frame.kind for frame in scene.session.ready()] == [frames.Kind.FINISHED]
    assert scene.session.end == session.Finished(finished)
    scene.session.check()
    assert scene.session.end == session.Finished(finished), "an end is never taken back"


def test_a_clock_that_its_ply_has_overtaken_is_no_deadline(scene: Scene) -> None:
    """A ply may overtake the word that its clock runs: that clock stands."""
    scene.session.go_on(1)
    scene.think(1, late_ns())
    assert scene.session.receive(10.0) is not None
    assert scene.session.thinking is None
    assert scene.session._due_ns == 0


def test_a_referee_that_is_gone_has_ended_its_game(scene: Scene) -> None:
    """Its channel closes without a word of the end: an interruption, and no error."""
    scene.referee.close()
    assert scene.session.receive(10.0) is None
    assert isinstance(scene.session.end, session.Interrupted)
    assert scene.session.end.cause == session.LOST
    assert scene.session.ready() == []
