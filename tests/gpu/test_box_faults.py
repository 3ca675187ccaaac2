"""Faults of the hosts around a remote engine: clocks that are set, full disks, frozen processes."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import bed
import harness
import pytest
import remote_games as games

from orchestrator import contract
from worker_cpu.wire import frames

GRACE_MS = 30_000  # where no link is cut
KEEP = contract.Timeouts(start_ms=20_000, ready_ms=20_000, stop_ms=300, stall_ms=500, quit_ms=1_000)
MOVES = 6


def clocked_python(place: pathlib.Path, offset: pathlib.Path) -> pathlib.Path:
    """Write a Python whose time of day is set by a file; its monotonic clocks are the machine's."""
    found = list(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    if not found:
        pytest.skip("package libfaketime is not installed")
    clock = {
        "LD_PRELOAD": found[0],
        "FAKETIME_TIMESTAMP_FILE": offset,
        "FAKETIME_NO_CACHE": 1,
        "FAKETIME_DONT_FAKE_MONOTONIC": 1,
        "FAKETIME_DISABLE_SHM": 1,
    }
    lines = [f"export {name}={value}" for name, value in clock.items()]
    program = place / "python"
    program.write_text("\n".join(["#!/bin/sh", *lines, f'exec {sys.executable} "$@"', ""]))
    program.chmod(0o755)
    return program


@pytest.mark.long
def test_a_box_whose_time_of_day_is_set_plays_on(tmp_path: pathlib.Path) -> None:
    """A clock that jumps an hour on, then a day back, changes no charge and no deadline."""
    offset = tmp_path / "offset"
    offset.write_text("+0")
    python = clocked_python(tmp_path, offset)
    with bed.loopback(tmp_path, python=str(python), grace_ms=GRACE_MS) as box:
        on = games.At(1, lambda: offset.write_text("+3600"))
        back = games.At(5, lambda: offset.write_text("-86400"))

        def jump(frame: frames.Frame) -> None:
            on(frame)
            back(frame)

        played = games.play(tmp_path, box, "200", MOVES, lambda _: jump, timeouts=KEEP)
        assert bed.gone(box.farm)
    shown = subprocess.check_output([python, "-c", "import time; print(time.time())"])
    assert time.time() - float(shown) > 86_000, "the clock was set"
    assert played.game.outcome.ending is contract.Ending.MAX_MOVES
    assert all(0 < ply.think_ns < 3600e9 for ply in played.remote), "what was set was charged"


@contextlib.contextmanager
def small_disk(place: pathlib.Path) -> Iterator[None]:
    """Give a directory a disk of its own, of one megabyte."""
    if os.geteuid() != 0:
        pytest.skip("hardware: a disk of its own needs root")
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "farm-test", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"hardware: this machine mounts nothing: {mounted.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(box: bed.Box) -> None:
    """Fill the disk of a box to its last byte."""
    with contextlib.suppress(OSError), (box.root / "filler").open("wb", buffering=0) as file:
        while file.write(b"x" * 4096):
            pass


@pytest.mark.long
def test_a_box_whose_disk_is_full_plays_on_and_begins_nothing(tmp_path: pathlib.Path) -> None:
    """A game in flight loses its agent's log at most; the next one is interrupted, with why."""
    with small_disk(tmp_path / "box"), bed.loopback(tmp_path, grace_ms=GRACE_MS) as box:
        full = games.At(3, lambda: fill(box))
        played = games.play(tmp_path, box, "100", MOVES, lambda _: full, timeouts=KEEP)
        (box.root / "filler").unlink()

        def fill_now(_: contract.SeatAddress) -> Callable[[frames.Frame], None]:
            fill(box)
            return lambda _: None

        refused = games.play(tmp_path, box, "100", MOVES, fill_now, timeouts=KEEP)
        assert bed.gone(box.farm)
    assert played.game.outcome.ending is contract.Ending.MAX_MOVES
    assert refused.game.finished is None
    assert refused.game.interrupted["cause"] == "host"
    assert "No space left on device" in refused.game.interrupted["evidence"]


@pytest.mark.long
def test_a_frozen_bridge_costs_the_engine_nothing(tmp_path: pathlib.Path) -> None:
    """What nobody has heard is no stall: an interruption, although the search was seen to begin."""
    control = contract.TimeControl(base_ms=3_000)

    def freeze(seat: contract.SeatAddress) -> None:
        for pid in games.bridges(seat):
            harness.kill(pid, signal.SIGSTOP)

    with bed.loopback(tmp_path, grace_ms=3_000, beat_ms=200) as box:
        played = games.play(
            tmp_path,
            box,
            "1500",
            MOVES,
            lambda seat: games.At(1, lambda: games.later(0.7, lambda: freeze(seat))),
            time_control=control,
            timeouts=KEEP,
            patience=120,
        )
        assert bed.gone(box.farm)
    assert played.game.finished is None
    assert played.game.interrupted["cause"] == "link"
    assert "no word of the agent's" in played.game.interrupted["evidence"]


@pytest.mark.long
def test_a_link_that_is_away_in_the_start_costs_the_engine_nothing(tmp_path: pathlib.Path) -> None:
    """An engine that is ready in time, but not heard before its time-out, has started."""
    with bed.remote(tmp_path, grace_ms=20_000, beat_ms=300) as (box, network):

        def cut(seat: contract.SeatAddress) -> Callable[[frames.Frame], None]:
            def when_born() -> None:
                box.identity(seat)
                network.say("cut")
                games.later(6.0, lambda: network.say("mend"))

            games.later(0, when_born)
            return lambda _: None

        played = games.play(
            tmp_path,
            box,
            "20",
            MOVES,
            cut,
            timeouts=KEEP.model_copy(update={"start_ms": 4_000, "ready_ms": 4_000}),
            patience=120,
        )
        assert bed.gone(box.farm)
    assert played.game.outcome.ending is contract.Ending.MAX_MOVES
