"""What an OpenBench instance and fishtest say of engines, books and tests, in this farm's words.

OpenBench: ``Engines/*.json``, ``Books/*.json``, and the open tests of its database. fishtest: a
run as its API gives it. Each test becomes the words of one ``farm match test``. What has no
counterpart is told as a note, never dropped in silence.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.common import bounds, errors
from orchestrator.common import text as text_tools

BOOK_NOTE: Final = "no book"
# fishtest's worker always plays with these, unless a run says not to adjudicate.
FISHTEST_RULES: Final = (
    *("--draw", "movenumber=34,movecount=8,score=20"),
    *("--resign", "movecount=3,score=600"),
)
_SAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")
_COMPILERS: Final = ("gcc", "g++", "clang", "clang++", "cargo", "rustc", "go", "zig", "dotnet")
_KNOWN: Final = {
    *("base_branch", "dev_branch", "both_branch", "book_name", "test_bounds", "test_confidence"),
    *("both_options", "dev_options", "base_options", "win_adj", "draw_adj", "test_max_games"),
    *("both_time_control", "dev_time_control", "base_time_control", "priority", "throughput"),
    *("both_bench", "dev_bench", "base_bench", "both_network", "dev_network", "base_network"),
    *("syzygy_adj", "syzygy_wdl", "workload_size", "upload_pgns"),
}


@dataclasses.dataclass(frozen=True)
class Engine:
    """An engine as a recipe's facts, and what is to be said of it."""

    name: str
    recipe: Mapping[str, Any]
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Book:
    """A book: where it is fetched from, and its SHA-256 with lines that end in LF alone."""

    name: str
    source: str
    sha256: str

    def is_there(self, path: pathlib.Path) -> bool:
        """Say whether a file is this book."""
        try:
            content = bounds.content(path, bounds.BOOK_BYTES)
        except bounds.DAMAGED:
            return False
        plain = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return hashlib.sha256(plain).hexdigest() == self.sha256.lower()


@dataclasses.dataclass(frozen=True)
class Test:
    """A test's words for ``farm match test``; '' for a revision that is named when it is run."""

    name: str
    engine: str
    tested: str
    against: str
    book: str
    words: tuple[str, ...]
    notes: tuple[str, ...] = ()


def file_name(name: str) -> str:
    """Return a name that is a file's everywhere."""
    return _SAFE.sub("-", name).strip("-.")[:80] or "unnamed"


def read(path: pathlib.Path) -> dict[str, Any]:
    """Read a JSON file of theirs; raise ``UsageError``."""
    try:
        told = json.loads(bounds.text(path))
    except (*bounds.DAMAGED, RecursionError) as error:
        raise errors.UsageError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(told, dict):
        raise errors.UsageError(f"{path}: found no table of names and values")
    return told


# -- OpenBench -------------------------------------------------------------------------------


def engine(path: pathlib.Path) -> Engine:
    """Read ``Engines/NAME.json`` as a recipe; raise ``UsageError``."""
    told = read(path)
    build, notes = told.get("build"), []
    if not isinstance(build, dict) or not isinstance(told.get("source"), str):
        raise errors.UsageError(f"{path}: an engine has `source` and `build`; this file has not")
    folder = str(build.get("path") or "").strip("/")
    tools = [re.split(r"[<>=!~ ]", str(one))[0] for one in build.get("compilers") or ()]
    compiler = next((one for one in _COMPILERS if one in tools), tools[0] if tools else "")
    inside = f"-C {folder} " if folder else ""
    given = ""
    if compiler and compiler not in ("cargo", "rustc"):
        given = f" {'CXX' if '++' in compiler else 'CC'}={compiler}"
    if compiler in ("cargo", "rustc"):
        notes.append("its crates must be in the repository (cargo vendor): a build has no network")
    if told.get("private"):
        notes.append("private: give `binaries` instead of `make`, or an address that git may read")
    if flags := " ".join(map(str, build.get("cpuflags") or ())):
        notes.append(f"OpenBench gives it to processors with {flags} alone")
    notes.append(
        "a network that its Makefile downloads is put into the source by `files`; add"
        " EVALFILE= to `make` if it takes one"
    )
    recipe = {
        "name": path.stem,
        "repository": told["source"],
        "make": f"make {inside}-j EXE=farm-engine{given}",
        "program": f"{folder}/farm-engine" if folder else "farm-engine",
        "toolchain": ["make", *([compiler] if compiler else [])],
        "nps": int(told.get("nps") or 0),
    }
    return Engine(path.stem, recipe, tuple(notes))


