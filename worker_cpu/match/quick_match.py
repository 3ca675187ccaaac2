"""``farm match stockfish ethereal-chess``: engines by their names, all else as is usual.

The names become the switches of a whole command line, which is printed and kept in the journal:
so it is played, resumed and repeated like any other. What the user says by a switch stays as
it is said.
"""

from __future__ import annotations

import difflib
import math
import os
import pathlib
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from orchestrator.arbiter import data
from orchestrator.common import errors
from orchestrator.engines import known_programs
from worker_cpu.match import cli_values, programs, switches

TIME: Final = "tc=5+0.05"  # a game takes a quarter of a minute
LIMITS: Final = frozenset({"tc", "st", "nodes", "depth", "plies"})
GAMES: Final = 20  # at least: in pairs, of as many rounds as the engines need for it
RULES: Final = {  # as most testers end games that are decided
    "draw": ("movenumber=34", "movecount=8", "score=20"),
    "resign": ("movecount=3", "score=600"),
}


def whole(typed: Sequence[str]) -> list[str]:
    """Return the command line of words that begin with names, others as they are.

    Raise ``UsageError`` for a name that is no program here.
    """
    count = next((at for at, word in enumerate(typed) if word.startswith("-")), len(typed))
    if not count:
        return list(typed)
    names, rest = typed[:count], list(typed[count:])
    given = cli_values.grouped(rest)
    if count < 2 and not any(name == "engine" for name, _ in given):
        raise errors.UsageError(
            f"farm match: found one engine, {names[0]!r}; a match needs two or more:"
            f" farm match {names[0]} OTHER ({_here()})"
        )
    engines = [word for name in names for word in ("-engine", *_engine(name))]
    return [*engines, *_usual(count, given), *rest]


def _usual(engines: int, given: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """Yield what is not given: clock, pairs, book, rules, lanes and a file for the games."""
    named = {name for name, _ in given}
    own = [word for name, group in given if name in {"engine", "each"} for word in group]
    if not {word.partition("=")[0] for word in own} & LIMITS:
        yield from ("-each", TIME)
    adaptive = ("tournament", ["adaptive"]) in given  # which ends when its list is in order
    if not named & {"games", "repeat"} and not adaptive:
        yield from ("-games", "2", "-repeat")
    encounters = max(1, engines * (engines - 1) // 2)
    if "rounds" not in named and not adaptive:
        yield from ("-rounds", str(math.ceil(GAMES / 2 / encounters)))
    if not named & {"openings", "variant"}:
        yield from ("-openings", f"file={data.BALANCED}", "format=pgn", "order=random")
    for rule, values in RULES.items():
        if rule not in named:
            yield from (f"-{rule}", *values)
    if "concurrency" not in named:  # threads of one core would share it
        yield from ("-concurrency", str(max(1, len(os.sched_getaffinity(0)) // 2)))
    if "pgnout" not in named:
        yield from ("-pgnout", switches.PGN_FILE)


def _engine(name: str) -> list[str]:
    """Return the words behind ``-engine`` for a program's name or path."""
    try:
        command = programs.command(name, pathlib.Path.cwd(), "farm match")
    except errors.UsageError as error:
        near = difflib.get_close_matches(name, _installed(), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise errors.UsageError(f"{error}{hint} ({_here()})") from None
    protocol = known_programs.protocol(pathlib.Path(command[0]).name)
    return [f"cmd={shlex.join(command)}", *([] if protocol == "uci" else [f"proto={protocol}"])]


def _here() -> str:
    """Say which engines this machine has, by the names that are known."""
    return f"engines found here: {', '.join(_installed()) or 'none by a known name'}"


def _installed() -> list[str]:
    return known_programs.installed((None, programs.GAMES))
