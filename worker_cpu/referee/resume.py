"""Bring a referee's game to where an interrupted one stood (S16-15b v, CUP-7b v, FRC-7b v).

The moves are played again on the board and told to the engines as the game's history, the
rules that end games early see every ply once more, and both clocks stand as the order says:
as at the last completed move, with the event's time compensation in them.
"""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator import contract
from orchestrator.arbiter import board, clock
from orchestrator.arbiter.adjudication import judge
from orchestrator.common import errors


def resume(
    order: contract.GameOrder,
    game: board.GameBoard,
    rules: judge.Judge,
    clocks: Mapping[contract.Side, clock.EngineClock],
) -> contract.Outcome | None:
    """Play the order's progress again; return the outcome if its last ply ends the game.

    Raise ``BookError`` for plies that cannot be played.
    """
    progress = order.progress
    outcome: contract.Outcome | None = None
    for ply in progress.plies if progress else ():
        try:
            game.resume(ply.move)
        except errors.LedgerDamagedError as error:
            raise errors.BookError(f"the game cannot be resumed: {error}") from error
        ruling = rules.take(game.position(), game.ply, ply.score)
        outcome = game.ending() or ruling.outcome
    if progress is not None and progress.plies:
        _set_clocks(progress, clocks)
    return outcome


def _set_clocks(
    progress: contract.Progress, clocks: Mapping[contract.Side, clock.EngineClock]
) -> None:
    left = {"white": progress.white_clock_ns, "black": progress.black_clock_ns}
    for side, own in clocks.items():
        moves = sum(ply.side == side for ply in progress.plies)
        remaining_ns = left[side]
        if remaining_ns is not None:
            own.resume(remaining_ns, moves)
