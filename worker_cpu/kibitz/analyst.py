"""The kibitzer's engine: a UCI process that analyses one position after another, endlessly.

Invariants:

* nothing here blocks longer than it is told, and no bytes an engine writes raise;
* a new position waits for the ``bestmove`` of the search before: what is heard always
  belongs to the position it is said of;
* an engine that ends, does not answer or does not stop in time is a ``LostEngineError``;
* it is killed with all of its processes; in a sandbox it has no network and sees its own
  files only, outside it gets no secret of the farm's by its environment.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from orchestrator.common import errors
from worker_cpu.engines import local, mounts, sandbox
from worker_cpu.protocols import base, uci
from worker_cpu.referee import engine_start

START_SECONDS: Final = 60.0  # s: from the start to uciok
READY_SECONDS: Final = 300.0  # s: to readyok: networks and tablebases are loaded
STOP_SECONDS: Final = 10.0  # s: from stop to bestmove, as in games
QUIT_SECONDS: Final = 2.0  # s: from quit to the end; then it is killed
SLICE_SECONDS: Final = 0.2  # s: how soon a wish to end is heard during the handshake
HEARD_BYTES: Final = 1 << 16  # bytes kept of a search: the last lines count
OPTION_LIMIT: Final = 1000  # options kept of one engine: more is a flood, not an offer
GAME: Final = "kibitzer"  # what the engine's environment says it plays
_ON: Final = ("UCI_ShowWDL", "UCI_AnalyseMode")  # set where an engine offers them


class LostEngineError(errors.HostError):
    """The kibitzer's engine cannot be used any more; it is started again."""


@dataclasses.dataclass(frozen=True)
class Engine:
    """The engine to start: it may read ``reveal``, too, and never what is ``hidden``."""

    command: tuple[str, ...]
    options: Mapping[str, str]
    threads: int = 1
    hash_mb: int = 256
    kind: sandbox.Kind = "plain"
    reveal: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()

    def arguments(self) -> list[str]:
        """Return the command line, within its sandbox where there is one."""
        if self.kind == "plain":
            return list(self.command)
        return sandbox.alone(self.command, [*self.options.values(), *self.reveal], self.hidden)


@dataclasses.dataclass(frozen=True)
class Place:
    """A position to analyse: the attempt at a game and how many plies it has."""

    attempt: str
    ply: int
    position: str
    chess960: bool = False


@dataclasses.dataclass(frozen=True)
class Heard:
    """What the engine last said of a position; ``final`` when its search has ended."""

    place: Place
    search: base.Search
    final: bool


