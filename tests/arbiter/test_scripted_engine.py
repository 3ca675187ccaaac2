"""The scripted engine: repeatable, decisive games, and every fault seen through the pipes."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import types
from collections.abc import Iterator

import chess
import harness
import pytest
import uci_pipes

from orchestrator import contract
from orchestrator.arbiter import board as boards

START = "position startpos moves e2e4 e7e5"
GO = "go wtime 1000 btime 1000"


@pytest.fixture
def faulty(request: pytest.FixtureRequest) -> Iterator[uci_pipes.Pipes]:
    """Run the engine with the faults of the parameter, ready to move at ply 3."""
    faults = [word for fault in request.param.split() for word in ("--fault", fault)]
    with uci_pipes.scripted(*faults) as engine:
        engine.send("uci", "isready", START)
        engine.until("readyok")
        engine.seen = b""
        engine.send(GO)
        yield engine


def play(white: str, black: str, opening: str = "") -> tuple[str, contract.Outcome]:
    """Play a game between two strengths; return its moves and its outcome."""
    with (
        uci_pipes.scripted("--strength", white, "--seed", "a") as one,
        uci_pipes.scripted("--strength", black, "--seed", "b") as two,
    ):
        game = boards.GameBoard(contract.Opening(moves=tuple(opening.split())))
        while (outcome := game.ending()) is None:
            engine = one if game.turn == "white" else two
            move = game.legal(engine.move(game.position_command(), GO))
            assert move is not None
            game.push(move)
    return game.position_command(), outcome


def test_the_same_pairing_plays_the_same_game_again() -> None:
    """Moves depend on seed, strength and position alone."""
    assert play("2", "1") == play("2", "1")


def test_pairings_of_different_strengths_are_decisive_and_not_all_alike() -> None:
    """White and Black both win among a few games, in 10 to 250 plies."""
    games = [play("1", "3"), play("3", "1"), play("2", "1", "d2d4 g8f6"), play("0", "2")]
    assert {outcome.result for _, outcome in games} == {"1-0", "0-1"}
    assert all(10 <= len(command.split()) - 3 <= 250 for command, _ in games)


def test_a_move_comes_with_an_exact_score() -> None:
    """A plain move is preceded by one info line with depth, score and pv."""
    with uci_pipes.scripted() as engine:
        engine.send(START, GO)
        info, best = engine.until("bestmove")
        assert " score cp " in info
        assert info.split()[-1] == best.split()[1]


@pytest.mark.parametrize(
    ("faulty", "status"),
    [("crash@3", 1), ("segv@3", -signal.SIGSEGV), ("child@3", 1)],
    indirect=["faulty"],
)
def test_dying_faults(faulty: uci_pipes.Pipes, status: int) -> None:
    """The process ends by itself, by a signal, or leaves a child with the pipes."""
    assert faulty.exit_status() == status
    assert b"bestmove" not in faulty.seen


@pytest.mark.parametrize("faulty", ["child@3"], indirect=True)
def test_a_left_child_keeps_the_pipes_open(faulty: uci_pipes.Pipes) -> None:
    """The engine is gone, but its output does not end."""
    faulty.exit_status()
    assert not faulty._selector.select(0.2)


@pytest.mark.parametrize("faulty", ["hang@3"], indirect=True)
def test_a_hanging_engine_is_deaf_to_stop_and_quit(faulty: uci_pipes.Pipes) -> None:
    """Nothing is answered any more, and the process lives on."""
    faulty.send("stop", "quit")
    assert faulty.silent()


@pytest.mark.parametrize("faulty", ["sleepy@3"], indirect=True)
def test_a_sleepy_engine_answers_only_to_stop(faulty: uci_pipes.Pipes) -> None:
    """The move comes after ``stop``, and is a good one."""
    faulty.until("info")
    assert faulty.silent()
    faulty.send("stop")
    assert faulty.until("bestmove")


@pytest.mark.parametrize(
    ("faulty", "answer"),
    [
        ("illegal@3", "bestmove a1a1"),
        ("illegal:e9e9@2", "bestmove e9e9"),
        ("none@3", "bestmove (none)"),
        ("garbage@3", 'bestmove x}y{z" ponder \\'),
    ],
    indirect=["faulty"],
)
def test_wrong_answers(faulty: uci_pipes.Pipes, answer: str) -> None:
    """The answer is no legal move, and the engine lives on."""
    assert faulty.until("bestmove")[-1] == answer
    assert faulty.lives()


@pytest.mark.parametrize("faulty", ["late:200@3"], indirect=True)
def test_a_late_engine_answers_in_the_end(faulty: uci_pipes.Pipes) -> None:
    """The move is legal; the stop before it was ignored."""
    faulty.send("stop")
    assert boards.GameBoard(contract.Opening(moves=("e2e4", "e7e5"))).legal(
        faulty.until("bestmove")[-1].split()[1]
    )


@pytest.mark.parametrize("faulty", ["spam@3"], indirect=True)
def test_spam_never_ends(faulty: uci_pipes.Pipes) -> None:
    """Info lines come for ever, through ``stop`` and ``quit``."""
    faulty.send("stop", "quit")
    while len(faulty.seen) < 1 << 20:
        assert faulty.more(uci_pipes.PATIENCE)
    assert b"bestmove" not in faulty.seen


@pytest.mark.parametrize("faulty", ["no-eval"], indirect=True)
def test_no_eval_is_a_bare_answer(faulty: uci_pipes.Pipes) -> None:
    """Without a ply the fault happens at every move."""
    assert len(faulty.until("bestmove")) == 1
    faulty.send(START, GO)
    assert len(faulty.until("bestmove")) == 1


@pytest.mark.parametrize("faulty", ["no-eval@3"], indirect=True)
def test_a_fault_with_a_ply_happens_once(faulty: uci_pipes.Pipes) -> None:
    """The next move is a good one again."""
    assert len(faulty.until("bestmove")) == 1
    faulty.send(START, GO)
    assert len(faulty.until("bestmove")) == 2


@pytest.mark.parametrize("faulty", ["illegal@7"], indirect=True)
def test_a_fault_waits_for_its_ply(faulty: uci_pipes.Pipes) -> None:
    """Before its ply the engine plays on."""
    assert faulty.until("bestmove")[-1] != "bestmove a1a1"


def test_a_held_engine_answers_when_its_gate_is_gone(tmp_path: pathlib.Path) -> None:
    """It thinks while the file of its game is there, has told it so, and brings none back."""
    gate = tmp_path / "gate-g7"
    gate.touch()
    with uci_pipes.scripted("--game", "g7", "--fault", f"hold:{tmp_path}/gate-GAME") as engine:
        engine.send(START, GO)
        harness.stands(gate)
        assert gate.read_text() == "3\n"
        engine.until("info")
        assert engine.silent()
        gate.unlink()
        assert engine.until("bestmove")
        engine.move(START, GO)
        assert not gate.exists()


@pytest.mark.parametrize("faulty", ["close-stdout@3"], indirect=True)
def test_a_closed_output_is_an_end_of_file_of_a_living_process(faulty: uci_pipes.Pipes) -> None:
    """The output ends, the process does not."""
    assert faulty.at_end()
    assert faulty.lives()


@pytest.mark.parametrize("faulty", ["long-line@3"], indirect=True)
def test_a_long_line_is_followed_by_a_good_answer(faulty: uci_pipes.Pipes) -> None:
    """One line of a mebibyte stands before the move."""
    lines = faulty.until("bestmove")
    assert max(map(len, lines)) > 1 << 20


@pytest.mark.parametrize("faulty", ["flood@3"], indirect=True)
def test_a_flood_is_followed_by_a_good_answer(faulty: uci_pipes.Pipes) -> None:
    """A hundred thousand info lines stand before the move."""
    while b"bestmove" not in faulty.seen[-200:]:
        assert faulty.more(uci_pipes.PATIENCE)
    assert faulty.seen.count(b"\n") == 100_002


@pytest.mark.parametrize("faulty", ["split@3"], indirect=True)
def test_a_split_answer_is_whole_in_the_end(faulty: uci_pipes.Pipes) -> None:
    """The pieces give one legal move."""
    assert len(faulty.until("bestmove")[-1].split()[1]) == 4


@pytest.mark.parametrize("faulty", ["crlf"], indirect=True)
def test_crlf_line_ends_are_used_throughout(faulty: uci_pipes.Pipes) -> None:
    """Every line ends with CR LF."""
    faulty.until("bestmove")
    assert faulty.seen.count(b"\r\n") == faulty.seen.count(b"\n") == 2


@pytest.mark.parametrize("faulty", ["ignore-quit"], indirect=True)
def test_quit_can_be_ignored(faulty: uci_pipes.Pipes) -> None:
    """The engine plays, but does not end when told."""
    faulty.until("bestmove")
    faulty.send("quit")
    assert faulty.silent()


def test_faults_of_start_up() -> None:
    """An engine may exit before uciok, keep silent, or never be ready."""
    with uci_pipes.scripted("--fault", "exit-before-uciok") as engine:
        engine.send("uci")
        assert engine.exit_status() == 1
    with uci_pipes.scripted("--fault", "no-uciok") as engine:
        engine.send("uci")
        assert engine.silent()
    with uci_pipes.scripted("--fault", "no-readyok") as engine:
        engine.send("uci", "isready")
        engine.until("uciok")
        assert engine.silent()


def test_an_unknown_fault_is_refused() -> None:
    """A misspelt playbook never passes as a healthy engine."""
    command = [sys.executable, str(uci_pipes.SCRIPTED), "--fault", "crsh@3"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2


def test_life_is_written_until_death(tmp_path: pathlib.Path) -> None:
    """Whole JSON lines with rising times tell of the process, up to a SIGKILL."""
    life = tmp_path / "life"
    with uci_pipes.scripted("--life", str(life), "--game", "g7", "--name", "N") as engine:
        harness.wait(lambda: life.exists() and life.read_text().count("\n") > 2, "three lines")
        engine.process.kill()
        engine.exit_status()
        pid = engine.process.pid
    facts = [json.loads(line) for line in life.read_text().splitlines()]
    assert [fact["event"] for fact in facts][:2] == ["start", "alive"]
    assert {(fact["pid"], fact["game"], fact["name"]) for fact in facts} == {(pid, "g7", "N")}
    assert [fact["t"] for fact in facts] == sorted(fact["t"] for fact in facts)


def test_chess960_castling_follows_the_option() -> None:
    """With UCI_Chess960 a position after king-takes-rook castling is understood."""
    with uci_pipes.scripted() as engine:
        engine.send("setoption name UCI_Chess960 value true")
        fen = "4k3/8/8/8/8/8/8/R3K2R w KQ - 0 1"
        move = engine.move(f"position fen {fen} moves e1h1", GO)
    board = chess.Board(fen, chess960=True)
    board.push_uci("e1h1")
    assert chess.Move.from_uci(move) in board.legal_moves


def test_a_gate_that_comes_between_two_looks_is_written_into(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for engines at a gate counts every engine that thinks there."""
    source = importlib.util.spec_from_file_location("scripted_engine", harness.ENGINE)
    assert source is not None
    assert source.loader is not None
    engine = importlib.util.module_from_spec(source)
    monkeypatch.setitem(sys.modules, "scripted_engine", engine)
    source.loader.exec_module(engine)
    gate, opened, answered = tmp_path / "gate", os.open, []

    def too_early(path: str, _flags: int) -> int:
        monkeypatch.setattr(os, "open", opened)
        gate.touch()
        raise FileNotFoundError(path)

    def release(_seconds: float) -> None:
        if gate.read_text() == "7\n":
            gate.unlink()

    thinking = types.SimpleNamespace(
        options=types.SimpleNamespace(game="g"),
        ply=7,
        inform=lambda: None,
        move=lambda: "a2a3",
        answer=answered.append,
    )
    gate.touch()
    monkeypatch.setattr(engine, "BOUND", 5.0)  # s: an engine that says nothing fails here
    monkeypatch.setattr(os, "open", too_early)
    monkeypatch.setattr(time, "sleep", release)
    engine.hold(thinking, str(gate))
    assert answered == ["a2a3"]
    assert not gate.exists(), "the ply was not written"
