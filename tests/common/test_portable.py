"""What needs no Linux runs without it: season files, simulations, ratings and audits."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
GAMES = ROOT / "tests" / "data" / "tcec" / "pgn" / "TCEC_Cup_3_Bronze.pgn.gz"
ELSEWHERE = """
import os, signal, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"):
    sys.modules[name] = None  # its import fails, as on Windows
for module, names in (
    (os, "O_DIRECTORY fork geteuid getuid killpg pidfd_open pipe2 sched_getaffinity"),
    (os, "sched_setaffinity sched_setscheduler setsid"),
    (signal, "SIGKILL SIGHUP SIGSTOP pidfd_send_signal set_wakeup_fd"),
):
    for name in names.split():
        delattr(module, name)
from orchestrator.commands import main
sys.argv[0] = "farm"
main()
"""


def run(place: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a Python that lacks what only Unix has."""
    return subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *words],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rate", str(GAMES)), "White advantage"),
        (("audit", str(GAMES), "--rules", "cup"), "7 games"),
        (("check", "demo"), "Champion: the winner of Demo Final"),
        (("simulate", "demo", "--seed", "1"), "Champion: "),
        (("forecast", "demo", "--runs", "4", "--processes", "0"), "Demo League"),
        (("doctor", "--json"), "games are played on Linux alone"),
        (("new", "mine.toml", "--engines", "a,b", "--yes"), "farm season check mine.toml"),
        (
            ("new", "own.toml", "--engines", "farm-engine,farm-engine", "--yes"),
            "not started to see whether they play: farm-engine: nothing plays games here",
        ),
    ],
    ids=lambda told: told[0] if isinstance(told, tuple) else "",
)
def test_it_runs_without_what_only_unix_has(
    tmp_path: pathlib.Path, words: tuple[str, ...], said: str
) -> None:
    """The command does its work, to its end."""
    done = run(tmp_path, *words)
    assert "Traceback" not in done.stderr, done.stderr
    assert said in done.stdout, done.stderr


def test_what_needs_linux_says_so(tmp_path: pathlib.Path) -> None:
    """No traceback: where it runs, and what runs here."""
    done = run(tmp_path, "match", "stockfish", "ethereal-chess")
    assert done.returncode == 5
    assert "`farm match` runs on Linux alone" in done.stderr
    assert "Traceback" not in done.stderr
