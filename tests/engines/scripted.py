"""A scripted engine for tests, UCI or XBoard: deterministic games, and a playbook of faults.

Standalone: ``python scripted.py [--name N] [--strength 0..3] [--seed S] [--delay-ms N]
[--burn-ms N] [--protocol uci|xboard] [--claim-cp N] [--fault KIND[:ARGUMENT][@PLY]]...
[--life FILE] [--game ID]``.

The move is a function of seed, strength and game history alone, never of time, so the
same pairing plays the same game again. Strength 0 plays at random; from 1 on it mates
in one and takes material; from 2 on it counts what can be taken back; from 3 on it
sees the mate in one that it would allow.

Faults (``PLAYBOOK`` lists them): with ``@PLY`` a fault happens once, at the engine's
first move whose number in the game (book plies included, counted from 1) is PLY or
later; without it, at every move. Faults of start-up and of the line style take no ply.

``--life FILE`` appends a JSON line ``{"pid", "parent", "parent_started", "game", "name", "gpus",
"event", "t"}`` at the start and every 20 ms until death; ``t`` is CLOCK_MONOTONIC in nanoseconds,
``parent_started`` tells a parent from an earlier one of the same number. ``game`` is
``--game``, else the environment's ``FARM_GAME``, ``gpus`` its ``CUDA_VISIBLE_DEVICES``, each else
null.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import chess

LIFE_BEAT = 0.02  # s: finer than any pause between two games
BOUND = 300.0  # s: a deaf engine that nobody kills still ends
FLOOD_LINES = 100_000
LONG_LINE = 1 << 20
FLOOD_BYTES, MEMORY_BYTES = 4 << 20, 64 << 20
MANY, MISCHIEF_SECONDS = 40, 2.0  # children and threads of an engine's mischief, and how long
INFO = b"info depth 1 seldepth 1 score cp 0 nodes 1 nps 1000 time 1 pv e2e4\n"
XBOARD_INFO = b" 1 0 1 1000 e2e4\n"
MATE, PIECE = 100_000, (0, 100, 300, 310, 500, 900, 0)
NOISE = (10**6, 320, 110, 60)  # centipawns of whim, by strength


@dataclasses.dataclass
class Fault:
    """One ``--fault``: kind, argument, and the ply from which it may happen."""

    kind: str
    argument: str
    ply: int | None
    spent: bool = False

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Read ``KIND[:ARGUMENT][@PLY]``."""
        head, _, ply = text.partition("@")
        kind, _, argument = head.partition(":")
        if kind not in PLAYBOOK and kind not in STYLES:
            raise argparse.ArgumentTypeError(f"unknown fault {kind!r}")
        return cls(kind, argument, int(ply) if ply else None)

    def due(self, ply: int) -> bool:
        """Say whether the fault happens at this move, and remember that it did."""
        if self.ply is None:
            return True
        happens = ply >= self.ply and not self.spent
        self.spent = self.spent or happens
        return happens


# -- choosing a move -----------------------------------------------------------------


def whim(seed: str, strength: int, board: chess.Board, uci: str) -> float:
    """Return a number in [0, 1) that only seed, strength, position and move decide."""
    text = f"{seed}/{strength}/{board.fen()}/{uci}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def choose(board: chess.Board, seed: str, strength: int) -> tuple[chess.Move, int]:
    """Return the move to play and its value in centipawns for the mover."""
    balance = material(board)
    values = {}
    for move in board.legal_moves:
        fancy = NOISE[strength] * whim(seed, strength, board, move.uci())
        values[move] = (worth(board, move, strength, balance) + fancy, move.uci())
    best = max(values, key=values.__getitem__)
    return best, balance


def worth(board: chess.Board, move: chess.Move, strength: int, balance: int) -> float:
    """Judge a move by what is on the board after it, as far as the strength sees."""
    if strength == 0:
        return 0.0
    value = float(gain(board, move))
    board.push(move)
    replies = list(board.legal_moves)
    if not replies:
        value = MATE if board.is_check() else (-MATE if balance >= 0 else MATE / 2)
    elif board.is_repetition(2) or board.halfmove_clock > 90:
        value -= balance / 4
    else:
        value += restraint(board, replies, balance)
        if strength >= 2:
            value -= max(gain(board, reply) for reply in replies)
        if strength >= 3 and any(mates(board, reply) for reply in replies):
            value -= MATE / 2
    board.pop()
    return value


