"""A hall without Redis: the real dead man and the real referee, the link played by a test.

``Hall`` starts both processes, sends an order, answers every ply with GO_ON and feeds the
dead man. ``survivors`` finds processes of a game by what their environment says, so that
children and grandchildren of engines are seen as well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator import contract
from worker_cpu.engines import sandbox
from worker_cpu.engines import supervisor as deadman_program
from worker_cpu.wire import frames

SCRIPTED = pathlib.Path(__file__).parents[1] / "engines" / "scripted.py"
GAMES = pathlib.Path("/usr/games")
PATIENCE = 90.0  # s: a hang of the referee fails a test after this long
_numbers = itertools.count(1)


@dataclasses.dataclass
class Played:
    """What came over the link's socket, in order of kinds."""

    game: str
    ready: dict[str, Any] | None = None
    plies: list[contract.PlyRecord] = dataclasses.field(default_factory=list)
    thinks: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    pgn: str = ""
    chunks: list[frames.Chunk] = dataclasses.field(default_factory=list)
    finished: dict[str, Any] | None = None
    interrupted: dict[str, Any] | None = None

    @property
    def outcome(self) -> contract.Outcome:
        """Return the verdict; fails the test when there is none."""
        assert self.finished is not None, self.interrupted
        return contract.Outcome.model_validate(self.finished["outcome"])

    def report(self, side: contract.Side) -> contract.EngineReport:
        """Return what is reported of one engine at the end."""
        assert self.finished is not None, self.interrupted
        return contract.EngineReport.model_validate(self.finished[side])

    def sent(self, seat: frames.Seat) -> str:
        """Return all that one engine was sent."""
        to_engine = [c.data for c in self.chunks if c.seat == seat and c.direction == ">"]
        return b"".join(to_engine).decode()


class Hall:
    """The two processes of one game, and the link's ends of their pipes."""

    def __init__(
        self,
        directory: pathlib.Path,
        limit_ms: int = 60_000,
        confinement: sandbox.Confinement | None = None,
    ) -> None:
        self.log = directory / "deadman.jsonl"
        ours, theirs = socket.socketpair()
        dead_man_end, referee_end = socket.socketpair()
        feed_end, self.feed_fd = os.pipe()
        self.lock = (directory / "lock").open("w")
        with theirs, dead_man_end, referee_end:
            self.dead_man = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", deadman_program.__file__),
                    *("--link-fd", str(feed_end), "--referee-fd", str(dead_man_end.fileno())),
                    *("--log", str(self.log), "--limit-ms", str(limit_ms)),
                    *("--lock-fd", str(self.lock.fileno())),
                ],
                pass_fds=(feed_end, dead_man_end.fileno(), self.lock.fileno()),
                cwd=directory,
            )
            self.referee = subprocess.Popen(
                [
                    *(sys.executable, "-m", "worker_cpu.referee.process"),
                    *("--link-fd", str(theirs.fileno())),
                    *("--deadman-fd", str(referee_end.fileno())),
                    *(("--confine", confinement.encode()) if confinement else ()),
                ],
                pass_fds=(theirs.fileno(), referee_end.fileno()),
            )
        os.close(feed_end)
        self.channel = frames.Channel(ours)

    def say(self, line: str) -> None:
        """Write a line to the dead man."""
        os.write(self.feed_fd, line.encode() + b"\n")

    def hang_up(self) -> None:
        """Close the link's end of the dead man's pipe."""
        if self.feed_fd >= 0:
            os.close(self.feed_fd)
            self.feed_fd = -1

    def play(
        self,
        order: contract.GameOrder,
        on_frame: Callable[[frames.Frame], None] = lambda _: None,
        patience: float = PATIENCE,
    ) -> Played:
        """Play the link's part until the referee has ended; fail when it hangs."""
        played = Played(order.game)
        deadline = time.monotonic() + patience
        self.channel.send(frames.Kind.ORDER, order.encode().encode())
        with contextlib.suppress(frames.ChannelClosedError):
            while True:
                frame = self.channel.receive(deadline - time.monotonic())
                assert frame is not None, f"the referee hangs after {len(played.plies)} plies"
                self._take(frame, played)
                on_frame(frame)
        return played

    def _take(self, frame: frames.Frame, played: Played) -> None:
        kind, payload = frame.kind, frame.payload
        if kind is frames.Kind.CHUNK:
            played.chunks.append(frames.Chunk.decode(payload))
        elif kind is frames.Kind.READY:
            played.ready = json.loads(payload)
        elif kind is frames.Kind.THINK:
            played.thinks.append(json.loads(payload))
        elif kind is frames.Kind.PLY:
            played.plies.append(contract.PlyRecord.decode(payload))
            with contextlib.suppress(frames.ChannelClosedError):
                self.channel.send(frames.Kind.GO_ON)
        elif kind is frames.Kind.PGN:
            played.pgn += payload.decode()
        elif kind is frames.Kind.FINISHED:
            played.finished = json.loads(payload)
        elif kind is frames.Kind.INTERRUPTED:
            played.interrupted = json.loads(payload)

    def log_lines(self) -> list[dict[str, Any]]:
        """Return what the dead man has written down."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def close(self) -> None:
        """End both processes; fail when one does not end by itself."""
        self.channel.close()
        self.hang_up()
        self.lock.close()
        try:
            self.referee.wait(PATIENCE)
            self.dead_man.wait(PATIENCE)
        finally:
            for process in (self.referee, self.dead_man):
                process.kill()
                process.wait()


@contextlib.contextmanager
def opened(
    directory: pathlib.Path,
    limit_ms: int = 60_000,
    confinement: sandbox.Confinement | None = None,
) -> Iterator[Hall]:
    """Open a hall for one game and close it."""
    hall = Hall(directory, limit_ms, confinement)
    try:
        yield hall
    finally:
        hall.close()


def play(directory: pathlib.Path, order: contract.GameOrder, patience: float = PATIENCE) -> Played:
    """Play one whole game in a hall of its own; no process of it may be left."""
    with opened(directory) as hall:
        played = hall.play(order, patience=patience)
    assert not survivors(order.game)
    return played


def scripted(
    *arguments: str,
    name: str = "Scripted",
    protocol: contract.ProtocolName = "uci",
    **fields: Any,
) -> contract.EngineSpec:
    """Describe the scripted engine with a playbook."""
    command = (sys.executable, str(SCRIPTED), "--name", name, "--protocol", protocol, *arguments)
    return contract.EngineSpec(
        id=name.lower(), name=name, command=command, protocol=protocol, **fields
    )


def program(text: str, name: str = "Inline") -> contract.EngineSpec:
    """Describe an engine that is a few lines of Python."""
    command = (sys.executable, "-I", "-S", "-u", "-c", text)
    return contract.EngineSpec(id=name.lower(), name=name, command=command)


TALK = """
import sys, time
def say(text):
    sys.stdout.write(text + "\\n"); sys.stdout.flush()
