"""Tablebase adjudication on the real tables of 3 and 4 men, with the fifty-move counter."""

from __future__ import annotations

import pathlib

import chess
import hall
import pytest

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.arbiter.adjudication import judge, tablebase
from orchestrator.contract import Ending
from worker_cpu.referee import tablebases

TABLES = pathlib.Path(__file__).parents[1] / "data" / "syzygy"
# White to move: from a counter of 0 the win takes 41 plies to the next zeroing move.
KNIGHT_AND_BISHOP = "8/8/8/3k4/8/8/8/KBN5 w - - {} 80"


def judged(fen: str, **rule: object) -> contract.Outcome | None:
    """Judge one position, reached by a ply, by the real tables."""
    rules = contract.Adjudication(syzygy=contract.Syzygy.model_validate(rule))
    tables = tablebases.Tables([str(TABLES)])
    try:
        return judge.Judge(rules, tables).take(chess.Board(fen), 100, None).outcome
    finally:
        tables.close()


@pytest.mark.parametrize(
    ("fen", "outcome"),
    [
        ("8/8/8/3k4/8/8/8/K6Q b - - 0 80", verdict.tablebase("black")),
        ("8/8/8/3k4/8/8/8/K6q w - - 5 80", verdict.tablebase("white")),
        ("8/8/8/3k4/8/8/6q1/K7 b - - 5 80", verdict.tablebase("white")),
        ("8/8/8/3k4/8/8/8/KN6 b - - 0 80", verdict.tablebase(None)),
        ("8/8/8/8/3k4/8/3P4/3K4 b - - 0 80", verdict.tablebase(None)),
        ("3k4/8/3K4/3P4/8/8/8/8 w - - 0 80", verdict.tablebase("black")),
        ("8/8/3k4/8/4q3/8/8/K3Q3 w - - 0 80", verdict.tablebase("black")),  # takes the queen
        ("8/8/8/3k4/8/8/8/K6Q b - - 80 80", verdict.tablebase("black")),
        ("8/8/8/3k4/8/8/8/K6Q b - - 95 80", verdict.tablebase(None)),  # no mate in 5 plies
        ("8/8/8/3kr3/8/3p4/8/K6Q b - - 0 80", None),  # five men
    ],
)
def test_positions_are_judged_as_the_tables_have_them(
    fen: str, outcome: contract.Outcome | None
) -> None:
    """Wins, draws and losses of both sides; a win that fifty moves cut short is a draw."""
    assert judged(fen, men=4) == outcome


def test_the_fifty_move_counter_decides_at_exactly_its_ply() -> None:
    """A win is one as long as distance and counter together are 100 plies or less."""
    tables = tablebases.Tables([str(TABLES)])
    distance = tables.dtz(chess.Board(KNIGHT_AND_BISHOP.format(0)))
    tables.close()
    assert distance is not None
    assert 30 < distance < 70
    last = 100 - distance
    assert judged(KNIGHT_AND_BISHOP.format(last)) == verdict.tablebase("black")
    assert judged(KNIGHT_AND_BISHOP.format(last + 1)) == verdict.tablebase(None)


def test_castling_rights_keep_a_position_out_of_the_tables() -> None:
    """King and rook that may castle are not probed; without the right they win."""
    assert judged("4k3/8/8/8/8/8/8/4K2R b K - 0 80") is None
    assert judged("4k3/8/8/8/8/8/8/4K2R b - - 0 80") == verdict.tablebase("black")


def test_more_men_than_the_rule_says_are_not_probed() -> None:
    """A rule for three men leaves four men alone."""
    fen = "8/8/8/3kp3/8/8/8/K6Q b - - 0 80"
    assert judged(fen, men=4) is not None
    assert judged(fen, men=3) is None


def test_the_draw_only_mode_lets_wins_be_played_out() -> None:
    """Decided positions go on, drawn ones end."""
    assert judged("8/8/8/3k4/8/8/8/K6Q b - - 0 80", draw_only=True) is None
    assert judged("8/8/8/3k4/8/8/8/KN6 b - - 0 80", draw_only=True) == verdict.tablebase(None)


def test_other_modes_of_match_runners() -> None:
    """Only decided positions end, or a win that fifty moves would cut short is a win."""
    assert judged("8/8/8/3k4/8/8/8/K6Q b - - 0 80", decided_only=True) == verdict.tablebase("black")
    assert judged("8/8/8/3k4/8/8/8/KN6 b - - 0 80", decided_only=True) is None
    late = "8/8/8/3k4/8/8/8/K6Q b - - 95 80"
    assert judged(late, ignore_fifty=True) == verdict.tablebase("black")
    assert judged("8/8/8/3k4/8/8/8/KN6 b - - 95 80", ignore_fifty=True) == verdict.tablebase(None)
    with pytest.raises(ValueError, match="end no game"):
        judged(late, draw_only=True, decided_only=True)


def test_a_probe_leaves_the_board_as_it_was() -> None:
    """The game's own board is never moved on, en passant included."""
    tables = tablebases.Tables([str(TABLES)])
    board = chess.Board("8/8/8/8/k2Pp3/8/8/4K3 b - d3 0 1")
    board.push_uci("a4a5")
    before = board.copy()
    assert tablebase.fifty_move_value(board, tables) is not None
    assert (board, board.move_stack) == (before, before.move_stack)
    tables.close()


