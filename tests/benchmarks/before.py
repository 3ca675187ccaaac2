"""The same rows asked of an earlier program: ``FARM_BEFORE`` names its checkout with its ``.venv``.

Each part of ``test_rows`` runs there a second time, in turn with ours, and so does the gap: the
same text, run by the earlier checkout's Python (``python before.py PART OUT``), with the modules
that have other names there. Where a row cannot be asked, or takes longer than ``SECONDS`` (an
earlier program may be slower by orders of magnitude), the figure is given that was noted then.
"""

from __future__ import annotations

import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
from typing import Any

HERE = pathlib.Path(__file__).parent
GIVEN = os.environ.get("FARM_BEFORE", "")
SECONDS = 150  # a part may take there
MOVED = {  # where a module is now: where it was
    "orchestrator.common.errors": "orchestrator.errors",
    "orchestrator.ledger.embedded_redis": "orchestrator.embedded",
    "orchestrator.ops.supervisor": "orchestrator.processes",
    "orchestrator.serve.archive": "orchestrator.archive",
    "orchestrator.serve.doorbell": "orchestrator.doorbell",
    "orchestrator.season.fold.state": "orchestrator.season.state",
    "orchestrator.testmatch.match_journal": "worker_cpu.match.journal",
    "orchestrator.testmatch.orders": "orchestrator.arbiter.testmatch",
    "orchestrator.testmatch.sprt_match": "orchestrator.testmatches",
    "worker_cpu.match.books": "worker_cpu.match.orders",
}
SMALLER = {"ENTRIES": 10, "GAMES_OF_PAUSES": (100,)}  # what would take hours there
NOTED = "(2026-11-22, other machine)"
PAPER = {  # rows by how they begin: what was noted of them
    "`farm --help`": "1.25 s",
    "`farm status`": "2.1 s",
    "an entry on the page in season17": "60 ms",
    "an entry on the page, round robin": "1,700 ms at 8,900 games",
    "the page and the files that it names: requests": "39",
    "the page and the files that it names: compressed": "443 KB, not compressed",
    "a game of 5 KB added": "144 MB a game at 9,000 games",
    "a pass of page, notices": "408 at 100 seasons",
    "longest pause of the garbage collector": "44 ms at 10,000 games, 1,400 at 100,000",
    "`farm match`, a game": "24 to 28 ms",
    "`farm match`, memory a game without engines, so many at once: shared pages in": "13.6 MB",
    "so many games at once of engines that sleep, 80 ms a move: all": "15.5 to 16.2 s at 250",
    "so many games at once of engines that sleep, 80 ms a move: charged": "3.9 ms at 250",
    "so many matches": "the second at half the speed",
    "claim and result beside so many lanes, matches, and repeats of each match: append": "578 KB at"
    " 100,000 games to deal again",
    "what keeps a test match": "172 ms a look at 5,000 lanes",
    "memory of a lane": "110 MB",
    "a test game of": "163 ms",
    "so many forecasts of season17": "1,000 in 16 s of two cores",
    "so many forecasts of ntcec1": "1,000 in 321 s of two cores",
    "the longest round": "2.3 s at 128",
    "a book of so many lines": "10.7 s at 100,000 lines",
    "resuming": "3.3 s at 40,000 games",
    "rating list of so many games of 200 engines: CPU": "0.8 to 1.1 of Ordo",
    "rating list of so many games of 200 engines: memory": "4.2 of Ordo at 1,000,000 games",
}
# What is counted now is not all that there was: the earlier page's scripts loaded others, and a
# lane's processes ended with each game, so that nobody has their CPU afterwards.
NOT_THE_SAME = ("the page and the files", "a test game of")


def rows(part: str, folder: pathlib.Path) -> dict[str, dict[int, float]]:
    """Return what a part's rows are in the earlier program, {} where it cannot be asked."""
    return {
        what: {int(size): one for size, one in sizes.items()}
        for what, sizes in asked(part, folder).items()
        if not what.startswith(NOT_THE_SAME)
    }


