"""The farm's own engine as a process: legal, obedient, and as strong as it is told to be."""

from __future__ import annotations

import itertools

import chess
import pytest
import uci_pipes

from orchestrator import contract
from orchestrator.arbiter import board as boards
from worker_cpu.builtin_engine import search as builtin_engine_search
from worker_cpu.builtin_engine import uci

OPENINGS = [
    contract.Opening(moves=tuple(line.split()))
    for line in ("e2e4 e7e5", "d2d4 d7d5 c2c4", "g1f3 g8f6 g2g3")
]
CHESS960 = contract.Opening(fen="rkbnqbnr/pppppppp/8/8/8/8/PPPPPPPP/RKBNQBNR w KQkq - 0 1")


def ready(engine: uci_pipes.Pipes, *options: str) -> list[str]:
    """Do the handshake and return its lines."""
    engine.send("uci")
    lines = engine.until("uciok")
    engine.send(*options, "ucinewgame", "isready")
    engine.until("readyok")
    return lines


def play(
    white: uci_pipes.Pipes,
    black: uci_pipes.Pipes,
    opening: contract.Opening,
    go: str = "go wtime 60000 btime 60000",
    variant: boards.Variant = "standard",
) -> contract.Outcome:
    """Play a whole game; an illegal move fails the test."""
    game = boards.GameBoard(opening, variant)
    for engine in (white, black):
        engine.send("ucinewgame")
    while (outcome := game.ending()) is None:
        engine = white if game.turn == "white" else black
        text = engine.move(game.position_command(), go)
        move = game.legal(text)
        assert move is not None, (text, game.position_command())
        game.push(move)
    return outcome


def test_the_handshake_names_the_engine_and_its_options() -> None:
    """Hash, Threads, Nodes and UCI_Chess960 are offered under the given name."""
    with uci_pipes.house("--name", "Level 3", "--nodes", "77") as engine:
        lines = ready(engine)
        engine.send("quit")
        assert engine.exit_status() == 0
    assert lines[0] == "id name Level 3"
    assert [line.split()[2] for line in lines if line.startswith("option")] == [
        "Hash",
        "Threads",
        "Nodes",
        "UCI_Chess960",
    ]
    assert "option name Nodes type spin default 77 min 0 max 10000000" in lines


def test_self_play_is_legal_and_ends() -> None:
    """Six games at 100 nodes, two of them Chess960, hold no illegal move."""
    with uci_pipes.house("--nodes", "100") as one, uci_pipes.house("--nodes", "60") as two:
        ready(one)
        ready(two)
        for opening in OPENINGS[:2]:
            play(one, two, opening)
            play(two, one, opening)
        for engine in (one, two):
            engine.send("setoption name UCI_Chess960 value true")
        play(one, two, CHESS960, variant="fischerandom")
        play(two, one, CHESS960, variant="fischerandom")


def test_more_nodes_are_stronger() -> None:
    """1500 nodes score more than half against 30 in six games."""
    points = 0.0
    with uci_pipes.house("--nodes", "1500") as strong, uci_pipes.house("--nodes", "30") as weak:
        ready(strong)
        ready(weak)
        for opening, colour in itertools.product(OPENINGS, ("white", "black")):
            pair = (strong, weak) if colour == "white" else (weak, strong)
            outcome = play(*pair, opening)
            lost = outcome.loser == colour
            points += 0.5 if outcome.loser is None else 0.0 if lost else 1.0
    assert points > 3


def test_it_plays_at_a_hundredth_of_a_second_a_move_without_flagging() -> None:
    """The plan for a move keeps a reserve whatever is left."""
    for left_ms, increment_ms in itertools.product((1, 20, 100, 160, 1000, 10**7), (0, 10, 5000)):
        soft, hard = uci.budget_ms(left_ms, increment_ms, 30)
        assert 0 < soft <= hard <= max(0.25 * (left_ms - uci.RESERVE_MS), 0.025 * left_ms)


