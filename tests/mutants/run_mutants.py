"""Change the program in many small ways, one at a time, and see whether its tests notice.

``make mutants`` (MUTANTS="--count 250 --seed 7"): a drawn sample of mutants of what bears rules, of
the ledger's scripts, the worker and the agent. Each runs, in a copy of the tree, against the tests
of its room that name its module, and if these pass, against all of the room. Survivors are listed:
each is a hole in the tests, or changes nothing. Exit code 1 where fewer than --least are noticed,
2 where there is nothing to change, or tests fail without a mutant.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import TypeAlias

import mutate

ROOT = pathlib.Path(__file__).parents[2]
ROOMS = {  # sources, and where their tests are
    "orchestrator/arbiter/**/*.py": (
        "tests/arbiter",
        "tests/referee/test_live.py",
        "tests/referee/test_tablebases.py",
    ),
    "orchestrator/rating/*.py": ("tests/rating",),
    "orchestrator/season/**/*.py": ("tests/season",),
    "orchestrator/ledger/scripts/*.lua": ("tests/ledger", "tests/gateway/test_batches.py"),
    "worker_cpu/worker/*.py": (
        "tests/integration/test_settling.py",
        "tests/integration/test_worker_start.py",
        "tests/integration/test_leases.py",
        "tests/integration/test_recovery.py",
        "tests/integration/test_lane_games.py",
        "tests/referee/test_outages.py",
        "tests/operations/test_doctor.py",
        "tests/gpu/test_gpus.py",
    ),
    "worker_gpu/agent.py": ("tests/gpu/test_agent.py", "tests/gpu/test_cheats.py"),
}
LEFT = shutil.ignore_patterns(".git", ".venv", ".farm", "build", "dist", "__pycache__", ".*_cache")
PATIENCE = 600.0  # s: a mutant that hangs has been noticed
SECONDS = itertools.count(1)  # since 1970: the time of a mutant's file
PASSED, FAILED, NOTHING = 0, 1, 5  # pytest's exit codes
# Each run is alone with its processes: a mutant that ends others than it should reaches nobody
# else's, and whatever it leaves running ends with it.
ALONE = (
    *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
    *(() if os.geteuid() == 0 else ("--user", "--map-current-user")),
)


Drawn: TypeAlias = tuple[str, tuple[str, ...], mutate.Mutant]  # file, its tests, the mutant


def sample(count: int, seed: int, match: str = "") -> list[Drawn]:
    """Return so many mutants of the files that match, drawn by a seed; each room has its share."""
    dice = random.Random(seed)
    rooms = [made for pattern, tests in ROOMS.items() if (made := every(pattern, tests, match))]
    drawn = []
    for number, made in enumerate(rooms):
        share = count * (number + 1) // len(rooms) - count * number // len(rooms)
        drawn += dice.sample(made, min(share, len(made)))
    dice.shuffle(drawn)
    return drawn


def every(pattern: str, tests: tuple[str, ...], match: str) -> list[Drawn]:
    """Return all mutants of a room's files that have a word in their path."""
    made = []
    for path in sorted(ROOT.glob(pattern)):
        name = str(path.relative_to(ROOT))
        if match in name:
            of = mutate.of_lua if path.suffix == ".lua" else mutate.of_python
            made += [(name, tests, one) for one in of(path.read_text(encoding="utf-8"))]
    return made


def named(tree: pathlib.Path, file: str, tests: tuple[str, ...]) -> list[str]:
    """Return the test files of a room that name a module."""
    word = re.compile(rf"\b{re.escape(pathlib.PurePath(file).stem)}\b")
    places = [tree / place for place in tests]
    every = [
        test
        for path in places
        for test in (sorted(path.glob("test_*.py")) if path.is_dir() else [path])
    ]
    return [str(one.relative_to(tree)) for one in every if word.search(one.read_text("utf-8"))]


def run(tree: pathlib.Path, tests: list[str]) -> bool:
    """Say whether tests pass on a tree."""
    pytest = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": ""}
    try:
        done = subprocess.run(
            (*ALONE, *pytest, *tests),
            cwd=tree,
            env=environment,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode in {PASSED, NOTHING}


def survives(tree: pathlib.Path, file: str, tests: tuple[str, ...], mutant: mutate.Mutant) -> bool:
    """Say whether no test notices a mutant; the tree is afterwards as it was."""
    path = tree / file
    whole, before = path.read_bytes(), path.stat()
    path.write_text(mutant.text, encoding="utf-8")
    # What was compiled is kept from mutant to mutant: no two of them may have the same time.
    os.utime(path, (seconds := next(SECONDS), seconds))
    try:
        near = named(tree, file, tests)
        return (not near or run(tree, near)) and run(tree, list(tests))
    finally:
        path.write_bytes(whole)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def main(words: Sequence[str] | None = None) -> int:
    """Run a sample, as the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--count", type=int, default=250, help="mutants")
    parser.add_argument("--seed", type=int, default=7, help="which are drawn")
    parser.add_argument("--least", type=float, default=0.0, help="per cent that must be noticed")
    parser.add_argument("--match", default="", help="only files with this in their path")
    told = parser.parse_args(words)
    if told.count < 1:
        parser.error(f"nothing to change: --count {told.count} is less than one mutant")
    drawn = sample(told.count, told.seed, told.match)
    if not drawn:
        parser.error(
            f"nothing to change: of {', '.join(ROOMS)}"
            f" no file that can be changed has {told.match!r} in its path (--match)"
        )
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = pathlib.Path(folder) / "farm"
        shutil.copytree(ROOT, tree, ignore=LEFT)
        for tests in sorted({tests for _, tests, _ in drawn}):
            if not run(tree, list(tests)):
                print(f"{' '.join(tests)}: fails without a mutant; nothing can be said")
                return 2
        for number, (file, tests, mutant) in enumerate(drawn, start=1):
            began = time.monotonic()
            alive = survives(tree, file, tests, mutant)
            survivors += alive
            word = "SURVIVES" if alive else "noticed"
            told_of = f"{file}:{mutant.line} {mutant.change}"
            spent = time.monotonic() - began
            print(f"{number}/{len(drawn)} {word} {told_of} ({spent:.0f} s)", flush=True)
    noticed = 100 * (1 - survivors / max(1, len(drawn)))
    print(f"{len(drawn)} mutants, {survivors} survive: {noticed:.1f} % noticed (seed {told.seed})")
    return 0 if noticed >= told.least else 1


if __name__ == "__main__":
    sys.exit(main())