def test_missing_and_damaged_tables_are_not_probed_and_said_once(tmp_path: pathlib.Path) -> None:
    """Without a table the game goes on by the other rules, and the record says why."""
    queen, rook = "8/8/8/3k4/8/8/8/K6Q b - - 0 1", "8/8/8/3k4/8/8/8/K6R b - - 0 1"
    (tmp_path / "KQvK.rtbw").write_bytes(b"not a table")
    tables = tablebases.Tables([str(tmp_path), str(tmp_path / "none")])
    rules = judge.Judge(contract.Adjudication(syzygy=contract.Syzygy()), tables)
    for fen in (queen, rook, queen):
        assert rules.take(chess.Board(fen), 90, None).outcome is None
    tables.close()
    assert len(tables.remarks) == 2
    assert "none: No such file" in tables.remarks[0]
    assert "cannot be read" in tables.remarks[1]


@pytest.mark.parametrize(
    ("rule", "engines", "said"),
    [
        (None, "/nowhere", None),
        (contract.Syzygy(), None, ["tablebases: no table was found, none is probed"]),
        (contract.Syzygy(path="<empty>"), "/nowhere", ["tablebases: no table was found"]),
        (contract.Syzygy(), "/nowhere", ["tablebases: /nowhere", "tablebases: no table"]),
    ],
)
def test_tables_are_opened_where_a_rule_asks_for_them(
    rule: contract.Syzygy | None, engines: str | None, said: list[str] | None
) -> None:
    """The rule's path goes before the engines', and no path at all is said."""
    spec = hall.scripted()
    order = hall.order(
        spec,
        spec,
        adjudication=contract.Adjudication(syzygy=rule),
        limits=contract.Limits(syzygy_path=engines),
    )
    tables = tablebases.open_for(order)
    if said is None:
        assert tables is None
    else:
        assert tables is not None
        for remark, words in zip(tables.remarks, said, strict=True):
            assert remark.startswith(words)


# -- whole games --------------------------------------------------------------------------

ROOKS = ("a1a2", "h8h7", "a2a1", "h7h8")


def shuffler(score: int, moves: tuple[str, ...] = ROOKS) -> contract.EngineSpec:
    """Describe an engine that plays given moves and sees ``score`` from White's side."""
    return hall.answers(
        f"say(f'info depth 9 score cp {{{score} * (-1) ** played}}')\n"
        f"say('bestmove ' + {moves!r}[played % {len(moves)}])"
    )


def played(tmp_path: pathlib.Path, score: int, fen: str, **rules: object) -> hall.Played:
    """Play a game of shufflers from a position by some rules."""
    order = hall.order(
        shuffler(score),
        shuffler(score),
        opening=contract.Opening(fen=fen),
        adjudication=contract.Adjudication.model_validate(rules),
        time_margin_ms=5_000,
    )
    return hall.play(tmp_path, order)


ROOK_ENDING = "7r/1k2p3/8/8/8/8/1K2P3/R7 w - - 7 40"


@pytest.mark.parametrize(
    ("score", "rules", "ending", "plies"),
    [
        (12, {"few_pieces_draw": {"plies": 4}}, Ending.FEW_PIECES_DRAW, 4),
        (700, {"eval_win": {"bound_cp": 700, "plies": 5}}, Ending.EVAL_WIN, 5),
        (26, {"few_pieces_draw": {"plies": 4}, "max_moves": 3}, Ending.MAX_MOVES, 6),
        (26, {"few_pieces_draw": {"plies": 4}}, Ending.THREEFOLD, 8),
    ],
)
def test_the_referee_ends_a_game_by_its_rules(
    tmp_path: pathlib.Path, score: int, rules: dict[str, object], ending: Ending, plies: int
) -> None:
    """The rules of the order end a real game, and every ply carries its clocks."""
    game = played(tmp_path, score, ROOK_ENDING, **rules)
    assert (game.outcome.ending, len(game.plies)) == (ending, plies)
    assert all(ply.counters is not None for ply in game.plies)
    last = game.plies[-1].counters
    assert last is not None
    assert last.moves_to_fifty == (100 - 7 - plies) // 2
    if ending is Ending.EVAL_WIN:
        assert (last.plies_to_win, last.rr, last.plies_to_draw) == (0, 0, None)
    if ending is Ending.FEW_PIECES_DRAW:
        clocks = [ply.counters and ply.counters.plies_to_draw for ply in game.plies]
        assert clocks == [3, 2, 1, 0]


def test_the_referee_ends_a_game_by_the_tables(tmp_path: pathlib.Path) -> None:
    """The capture that leaves few enough men ends the game."""
    fen = "7r/1k6/8/8/8/8/1K6/R6R w - - 7 40"
    rules = {"syzygy": {"path": str(TABLES)}}
    order = hall.order(
        shuffler(0, ("h1h8",)),
        shuffler(0),
        opening=contract.Opening(fen=fen),
        adjudication=contract.Adjudication.model_validate(rules),
        time_margin_ms=5_000,
    )
    game = hall.play(tmp_path, order)
    assert (game.outcome, len(game.plies)) == (verdict.tablebase("black"), 1)
    assert game.finished is not None
    assert game.finished["remarks"] == []
