"""The checker itself: a fence, a lock, a dead man or a journal broken on purpose is found."""

from __future__ import annotations

import contextlib
import json
import pathlib
import signal
import sys
from collections.abc import Iterator

import checker
import faults
import harness
import pytest

# A wrapper that takes back what the dead man asked of the kernel: to die with him.
IMMORTAL = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def _launch(farm: harness.Farm, *, immortal: bool = False) -> None:
    """Launch a season of slow engines and wait for its first game."""
    words = ("--delay-ms", "30", *(("--fault", "ignore-quit") if immortal else ()))
    entries = [harness.scripted(farm.life, strength, *words) for strength in range(4)]
    if immortal:
        for entry in entries:
            entry["command"] = [sys.executable, "-c", IMMORTAL, *entry["command"]]
    farm.launch(harness.league(farm.root / "season.toml", entries), "broken")
    farm.wait(lambda: _plies(farm) >= 2, 30, "two moves of the first game")


def _plies(farm: harness.Farm) -> int:
    slot = farm.ledger.slot(harness.HALL)
    return len(farm.ledger.plies(slot.attempt)) if slot else 0


def _guards(farm: harness.Farm) -> list[int | None]:
    """Return link and dead man: without them nobody ends the engines of the game in flight."""
    return [harness.game_process(farm, "engines/supervisor.py"), harness.link_pid(farm)]


@contextlib.contextmanager
def _intruder(farm: harness.Farm, data: pathlib.Path) -> Iterator[None]:
    """Run a second worker of the hall."""
    worker = farm.second_worker(data)
    try:
        yield
    finally:
        worker.kill()


def _overlap(life: pathlib.Path) -> bool:
    try:
        checker.check_lives(life)
    except AssertionError:
        return True
    except json.JSONDecodeError:
        pass  # a line is being written
    return False


def _expect_overlap(farm: harness.Farm) -> None:
    farm.wait(lambda: _overlap(farm.life), 40, "an overlap")
    with pytest.raises(AssertionError, match="overlap"):
        checker.check_lives(farm.life)


def test_a_dead_man_with_the_number_of_an_earlier_one_is_another(tmp_path: pathlib.Path) -> None:
    """Long storms use up all numbers of processes: two attempts are not one long life."""
    attempts = ((7, "100", 0), (8, "200", 100), (7, "300", 200))  # parent, its start, time
    life = tmp_path / "life.jsonl"
    facts = [
        {"pid": 20, "parent": parent, "parent_started": start, "event": event, "t": t + later}
        for parent, start, t in attempts
        for event, later in (("start", 0), ("alive", 50))
    ]
    life.write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    assert checker.check_lives(life) == len(attempts)
    facts[-2] |= {"t": 120}
    life.write_text("".join(json.dumps(fact) + "\n" for fact in facts))
    assert _overlap(life)


@pytest.mark.chaos
def test_the_checker_sees_a_broken_fence(tmp_path: pathlib.Path) -> None:
    """A slot taken away behind the scripts' back lets a second hall play: that is found."""
    with harness.running(tmp_path) as farm:
        _launch(farm)
        elsewhere = tmp_path / "elsewhere"  # a lock file of its own
        with harness.frozen(_guards(farm)), _intruder(farm, elsewhere):
            farm.delete_slot()
            _expect_overlap(farm)


@pytest.mark.chaos
def test_the_checker_sees_a_broken_lock(tmp_path: pathlib.Path) -> None:
    """With the lock file gone a second worker of the host settles a living attempt: found."""
    with harness.running(tmp_path) as farm:
        _launch(farm)
        with harness.frozen(_guards(farm)):
            (tmp_path / "halls" / harness.HALL / "lock").unlink()
            with _intruder(farm, tmp_path):
                _expect_overlap(farm)


@pytest.mark.chaos
def test_the_checker_sees_a_broken_dead_man(tmp_path: pathlib.Path) -> None:
    """Engines that outlive their dead man meet those of the next attempt: found."""
    with harness.running(tmp_path) as farm:
        try:
            _launch(farm, immortal=True)
            dead_man = harness.game_process(farm, "engines/supervisor.py")
            harness.kill(dead_man, signal.SIGSTOP)
            harness.kill(harness.referee_pid(farm), signal.SIGKILL)  # it would kill them, too
            harness.kill(dead_man, signal.SIGKILL)
            _expect_overlap(farm)
        finally:
            farm.worker.kill()
            with contextlib.suppress(FileNotFoundError):
                faults.reap_orphans(farm.life)


@pytest.mark.chaos
def test_the_checker_sees_a_game_counted_twice(tmp_path: pathlib.Path) -> None:
    """A second result of a game in the journal, written past the scripts, is found."""
    with harness.running(tmp_path) as farm:
        engines = [harness.scripted(farm.life, strength) for strength in range(2)]
        farm.launch(harness.league(tmp_path / "season.toml", engines, final_games=2), "twice")
        farm.finish("twice")
    checker.check_season(farm.archive, "twice")
    mirror = farm.archive / "twice" / "journal.jsonl"
    lines = mirror.read_text().splitlines()
    place = next(n for n, line in enumerate(lines) if '"game_finished"' in line)
    doubled = [*lines[: place + 1], *lines[place:]]
    renumbered = [json.loads(line) | {"seq": n} for n, line in enumerate(doubled, start=1)]
    mirror.write_text("".join(json.dumps(line) + "\n" for line in renumbered))
    with pytest.raises(Exception, match=r"result already|counted twice"):
        checker.check_season(farm.archive, "twice")
