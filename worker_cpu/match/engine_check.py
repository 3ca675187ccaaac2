"""``farm engine check``: does an engine keep its protocol, one check after the other.

Sources: the UCI protocol text of April 2006; CECP's specification, version 2. The engine runs
unconfined and is talked to by pipes; what was sent and said is kept for each check. An engine
that fell silent or died is started again for the next check. Invariants: no check hangs, each
waits for an answer at most ``patience`` seconds; no engine outlives the checks.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import pathlib
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

import chess

from orchestrator.common import errors, text
from worker_cpu.engines import local, supervisor
from worker_cpu.protocols import uci

State: TypeAlias = Literal["ok", "failed", "warning", "skipped"]

KEPT = 40  # lines of talk kept for a check, and as many again of its end
LONGEST = 300  # characters kept of a line of the engine's; what was sent can be sent again
SHORT_MS = 100  # a search that is long enough to be a search
LOOK = 0.05  # s between two looks whether an engine that writes to stderr has ended
ALONE = 0.3  # s without an answer, where none may come
AT_ONCE = 1.0  # s: an engine that heard stop answers within milliseconds, on a busy machine later
MATE_IN_ONE = "6k1/5ppp/8/8/8/8/8/R6K w - - 0 1"
MATED = "R5k1/5ppp/8/8/8/8/8/7K b - - 0 1"
STALEMATE = "7k/5Q2/6K1/8/8/8/8/8 b - - 0 1"
PROMOTION = "8/5P1k/8/8/8/6q1/8/7K w - - 0 1"  # the pawn alone can move
FIFTY = "8/8/4k3/8/8/4K3/4R3/8 w - - 98 120"
CHESS960 = "bqnb1rkr/pp3ppp/3ppn2/2p5/5P2/P2P4/NPP1P1PP/BQ1BNRKR w HFhf - 2 9"
CASTLING = "4k2r/pppp4/8/8/8/8/PPPP4/4K2R w Hh - 0 1"
SHUFFLE = ("g1f3", "g8f6", "f3g1", "f6g8")


@dataclasses.dataclass(frozen=True)
class Finding:
    """What one check found; ``talk``: what was sent (``>``), said (``<``), on stderr (``!``)."""

    name: str
    rule: str
    state: State
    words: str
    talk: tuple[str, ...] = ()


class _EndOfCheckError(Exception):
    """A check ended without all being well."""

    state: ClassVar[State] = "failed"


class _FailedError(_EndOfCheckError):
    """The engine broke a rule of the protocol."""


class _SilentError(_EndOfCheckError):
    """No answer came, or the engine is gone: it is started again."""


class _WarningError(_EndOfCheckError):
    """The engine did what GUIs can live with, and users will not."""

    state: ClassVar[State] = "warning"


class _SkippedError(_EndOfCheckError):
    """The engine does not offer what the check is about."""

    state: ClassVar[State] = "skipped"


class Talk:
    """A running engine and its pipes."""

    def __init__(self, command: Sequence[str], home: pathlib.Path, patience: float) -> None:
        self.patience = patience
        self.lines: collections.deque[str] = collections.deque()
        self.head: list[str] = []
        self.tail: collections.deque[str] = collections.deque(maxlen=KEPT)
        self._rest = self._error_rest = b""
        self._ended = False  # its output: it may live a moment longer
        self._last_error = ""
        self.process = subprocess.Popen(
            command,
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stderr is not None
        self._errors: int | None = self.process.stderr.fileno()  # None: closed by the engine

    @property
    def gone(self) -> bool:
        """Say whether the engine has ended, or will say nothing more."""
        return self._ended or self.process.poll() is not None

    def send(self, *lines: str, end: str = "\n") -> None:
        """Write lines; raise ``_SilentError`` when the engine is gone."""
        assert self.process.stdin is not None
        for line in lines:
            self._note(f"> {line}")
        try:
            self.process.stdin.write("".join(f"{line}{end}" for line in lines).encode())
            self.process.stdin.flush()
        except OSError:
            raise _SilentError(f"the engine {self.fate()}") from None

    def until(self, what: str, wanted: Callable[[str], bool], seconds: float = 0) -> list[str]:
        """Read lines up to the wanted one, which is the last of those returned."""
        heard: list[str] = []
        for line in self._heard(seconds or self.patience):
            heard.append(line)
            if wanted(line):
                return heard
        if self.gone:
            raise _SilentError(f"no {what}: the engine {self.fate()}")
        raise _SilentError(f"no {what} within {seconds or self.patience:g} s")

    def said(self, seconds: float) -> list[str]:
        """Read what comes in some time."""
        return list(self._heard(seconds))

    def word(self, word: str, seconds: float = 0) -> list[str]:
        """Read up to the line that begins with a word."""
        return self.until(word, lambda line: line.split()[:1] == [word], seconds)

    def wait(self) -> int:
        """Wait for the process' end and return its status; raise ``subprocess.TimeoutExpired``.

        Its stderr is read meanwhile: an engine that cannot write there does not end.
        """
        deadline = time.monotonic() + self.patience
        while self.process.poll() is None and (left := deadline - time.monotonic()) > 0:
            if self._errors is None:
                return self.process.wait(left)
            if select.select([self._errors], [], [], min(left, LOOK))[0]:
                self._read_errors()
        return self.process.wait(0)

    def fate(self) -> str:
        """Say how the process ended, and what it wrote to stderr last."""
        end = "closed its pipes"
        with contextlib.suppress(subprocess.TimeoutExpired):
            status = self.wait()
            end = f"ended with status {status}"
            if status < 0:
                end = f"ended by signal {supervisor.signal_name(-status)}"
        while self._errors is not None and select.select([self._errors], [], [], 0)[0]:
            self._read_errors()
        return "; ".join(filter(None, [end, local.last_line(self._last_error)]))

    def close(self) -> None:
        """Kill the engine and whatever it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with contextlib.suppress(OSError):
                assert pipe is not None
                pipe.close()

    def begin(self) -> None:
        """Forget the talk so far."""
        self.head, self.tail = [], collections.deque(maxlen=KEPT)

    def talk(self) -> tuple[str, ...]:
        """Return the talk since ``begin``, its middle left out where it is long."""
        return (*self.head, *self.tail)

    def _heard(self, seconds: float) -> Iterator[str]:
        deadline = time.monotonic() + seconds
        while True:
            while self.lines:
                yield self.lines.popleft()
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                return

    def _read(self, seconds: float) -> bool:
        """Take what the engine says next; ``False`` when it is silent, or gone."""
        assert self.process.stdout is not None
        pipes = [self.process.stdout.fileno(), *([] if self._errors is None else [self._errors])]
        ready = select.select(pipes, [], [], seconds)[0]
        if self._errors in ready:
            self._read_errors()
        if self.process.stdout.fileno() not in ready:
            return bool(ready)
        data = os.read(self.process.stdout.fileno(), 1 << 16)
        self._ended = not data
        *whole, self._rest = (self._rest + data).split(b"\n")
        for line in whole:
            said = line.decode(errors="replace").rstrip("\r")
            self._note(f"< {said}")
            self.lines.append(said)
        return bool(data)

    def _read_errors(self) -> None:
        assert self._errors is not None
        data = os.read(self._errors, 1 << 16)
        *whole, rest = (self._error_rest + data).split(b"\n")
        if not data:
            self._errors, whole, rest = None, [*whole, rest], b""
        self._error_rest = rest[:LONGEST]
        for line in whole:
            decoded = line.decode(errors="replace")
            if line_text := text.one_line(decoded):
                indent = len(decoded) - len(decoded.lstrip(" "))  # a traceback's marks point up
                self._note(f"! {' ' * indent}{line_text}")
                self._last_error = line_text

    def _note(self, line: str) -> None:
        kept: list[str] | collections.deque[str] = self.head
        if len(self.head) >= KEPT:
            kept = self.tail
        whole = line.startswith(">") or len(line) <= LONGEST
        kept.append(line if whole else f"{line[:LONGEST]}…")


