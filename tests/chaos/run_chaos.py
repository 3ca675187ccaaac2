"""Storms side by side, each on a farm of its own: `make chaos` in less than an hour.

``python run_chaos.py KILLS PARTS`` strikes each fault KILLS times, shared out among PARTS
storms; beside them the engines are killed and the checker is tested. A storm waits most of
its time (for leases, for cut links), so that two cores hold several.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import storm

HERE = pathlib.Path(__file__).parent
PYTEST = (sys.executable, "-m", "pytest", "-s", "-p", "no:cacheprovider", "-q")


def main() -> int:
    """Run all parts, print what they say and the whole; return 1 when one has failed."""
    parser = argparse.ArgumentParser(prog="run_chaos", description=__doc__)
    parser.add_argument("kills", type=int, help="how often each fault strikes")
    parser.add_argument("parts", type=int, help="storms side by side")
    options = parser.parse_args()
    began, tally = time.monotonic(), storm.Tally()
    with tempfile.TemporaryDirectory(prefix="farm-storms-") as name:
        folder = pathlib.Path(name)
        parts = [_part(folder, options.kills, n, options.parts) for n in range(options.parts + 1)]
        codes = [part.wait() for part in parts]
        for n, code in enumerate(codes):
            print(f"== part {n} of {options.parts}: exit {code}")
            print((folder / f"part-{n}.log").read_text(errors="replace"))
        for saved in sorted(folder.glob("*.json")):
            tally.add(saved)
    print(tally.report(int(os.environ.get("FARM_CHAOS_SEED", "7")), time.monotonic() - began))
    return int(any(codes))


def _part(folder: pathlib.Path, kills: int, n: int, parts: int) -> subprocess.Popen[bytes]:
    """Start one part: 0 is all but the storm."""
    chosen = "no_fault" if n else "not no_fault"
    environment = os.environ | {
        "FARM_CHAOS_KILLS": str(kills),
        "FARM_CHAOS_PART": f"{max(n, 1)}/{parts}",
        "FARM_CHAOS_FIGURES": str(folder / f"part-{n}.json"),
    }
    with (folder / f"part-{n}.log").open("wb") as log:
        print(f"part {n}: {log.name}", flush=True)
        command = [*PYTEST, str(HERE), "-k", chosen]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


if __name__ == "__main__":
    sys.exit(main())
