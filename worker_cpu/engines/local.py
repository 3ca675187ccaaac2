"""A local seat: an engine process of this host, reached over three raw pipes.

The dead man forks the engine (``seats.deadman_client``); the referee holds the other ends of
its pipes. Invariants:

* no read and no write blocks: an engine that does not read, or floods, never holds the
  referee (what its pipe does not take is sent when it does);
* memory is bounded: lines are cut at ``LINE_LIMIT``, stderr is kept by its tail;
* a seat knows whether its output stands at the start of a line, so that the rest of an
  old line is never taken for an answer.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import fcntl
import os
import pathlib
import re
import shutil
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from orchestrator import contract

LINE_LIMIT = 1 << 16  # bytes kept of one line; the stream goes on behind it
READ_BYTES = 1 << 16  # bytes: one read
PIPE_BYTES = 1 << 20  # bytes an engine can write before it has to wait for the referee
ASIDE_BYTES = 1 << 16  # bytes kept of what an engine wrote while it was not its turn
OUTPUT_BYTES = 1 << 20  # bytes kept of a search's output: its end holds the last score
PROC = pathlib.Path("/proc")
PROCESS_CLOCK = 2  # CPUCLOCK_SCHED of clock_getcpuclockid(3): processor time of a process in ns
ENDED_NS = 1_000_000  # ns: more than this between two looks was computed by a thread that has ended
LOOK_BYTES = 256  # bytes of a small file of the kernel's
SCRIPT_BYTES = 256  # bytes: so much of a script's first line the kernel reads (binfmt_script.c)
SCRIPTS_DEEP = 4  # a script's interpreter may be a script: the kernel follows so many
EMULATORS = pathlib.Path("/proc/sys/fs/binfmt_misc")  # who runs other files, by magic
STDERR_BYTES = 4096  # bytes kept of what an engine wrote to stderr last
LAST_LINE = 120  # characters of an engine's last line that stand in a verdict or a finding


class LineSplitter:
    """Cuts output into lines without their ends (LF or CR LF), each bounded."""

    def __init__(self) -> None:
        self._line = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take output and return the lines that are complete now."""
        *lines, rest = (self._line + chunk).split(b"\n")
        self._line = rest[:LINE_LIMIT]
        return [line[:LINE_LIMIT].rstrip(b"\r") for line in lines]


class Tail:
    """The end of a search's output; ``cut`` says that its beginning is lost."""

    def __init__(self) -> None:
        self._chunks: collections.deque[bytes] = collections.deque()
        self._size = 0
        self.cut = False

    def add(self, chunk: bytes) -> None:
        """Take output."""
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) > OUTPUT_BYTES:
            self._size -= len(self._chunks.popleft())
            self.cut = True

    def text(self) -> bytes:
        """Return what is kept."""
        return b"".join(self._chunks)


def last_line(line: str) -> str:
    """Say what an engine wrote last, '' if that is nothing; bounded."""
    return f"its last line: {line[:LAST_LINE]}" if line else ""


def obstacle(program: str, deep: int = SCRIPTS_DEEP) -> str:
    """Say why the kernel cannot run a file that is there and executable; '' where it may.

    A file that cannot be read, or may be another program's business (binfmt_misc), is not judged.
    """
    try:
        with pathlib.Path(program).open("rb") as file:
            begin = file.read(SCRIPT_BYTES)
    except OSError:
        return ""
    if words := _first_line(begin):
        return _script_obstacle(program, words, deep)
    if begin.startswith(b"\x7fELF") or _emulated():
        return ""
    return f"{program!r} is no program: it begins neither as ELF nor with #! and an interpreter"


def not_started(program: str, problem: str, *, sandboxed: bool = False) -> str:
    """Say why a program could not be started: what is really missing, or the system's words.

    The kernel says of a script without its interpreter that the script is not there.
    """
    if "/" not in program or not os.path.isfile(program):  # noqa: PTH113 - as above
        return problem
    if cause := obstacle(program):
        return cause
    missing = os.strerror(errno.ENOENT)
    if missing in problem and sandboxed:
        seen = "or the loader that it needs,"
        with contextlib.suppress(OSError), pathlib.Path(program).open("rb") as file:
            if words := _first_line(file.read(SCRIPT_BYTES)):
                seen = f"or its interpreter {words[0]!r},"
        return f"{program!r}, {seen} cannot be seen in the sandbox"
    if missing in problem:
        return f"{program!r} is there, but the loader that it needs is missing"
    return problem if program in problem else f"{program!r}: {problem}"


