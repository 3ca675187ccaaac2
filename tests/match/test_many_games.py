"""More games at a time than the machine has cores for: they share processes, and nothing else."""

from __future__ import annotations

import os
import pathlib
import re
import sys
import time
from collections.abc import Iterator

import hall
import harness
import pytest
import table

from orchestrator import contract
from worker_cpu.engines import handles
from worker_cpu.match import game
from worker_cpu.referee import result, session

ONE_CPU = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); "
GAMES = 5  # at a time: on one CPU too many for a process each
ENGINE = """
import os, sys
moves = {"good": (("e2e4", "f1c4", "d1h5", "h5f7"), ("e7e5", "d8h4")),
         "bad": (("f2f3", "g2g4"), ("e7e5", "b8c6", "g8f6"))}[sys.argv[1]]
games, played = 0, []
open("parent-%d-%d" % (os.getppid(), os.getpid()), "w").close()
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]: print("uciok")
    if words[:1] == ["isready"]: print("readyok")
    if words[:1] == ["ucinewgame"]: games += 1
    if words[:1] == ["position"]:
        played = words[words.index("moves") + 1 :] if "moves" in words else []
    if words[:1] == ["go"]:
        if sys.argv[2:] == ["crash-%d" % games]: sys.exit(3)
        print("bestmove", moves[len(played) % 2][len(played) // 2])
    if words[:1] == ["quit"]: break
    sys.stdout.flush()
"""
HOLDS = "time.sleep(300)"


def engine(directory: pathlib.Path, skill: str, *more: str) -> list[str]:
    """Return ``-engine`` and its words."""
    program = directory / "engine.py"
    program.write_text(ENGINE)
    arguments = [f"arg={word}" for word in ("-I", "-S", "-u", str(program), skill, *more)]
    return ["-engine", f"cmd={sys.executable}", f"name={skill}", *arguments]


@pytest.mark.parametrize("at_a_time", [2, GAMES])
def test_more_games_than_cores_have_one_dead_man(tmp_path: pathlib.Path, at_a_time: int) -> None:
    """Five games at a time on one CPU; an engine that crashes loses its own game alone."""
    engines = [*engine(tmp_path, "good"), *engine(tmp_path, "bad", "crash-2")]
    numbers = table.play(
        tmp_path,
        *engines,
        *("-each", "tc=20", "-games", "2", "-repeat", "-rounds", str(2 * at_a_time)),
        *("-concurrency", str(at_a_time), "-force-concurrency", "-recover", "-pgnout", "g.pgn"),
        first=ONE_CPU,
    ).stdout
    assert f"Score of good vs bad: {4 * at_a_time} - 0 - 0" in numbers
    assert len(table.games(tmp_path / "g.pgn.jsonl")) == 4 * at_a_time
    parents = {path.name.split("-")[1] for path in tmp_path.glob("parent-*")}
    assert len(parents) == (1 if at_a_time == GAMES else at_a_time)
    assert not table.survivors(tmp_path)


@pytest.fixture
def fork_server() -> Iterator[handles.ForkServer]:
    """A fork server, which ends with the test."""
    made = handles.ForkServer()
    yield made
    made.end()


def begin(seated: session.Seated) -> game.Game:
    """Begin a game of two engines that never move; wait until the first of them thinks."""
    order = hall.order(
        hall.answers(HOLDS),
        hall.answers(HOLDS),
        time_control=contract.TimeControl(base_ms=600_000),
        journaled=False,
        shown=True,
        keep=("white", "black"),
    )
    begun = game.Game(seated, game.Sealed(order), "here")
    harness.wait(
        lambda: begun.serve() is None and begun._session.thinking is not None, "a game that is on"
    )
    return begun


def test_a_game_of_shared_processes_ends_alone(
    fork_server: handles.ForkServer, tmp_path: pathlib.Path
) -> None:
    """Referees are one process, dead men another; both live until the last game has ended."""
    seats = session.seat_together(fork_server, tmp_path, 3)
    games = [begin(seated) for seated in seats]
    pids = {pid for seated in seats for pid in (seated.referee.pid, seated.dead_man.pid)}
    assert len(pids) == 2
    for number, (seated, begun) in enumerate(zip(seats, games, strict=True)):
        assert len(hall.survivors(begun.order.game)) == 2
        begun.drop("the test")
        harness.wait(lambda begun=begun: begun.serve() is not None, "the end of the game")
        assert isinstance(begun.serve(), session.Interrupted)
        seated.leave()
        assert seated.dead_man.ended
        assert hall.survivors(begun.order.game) == []
        for other, playing in list(zip(seats, games, strict=True))[number + 1 :]:
            assert len(hall.survivors(playing.order.game)) == 2
            assert not other.dead_man.ended
            assert not other.referee.ended(0)
    assert not any(map(harness.alive, pids))


def test_a_shared_dead_man_that_is_killed_takes_all_engines(
    fork_server: handles.ForkServer, tmp_path: pathlib.Path
) -> None:
    """Its games are interrupted, not lost by anybody."""
    seats = session.seat_together(fork_server, tmp_path, 2)
    games = [begin(seated) for seated in seats]
    os.kill(seats[0].dead_man.pid, 9)
    for seated, begun in zip(seats, games, strict=True):
        harness.wait(lambda begun=begun: begun.serve() is not None, "the end of the game")
        end = begun.serve()
        assert isinstance(end, session.Interrupted)
        assert end.cause == "engines' supervisor lost"
        assert hall.survivors(begun.order.game) == []
        seated.leave()
    assert not any(harness.alive(seated.referee.pid) for seated in seats)


@pytest.mark.parametrize("hours", [-5, 5])
def test_a_clock_that_is_set_makes_no_game_longer_or_shorter(
    fork_server: handles.ForkServer,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    hours: int,
) -> None:
    """As a machine's is in the minute after its start: in the record, and in its own PGN."""
    (seated,) = session.seat_together(fork_server, tmp_path, 1)
    players = hall.scripted("--seed", "1"), hall.scripted("--seed", "2")
    changes = {"journaled": False, "recorded": True, "pgn": contract.PgnStyle()}
    order = hall.order(*players).model_copy(update=changes)
    begun = game.Game(seated, game.Sealed(order), "here")
    at_once = result.Times()
    day = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: day() + hours * 3_600_000_000_000)
    harness.wait(lambda: begun.serve() is not None, "the end of the game")
    ended = begun.serve()
    assert isinstance(ended, result.Ended)
    assert 0 <= ended.ended_ms - ended.started_ms < 60_000
    assert ended.record is not None
    whole = ended.record()
    assert (whole.started_ms, whole.ended_ms) == (ended.started_ms, ended.ended_ms)
    reports = {"white": whole.white, "black": whole.black}
    text = result.pgn(order, whole.outcome, reports, whole.plies, [], at_once)
    assert re.search(r'\[GameDuration "00:00:\d\d"\]', text)
    seated.leave()
