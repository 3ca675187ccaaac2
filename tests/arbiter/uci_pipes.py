"""A UCI engine process at the end of raw pipes, with bounded waits, for tests."""

from __future__ import annotations

import contextlib
import os
import pathlib
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[2]
SCRIPTED = ROOT / "tests" / "engines" / "scripted.py"
PATIENCE = 60.0  # s: far beyond what any answer needs, so that no test measures time


class Pipes:
    """One engine process; every wait ends with an answer or an error."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        """Take a process whose three streams are pipes."""
        self.process = process
        self.raw = b""
        self.seen = b""
        assert process.stdout is not None
        self._output = process.stdout.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def send(self, *lines: str) -> None:
        """Write command lines."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        self.process.stdin.flush()

    def more(self, patience: float) -> bool:
        """Read what there is; False at the end of the output or of the patience."""
        if not self._selector.select(patience):
            return False
        piece = os.read(self._output, 1 << 16)
        self.raw += piece
        self.seen += piece
        return bool(piece)

    def until(self, word: str) -> list[str]:
        """Return the lines up to the first that begins with ``word``."""
        lines: list[str] = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            line, end, rest = self.raw.partition(b"\n")
            if end:
                self.raw = rest
                lines.append(line.decode(errors="replace").rstrip("\r"))
                if lines[-1].startswith(word):
                    return lines
            elif not self.more(PATIENCE):
                break
        raise AssertionError(f"no {word!r}; last lines: {lines[-3:]}")

    def silent(self, seconds: float = 0.3) -> bool:
        """Say whether nothing is written for a while, and the process lives on."""
        return not self.raw and not self._selector.select(seconds) and self.lives()

    def at_end(self) -> bool:
        """Read up to the end of the output; say whether it came."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if not self._selector.select(PATIENCE):
                return False
            if not self.more(0):
                return True
        return False

    def lives(self) -> bool:
        """Say whether the process is running."""
        return self.process.poll() is None

    def exit_status(self) -> int:
        """Wait for the end of the process and return its status."""
        return self.process.wait(PATIENCE)

    def move(self, position: str, go: str = "go wtime 1000 btime 1000") -> str:
        """Ask for a move and return it."""
        self.send(position, go)
        return self.until("bestmove")[-1].split()[1]

    def close(self) -> None:
        """Kill the process and everything in its group, and close the pipes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._selector.close()
        with contextlib.suppress(BrokenPipeError):
            self.process.__exit__(None, None, None)


@contextlib.contextmanager
def running(*command: str) -> Iterator[Pipes]:
    """Run an engine for the time of a ``with`` block."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        start_new_session=True,
    )
    pipes = Pipes(process)
    try:
        yield pipes
    finally:
        pipes.close()


def scripted(*options: str) -> contextlib.AbstractContextManager[Pipes]:
    """Run the scripted engine."""
    return running(sys.executable, str(SCRIPTED), *options)


def house(*options: str) -> contextlib.AbstractContextManager[Pipes]:
    """Run the farm's own engine."""
    return running(sys.executable, "-m", "worker_cpu.builtin_engine.uci", *options)
