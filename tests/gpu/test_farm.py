"""A whole farm with a GPU box: Redis, serve, hall, box, sshd, engines; the library is a fake."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import bed
import harness
import pytest

from orchestrator import contract, processes
from orchestrator.ledger import seat_store, vitals
from worker_gpu import sweeping

GRACE_SECONDS = 20  # s: a busy machine takes seconds for a handshake
LEASE = {"FARM_DEAD_MAN_SECONDS": "25", "FARM_LEASE_SECONDS": "30"}  # beyond the grace
HEALTHY = "GPU-aaaa RTX-2080-Ti 45 1545 120 0 0\nGPU-bbbb RTX-2080 50 1800 90 4 0\n"


@dataclasses.dataclass
class Boxed:
    """A farm and its GPU box."""

    farm: harness.Farm
    box: bed.Box
    worker: processes.Supervised
    gpus: pathlib.Path

    def records(self, season: str) -> list[contract.GameRecord]:
        """Return the records of all finished games."""
        found = sorted((self.farm.archive / season).rglob("record.json"))
        return [contract.GameRecord.decode(path.read_bytes()) for path in found]

    def interrupted_at(self, season: str) -> int:
        """Return the ply at which a season's last attempt ended."""
        ends = [e.data for e in self.farm.ledger.read(season) if e.kind == "attempt_ended"]
        return int(ends[-1]["ply"])

    def held(self) -> str:
        """Return why the hall is held, '' while it is not."""
        return " ".join(self.farm.ledger.holds(f"hall:{harness.HALL}").values())


@contextlib.contextmanager
def running(root: pathlib.Path, nvml: pathlib.Path, **settings: str) -> Iterator[Boxed]:
    """Run a farm whose hall knows one box."""
    with bed.loopback(root, beat_ms=300, grace_ms=GRACE_SECONDS * 1000) as box:
        boxes = root / "boxes.toml"
        boxes.write_text(
            f'[box.box-1]\naddress = "{box.address}"\nport = {box.port}\nuser = "{bed.user()}"\n'
            f'key = "{box.root / "play"}"\npush_key = "{box.root / "push"}"\n'
            f'host_key = "{box.host_key}"\nincoming = "{box.farm / "incoming"}"\n'
            f"grace_seconds = {GRACE_SECONDS}\nbeat_seconds = 0.3\n"
        )
        gpus = root / "gpus.txt"
        gpus.write_text(HEALTHY)
        with harness.running(root / "farm", LEASE | {"FARM_BOXES": str(boxes)}) as farm:
            environment = processes.environment(farm.redis.url, root, harness.HALL) | {
                "FARM_BOX": "box-1",
                "FARM_HOST": "gpu-host",  # a host of its own, as every box is
                "FARM_BOX_DIR": str(box.farm),
                "FARM_BOX_SAMPLE_SECONDS": "0.2",
                "FARM_FAKE_NVML": str(gpus),
                "LD_LIBRARY_PATH": str(nvml),
                **settings,
            }
            command = processes.box_command("box-1")
            worker = processes.Supervised("box", command, environment, root / "box.log")
            worker.start()
            try:
                yield Boxed(farm, box, worker, gpus)
            finally:
                worker.kill()
    assert bed.gone(box.farm), bed.survivors(box.farm)


def engine(farm: harness.Farm, strength: int, *extra: str, **more: Any) -> dict[str, Any]:
    """Describe a scripted engine, on the box where ``more`` says so."""
    return harness.scripted(farm.life, strength, *extra) | more


def toml(value: dict[str, Any]) -> str:
    """Write a flat table inline."""
    pairs = (
        f"{key} = {toml(v) if isinstance(v, dict) else json.dumps(v)}" for key, v in value.items()
    )
    return f"{{ {', '.join(pairs)} }}"


def season17(path: pathlib.Path, engines: list[dict[str, Any]], control: str) -> pathlib.Path:
    """Write S17's step from both Leagues 1 to the entrance playoff, small and fast."""
    ids = {
        kind: [e["id"] for e in engines if e.get("competition", "cpu") == kind]
        for kind in ("cpu", "gpu")
    }
    path.write_text(
        f"""
schema = 1
id = "s17"
name = "TCEC Season 17, small"
roster.engine = [{", ".join(map(toml, engines))}]
[[event]]
id = "l1-cpu"
name = "CPU League 1"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = {json.dumps(ids["cpu"])}
competition = "cpu"
tier = "league-1"
time_control = "{control}"
adjudication = {{ max_moves = 8 }}
promote = [{{ top = 1, to = "playoff" }}]
[[event]]
id = "l1-gpu"
name = "GPU League 1"
format = {{ kind = "round-robin", double_rounds = 1 }}
entrants = {json.dumps(ids["gpu"])}
competition = "gpu"
gpus = "each"
tier = "league-1"
time_control = "{control}"
adjudication = {{ max_moves = 8 }}
promote = [{{ top = 1, to = "playoff" }}]
[[event]]
id = "playoff"
name = "DivP Entrance Playoff"
format = {{ kind = "round-robin", double_rounds = 1 }}
time_control = "{control}"
adjudication = {{ max_moves = 8 }}
"""
    )
    return path


