"""What a storm waits for: the next moves, seen in the hall's ply logs; a moment to come."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator

import stage as stages


@dataclasses.dataclass(frozen=True)
class Watch:
    """The ply logs at a moment: how far the hall has come since."""

    stage: stages.Stage
    before: dict[str, int]

    @classmethod
    def begin(cls, stage: stages.Stage) -> Watch:
        """Look at the ply logs now."""
        return cls(stage, stage.moves())

    def moved(self) -> bool:
        """Say whether at least two plies were made since: the first may have been under way."""
        return self.plies() >= 2

    def plies(self) -> int:
        """Return how many plies were made since."""
        made = 0
        for name, size in self.stage.moves().items():
            start = self.before.get(name, 0)
            if size > start:
                with contextlib.suppress(FileNotFoundError):
                    made += (self.stage.attempts / name).read_bytes()[start:].count(b"\n")
        return made


def until(seconds: float) -> Iterator[None]:
    """Yield every few milliseconds for so many seconds."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        yield
        time.sleep(0.004)
