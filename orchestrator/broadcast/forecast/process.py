"""The process that computes ratings and forecasts, so that the page's own process only serves.

``python -m orchestrator.broadcast.forecast.process SETTINGS`` reads JSON lines: a journal's
next entries (``{"season": …, "entries": [lines of journal.jsonl]}``), and the question for
what has changed (``{"now_ms": …}``), which is answered by one line: the documents by their
places, and the seconds of the processor that they took. It knows no ledger and no file, runs
only when the processor has nothing else to do, and ends as soon as nobody can ask any more,
even in the middle of a computation.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from orchestrator import contract
from orchestrator.broadcast.forecast import settings

NICE: Final = 19  # where the kernel has no idle class for us


def humble() -> None:
    """Take the processor only when nobody else wants it: a thinking engine, a spectator."""
    with contextlib.suppress(OSError):  # forbidden: then at least be nice
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    with contextlib.suppress(OSError):
        os.nice(NICE)


def main() -> None:
    """Answer until the other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for who started us
    wanted = settings.Settings.decode(sys.argv[1])
    inbox: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(inbox,), daemon=True).start()  # not humble: it sleeps
    if wanted.humble:
        humble()
    from orchestrator.broadcast.forecast import documents  # noqa: PLC0415 - numpy, humbly loaded

    outlook = documents.Outlook(wanted.runs, wanted.families)
    while True:
        request = contract.loads(inbox.get())
        if "entries" in request:
            outlook.take(request["season"], list(map(contract.Entry.from_line, request["entries"])))
        else:
            print(contract.dumps(_answer(outlook.documents, request["now_ms"])), flush=True)


def _answer(documents: Callable[[int], dict[str, Any]], now_ms: int) -> dict[str, Any]:
    began = time.process_time()
    made = documents(now_ms)
    return {"documents": made, "seconds": round(time.process_time() - began, 3)}


def _listen(inbox: queue.SimpleQueue[str]) -> None:
    """Read on while the other thread computes: the end of the input ends both."""
    for line in sys.stdin:
        inbox.put(line)
    os._exit(0)


if __name__ == "__main__":
    main()