def visible(farm: harness.Farm) -> dict[tuple[str, str], str | None]:
    """Return what each engine was shown of the GPUs, by its game and its name."""
    facts = map(json.loads, farm.life.read_text().splitlines())
    return {(fact["game"], fact["name"]): fact["gpus"] for fact in facts}


def uuids(report: contract.EngineReport) -> str | None:
    """Return an engine's GPUs as its environment has to name them; None in the hall."""
    return ",".join(label.rpartition(" ")[2] for label in report.gpus) or None


def test_s17s_gpu_league_and_the_mixed_playoff_are_played_over_ssh(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """Both competitions and the playoff of their winners end, each move on its host's clock."""
    with running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        gpu = {"competition": "gpu", "box": "box-1"}
        engines = [
            engine(farm, 0),
            engine(farm, 1),
            engine(farm, 2, "--delay-ms", "20", **gpu),
            engine(farm, 3, **gpu),
        ]
        farm.launch(season17(tmp_path / "s17.toml", engines, "20s+1s"), "s17")
        ended = farm.finish("s17", 150)
        records, seen = boxed.records("s17"), visible(farm)
    assert ended.finished
    assert len(records) == 6
    for record in records:
        for side in ("white", "black"):
            spec = record.order.engine(side)
            report: contract.EngineReport = getattr(record, side)
            assert report.box == spec.box
            assert bool(report.gpus) == bool(spec.box)
            network = [ply.network_ns for ply in record.plies if ply.side == side]
            assert all((ns is None) == (not spec.box) for ns in network)
            assert "exit" in report.exit
            assert seen[record.order.game, spec.name] == uuids(report)
        assert record.order.seats == {}, "no address, no path of a key in a record"
        if record.order.event == "l1-gpu":
            assert [len(record.white.gpus), len(record.black.gpus)] == [1, 1], "one each"
            assert record.white.gpus != record.black.gpus
        if record.order.event == "playoff":
            boxed_side = record.white if record.white.box else record.black
            assert len(boxed_side.gpus) == 2, "all of the box's"
    assert {record.order.event for record in records} == {"l1-cpu", "l1-gpu", "playoff"}
    uses = [use for record in records for use in (*record.white.gpu_use, *record.black.gpu_use)]
    assert any(use.samples > 0 and use.sm_clock_min_hertz for use in uses)


def evidence(boxed: Boxed, season: str) -> list[str]:
    """Return why attempts of a season were given up, in their order."""
    entries = boxed.farm.ledger.read(season)
    return [
        f"{entry.data['cause']}: {entry.data['evidence']}"
        for entry in entries
        if entry.kind == "attempt_ended"
    ]


def kinds(boxed: Boxed, season: str) -> list[str]:
    """Return the kinds of a season's journaled facts, in their order."""
    return [entry.kind for entry in boxed.farm.ledger.read(season)]


def command(boxed: Boxed, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``farm`` as an operator of the hall's host does."""
    program = [sys.executable, "-c", "from orchestrator.commands import main; main()", *words]
    environment = dict(boxed.farm.worker.environment)
    return subprocess.run(
        program, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def league(
    boxed: Boxed, delay_ms: int = 100, *faults: str, control: str = "20s+1s"
) -> pathlib.Path:
    """Write a league of two engines of the box, which interruptions do not hold.

    ``faults`` are switches of the second one.
    """
    gpu = {"competition": "gpu", "box": "box-1"}
    engines = [
        engine(boxed.farm, strength, "--delay-ms", str(delay_ms), *more, **gpu)
        for strength, more in enumerate(((), faults))
    ]
    path = season17(boxed.farm.root / "league.toml", engines, control)
    head, _, events = path.read_text().partition("[[event]]")
    gpu_league = events.split("[[event]]")[1].replace(', to = "playoff"', "")
    text = f"{head}[[event]]{gpu_league}"
    text = "\n".join(line for line in text.splitlines() if not line.startswith("promote"))
    path.write_text(text.replace('id = "s17"', 'id = "gpu"\nhold_after_attempts = 50'))
    return path


@pytest.mark.long
def test_a_season_survives_its_gpu_box(tmp_path: pathlib.Path, nvml: pathlib.Path) -> None:
    """A hot GPU, a killed hall, a killed box and a rejoined link never cost an engine a game."""
    with running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        boxed.gpus.write_text(HEALTHY.replace(" 50 ", " 95 "))
        farm.launch(league(boxed), "gpu")
        farm.wait(lambda: bool(evidence(boxed, "gpu")), 40, "a refusal")
        assert "RTX-2080 GPU-bbbb is too hot: 95 °C, allowed 83" in evidence(boxed, "gpu")[0]
        boxed.gpus.write_text(HEALTHY)
        playing(boxed)
        refused = len(evidence(boxed, "gpu"))
        assert harness.kill(harness.link_pid(farm), signal.SIGKILL)
        farm.wait(lambda: len(evidence(boxed, "gpu")) > refused, 40, "the interruption")
        playing(boxed, after=boxed.interrupted_at("gpu"))
        boxed.worker.kill()  # the box's worker: its agents and their engines play on
        before = len(evidence(boxed, "gpu"))
        farm.wait(lambda: "game_finished" in kinds(boxed, "gpu"), 40, "the game's end")
        assert len(evidence(boxed, "gpu")) == before
        boxed.worker.start()
        farm.finish("gpu", 90)
        records = boxed.records("gpu")
        assert len(records) == 2
        assert all(record.outcome.ending is contract.Ending.MAX_MOVES for record in records)
        holders = seat_store.RedisSeats(farm.ledger.server).gpu_holders
        farm.wait(lambda: not holders(), 40, "the GPUs' release")
        farm.wait(lambda: "gpu-host" in vitals.read(farm.ledger), 40, "the box's vitals")
        assert len(vitals.read(farm.ledger)["gpu-host"].gpus) == 2


def playing(boxed: Boxed, after: int = 0) -> None:
    """Wait until both engines of a game on the box have moved, after the plies it began with."""

    def both_moved() -> bool:
        slot = boxed.farm.ledger.slot(harness.HALL)
        return slot is not None and len(boxed.farm.ledger.plies(slot.attempt)) >= after + 2

    boxed.farm.wait(both_moved, 40, "a game on the box")


def stand_still(boxed: Boxed, seconds: float, meanwhile: Callable[[], object]) -> None:
    """Freeze all agents and engines of the box, as its host would if it stood still."""
    running_there = sweeping.Runs(boxed.box.farm).engines()
    frozen = [pid for pid in running_there if harness.kill(pid, signal.SIGSTOP)]
    time.sleep(seconds)
    meanwhile()
    for pid in frozen:
        harness.kill(pid, signal.SIGCONT)


@pytest.mark.long
def test_a_box_that_stands_still_loses_nobody_a_game(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """A flag in a stall of the box is an interruption with its figures (S16-15b)."""
    with running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        gate = tmp_path / "gate"
        gate.touch()
        farm.launch(league(boxed, 1, "--fault", f"hold:{gate}@4", control="2500ms"), "gpu")
        playing(boxed, after=1)
        time.sleep(0.3)  # the second engine has begun its second move, and holds it
        stand_still(boxed, 3.2, gate.unlink)  # below the grace, beyond the clock
        farm.finish("gpu", 90)
        records, whys = boxed.records("gpu"), evidence(boxed, "gpu")
    assert whys[0].startswith("host stall: ")
    assert "GPU box box-1, host in the last" in whys[0]
    assert all(record.outcome.ending is contract.Ending.MAX_MOVES for record in records)


def test_an_event_is_rehearsed_and_begins_on_equal_terms_only(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """A host out of its recorded band holds the hall with the figures; a rehearsal tells all."""
    with running(tmp_path, nvml) as boxed:
        recorded = command(boxed, "bench-host", "--record", "--json")
        assert recorded.returncode == 0, recorded.stderr
        figures = json.loads(recorded.stdout)["hosts"]
        assert figures["box-1"]["rtt_ms"] > 0
        assert abs(figures["box-1"]["offset_ms"]) < 500
        band = boxed.farm.root / "halls" / harness.HALL / "band.json"
        told = json.loads(band.read_bytes())
        told["hosts"]["box-1"]["nps"] *= 10
        band.write_text(json.dumps(told))
        boxed.farm.launch(league(boxed, 1, "--fault", "crash@6"), "gpu")
        boxed.farm.wait(lambda: bool(boxed.held()), 40, "the gate")
        assert "fairness gate before l1-gpu: " in boxed.held()
        assert "box-1: " in boxed.held()
        assert "of the recorded" in boxed.held()
        assert not evidence(boxed, "gpu"), "no game was begun"
        assert command(boxed, "pause", "--reason", "rehearsal").returncode == 0
        boxed.farm.wait(lambda: not boxed.farm.ledger.offered(harness.HALL), 20, "the pause")
        done = command(boxed, "rehearse", "l1-gpu", "--moves", "2", "--json")
        assert done.returncode == 0, done.stderr
        rows = json.loads(done.stdout)["engines"]
        assert [(row["box"], row["plies"], len(row["gpus"])) for row in rows] == [
            ("box-1", 2, 1),
            ("box-1", 2, 1),
        ]
        crashed = command(boxed, "rehearse", "l1-gpu", "--moves", "3")
        assert crashed.returncode == 5
        assert "the rehearsal failed: scripted-1" in crashed.stderr
        boxed.gpus.write_text(HEALTHY.replace(" 50 ", " 95 "))
        refused = command(boxed, "rehearse", "l1-gpu", "--moves", "1")
        assert refused.returncode == 5
        assert "too hot: 95 °C" in refused.stderr
