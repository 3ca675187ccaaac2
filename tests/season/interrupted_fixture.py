"""The season of the frozen journal ``interrupted``: every end an interruption can have.

Resumed with compensation, won by the evals, moved to the end of its round, begun anew at
the operator's wish, asked of the organizers and answered twice (a result, ``resume``), and
the end of an attempt that a restore found in flight.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import chess
import driver

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.season import interruption
from orchestrator.season.amend import operations
from orchestrator.season.fold import entries, orders

WHY = ("ann", "a fixture")


# The final is played from positions of seven men, for which no tables are at hand.
FEW = """
[books.few]
file = "few.epd"
"""
SEVEN = "4k3/{}pp5/8/8/8/8/{}PP5/4K3 w - - 0 1\n"


def season() -> driver.Driver:
    """Play it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = [SEVEN.format("p", "1"), SEVEN.format("1", "P")]
        (folder / "few.epd").write_text("".join(lines))
        played = driver.Driver.launched(driver.load(folder, _text()))
    played.settle()
    _interrupt(played, _plies(played, 4), "power")
    _interrupt(played, _plies(played, 6)[4:], "restored")
    played.play(1)
    _interrupt(played, _plies(played, 4, cp=-1001), "worker lost")
    _interrupt(played, _plies(played, 5), "operator", "end-of-round")
    _interrupt(played, _plies(played, 3), "operator", "restart")
    played.play(len(played.state.events["league"].order) - 2)
    for choice in ("resume", "1/2-1/2"):
        _interrupt(played, _plies(played, 2), "host lost")
        (question,) = interruption.outstanding(played.state)
        played.append(interruption.answer(played.state, question, choice, *WHY))
    return played.play()


def _text() -> str:
    league, final = driver.season_text().rsplit('book = "short"', 1)
    head, rest = league.split("[[event]]", 1)
    text = f'{head}{FEW}\n[[event]]{rest}book = "few"{final}'
    return text.replace('book = "', 'interruptions = "s16"\nbook = "')


def _plies(played: driver.Driver, count: int, cp: int = 30) -> list[contract.PlyRecord]:
    """Return so many engine plies of the ready game, with one eval from White's side."""
    game = played.state.ready_game()
    assert game is not None
    order = orders.game_order(played.state, game)
    board, told = boards.GameBoard(order.opening, order.variant), []
    for _ in range(count):
        move = min(board.position().legal_moves, key=chess.Move.uci)
        side = board.turn
        ply = contract.PlyRecord(
            ply=board.ply + 1,
            side=side,
            move=move.uci(),
            san=board.push(move),
            think_ns=7_000_000,
            margin_ns=1,
            overhead_ns=1,
            white_clock_ns=1_000_000_000,
            black_clock_ns=2_000_000_000,
            score=contract.Score(cp=cp if side == "white" else -cp),
        )
        told.append(ply)
    return told


def _interrupt(
    played: driver.Driver, told: list[contract.PlyRecord], cause: str, then: entries.Then = ""
) -> None:
    game = played.state.ready_game()
    assert game is not None
    attempt = played.start(game)
    if then:
        played.append(operations.abort(played.state, *WHY, then=then))
    played.interrupt(game, attempt, told[-1].ply, cause)
    played.append(interruption.judge(played.state, told))
