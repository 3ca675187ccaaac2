"""Who would write its own clock on a box: an engine that speaks to its agent, an agent that lies.

Through a real sshd; what the hall charges is held to the engine's own log, or to the hall's time.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import sys
from typing import Any

import bed
import hall
import pytest
import remote_games as games

from orchestrator import contract

THINK_MS = 1_200
CLOCK = contract.TimeControl(base_ms=60_000, increment_ms=100)
# An engine that, having thought, joins its agent's channel and starts a second search of its own.
FORGER = """
import json, os, socket, sys, time
farm, seat, log = sys.argv[1], os.environ["FARM_SEAT"], sys.argv[2]
moves = iter(["e2e4", "d2d4", "c2c4", "b2b4"])

def message(kind, number, payload=b""):
    return b"%s %d 0 %d\\n%s" % (kind, number, len(payload), payload)

def try_all():
    found = {"uid": os.getuid(), "cwd": os.getcwd(), "orders": 0, "said": ""}
    try:
        found["orders"] = len(os.listdir(f"{farm}/seats"))
    except OSError as error:
        found["orders"] = type(error).__name__
    if os.fork() == 0:  # from a process of its own, in a session of its own
        os.setsid()
        if os.fork() == 0:
            speak(found)
        os._exit(0)
    os.wait()
    time.sleep(0.5)

def speak(found):
    told = json.dumps({"stop_ns": 10**12, "stall_ns": 10**12, "stop": "", "answers": ["bestmove"]})
    try:
        with socket.socket(socket.AF_UNIX) as channel:
            os.chdir(f"{farm}/run/{seat}")
            channel.settimeout(2)
            channel.connect("socket")
            channel.sendall(message(b"join", 0))
            for number in range(1, 40):
                channel.sendall(message(b"go", number, told.encode() + b"\\n"))
            found["said"] = channel.recv(65536).decode(errors="replace")
    except OSError as error:
        found["said"] = type(error).__name__
    with open(log, "a") as file:
        file.write(json.dumps(found) + "\\n")

for line in sys.stdin:
    word = line.split()[0]
    if word == "uci": print("id name Forger\\nuciok", flush=True)
    elif word == "isready": print("readyok", flush=True)
    elif word == "quit": break
    elif word == "go":
        time.sleep(float(sys.argv[3]) / 1000)
        try_all()
        print("bestmove", next(moves), flush=True)
"""


def play(
    root: pathlib.Path, box: bed.Box, command: list[str], moves: int, **seat: Any
) -> tuple[hall.Played, contract.SeatAddress]:
    """Play some moves of a program on a box against a local engine that follows."""
    far = contract.EngineSpec(id="far", name="Far", command=tuple(command), box="box")
    near = hall.answers("say('bestmove ' + ('a7a6', 'b7b6', 'c7c6', 'd7d6')[played // 2])")
    address = box.seat(command, **seat)
    order = hall.order(
        far,
        near,
        seats={"white": address},
        time_control=CLOCK,
        adjudication=contract.Adjudication(max_moves=moves),
    )
    place = root / "hall"
    place.mkdir()
    with hall.opened(place) as opened:
        return opened.play(order), address


@pytest.mark.parametrize("user", [None, 64_123])
def test_an_engine_cannot_speak_to_its_agent(tmp_path: pathlib.Path, user: int | None) -> None:
    """Its own searches are not begun, it pays for what it thought, and hears nothing.

    As another user it reads no order and finds no socket; as the agent's user it is refused.
    """
    if user is not None and os.geteuid() != 0:
        pytest.skip("hardware: another user needs root")
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if user is not None and parent != pathlib.Path("/") and parent.stat().st_uid == 0:
            parent.chmod(parent.stat().st_mode | 0o011)
    log = tmp_path / "log"
    log.touch(mode=0o666)
    log.chmod(0o666)
    with bed.loopback(tmp_path) as box:
        (box.farm / "seats").chmod(0o700)
        python = shutil.which("python3", path="/usr/bin:/usr/local/bin") or sys.executable
        command = [python, "-I", "-S", "-c", FORGER, str(box.farm), str(log), str(THINK_MS)]
        more: dict[str, Any] = {} if user is None else {"user": user}
        played, address = play(tmp_path, box, command, 2, **more)
        agents_log = (box.farm / "run" / address.seat / "log").read_bytes()
    assert played.outcome.ending is contract.Ending.MAX_MOVES, played
    mine = [ply for ply in played.plies if ply.side == "white"]
    assert len(mine) == 2
    assert all(ply.think_ns >= THINK_MS * 1_000_000 for ply in mine)
    found = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(found) == 2
    for one in found:
        assert one["said"] in {"", "ConnectionResetError", "BrokenPipeError", "PermissionError"}
        assert one["uid"] == (os.geteuid() if user is None else user)
        assert str(box.farm / "run") not in one["cwd"]
        if user is not None:
            assert (one["said"], one["orders"]) == ("PermissionError", "PermissionError")
    if user is None:
        assert agents_log.count(b"refused 0 ") == 2


LIES = {
    "a start that is told late": (
        'self._tell("went", at_ns, b"%d" % number)',
        'self._tell("went", at_ns + 1_000_000_000, b"%d" % number)',
    ),
    "an answer that is told early": (
        'self._tell("ans", at_ns, line)',
        'self._tell("ans", at_ns - 1_000_000_000, line)',
    ),
    "an answer that is told late": (
        'self._tell("ans", at_ns, line)',
        'self._tell("ans", at_ns + 1_000_000_000, line)',
    ),
    "a second start": (
        'self._tell("ans", at_ns, line)',
        'self._tell("went", at_ns, b"%d" % (self.done + 1)); self._tell("ans", at_ns, line)',
    ),
    "a start that is told twice": (
        'self._tell("ans", at_ns, line)',
        'self._tell("went", at_ns, b"%d" % self.done); self._tell("ans", at_ns, line)',
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_agent_that_lies_about_the_clock_ends_the_game(tmp_path: pathlib.Path, lie: str) -> None:
    """Its stamps do not fit the hall's own time and the link's round trips: an interruption."""
    true, false = LIES[lie]
    text = bed.AGENT.read_text()
    assert true in text
    liar = tmp_path / "agent.py"
    liar.write_text(text.replace(true, false))
    log = tmp_path / "probe.log"
    command = [sys.executable, str(games.PROBE), str(log), "--think-ms", str(THINK_MS)]
    with bed.loopback(tmp_path, agent=liar) as box:
        played, _ = play(tmp_path, box, command, 2)
    assert not played.plies
    assert played.interrupted is not None, played.finished
    assert played.interrupted["cause"] == "link"
    words = "has not started" if "start" in lie and "late" not in lie else "the referee waited"
    assert words in played.interrupted["evidence"]
