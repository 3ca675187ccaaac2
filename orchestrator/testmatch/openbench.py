"""Read engines, books and tests of an OpenBench instance or of fishtest as this farm's settings.

OpenBench: ``Engines/*.json``, ``Books/*.json``, and the open tests of its database. fishtest: a
run as its API gives it. Each test becomes the words of one ``farm match test``, a tuning those of
``farm match tune``. What has no counterpart is told as a note, never dropped in silence.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import math
import pathlib
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from orchestrator.common import bounds, errors
from orchestrator.common import text as text_tools
from orchestrator.testmatch import spsa

BOOK_NOTE: Final = "no book"
# fishtest's worker always plays with these, unless a run says not to adjudicate.
FISHTEST_RULES: Final = (
    *("--draw", "movenumber=34,movecount=8,score=20"),
    *("--resign", "movecount=3,score=600"),
)
TUNES: Final = "SPSA"  # the mode of OpenBench's tests that tune
ERRORS: Final = ("alpha", "beta")  # of SPRT, in both programs
_SAFE: Final = re.compile(r"[^A-Za-z0-9._+-]+")
_PROGRAM: Final = "openbench-engine"  # what a Makefile builds: no other program's name
_UNBOUNDED: Final = 1_000_000  # games of a test that only its bounds end
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
    """A test's words for ``farm match``; '' for a revision that is named when it is run.

    ``against`` is nobody's in a tuning (``verb`` ``tune``).
    """

    name: str
    engine: str
    tested: str
    against: str
    book: str
    arguments: tuple[str, ...]
    notes: tuple[str, ...] = ()
    verb: str = "test"


def file_name(name: str) -> str:
    """Return a name that is a file's everywhere."""
    return _SAFE.sub("-", name).strip("-.")[:80] or "unnamed"


def read(path: pathlib.Path) -> dict[str, Any]:
    """Read a JSON file of theirs; raise ``UsageError``."""
    try:
        settings = json.loads(bounds.text(path))
    except (*bounds.DAMAGED, RecursionError) as error:
        why = errors.reason(error)
        raise errors.UsageError(f"{path}: cannot be read as JSON: {why}") from error
    if not isinstance(settings, dict):
        raise errors.UsageError(f"{path}: found no table of names and values")
    return settings


