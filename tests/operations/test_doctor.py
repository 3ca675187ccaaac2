"""``farm doctor`` and ``farm preflight``: what they find, what they say to do, what is kept."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

import click.testing
import harness
import pytest

from orchestrator import commands, contract
from orchestrator.commands import paths, starts
from orchestrator.ledger import api, store, vitals
from orchestrator.ops.doctor import farm as checks
from orchestrator.ops.doctor import season as season_checks
from worker_cpu.hall import directory
from worker_cpu.worker import doctor as worker_doctor


class Ground:
    """A Redis, a data directory, and a way to run commands on both."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Start Redis."""
        self.root = root
        self.redis = harness.Redis(root / "redis")
        self.redis.start()
        self.ledger = store.connect(self.redis.url)
        for name, value in (
            ("FARM_REDIS_URL", self.redis.url_of(harness.OPERATOR)),
            ("FARM_DATA", str(root)),
        ):
            monkeypatch.setenv(name, value)

    def run(self, *words: str) -> click.testing.Result:
        """Run a command of the farm."""
        return click.testing.CliRunner().invoke(commands.farm, list(words))

    def paused(self, engines: list[dict[str, Any]]) -> None:
        """Launch a league of these engines, and pause it for their trial."""
        farm = harness.Farm(self.root)
        farm.ledger = self.ledger
        farm.launch(harness.league(self.root / "s.toml", engines), "s")
        done = self.run("pause", "--reason", "preflight")
        assert done.exit_code == 0, done.output


@pytest.fixture
def ground(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ground]:
    """Return a started ground."""
    made = Ground(tmp_path, monkeypatch)
    yield made
    made.ledger.close()
    made.redis.stop()


def findings_of(text: str) -> dict[str, dict[str, str]]:
    """Return the findings of a JSON report by area and name."""
    whole = json.loads(text[: text.rindex("}") + 1])
    return {f"{one['area']} {one['name']}": one for one in whole["findings"]}


def test_every_failure_says_why_and_what_to_do(ground: Ground) -> None:
    """A Redis that may lose facts and a silent host fail; exit code 3 names them."""
    with ground.ledger.server.asked():
        ground.ledger.server.client.config_set("appendfsync", "everysec")
    ground.ledger.set_vitals("cpu", vitals.Vitals(host="cpu", at_ms=1, version="0").encode())
    done = ground.run("doctor", "--json")
    told = findings_of(done.stdout)
    assert done.exit_code == 3
    for name in ("redis appendfsync", "host cpu: alive", "versions farm"):
        assert told[name]["status"] == "failed", name
        assert name in done.stderr
    assert all(one["why"] for one in told.values())
    assert all(one["do"] for one in told.values() if one["status"] in {"failed", "warning"})


def test_the_list_of_hosts_says_what_disturbs_one(ground: Ground) -> None:
    """A host that is not quiet: how much of its cores others use, what is swapped."""
    loud = {"quiet": False, "foreign_cpu_ratio": 0.37, "swap_used_bytes": 12 << 20}
    for name, told in (("loud", loud), ("calm", {"quiet": True, "foreign_cpu_ratio": 0.01})):
        beat = vitals.Vitals.model_validate({"host": name, "at_ms": 1} | told)
        ground.ledger.set_vitals(name, beat.encode())
    done = ground.run("host", "list")
    shown = " ".join(done.output.replace("│", " ").split())
    assert "NO, 37%" in shown, done.output
    assert "12 MiB" in shown, done.output
    assert shown.count("NO") == 1
    assert "yes" in shown


def test_a_host_whose_hall_was_drained_fails_nothing(ground: Ground) -> None:
    """Its silence is wanted, and the line says by which drain."""
    ledger = ground.ledger
    ledger.set_vitals("cpu", vitals.Vitals(host="cpu", at_ms=1, hall="hall-2").encode())
    ledger.open_hall("hall-2", "cpu", "first")
    assert (
        findings_of(ground.run("doctor", "--json").stdout)["host cpu: alive"]["status"] == "failed"
    )
    assert ground.run("drain", "hall-2", "--reason", "upgrade").exit_code == 0
    alive = findings_of(ground.run("doctor", "--json").stdout)["host cpu: alive"]
    assert (alive["status"], "hall-2 is drained (upgrade)" in alive["found"]) == ("ok", True)


def test_a_sound_farm_passes(ground: Ground) -> None:
    """With Redis as it should be nothing of Redis fails; the table names every area."""
    done = ground.run("doctor", "--only", "redis")
    assert done.exit_code == 0, done.output
    assert "appendfsync always" in done.output
    done = ground.run("doctor", "--json")
    assert {"redis", "versions", "here"} <= {
        one["area"] for one in findings_of(done.stdout).values()
    }