for line in sys.stdin:
    word = line.split()[0]
    if word == "uci": say("id name Inline\\nuciok")
    elif word == "isready": say("readyok")
    elif word == "quit": break
    elif word == "position": played = len(line.partition(" moves ")[2].split())
    elif word == "go":
"""


def answers(body: str, offer: str = "uciok") -> contract.EngineSpec:
    """Describe an engine that runs ``body`` at each ``go``, when so many plies are ``played``."""
    indented = "".join(f"        {line}\n" for line in body.splitlines())
    return program(TALK.replace("uciok", offer) + indented)


def installed(name: str) -> contract.EngineSpec:
    """Describe an engine of this machine; skip by name where it is missing."""
    path = GAMES / name
    if not path.exists():
        pytest.skip(f"package {name} is not installed")
    return contract.EngineSpec(id=name, name=name, command=(str(path),))


def order(white: contract.EngineSpec, black: contract.EngineSpec, **fields: Any) -> Any:
    """Make an order that waits long for what an engine does, and not for what it never does.

    The game's id is unique on this machine.
    """
    values: dict[str, Any] = {
        "season": "s",
        "season_name": "Season",
        "event": "e",
        "event_name": "Event",
        "game": f"referee-test-{os.getpid()}-{next(_numbers)}",
        "number": 1,
        "round": "1.1",
        "white": white,
        "black": black,
        "time_control": contract.TimeControl(base_ms=10_000, increment_ms=100),
        "timeouts": contract.Timeouts(
            start_ms=20_000, ready_ms=20_000, stop_ms=100, stall_ms=300, quit_ms=2_000
        ),
    }
    return contract.GameOrder(**values | fields)


NEVER = {  # time-outs of what an engine with a fault never does
    "no-uciok": {"start_ms": 2_000},
    "no-readyok": {"ready_ms": 2_000},
    "no-features": {"features_ms": 1_500},
    "half": {"stall_ms": 200, "quit_ms": 300},
    "close-stdout": {"quit_ms": 300},
    "ignore-quit": {"quit_ms": 300},
}
FLAG = contract.TimeControl(base_ms=1_500)  # of games in which a clock has to run out


def patience(
    fault: str, ending: contract.Ending | None
) -> tuple[contract.Timeouts, contract.TimeControl]:
    """Return time-outs and control for a game with a fault that ends it so.

    They are short for what never comes and long for all the rest: a machine that is busy for
    seconds changes no verdict.
    """
    times = {"start_ms": 20_000, "ready_ms": 20_000, "features_ms": 20_000, "settle_ms": 500}
    times |= {"stop_ms": 100, "stall_ms": 10_000, "quit_ms": 5_000}
    if ending is contract.Ending.STALL:
        times |= {"stall_ms": 200, "quit_ms": 300}
    times |= NEVER.get(fault.partition("@")[0], {})
    late = ending in {contract.Ending.STALL, contract.Ending.TIME}
    control = FLAG if late else contract.TimeControl(base_ms=60_000)
    return contract.Timeouts(**times), control


def survivors(game: str) -> list[int]:
    """Return the living processes whose environment names the game."""
    mark = f"FARM_GAME={game}\0".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if mark in (entry / "environ").read_bytes() + b"\0":
                found.append(int(entry.name))
    return found


def kill(pid: int) -> None:
    """Send SIGKILL to one process."""
    os.kill(pid, signal.SIGKILL)