class Analyst:
    """One engine process; use it as a context manager."""

    def __init__(self, engine: Engine, ending: Callable[[], bool] = lambda: False) -> None:
        """Take an engine; ``ending`` says that the handshake is to be given up."""
        self.name = ""
        self._engine, self._ending = engine, ending
        self._process: subprocess.Popen[bytes] | None = None
        self._offered: dict[str, uci.Option] = {}
        self._output = b""
        self._place: Place | None = None  # what is searched now
        self._next: Place | None = None
        self._finder = uci.MoveFinder()
        self._stop_by: float | None = None
        self._game, self._chess960 = "", False

    def __enter__(self) -> Self:
        """Start the engine and set its options.

        Raises:
            LostEngineError: it does not start, or does not answer.
            UsageError: it does not offer an option that is asked for.
        """
        try:
            self._begin()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- the handshake -----------------------------------------------------------------

    def _begin(self) -> None:
        environment = engine_start.engine_environment(os.environ, GAME)
        if self._engine.kind == "bubblewrap":
            environment |= {"HOME": mounts.SCRATCH, "TMPDIR": mounts.SCRATCH}
        try:
            self._process = subprocess.Popen(
                self._engine.arguments(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            why = local.not_started(self._engine.command[0], errors.reason(error))
            raise LostEngineError(f"{self._engine.command[0]} cannot be started: {why}") from error
        os.set_blocking(self._stdout, False)
        os.set_blocking(self._stdin, False)
        self._send(b"uci\n")
        for line in self._lines(b"uciok", START_SECONDS):
            self._introduce(line)
        self._send(b"".join([*self._settings(), b"isready\n"]))
        for _ in self._lines(b"readyok", READY_SECONDS):
            pass

    def _introduce(self, line: bytes) -> None:
        said, option = uci.identity(line), uci.option(line)
        if said is not None and said.field == "name":
            self.name = said.text
        elif option is not None and len(self._offered) < OPTION_LIMIT:
            self._offered[option.name.lower()] = option

    def _settings(self) -> Iterator[bytes]:
        """Yield the options to be set, threads before the hash that is sized by them."""
        sizes = {"Threads": self._engine.threads, "Hash": self._engine.hash_mb}
        wanted = {name: str(size) for name, size in sizes.items() if name.lower() in self._offered}
        wanted |= {name: "true" for name in _ON if name.lower() in self._offered}
        wanted |= dict(self._engine.options)
        for name, value in wanted.items():
            option = self._offered.get(name.lower())
            if option is None:
                offered = ", ".join(sorted(offer.name for offer in self._offered.values()))
                raise errors.UsageError(
                    f"--option: found {name}; {self.name or self._engine.command[0]} offers:"
                    f" {offered or 'none'}"
                )
            yield uci.set_option(option.name, None if option.type == "button" else value)

    def _lines(self, last: bytes, seconds: float) -> Iterator[bytes]:
        """Yield lines up to the one that is waited for."""
        deadline = time.monotonic() + seconds
        splitter = local.LineSplitter()
        while time.monotonic() < deadline:
            if self._ending():
                raise LostEngineError("the kibitzer ends")
            chunk = self._read(SLICE_SECONDS)
            self._output = (self._output + chunk)[-HEARD_BYTES:]  # its last words, should it end
            for line in splitter.feed(chunk):
                if uci.is_reply(line, last):
                    return
                yield line
        raise LostEngineError(f"no {last.decode()} within {seconds:g} s")

    # -- the analysis ------------------------------------------------------------------

    def offers_chess960(self) -> bool:
        """Say whether the engine plays Chess960."""
        return "uci_chess960" in self._offered

    def analyse(self, position: Place | None) -> None:
        """Go on with another position, or rest; the search of the last one is stopped first."""
        self._next = position
        if self._place is None:
            self._go()
        elif self._stop_by is None:
            self._stop_by = time.monotonic() + STOP_SECONDS
            self._send(b"stop\n")

    def _go(self) -> None:
        position, self._next = self._next, None
        self._place = position
        if position is None:
            return
        commands = []
        if position.attempt != self._game:
            self._game = position.attempt
            commands.append(b"ucinewgame\n")
        if position.chess960 != self._chess960 and self.offers_chess960():
            self._chess960 = position.chess960
            commands.append(uci.set_option("UCI_Chess960", str(position.chess960).lower()))
        self._output, self._finder = b"", uci.MoveFinder()
        self._send(b"".join([*commands, f"{position.position}\ngo infinite\n".encode()]))

    def listen(self, seconds: float) -> Heard | None:
        """Listen for so long, or until the search has ended; return what is new, if anything."""
        deadline, before = time.monotonic() + seconds, self._output
        while (left := deadline - time.monotonic()) > 0:
            chunk = self._read(left)
            if self._place is None:
                continue
            self._output = (self._output + chunk)[-HEARD_BYTES:]
            if self._finder.feed(chunk) is not None:
                return self._ended()
        self._check_stopping()
        return self._heard(final=False) if self._output != before else None

    def _ended(self) -> Heard | None:
        """Take a ``bestmove``: tell the last of this search, begin the one that waits."""
        heard = self._heard(final=True)
        if self._stop_by is None:  # by itself: it has seen all there is
            self._place = None
        else:
            self._stop_by = None
            self._go()
        return heard

    def _heard(self, *, final: bool) -> Heard | None:
        search = uci.last_search(self._output)
        if self._place is None or search.score is None:
            return None
        return Heard(self._place, search, final)

    def _check_stopping(self) -> None:
        if self._stop_by is not None and time.monotonic() > self._stop_by:
            raise LostEngineError(f"no bestmove within {STOP_SECONDS:g} s after stop")

    # -- its process -------------------------------------------------------------------

    @property
    def _stdin(self) -> int:
        assert self._process is not None
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _stdout(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def _send(self, commands: bytes) -> None:
        try:
            sent = os.write(self._stdin, commands)
        except OSError as error:
            raise LostEngineError(f"it no longer reads its input: {error.strerror}") from error
        if sent < len(commands):
            raise LostEngineError("it no longer reads its input: its pipe is full")

    def _read(self, seconds: float) -> bytes:
        """Wait for output for so long; raise ``LostEngineError`` at its end."""
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        if not poll.poll(max(0.0, seconds) * 1000):
            return b""
        chunk = local.read(self._stdout)
        if chunk == b"":
            raise LostEngineError(f"it has ended; its last output: {self._last_words()}")
        return chunk or b""

    def _last_words(self) -> str:
        said = self._output.decode(errors="replace").strip()
        return said.rpartition("\n")[2][:200] or "nothing"

    def close(self) -> None:
        """End the engine, by force where it does not go by itself."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            os.write(process.stdin.fileno(), b"stop\nquit\n")
        process.stdin.close()
        pidfd = os.pidfd_open(process.pid)
        poll = select.poll()
        poll.register(pidfd, select.POLLIN)
        poll.poll(QUIT_SECONDS * 1000)
        os.close(pidfd)
        # Not reaped yet, so its group is still its own: what it has left behind goes, too.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
