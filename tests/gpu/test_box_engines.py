"""Engines of other kinds on a box: XBoard's through the bridge, and one that eats its memory."""

from __future__ import annotations

import json
import os
import pathlib
import sys
import time
from typing import Any

import bed
import groups
import hall
import pytest
import remote_games as games

from orchestrator import contract
from worker_gpu import seats

LONG = os.environ.get("FARM_LONG") == "1"
MOVES = 8
FAST = contract.TimeControl(base_ms=10_000, increment_ms=100)


def play(
    root: pathlib.Path, box: bed.Box, spec: contract.EngineSpec, hash_mb: int = 16, **seat: Any
) -> tuple[hall.Played, contract.SeatAddress]:
    """Play a game of an engine on the box against a probe in the hall."""
    address = box.seat(list(spec.command), **seat)
    near = (sys.executable, str(games.PROBE), str(root / "near.log"), "--name", "Near")
    order = hall.order(
        spec.model_copy(update={"box": "box"}),
        contract.EngineSpec(id="near", name="Near", command=near),
        seats={"white": address},
        time_control=FAST,
        adjudication=contract.Adjudication(max_moves=MOVES),
        timeouts=contract.Timeouts(features_ms=10_000, quit_ms=1_000),
        limits=contract.Limits(hash_mb=hash_mb),
    )
    place = root / "hall"
    place.mkdir()
    with hall.opened(place) as opened:
        played = opened.play(order)
    return played, address


def last_words(box: bed.Box, address: contract.SeatAddress) -> dict[str, str]:
    """Wait for what an agent writes down at its end."""
    path = box.farm / "run" / address.seat / "ended"
    deadline = time.monotonic() + bed.PATIENCE
    while not (path.exists() and path.stat().st_size):
        assert time.monotonic() < deadline, "the agent does not end"
        time.sleep(0.02)
    told: dict[str, str] = json.loads(path.read_bytes())
    return told


@pytest.mark.parametrize("name", ["scripted", "fairymax", "phalanx"] if LONG else ["fairymax"])
def test_an_xboard_engine_plays_through_the_bridge(tmp_path: pathlib.Path, name: str) -> None:
    """It is charged by the clock of its own host, as a UCI engine is; the network is not."""
    xboard: dict[str, Any] = {"protocol": "xboard"}
    if name == "scripted":
        spec = hall.scripted("--delay-ms", "20", protocol="xboard")
    else:
        spec = hall.installed(name).model_copy(update=xboard)
    with bed.loopback(tmp_path, grace_ms=15_000, beat_ms=500) as box:
        played, address = play(tmp_path, box, spec)
        log = (box.farm / "run" / address.seat / "log").read_bytes()
    far = [ply for ply in played.plies if ply.side == "white"]
    assert played.outcome.ending is contract.Ending.MAX_MOVES
    assert len(far) == MOVES
    assert all((ply.network_ns or 0) > 0 for ply in far)
    assert played.report("white").exit == "exit 0"
    assert log.count(b"\nwent ") + log.startswith(b"went ") == MOVES
    if name == "scripted":
        assert min(ply.think_ns for ply in far) >= 20_000_000


@pytest.mark.parametrize(("hash_mb", "fits"), [(1024, False), *([(16, True)] if LONG else [])])
def test_a_seat_has_the_memory_of_its_control_group(
    tmp_path: pathlib.Path, hash_mb: int, fits: bool
) -> None:
    """Stockfish with more hash than its seat is killed by the kernel: an interruption, no loss."""
    spec = hall.installed("stockfish")
    with bed.loopback(tmp_path, grace_ms=15_000, beat_ms=500) as box, groups.room() as room:
        group = seats.memory_group(room, "white", 384)
        played, address = play(tmp_path, box, spec, hash_mb, cgroup=str(group))
        ended = last_words(box, address)
    if fits:
        assert played.outcome.loser != "white"  # it may mate the probe before its last move
        assert played.outcome.ending in {contract.Ending.MAX_MOVES, contract.Ending.CHECKMATE}
        assert ended["status"] == "exit 0"
    else:
        assert played.finished is None
        assert played.interrupted is not None
        assert "out of memory: the kernel killed it" in json.dumps(played.interrupted)
        assert ended["status"] == "signal SIGKILL"


def test_groups_of_both_seats_stand_until_they_are_taken(tmp_path: pathlib.Path) -> None:
    """A second seat's group removes no first one's, in which nobody runs yet."""
    made = [seats.memory_group(tmp_path, seat, 100) for seat in ("black", "white")]
    assert all(group.is_dir() for group in made)
