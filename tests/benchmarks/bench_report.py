"""Put the output of ``make bench`` into docs/benchmarks.md, with machine and versions.

``python tests/benchmarks/bench_report.py OUTPUT`` replaces the section between the two
markers, and nothing else; peers that were not named are said to be missing.
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- make bench: begin -->", "<!-- make bench: end -->"
PEERS = {  # environment variable to the argument that prints the version
    "FARM_FASTCHESS": "-version",
    "FARM_CUTECHESS": "-version",
    "FARM_ORDO": "-v",
    "FARM_CCHESS": "-version",
}
NOISE = re.compile(r"^(=+ |platform |rootdir|configfile|plugins|collected|tests/|cachedir|\.+$)")


def main(arguments: list[str]) -> int:
    """Write the section."""
    output = pathlib.Path(arguments[0]).read_text(encoding="utf-8")
    lines = [line for line in output.splitlines() if line.strip() and not NOISE.match(line)]
    section = "\n".join([BEGIN, "", *machine(), "", "```", *lines, "```", "", END])
    page = PAGE.read_text(encoding="utf-8")
    if BEGIN in page:
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        page = f"{before}{section}{after}"
    else:
        page = f"{page.rstrip()}\n\n## The last full `make bench`\n\n{section}\n"
    PAGE.write_text(page, encoding="utf-8")
    return 0


def machine() -> list[str]:
    """Say where and with what was measured."""
    load = os.getloadavg()[2]
    today = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}"
    cores, system = os.cpu_count(), f"{platform.system()} {platform.release()}"
    celery = importlib.metadata.version("celery")
    redis = _version("redis-server", "--version")
    told = [
        f"{today}: {_processor()}, {cores} logical cores, {system}, 15-minute load {load:.1f}.",
        "",
        f"* Python {platform.python_version()}, Celery {celery}, {redis}",
    ]
    for variable, switch in PEERS.items():
        path = os.environ.get(variable)
        told.append(f"* {variable}: {_version(path, switch) if path else 'not given'}")
    return told


def _processor() -> str:
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"model name\s*: (.*)", text)
    return found.group(1) if found else platform.machine()


def _version(program: str | None, switch: str) -> str:
    path = shutil.which(program or "")
    if path is None:
        return "not found"
    done = subprocess.run([path, switch], capture_output=True, text=True, check=False, timeout=20)
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else "unknown version"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
