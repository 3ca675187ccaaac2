"""The longest pause of the garbage collector while a season is followed: one line of JSON.

``python gc_pauses.py serve|serve-web JOURNAL FOLDER``: a process that collects garbage as these
commands do folds the entries of a file, one by one; ``serve-web`` shows the last twenty on its
page, too. A pause is CPU time of the thread that collects, so that a busy machine changes
little; looking whether there is much to collect is part of it.
"""

from __future__ import annotations

import gc
import json
import pathlib
import sys
import time
from collections.abc import Callable

import theatre

from orchestrator import contract
from orchestrator.commands import services
from orchestrator.season.fold import state as season_state

ENTRIES = 20  # shown on the page, one by one


class Pauses:
    """Notes how long the collector holds the process."""

    def __init__(self) -> None:
        self.longest, self.count, self._begun = 0.0, 0, 0.0
        gc.callbacks.append(self._heard)
        services.tidy = self._timed(services.tidy)
        services.set_apart = self._timed(services.set_apart)
        services.shorten_pauses()

    def _heard(self, phase: str, _info: dict[str, int]) -> None:
        if phase == "start":
            self._begun = time.thread_time()
        else:
            self._note(time.thread_time() - self._begun)

    def _timed(self, look: Callable[[], bool | None]) -> Callable[[], bool | None]:
        def timed() -> bool | None:
            begun = time.thread_time()
            answer = look()
            self._note(time.thread_time() - begun)
            return answer

        return timed

    def _note(self, seconds: float) -> None:
        self.longest = max(self.longest, seconds)
        self.count += 1


def main(what: str, journal: str, folder: str) -> None:
    """Follow a season, and print what it took."""
    pauses = Pauses()
    with pathlib.Path(journal).open() as lines:
        entries = map(contract.Entry.from_line, lines)
        if what == "serve":
            state = season_state.SeasonState()
            for entry in entries:
                state.apply(entry)
        else:
            tape = theatre.Tape(list(entries))
            made = theatre.projected(tape, pathlib.Path(folder))
            last = min(ENTRIES, len(tape.journal) // 2)
            tape.shown = len(tape.journal) - last
            made.projector.look()
            for _ in range(last):
                tape.shown += 1
                made.projector.look()
    time.sleep(2 * services.TIDY_SECONDS)  # until it has been tidied once more
    print(json.dumps({"ms": pauses.longest * 1e3, "collections": pauses.count}))


if __name__ == "__main__":
    main(*sys.argv[1:])