def test_without_a_farm_the_machine_is_checked(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a first season needs of it is told before there is one; the rest is said to wait."""
    monkeypatch.chdir(tmp_path)
    for name in ("FARM_REDIS_URL", "FARM_REDIS_URL_FILE", "FARM_DATA"):
        monkeypatch.delenv(name, raising=False)
    engine = tmp_path / "bin" / "stockfish"
    engine.parent.mkdir()
    engine.write_text("#!/bin/sh\n")
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{engine.parent}:/usr/bin:/bin")
    done = click.testing.CliRunner().invoke(commands.farm, ["doctor", "--json"])
    told = findings_of(done.stdout)
    assert (told["farm running"]["status"], "farm up" in told["farm running"]["do"]) == (
        "unknown",
        True,
    )
    assert "stockfish" in told["here engines"]["found"]
    wanted = {"here sandbox", "here cores", "here disk", "here speed", "here real-time priority"}
    assert wanted <= told.keys()
    assert told["here speed"]["status"] == "ok", told["here speed"]  # no game can be in play
    failed = any(finding["status"] == "failed" for finding in told.values())
    assert done.exit_code == (3 if failed else 0), done.output
    assert not (tmp_path / ".farm").exists()


def test_preflight_starts_each_engine_and_is_kept_with_the_event(ground: Ground) -> None:
    """A good engine plays its two plies, one that is missing fails; the report is journaled."""
    good = harness.scripted(ground.root / "life", 2)
    bad = harness.scripted(ground.root / "life", 1)
    bad["command"] = ["/nonexistent/engine"]
    ground.paused([good, bad])
    done = ground.run("preflight", "league", "--json")
    told = findings_of(done.stdout)
    assert done.exit_code == 3
    assert told["engine scripted-2"]["status"] == "ok", told["engine scripted-2"]
    assert told["engine scripted-1"]["status"] == "failed"
    [path] = (ground.root / "archive" / "s" / "preflight").glob("league-*.json")
    fact = ground.ledger.read(api.FARM)[-1]
    assert fact.kind == "preflight_done"
    assert fact.data["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert "engine scripted-1" in fact.data["failed"]


def test_preflight_says_whom_it_starts(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each engine's start may take seconds: nobody waits for them without a word."""
    ground.paused([harness.scripted(ground.root / "life", number) for number in (1, 2)])
    shown: list[tuple[list[str], bool]] = []

    def watched(
        named: Sequence[tuple[str, contract.GameOrder]], *, quiet: bool
    ) -> Iterator[contract.GameOrder]:
        shown.append(([name for name, _ in named], quiet))
        yield from (order for _, order in named)

    monkeypatch.setattr(starts, "shown", watched)
    for words, quiet in (([], False), (["--json"], True)):
        ground.run("preflight", "league", *words)
        assert shown[-1] == (["Scripted 1", "Scripted 2"], quiet)


def test_a_desk_is_no_hall_and_keeps_no_report(
    ground: Ground, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cores are nobody's, and a folder left there would make it look like a farm's host."""
    ground.paused([harness.scripted(ground.root / "life", number) for number in (1, 2)])
    ground.ledger.open_hall("hall-1", "cpu1.example.org", "first")
    desk = tmp_path / "desk"
    desk.mkdir()
    monkeypatch.chdir(desk)
    monkeypatch.delenv("FARM_DATA")
    monkeypatch.setattr(paths, "at_desk", lambda: True)  # this Redis is on this machine
    before = ground.ledger.read(api.FARM)
    done = ground.run("preflight", "league", "--json")
    assert "no report is kept: the archive is not on this machine" in done.stderr
    assert json.loads(done.stdout)["file"] is None
    assert ground.ledger.read(api.FARM) == before
    for told in (done, ground.run("doctor", "--json")):
        here = [name for name in findings_of(told.stdout) if name.startswith("here ")]
        assert here == ["here desk"]
    assert list(desk.iterdir()) == []


def test_engines_that_could_not_be_started_are_not_ready(ground: Ground) -> None:
    """Beside a game nothing is known of them: a script that opens the gate then has to wait."""
    ground.paused([harness.scripted(ground.root / "life", number) for number in (1, 2)])
    with directory.HallDirectory(ground.root / "halls" / "hall-1").locked(1) as lock:
        assert lock is not None
        done = ground.run("preflight", "league")
    assert done.exit_code == 3, done.output
    assert "scripted-1 (not started), scripted-2 (not started)" in done.output
    assert max(map(len, done.stdout.splitlines())) <= 120, "through ssh there is no terminal"


def test_no_speed_is_measured_beside_a_game(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the hall's lock or by the ledger: no bench, no reference; both when it is free again."""
    monkeypatch.setenv("FARM_HOST", "here")
    kept = directory.HallDirectory(ground.root / "halls" / "hall-1")
    bench = kept.root / "bench.json"
    told: list[contract.Finding] = []
    with kept.locked(1) as lock:
        assert lock is not None
        told += _speed({})
    with kept.lane_locked("a", 1) as lock:
        assert lock is not None
        told += _speed({})
    told += _speed({"here": "league.7"})
    assert {one.status for one in told} == {"unknown"}
    assert all("not benched" in one.found for one in told)
    assert "league.7" in told[-1].found
    assert not bench.exists()
    assert [one.status for one in _speed({"elsewhere": "league.7"})] == ["ok"]
    assert json.loads(bench.read_text())["reference"] > 0


def test_the_first_speed_is_compared_with_nothing(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No hall's folder, no figure is kept; with one, later ones are held to the first."""
    hall = tmp_path / "hall"
    monkeypatch.setenv("FARM_HALL_DIR", str(hall))
    assert [one.found.partition(": ")[2] for one in _speed({})] == [f"no hall at {hall}"]
    hall.mkdir()
    assert _speed({})[0].found.endswith("the first figure: kept to compare the next ones with")
    assert "of the recorded" in _speed({})[0].found


def _speed(in_play: dict[str, str]) -> list[contract.Finding]:
    return [one for one in worker_doctor.check(in_play) if one.name == "speed"]


def _here(name: str) -> contract.Finding:
    return next(one for one in worker_doctor.check({}) if one.name == name)


def test_cores_are_apart_and_this_process_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """None set aside is a warning; those of others, or both the referee's and engines', fail."""
    here = sorted(os.sched_getaffinity(0))
    cases = [
        ("", "", "warning", "no cores are set aside"),
        (here[0], here[-1] + 1, "failed", f"cores [{here[-1] + 1}] are not this process'"),
        (here[0], here[0], "failed", f"cores [{here[0]}] are assigned to both"),
    ]
    if len(here) > 1:
        cases.append((here[0], here[1], "ok", "1 for engines, 1 for the referee"))
    for referee, engines, status, words in cases:
        monkeypatch.setenv("FARM_REFEREE_CPUS", str(referee))
        monkeypatch.setenv("FARM_ENGINE_CPUS", str(engines))
        told = _here("cores")
        assert told.status == status, told
        assert words in told.found


def test_the_time_of_day_is_told_as_it_is() -> None:
    """A clock that is kept, one that is not, and one of which the kernel says nothing."""
    told = _here("time of day")
    ways = {"ok": "kept", "warning": "not kept", "unknown": "this kernel does not tell"}
    assert told.found == ways[told.status]


def test_a_core_that_does_not_answer_is_left_out(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A core that is offline has a governor's file that cannot be read: here it is a folder."""
    cpu = tmp_path / "devices/system/cpu"
    (cpu / "cpu0/cpufreq").mkdir(parents=True)
    (cpu / "cpu0/cpufreq/scaling_governor").write_text("performance\n")
    (cpu / "cpu1/cpufreq/scaling_governor").mkdir(parents=True)
    monkeypatch.setenv("FARM_SYSFS", str(tmp_path))
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    told = _here("governor")
    assert (told.status, told.found) == ("ok", "performance")


def test_missing_tables_are_counted(tmp_path: pathlib.Path) -> None:
    """Of the 145 tables to five men the ones that are not there are told."""
    (tmp_path / "KQvK.rtbw").touch()
    (tmp_path / "KQRBNvKQ.rtbw").touch()
    told = season_checks._tables("x", season_checks.count(str(tmp_path), 5), 5)
    assert (told.status, told.found) == ("failed", "1 tables to 5 men, 144 missing")


def test_a_throttled_gpu_fails() -> None:
    """What a host tells of its GPUs is judged."""
    gpu = vitals.Gpu(index=0, uuid="u", throttled=True)
    told = {"box": vitals.Vitals(host="box", at_ms=5, gpus=(gpu,))}
    judged = {one.name: one for one in checks.hosts(told, 6)}
    assert judged["box: GPU 0"].status == "failed"
    assert judged["box: alive"].status == "ok"