class _Checks:
    """The checks of a protocol: methods by their names, in order, with the rule of each."""

    RULES: ClassVar[Mapping[str, str]]

    def __init__(
        self,
        command: Sequence[str],
        home: pathlib.Path,
        patience: float,
        settings: Mapping[str, str],
    ) -> None:
        self._command, self._home, self._patience = command, home, patience
        self._settings = settings
        self._running: Talk | None = None
        self._before: tuple[str, ...] = ()  # the check's talk with an engine that it has ended
        self._no_protocol = ""  # why nothing else can be checked

    def run(self) -> Iterator[Finding]:
        """Do all checks; yield what each found."""
        try:
            for name, rule in self.RULES.items():
                if self._no_protocol:
                    why = f"not tried: {self._no_protocol}"
                    yield Finding(name, rule, "skipped", why)
                else:
                    yield self._check(name, rule)
        finally:
            self._close()

    def _check(self, name: str, rule: str) -> Finding:
        self._before = ()
        if self._running is not None:
            self._running.begin()
        state: State = "ok"
        try:
            message = getattr(self, f"check_{name.replace('-', '_')}")()
        except _EndOfCheckError as end:
            state, message = end.state, str(end)
            silent = isinstance(end, _SilentError)
        except OSError as error:
            why = local.not_started(self._command[0], errors.reason(error))
            message = f"the engine cannot be started: {why}"
            state, silent = "failed", True
        else:
            silent = False
        talk = (*self._before, *(() if self._running is None else self._running.talk()))
        if silent and name == next(iter(self.RULES)):
            self._no_protocol = f"{name} failed"
        if silent or (state == "failed" and self._running is not None):
            self._close()
        return Finding(name, rule, state, message, talk)

    def _close(self) -> None:
        if self._running is not None:
            self._before += self._running.talk()
            self._running.close()
            self._running = None

    def _start(self) -> Talk:
        self._close()
        self._running = Talk(self._command, self._home, self._patience)
        return self._running