@contextlib.contextmanager
def _fields_of(where: str) -> Iterator[None]:
    """Read fields of another program; raise ``UsageError`` for one that is absent or strange."""
    try:
        yield
    except KeyError as error:
        why = f"it has no {error.args[0]}; it may be of another version"
        raise errors.UsageError(f"{where}: {why}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise errors.UsageError(f"{where}: {error}") from error


def _number(settings: Mapping[str, Any], field: str) -> float:
    """Return a field that is a number; raise ``KeyError``, ``ValueError``."""
    try:
        number = float(settings[field])
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{field}: found {settings[field]!r}; allowed: a number")
    return number


# -- OpenBench -------------------------------------------------------------------------------


def engine(path: pathlib.Path) -> Engine:
    """Read ``Engines/NAME.json`` as a recipe; raise ``UsageError``."""
    with _fields_of(str(path)):
        return _engine(path, read(path))


def _engine(path: pathlib.Path, settings: Mapping[str, Any]) -> Engine:
    build = settings.get("build")
    notes = []
    if not isinstance(build, dict) or not isinstance(settings.get("source"), str):
        raise errors.UsageError(f"{path}: an engine has `source` and `build`; this file has not")
    folder = str(build.get("path") or "").strip("/")
    tools = [re.split(r"[<>=!~ ]", str(item))[0] for item in build.get("compilers") or ()]
    compiler = next((item for item in _COMPILERS if item in tools), tools[0] if tools else "")
    inside = f"-C {folder} " if folder else ""
    given = ""
    if compiler and compiler not in ("cargo", "rustc"):
        given = f" {'CXX' if '++' in compiler else 'CC'}={compiler}"
    if compiler in ("cargo", "rustc"):
        notes.append("its crates must be in the repository (cargo vendor): a build has no network")
    if settings.get("private"):
        notes.append("private: give `binaries` instead of `make`, or an address that git may read")
    if flags := " ".join(map(str, build.get("cpuflags") or ())):
        notes.append(f"OpenBench gives it to processors with {flags} alone")
    notes.append(
        "a network that its Makefile downloads is put into the source by `files`; add"
        " EVALFILE= to `make` if it takes one"
    )
    recipe = {
        "name": path.stem,
        "repository": settings["source"],
        "make": f"make {inside}-j EXE={_PROGRAM}{given}",
        "program": f"{folder}/{_PROGRAM}" if folder else _PROGRAM,
        "toolchain": ["make", *([compiler] if compiler else [])],
        "nps": int(_number(settings, "nps")) if settings.get("nps") else 0,
    }
    return Engine(path.stem, recipe, tuple(notes))


def book(path: pathlib.Path) -> Book:
    """Read ``Books/NAME.json``; raise ``UsageError``."""
    settings = read(path)
    source, digest = settings.get("source"), settings.get("sha")
    if not isinstance(source, str) or not re.fullmatch(r"[0-9a-fA-F]{64}", str(digest)):
        raise errors.UsageError(f"{path}: a book has `source` and `sha`; this file has not")
    return Book(path.stem, source, str(digest).lower())


def presets(path: pathlib.Path) -> Iterator[Test]:
    """Yield the test presets of an engine's file; what its default says holds for all.

    Raise ``UsageError`` for a field that is not as expected.
    """
    matched = read(path).get("test_presets")
    every = matched if isinstance(matched, dict) else {}
    default = every.get("default") if isinstance(every.get("default"), dict) else {}
    for name, own in every.items():
        if name != "default" and isinstance(own, dict):
            with _fields_of(f"{path}: test_presets.{name}"):
                test = _preset(path.stem, name, {**(default or {}), **own})
            yield test


def _preset(engine: str, name: str, settings: Mapping[str, Any]) -> Test:
    notes = [
        f"{key} = {settings[key]!r} is not known here" for key in settings if key not in _KNOWN
    ]

    def of(side: str, what: str) -> str:
        return str(settings.get(f"{side}_{what}") or settings.get(f"both_{what}") or "")

    arguments = [
        *_clocks(of("dev", "time_control"), of("base", "time_control")),
        *_options(of("dev", "options"), of("base", "options")),
        *_rules(settings),
        *_end(settings, notes),
    ]
    for side in ("dev", "base"):
        if network := of(side, "network"):
            notes.append(f"network {network} of {side}: put it into the recipe's `files`")
        if (bench := of(side, "bench")).isdecimal():
            arguments += ["--bench" if side == "dev" else "--bench-against", bench]
    arguments += _shares(settings.get("priority"), settings.get("throughput"))
    _without_effect(settings, notes)
    tested, against = of("dev", "branch"), of("base", "branch")
    book = str(settings.get("book_name") or "")
    return Test(f"{engine} {name}", engine, tested, against, book, tuple(arguments), tuple(notes))


def _clocks(own: str, theirs: str) -> list[str]:
    arguments = []
    if own:
        arguments += ["--tc", _clock(own)]
    if theirs and theirs != own:
        arguments += ["--tc-against", _clock(theirs)]
    return arguments


def _clock(text: str) -> str:
    """Return a time control in this farm's words: N=, D= and MT= are OpenBench's."""
    matched = re.fullmatch(r"(N|D|MT)=(\d+)", text.strip().upper())
    if not matched:
        return text.strip()
    kind, value = matched.groups()
    return {"N": f"nodes={value}", "D": f"depth={value}", "MT": f"{int(value) / 1000:g}/move"}[kind]


def _options(own: str, theirs: str) -> list[str]:
    pairs = (("--options", own), ("--options-against", theirs))
    return [word for option, text in pairs if text.strip() for word in (option, text.strip())]


def _rules(settings: Mapping[str, Any]) -> list[str]:
    arguments = []
    for option, key in (("--draw", "draw_adj"), ("--resign", "win_adj")):
        text = str(settings.get(key) or "None")
        if text != "None":
            arguments += [option, ",".join(text.split())]
    return arguments


def _end(settings: Mapping[str, Any], notes: list[str]) -> list[str]:
    """Return how a test ends: by its bounds, or after its games."""
    if settings.get("test_max_games"):
        return ["--games", str(int(_number(settings, "test_max_games")))]
    try:
        elo0, elo1 = _numbers(settings.get("test_bounds"))
        alpha, beta = _numbers(settings.get("test_confidence") or "[0.05, 0.05]")
    except ValueError:
        notes.append("it has neither bounds nor a number of games: add --sprt or --games")
        return []
    return _sprt(elo0, elo1, alpha, beta)


def _sprt(
    elo0: float, elo1: float, alpha: float, beta: float, *, games: int = _UNBOUNDED
) -> list[str]:
    numbers = (f"elo0={elo0:g}", f"elo1={elo1:g}", f"alpha={alpha:g}", f"beta={beta:g}")
    return ["--games", str(games), "--sprt", *numbers]


def _numbers(text: object) -> tuple[float, float]:
    first, second = re.findall(r"-?\d+(?:\.\d+)?", str(text))
    return float(first), float(second)


def _shares(priority: object, throughput: object) -> list[str]:
    arguments = []
    for option, settings in (("--priority", priority), ("--share", throughput)):
        if str(settings or "").lstrip("-").split(".")[0].isdecimal() and round(
            float(str(settings))
        ):
            arguments += [option, str(round(float(str(settings))))]
    return arguments


def _without_effect(settings: Mapping[str, Any], notes: list[str]) -> None:
    syzygy = str(settings.get("syzygy_adj") or settings.get("syzygy_wdl") or "")
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
        tunings = {row["id"]: _tuning(link, row["id"]) for row in rows if row["test_mode"] == TUNES}
        link.close()
    except sqlite3.Error as error:
        raise errors.UsageError(f"{database}: no database of OpenBench: {error}") from error
    for row in rows:
        with _fields_of(f"{database}: test {row['id']}"):
            test = _open(row, tunings.get(row["id"], ()))
        yield test


def _tuning(link: sqlite3.Connection, test: int) -> tuple[str, ...]:
    """Return the words of a test that tunes; none where its database is of another version."""
    try:
        run = link.execute("SELECT * FROM OpenBench_spsarun WHERE tune_id = ?", (test,)).fetchone()
        listed = (
            []
            if run is None
            else link.execute(
                'SELECT * FROM OpenBench_spsaparameter WHERE spsa_run_id = ? ORDER BY "index"',
                (run["id"],),
            ).fetchall()
        )
        words = []
        keys = ("start", "min_value", "max_value", "c_end", "r_end")
        for parameter in listed:
            kind = "float" if parameter["is_float"] else "int"
            numbers = (f"{parameter[key]:g}" for key in keys)
            words += ["--parameter", ",".join((parameter["name"], kind, *numbers))]
        if words:
            words += ["--iterations", str(run["iterations"]), "--pairs", str(run["pairs_per"])]
            words += [f"--a-ratio={run['a_ratio']:g}", f"--alpha={run['alpha']:g}"]
            words += [f"--gamma={run['gamma']:g}"]
    except (sqlite3.OperationalError, IndexError):
        return ()
    return tuple(words)


def _open(row: Mapping[str, Any], tuning: Sequence[str]) -> Test:
    arguments, notes = [], [f"{row['dev_name']} against {row['base_name']}, by {row['author']}"]
    mode = row["test_mode"]
    side = "dev" if tuning else "base"
    arguments += _clocks(row["dev_time_control"], row[f"{side}_time_control"])
    arguments += _options(row["dev_options"], "" if tuning else row["base_options"])
    arguments += _rules(row)
    if mode == "SPRT":
        arguments += _sprt(*(_number(row, key) for key in ("elolower", "eloupper", *ERRORS)))
    elif mode == "GAMES":
        arguments += ["--games", str(row["max_games"])]
    elif tuning:
        arguments += tuning
    else:
        notes.append(f"its mode is {mode}, which is no test match: it is not run")
    for option, bench in (("--bench", "dev_bench"), ("--bench-against", "base_bench")):
        if row[bench] and (not tuning or option == "--bench"):
            arguments += [option, str(row[bench])]
    arguments += _shares(row["priority"], row["throughput"])
    if row.get("scale_nps"):
        arguments += ["--scale-nps", str(row["scale_nps"])]
    nets = {side: row.get(f"{side}_netname") for side in ("dev", "base")}
    notes += [f"network {net} of {side}: put it into `files`" for side, net in nets.items() if net]
    _without_effect(row, notes)
    return Test(
        f"open {row['id']}",
        row["dev_engine"],
        f"{row['dev_repo']}#{row['dev_sha']}",
        f"{row['base_repo']}#{row['base_sha']}",
        row["book_name"],
        tuple(arguments) if mode in ("SPRT", "GAMES") or tuning else (),
        tuple(notes),
        "tune" if tuning else "test",
    )


# -- fishtest --------------------------------------------------------------------------------


def fishtest(path: pathlib.Path) -> tuple[Engine, Test]:
    """Read a run as ``/api/get_run/ID`` gives it; raise ``UsageError``."""
    with _fields_of(str(path)):
        return _run(path, read(path))


def _run(path: pathlib.Path, run: Mapping[str, Any]) -> tuple[Engine, Test]:
    settings = run.get("args")
    wanted = ("new_tag", "base_tag", "resolved_new", "resolved_base", "tests_repo", "tc")
    if not isinstance(settings, dict) or not all(
        isinstance(settings.get(item), str) for item in wanted
    ):
        raise errors.UsageError(f"{path}: no run of fishtest: it has no args with {wanted[0]}")
    tuning = settings.get("spsa")
    nets = [*settings.get("new_nets", ()), *settings.get("base_nets", ())]
    recipe = {
        "name": "Stockfish",
        "repository": settings["tests_repo"],
        "make": "make -C src -j build ARCH=native COMP=gcc",
        "program": "src/stockfish",
        "toolchain": ["make", "g++"],
        "seconds": 1_800,
        "memory_mb": 8_192,
        "files": {f"src/{net}": f"../nets/{net}" for net in dict.fromkeys(map(str, nets))},
    }
    several = settings.get("threads") and _number(settings, "threads") > 1
    threads = f" Threads={settings['threads']}" if several else ""
    own, theirs = (
        f"{settings.get(item) or ''}{threads}" for item in ("new_options", "base_options")
    )
    base_control = settings["tc"] if tuning is None else ""
    arguments = [
        *_clocks(str(settings.get("new_tc") or settings["tc"]), base_control),
        *_options(own, theirs if tuning is None else ""),
        *(FISHTEST_RULES if settings.get("adjudication", True) else ()),
    ]
    tested = settings.get("sprt")
    if isinstance(tested, dict):
        most = int(_number(settings, "num_games")) if settings.get("num_games") else _UNBOUNDED
        figures = [_number(tested, key) for key in ("elo0", "elo1", *ERRORS)]
        arguments += _sprt(*figures, games=most)
        if tested.get("elo_model", "normalized") != "normalized":
            arguments.append(f"model={tested['elo_model']}")
    elif tuning is None:
        arguments += ["--games", str(int(_number(settings, "num_games")))]
    else:
        arguments += _classic(tuning, int(_number(settings, "num_games")))
    benches = (("--bench", "new_signature"), ("--bench-against", "base_signature"))
    for option, key in benches if tuning is None else benches[:1]:
        if str(settings.get(key) or "").isdecimal():
            arguments += [option, str(settings[key])]
    arguments += _shares(settings.get("priority"), 0)
    base = settings.get("master_repo") or settings["tests_repo"]
    author = settings.get("username", "somebody")
    notes = [f"{settings['new_tag']} against {settings['base_tag']}, by {author}"]
    if str(settings.get("book_depth") or "0").isdecimal() and str(settings.get("book")).endswith(
        ".pgn"
    ):
        arguments += ["--plies", str(settings["book_depth"])]
    if nets:
        notes.append(f"put {' '.join(dict.fromkeys(map(str, nets)))} into the folder nets")
    name = str(run.get("_id") or path.stem)
    test = Test(
        f"fishtest {name}",
        "Stockfish",
        f"{settings['tests_repo']}#{settings['resolved_new']}",
        f"{base}#{settings['resolved_base']}",
        str(settings.get("book") or ""),
        tuple(arguments),
        tuple(notes),
        "test" if tuning is None else "tune",
    )
    return Engine("Stockfish", recipe), test


def _classic(tuning: Mapping[str, Any], games: int) -> list[str]:
    """Return the words of fishtest's classic SPSA; A is told in iterations there."""
    if tuning.get("algorithm", "classic") != "classic":
        raise ValueError(f"spsa.algorithm: found {tuning['algorithm']!r}; known: 'classic'")
    iterations = max(1, games // 2)
    listed = spsa.parameters(str(tuning["raw_params"]), "spsa.raw_params")
    words = []
    for parameter in listed:
        least, most = parameter.least, parameter.most
        values = (parameter.start, least, most, parameter.c_end, parameter.r_end)
        numbers = (f"{value:g}" for value in values)
        words += ["--parameter", ",".join((parameter.name, "int", *numbers))]
    words += ["--iterations", str(iterations), f"--a-ratio={_number(tuning, 'A') / iterations:g}"]
    return words + [f"--{key}={_number(tuning, key):g}" for key in ("alpha", "gamma")]


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