def book(path: pathlib.Path) -> Book:
    """Read ``Books/NAME.json``; raise ``UsageError``."""
    told = read(path)
    source, digest = told.get("source"), told.get("sha")
    if not isinstance(source, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", str(digest)):
        raise errors.UsageError(f"{path}: a book has `source` and `sha`; this file has not")
    return Book(path.stem, source, str(digest).lower())


def presets(path: pathlib.Path) -> Iterator[Test]:
    """Yield the test presets of an engine's file; what its default says holds for all."""
    found = read(path).get("test_presets")
    every = found if isinstance(found, dict) else {}
    default = every.get("default") if isinstance(every.get("default"), dict) else {}
    for name, own in every.items():
        if name != "default" and isinstance(own, dict):
            yield _preset(path.stem, name, {**(default or {}), **own})


def _preset(engine: str, name: str, told: Mapping[str, Any]) -> Test:
    notes = [f"{key} = {told[key]!r} is not known here" for key in told if key not in _KNOWN]

    def of(side: str, what: str) -> str:
        return str(told.get(f"{side}_{what}") or told.get(f"both_{what}") or "")

    words = [
        *_clocks(of("dev", "time_control"), of("base", "time_control")),
        *_options(of("dev", "options"), of("base", "options")),
        *_rules(told),
        *_end(told, notes),
    ]
    for side in ("dev", "base"):
        if network := of(side, "network"):
            notes.append(f"network {network} of {side}: put it into the recipe's `files`")
        if (bench := of(side, "bench")).isdecimal():
            words += ["--bench" if side == "dev" else "--bench-against", bench]
    words += _shares(told.get("priority"), told.get("throughput"))
    _without_effect(told, notes)
    tested, against = of("dev", "branch"), of("base", "branch")
    book = str(told.get("book_name") or "")
    return Test(f"{engine} {name}", engine, tested, against, book, tuple(words), tuple(notes))


def _clocks(own: str, theirs: str) -> list[str]:
    words = []
    if own:
        words += ["--tc", _clock(own)]
    if theirs and theirs != own:
        words += ["--tc-against", _clock(theirs)]
    return words


def _clock(text: str) -> str:
    """Return a time control in this farm's words: N=, D= and MT= are OpenBench's."""
    found = re.fullmatch(r"(N|D|MT)=(\d+)", text.strip().upper())
    if not found:
        return text.strip()
    kind, value = found.groups()
    return {"N": f"nodes={value}", "D": f"depth={value}", "MT": f"{int(value) / 1000:g}/move"}[kind]


def _options(own: str, theirs: str) -> list[str]:
    pairs = (("--options", own), ("--options-against", theirs))
    return [word for option, text in pairs if text.strip() for word in (option, text.strip())]


def _rules(told: Mapping[str, Any]) -> list[str]:
    words = []
    for option, key in (("--draw", "draw_adj"), ("--resign", "win_adj")):
        text = str(told.get(key) or "None")
        if text != "None":
            words += [option, ",".join(text.split())]
    return words


def _end(told: Mapping[str, Any], notes: list[str]) -> list[str]:
    """Return how a test ends: by its bounds, or after its games."""
    if told.get("test_max_games"):
        return ["--games", str(int(told["test_max_games"]))]
    try:
        elo0, elo1 = _numbers(told.get("test_bounds"))
        alpha, beta = _numbers(told.get("test_confidence") or "[0.05, 0.05]")
    except ValueError:
        notes.append("it has neither bounds nor a number of games: add --sprt or --games")
        return []
    return _sprt(elo0, elo1, alpha, beta)


def _sprt(elo0: float, elo1: float, alpha: float, beta: float) -> list[str]:
    numbers = (f"elo0={elo0:g}", f"elo1={elo1:g}", f"alpha={alpha:g}", f"beta={beta:g}")
    return ["--games", "1000000", "--sprt", *numbers]


def _numbers(text: object) -> tuple[float, float]:
    first, second = re.findall(r"-?\d+(?:\.\d+)?", str(text))
    return float(first), float(second)


def _shares(priority: object, throughput: object) -> list[str]:
    words = []
    for option, told in (("--priority", priority), ("--share", throughput)):
        if str(told or "").lstrip("-").split(".")[0].isdecimal() and round(float(str(told))):
            words += [option, str(round(float(str(told))))]
    return words


def _without_effect(told: Mapping[str, Any], notes: list[str]) -> None:
    syzygy = str(told.get("syzygy_adj") or told.get("syzygy_wdl") or "")
    if syzygy not in ("", "OPTIONAL", "DISABLED", "None"):
        notes.append(f"Syzygy {syzygy}: add --tb where lanes play it; workers have no tables")


def open_tests(database: pathlib.Path) -> Iterator[Test]:
    """Yield the tests of an instance's database (SQLite) that are neither finished nor deleted.

    Raise ``UsageError`` for a file that is none.
    """
    query = (
        "SELECT t.*, d.name AS dev_name, d.sha AS dev_sha, d.bench AS dev_bench,"
        " b.name AS base_name, b.sha AS base_sha, b.bench AS base_bench FROM OpenBench_test t"
        " JOIN OpenBench_engine d ON d.id = t.dev_id JOIN OpenBench_engine b ON b.id = t.base_id"
        " WHERE t.finished = 0 AND t.deleted = 0 ORDER BY t.id"
    )
    try:
        link = sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)
        link.row_factory = sqlite3.Row
        rows = [dict(row) for row in link.execute(query)]
        link.close()
    except sqlite3.Error as error:
        raise errors.UsageError(f"{database}: no database of OpenBench: {error}") from error
    for row in rows:
        yield _open(row)


