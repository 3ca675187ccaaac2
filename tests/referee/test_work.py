"""What the referee of ``farm match`` does for a ply does not grow with the game.

Counted in calls of Python functions, engines and kernel apart, so that a busy machine
changes nothing.
"""

from __future__ import annotations

import random
import sys
import time
from typing import Any

import chess
import made

from orchestrator import contract
from worker_cpu.engines import local
from worker_cpu.protocols import uci_engine
from worker_cpu.referee import game as referee_game
from worker_cpu.referee import io_loop
from worker_cpu.wire import frames

CALLS = 195  # of functions a ply, its part of the PGN included: 181 now, 190, 208 and 272 before
SIDES: tuple[contract.Side, contract.Side] = ("white", "black")


class Channel:
    """Takes what the link is told, and keeps the PGN."""

    queued = False
    pgn = b""

    def offer(self, kind: frames.Kind, payload: bytes) -> bool:
        """Take a frame."""
        return bool(kind and payload)

    def send(self, kind: frames.Kind, payload: bytes) -> None:
        """Take a frame."""
        if kind is frames.Kind.PGN:
            self.pgn += payload


class Desk(io_loop.IoLoop):
    """A desk whose engines answer at once, with the moves of a written game."""

    def __init__(self, moves: list[str]) -> None:
        self.channel: Any = Channel()
        self.seats = {side: local.LocalSeat(side) for side in SIDES}
        self.ended, self.frames, self._started = [], [], None
        self.traffic, self._dropped, self._moves = False, {}, iter(moves)

    def drain(self, seat: local.LocalSeat) -> None:
        """Do nothing: no engine writes ahead."""
        self._seat = seat

    def start(self, seat: local.LocalSeat, words: bytes) -> int:
        """Start a search."""
        assert words.endswith(b"\n")
        return time.monotonic_ns()

    def hear(self, timeout_ns: int, first: local.LocalSeat | None = None) -> list[io_loop.Heard]:
        """Answer."""
        assert timeout_ns > 0
        assert first is self._seat
        answer = f"info depth 9 score cp 20 nodes 900\nbestmove {next(self._moves)}\n"
        return [io_loop.Heard(self._seat, answer.encode(), time.monotonic_ns())]


def test_a_ply_costs_the_same_in_a_game_of_any_length() -> None:
    """Calls a ply at 60 and at 240 plies: as many, and no more than a bound."""
    moves = _long_game(240)
    _calls(moves[:30])  # what is looked up once is there
    short, long = (_calls(moves[:plies]) / plies for plies in (60, 240))
    assert long < short * 1.02
    assert long < CALLS


def _calls(moves: list[str]) -> int:
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    order = made.order(journaled=False, recorded=False, traffic=False, pgn=contract.PgnStyle())
    desk = Desk([*moves, "0000"])  # the last is no legal move
    game = referee_game.Game(desk, order, {})
    game._players = {side: uci_engine.UciPlayer(game.board, side) for side in SIDES}
    outcome = None
    sys.setprofile(counted)
    try:
        while outcome is None:
            outcome = game._ply()
        game.tell_kept(outcome)
    finally:
        sys.setprofile(None)
    assert outcome.ending is contract.Ending.ILLEGAL
    assert f'[PlyCount "{len(moves)}"]'.encode() in desk.channel.pgn
    return count


def _long_game(plies: int) -> list[str]:
    """Return moves that end no game: neither fifty quiet ones nor positions that come back."""
    for seed in range(1000):
        dice, board = random.Random(seed), chess.Board()
        while len(board.move_stack) < plies and board.outcome(claim_draw=False) is None:
            quiet = [move for move in board.legal_moves if not board.is_capture(move)]
            board.push(dice.choice(sorted(quiet or board.legal_moves, key=str)))
            if board.is_repetition(3) or board.is_fifty_moves():
                break
        else:
            if len(board.move_stack) == plies:
                return [move.uci() for move in board.move_stack]
    raise AssertionError("no such game")
