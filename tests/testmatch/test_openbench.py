"""Settings of OpenBench and fishtest, as scripts that the farm's own command takes."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import sqlite3
import subprocess
import tomllib

import harness
import pytest

from orchestrator.commands import test as test_command
from orchestrator.commands import tune as tune_command
from orchestrator.common import errors
from orchestrator.engines import sources
from orchestrator.testmatch import openbench

BOOK = b"rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq -\r\n"
SHA = hashlib.sha256(BOOK.replace(b"\r\n", b"\n")).hexdigest()
DEFAULT = {
    "base_branch": "main",
    "book_name": "frc'.epd",
    "test_bounds": "[-3.00, 1.00]",
    "test_confidence": "[0.1, 0.05]",
    "win_adj": "movecount=3 score=400",
    "draw_adj": "None",
}
PRESETS = {
    "default": DEFAULT,
    "STC": {"both_options": "Threads=1 Hash=8", "both_time_control": "8.0+0.08"},
    "odds": {
        "dev_options": "Hash=8",
        "base_options": "Hash=16",
        "dev_time_control": "MT=250",
        "base_time_control": "N=20000",
        "test_max_games": 400,
        "syzygy_adj": "6-MAN",
        "surprise": "new\nrm -rf /",
    },
}
TEST = {
    "id": 7,
    "author": "anna",
    "dev_id": 1,
    "base_id": 2,
    "finished": 0,
    "deleted": 0,
    "dev_repo": "https://example.org/tiny",
    "base_repo": "https://example.org/tiny",
    "dev_engine": "Tiny",
    "dev_options": "Hash=8",
    "base_options": "Hash=8",
    "dev_time_control": "8+0.08",
    "base_time_control": "8+0.08",
    "book_name": "none",
    "win_adj": "None",
    "draw_adj": "None",
    "syzygy_adj": "OPTIONAL",
    "syzygy_wdl": "OPTIONAL",
    "test_mode": "SPRT",
    "elolower": 0.0,
    "eloupper": 3.0,
    "alpha": 0.05,
    "beta": 0.05,
    "max_games": 0,
    "priority": 2,
    "throughput": 500,
    "scale_nps": 750000,
    "dev_netname": "net-1",
    "base_netname": "",
}


@pytest.fixture
def instance(tmp_path: pathlib.Path) -> pathlib.Path:
    """Make an instance of one engine, one book and two tests, one of them finished."""
    home = tmp_path / "OpenBench"
    (home / "Engines").mkdir(parents=True)
    (home / "Books").mkdir()
    build = {"path": "src", "compilers": ["clang++>=15", "g++"], "cpuflags": ["AVX2"]}
    engine = {"private": True, "nps": 750000, "source": "https://example.org/tiny", "build": build}
    told = json.dumps({**engine, "test_presets": PRESETS})
    (home / "Engines" / "Tiny.json").write_text(told)
    book = json.dumps({"sha": SHA, "source": "https://example.org/$(id).zip"})
    (home / "Books" / "frc'.epd.json").write_text(book)
    with sqlite3.connect(home / "db.sqlite3") as database:
        database.execute("CREATE TABLE OpenBench_engine (id, name, sha, bench)")
        for number in (1, 2):
            row = (number, f"branch {number}", str(number) * 40, 100 + number)
            database.execute("INSERT INTO OpenBench_engine VALUES (?, ?, ?, ?)", row)
        database.execute(f"CREATE TABLE OpenBench_test ({', '.join(TEST)})")
        run = "id, tune_id, iterations, pairs_per, a_ratio, alpha, gamma"
        database.execute(f"CREATE TABLE OpenBench_spsarun ({run})")
        database.execute("INSERT INTO OpenBench_spsarun VALUES (3, 9, 5000, 8, 0.1, 0.602, 0.101)")
        fields = 'spsa_run_id, "index", name, is_float, start, min_value, max_value, c_end, r_end'
        database.execute(f"CREATE TABLE OpenBench_spsaparameter ({fields})")
        for row in ((3, 1, "B", 1, 0.5, 0, 1, 0.1, 0.002), (3, 0, "A x", 0, 9, 1, 20, 2, 0.002)):
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO OpenBench_spsaparameter VALUES ({marks})", row)
        tests = ({}, {"id": 8, "finished": 1}, {"id": 9, "test_mode": "SPSA"})
        for more in (*tests, {"id": 10, "test_mode": "DATAGEN"}):
            values = tuple({**TEST, **more}.values())
            marks = ", ".join("?" * len(values))
            database.execute(f"INSERT INTO OpenBench_test VALUES ({marks})", values)
    database.close()
    return home


def _script_arguments(script: pathlib.Path, *words: str, verb: str = "test") -> list[str]:
    """Run a script with a `farm` that tells its words; let the real command read them."""
    tools = script.parent / "tools"
    tools.mkdir(exist_ok=True)
    (tools / "farm").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tools / "farm").chmod(0o755)
    done = subprocess.run(
        [script, *words],
        env={"PATH": f"{tools}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    told = done.stdout.splitlines()
    assert told[:2] == ["match", verb]
    command = {"test": test_command.test, "tune": tune_command.tune}[verb]
    with command.make_context(verb, told[2:]):
        return told[2:]


def test_an_instance_of_openbench_moves_in(instance: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """Recipes are read, books held to their checksum, scripts give words that the command takes."""
    books = tmp_path / "books"
    books.mkdir()
    (books / "frc'.epd").write_bytes(BOOK)
    out = tmp_path / "moved"
    said = harness.farm(
        *("match", "import-openbench", str(instance), "--out", str(out), "--books", str(books))
    )
    assert "1 engines, 1 books, 2 presets, 3 open tests" in said
    recipe = sources.Recipe.read(out / "engines" / "Tiny.toml")
    assert recipe.make == "make -C src -j EXE=openbench-engine CXX=g++"
    assert (recipe.program, recipe.nps) == ("src/openbench-engine", 750000)
    assert (out / "books" / "frc'.epd").read_bytes() == BOOK
    subprocess.run(["sh", "-n", out / "books" / "fetch.sh"], check=True)
    words = _script_arguments(out / "tests" / "tiny-stc.sh", "lmr", "--remote")
    told = " ".join(words)
    assert told.startswith("lmr --against main --build ")
    assert "--variant fischerandom --tc 8.0+0.08 --options Threads=1 Hash=8" in told
    assert told.endswith("--sprt elo0=-3 elo1=1 alpha=0.1 beta=0.05 --remote")
    odds = " ".join(_script_arguments(out / "tests" / "tiny-odds.sh", "lmr", "other"))
    assert "lmr --against other" in odds
    assert "--tc 0.25/move --tc-against nodes=20000" in odds
    assert "--games 400" in odds
    comments = (out / "tests" / "tiny-odds.sh").read_text()
    assert "# surprise = 'new\\nrm -rf /' is not known here" in comments
    open_ = " ".join(_script_arguments(out / "tests" / "open-7.sh"))
    assert (
        f"https://example.org/tiny#{'1' * 40} --against https://example.org/tiny#{'2' * 40}"
        in open_
    )
    assert "--bench 101 --bench-against 102 --priority 2 --share 500 --scale-nps 750000" in open_
    tuned = " ".join(_script_arguments(out / "tests" / "open-9.sh", verb="tune"))
    assert tuned.startswith(f"https://example.org/tiny#{'1' * 40} --build ")
    assert "--parameter A x,int,9,1,20,2,0.002 --parameter B,float,0.5,0,1,0.1,0.002" in tuned
    assert "--iterations 5000 --pairs 8 --a-ratio=0.1 --alpha=0.602 --gamma=0.101" in tuned
    data = subprocess.run([out / "tests" / "open-10.sh"], capture_output=True, check=False)
    assert data.returncode == 2
    (books / "frc'.epd").write_bytes(BOOK + b"x")
    again = ("--out", str(out), "--books", str(books))
    assert "SHA-256" in harness.farm("match", "import-openbench", str(instance), *again, code=2)
    place = instance / "Engines" / "Tiny.json"
    with sqlite3.connect(instance / "db.sqlite3") as database:
        database.execute("ALTER TABLE OpenBench_test DROP COLUMN dev_time_control")
    database.close()
    with pytest.raises(errors.UsageError, match=r"db.sqlite3: test 7: it has no dev_time_control"):
        list(openbench.open_tests(instance / "db.sqlite3"))
    place.write_text(place.read_text().replace('"nps": 750000', '"nps": "x"'))
    with pytest.raises(errors.UsageError, match=r"Tiny.json: nps: found 'x'; allowed: a number"):
        openbench.engine(place)


def test_a_run_of_fishtest_moves_in(tmp_path: pathlib.Path) -> None:
    """Both commits, their benches, threads and networks; fishtest's own adjudication."""
    args = {
        "new_tag": "lmr",
        "base_tag": "master",
        "resolved_new": "1" * 40,
        "threads": 4,
        "resolved_base": "2" * 40,
        "tests_repo": "https://example.org/sf",
        "tc": "10+0.1",
        "new_tc": "5+0.05",
        "num_games": 800,
        "book": "8moves.pgn",
        "book_depth": "8",
        "new_options": "Hash=64",
        "base_options": "Hash=64",
        "new_nets": ["nn-1.nnue"],
        "new_signature": "123",
        "base_signature": "124",
        "base_nets": ["nn-2.nnue"],
        "sprt": {"alpha": 0.05, "beta": 0.05, "elo0": 0, "elo1": 2, "elo_model": "normalized"},
    }
    run = tmp_path / "run.json"
    run.write_text(json.dumps({"_id": "abc", "args": args}))
    out = tmp_path / "moved"
    harness.farm("match", "import-fishtest", str(run), "--out", str(out))
    told = " ".join(_script_arguments(out / "tests" / "fishtest-abc.sh"))
    assert f"https://example.org/sf#{'1' * 40}" in told
    assert "--tc 5+0.05 --tc-against 10+0.1 --options Hash=64 Threads=4" in told
    assert "--draw movenumber=34,movecount=8,score=20 --resign movecount=3,score=600" in told
    assert "--games 800 --sprt elo0=0 elo1=2" in told
    assert "--bench 123 --bench-against 124 --plies 8" in told
    recipe = tomllib.loads((out / "engines" / "Stockfish.toml").read_text())
    assert set(recipe["files"]) == {"src/nn-1.nnue", "src/nn-2.nnue"}
    spsa = {"A": 40, "alpha": 0.602, "gamma": 0.101, "raw_params": "Razor,300,100,600,20,0.002\n"}
    tuned = {key: value for key, value in args.items() if key != "sprt"} | {"spsa": spsa}
    run.write_text(json.dumps({"_id": "abc", "args": tuned}))
    harness.farm("match", "import-fishtest", str(run), "--out", str(out))
    told = " ".join(_script_arguments(out / "tests" / "fishtest-abc.sh", verb="tune"))
    assert "--against" not in told
    assert "--parameter Razor,int,300,100,600,20,0.002 --iterations 400 --a-ratio=0.1" in told
    for strange, why in (
        ({"sprt": None, "num_games": "many"}, "num_games: found 'many'"),
        ({"sprt": {"elo1": 2}}, "it has no elo0"),
        ({"threads": "x"}, "threads: found 'x'"),
        ({"new_nets": 3}, "run.json: "),
        ({"spsa": {**spsa, "algorithm": "sf-adam"}, "sprt": None}, "spsa.algorithm"),
        ({"spsa": {}, "sprt": None}, "it has no raw_params"),
        ({"spsa": {**spsa, "raw_params": "x"}, "sprt": None}, "spsa.raw_params: line 1"),
    ):
        run.write_text(json.dumps({"_id": "abc", "args": {**args, **strange}}))
        with pytest.raises(errors.UsageError, match=why):
            openbench.fishtest(run)