class UciChecks(_Checks):
    """UCI, command by command."""

    RULES: ClassVar[Mapping[str, str]] = {
        "handshake": "answers uci with id name, its options and uciok",
        "options": "each option line can be read, names are unique, defaults are allowed",
        "isready": "answers isready with readyok",
        "set-options": "takes every option's own default and stays alive",
        "bestmove": "answers go movetime with one legal move",
        "info": "tells score and depth; lines of play are legal and begin with the move",
        "nodes": "answers go nodes",
        "clock": "moves before its flag falls",
        "searchmoves": "plays one of searchmoves",
        "busy-isready": "answers isready while it thinks",
        "infinite": "says no bestmove after go infinite until stop, and then at once",
        "ponderhit": "says no bestmove while it ponders, and one after ponderhit",
        "black": "moves as Black",
        "promotion": "promotes with the piece's letter",
        "mate": "mates in one, says mate 1, and its line ends with the mate",
        "no-moves": "survives go where the game is over",
        "repetition": "moves where the position stands for the third time",
        "fifty-moves": "moves at the 98th ply without capture",
        "long-game": "takes a game of 400 plies",
        "new-game": "is ready after ucinewgame",
        "unknown": "ignores words that it does not know",
        "illegal": "survives a position with an illegal move",
        "line-ends": "takes lines that end in CR LF",
        "multipv": "tells so many lines as MultiPV asks for",
        "chess960": "plays Chess960, castling as king takes rook",
        "quit": "ends after quit, with status 0",
        "end-of-input": "ends when its input is closed, with status 0",
    }

    options: tuple[uci.Option, ...] = ()
    # Why nobody knows that it listens while it thinks, '' where it does: without that, its answer
    # to stop may be its search's end.
    _deaf = "it did not get ready in busy-isready"

    def check_handshake(self) -> str:
        """``uci`` … ``uciok``."""
        talk = self._start()
        talk.send("uci")
        lines = [line.encode() for line in talk.word("uciok")]
        names = [identity.text for line in lines if (identity := uci.identity(line)) is not None]
        self.options = tuple(option for line in lines if (option := uci.option(line)) is not None)
        wrong = [
            line.decode() for line in lines if line.startswith(b"option") and not uci.option(line)
        ]
        if wrong:
            raise _FailedError(f"this option line cannot be read: {wrong[0]}")
        if not names:
            raise _FailedError("no id name")
        return names[0]

    def check_options(self) -> str:
        """Defaults lie within their bounds."""
        self._ready()
        seen: set[str] = set()
        for option in self.options:
            if option.name.lower() in seen:
                raise _FailedError(f"option {option.name} stands there twice")
            seen.add(option.name.lower())
            if why := _odd(option):
                raise _FailedError(f"option {option.name} ({option.describe()}): {why}")
        return f"{len(self.options)} options"

    def check_isready(self) -> str:
        """Ready, and nothing else."""
        self._ready().send("isready")
        self._talk.word("readyok")
        return ""

    def check_set_options(self) -> str:
        """Each default is set."""
        talk = self._ready()
        set_ = [
            option
            for option in self.options
            if option.type != "button" and option.default is not None
        ]
        talk.send(*(f"setoption name {option.name} value {option.default}" for option in set_))
        self._sync()
        return f"{len(set_)} set"

    def check_bestmove(self) -> str:
        """A short search from the start."""
        return self._think(chess.Board(), f"go movetime {SHORT_MS}")[0]

    def check_info(self) -> str:
        """Scores and lines of play."""
        board = chess.Board()
        move, lines = self._think(board, "go depth 4")
        infos = [line.split() for line in lines if line.split()[:1] == ["info"]]
        scored = [fields for fields in infos if "score" in fields and "depth" in fields]
        if not scored:
            raise _FailedError("no info line with depth and score before bestmove")
        lines_of_play = [fields[fields.index("pv") + 1 :] for fields in infos if "pv" in fields]
        for line in lines_of_play:
            _play(board, line)
        if not lines_of_play:
            raise _WarningError("no line of play (pv)")
        if lines_of_play[-1][:1] != [move]:
            raise _WarningError(
                f"bestmove {move}, the last line begins with {lines_of_play[-1][0]}"
            )
        return f"{len(infos)} lines"

    def check_nodes(self) -> str:
        """A node limit."""
        return self._think(chess.Board(), "go nodes 1000")[0]

    def check_clock(self) -> str:
        """One second and a tenth a move."""
        began = time.monotonic()
        move, _ = self._think(chess.Board(), "go wtime 1000 btime 1000 winc 100 binc 100")
        spent = time.monotonic() - began
        if spent > 1:
            raise _FailedError(f"{spent:.2f} s of 1.00 s")
        return f"{move} after {spent:.2f} s of 1.00 s"

    def check_searchmoves(self) -> str:
        """Two moves that nobody would choose."""
        move, _ = self._think(chess.Board(), "go depth 3 searchmoves a2a3 h2h4")
        if move not in ("a2a3", "h2h4"):
            raise _WarningError(f"played {move}, allowed were a2a3 and h2h4")
        return move

    def check_busy_isready(self) -> str:
        """``isready`` is answered at once, with the search going on."""
        talk = self._ready()
        self._deaf = "it does not answer while it thinks"
        try:
            talk.send("position startpos", "go infinite", "isready")
            lines = talk.word("readyok")
        except _SilentError:
            if talk.gone:
                self._deaf = "it crashed in busy-isready"
            raise
        if early := _moves(lines):
            raise _FailedError(f"{early[0]} before stop: readyok came when it had stopped thinking")
        self._deaf = ""  # whatever comes of its bestmove
        talk.send("stop")
        talk.word("bestmove")
        self._sync()
        return ""

    def check_infinite(self) -> str:
        """``go infinite`` … ``stop``."""
        talk = self._ready()
        talk.send("position startpos", "go infinite")
        if early := _moves(talk.said(ALONE)):
            raise _FailedError(f"{early[0]} before stop")
        began = time.monotonic()
        talk.send("stop")
        lines = talk.word("bestmove")
        spent = time.monotonic() - began
        self._sync()
        self._heard("stop")
        if spent > AT_ONCE:
            raise _WarningError(f"{lines[-1]} {spent:.2f} s after stop")
        return lines[-1]

    def check_ponderhit(self) -> str:
        """``go ponder`` … ``ponderhit``."""
        if not self._offers("Ponder"):
            raise _SkippedError("no option Ponder")
        talk = self._ready()
        clock = "wtime 2000 btime 2000 winc 100 binc 100"
        talk.send("setoption name Ponder value true")
        talk.send("position startpos moves e2e4 e7e5", f"go ponder {clock}")
        if early := _moves(talk.said(ALONE)):
            raise _FailedError(f"{early[0]} before ponderhit")
        talk.send("ponderhit")
        lines = talk.word("bestmove")
        talk.send("setoption name Ponder value false")
        self._sync()
        self._heard("ponderhit")
        return lines[-1]

    def check_black(self) -> str:
        """The other colour."""
        return self._think(_after("e2e4"), f"go movetime {SHORT_MS}")[0]

    def check_promotion(self) -> str:
        """A pawn before its last step."""
        return self._think(chess.Board(PROMOTION), "go depth 4")[0]

    def check_mate(self) -> str:
        """The back rank."""
        board = chess.Board(MATE_IN_ONE)
        move, lines = self._think(board, "go depth 4")
        board.push_uci(move)
        if not board.is_checkmate():
            raise _FailedError(f"{move} does not mate; a1a8 does")
        if not any("mate 1 " in f"{line} " for line in lines):
            raise _WarningError("no score mate 1")
        line = [fields for text in lines if "pv" in (fields := text.split())][-1:]
        ended = (
            _play(chess.Board(MATE_IN_ONE), line[0][line[0].index("pv") + 1 :]) if line else None
        )
        if ended is not None and not ended.is_checkmate():
            raise _WarningError("its line of play does not end with the mate")
        return move

    def check_no_moves(self) -> str:
        """Mated, and stalemated."""
        for fen in (MATED, STALEMATE):
            talk = self._ready()
            talk.send(f"position fen {fen}", "go depth 1")
            with contextlib.suppress(_SilentError):
                talk.word("bestmove", min(2.0, self._patience))
            talk.send("stop")
            self._sync()
        return ""

    def check_repetition(self) -> str:
        """Knights go out and home again."""
        return self._think(_after(*SHUFFLE, *SHUFFLE), "go depth 2")[0]

    def check_fifty_moves(self) -> str:
        """The counter in the FEN is high."""
        return self._think(chess.Board(FIFTY), "go depth 2")[0]

    def check_long_game(self) -> str:
        """Knights, for long."""
        moves = list(SHUFFLE) * 100
        return self._think(_after(*moves), "go depth 2")[0]

    def check_new_game(self) -> str:
        """``ucinewgame``."""
        self._ready().send("ucinewgame")
        self._sync()
        return ""

    def check_unknown(self) -> str:
        """A word of no protocol."""
        self._ready().send("xyzzy 1 2 3", "")
        self._sync()
        return ""

    def check_illegal(self) -> str:
        """A move that cannot be, which no good GUI sends."""
        self._ready().send("position startpos moves e2e5")
        try:
            self._sync()
        except _SilentError as silent:
            self._close()
            raise _WarningError(str(silent)) from None
        return ""

    def check_line_ends(self) -> str:
        """Windows' line ends."""
        talk = self._ready()
        talk.send("isready", end="\r\n")
        try:
            talk.word("readyok")
        except _SilentError as silent:
            self._close()
            raise _WarningError(str(silent)) from None
        return ""

    def check_multipv(self) -> str:
        """Two lines."""
        if not self._offers("MultiPV"):
            raise _SkippedError("no option MultiPV")
        self._ready().send("setoption name MultiPV value 2")
        _, lines = self._think(chess.Board(), "go depth 4")
        self._talk.send("setoption name MultiPV value 1")
        if not any("multipv 2 " in f"{line} " for line in lines):
            raise _FailedError("no info line with multipv 2")
        return ""

    def check_chess960(self) -> str:
        """Positions and castling of Chess960."""
        if not self._offers("UCI_Chess960"):
            raise _SkippedError("no option UCI_Chess960")
        self._ready().send("setoption name UCI_Chess960 value true")
        move, _ = self._think(chess.Board(CHESS960, chess960=True), "go depth 4")
        board = chess.Board(CASTLING, chess960=True)
        board.push_uci("e1h1")
        self._think(board, "go depth 4")
        self._talk.send("setoption name UCI_Chess960 value false")
        return move

    def check_quit(self) -> str:
        """``quit``."""
        talk = self._ready()
        talk.send("quit")
        return self._ended(talk)

    def check_end_of_input(self) -> str:
        """Its GUI has died."""
        talk = self._ready()
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        try:
            return self._ended(talk, "; it stays behind when its GUI dies")
        except _FailedError as failed:
            raise _WarningError(str(failed)) from None

    def _ended(self, talk: Talk, consequence: str = "") -> str:
        try:
            status = talk.wait()
        except subprocess.TimeoutExpired:
            self._close()
            raise _FailedError(f"runs on after {self._patience:g} s{consequence}") from None
        fate = talk.fate()
        self._close()
        if status:
            raise _FailedError(fate)
        return ""

    @property
    def _talk(self) -> Talk:
        assert self._running is not None
        return self._running

    def _heard(self, word: str) -> None:
        """Skip a check that an engine which reads nothing while it thinks would pass, too."""
        if self._deaf:
            raise _SkippedError(
                f"not known: {self._deaf}, so its bestmove behind {word} may be its search's own"
                " end"
            )

    def _offers(self, name: str) -> bool:
        return any(option.name.lower() == name.lower() for option in self.options)

    def _ready(self) -> Talk:
        """Return an engine that is ready, started again where it has to be."""
        if self._running is None:
            talk = self._start()
            talk.send("uci")
            talk.word("uciok")
            talk.send(
                *(f"setoption name {key} value {value}" for key, value in self._settings.items())
            )
            self._sync()
        return self._talk

    def _sync(self) -> list[str]:
        """Wait until the engine has taken all; a bestmove that nobody asked for is a fault."""
        self._talk.send("isready")
        lines = self._talk.word("readyok")
        if late := _moves(lines):
            raise _FailedError(f"{late[0]} without a search")
        return lines

    def _think(self, board: chess.Board, go: str) -> tuple[str, list[str]]:
        """Let it search; return its move, which is legal, and what it said."""
        talk = self._ready()
        talk.send(_position(board), go)
        lines = talk.word("bestmove")
        fields = lines[-1].split()
        move = fields[1] if len(fields) > 1 else ""
        if move not in {legal.uci() for legal in board.legal_moves}:
            raise _FailedError(f"{lines[-1]!r} is no legal move in {board.fen()}")
        self._sync()
        return move, lines


