"""The farm's own UCI engine: pure Python, honest strength set by a node limit.

It plays where no other engine is found, and is the engine that the farm trusts when it
asks whether a host is sick. Invariants: ``stop`` and ``isready`` are obeyed while it
thinks (one thread reads, the main thread thinks); ``bestmove`` after ``go infinite``
only follows ``stop``; a reserve for a slow machine is never planned away, so it does
not flag at one second plus a hundredth.

The chess library is loaded with the first ``isready`` or ``position``, so that the
handshake is immediate and loading is off the clock.
"""

from __future__ import annotations

import argparse
import itertools
import os
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import chess

    from worker_cpu.builtin_engine import search

NAME = "Farmhand"
MAX_HASH_MB = 4096
MAX_NODES = 10_000_000
RESERVE_MS = 150  # ms: kept for pipes, scheduling and garbage collection on a slow host
PROCESSES_IN = 8  # tasks that are held, one is a process
HELD_SECONDS = 120.0  # s: far beyond a probe, so that nothing of it stays
MOVES_AHEAD = 30  # moves the time left is shared among when nothing else is said
_NS_PER_MS = 1_000_000
_CLOCK_WORDS = frozenset(
    {"wtime", "btime", "winc", "binc", "movestogo", "movetime", "depth", "nodes"}
)


class Engine:
    """One UCI session on the standard input and output."""

    def __init__(self, name: str, nodes: int) -> None:
        """Take the engine's name and its node limit per move, 0 for none."""
        self._name = name
        self._nodes = nodes
        self._hash_mb = 16
        self._chess960 = False
        self._search: search.Search | None = None
        self._board: chess.Board | None = None
        self._position: list[str] = []
        self._commands: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
        # one event a search, so that a stop never reaches the search after its own
        self._stops: queue.SimpleQueue[threading.Event] = queue.SimpleQueue()
        self._latest = self._answered = threading.Event()
        self._handlers = {
            "uci": self._uci,
            "isready": self._isready,
            "setoption": self._setoption,
            "ucinewgame": self._ucinewgame,
            "position": self._set_position,
            "go": self._go,
        }

    def run(self) -> None:
        """Obey commands until ``quit`` or the end of the input."""
        threading.Thread(target=self._read, daemon=True).start()
        while True:
            command = self._commands.get()
            if command[0] == "quit":
                return
            handler = self._handlers.get(command[0])
            if handler is None:
                continue
            try:
                handler(command)
            except (ValueError, IndexError, AssertionError) as error:
                _say(f"info string cannot obey {command[0]}: {error}")

    # -- the reading thread ----------------------------------------------------------

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            command = line.decode(errors="replace").split()
            if not command:
                continue
            if command[0] == "isready" and self._latest is not self._answered:
                _say("readyok")
                continue
            self._note(command[0])
            self._commands.put(command)
            if command[0] == "quit":
                return
        self._latest.set()
        self._commands.put(["quit"])

    def _note(self, command: str) -> None:
        """Take effect on a search at once, before the command's turn in the queue."""
        if command == "go":
            self._latest = threading.Event()
            self._stops.put(self._latest)
        elif command in {"stop", "quit"}:
            self._latest.set()

    # -- the thinking thread ---------------------------------------------------------

    def _uci(self, _words: list[str]) -> None:
        _say(f"id name {self._name}")
        _say("id author the Tournament Farm project")
        _say(f"option name Hash type spin default 16 min 1 max {MAX_HASH_MB}")
        _say("option name Threads type spin default 1 min 1 max 1")
        _say(f"option name Nodes type spin default {self._nodes} min 0 max {MAX_NODES}")
        _say("option name UCI_Chess960 type check default false")
        _say("uciok")

    def _isready(self, _words: list[str]) -> None:
        self._load()
        _say("readyok")

    def _load(self) -> search.Search:
        if self._search is None:
            from worker_cpu.builtin_engine import search  # noqa: PLC0415 - loading is off the clock

            self._search = search.Search(self._hash_mb)
        return self._search

    def _setoption(self, command: list[str]) -> None:
        split = command.index("value") if "value" in command else len(command)
        name, value = " ".join(command[2:split]).lower(), " ".join(command[split + 1 :])
        if name == "hash":
            self._hash_mb = min(max(int(value), 1), MAX_HASH_MB)
            if self._search is not None:
                self._search.resize(self._hash_mb)
        elif name == "nodes":
            self._nodes = min(max(int(value), 0), MAX_NODES)
        elif name == "uci_chess960":
            self._chess960 = value.lower() == "true"
            self._position = []

    def _ucinewgame(self, _words: list[str]) -> None:
        self._load().clear()
        self._position = []

    def _set_position(self, command: list[str]) -> None:
        import chess  # noqa: PLC0415 - loading is off the clock

        previous = self._position
        self._position = []
        if self._board is not None and previous and command[: len(previous)] == previous:
            moves = command[len(previous) :]
            moves = moves[1:] if moves[:1] == ["moves"] else moves
        else:
            split = command.index("moves") if "moves" in command else len(command)
            fen = chess.STARTING_FEN if command[1] == "startpos" else " ".join(command[2:split])
            self._board = chess.Board(fen, chess960=self._chess960)
            moves = command[split + 1 :]
        for move in moves:
            self._board.push_uci(move)
        self._position = command

    def _go(self, command: list[str]) -> None:
        started_ns = time.perf_counter_ns()
        stop = self._stops.get()
        if self._board is None:
            self._set_position(["position", "startpos"])
        assert self._board is not None
        limits = self._limits(command, self._board.turn, started_ns)
        line = self._load().run(self._board, limits, stop.is_set, self._inform)
        if "infinite" in command or not (self._nodes or _CLOCK_WORDS.intersection(command)):
            stop.wait()
        moves = [self._board.uci(line[0])] if line else ["(none)"]
        if len(line) > 1:
            after = self._board.copy(stack=False)
            after.push(line[0])
            moves += ["ponder", after.uci(line[1])]
        self._answered = stop
        _say(f"bestmove {' '.join(moves)}")

    def _limits(self, command: list[str], white: bool, started_ns: int) -> search.Limits:  # noqa: FBT001 - python-chess tells sides as booleans
        from worker_cpu.builtin_engine import search  # noqa: PLC0415 - loading is off the clock

        pairs = itertools.pairwise(command)
        said = {w: int(n) for w, n in pairs if w in _CLOCK_WORDS and n.lstrip("-").isdecimal()}
        nodes = [limit for limit in (self._nodes, said.get("nodes", 0)) if limit > 0]
        left = said.get("wtime" if white else "btime")
        soft_ns = hard_ns = None
        if "movetime" in said:
            soft_ns = hard_ns = started_ns + max(said["movetime"] - 10, 1) * _NS_PER_MS
        elif left is not None:
            increment = said.get("winc" if white else "binc", 0)
            soft, hard = budget_ms(left, increment, said.get("movestogo", MOVES_AHEAD))
            soft_ns = started_ns + int(soft * _NS_PER_MS)
            hard_ns = started_ns + int(hard * _NS_PER_MS)
        return search.Limits(
            depth=min(max(said.get("depth", search.MAX_DEPTH), 1), search.MAX_DEPTH),
            nodes=min(nodes, default=None),
            soft_ns=soft_ns,
            hard_ns=hard_ns,
        )

    def _inform(self, progress: search.Progress) -> None:
        assert self._board is not None
        board = self._board.copy(stack=False)
        line = []
        for move in progress.pv:
            line.append(board.uci(move))
            board.push(move)
        speed = progress.nodes * 1_000_000_000 // max(progress.time_ns, 1)
        _say(
            f"info depth {progress.depth} seldepth {progress.seldepth}"
            f" score {_score(progress.score)} nodes {progress.nodes} nps {speed}"
            f" hashfull {min(progress.hashfull, 1000)}"
            f" time {progress.time_ns // _NS_PER_MS} pv {' '.join(line)}"
        )