def _open(row: Mapping[str, Any]) -> Test:
    words, notes = [], [f"{row['dev_name']} against {row['base_name']}, by {row['author']}"]
    mode = row["test_mode"]
    words += _clocks(row["dev_time_control"], row["base_time_control"])
    words += _options(row["dev_options"], row["base_options"])
    words += _rules(row)
    if mode == "SPRT":
        words += _sprt(row["elolower"], row["eloupper"], row["alpha"], row["beta"])
    elif mode == "GAMES":
        words += ["--games", str(row["max_games"])]
    else:
        notes.append(f"its mode is {mode}, which is no test match: it is not run")
    for option, bench in (("--bench", "dev_bench"), ("--bench-against", "base_bench")):
        if row[bench]:
            words += [option, str(row[bench])]
    words += _shares(row["priority"], row["throughput"])
    if row.get("scale_nps"):
        words += ["--scale-nps", str(row["scale_nps"])]
    nets = {side: row.get(f"{side}_netname") for side in ("dev", "base")}
    notes += [f"network {net} of {side}: put it into `files`" for side, net in nets.items() if net]
    _without_effect(row, notes)
    return Test(
        f"open {row['id']}",
        row["dev_engine"],
        f"{row['dev_repo']}#{row['dev_sha']}",
        f"{row['base_repo']}#{row['base_sha']}",
        row["book_name"],
        tuple(words) if mode in ("SPRT", "GAMES") else (),
        tuple(notes),
    )


