"""``farm up``: everything on one machine, started, kept alive, ended, started again."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.request

import harness
import pytest

from orchestrator import embedded, errors
from orchestrator.commands import common, serve_web
from orchestrator.ledger import store


def up(root: pathlib.Path, *words: str, web: bool = False) -> subprocess.Popen[str]:
    """Start ``farm up`` on a data directory."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FARM_")}
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "orchestrator",
            "farm",
            "up",
            "--data",
            str(root),
            "--json",
            *(() if web else ("--no-web",)),
            *words,
        ],
        env=environment | harness.LEASE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def season(root: pathlib.Path, *extra: str) -> str:
    """Write a season of scripted engines."""
    engines = [harness.scripted(root / "life.jsonl", strength, *extra) for strength in range(4)]
    return str(harness.league(root / "season.toml", engines))


def left(root: pathlib.Path) -> list[int]:
    """Return the processes that still know the data directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            text = harness.command(int(entry.name))
            if str(root) in text and harness.alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def gone(root: pathlib.Path) -> bool:
    """Wait for the last process; a dead man may need a moment."""
    deadline = time.monotonic() + 10
    while left(root) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not left(root)


def in_flight(root: pathlib.Path) -> bool:
    """Say whether a game holds the hall."""
    url = embedded.running_url(root / common.REDIS)
    if url is None:
        return False
    with contextlib.suppress(errors.LedgerAwayError), store.connect(url) as ledger:
        return ledger.slot(harness.HALL) is not None
    return False


def wait_for_game(root: pathlib.Path) -> None:
    """Wait until a game is in flight."""
    deadline = time.monotonic() + 30
    while not in_flight(root):
        assert time.monotonic() < deadline, "no game was started"
        time.sleep(0.05)


def test_a_season_is_played_to_its_end_and_everything_stopped(tmp_path: pathlib.Path) -> None:
    """Exit code 0, the table on standard output, the files where it says, no process left."""
    process = up(tmp_path, "--launch", season(tmp_path), "--until-finished")
    output, told = process.communicate(timeout=120)
    assert process.returncode == 0, told
    facts = json.loads(output)
    assert facts["season"]["status"] == "finished"
    assert pathlib.Path(facts["journal"]).is_file()
    assert all(pathlib.Path(path).is_file() for path in facts["pgn"])
    assert "league 12/12" in told
    assert gone(tmp_path)


def test_a_farm_that_was_told_to_end_goes_on_next_time(tmp_path: pathlib.Path) -> None:
    """SIGTERM in mid-game, even twice, leaves no process; the next start plays on to the end."""
    process = up(tmp_path, "--launch", season(tmp_path, "--delay-ms", "3"))
    wait_for_game(tmp_path)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.05)
    process.send_signal(signal.SIGTERM)  # an impatient supervisor's
    _, told = process.communicate(timeout=60)
    assert "everything is stopped" in told
    assert gone(tmp_path)
    again = up(tmp_path)
    try:
        deadline = time.monotonic() + 120
        while not _finished(tmp_path):
            assert time.monotonic() < deadline, "the season did not go on"
            time.sleep(0.2)
    finally:
        again.send_signal(signal.SIGINT)
        again.communicate(timeout=60)
    assert gone(tmp_path)


def test_what_dies_is_started_again(tmp_path: pathlib.Path) -> None:
    """A SIGKILL of Redis, serve and worker in turn does not stop the season."""
    process = up(tmp_path, "--launch", season(tmp_path, "--delay-ms", "2"), "--until-finished")
    wait_for_game(tmp_path)
    try:
        for program in (r"(redis|valkey)-server", "farm serve", "orchestrator worker"):
            pids = [p for p in _family(process.pid) if re.search(program, harness.command(p))]
            assert pids, f"{program} is not running"
            os.kill(pids[0], signal.SIGKILL)
            time.sleep(1)
    except AssertionError:
        process.terminate()
        process.communicate(timeout=60)
        raise
    output, told = process.communicate(timeout=180)
    assert process.returncode == 0, told
    assert json.loads(output)["season"]["status"] == "finished"
    assert gone(tmp_path)


def test_nobody_else_gets_the_port_of_the_page(tmp_path: pathlib.Path) -> None:
    """It is another one than a taken 8080, and is held while a page that died is started again."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(errors.HostError):  # then it is taken already
            stack.enter_context(serve_web.listen("127.0.0.1", serve_web.PORT))
        process = up(tmp_path, web=True)
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "live page is at" in line)
            address = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            assert address is not None, line
            assert f"port {serve_web.PORT} is taken" in line
            assert _status(address[0]) == 200
            (page,) = [p for p in harness.children(process.pid) if "--fd" in harness.command(p)]
            os.kill(page, signal.SIGKILL)
            with pytest.raises(errors.HostError):
                serve_web.listen("127.0.0.1", int(address[1]))
            assert _status(address[0]) == 200
        finally:
            process.terminate()
            _, told = process.communicate(timeout=60)
    assert "given up" not in told
    assert gone(tmp_path)


def _status(address: str) -> int:
    """Ask for the page; who comes while it is started waits at the socket."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        return int(answer.status)


def _family(pid: int) -> list[int]:
    found = harness.children(pid)
    return [*found, *(deeper for child in found for deeper in _family(child))]


def _finished(root: pathlib.Path) -> bool:
    url = embedded.running_url(root / common.REDIS)
    if url is None:
        return False
    with contextlib.suppress(errors.LedgerAwayError), store.connect(url) as ledger:
        return any(e.kind == "season_finished" for e in ledger.read("test", 0, 10_000))
    return False