def budget_ms(left_ms: int, increment_ms: int, moves: int) -> tuple[float, float]:
    """Return the soft and the hard time for one move in milliseconds.

    The hard time is at most a quarter of what is left beyond the reserve.
    """
    usable = max(left_ms - RESERVE_MS, left_ms * 0.1)
    share = usable / max(min(moves, MOVES_AHEAD), 1) + 0.6 * increment_ms
    hard = min(2.5 * share, 0.25 * usable)
    return min(0.5 * share, hard), hard


def _score(value: int) -> str:
    from worker_cpu.builtin_engine import search  # noqa: PLC0415 - loaded long before

    plies = search.MATE - abs(value)
    if plies > search.MATED_WITHIN:
        return f"cp {value}"
    return f"mate {(plies + 1) // 2 if value > 0 else -(plies // 2)}"


def _say(line: str) -> None:
    # one write a line: both threads speak
    os.write(1, line.encode() + b"\n")


def _hold_tasks(number: int) -> None:
    """Start so many threads, one in eight a process, until the end; they do nothing.

    Where the host has no room for them, the engine ends with the system's error.
    """
    wanted_processes = number // PROCESSES_IN
    for _ in range(wanted_processes):
        if os.fork() == 0:
            os.closerange(0, 3)
            time.sleep(HELD_SECONDS)
            os._exit(0)
    for _ in range(number - wanted_processes):
        threading.Thread(target=time.sleep, args=(HELD_SECONDS,), daemon=True).start()


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the engine on the standard input and output."""
    parser = argparse.ArgumentParser(prog="farm-engine", description="The farm's own UCI engine.")
    parser.add_argument("--name", default=NAME, help="the name it gives itself")
    parser.add_argument("--nodes", type=int, default=0, help="node limit per move, 0 for none")
    parser.add_argument("--tasks", type=int, default=0, help="threads and processes it holds")
    options = parser.parse_args(arguments)
    try:
        _hold_tasks(options.tasks)
        Engine(options.name, min(max(options.nodes, 0), MAX_NODES)).run()
    except BrokenPipeError:
        os._exit(1)  # nobody listens, and the reading thread cannot be woken


if __name__ == "__main__":
    main()
