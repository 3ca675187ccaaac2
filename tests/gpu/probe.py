"""A UCI engine that writes down how long it thought, by its own clock.

``python probe.py LOG [--think-ms N[-M]] [--name NAME] [--says LINE]``: each search is a line of
``LOG`` with two monotonic stamps in nanoseconds, taken when ``go`` was read and before ``bestmove``
is written. ``LINE`` is said as it begins.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import time

import chess


def main() -> None:
    """Play any legal move after a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("log")
    parser.add_argument("--think-ms", default="5")
    parser.add_argument("--name", default="Probe")
    parser.add_argument("--says", default="")
    options = parser.parse_args()
    low, _, high = options.think_ms.partition("-")
    dice = random.Random(options.name)
    with contextlib.suppress(OSError):  # its own delays shall not be taken for the agent's
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    position = ["position", "startpos"]
    log = os.open(options.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for line in sys.stdin:
        read_ns = time.monotonic_ns()
        words = line.split()
        if words[:1] == ["uci"]:
            print(f"id name {options.name}\nuciok", flush=True)
        elif words[:1] == ["isready"]:
            print("readyok", flush=True)
        elif words[:1] == ["position"]:
            position = words  # read when the search has begun: it comes in one piece with go
        elif words[:1] == ["go"]:
            board = _board(position)
            move = dice.choice(list(board.legal_moves))
            print("info depth 1 score cp 0 nodes 1 pv", move, flush=True)
            if options.says:
                print(options.says, flush=True)
            time.sleep(dice.uniform(float(low), float(high or low)) / 1000)
            wrote_ns = time.monotonic_ns()
            print("bestmove", move, flush=True)
            os.write(log, f"{read_ns} {wrote_ns}\n".encode())
        elif words[:1] == ["quit"]:
            return


def _board(words: list[str]) -> chess.Board:
    at = words.index("moves") if "moves" in words else len(words)
    board = chess.Board() if words[1] == "startpos" else chess.Board(" ".join(words[2:at]))
    for move in words[at + 1 :]:
        board.push_uci(move)
    return board


if __name__ == "__main__":
    main()
