"""Put the output of ``make bench`` into bench/RESULTS.md, with machine and versions.

Replaces the section between the two markers, and nothing else; peers that were not named
are said to be missing, as are parts that have never been run. What the page says of a part
that another checkout has run stays. The table of costs is copied into the manual's page
(docs/benchmarks.md), between markers of its own, and the figures of what the farm promises into
the table of README.md.
"""

from __future__ import annotations

import importlib.metadata
import os
import pathlib
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / "bench" / "RESULTS.md"
MANUAL = ROOT / "docs" / "benchmarks.md"
README = ROOT / "README.md"
ROWS = "rows"  # the part that is the manual's table
COSTS, COSTS_END = "<!-- costs: begin -->", "<!-- costs: end -->"
BEGIN, END = "<!-- make bench: begin -->", "<!-- make bench: end -->"
PEERS = {  # environment variable to the argument that prints the version
    "FARM_FASTCHESS": "-version",
    "FARM_CUTECHESS": "-version",
    "FARM_ORDO": "-v",
    "FARM_CCHESS": "-version",
}
QUIET = {"QT_QPA_PLATFORM": "offscreen"}  # cutechess is linked to a graphics library
NOISE = re.compile(
    r"^(=+ |-+ |platform |rootdir|configfile|plugins|collected|tests/|cachedir|measuring: )"
)
# pytest's last line: behind a table it would be a row
SUMMARY = re.compile(r"^\d+ (passed|failed)\b")
PROGRESS = re.compile(r"^[.sFEx]+(\s*\[ *\d+%\])?$")


def write(parts: Mapping[str, pathlib.Path], page: pathlib.Path = PAGE) -> None:
    """Write the section from the outputs of the parts, by name; each begins with its date."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    known = standing(rest.partition(END)[0], parts)
    told = [*machine(), ""]
    for name, path in parts.items():
        told += [*section(path), ""] if path.exists() else [known.get(name, _unknown(name)), ""]
    text = "\n".join([BEGIN, "", *told, END])
    if rest:
        page.write_text(f"{before}{text}{rest.partition(END)[2]}", encoding="utf-8")
    else:
        title = "## The last full `make bench`"
        page.write_text(f"{before.rstrip()}\n\n{title}\n\n{text}\n", encoding="utf-8")


def cut(page: pathlib.Path = PAGE, manual: pathlib.Path = MANUAL) -> None:
    """Copy the table of costs from the results into the manual's page."""
    table = parts_of(page)[ROWS]
    before, begin, rest = manual.read_text(encoding="utf-8").partition(COSTS)
    lines = table.partition("\n")[2].splitlines()
    told = "\n".join(line for line in lines if not SUMMARY.match(line)).strip()
    text = f"{before}{begin}\n\n{told}\n\n{COSTS_END}{rest.partition(COSTS_END)[2]}"
    manual.write_text(text, encoding="utf-8")


def promise(page: pathlib.Path = PAGE, readme: pathlib.Path = README) -> None:
    """Write the figures of what the farm promises into their rows of the table in README.md."""
    text = readme.read_text(encoding="utf-8")
    for about, measured in promises(parts_of(page)).items():
        row = f"| {about} | {measured} |"
        text = re.sub(rf"^\| {re.escape(about)} \|.*$", lambda _: row, text, flags=re.MULTILINE)  # noqa: B023 - called at once
    readme.write_text(text, encoding="utf-8")


def parts_of(page: pathlib.Path = PAGE) -> dict[str, str]:
    """Return what the page says of each part that it has."""
    results = page.read_text(encoding="utf-8")
    return standing(results.partition(BEGIN)[2].partition(END)[0], sections(results))


def promises(parts: Mapping[str, str]) -> dict[str, str]:
    """Return what each promise is measured at, of those whose part has been run."""
    measured: dict[str, str] = {}
    clock = parts.get("clock", "")
    own = re.findall(r"^\| think 2 ms, .*? \| (\d+) \[.*?\] \| (\d+) \|", clock, re.MULTILINE)
    charged = [row.split("|") for row in clock.splitlines() if row.startswith("| farm match |")]
    under = sum(int(row[8]) for row in charged if len(row) > 10)
    if own:
        p50, p99 = (max(int(row[column]) for row in own) / 1000 for column in (0, 1))
        measured["a clock that charges what an engine used"] = (
            f"the record within {p50:.3f} ms of the engine's own stamps at the median, {p99:.3f} ms"
            f" for 99 of 100 moves (thinks of 2 ms); {under or 'none'} undercharged by 1 ms"
        )
    quiet = r"^gap, result to `uci`, beside 0 busy loops a core: p50 (\d+) ms"
    if gap := re.search(quiet, parts.get("gap", ""), re.MULTILINE):
        measured["no idle time between games"] = (
            f"{gap[1]} ms from a journaled result to the next engines' first `uci` (median)"
        )
    crowd = re.search(r"before (\d+), load[^$]*?p99 ([\d.]+)", parts.get("spectators", ""))
    if crowd:
        measured["spectators see moves at once, and cost the clock nothing"] = (
            f"99 of 100 moves within {float(crowd[2]):.0f} ms before {int(crowd[1]):,} of them"
        )
    rating = parts.get("rating", "")
    ours = re.search(r"rate: ([\d.]+) s", rating)
    theirs = re.search(r"ordo -W -D: ([\d.]+) s", rating)
    games = re.search(r"of (\d+) games", rating)
    if ours and theirs and games:
        measured["rating lists as Ordo makes them"] = (
            f"its numbers; {int(games[1]):,} games in {float(ours[1]):.2f} s,"
            f" Ordo itself {float(theirs[1]):.2f} s"
        )
    return measured


def sections(results: str) -> list[str]:
    """Return the parts that a page has."""
    return re.findall(r"^### ([a-z]+)$", results, flags=re.MULTILINE)


def standing(told: str, parts: Iterable[str]) -> dict[str, str]:
    """Return what a page's section already says of each part, by the part's name."""
    heads = "|".join(map(re.escape, parts))
    pieces = re.split(rf"^### ({heads})$", told, flags=re.MULTILINE)
    return {
        name: f"### {name}\n\n{text.strip()}"
        for name, text in zip(pieces[1::2], pieces[2::2], strict=True)
    }


def _unknown(name: str) -> str:
    return f"### {name}\n\nNot run."


def section(path: pathlib.Path) -> Iterator[str]:
    """Yield a part's lines for the page: tables as they are, everything else verbatim."""
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    yield from (f"### {head.partition(':')[0]}", "", f"{head.partition(':')[2].strip()}.", "")
    told = [line for line in lines if not NOISE.match(line) and not PROGRESS.match(line)]
    if any(line.startswith("|") for line in told):
        yield from ("\n".join(told).strip(), "")
    else:
        yield from ("```", *(line for line in told if line.strip()), "```")


def machine() -> list[str]:
    """Say where and with what was measured."""
    cores, system = os.cpu_count(), f"{platform.system()} {platform.release()}"
    celery = importlib.metadata.version("celery")
    redis = _version("redis-server", "--version")
    told = [
        f"{_processor()}, {cores} logical cores, {system}.",
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
    done = subprocess.run(
        [path, switch],
        capture_output=True,
        text=True,
        env=os.environ | QUIET,
        check=False,
        timeout=20,
    )
    lines = (done.stdout or done.stderr).strip().splitlines()
    return lines[0] if lines else "unknown version"
