"""Engines by their names alone: what the words become, and a match of them."""

from __future__ import annotations

import os
import pathlib
import pty
import re
import subprocess
import sys

import chess
import pytest
import table

from orchestrator.arbiter import data, eco, openings
from orchestrator.common import errors
from worker_cpu.match import arguments, quick_match


@pytest.fixture(autouse=True)
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with two engines in the path, one of them a name that is known."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("stockfish", "mine", "phalanx"):
        protocol = "xboard" if name == "phalanx" else "uci"
        program = programs / name
        words = f"{table.ENGINES / 'scripted.py'} --name {name} --protocol {protocol}"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(quick_match.programs, "GAMES", str(programs))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(*words: str) -> arguments.Settings:
    """Read a command line that begins with names."""
    return arguments.read(quick_match.whole(words))


def test_names_are_a_whole_match() -> None:
    """Pairs of balanced openings, a clock, the usual early ends, and the games in a file."""
    settings = read("stockfish", "mine")
    assert [engine.spec.name for engine in settings.engines] == ["stockfish", "mine"]
    assert {(e.control.base_ms, e.control.increment_ms) for e in settings.engines} == {(5000, 50)}
    plan = settings.plan
    assert (plan.games, plan.rounds, plan.repeat) == (2, 10, 2)
    assert settings.openings is not None
    assert (settings.openings.file, settings.openings.order) == (data.BALANCED, "random")
    assert settings.adjudication.draw is not None
    assert settings.adjudication.resign is not None
    assert settings.pgn == pathlib.Path("farm-match.pgn")
    assert 1 <= settings.concurrency <= len(os.sched_getaffinity(0))


def test_more_engines_play_fewer_rounds_and_xboard_is_known_by_name(place: pathlib.Path) -> None:
    """A path is as good as a name; two of one name are told apart."""
    settings = read("stockfish", str(place / "bin" / "mine"), "phalanx", "mine")
    assert [e.spec.name for e in settings.engines] == ["stockfish", "mine", "phalanx", "mine_2"]
    assert [e.spec.protocol for e in settings.engines] == ["uci", "uci", "xboard", "uci"]
    assert settings.plan.rounds == 2  # of six encounters in two games each


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-each tc=1+0.01", "tc=5+0.05"),
        ("-each nodes=100", "tc=5+0.05"),
        ("-rounds 3", "-rounds 10"),
        ("-games 4", "-games 2"),
        ("-variant fischerandom", "-openings"),
        ("-openings file=x.epd", "balanced.pgn"),
        ("-draw movenumber=1 movecount=1 score=1", "movenumber=34"),
        ("-pgnout g.pgn", "farm-match.pgn"),
        ("-concurrency 7", "-concurrency 1"),
    ],
)
def test_what_is_said_by_a_switch_stays(words: str, said: str) -> None:
    """The usual word is not beside it, whatever else is still usual."""
    whole = " ".join(quick_match.whole(["stockfish", "mine", *words.split()]))
    assert whole.endswith(words)
    assert said not in whole
    assert "-engine cmd=" in whole


def test_a_name_that_is_no_program_is_refused_with_those_that_are() -> None:
    """The error says where it was looked for, which names there are, and the nearest of them."""
    with pytest.raises(errors.UsageError, match=r"'stokfish' in PATH.*mean stockfish.*phalanx"):
        quick_match.whole(["mine", "stokfish"])
    with pytest.raises(errors.UsageError, match=r"two or more.*found here: stockfish"):
        quick_match.whole(["mine", "-rounds", "2"])


def test_switches_alone_are_left_as_they_are() -> None:
    """A command line of cutechess-cli is nobody's but its author's."""
    words = ["-engine", "cmd=a", "-engine", "cmd=b", "-each", "tc=1"]
    assert quick_match.whole(words) == words
    assert quick_match.whole(["-resume", "-pgnout", "g.pgn"]) == ["-resume", "-pgnout", "g.pgn"]


def test_the_bundled_book_is_read_and_has_no_line_twice() -> None:
    """Hundreds of openings of three to five moves, of all kinds, each with another position."""
    text = data.BALANCED.read_text(encoding="utf-8")
    exits = openings.parse(text, "pgn", None, "balanced.pgn")
    assert len(exits) >= 300
    assert {len(one.moves) for one in exits} == {6, 7, 8, 9, 10}
    boards = [chess.Board() for _ in exits]
    for board, one in zip(boards, exits, strict=True):
        for move in one.moves:
            board.push_uci(move)
    assert len({board.epd() for board in boards}) == len(exits)
    named = {eco.of_moves(chess.Board(), one.moves).eco[:1] for one in exits}
    assert named == {"A", "B", "C", "D", "E"}


def shown(place: pathlib.Path, *words: str) -> str:
    """Play a match to its end on a terminal; return all that stood there."""
    (place / table.LOCKS).mkdir()
    (place / table.LOCKS).chmod(0o1777)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*table.FARM, "match", *words, "-concurrency", "1"],
        cwd=place,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    ) as process:
        os.close(theirs)
        text = b""
        while True:
            try:
                text += os.read(ours, 4096)
            except OSError:  # nobody writes any more
                break
        process.wait(table.PATIENCE)
    os.close(ours)
    assert process.returncode == 0, text
    return text.decode()


def test_a_match_of_names_is_played_and_says_how_far_it_is(place: pathlib.Path) -> None:
    """On a terminal a line below the others counts; the whole command line comes first."""
    text = shown(place, "stockfish", "mine", "-rounds", "1", "-maxmoves", "3", "-each", "tc=60")
    assert text.startswith("\r\033[Kfarm match -engine cmd=")
    assert "0 of 2 games, 1 running, 0:0" in text
    assert "1 of 2 games, 1 running" in text
    assert "left" in text
    assert text.rstrip().endswith("Finished match")
    assert (place / "farm-match.pgn").read_text().count("[Event ") == 2


def test_the_time_on_the_terminal_goes_on_within_a_game(place: pathlib.Path) -> None:
    """A long game's last line is not that of its beginning."""
    slow = ("-engine", f"cmd={place / 'bin' / 'mine'}", "name=slow", "arg=--delay-ms", "arg=1500")
    quick = ("-engine", f"cmd={place / 'bin' / 'stockfish'}", "name=quick")
    text = shown(place, *slow, *quick, "-each", "tc=60", "-rounds", "1", "-maxmoves", "2")
    lines = [line for line in re.split(r"\r\033\[K|\n", text) if "0 of 1 games" in line]
    assert len(set(lines)) >= 3, text  # 0:00, 0:01, 0:02
