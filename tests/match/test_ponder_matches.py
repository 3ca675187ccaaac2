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

from orchestrator import contract
from orchestrator.broadcast.content import games
from worker_cpu.match import live, schedule
from worker_cpu.wire import frames

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
    assert "games are not bound to cores: 1 game of 2 threads needs more" in forced


def test_the_manuals_example_is_played(tmp_path: pathlib.Path) -> None:
    """The line of docs/match.md, shortened: a real engine ponders."""
    (line,) = re.findall(r"^farm match (.* ponder .*)$", DOCS.read_text(), re.MULTILINE)
    for name in ("stockfish", "ethereal-chess"):
        if not pathlib.Path("/usr/games", name).exists():
            pytest.skip(f"package {name} is not installed")
    short = ["-each", "tc=20+0.02", "nodes=500", "-rounds", "1", "-games", "1", "-maxmoves", "4"]
    table.play(tmp_path, *shlex.split(line), *short, "-force-concurrency", "-log", "file=log.txt")
    with (tmp_path / "ponder.pgn").open() as file:
        game = chess.pgn.read_game(file)
    assert game is not None
    assert game.headers["White"] == "stockfish"
    told = [line[2:6] for line in log(tmp_path)]
    assert ["stockfish", ">", "go", "ponder"] in told
    assert ["ethereal-chess", ">", "go", "ponder"] not in told
    assert not table.survivors(tmp_path)


def test_a_page_shows_the_search_of_the_side_on_move_alone(tmp_path: pathlib.Path) -> None:
    """What an engine that ponders says is of another position; its ply says what came of it."""
    engines = [
        contract.EngineSpec(id=name, name=name, command=("x",), ponder=True) for name in ("w", "b")
    ]
    order = contract.GameOrder(
        season="match",
        season_name="",
        event="match",
        event_name="",
        game="g",
        number=1,
        round="1",
        white=engines[0],
        black=engines[1],
        time_control=contract.TimeControl(base_ms=1_000),
    )
    watch = live.Feed(tmp_path).begin(1, schedule.Slot(1, 1, 0, 0, 1, 0, None), order)
    assert watch is not None
    watch(frames.Frame(frames.Kind.THINK, b'{"side":"black","ply":2}'))
    for seat, depth in (("w", 31), ("b", 32)):
        line = f"info depth {depth} score cp 5 pv e7e5\n".encode()
        watch(frames.Frame(frames.Kind.CHUNK, frames.chunk(seat, "<", 1, line)))
    text = (tmp_path / "games" / "g.jsonl").read_text()
    assert '"depth":32' in text
    assert '"depth":31' not in text
    ply = contract.PlyRecord(
        ply=1,
        side="white",
        move="e2e4",
        san="e4",
        think_ns=9_000_000,
        margin_ns=0,
        overhead_ns=0,
        white_clock_ns=0,
        black_clock_ns=0,
    )
    hit = ply.model_copy(update={"pondered": "hit", "pondered_ns": 700_000_000})
    shown = [games.GameLine(order).push(one).data() for one in (ply, hit)]
    assert "pondered" not in shown[0]
    assert (shown[1]["pondered"], shown[1]["pondered_ms"]) == ("hit", 700)
