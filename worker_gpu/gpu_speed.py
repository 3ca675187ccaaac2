"""How fast this box's processor is: a count of chess positions that is known beforehand."""

from __future__ import annotations

import statistics
import time

import chess

POSITION = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
DEPTH = 2
RUNS = 5  # the median is told: one run may meet somebody else's time slice


def measure() -> tuple[int, str]:
    """Return positions a second, and how many there were: the same on every sound host."""
    runs = [_run() for _ in range(RUNS)]
    return round(statistics.median(speed for speed, _ in runs)), str(runs[0][1])


def _run() -> tuple[float, int]:
    began = time.perf_counter()
    count = _perft(chess.Board(POSITION), DEPTH)
    return count / (time.perf_counter() - began), count


def _perft(board: chess.Board, depth: int) -> int:
    if depth == 0:
        return 1
    count = 0
    for move in list(board.legal_moves):
        board.push(move)
        count += _perft(board, depth - 1)
        board.pop()
    return count
