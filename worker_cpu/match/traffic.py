"""Keeps what engines say: all of it in the match's log, stderr in files of the engines'."""

from __future__ import annotations

from collections.abc import Callable

from worker_cpu.match import arguments, engine_lines, schedule
from worker_cpu.referee import result
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
        self._settings = settings
        self._lines: dict[int, engine_lines.GameLines] = {}  # of the games that are played

    def ear(self, slot: schedule.Slot) -> Callable[[frames.Chunk], None]:
        """Return who takes the traffic of one game."""
        lines = None
        if engine_lines.listens(self._settings):
            players = [self._settings.engines[one].spec for one in (slot.white, slot.black)]
            lines = engine_lines.GameLines(self._settings, engine_lines.seats(players))
            self._lines[slot.number] = lines  # of a game that is played again the last attempt's

        def hear(chunk: frames.Chunk) -> None:
            if lines is not None:
                lines.hear(chunk)
            engine = slot.white if chunk.seat == "w" else slot.black
            own = self._stderr[engine]
            if chunk.direction == "!" and own is not None:
                own.write(chunk.data)
                own.flush()
            if self._log is not None:
                head = (
                    f"{chunk.monotonic_ns} {slot.number} {self._names[engine]} {chunk.direction} "
                )
                data = chunk.data.rstrip(b"\n").replace(b"\n", b"\n" + head.encode())
                self._log.write(head.encode() + data + b"\n")

        return hear

    def written(self, slot: schedule.Slot, ended: result.Ended) -> result.Ended:
        """Return a finished game with what was looked for in its engines' lines."""
        lines = self._lines.pop(slot.number, None)
        return ended if lines is None else lines.written(ended, self._settings)

    def close(self) -> None:
        """Close the files."""
        for file in (self._log, *self._stderr):
            if file is not None:
                file.close()