# -- fishtest --------------------------------------------------------------------------------


def fishtest(path: pathlib.Path) -> tuple[Engine, Test]:
    """Read a run as ``/api/get_run/ID`` gives it; raise ``UsageError``."""
    run = read(path)
    told = run.get("args")
    wanted = ("new_tag", "base_tag", "resolved_new", "resolved_base", "tests_repo", "tc")
    if not isinstance(told, dict) or not all(isinstance(told.get(one), str) for one in wanted):
        raise errors.UsageError(f"{path}: no run of fishtest: it has no args with {wanted[0]}")
    if "spsa" in told:
        raise errors.UsageError(f"{path}: a tuning (SPSA), which is no test match")
    nets = [*told.get("new_nets", ()), *told.get("base_nets", ())]
    recipe = {
        "name": "Stockfish",
        "repository": told["tests_repo"],
        "make": "make -C src -j build ARCH=native COMP=gcc",
        "program": "src/stockfish",
        "toolchain": ["make", "g++"],
        "seconds": 1_800,
        "memory_mb": 8_192,
        "files": {f"src/{net}": f"../nets/{net}" for net in dict.fromkeys(map(str, nets))},
    }
    threads = f" Threads={told['threads']}" if int(told.get("threads") or 1) > 1 else ""
    own, theirs = (f"{told.get(one) or ''}{threads}" for one in ("new_options", "base_options"))
    words = [
        *_clocks(str(told.get("new_tc") or told["tc"]), told["tc"]),
        *_options(own, theirs),
        *(FISHTEST_RULES if told.get("adjudication", True) else ()),
    ]
    tested = told.get("sprt")
    if isinstance(tested, dict):
        numbers = (tested["elo0"], tested["elo1"], tested["alpha"], tested["beta"])
        words += _sprt(*map(float, numbers))
        if tested.get("elo_model", "normalized") != "normalized":
            words.append(f"model={tested['elo_model']}")
    else:
        words += ["--games", str(int(told["num_games"]))]
    benches = (("--bench", "new_signature"), ("--bench-against", "base_signature"))
    for option, key in benches:
        if str(told.get(key) or "").isdecimal():
            words += [option, str(told[key])]
    words += _shares(told.get("priority"), 0)
    base = told.get("master_repo") or told["tests_repo"]
    notes = [f"{told['new_tag']} against {told['base_tag']}, by {told.get('username', 'somebody')}"]
    if str(told.get("book_depth") or "0").isdecimal() and str(told.get("book")).endswith(".pgn"):
        words += ["--plies", str(told["book_depth"])]
    if nets:
        notes.append(f"put {' '.join(dict.fromkeys(map(str, nets)))} into the folder nets")
    name = str(run.get("_id") or path.stem)
    test = Test(
        f"fishtest {name}",
        "Stockfish",
        f"{told['tests_repo']}#{told['resolved_new']}",
        f"{base}#{told['resolved_base']}",
        str(told.get("book") or ""),
        tuple(words),
        tuple(notes),
    )
    return Engine("Stockfish", recipe), test


def toml(recipe: Mapping[str, Any], notes: Sequence[str]) -> str:
    """Write a recipe as TOML, its notes as comments."""
    lines = [f"# {' '.join(note.split())}" for note in notes]
    for key, value in recipe.items():
        if isinstance(value, Mapping):
            inner = ", ".join(f"{_quoted(name)} = {_quoted(text)}" for name, text in value.items())
            lines.append(f"{key} = {{ {inner} }}")
        elif isinstance(value, list):
            lines.append(f"{key} = [{', '.join(map(_quoted, value))}]")
        else:
            lines.append(f"{key} = {value if isinstance(value, int) else _quoted(value)}")
    return "\n".join(lines) + "\n"


def _quoted(text: object) -> str:
    """Return a TOML string: JSON's escapes are TOML's, too."""
    return json.dumps(text_tools.visible(str(text)), ensure_ascii=False)
