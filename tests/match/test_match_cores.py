"""The cores of matches that run side by side: one lock a CPU for the whole machine."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import pytest
import table

from worker_cpu.match import command, cores

HOLDER = """
import json, pathlib, sys
from worker_cpu.match import cores
cores.LOCKS = (pathlib.Path(sys.argv[1]),)
with cores.held(int(sys.argv[2]), 1, frozenset()) as share:
    print(json.dumps([sorted(cpu for lane in share.lanes for cpu in lane.engines),
                      sorted(share.busy)]), flush=True)
    sys.stdin.read()
"""
CPUS = sorted(os.sched_getaffinity(0))


@pytest.fixture
def locks(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a folder of locks that every user could write to."""
    folder = tmp_path / "locks"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(cores, "LOCKS", (folder,))
    return folder


@contextlib.contextmanager
def match(folder: pathlib.Path, games: int) -> Iterator[tuple[list[int], list[int]]]:
    """Hold the cores of a match in another process; yield its games' CPUs and the busy ones."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(folder), str(games)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        own, busy = json.loads(process.stdout.readline())
        yield own, busy
        process.stdin.close()
        process.wait()


def test_the_next_match_takes_other_cores_or_binds_nobody(locks: pathlib.Path) -> None:
    """No CPU is two matches'; who finds too few is free to run anywhere, and locks none."""
    with match(locks, len(CPUS)) as (own, busy):
        assert (own, busy) == (CPUS, [])
        with match(locks, 1) as (none, taken):
            assert (none, taken) == ([], CPUS)
    if len(CPUS) > 1:
        with match(locks, 1) as (first, _), match(locks, 1) as (second, taken):
            assert len(first) == len(second) == 1
            assert taken == first != second
            with match(locks, len(CPUS) - 1) as (none, _), match(locks, 1) as (after, _):
                assert not none
                assert len(after) == min(1, len(CPUS) - 2), "what was too little is free again"
    with match(locks, len(CPUS)) as (own, _):
        assert own == CPUS, "a lock ends with its match"


def test_a_match_in_this_process_gives_its_cores_back(
    locks: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who calls the command goes on with all cores it had; the locks are free again."""
    monkeypatch.chdir(tmp_path)
    words = table.good_and_bad("-games", "1")
    assert command.play(words) == 0
    assert sorted(os.sched_getaffinity(0)) == CPUS
    with match(locks, len(CPUS)) as (own, _):
        assert own == CPUS


def test_a_match_says_which_cores_another_one_has(tmp_path: pathlib.Path) -> None:
    """A note names the CPUs that are taken, and what came of it."""
    folder = tmp_path / table.LOCKS
    folder.mkdir()
    folder.chmod(0o1777)
    with match(folder, len(CPUS)):
        out = table.play(tmp_path, *table.good_and_bad("-games", "1")).stdout
    told = ", ".join(map(str, CPUS))
    assert out.count("Note: games are not bound to cores: another match") == 1
    assert f"has CPU {told}, and 1 game of 1 thread needs more" in out


def test_the_folder_of_locks_is_one_that_every_user_can_write_to(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private folder is no place for locks; without any, all CPUs count as free."""
    monkeypatch.setattr(cores, "LOCKS", (tmp_path / "none", tmp_path))
    with cores.held(1, 1, frozenset()) as share:
        assert share.bound
        assert not share.busy
    assert not list(tmp_path.iterdir())


def test_a_cpu_whose_lock_cannot_be_made_counts_as_free(locks: pathlib.Path) -> None:
    """A link in the place of a lock, anybody's who may write there, ends no match."""
    (locks / f"tournament-farm-cpu-{CPUS[0]}.lock").symlink_to("nowhere")
    with cores.held(1, 1, frozenset(CPUS[:1])) as share:
        assert share.bound
        assert not share.busy
