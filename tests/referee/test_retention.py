"""What a hall keeps of its attempts: as long as is set, and whatever a spool still needs."""

from __future__ import annotations

import os
import pathlib

import pytest

from orchestrator.common import errors
from worker_cpu import settings
from worker_cpu.hall import directory as hall_directory

NOW = 100 * hall_directory.DAY_SECONDS


def aged(path: pathlib.Path, days: float) -> pathlib.Path:
    """Make a file that was last changed so many days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    stamp = NOW - days * hall_directory.DAY_SECONDS
    os.utime(path, (stamp, stamp))
    os.utime(path.parent, (stamp, stamp))
    return path


def test_only_what_is_old_and_not_spooled_is_deleted(tmp_path: pathlib.Path) -> None:
    """Old logs and scratches go, young ones and those of a spooled game stay; again is harmless."""
    directory = hall_directory.HallDirectory(tmp_path)
    old = aged(directory.ply_log("old"), 31)
    young = aged(directory.ply_log("young"), 29)
    waiting = aged(directory.protocol_log("spooled"), 31)
    (directory.spool / "spooled.spool").write_text("x")
    core = aged(directory.scratch / "crashed" / "w-1" / "core", 31)
    os.utime(directory.scratch / "crashed", (0, 0))
    fresh = aged(directory.scratch / "fresh" / "w-1" / "core", 1)
    os.utime(directory.scratch / "fresh", (0, 0))
    assert hall_directory.prune_attempts(directory, 30, NOW) == 2
    assert [path.exists() for path in (old, core, young, waiting, fresh)] == [0, 0, 1, 1, 1]
    assert not (directory.scratch / "crashed").exists()
    assert hall_directory.prune_attempts(directory, 30, NOW) == 0


def test_the_time_is_a_setting() -> None:
    """FARM_KEEP_ATTEMPTS_DAYS is read, 30 days without it; nonsense is refused by its name."""
    known = {"FARM_REDIS_URL": "redis://here"}
    assert settings.from_environment(known).keep_attempts_days == 30
    set_to = settings.from_environment(known | {"FARM_KEEP_ATTEMPTS_DAYS": "7"})
    assert set_to.keep_attempts_days == 7
    with pytest.raises(errors.UsageError, match=r"FARM_KEEP_ATTEMPTS_DAYS.*days such as"):
        settings.from_environment(known | {"FARM_KEEP_ATTEMPTS_DAYS": "long"})
    for wrong in ("-1", "nan"):
        with pytest.raises(errors.UsageError, match="FARM_KEEP_ATTEMPTS_DAYS"):
            settings.from_environment(known | {"FARM_KEEP_ATTEMPTS_DAYS": wrong})
