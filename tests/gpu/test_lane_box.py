"""A test match in a lane with a box: one engine here, one on the other machine, by its clock."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import bed
import boxed_farm
import harness
import pytest

from orchestrator.common import errors
from orchestrator.ledger import journal_mirror, lane_store, seat_store
from orchestrator.ops import supervisor
from worker_cpu import settings
from worker_cpu.worker import lane_worker

BOTH = "GPU-aaaa,GPU-bbbb"


def roster(boxed: boxed_farm.Boxed) -> pathlib.Path:
    """Write a roster of an engine here, one on the box, and one there that crashes."""
    box, farm = {"box": "box-1", "competition": "gpu"}, boxed.farm
    engines = [
        boxed_farm.engine(farm, 1),
        boxed_farm.engine(farm, 2, "--delay-ms", "100", **box),
        boxed_farm.engine(farm, 3, "--fault", "crash@6", **box),
    ]
    path = farm.root / "engines.toml"
    listed = ", ".join(map(boxed_farm.toml, engines))
    path.write_text(f"schema = 1\nengine = [{listed}]\n")
    return path


def match(boxed: boxed_farm.Boxed, name: str, *words: str) -> subprocess.Popen[str]:
    """Start a test match as an operator does."""
    program = [sys.executable, "-c", "from orchestrator.commands import main; main()"]
    told = ["match", "test", *words, "--id", name, "--file", str(roster(boxed))]
    return subprocess.Popen(
        [*program, *told, "--tc", "20s+1s", "--maxmoves", "4", "--json"],
        env=boxed.farm.environment(harness.OPERATOR),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lives(boxed: boxed_farm.Boxed, name: str) -> set[tuple[int, str]]:
    """Return the processes of an engine, and the GPUs that each was shown."""
    facts = [json.loads(line) for line in boxed.farm.life.read_text().splitlines()]
    return {(fact["pid"], fact["gpus"]) for fact in facts if fact["name"] == name}


def test_a_match_with_an_engine_on_a_box_survives_its_worker(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """The engine stays there from game to game, and its GPUs are freed whoever dies."""
    with boxed_farm.running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        lane = supervisor.lane("a=0:box-1", farm.worker, harness.HALL)
        known, held = lane_store.connect(farm.redis.url), seat_store.RedisSeats(farm.ledger.server)
        journal = farm.root / "tests" / "far" / "journal.jsonl"
        words = ("scripted-2", "--against", "scripted-1", "--games", "10")
        lane.start()
        try:
            farm.wait(lambda: bool(known.lanes_of(harness.HALL)), 60, "the lane")
            with match(boxed, "far", *words) as keeper:
                farm.wait(
                    lambda: journal.exists() and len(journal_mirror.read(journal)) > 2, 90, "games"
                )
                assert {one.hall for one in held.gpu_holders().values()} == {harness.HALL}
                os.kill(lane.pid, signal.SIGKILL)
                lane.process.wait()  # type: ignore[union-attr]
                lane.start()
                out, wrong = keeper.communicate(timeout=bed.PATIENCE * 2)
            assert keeper.returncode == 0, wrong
            facts = json.loads(out)
            assert facts["games"] == sum(facts[kind] for kind in ("wins", "losses", "draws")) == 10
            seen = lives(boxed, "Scripted 2")
            assert {gpus for _, gpus in seen} == {BOTH}
            assert len(seen) == 2, "one before its worker was killed, one after"
            farm.wait(lambda: not held.gpu_holders(), 40, "the GPUs' release")
            with match(boxed, "bad", "scripted-3", "--self-check", "--games", "2") as keeper:
                keeper.communicate(timeout=bed.PATIENCE * 2)
            assert keeper.returncode == 3, "its crashes are its own, each from a new seat"
        finally:
            lane.kill()


def test_a_box_that_nobody_names_is_no_lanes(tmp_path: pathlib.Path) -> None:
    """The worker says which box is unknown before it opens the lane."""
    told = {"FARM_REDIS_URL": "unix://none", "FARM_HALL_DIR": str(tmp_path), "FARM_LANE": "a"}
    configured = settings.from_environment(told | {"FARM_LANE_BOXES": "gpu-9"})
    with pytest.raises(errors.UsageError, match=r"FARM_LANE_BOXES: found 'gpu-9'.*FARM_BOXES"):
        lane_worker.LaneWorker(configured)
    with pytest.raises(errors.UsageError, match=r"FARM_LANE_BOXES: found '\.\./x'"):
        settings.from_environment(told | {"FARM_LANE_BOXES": "../x"})
    with pytest.raises(errors.UsageError, match=r"--lane: found 'a=0:9box'.*b=2:gpu-1"):
        supervisor.lane("a=0:9box", None, "main")  # type: ignore[arg-type]