class XboardChecks(_Checks):
    """CECP version 2, the part that the farm's referee speaks."""

    RULES: ClassVar[Mapping[str, str]] = {
        "features": "answers protover 2 with features up to done=1",
        "ping": "answers ping with pong",
        "go": "moves after new, st and go",
        "reply": "replies to a move",
        "mate": "takes setboard and mates in one",
        "quit": "ends after quit",
    }

    features: Mapping[str, str] = {}

    def check_features(self) -> str:
        """``xboard``, ``protover 2``."""
        talk = self._start()
        talk.send("xboard", "protover 2")
        lines = talk.until("feature done=1", lambda line: "done=1" in line.split())
        fields = [word for line in lines if line.startswith("feature") for word in line.split()[1:]]
        self.features = dict(word.split("=", 1) for word in fields if "=" in word)
        return f"{len(self.features)} features"

    def check_ping(self) -> str:
        """``ping 7``."""
        if self._feature("ping") != "1":
            raise _SkippedError("no feature ping=1")
        talk = self._ready()
        talk.send("ping 7")
        talk.until("pong 7", lambda line: line.split() == ["pong", "7"])
        return ""

    def check_go(self) -> str:
        """The first move is its own."""
        talk = self._ready()
        talk.send("new", "st 1", "go")
        return self._move(talk, chess.Board())

    def check_reply(self) -> str:
        """The first move is ours."""
        talk = self._ready()
        talk.send("new", "st 1", f"{self._usermove}e2e4")
        return self._move(talk, _after("e2e4"))

    def check_mate(self) -> str:
        """The back rank."""
        if self._feature("setboard") != "1":
            raise _SkippedError("no feature setboard=1")
        talk = self._ready()
        talk.send("new", "force", f"setboard {MATE_IN_ONE}", "st 1", "go")
        board = chess.Board(MATE_IN_ONE)
        move = self._move(talk, board)
        board.push_uci(move)
        if not board.is_checkmate():
            raise _FailedError(f"{move} does not mate; a1a8 does")
        return move

    def check_quit(self) -> str:
        """``quit``."""
        talk = self._ready()
        talk.send("quit")
        try:
            talk.wait()
        except subprocess.TimeoutExpired:
            raise _SilentError(f"runs on after {self._patience:g} s") from None
        self._close()
        return ""

    def _feature(self, name: str) -> str:
        return self.features.get(name, "")

    @property
    def _usermove(self) -> str:
        return "usermove " if self._feature("usermove") == "1" else ""

    def _ready(self) -> Talk:
        if self._running is None:
            self.check_features()
        assert self._running is not None
        return self._running

    def _move(self, talk: Talk, board: chess.Board) -> str:
        line = talk.word("move", self._patience + 1)[-1]
        text = " ".join(line.split()[1:])
        for read in (board.parse_uci, board.parse_san):
            with contextlib.suppress(ValueError):
                return read(text).uci()
        raise _FailedError(f"{line!r} is no legal move in {board.fen()}")


