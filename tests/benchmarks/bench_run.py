"""Run the benchmarks part by part, and put what each has said into bench/RESULTS.md.

``python tests/benchmarks/bench_run.py [PART ...] [--short]``; ``make bench PARTS="clock gap"``.
Each part has a time it may take; one that fails or takes longer is told of in the exit
code and on the page, and the others' figures are kept. ``--short`` runs the forms that
belong to ``make test``, and writes no page: it shows whether a machine has all it takes.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime as dt
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import bench_report

HERE = pathlib.Path(__file__).parent
KEPT = bench_report.ROOT / ".farm" / "bench"
CLEANING = 60  # s: so long a part that is stopped may take to end its processes


@dataclasses.dataclass(frozen=True)
class Part:
    """One benchmark: its tests, and the minutes it may take."""

    name: str
    path: str
    minutes: int


PARTS = (
    Part("rows", "test_rows.py", 30),
    Part("rating", "rating", 3),
    Part("gap", "test_gap.py", 8),
    Part("costs", "test_season_costs.py", 3),
    Part("remote", "test_remote.py", 3),
    Part("spectators", "spectators/test_spectators.py", 12),
    Part("flood", "spectators/test_flood.py", 40),
    Part("visit", "test_visit.py", 15),
    Part("clock", "clock_error", 25),
    Part("scale", "scale", 30),
    Part("losses", "test_time_losses.py", 60),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts named, all without a name; return 1 when one has failed."""
    parser = argparse.ArgumentParser(prog="bench_run", description=__doc__)
    names = [part.name for part in PARTS]
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(names)}")
    parser.add_argument("--short", action="store_true", help="the forms of `make test`; no page")
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(names):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    chosen = [part for part in PARTS if part.name in options.parts or not options.parts]
    failed = [part.name for part in chosen if not run(part, long=not options.short)]
    if not options.short:
        bench_report.write({name: KEPT / f"{name}.txt" for name in names})
        bench_report.cut()
        bench_report.promise()
    if failed:
        sys.stderr.write(f"bench: failed: {', '.join(failed)}; see {KEPT}\n")
    return 1 if failed else 0


def run(part: Part, *, long: bool) -> bool:
    """Run a part and keep its output with its date; say whether it went well."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / f"{part.name}{'' if long else '.short'}.txt"
    sys.stderr.write(f"bench: {part.name}, at most {part.minutes} minutes\n")
    began, begun = dt.datetime.now(dt.UTC), time.monotonic()
    with kept.with_suffix(".new").open("w", encoding="utf-8") as out:
        status = _status(part, out.fileno(), long=long)
    said = kept.with_suffix(".new").read_text(encoding="utf-8")
    end = {0: "", None: f", stopped after {part.minutes} minutes"}.get(status, ", FAILED")
    seconds = time.monotonic() - begun
    load = os.getloadavg()[1]
    head = f"{part.name}: {began:%Y-%m-%d %H:%M} UTC, {seconds:.0f} s, load {load:.1f}{end}"
    kept.with_suffix(".new").write_text(f"{head}\n{said}", encoding="utf-8")
    kept.with_suffix(".new").replace(kept)
    sys.stderr.write(f"bench: {head}\n")
    return status == 0


def _status(part: Part, out: int, *, long: bool) -> int | None:
    """Return the tests' exit status, ``None`` when their time was over."""
    forms = {"FARM_BENCH": "long"} if long else {}
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-s", "-q", "--no-header", str(HERE / part.path)],
        cwd=bench_report.ROOT,
        env={name: value for name, value in os.environ.items() if name != "FARM_BENCH"} | forms,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=out,
        start_new_session=True,
    )
    try:
        return process.wait(part.minutes * 60)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let tests that are stopped end what they have started; kill what is left of theirs."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(CLEANING)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


if __name__ == "__main__":
    sys.exit(main())
