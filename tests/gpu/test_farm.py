"""A whole farm with a GPU box: Redis, serve, hall, box, sshd, engines; the library is a fake."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import time

import boxed_farm
import harness
import pytest

from orchestrator import contract
from orchestrator.ledger import seat_store, vitals
from worker_gpu import stale_agents


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
    with boxed_farm.running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        gpu = {"competition": "gpu", "box": "box-1"}
        engines = [
            boxed_farm.engine(farm, 0),
            boxed_farm.engine(farm, 1),
            boxed_farm.engine(farm, 2, "--delay-ms", "20", **gpu),
            boxed_farm.engine(farm, 3, **gpu),
        ]
        farm.launch(boxed_farm.season17(tmp_path / "s17.toml", engines, "20s+1s"), "s17")
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


def kinds(boxed: boxed_farm.Boxed, season: str) -> list[str]:
    """Return the kinds of a season's journaled facts, in their order."""
    return [entry.kind for entry in boxed.farm.ledger.read(season)]


def command(boxed: boxed_farm.Boxed, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ``farm`` as an operator of the hall's host does."""
    program = [sys.executable, "-c", "from orchestrator.commands import main; main()", *words]
    environment = dict(boxed.farm.worker.environment)
    return subprocess.run(
        program, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.long
def test_a_season_survives_its_gpu_box(tmp_path: pathlib.Path, nvml: pathlib.Path) -> None:
    """A hot GPU, a killed hall, a killed box and a rejoined link never cost an engine a game."""
    with boxed_farm.running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        boxed.site.gpus.write_text(boxed_farm.HEALTHY.replace(" 50 ", " 95 "))
        farm.launch(boxed_farm.league(boxed), "gpu")
        farm.wait(lambda: bool(boxed_farm.evidence(boxed, "gpu")), 40, "a refusal")
        assert (
            "RTX-2080 GPU-bbbb is too hot: 95 °C, allowed 83"
            in boxed_farm.evidence(boxed, "gpu")[0]
        )
        boxed.site.gpus.write_text(boxed_farm.HEALTHY)
        boxed_farm.playing(boxed)
        refused = len(boxed_farm.evidence(boxed, "gpu"))
        assert harness.kill(harness.link_pid(farm), signal.SIGKILL)
        farm.wait(lambda: len(boxed_farm.evidence(boxed, "gpu")) > refused, 40, "the interruption")
        boxed_farm.playing(boxed, after=boxed.interrupted_at("gpu"))
        boxed.site.worker.kill()  # the box's worker: its agents and their engines play on
        before = len(boxed_farm.evidence(boxed, "gpu"))
        farm.wait(lambda: "game_finished" in kinds(boxed, "gpu"), 40, "the game's end")
        assert len(boxed_farm.evidence(boxed, "gpu")) == before
        boxed.site.worker.start()
        farm.finish("gpu", 90)
        records = boxed.records("gpu")
        assert len(records) == 2
        assert all(record.outcome.ending is contract.Ending.MAX_MOVES for record in records)
        holders = seat_store.RedisSeats(farm.ledger.server).gpu_holders
        farm.wait(lambda: not holders(), 40, "the GPUs' release")
        farm.wait(lambda: "host-of-box-1" in vitals.read(farm.ledger), 40, "the box's vitals")
        assert len(vitals.read(farm.ledger)["host-of-box-1"].gpus) == 2


@pytest.mark.long
def test_a_box_that_stands_still_loses_nobody_a_game(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """A flag in a stall of the box is an interruption with its figures (S16-15b)."""
    with boxed_farm.running(tmp_path, nvml) as boxed:
        farm, gate = boxed.farm, tmp_path / "gate"
        with harness.held(gate, 4) as hold:
            farm.launch(boxed_farm.league(boxed, 1, *hold, control="2500ms"), "gpu")
            harness.stands(gate)
            with harness.frozen(stale_agents.Runs(boxed.site.box.farm).engines()):
                time.sleep(3.2)  # below the grace, beyond the clock
        farm.finish("gpu", 90)
        records, whys = boxed.records("gpu"), boxed_farm.evidence(boxed, "gpu")
    assert whys[0].startswith("host stall: ")
    assert "GPU box box-1, host in the last" in whys[0]
    assert all(record.outcome.ending is contract.Ending.MAX_MOVES for record in records)


def test_an_event_is_rehearsed_and_begins_on_equal_terms_only(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """A host out of its recorded band holds the hall with the figures; a rehearsal tells all."""
    with boxed_farm.running(tmp_path, nvml) as boxed:
        recorded = command(boxed, "bench-host", "--record", "--json")
        assert recorded.returncode == 0, recorded.stderr
        figures = json.loads(recorded.stdout)["hosts"]
        # Both hosts have one clock here: what it seems to be off is within the way there and back.
        assert abs(figures["box-1"]["offset_ms"]) < figures["box-1"]["rtt_ms"]
        band = boxed.farm.root / "halls" / harness.HALL / "band.json"
        told = json.loads(band.read_bytes())
        told["hosts"]["box-1"]["nps"] *= 10
        band.write_text(json.dumps(told))
        boxed.farm.launch(boxed_farm.league(boxed, 1, "--fault", "crash@6"), "gpu")
        boxed.farm.wait(lambda: bool(boxed.held()), 40, "the gate")
        assert "fairness gate before l1-gpu: " in boxed.held()
        assert "box-1: " in boxed.held()
        assert "of the recorded" in boxed.held()
        assert not boxed_farm.evidence(boxed, "gpu"), "no game was begun"
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
        boxed.site.gpus.write_text(boxed_farm.HEALTHY.replace(" 50 ", " 95 "))
        refused = command(boxed, "rehearse", "l1-gpu", "--moves", "1")
        assert refused.returncode == 5
        assert "too hot: 95 °C" in refused.stderr


@pytest.mark.long
def test_a_gpu_that_is_lost_in_a_game_is_no_crash(
    tmp_path: pathlib.Path, nvml: pathlib.Path
) -> None:
    """An engine that dies with its GPU is interrupted; the game goes on when the GPU is back."""
    with boxed_farm.running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        farm.launch(boxed_farm.league(boxed, 300), "gpu")
        boxed_farm.playing(boxed)
        boxed.site.gpus.write_text(boxed_farm.HEALTHY.splitlines()[0] + "\n")
        assert harness.kill(boxed_farm.identity(boxed.site, "GPU-bbbb")["engine"], signal.SIGKILL)
        farm.wait(lambda: len(boxed_farm.evidence(boxed, "gpu")) > 1, 60, "the refusal")
        lost, refused = boxed_farm.evidence(boxed, "gpu")[:2]
        boxed.site.gpus.write_text(boxed_farm.HEALTHY)
        farm.finish("gpu", 90)
        records = boxed.records("gpu")
    assert lost.startswith("host: ")
    assert "signal SIGKILL" in lost
    assert "box-1: GPU GPU-bbbb: the driver shows it no more" in lost
    assert "GPU GPU-bbbb is missing; the driver shows GPU-aaaa" in refused
    assert [record.outcome.ending for record in records] == [contract.Ending.MAX_MOVES] * 2


@pytest.mark.long
def test_a_rehearsal_tells_of_every_engine(tmp_path: pathlib.Path, nvml: pathlib.Path) -> None:
    """A file that the box lacks hides no fault of the others: all is told, with exit code 5."""
    with boxed_farm.running(tmp_path, nvml) as boxed:
        farm = boxed.farm
        gpu = {"competition": "gpu", "box": "box-1"}
        engines = [
            boxed_farm.engine(farm, 0, **gpu, network="missing.pb"),
            boxed_farm.engine(farm, 1, **gpu),
            boxed_farm.engine(farm, 2, "--fault", "illegal@1"),
            boxed_farm.engine(farm, 3),
        ]
        farm.launch(boxed_farm.season17(tmp_path / "s17.toml", engines, "20s+1s"), "s17")
        assert command(boxed, "pause", "--reason", "rehearsal").returncode == 0
        farm.wait(lambda: not farm.ledger.offered(harness.HALL), 20, "the pause")
        farm.wait(lambda: farm.ledger.slot(harness.HALL) is None, 40, "the game's end")
        done = command(boxed, "rehearse", "playoff", "--moves", "2", "--json")
    assert done.returncode == 5, done.stderr
    rows = {row["engine"]: row for row in json.loads(done.stdout)["engines"]}
    assert "missing.pb) is not on this box" in rows["scripted-0"]["problem"]
    assert "illegal" in rows["scripted-2"]["problem"]
    assert rows["scripted-3"]["problem"] == ""
    assert "scripted-0: not played: box-1: " in done.stderr
    assert "scripted-2: " in done.stderr