PROTOCOLS: Mapping[str, type[_Checks]] = {"uci": UciChecks, "xboard": XboardChecks}


def _odd(option: uci.Option) -> str:
    """Say what is wrong with an option's default, '' when nothing is."""
    if option.type == "spin":
        value = uci.number(option.default or "")
        if value is None or option.min is None or option.max is None:
            return "a spin has default, min and max, all whole numbers"
        return "" if option.min <= value <= option.max else "its default is out of its bounds"
    if option.type == "check" and option.default not in ("true", "false"):
        return "the default of a check is true or false"
    if option.type == "combo" and option.default not in option.choices:
        return "its default is none of its choices (var)"
    return ""


def _moves(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.split()[:1] == ["bestmove"]]


def _after(*moves: str) -> chess.Board:
    board = chess.Board()
    for move in moves:
        board.push_uci(move)
    return board


def _position(board: chess.Board) -> str:
    root = board.root()
    start = "startpos" if root.fen() == chess.STARTING_FEN else f"fen {root.fen()}"
    moves = " ".join(move.uci() for move in board.move_stack)
    return f"position {start} moves {moves}" if moves else f"position {start}"


def _play(board: chess.Board, line: Sequence[str]) -> chess.Board:
    """Play a line of an engine; raise where a move of it is not legal."""
    after = board.copy(stack=False)
    for word in line:
        if not 4 <= len(word) <= 5 or not word.isalnum():
            break
        try:
            after.push_uci(word)
        except ValueError:
            raise _FailedError(f"pv {' '.join(line)}: {word} is not legal") from None
    return after