def asked(part: str, folder: pathlib.Path) -> dict[str, Any]:
    """Run a part in the earlier checkout; return what it says, {} where it cannot be asked."""
    if not GIVEN:
        return {}
    checkout = pathlib.Path(GIVEN).resolve()
    folder.mkdir()
    out = folder / "rows.json"
    paths = [checkout, checkout / "tests", HERE, HERE / "clock_error", HERE.parent]
    left_out = {"FARM_BEFORE", "FARM_FASTCHESS", "FARM_CUTECHESS", "FARM_CCHESS", "FARM_ORDO"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment["PYTHONPATH"] = os.pathsep.join(map(str, paths))
    environment["PATH"] = f"{checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    with (folder / "said.txt").open("wb") as said:
        running = subprocess.Popen(
            [checkout / ".venv" / "bin" / "python", __file__, part, out],
            cwd=checkout,
            env=environment,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            status: int | None = running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
    if status != 0 or not out.exists():
        why = f"more than {SECONDS} s" if status is None else f"status {status}"
        lines = (folder / "said.txt").read_text(errors="replace").splitlines()
        sys.stderr.write(f"before: {part}: {why}: {' | '.join(lines[-3:])}\n")
        return {}
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def paper(what: str) -> str:
    """Return what was noted of a row, '' where nothing was."""
    said = next((figure for begin, figure in PAPER.items() if what.startswith(begin)), "")
    return f"{said} {NOTED}" if said else ""


# -- in the earlier checkout's Python --------------------------------------------------


def _main(part: str, out: str) -> None:
    _rename()
    folder = pathlib.Path(out).parent
    name, _, load = part.partition("-")
    if name == "gap":
        found = importlib.import_module("test_gap").measured(folder, int(load))
    else:
        test_rows: Any = importlib.import_module("test_rows")
        for constant, value in SMALLER.items():
            setattr(test_rows, constant, value)
        test_rows.PAUSES = (__file__, "gc_pauses")
        found = {row.what: row.ours for row in getattr(test_rows, part)(folder)}
    pathlib.Path(out).write_text(json.dumps(found))


def _rename() -> None:
    """Let today's names of modules lead to those of the earlier program."""
    for parent in ("common", "serve", "testmatch", "ops", "season.fold"):
        name = f"orchestrator.{parent}"
        sys.modules.setdefault(name, type(sys)(name))
    for now, then in MOVED.items():
        module = sys.modules[now] = importlib.import_module(then)
        parent, _, name = now.rpartition(".")
        setattr(importlib.import_module(parent), name, module)
    store: Any = importlib.import_module("orchestrator.ledger.store")
    store.RedisLedger.run_id = lambda _: ""  # seasons that are over were not set apart
    store.RedisLedger.set_checked = lambda *_, **__: True
    lanes: Any = importlib.import_module("orchestrator.ledger.lanes")
    lanes.Dealt.games = property(lambda dealt: dealt.game)
    services: Any = importlib.import_module("orchestrator.commands.services")
    services.TIDY_SECONDS, services.shorten_pauses = 0.0, lambda: None
    services.tidy = services.set_apart = lambda: None
    theatre: Any = importlib.import_module("theatre")
    theatre.round_robin = _round_robin


def _round_robin(root: pathlib.Path, engines: int, double_rounds: int = 1) -> Any:
    theatre: Any = importlib.import_module("theatre")
    harness: Any = importlib.import_module("harness")
    rows = [
        {"id": f"e{n:03}", "name": f"Engine {n:03}", "command": ["true"], "rating": 3000 + n}
        for n in range(engines)
    ]
    loaded = theatre.files.load(harness.league(root / f"{engines}.toml", rows, double_rounds))
    return theatre.Tape(theatre.simulation.Simulation.launched(loaded, 7).run().journal)


if __name__ == "__main__":
    if sys.argv[1] == "gc_pauses":
        _rename()
        pauses: Any = importlib.import_module("gc_pauses")
        pauses.main(*sys.argv[2:])
    else:
        _main(*sys.argv[1:])