def test_it_answers_while_it_thinks_and_stops_when_told() -> None:
    """``isready`` is answered in an infinite search, and bestmove follows only ``stop``."""
    with uci_pipes.house() as engine:
        ready(engine)
        engine.send("position startpos", "go infinite", "isready")
        assert not any(line.startswith("bestmove") for line in engine.until("readyok"))
        engine.send("stop")
        assert engine.until("bestmove")[-1].split()[1] in {
            move.uci() for move in chess.Board().legal_moves
        }


def test_a_finished_infinite_search_waits_for_stop() -> None:
    """A mate found at once is not told before ``stop``."""
    with uci_pipes.house() as engine:
        ready(engine)
        engine.send("position fen 6k1/5ppp/8/8/8/8/5PPP/R5K1 w - - 0 1", "go infinite")
        assert "score mate 1" in engine.until("info depth 1")[-1]
        assert engine.silent()
        engine.send("stop")
        assert engine.until("bestmove")[-1] == "bestmove a1a8"


def test_a_stop_of_the_last_search_does_not_reach_the_next() -> None:
    """``stop`` and a new ``go`` in one breath give two answers, the second a full search."""
    with uci_pipes.house() as engine:
        ready(engine)
        engine.send("position startpos", "go infinite", "stop", "go nodes 300")
        engine.until("bestmove")
        assert any(" depth 2 " in line for line in engine.until("bestmove"))


def test_garbage_is_survived() -> None:
    """Unknown commands, illegal positions and broken numbers do not end the engine."""
    with uci_pipes.house("--nodes", "50") as engine:
        ready(engine)
        engine.send(
            "what is this",
            "position startpos moves e2e5",
            "position fen x",
            "setoption name Hash value many",
            "go wtime soon",
        )
        engine.until("bestmove")
        assert engine.move("position startpos moves e2e4", "go depth x") in {
            move.uci()
            for move in chess.Board(chess.Board().fen().replace(" w ", " b ")).legal_moves
        }


@pytest.mark.parametrize(
    ("fen", "expected"),
    [
        ("7k/5K2/8/8/8/8/8/6Q1 w - - 0 1", {"g1h1", "g1h2", "g1g7", "g1g8"}),
        ("8/8/8/8/8/4k3/8/4K2r w - - 0 1", {"(none)"}),
        ("k7/8/1Q6/8/8/8/8/1K6 b - - 0 1", {"(none)"}),
    ],
)
def test_mates_and_dead_ends(fen: str, expected: set[str]) -> None:
    """It mates in one, and says when there is no move."""
    with uci_pipes.house() as engine:
        ready(engine)
        assert engine.move(f"position fen {fen}", "go depth 3") in expected


def test_a_won_game_is_not_repeated_away() -> None:
    """A queen up, a move that repeats the position is not chosen."""
    shuffle = "g1g2 a8a7 g2g1 a7a8 g1g2 a8a7"
    with uci_pipes.house() as engine:
        ready(engine)
        position = f"position fen k7/8/8/8/8/8/3Q4/6K1 w - - 0 1 moves {shuffle}"
        move = engine.move(position, "go depth 4")
    assert move != "g2g1"


def test_the_table_is_bounded_by_hash() -> None:
    """The transposition table never holds more entries than Hash allows."""
    search = builtin_engine_search.Search(1)
    told: list[int] = []
    search.run(
        chess.Board(),
        builtin_engine_search.Limits(nodes=12_000),
        lambda: False,
        lambda progress: told.append(progress.hashfull),
    )
    assert 0 < max(told) <= 1000
    assert len(search._entries) <= 1024 * 1024 // builtin_engine_search.ENTRY_BYTES


def test_the_same_nodes_give_the_same_move() -> None:
    """A node-limited search depends on the position alone, not on the machine's speed."""
    lines = {
        builtin_engine_search.Search(16).run(
            chess.Board(), builtin_engine_search.Limits(nodes=2000), lambda: False, lambda _: None
        )
        for _ in range(2)
    }
    assert len(lines) == 1
