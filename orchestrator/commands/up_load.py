"""What else runs on the machine that ``farm up`` plays on: it may cost an engine its game.

On a hall's machine an engine has cores of its own, and ``farm doctor`` measures that they are
quiet. ``farm up`` shares a desk's machine: where others take what a thinking engine and its
referee need, a loss on time may be theirs. That is told, and nothing is decided by it.
"""

from __future__ import annotations

import os
import pathlib
import time
from typing import Final

from orchestrator.common import processor

LOOK_SECONDS: Final = 5.0  # s: between two looks at all processes, a few ms each
BUSY: Final = 0.5  # cores that others use: less is what every desk does
REFEREE: Final = 1  # cores beside the thinking engine's: the referee's, and the farm's


class Others:
    """The cores that others than this process and its children use, look by look."""

    def __init__(
        self, proc: pathlib.Path = processor.PROC, look_seconds: float = LOOK_SECONDS
    ) -> None:
        """Begin to watch the cores that this process may use."""
        mine = frozenset(os.sched_getaffinity(0))
        self.cores = len(mine)
        self.used: float | None = None
        self._processor = processor.Processor(mine, os.getpid(), proc)
        self._every, self._due = look_seconds, float("-inf")

    def look(self) -> None:
        """Measure what others used since the last look, if it is time."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self._every
            ratio = self._processor.look()[1]
            self.used = None if ratio is None else ratio * self.cores

    def crowd(self, threads: int) -> str:
        """Say what others use where an engine of so many threads lacks it, else ''."""
        if self.used is None or self.used < BUSY:
            return ""
        if self.cores - self.used >= threads + REFEREE:
            return ""
        return f"other programs use {self.used:.1f} of {self.cores} cores of this machine"
