"""A worker that cannot open its hall ends with an error, and is shown to have ended."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterator, Mapping

import harness
import pytest

from orchestrator.ledger import embedded_redis, lane_store, lanes, store
from orchestrator.ops import supervisor


@pytest.fixture
def redis(tmp_path: pathlib.Path) -> Iterator[embedded_redis.EmbeddedRedis]:
    """Run a Redis of this test's own."""
    server = embedded_redis.EmbeddedRedis(tmp_path / "redis")
    server.start()
    yield server
    server.stop()


def ended(
    command: list[str], environment: Mapping[str, str], tmp_path: pathlib.Path
) -> tuple[int, str]:
    """Start a worker; return its exit code once it has ended by itself, and its log."""
    log = tmp_path / "worker.log"
    log.unlink(missing_ok=True)
    worker = supervisor.Supervised("worker", command, environment, log)
    worker.start()
    try:
        harness.wait(lambda: not worker.running, "the worker to end")
    finally:
        worker.kill()
    assert worker.process is not None
    return worker.process.returncode, log.read_text()


def worker_environment(
    redis: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path
) -> dict[str, str]:
    """Return the environment of a hall's worker on the host ``new``."""
    environment = supervisor.environment(redis.url, tmp_path, "hall-1")
    return environment | {"FARM_HOST": "new", "FARM_LOG": "json"}


def test_a_hall_without_its_sandbox_ends_its_worker(
    redis: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path
) -> None:
    """Exit code 5, the reason in log and ``farm status``; a start that opens takes it back."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bwrap").symlink_to("/bin/false")
    environment = worker_environment(redis, tmp_path)
    broken = environment | {
        "FARM_SANDBOX": "bubblewrap",
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{environment['PATH']}",
    }
    code, log = ended(supervisor.worker_command("hall-1"), broken, tmp_path)
    assert code == 5, log
    assert "no bubblewrap sandbox works on this host" in log
    shown = harness.run_farm(environment, "status").stdout
    assert "the worker on new ended, it cannot open this hall: no bubblewrap sandbox" in shown
    (hall,) = json.loads(harness.run_farm(environment, "status", "--json").stdout)["halls"]
    assert "bubblewrap" in hall["problems"]["new"]
    whole = environment | {"FARM_SANDBOX": "plain", "FARM_BEAT_SECONDS": "0.3"}
    worker = supervisor.Supervised(
        "worker", supervisor.worker_command("hall-1"), whole, tmp_path / "whole.log"
    )
    worker.start()
    try:
        harness.wait(
            lambda: "cannot open" not in harness.run_farm(environment, "status").stdout,
            "the hall to be open",
        )
    finally:
        worker.kill()


def test_a_hall_of_another_host_ends_its_worker(
    redis: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path
) -> None:
    """Two hosts of one name for their halls: the second one ends and says what to set."""
    ledger = store.connect(redis.url)
    ledger.open_hall("hall-1", "old", "old/hall-1/1")
    ledger.close()
    environment = worker_environment(redis, tmp_path) | {"FARM_SANDBOX": "plain"}
    code, log = ended(supervisor.worker_command("hall-1"), environment, tmp_path)
    assert code == 3, log
    assert "hall hall-1 belongs to host old" in log
    assert "FARM_HOST=old" in log
    assert "belongs to host old" in harness.run_farm(environment, "status").stdout


def test_a_lane_on_cores_of_another_ends_its_worker(
    redis: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path
) -> None:
    """It says which lane has them, and how one that is no more is forgotten."""
    with store.connect(redis.url) as ledger:
        known = lane_store.RedisLanes(ledger.server)
        known.open_lane(lanes.Lane("hall-1", "old", "new", frozenset(harness.CORES[:1]), 64))
    environment = worker_environment(redis, tmp_path)
    environment |= {
        "FARM_SANDBOX": "plain",
        "FARM_LANE": "a",
        "FARM_ENGINE_CPUS": str(harness.CORES[0]),
    }
    code, log = ended(supervisor.worker_command("hall-1", "a"), environment, tmp_path)
    assert code == 3, log
    assert "farm host lanes --close hall-1.old" in log


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"FARM_ENGINE_CPUS": "some"}, "FARM_ENGINE_CPUS"),
        ({"FARM_REDIS_URL": ""}, "FARM_REDIS_URL"),
        ({"FARM_BOXES": "/nowhere/boxes.toml"}, "/nowhere/boxes.toml"),
        ({"FARM_LANE": "a", "FARM_ENGINE_CPUS": ""}, "FARM_ENGINE_CPUS"),
        ({"FARM_REDIS_PASSWORD_FILE": "/nowhere/password"}, "/nowhere/password"),
    ],
)
def test_wrong_settings_end_a_worker(
    redis: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path, wrong: dict[str, str], word: str
) -> None:
    """The setting is named in the log; the exit code is not 0, so that nobody takes it for well."""
    code, log = ended(
        supervisor.worker_command("hall-1"), worker_environment(redis, tmp_path) | wrong, tmp_path
    )
    assert code in {2, 5}, log
    assert word in log


def test_wrong_settings_end_a_box(
    redis: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path
) -> None:
    """A GPU box that cannot be opened is no service that waits for ever."""
    environment = worker_environment(redis, tmp_path) | {
        "FARM_BOX_MEMORY_MB": "much",
        "FARM_BOX_DIR": str(tmp_path / "box"),
    }
    code, log = ended(supervisor.box_command("gpu-1"), environment, tmp_path)
    assert code == 2, log
    assert "FARM_BOX_MEMORY_MB" in log
