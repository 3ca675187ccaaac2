"""Matches with pondering: cores of their own, engines that stay, what files and people are told."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import sys

import chess.pgn
import pytest
import table

DANCER = table.ENGINES / "dancer.py"
DOCS = pathlib.Path(__file__).parents[2] / "docs" / "match.md"
CPUS = sorted(os.sched_getaffinity(0))


def dancer(name: str, mode: str, *words: str) -> list[str]:
    """Return ``-engine`` and its words; the first are replies that it expects."""
    program = [f"arg={word}" for word in ("-I", "-S", str(DANCER), mode)]
    return ["-engine", f"cmd={sys.executable}", f"name={name}", *program, *words]


def log(directory: pathlib.Path) -> list[list[str]]:
    """Return the words of the log: time, game, engine, direction, what was said."""
    return [line.split() for line in (directory / "log.txt").read_text().splitlines()]


def test_engines_ponder_each_on_cores_of_its_own(tmp_path: pathlib.Path) -> None:
    """Both stay for the second game, at rest before it; hits stand in the PGN."""
    engines = [*dancer("Able", "able", "arg=3:a7a6", "ponder"), *dancer("Hasty", "early", "ponder")]
    words = [*engines, "-each", "tc=20+0.1", "-games", "2", "-repeat", "-log", "file=log.txt"]
    words += ["-pgnout", "g.pgn", "-force-concurrency"]  # where there is but one core
    process = table.play(tmp_path, *words)
    assert process.stdout.count("Note: Hasty: bestmove while it pondered, before ponderhit") == 1
    lines = log(tmp_path)
    for name in ("Able", "Hasty"):
        assert sum(line[2:] == [name, ">", "uci"] for line in lines) == 1, "it stays"
    assert sum(line[2:5] == ["Able", ">", "ponderhit"] for line in lines) == 5
    bound = {line[2]: set(line[7].split(",")) for line in lines if line[3:7] == HEAD}
    if len(CPUS) > 1:
        assert not bound["Able"] & bound["Hasty"]
    text = (tmp_path / "g.pgn").read_text()
    assert len(re.findall(r"ponder=\d+", " ".join(text.split()))) == 5


HEAD = ["<", "info", "string", "cpus"]


def test_who_has_no_cores_of_its_own_does_not_ponder(tmp_path: pathlib.Path) -> None:
    """Refused with what to write; forced it is played, with a note."""
    words = [*dancer("A", "able", "ponder"), *dancer("B", "plain"), "-each", "tc=20"]
    words += ["-use-affinity", str(CPUS[0])]
    said = table.play(tmp_path, *words, code=2).stderr
    assert "ponder: found 1 games of two engines with 1 threads each" in said
    assert "-force-concurrency" in said
    forced = table.play(tmp_path, *words, "-force-concurrency", "-maxmoves", "2").stdout
    assert "games are not bound to cores: 1 games of 2 threads need more" in forced


def test_the_manuals_example_is_played(tmp_path: pathlib.Path) -> None:
    """The line of docs/match.md, shortened: real engines ponder, and hit."""
    (line,) = re.findall(r"^farm match (.* ponder .*)$", DOCS.read_text(), re.MULTILINE)
    for name in ("stockfish", "ethereal-chess"):
        if not pathlib.Path("/usr/games", name).exists():
            pytest.skip(f"package {name} is not installed")
    short = ["-each", "tc=20+0.02", "nodes=20000", "-rounds", "1", "-maxmoves", "8"]
    table.play(tmp_path, *shlex.split(line), *short, "-force-concurrency")
    with (tmp_path / "ponder.pgn").open() as file:
        game = chess.pgn.read_game(file)
    assert game is not None
    comments = [node.comment for node in game.mainline()]
    assert any(re.search(r"ponder=\d+", " ".join(text.split())) for text in comments)
    assert not table.survivors(tmp_path)