def gain(board: chess.Board, move: chess.Move) -> int:
    """Return the material a move takes or makes; a defended victim costs the taker."""
    victim = board.piece_type_at(move.to_square) or (1 if board.is_en_passant(move) else 0)
    made = PIECE[move.promotion or 0]
    if board.is_castling(move) or not victim + made:
        return 0
    risk = 0
    if board.is_attacked_by(not board.turn, move.to_square):
        risk = PIECE[move.promotion or board.piece_type_at(move.from_square) or 0]
    return max(PIECE[victim] + made - risk, made // 9)


def restraint(board: chess.Board, replies: list[chess.Move], balance: int) -> float:
    """Reward driving the game to an end: few replies, a driven king, pawns ahead."""
    moved = board.peek()
    value = -2.0 * len(replies)
    if board.piece_type_at(moved.to_square) == 1:
        rank = moved.to_square >> 3
        value += 4.0 * (7 - rank if board.turn else rank)
    if balance > 300:
        king, own = board.king(board.turn) or 0, board.king(not board.turn) or 0
        value += 12.0 * centre_distance(king) - 6.0 * king_distance(king, own)
        value -= 8.0 * len(replies) if len(replies) < 8 else 0.0
    return value


def centre_distance(square: int) -> int:
    """Return how far a square is from the middle of the board, 0 to 6."""
    file, rank = square & 7, square >> 3
    return max(3 - file, file - 4) + max(3 - rank, rank - 4)


def king_distance(one: int, other: int) -> int:
    """Return the number of king moves between two squares."""
    return max(abs((one & 7) - (other & 7)), abs((one >> 3) - (other >> 3)))


def mates(board: chess.Board, move: chess.Move) -> bool:
    """Say whether a move mates."""
    if not board.gives_check(move):
        return False
    board.push(move)
    mated = board.is_checkmate()
    board.pop()
    return mated


def material(board: chess.Board) -> int:
    """Return the mover's material less the opponent's, in centipawns."""
    total = 0
    for kind in range(1, 6):
        own = len(board.pieces(kind, board.turn))
        total += PIECE[kind] * (own - len(board.pieces(kind, not board.turn)))
    return total


# -- the playbook --------------------------------------------------------------------


class Engine:
    """The UCI loop, with the faults of the playbook at their moves."""

    word = "bestmove"  # before a move
    stop = b"stop"
    info = INFO

    def __init__(self, options: argparse.Namespace) -> None:
        """Take the command line's options."""
        self.options = options
        self.faults: list[Fault] = options.fault
        self.end = b"\r\n" if self.has("crlf") else b"\n"
        self.chess960, self.shows_wdl = False, False
        self.board: chess.Board | None = None
        self.ply = 1
        self.chosen: tuple[str, int] | None = None

    def has(self, kind: str) -> bool:
        """Say whether a fault of start-up or style was asked for."""
        return any(fault.kind == kind for fault in self.faults)

    def say(self, text: str) -> None:
        """Write one line."""
        write(text.encode() + self.end)

    def run(self) -> None:
        """Obey commands until ``quit`` or the end of the input."""
        while True:
            line = sys.stdin.buffer.readline()
            words = line.decode(errors="replace").split()
            command = words[0] if words else ""
            if not line or command == "quit":
                if self.has("ignore-quit"):
                    sleep_on()
                return
            self.obey(command, words)

    def obey(self, command: str, words: list[str]) -> None:
        """Do what a command says; what is not known is passed over."""
        handler = COMMANDS.get(command)
        if handler is not None:
            handler(self, words)

    def answer(self, move: str) -> None:
        """Write a move."""
        self.say(f"{self.word} {move}")
        if move == self.move():
            self.made()

    def made(self) -> None:
        """Note that the move of this position has been answered; UCI keeps no board."""

    def uci(self, _words: list[str]) -> None:
        """Answer the handshake, or not."""
        if self.has("exit-before-uciok"):
            die(1)
        if self.has("no-uciok"):
            return
        self.say(f"id name {self.options.name}")
        self.say("id author Tournament Farm tests")
        self.say("option name Hash type spin default 16 min 1 max 1024")
        self.say("option name Threads type spin default 1 min 1 max 4")
        self.say("option name UCI_Chess960 type check default false")
        if self.options.wdl:
            self.say("option name UCI_ShowWDL type check default false")
        self.say("uciok")

    def setoption(self, words: list[str]) -> None:
        """Take the one option that matters."""
        text = " ".join(words).lower()
        if "uci_chess960" in text:
            self.chess960 = text.endswith("true")
        if "uci_showwdl" in text:
            self.shows_wdl = text.endswith("true")

    def isready(self, _words: list[str]) -> None:
        """Load what the game needs, and say so, or not."""
        import chess  # noqa: PLC0415 - the handshake does not wait for it

        assert chess
        if not self.has("no-readyok"):
            self.say("readyok")

    def position(self, words: list[str]) -> None:
        """Set up the position; the ply number counts the moves of the command."""
        import chess  # noqa: PLC0415 - as in isready

        split = words.index("moves") if "moves" in words else len(words)
        fen = chess.STARTING_FEN if words[1] == "startpos" else " ".join(words[2:split])
        self.board = chess.Board(fen, chess960=self.chess960)
        for move in words[split + 1 :]:
            self.board.push_uci(move)
        self.ply = len(words[split + 1 :]) + 1
        self.chosen = None

    def go(self, _words: list[str]) -> None:
        """Move, or do what the playbook has for this ply."""
        time.sleep(self.options.delay_ms / 1000)
        burn(self.options.burn_ms / 1000)
        for fault in self.faults:
            if fault.kind == "mischief":
                misbehave(fault.argument)
        for fault in self.faults:
            if fault.kind in PLAYBOOK and fault.due(self.ply):
                PLAYBOOK[fault.kind](self, fault.argument)
                return
        self.inform()
        self.answer(self.move())

    def choice(self) -> tuple[str, int]:
        """Return the move of this position and its score, worked out once."""
        if self.chosen is None:
            self.chosen = ("(none)", 0)
            if self.board is not None and any(self.board.legal_moves):
                move, value = choose(self.board, self.options.seed, self.options.strength)
                claim = self.options.claim_cp
                if claim is not None:
                    value = claim if self.board.turn else -claim
                self.chosen = (self.board.uci(move), value)
        return self.chosen

    def move(self) -> str:
        """Return the move of this position."""
        return self.choice()[0]

    def inform(self) -> None:
        """Print one info line with an exact score."""
        move, value = self.choice()
        spent = max(1, round(self.options.delay_ms + self.options.burn_ms))  # ms
        stats = f"nodes {1000 * spent} nps 1000000 time {spent} hashfull 0 tbhits 0"
        wins = 100 + max(-50, min(800, value))
        wdl = f" wdl {wins} {950 - wins} 50" if self.shows_wdl else ""
        self.say(f"info depth 2 seldepth 3 score cp {value}{wdl} {stats} pv {move}")


class XboardEngine(Engine):
    """The XBoard loop: it keeps its own board, and answers moves when it plays."""

    word = "move"
    stop = b"?"
    info = XBOARD_INFO

    def __init__(self, options: argparse.Namespace) -> None:
        """Take the command line's options."""
        super().__init__(options)
        self.forced = True

    def obey(self, command: str, words: list[str]) -> None:
        """Do what a command says; what is not known is an error."""
        handler = XBOARD_COMMANDS.get(command)
        if handler is not None:
            handler(self, words)
        elif command not in XBOARD_IGNORED:
            self.say(f"Error (unknown command): {command}")

    def protover(self, _words: list[str]) -> None:
        """Tell the features, or not."""
        if self.has("exit-before-uciok"):
            die(1)
        if self.has("no-features"):
            return
        self.say("feature done=0")
        self.say(f'feature myname="{self.options.name}" usermove=1 setboard=1 san=0 colors=0')
        self.say('feature ping=1 memory=1 smp=1 variants="normal,fischerandom"')
        self.say('feature option="Style -combo solid /// *risky" option="Rest -button"')
        if not self.has("no-uciok"):
            self.say("feature done=1")

    def new(self, _words: list[str]) -> None:
        """Set up the start position."""
        self.forced, self.chess960 = False, False
        self.place(None)

    def place(self, fen: str | None) -> None:
        """Set up a position."""
        import chess  # noqa: PLC0415 - as in isready

        self.board = chess.Board(fen or chess.STARTING_FEN, chess960=self.chess960)
        self.ply, self.chosen = 1, None

    def variant(self, words: list[str]) -> None:
        """Play Chess960."""
        self.chess960 = words[1] == "fischerandom"
        self.place(None)

    def setboard(self, words: list[str]) -> None:
        """Set up a position, or say that it cannot."""
        if self.has("no-board"):
            self.say("tellusererror Illegal position")
        else:
            self.place(" ".join(words[1:]))

    def force(self, _words: list[str]) -> None:
        """Stop playing."""
        self.forced = True

    def ping(self, words: list[str]) -> None:
        """Answer, or not."""
        if not self.has("no-readyok"):
            self.say(f"pong {words[1]}")

    def usermove(self, words: list[str]) -> None:
        """Take a move, and answer it when playing."""
        assert self.board is not None
        try:
            self.board.push(self.board.parse_san(words[1]))
        except ValueError:
            self.board.push_uci(words[1])
        self.ply, self.chosen = self.ply + 1, None
        if not self.forced:
            super().go([])

    def go(self, words: list[str]) -> None:
        """Begin to play."""
        self.forced = False
        super().go(words)

    def made(self) -> None:
        """Play the move of this position on the own board."""
        if self.board is not None:
            self.board.push_uci(Engine.choice(self)[0])
            self.ply, self.chosen = self.ply + 1, None

    def choice(self) -> tuple[str, int]:
        """Return the move of this position; castling is told by words in Chess960."""
        text, value = super().choice()
        if self.chess960 and self.board is not None and text != "(none)":
            move = self.board.parse_uci(text)
            if self.board.is_castling(move):
                return self.board.san(move).rstrip("+#"), value
        return text, value

    def inform(self) -> None:
        """Print one line of thinking."""
        move, value = self.choice()
        self.say(f" 2 {value} 1 1000 3 1000000 0\t {move}")


def misbehave(file: str) -> None:
    """Do what a file asks for while it does, and play on: flood, fork, memory, threads."""
    try:
        with open(file, encoding="ascii") as asked:  # noqa: PTH123 - no pathlib here
            words = asked.read().split()
    except OSError:
        return  # no sandbox shows it
    if "flood" in words:
        write(INFO * (FLOOD_BYTES // len(INFO)))
    with contextlib.suppress(MemoryError, OSError, RuntimeError):  # the host's limits hold
        if "fork" in words:
            for _ in range(MANY):
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(MISCHIEF_SECONDS)
                    die(0)
        if "memory" in words:
            eaten = bytearray(MEMORY_BYTES)
            eaten[:: resource.getpagesize()] = b"x" * len(range(0, MEMORY_BYTES, 4096))
        if "threads" in words:
            for _ in range(MANY):
                threading.Thread(target=time.sleep, args=(MISCHIEF_SECONDS,), daemon=True).start()


def write(data: bytes) -> None:
    """Write all bytes to the standard output, unbuffered."""
    while data:
        data = data[os.write(1, data) :]


def sleep_on() -> NoReturn:
    """Be deaf until somebody kills this process (or the bound is reached)."""
    time.sleep(BOUND)
    die(3)


def die(status: int) -> NoReturn:
    """Exit at once."""
    os._exit(status)


def crash(_engine: Engine, _argument: str) -> None:
    """Exit with status 1 instead of an answer."""
    die(1)


def segv(_engine: Engine, _argument: str) -> None:
    """Die by SIGSEGV, without a core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)
    sleep_on()


def hang(_engine: Engine, _argument: str) -> None:
    """Never answer again, deaf to everything, SIGTERM included."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep_on()


def sleepy(engine: Engine, _argument: str) -> None:
    """Answer only when told to stop."""
    engine.inform()
    for line in sys.stdin.buffer:
        if line.strip() == b"quit":
            die(0)
        if line.strip() == engine.stop:
            break
    engine.answer(engine.move())


def late(engine: Engine, argument: str) -> None:
    """Think for ARGUMENT ms (1000), deaf to ``stop``, then answer."""
    engine.inform()
    time.sleep(int(argument or 1000) / 1000)
    engine.answer(engine.move())


def _write_ply(gate: str, ply: int) -> bool:
    """Write a ply into a file that is there; say whether it could be."""
    with contextlib.suppress(OSError):  # it is gone, or no sandbox shows it
        handle = os.open(gate, os.O_WRONLY | os.O_APPEND)
        os.write(handle, b"%d\n" % ply)
        os.close(handle)
        return True
    return False


def hold(engine: Engine, argument: str) -> None:
    """Think while the file ARGUMENT is there, then answer: a test acts meanwhile, in no haste.

    ``GAME`` in the file's name stands for the game's id. The ply is written into the file.
    """
    engine.inform()
    gate = argument.replace("GAME", str(engine.options.game))
    until = time.monotonic() + BOUND
    written = False
    while os.path.exists(gate) and time.monotonic() < until:  # noqa: PTH110 - no pathlib here
        # Written once the file has been seen: it may come just after a look, and whoever waits
        # for the ply would wait for ever.
        written = written or _write_ply(gate, engine.ply)
        time.sleep(0.01)
    engine.answer(engine.move())


def illegal(engine: Engine, argument: str) -> None:
    """Answer with a move that is none (a1a1, or ARGUMENT)."""
    engine.inform()
    engine.answer(argument or "a1a1")


def garbage(engine: Engine, _argument: str) -> None:
    """Answer with bytes that are no protocol."""
    write(b"\xff\xfe\x00info depth \x80 score cp \xc3\n}{;%\n")
    engine.answer('x}y{z" ponder \\')


def none(engine: Engine, _argument: str) -> None:
    """Answer that there is no move."""
    engine.answer("(none)")


def spam(engine: Engine, _argument: str) -> None:
    """Print info lines for ever, deaf."""
    until = time.monotonic() + BOUND
    while time.monotonic() < until:
        write(engine.info * 16)
    die(3)


def no_eval(engine: Engine, _argument: str) -> None:
    """Answer without any info line."""
    engine.answer(engine.move())


def close_stdout(_engine: Engine, _argument: str) -> None:
    """Close the output and live on."""
    os.close(1)
    sleep_on()


def child(_engine: Engine, _argument: str) -> None:
    """Leave a child that holds the pipes, and exit."""
    if os.fork() == 0:
        sleep_on()
    die(1)


def long_line(engine: Engine, _argument: str) -> None:
    """Print a line of 1 MiB before the answer."""
    engine.inform()
    engine.say("info string " + "x" * LONG_LINE)
    engine.answer(engine.move())


def flood(engine: Engine, _argument: str) -> None:
    """Print 100,000 info lines before the answer."""
    for _ in range(FLOOD_LINES // 100):
        write(engine.info * 100)
    engine.inform()
    engine.answer(engine.move())


def split(engine: Engine, _argument: str) -> None:
    """Write the answer in two pieces, the second after a pause."""
    engine.inform()
    answer = f"{engine.word} {engine.move()}".encode() + engine.end
    write(answer[:6])
    time.sleep(0.02)
    write(answer[6:])
    engine.made()


def exit_after(engine: Engine, _argument: str) -> None:
    """Answer, then exit."""
    engine.answer(engine.move())
    die(4)


def half(engine: Engine, _argument: str) -> None:
    """Answer without a line end, deaf from then on."""
    write(f"{engine.word} {engine.move()}".encode())
    sleep_on()


def doubled(engine: Engine, _argument: str) -> None:
    """Answer twice in one write, the second time with a move that is none.

    Between two writes the next position may be asked for: then it would answer that one.
    """
    moves = (engine.move(), "a1a1")
    write(b"".join(f"{engine.word} {move}".encode() + engine.end for move in moves))
    engine.made()


def loud(engine: Engine, _argument: str) -> None:
    """Write 4 MiB to the standard error and bytes of no text to the output, then answer."""
    for _ in range(64):
        os.write(2, b"x" * 65_535 + b"\n")
    write(b"\0\0\xff\xfe bestmove move 1-0\n\x00\n")
    engine.answer(engine.move())


def resign(engine: Engine, _argument: str) -> None:
    """Give the game up."""
    engine.say("resign")


def claim(engine: Engine, argument: str) -> None:
    """Claim a result instead of a move (1-0, or ARGUMENT)."""
    engine.say(f"{argument or '1-0'} {{I say so}}")


def claim_after(engine: Engine, argument: str) -> None:
    """Move, and claim a result behind it."""
    engine.answer(engine.move())
    engine.say(f"{argument or '1-0'} {{I say so}}")


def offer(engine: Engine, _argument: str) -> None:
    """Offer a draw before the move."""
    engine.say("offer draw")
    engine.answer(engine.move())


def refuse(engine: Engine, _argument: str) -> None:
    """Say that the opponent's move was illegal."""
    engine.say("Illegal move: e2e4")


PLAYBOOK: dict[str, Callable[[Engine, str], None]] = {
    "crash": crash,
    "segv": segv,
    "hang": hang,
    "sleepy": sleepy,
    "late": late,
    "hold": hold,
    "illegal": illegal,
    "garbage": garbage,
    "none": none,
    "spam": spam,
    "no-eval": no_eval,
    "close-stdout": close_stdout,
    "child": child,
    "long-line": long_line,
    "flood": flood,
    "split": split,
    "exit-after": exit_after,
    "half": half,
    "doubled": doubled,
    "loud": loud,
    "resign": resign,
    "claim": claim,
    "claim-after": claim_after,
    "offer": offer,
    "refuse": refuse,
}
STYLES = frozenset(
    {
        *("exit-before-uciok", "no-uciok", "no-readyok", "crlf", "ignore-quit"),
        "mischief",  # its argument is a file that says what to do beside playing
        *("no-features", "no-board"),  # of XBoard
    }
)
COMMANDS: dict[str, Callable[[Engine, list[str]], None]] = {
    "uci": Engine.uci,
    "setoption": Engine.setoption,
    "isready": Engine.isready,
    "position": Engine.position,
    "go": Engine.go,
}

XBOARD_COMMANDS: dict[str, Callable[[XboardEngine, list[str]], None]] = {
    "protover": XboardEngine.protover,
    "new": XboardEngine.new,
    "variant": XboardEngine.variant,
    "setboard": XboardEngine.setboard,
    "force": XboardEngine.force,
    "ping": XboardEngine.ping,
    "usermove": XboardEngine.usermove,
    "go": XboardEngine.go,
}
XBOARD_IGNORED = frozenset(
    {
        *("", "xboard", "accepted", "rejected", "level", "st", "sd", "time", "otim", "post"),
        *("easy", "memory", "cores", "option", "?"),
    }
)


def burn(seconds: float) -> None:
    """Use up processor time, as a search does."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


# -- life ----------------------------------------------------------------------------


def started(pid: int) -> str:
    """Return when a process began, in the kernel's ticks; empty when it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat:  # noqa: PTH123 - an engine starts soon
            return stat.read().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def live(options: argparse.Namespace) -> None:
    """Append a line of life every beat; whole lines, so a SIGKILL leaves no half one."""
    handle = os.open(options.life, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    event = "start"
    while True:
        fact = {
            "pid": os.getpid(),
            "parent": os.getppid(),
            "parent_started": started(os.getppid()),
            "game": options.game,
            "name": options.name,
            "gpus": os.environ.get("CUDA_VISIBLE_DEVICES"),
            "event": event,
            "t": time.monotonic_ns(),
        }
        os.write(handle, (json.dumps(fact) + "\n").encode())
        event = "alive"
        time.sleep(LIFE_BEAT)


def main() -> None:
    """Read the command line and play."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="Scripted")
    parser.add_argument("--strength", type=int, choices=range(4), default=1)
    parser.add_argument("--protocol", choices=("uci", "xboard"), default="uci")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--delay-ms", type=float, default=0.0)
    parser.add_argument("--burn-ms", type=float, default=0.0, help="of processor time, a move")
    parser.add_argument("--claim-cp", type=int, help="every eval, White's view")
    parser.add_argument("--wdl", action="store_true", help="offers UCI_ShowWDL")
    parser.add_argument("--fault", type=Fault.parse, action="append", default=[])
    parser.add_argument("--life")
    parser.add_argument("--game", default=os.environ.get("FARM_GAME"))
    options = parser.parse_args()
    if options.life:
        threading.Thread(target=live, args=(options,), daemon=True).start()
    (XboardEngine if options.protocol == "xboard" else Engine)(options).run()


if __name__ == "__main__":
    main()