def _first_line(begin: bytes) -> list[str]:
    """Return the words behind ``#!`` as the kernel cuts them, interpreter first; none without."""
    if not begin.startswith(b"#!"):
        return []
    line = begin[2:].split(b"\n", 1)[0].strip(b" \t")
    return [os.fsdecode(word) for word in re.split(rb"[ \t]+", line) if word]


def _script_obstacle(program: str, words: Sequence[str], deep: int) -> str:
    """Say why a script does not run; ``env NAME`` is looked up in PATH, its options are not."""
    interpreter = words[0]
    by_env = len(words) == 2 and os.path.basename(interpreter) == "env"  # noqa: PTH119 - a name
    named = words[1] if by_env else interpreter
    if "\r" in named:
        return (
            f"{program!r} has CR LF line ends, so its interpreter would be {named!r}: write it"
            " with LF line ends"
        )
    if not interpreter.startswith("/"):
        return ""  # it depends on where the engine starts
    problem = ""
    if not os.path.exists(interpreter):  # noqa: PTH110 - a closed directory is no error
        named, problem = interpreter, "is missing"
    elif not os.access(interpreter, os.X_OK):
        named, problem = interpreter, "is not executable"
    elif by_env and not (named.startswith("-") or "=" in named or shutil.which(named)):
        problem = "is not in PATH"
    if problem:
        return f"{program!r} is there, but its interpreter {named!r} {problem}"
    return obstacle(interpreter, deep - 1) if deep else ""


def _emulated() -> bool:
    try:
        return bool({path.name for path in EMULATORS.iterdir()} - {"register", "status"})
    except OSError:
        return False


class CoreTime:
    """What an engine computes in a game, and how long its threads wait for a core.

    What it has computed is the clock of its process: one system call, so it is read before each
    search. Waiting is counted by the kernel thread by thread while each lives, so it is read at
    the game's begin, and after a loss on time. Nothing is known of an engine that plays in a child
    of its process, as behind a script or in a sandbox.
    """

    def __init__(self, pid: int) -> None:
        self._tasks = PROC / str(pid) / "task"
        self._clock = (~pid << 3) | PROCESS_CLOCK
        self._before_ns = 0
        self._begin = self._look()

    def mark(self) -> None:
        """Remember what was computed until now: a search begins."""
        try:
            self._before_ns = time.clock_gettime_ns(self._clock)
        except OSError:
            self._before_ns = -1  # it has ended

    def spoken(self) -> str:
        """Say what it computed since the mark, and how long it waited in this game; '' if unknown.

        How long it waited is left out where a thread has ended, and taken its count with it.
        """
        begin, now = self._begin, self._look()
        if begin is None or now is None or self._before_ns < 0 or self._has_children():
            return ""
        computed = f"computed {max(0, now.computed_ns - self._before_ns) / 1e6:.1f} ms of these"
        if now.ended_ns - begin.ended_ns > ENDED_NS:
            return computed
        waited_ns = max(0, now.waited_ns - begin.waited_ns)
        return f"{computed}, waited {waited_ns / 1e6:.1f} ms for a core in the whole game"

    def _has_children(self) -> bool:
        try:
            return any((task / "children").read_bytes() for task in self._tasks.iterdir())
        except OSError:
            return True  # it has ended, or this kernel does not tell

    def _look(self) -> _Look | None:
        ran_ns = waited_ns = 0
        try:
            for task in os.listdir(self._tasks):  # noqa: PTH208 - before each game: no objects
                with open(f"{self._tasks}/{task}/schedstat", "rb", buffering=0) as file:  # noqa: PTH123
                    ran, waited, _ = file.read(LOOK_BYTES).split()
                ran_ns, waited_ns = ran_ns + int(ran), waited_ns + int(waited)
            computed_ns = time.clock_gettime_ns(self._clock)
        except (OSError, ValueError):
            return None
        if not ran_ns:
            return None  # a kernel that does not count
        return _Look(computed_ns, waited_ns, computed_ns - ran_ns)


class _Look(NamedTuple):
    """An engine's process in ns: computed, its threads' waiting, and by threads that have ended."""

    computed_ns: int
    waited_ns: int
    ended_ns: int


@dataclasses.dataclass(frozen=True)
class EngineEnds:
    """The engine's ends of its pipes: passed to the dead man, then closed here."""

    stdin: int
    stdout: int
    stderr: int

    def close(self) -> None:
        """Close the referee's copies: else an engine's end would never be seen."""
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)


