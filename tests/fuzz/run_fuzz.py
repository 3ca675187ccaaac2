"""`make fuzz`: give everything that reads strangers' words a million wrong ones.

    run_fuzz.py [--seconds 1800] [--seed N] [--only TARGET] [--keep DIR]

Each find is made as small as it goes and kept as a file, with the error beside it. A fixed
one moves to `tests/fuzz/finds/TARGET/`, where `make test` gives it to its target for ever.
Exit code 1 if anything was found.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import hashlib
import logging
import pathlib
import random
import signal
import sys
import time
import traceback
from collections.abc import Iterator

import mutations
import structlog
import targets

SECONDS_EACH = 10.0  # s of processor time; the slowest honest input takes less than one
REPORT_SECONDS = 30.0


class SlowError(Exception):
    """An input took too long."""


@dataclasses.dataclass
class Find:
    """An input that ended in an error that it may not end in; ``place`` tells errors apart."""

    target: str
    data: bytes
    place: str
    text: str


def attempt(target: targets.Target, data: bytes) -> Find | None:
    """Give an input to a target; return what is wrong with how it ended."""

    def slow(*_: object) -> None:
        raise SlowError(f"more than {SECONDS_EACH:g} s of processor time")

    before = signal.signal(signal.SIGPROF, slow)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_EACH)
    try:
        target.run(data)
    except target.allowed:
        return None
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        ours = [frame for frame in frames if "/tests/fuzz/" not in frame.filename] or frames
        where = f"{pathlib.Path(ours[-1].filename).name}:{ours[-1].lineno}"
        return Find(target.name, data, f"{type(error).__name__} at {where}", traceback.format_exc())
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return None


def inputs(target: targets.Target, seed: int) -> Iterator[bytes]:
    """Yield the inputs of a target by a seed, for ever."""
    number = 0
    while True:
        yield target.make(random.Random(f"{seed}:{target.name}:{number}"))
        number += 1


def smallest(target: targets.Target, find: Find) -> Find:
    """Return the find with the shortest input that ends in the same place."""

    def fails(data: bytes) -> bool:
        other = attempt(target, data)
        return other is not None and other.place == find.place

    if find.place.startswith("SlowError"):
        return find
    data = mutations.smaller(find.data, fails)
    return attempt(target, data) or find


def keep(find: Find, folder: pathlib.Path) -> pathlib.Path:
    """Write a find; return its file."""
    name = hashlib.sha256(find.data).hexdigest()[:12]
    place = folder / find.target
    place.mkdir(parents=True, exist_ok=True)
    (place / f"{name}.error").write_text(f"{find.place}\n\n{find.text}")
    path = place / f"{name}.input"
    path.write_bytes(find.data)
    return path


def main(words: list[str]) -> int:
    """Fuzz for a time; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    parser.add_argument("--only", choices=sorted(targets.BY_NAME), action="append")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/fuzz"))
    chosen = parser.parse_args(words)
    tried = [targets.BY_NAME[name] for name in chosen.only or targets.BY_NAME]
    print(f"fuzz: seed {chosen.seed}, {chosen.seconds:g} s, {len(tried)} targets", flush=True)
    made = {target.name: inputs(target, chosen.seed) for target in tried}
    spent: collections.Counter[str] = collections.Counter()
    counts: collections.Counter[str] = collections.Counter()
    found: dict[tuple[str, str], pathlib.Path] = {}
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    begin = reported = time.monotonic()
    while time.monotonic() - begin < chosen.seconds:
        # the target that has had the least processor time for its weight
        target = min(tried, key=lambda one: spent[one.name] / one.weight)
        first = time.process_time_ns()
        for _ in range(20):
            counts[target.name] += 1
            find = attempt(target, next(made[target.name]))
            if find is None or (find.target, find.place) in found:
                continue
            path = keep(smallest(target, find), chosen.keep)
            found[find.target, find.place] = path
            print(f"FOUND {find.target}: {find.place}: {path}", flush=True)
        spent[target.name] += max(1, time.process_time_ns() - first)
        if time.monotonic() - reported > REPORT_SECONDS:
            reported = time.monotonic()
            done = reported - begin
            print(f"{done:6.0f} s  {counts.total():9d} inputs  {len(found)} finds", flush=True)
    for name, count in sorted(counts.items()):
        print(f"  {name:14s} {count:9d} inputs  {spent[name] / 1e9:7.1f} s")
    print(f"fuzz: {counts.total()} inputs, {len(found)} finds, seed {chosen.seed}")
    return 1 if found else 0


if __name__ == "__main__":
    with targets.OPEN:  # a thread that serves would keep this process alive
        code = main(sys.argv[1:])
    sys.exit(code)
