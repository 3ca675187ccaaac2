"""Keeps what engines say: all of it in the match's log, stderr in files of the engines'."""

from __future__ import annotations

from collections.abc import Callable

from worker_cpu.match import arguments, schedule
from worker_cpu.wire import frames


class Traffic:
    """The log and the engines' files of one match, open for appending."""

    def __init__(self, settings: arguments.Settings) -> None:
        self._log = None if settings.log is None else settings.log.open("ab")
        self._stderr = [
            None if engine.stderr is None else engine.stderr.open("ab")
            for engine in settings.engines
        ]
        self._names = [engine.spec.name for engine in settings.engines]

    def ear(self, slot: schedule.Slot) -> Callable[[frames.Chunk], None]:
        """Return who takes the traffic of one game."""

        def hear(chunk: frames.Chunk) -> None:
            engine = slot.white if chunk.seat == "w" else slot.black
            own = self._stderr[engine]
            if chunk.direction == "!" and own is not None:
                own.write(chunk.data)
                own.flush()
            if self._log is not None:
                head = (
                    f"{chunk.monotonic_ns} {slot.number} {self._names[engine]} {chunk.direction} "
                )
                lines = chunk.data.rstrip(b"\n").replace(b"\n", b"\n" + head.encode())
                self._log.write(head.encode() + lines + b"\n")

        return hear

    def close(self) -> None:
        """Close the files."""
        for file in (self._log, *self._stderr):
            if file is not None:
                file.close()