class LocalSeat:
    """The referee's ends of one engine's pipes.

    ``slack_ns`` is what a deadline kept elsewhere has beyond the referee's,
    ``quit_slack_ns`` likewise of the end, ``network_ns`` what the network took of the last
    move, ``gave_up`` that whoever keeps the deadline says that it has passed, ``host`` what
    another host took from a late engine (``stall.reported_loss``): a local seat has none of it.
    """

    slack_ns: int = 0
    quit_slack_ns: int = 0
    network_ns: int | None = None
    gave_up: bool = False
    host: dict[str, Any] | None = None

    def __init__(self, side: contract.Side, name: str = "") -> None:
        self.side = side
        self.name = name or side  # the dead man's for it: a kept engine may change sides
        self.stderr_tail = b""
        self.at_line_start = True
        self.pid = -1
        self.pidfd = -1
        self.cpus: tuple[int, ...] = ()  # those that it was bound to
        self.goes_on = False  # the next write ends a search that was begun before
        self.pondered: Tail | None = None  # what it writes goes here while it ponders
        self._unsent = b""
        self._aside = b""
        self.stdin, self.stdout, self.stderr = -1, -1, -1

    def open(self) -> EngineEnds:
        """Make the three pipes and return the engine's ends."""
        engine_in, self.stdin = os.pipe2(os.O_CLOEXEC)
        self.stdout, engine_out = os.pipe2(os.O_CLOEXEC)
        self.stderr, engine_err = os.pipe2(os.O_CLOEXEC)
        for fd in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(fd, False)
        with contextlib.suppress(OSError):  # a limit of the host's; the default works too
            fcntl.fcntl(self.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return EngineEnds(engine_in, engine_out, engine_err)

    def born(self, pid: int) -> None:
        """Note the engine's process; its descriptor keeps the number from being reused."""
        self.pid = pid
        with contextlib.suppress(OSError):
            self.pidfd = os.pidfd_open(pid)

    def confirm_silence(self) -> None:
        """Do nothing: an engine that the referee has not heard has not answered."""

    @property
    def unsent(self) -> bool:
        """Say whether the engine has not taken all that was written to it."""
        return bool(self._unsent)

    def write(self, data: bytes) -> bool:
        """Send bytes as far as the pipe takes them; False when nobody reads any more.

        What the pipe does not take goes out with ``resume``, in order.
        """
        if self._unsent:
            self._unsent += data
            return True
        try:
            sent = os.write(self.stdin, data)
        except BlockingIOError:
            sent = 0
        except BrokenPipeError:
            return False
        self._unsent = data[sent:]
        return True

    def resume(self) -> bool:
        """Send what is left of earlier writes; False when nobody reads any more."""
        data, self._unsent = self._unsent, b""
        return self.write(data)

    def forget_unsent(self) -> None:
        """Drop what the engine has not taken: nothing more will be sent to it."""
        self._unsent = b""

    def read(self) -> bytes | None:
        """Return output that is there, ``b''`` at its end, ``None`` when there is none."""
        chunk = read(self.stdout)
        if chunk:
            self.at_line_start = chunk.endswith(b"\n")
        return chunk

    def arm(self, allowance_ns: int, stop: bytes) -> None:
        """Take the deadline of the search that the next write starts; kept by the referee."""

    def charged_ns(self, start_ns: int, stop_ns: int) -> int:
        """Return what a search took, by the stamps of whoever stands beside the engine."""
        return stop_ns - start_ns

    def set_aside(self, output: bytes) -> None:
        """Keep output that came when it was not this engine's turn: no answer to ``go``."""
        if self.pondered is not None:
            self.pondered.add(output)
        elif len(self._aside) < ASIDE_BYTES:
            self._aside += output

    def take_aside(self) -> bytes:
        """Return what was set aside since the last call."""
        output, self._aside = self._aside, b""
        return output

    def read_stderr(self) -> bytes | None:
        """Return what came on stderr, as ``read``; its tail is kept."""
        chunk = read(self.stderr)
        if chunk:
            self.stderr_tail = (self.stderr_tail + chunk)[-STDERR_BYTES:]
        return chunk

    def close(self) -> None:
        """Close all descriptors; may be called again."""
        for fd in (self.stdin, self.stdout, self.stderr, self.pidfd):
            if fd >= 0:
                os.close(fd)
        self.stdin = self.stdout = self.stderr = self.pidfd = -1


def read(fd: int) -> bytes | None:
    """Return what is there to read, ``b''`` at the end, ``None`` when there is nothing."""
    try:
        return os.read(fd, READ_BYTES)
    except BlockingIOError:
        return None
