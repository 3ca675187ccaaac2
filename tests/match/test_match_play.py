"""Matches played by the real command: results, files, resuming, signals, cores."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import chess
import chess.pgn
import harness
import pytest
import table

from orchestrator.common import errors
from worker_cpu.match import command, cores
from worker_cpu.referee import session

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "match.md"
MANY = ("-games", "2", "-repeat", "-pgnout", "g.pgn")


def pgn_games(path: pathlib.Path) -> Iterator[chess.pgn.Game]:
    """Yield the games of a PGN file; an error in one fails the test."""
    with path.open() as file:
        while game := chess.pgn.read_game(file):
            assert not game.errors
            yield game


def finished(directory: pathlib.Path) -> int:
    """Return how many games the match has finished so far."""
    path = directory / "g.pgn.jsonl"
    return path.read_text().count('"kind":"game"') if path.exists() else 0


def end(process: subprocess.Popen[str]) -> str:
    """Wait for a match to end and return what it printed."""
    try:
        out, err = process.communicate(timeout=table.PATIENCE)
    finally:
        process.kill()
    return out + err


def test_a_match_of_two_tells_its_score_and_writes_a_clean_pgn(tmp_path: pathlib.Path) -> None:
    """Lines, table and files agree with the games that were played."""
    words = table.good_and_bad(*MANY, "-rounds", "2", "-event", "Test", "-site", "Here")
    out = table.play(tmp_path, *words, "-epdout", "e.epd").stdout
    assert "Finished game 1 (Good vs Bad): 1-0 {White mates}" in out
    assert "Score of Good vs Bad: 4 - 0 - 0  [1.000] 4" in out
    assert "...      Good playing Black: 2 - 0 - 0  [1.000] 2" in out
    assert "Ptnml(0-2): [0, 0, 0, 0, 2]" in out
    games = list(pgn_games(tmp_path / "g.pgn"))
    assert [game.headers["Round"] for game in games] == ["1", "1", "2", "2"]
    assert {game.headers["Event"] for game in games} == {"Test"}
    assert {game.headers["Site"] for game in games} == {"Here"}
    assert games[0].headers["ECO"] == "C23"
    assert len((tmp_path / "e.epd").read_text().splitlines()) == 4
    assert not table.survivors(tmp_path)


def test_one_pair_is_told_without_elo_and_los(tmp_path: pathlib.Path) -> None:
    """A dash stands in line and table, as where a list has too few games; words agree in number."""
    out = table.play(tmp_path, *table.good_and_bad(*MANY, "-rounds", "1")).stdout
    assert "2 games, from the start position, 1 at a time" in out
    assert "Elo difference: - +/- -, LOS: -, DrawRatio: 0.0 %" in out
    assert "nElo: - +/- -, Ptnml(0-2): [0, 0, 0, 0, 1]" in out
    assert re.search(r"^ +1 Good +- +- +2 .* - +\[0, 0, 0, 0, 1\]$", out, re.MULTILINE)
    assert "inf" not in out


def test_games_that_are_in_no_pair_count_and_are_told(tmp_path: pathlib.Path) -> None:
    """-games 3 -repeat 3 leaves a third of the games without a pair: none is dropped."""
    words = ("-games", "3", "-repeat", "3", "-rounds", "1")
    process = table.play(tmp_path, *table.good_and_bad(*words, "--json"))
    assert "1 of 3 games belong to no pair" in process.stderr
    (counts,) = json.loads(process.stdout)["matches"]
    assert (counts["games"], counts["pentanomial"]) == (3, [0, 0, 0, 0, 1])


@pytest.mark.parametrize("used", ["self.cores", "0.0"], ids=["busy", "quiet"])
@pytest.mark.parametrize("figures", ["none", "waited", "slept", "computed", "hung"])
def test_a_loss_on_time_says_that_other_programs_used_the_cores(
    tmp_path: pathlib.Path, used: str, figures: str
) -> None:
    """The fault and its line of the journal name the load; else nothing.

    A note stands once, but where the engine's own figures say that it was late by itself.
    """
    core_time = {
        "none": "computed an unknown time",
        "waited": "computed 5.0 ms of these, waited 900.0 ms for a core in the whole game",
        "slept": "computed 5.0 ms of these, waited 1.0 ms for a core in the whole game",
        "computed": "computed 900.0 ms of these",  # a thread has ended
        "hung": "computed 5.0 ms of these",
    }[figures]
    measured = (
        "from orchestrator.common import processor; from worker_cpu.engines import local;"
        " processor.Others.look = lambda self, at_once=False:"
        f" setattr(self, 'used', float({used}) if at_once else None);"
        f" local.CoreTime.spoken = lambda self: {core_time!r}; "
    )
    late = table.scripted("Late", "--fault", f"late:{1500 if figures == 'hung' else 300}")
    engines = [*late, *table.scripted("Good"), "-each", "tc=0.2+0"]
    words = ("-games", "2", "-repeat", "-pgnout", "g.pgn", "-use-affinity", "4095")
    out = table.play(tmp_path, *engines, *words, first=measured).stdout
    assert out.count("loses on time") == 2
    said = len(re.findall(r"Note: other programs use .*: losses on time may come from them", out))
    faults = re.findall(r"Fault in game \d: Late: [\d.]+ ms of [\d.]+ ms; computed (.*)", out)
    notes = [game["note"] for game in table.games(tmp_path / "g.pgn.jsonl")]
    busy = used != "0.0"
    assert said == int(busy and figures in ("none", "waited"))
    assert not said or out.index("Note: other programs") > out.index("Fault in game"), "its loss"
    assert len(faults) == 2
    assert all(("; other programs use" in fault) == busy for fault in faults)
    assert all(("other programs" in note) == busy for note in notes)


@pytest.mark.parametrize("slept", [True, False], ids=["slept", "computed"])
def test_a_loss_on_time_says_what_the_engine_computed_of_it(
    tmp_path: pathlib.Path, slept: bool
) -> None:
    """Who slept its time away computed nothing and waited for no core; who thought computed."""
    faults = ("--fault", "late:400") if slept else ("--burn-ms", "400")
    engines = [*table.scripted("Late", *faults), *table.scripted("Good"), "-each", "tc=0.2+0"]
    table.play(tmp_path, *engines, "-journal", "j.jsonl")
    (game,) = table.games(tmp_path / "j.jsonl")
    words = r"[\d.]+ ms of [\d.]+ ms; computed ([\d.]+) ms of these, waited [\d.]+ ms for a core.*"
    told = re.fullmatch(words, game["note"])
    assert told, game["note"]
    computed_ms = float(told[1])
    assert computed_ms < 200 if slept else computed_ms >= 390


def test_nothing_is_said_of_the_cores_of_an_engine_behind_a_script(tmp_path: pathlib.Path) -> None:
    """What a script's process has computed is not what its child has."""
    late = [sys.executable, str(table.ENGINES / "scripted.py"), "--fault", "late:400"]
    (tmp_path / "late").write_text(f"#!/bin/sh\n{shlex.join(late)}\nexit 0\n")
    (tmp_path / "late").chmod(0o755)
    engines = ["-engine", "cmd=./late", *table.scripted("Good"), "-each", "tc=0.2+0"]
    table.play(tmp_path, *engines, "-journal", "j.jsonl")
    (game,) = table.games(tmp_path / "j.jsonl")
    assert re.fullmatch(r"[\d.]+ ms of [\d.]+ ms(; other programs.*)?", game["note"])


LAST_WORDS = """
import os, sys
for line in sys.stdin:
    word = (line.split() or [""])[0]
    if word == WHEN:
        sys.stdout.write("info string no \\x1b[31mnets\\n")
        sys.stdout.flush()
        sys.stderr.write(SAID)
        sys.stderr.flush()
        os.abort()
    print({"uci": "uciok", "isready": "readyok"}.get(word, ""), flush=True)
"""


@pytest.mark.parametrize("when", ["uci", "isready", "go"])
@pytest.mark.parametrize("log", [(), ("-log", "file=log.txt")], ids=["", "log"])
def test_a_crash_is_told_with_the_engines_last_line(
    tmp_path: pathlib.Path, when: str, log: tuple[str, ...]
) -> None:
    """The line is of stderr, else of stdout; printable, not longer than a line may be."""
    engines = []
    for name, said in {
        "Err": "x\nassert failed: nlines\n" + "\n",
        "Out": "",
        "Long": "y" * 9999,
    }.items():
        script = tmp_path / f"{name}.py"
        script.write_text(LAST_WORDS.replace("WHEN", repr(when)).replace("SAID", repr(said)))
        engines += ["-engine", f"cmd={sys.executable}", f"arg={script}", f"name={name}"]
    field = [*table.scripted("Good"), *engines, "-tournament", "gauntlet", "-each", "tc=10"]
    out = table.play(tmp_path, *field, *log, "-journal", "j.jsonl").stdout
    faults = dict(re.findall(r"Fault in game \d: (\w+): (signal SIGABRT.*)", out))
    assert faults["Err"].endswith("; its last line: assert failed: nlines")
    assert faults["Out"].endswith("; its last line: info string no [31mnets")
    assert faults["Long"].endswith("; its last line: " + "y" * 120)
    notes = {game["note"] for game in table.games(tmp_path / "j.jsonl")}
    assert notes == set(faults.values())


@pytest.mark.parametrize("dialect", ["fastchess", "cutechess"])
@pytest.mark.parametrize("fault", ["crash@3", "illegal:a1a8@3", "late:400"])
def test_another_programs_dialect_tells_faults_beside_its_lines(
    tmp_path: pathlib.Path, dialect: str, fault: str
) -> None:
    """What the farm's own lines say of a fault stands on stderr; stdout is the other program's."""
    engines = [*table.scripted("Bad", "--fault", fault), *table.scripted("Good")]
    control = "tc=0.2+0" if fault.startswith("late") else "tc=10"
    words = (*engines, "-each", control, "-dialect", dialect, "-journal", "j.jsonl")
    words = (*words, "-games", "1", "-rounds", "1")
    code = int(dialect == "fastchess" and fault.startswith("crash"))
    played = table.play(tmp_path, *words, code=code)
    (game,) = table.games(tmp_path / "j.jsonl")
    told = game["note"]
    if fault.startswith("illegal"):
        told = f"illegal move {told} in {game['position']}"
    assert played.stderr.count(f"Fault in game 1: Bad: {told}\n") == 1
    assert "Fault in" not in played.stdout


def test_an_illegal_move_is_told_with_its_position(tmp_path: pathlib.Path) -> None:
    """Its line says what was wrong and where; the journal has the position, too."""
    words = [*table.scripted("Bad", "--fault", "illegal:a1a8@3"), *table.scripted("Good")]
    out = table.play(tmp_path, *words, "-each", "tc=10", "-journal", "j.jsonl").stdout
    (game,) = table.games(tmp_path / "j.jsonl")
    board = chess.Board(game["position"])
    assert (board.turn, board.fullmove_number) == (chess.WHITE, game["plies"] // 2 + 1)
    assert f"Fault in game 1: Bad: illegal move {game['note']} in {board.fen()}" in out
    assert re.search(r"^Bad lost \d by an illegal move or claim$", out, re.MULTILINE)


def test_json_has_every_number(tmp_path: pathlib.Path) -> None:
    """--json prints one object with standings, encounters and where the files are."""
    found = table.run_json(tmp_path, *table.good_and_bad(*MANY, "-srand", "5"))
    assert (found["complete"], found["games"], found["played"], found["seed"]) == (True, 2, 2, 5)
    assert [engine["name"] for engine in found["engines"]] == ["Good", "Bad"]
    assert found["matches"][0]["pentanomial"] == [0, 0, 0, 0, 1]
    assert (found["matches"][0]["elo"], found["matches"][0]["los"]) == (None, None)


def test_a_minimal_pgn_has_no_comments(tmp_path: pathlib.Path) -> None:
    """-pgnout FILE min keeps tags and moves alone."""
    table.play(tmp_path, *table.good_and_bad("-pgnout", "g.pgn", "min"))
    assert "{" not in (tmp_path / "g.pgn").read_text()
    assert len(list(pgn_games(tmp_path / "g.pgn"))) == 1


def test_moves_in_uci_notation(tmp_path: pathlib.Path) -> None:
    """-pgnout notation=uci writes moves as engines do, as fastchess does."""
    words = ("-pgnout", "file=g.pgn", "notation=uci", "min=true")
    table.play(tmp_path, *table.good_and_bad(*words))
    assert "1. e2e4 e7e5 2. f1c4 b8c6 3. d1h5 g8f6 4. h5f7 1-0" in (tmp_path / "g.pgn").read_text()


def test_an_option_that_an_engine_does_not_have_is_told_once(tmp_path: pathlib.Path) -> None:
    """A misspelt option is no silent default: the match goes on, and says what was not set."""
    words = table.good_and_bad(*MANY, "-rounds", "2")
    out = table.play(tmp_path, *words, "-each", "option.Threds=2").stdout
    for name in ("Good", "Bad"):
        note = f"Note: {name}: option Threds=2: engine has no such option"
        assert out.count(note) == 1


def test_tables_and_cpus_that_are_not_there_are_told(tmp_path: pathlib.Path) -> None:
    """A misspelt directory or a CPU of another machine changes no match in silence."""
    words = table.good_and_bad("-tb", "nowhere", "-use-affinity", "4095")
    out = table.play(tmp_path, *words).stdout
    assert out.count("Note: -tb: no tablebases in nowhere") == 1
    assert out.count("Note: -use-affinity: 4095 cannot be used on this machine") == 1


def test_a_full_disk_ends_the_match_in_a_sentence(tmp_path: pathlib.Path) -> None:
    """Exit code 5 and what to mend, no traceback; no engine is left."""
    (tmp_path / "full").symlink_to("/dev/full")
    err = table.play(tmp_path, *table.good_and_bad("-journal", "full"), code=5).stderr
    assert "No space left on device" in err
    assert "Traceback" not in err
    assert not table.survivors(tmp_path)


def test_engines_get_the_environment_of_the_caller(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with other match runners; nothing of the farm's own is in it."""
    monkeypatch.setenv("NETWORK_DIRECTORY", "/nets")
    monkeypatch.setenv("FARM_REDIS_URL", "unix:///of/the/farm")
    program = tmp_path / "shown"
    program.write_text("#!/bin/sh\nenv > shown.txt\n")
    program.chmod(0o755)
    table.play(tmp_path, *table.mating("good", "Good"), "-engine", "cmd=./shown", "-each", "tc=5")
    shown = (tmp_path / "shown.txt").read_text()
    assert "NETWORK_DIRECTORY=/nets" in shown
    assert "FARM_REDIS_URL" not in shown


def test_strict_tells_faults_by_the_exit_code(tmp_path: pathlib.Path) -> None:
    """An engine that loses by a fault, or an option that is not taken, makes it 1."""
    words = [*table.mating("good", "Good"), "-engine", "cmd=false", "-each", "tc=5", "-strict"]
    table.play(tmp_path, *words, code=1)
    table.play(tmp_path, *table.good_and_bad("-strict"))


def test_a_misspelt_program_ends_the_match_before_its_first_game(tmp_path: pathlib.Path) -> None:
    """Exit code 2 and a sentence; no game, journal or PGN is begun."""
    engines = [*table.mating("good", "Good"), "-engine", "cmd=./missing", "-each", "tc=5"]
    err = table.play(tmp_path, *engines, *MANY, code=2).stderr
    assert f"no file {tmp_path}/missing" in err
    assert {path.name for path in tmp_path.iterdir()} == {table.LOCKS, table.SCRATCH}
    assert not list((tmp_path / table.SCRATCH).iterdir())


def test_an_engine_that_cannot_start_loses_its_games(tmp_path: pathlib.Path) -> None:
    """A program that exits and one that never answers end no match."""
    engines = [*table.mating("good", "Good"), "-engine", "cmd=false"]
    words = [*engines, "-each", "tc=5", "-startup-ms", "2000", "-tournament", "gauntlet"]
    found = table.run_json(tmp_path, *words, "-games", "2", "-engine", "cmd=sleep", "arg=60")
    assert (found["complete"], found["played"]) == (True, 4)
    best = found["engines"][0]
    assert (best["name"], best["points"]) == ("Good", 4)
    faults = {engine["name"]: engine["faults"] for engine in found["engines"]}
    assert faults["false"]["disconnect"] == 2
    assert faults["sleep"]["stall"] == 2
    assert not table.survivors(tmp_path)


@pytest.mark.parametrize(
    ("words", "code", "played"),
    [
        (["-dialect", "fastchess"], 1, 1),
        (["-dialect", "cutechess"], 0, 1),
        (["-dialect", "fastchess", "-recover"], 0, 2),
        ([], 0, 2),
    ],
)
def test_a_crash_ends_the_match_of_a_dialect_without_recover(
    tmp_path: pathlib.Path, words: list[str], code: int, played: int
) -> None:
    """As there: CI jobs tell by the exit code, and by the lines, whether an engine crashed."""
    engines = [*table.mating("good", "Good"), "-engine", "cmd=false", "name=Bad", "-each", "tc=5"]
    said = table.play(tmp_path, *engines, *words, "-rounds", "1", "-games", "2", code=code)
    assert len(table.games(tmp_path / "farm-match.jsonl")) == played
    ended = "no recover option set" in said.stdout
    assert ended == (code == 1)
    assert ("farm match -resume" in said.stdout + said.stderr) == (played == 1)


@pytest.mark.parametrize(
    ("dialect", "limit", "late"),
    [
        ("cutechess", "Draw by adjudication: maximal game length", "White loses on time"),
        ("fastchess", "Draw by adjudication", r"White loses on time \([1-9]\d*ms overrun\)"),
    ],
)
def test_a_dialects_line_and_comment_tell_an_end_alike(
    tmp_path: pathlib.Path, dialect: str, limit: str, late: str
) -> None:
    """A game at its most moves and a loss on time, by the words of the program; tags are TCEC's."""
    engines = [
        *(*table.scripted("A"), "tc=60"),
        *(*table.scripted("B"), "tc=60"),
        *(*table.scripted("Late", "--fault", "late:1300@5"), "tc=1"),
    ]
    words = ("-tournament", "round-robin", "-games", "2", "-rounds", "1", "-maxmoves", "4")
    words = ("-dialect", dialect, "-recover", *words, "-pgnout", "g.pgn")
    out = table.play(tmp_path, *engines, *words).stdout
    line = re.compile(r"^Finished game \d+ \((\S+) vs (\S+)\): \S+ \{(.*)\}$", re.MULTILINE)
    printed = {(white, black): why for white, black, why in line.findall(out)}
    commented, details = {}, {}
    for game in pgn_games(tmp_path / "g.pgn"):
        sides = game.headers["White"], game.headers["Black"]
        commented[sides] = game.end().comment.partition("s, ")[2]
        details[sides] = game.headers["TerminationDetails"]
    assert printed == commented
    assert re.fullmatch(limit, printed["A", "B"])
    assert re.fullmatch(late, printed["Late", "A"])
    assert details["A", "B"] == "TCEC max moves rule"
    assert details["Late", "A"] == "White loses on time"


def test_the_manuals_field_is_played_and_rated_around_an_anchor(tmp_path: pathlib.Path) -> None:
    """The two lines of docs/match.md: one list of a gauntlet's games, and it by the anchor."""
    gauntlet, rated = re.findall(r"^farm (match .*field\.pgn\b.*)$", DOCS.read_text(), re.MULTILINE)
    words = gauntlet.partition("-tournament")[2].split()
    engines = [word for name in ("new", "old", "rival") for word in table.scripted(name)]
    field = [*engines, "-each", "tc=10", "-tournament", *words, "-rounds", "1", "-maxmoves", "3"]
    found = table.run_json(tmp_path, *field)
    assert {engine["name"]: engine["rating"] for engine in found["engines"]} == {
        "new": pytest.approx(0),
        "old": pytest.approx(0),
        "rival": pytest.approx(0),
    }
    told = [*table.FARM, *shlex.split(rated, comments=True), "--json"]
    said = subprocess.run(told, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    ratings = {row["engine"]: row["rating"] for row in json.loads(said)["ratings"]}
    assert ratings == {name: pytest.approx(3200) for name in ("new", "old", "rival")}


def test_the_manuals_pause_is_kept_between_games(tmp_path: pathlib.Path) -> None:
    """The line of docs/match.md, one round of it: the next game begins so long after the first."""
    (line,) = re.findall(r"^farm match (.* -wait \d+)$", DOCS.read_text(), re.MULTILINE)
    words = line.replace("-engine cmd=new -engine cmd=old -each tc=8+0.08", "").split()
    table.play(tmp_path, *table.good_and_bad(*words, "-rounds", "1", "-concurrency", "1"))
    first, second = table.games(tmp_path / "farm-match.jsonl")
    assert second["started_ms"] - first["ended_ms"] >= int(words[-1])


def test_a_test_that_is_decided_stops_the_match(tmp_path: pathlib.Path) -> None:
    """-sprt ends the match early with exit code 0, and says which hypothesis holds."""
    words = table.good_and_bad(*MANY, "-rounds", "500", "-concurrency", "2")
    found = table.run_json(tmp_path, *words, "-sprt", "elo0=0", "elo1=100", "alpha=0.1", "beta=0.1")
    assert found["sprt"]["accepted"] == "H1"
    assert 0 < found["played"] < 500
    assert (found["complete"], found["reason"]) == (True, "the sequential test is decided")
    assert found["sprt"]["engine"] == found["matches"][0]["first"]
    again = table.run_json(tmp_path, "-resume", "-journal", found["journal"])
    assert (again["complete"], again["sprt"]["accepted"]) == (True, found["sprt"]["accepted"])
    assert found["reason"]


def test_pairs_share_openings_and_no_two_pairs_do(tmp_path: pathlib.Path) -> None:
    """Each pair has an opening of its own, played out in both of its games."""
    text = "".join(
        f'[Event "{at}"]\n\n1. {m} e5 *\n\n' for at, m in enumerate(("f4", "b3", "a3", "h3"))
    )
    (tmp_path / "book.pgn").write_text(text)
    engines = [*table.scripted("One"), *table.scripted("Two"), "-each", "tc=20+1"]
    words = [*engines, "-openings", "file=book.pgn", "order=random", "-srand", "3", "-rounds", "2"]
    table.play(tmp_path, *words, *MANY, "-maxmoves", "2")
    openings = [str(game.next().move) for game in pgn_games(tmp_path / "g.pgn") if game.next()]
    assert openings[0] == openings[1] != openings[2] == openings[3]


def test_chess960_is_played_from_numbered_positions(tmp_path: pathlib.Path) -> None:
    """-variant fischerandom plays the listed positions and writes them into the PGN."""
    engines = [*table.scripted("One"), *table.scripted("Two"), "-each", "tc=20+1"]
    positions = ["-openings", "format=frc", "positions=0", "-variant", "fischerandom"]
    table.play(tmp_path, *engines, *positions, "-maxmoves", "2", "-pgnout", "g.pgn")
    game = next(pgn_games(tmp_path / "g.pgn"))
    assert game.headers["Variant"] == "fischerandom"
    assert game.headers["FEN"].startswith("bbqnnrkr/")


# -- resuming ----------------------------------------------------------------------------


def test_a_killed_match_is_resumed_with_exactly_what_is_missing(tmp_path: pathlib.Path) -> None:
    """After kill -9 no engine is left, and resuming plays the missing games once each.

    What the killed one left among the temporary files goes with the next match.
    """
    words = [*table.mating("good", "Good"), *table.mating("bad", "Bad"), "-each", "tc=10"]
    process = table.start(tmp_path, *words, *MANY, "-rounds", "10", "-concurrency", "2")
    try:
        harness.wait(lambda: finished(tmp_path) >= 5, "five games")
    finally:
        process.send_signal(signal.SIGKILL)
        told = process.communicate(timeout=table.PATIENCE)[0]
    kept = {game["number"] for game in table.games(tmp_path / "g.pgn.jsonl")}
    assert {int(number) for number in re.findall(r"Finished game (\d+) ", told)} <= kept
    harness.wait(lambda: not table.survivors(tmp_path), "the end of every process")
    seed = json.loads((tmp_path / "g.pgn.jsonl").read_text().splitlines()[0])["seed"]
    scratches = list((tmp_path / table.SCRATCH).iterdir())
    assert scratches
    for left in scratches:
        os.utime(left, (0, 0))
    found = table.run_json(tmp_path, "-resume", "-pgnout", "g.pgn")
    assert not list((tmp_path / table.SCRATCH).iterdir())
    assert (found["complete"], found["played"], found["seed"]) == (True, 20, seed)
    assert found["matches"][0]["pentanomial"] == [0, 0, 0, 0, 10]
    numbers = [game["number"] for game in table.games(tmp_path / "g.pgn.jsonl")]
    assert sorted(numbers) == list(range(1, 21))
    rounds = [int(game.headers["Round"]) for game in pgn_games(tmp_path / "g.pgn")]
    assert sorted(rounds) == sorted([*range(1, 11)] * 2)


@pytest.mark.parametrize("dialect", ["fastchess", "cutechess"])
def test_a_resumed_match_counts_its_players_whole(tmp_path: pathlib.Path, dialect: str) -> None:
    """How games ended is counted as in a match that was never stopped: longer, then complete."""
    words = [*table.mating("good", "Good"), "-engine", "cmd=false", "name=Bad", "-each", "tc=5"]
    words += ["-dialect", dialect, "-recover", "-games", "2", "-repeat"]
    closing = {"fastchess": r"(?s)Player: .*Crashed: \d+", "cutechess": r"(?s)Player: .*\": \d+"}

    def counts(*more: str) -> str:
        told = re.search(closing[dialect], table.play(tmp_path, *words, *more).stdout)
        assert told
        return told[0]

    whole = counts("-rounds", "2", "-pgnout", "whole.pgn")
    counts("-rounds", "1", "-pgnout", "g.pgn")
    assert counts("-rounds", "2", "-pgnout", "g.pgn", "-resume") == whole
    assert counts("-rounds", "2", "-pgnout", "g.pgn", "-resume") == whole


def test_a_result_is_told_when_it_is_on_disk(tmp_path: pathlib.Path) -> None:
    """A journal that takes no more ends the match, and the game it lacks was not told."""
    words = table.good_and_bad("-srand", "1", "-event", "e" * 100_000)  # a long first line
    table.play(tmp_path, *words, "-journal", "whole.jsonl")
    first = (tmp_path / "whole.jsonl").read_bytes().index(b"\n") + 1
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({first}, {first}))"
    farm = [sys.executable, "-c", f"{limit}; {table.FARM[2]}", "match", *words]
    done = subprocess.run(
        [*farm, "-journal", "limit.jsonl"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "File too large" in done.stderr) == (5, True), done
    assert "Started game 1" in done.stdout
    assert "Finished game" not in done.stdout
    assert not table.survivors(tmp_path)


def test_a_finished_game_is_kept_when_the_next_cannot_begin(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that starts no third referee ends the match; the game before is in its files."""
    seat, left = session.seat, [1, 2]

    def scarce(*arguments: Any) -> session.Seated:
        if not left:
            raise errors.HostError("no referee can be started")
        left.pop()
        return seat(*arguments)

    monkeypatch.setattr(session, "seat", scarce)
    monkeypatch.setattr(cores, "LOCKS", ())
    monkeypatch.chdir(tmp_path)
    with pytest.raises(errors.HostError, match="no referee"):
        command.play(table.good_and_bad("restart=on", *MANY, "-rounds", "3"))
    assert [one["number"] for one in table.games(tmp_path / "g.pgn.jsonl")] == [1]
    assert len(list(pgn_games(tmp_path / "g.pgn"))) == 1


def test_a_match_can_be_made_longer(tmp_path: pathlib.Path) -> None:
    """Resuming with more rounds plays only the new games."""
    table.play(tmp_path, *table.good_and_bad(*MANY, "-rounds", "1"))
    found = table.run_json(tmp_path, *table.good_and_bad(*MANY, "-rounds", "2", "-resume"))
    assert (found["played"], len(table.games(tmp_path / "g.pgn.jsonl"))) == (4, 4)
    again = table.play(tmp_path, "-resume", "-pgnout", "g.pgn", "-rounds", "2", "--json")
    assert "more than once" not in again.stderr, "what is said again replaces the first"


@pytest.mark.parametrize("short", [False, True], ids=["whole", "short"])
def test_a_longer_match_goes_on_by_what_it_prints(tmp_path: pathlib.Path, short: bool) -> None:
    """What made a match longer need not be said again: stopped there, its journal knows.

    The journal says the length to whoever shows the match, too; how one run is shown is not kept.
    """
    words = [*table.mating("good", "Good"), *table.mating("bad", "Bad"), "-each", "tc=10"]
    path = tmp_path / "g.pgn.jsonl"
    table.play(tmp_path, *words, *MANY, "-rounds", "1")
    longer = [*words, *MANY, "-resume"]
    if short:
        longer = ["-resume", "-resume-other-builds", "-pgnout", "g.pgn"]
    process = table.start(tmp_path, *longer, "-rounds", "8")
    try:
        harness.wait(lambda: finished(tmp_path) >= 4, "two games more")
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=table.PATIENCE)[0]
    finally:
        process.kill()
    printed = re.search(r"Go on with what is missing: farm match (.*)", told)
    assert printed, told
    assert ("-resume-other-builds" in printed[1]) == short, "else they would be refused again"
    found = table.run_json(tmp_path, *printed[1].split())
    assert (found["complete"], found["played"]) == (True, 16)
    assert sorted(game["number"] for game in table.games(path)) == list(range(1, 17))
    whole = path.read_bytes()
    assert json.loads(whole.splitlines()[0])["about"]["games"] == 16
    assert "{" not in table.play(tmp_path, "-resume", "-pgnout", "g.pgn").stdout
    assert path.read_bytes() == whole


def test_another_match_is_not_resumed(tmp_path: pathlib.Path) -> None:
    """A journal whose games are not those of the arguments is refused, nothing is played."""
    table.play(tmp_path, *table.good_and_bad(*MANY))
    words = [*table.mating("good", "Good"), *table.mating("bad", "Worse"), "-each", "tc=1"]
    err = table.play(tmp_path, *words, *MANY, "-resume", code=3).stderr
    assert "game 1 was Good vs Bad" in err
    assert "here it is Good vs Worse" in err


def test_a_match_whose_engines_have_moved_goes_on_with_its_whole_line(
    tmp_path: pathlib.Path,
) -> None:
    """Who did not type the path is told whose it is, and what to give in its place."""
    new, moved = tmp_path / "new", tmp_path / "moved"
    build(new, "good", "1")
    rest = [*table.mating("bad", "Bad"), "-each", "tc=10", *MANY]
    table.play(tmp_path, "-engine", f"cmd={new}", *rest)
    played = finished(tmp_path)
    new.rename(moved)
    err = table.play(tmp_path, "-resume", "-pgnout", "g.pgn", code=2).stderr
    assert f"no file {new}" in err
    assert "line that g.pgn.jsonl keeps" in err
    assert "give the whole line, with -resume" in err
    words = ["-engine", f"cmd={moved}", "name=new", *rest, "-rounds", "2", "-resume"]
    assert f"{played} of them played before" in table.play(tmp_path, *words).stdout


def test_games_of_another_clock_test_or_rule_are_not_gone_on_with(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One score would be of two matches: what differs is named, whichever way it was given.

    More games, where a file lies, and what concerns this machine and the output are no difference.
    """
    monkeypatch.chdir(tmp_path)
    net, log = tmp_path / "small.nnue", "option.Debug Log File=a.log"
    net.write_text("an entry's bytes")  # as many as a book's entry has
    rules = ["-draw", "movenumber=34", "movecount=8", "score=20", "-sprt", "elo0=0", "elo1=5"]
    engines = [*table.mating("good", "Good", f"option.EvalFile={net}", log)]
    engines += table.mating("bad", "Bad", "tc=20")
    words = [*engines, "-each", "tc=10", "option.Hash=1", *rules, *MANY]
    table.play(tmp_path, *words)
    played = finished(tmp_path)
    sprt = "elo0=0 elo1={} alpha=0.05 beta=0.05 model=normalized"
    for change, said in (
        ("-each tc=9", "time control was 10 s against 20 s, here it is 9 s against 20 s;"),
        ("-each tc=10 nodes=9", "here it is 10 s, 9 nodes a move against 20 s, 9 nodes a move;"),
        ("-each tc=10 timemargin=9", "here it is 10 s, timemargin=9 against 20 s, timemargin=9;"),
        ("-sprt elo0=0 elo1=9", f"-sprt was {sprt.format(5)}, here it is {sprt.format(9)};"),
        ("-draw movenumber=9 movecount=8 score=20", "-draw was movenumber=34 movecount=8 score=20"),
        ("-resign movecount=3 score=9", "-resign was none, here it is movecount=3 score=9 twos"),
        ("-maxmoves 9", "-maxmoves was none, here it is 9;"),
        ("-tb .", "-tb was none, here it is -tbpieces all -tbadjudicate BOTH;"),
        ("-each tc=10 book=small.nnue", "-each book= was none, here it is bookdepth=1000;"),
        ("-each tc=10 option.Hash=9", "Good: option.Hash was 1, here it is 9;"),
        ("-each tc=10 option.Skill=9", "Bad: option.Skill was none, here it is 9;"),
        ("-each tc=10 initstr=x", "Good: initstr was none, here it is x;"),
        ("-each tc=10 ponder", "Good: ponder was false, here it is true;"),
    ):
        switch = change.split()
        whole = [*engines, "-each", "tc=10", "option.Hash=1", *rules, *MANY, "-resume", *switch]
        for again in (["-resume", "-pgnout", "g.pgn", *switch], whole):
            with pytest.raises(errors.RefusedError, match=re.escape(said)):
                command.play(again)
    without = [*engines, "-each", "tc=10", "option.Hash=1", *rules[:4], *MANY, "-resume"]
    with pytest.raises(errors.RefusedError, match=r"-sprt was elo0=0 .* here it is none; resume"):
        command.play(without)
    assert finished(tmp_path) == played
    engines[engines.index(f"option.EvalFile={net}")] = "option.EvalFile=moved.nnue"
    engines[engines.index(log)] = "option.Debug Log File=b.log"
    net.rename("moved.nnue")
    longer = [*engines, "-each", "tc=10.0", "option.Hash=1", *rules, *MANY, "-rounds", "2"]
    table.play(tmp_path, *longer, "-resume", "-concurrency", "1", "-event", "Evening")
    assert finished(tmp_path) == played + 2


def build(path: pathlib.Path, skill: str, version: str) -> None:
    """Write a program that plays the known mates; ``version`` makes it another build."""
    program = table.ENGINES / "mating.py"
    path.write_text(f"#!/bin/sh\n# {version}\nexec {sys.executable} -I -S {program} {skill}\n")
    path.chmod(0o755)


def sha256(path: pathlib.Path) -> str:
    """Return a file's checksum."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("decided", [False, True], ids=["undecided", "decided"])
def test_games_of_another_build_are_not_gone_on_with(tmp_path: pathlib.Path, decided: bool) -> None:
    """Each file that has changed is named with both checksums; who wants it goes on all the same.

    A test that the other build has decided is no verdict on this one, either.
    """
    new, net = tmp_path / "new", tmp_path / "small.nnue"
    build(new, "good", "1")
    net.write_text("weights")
    test = ["-sprt", "elo0=0", "elo1=100"] if decided else []
    words = ["-engine", "cmd=./new", "option.EvalFile=small.nnue", *table.mating("bad", "Bad")]
    words += ["-each", "tc=10", *test, *MANY, "-rounds", "8" if decided else "1"]
    table.play(tmp_path, *words)
    resumed = ["-resume", "-pgnout", "g.pgn", "-rounds", "8" if decided else "2"]
    old = sha256(new)
    played = finished(tmp_path)
    build(new, "bad", "2")
    for again in (resumed, [*words, "-resume"]):
        err = table.play(tmp_path, *again, code=3).stderr
        assert f"new: {new} has SHA-256 {sha256(new)}, before it had {old}" in err
        assert "small.nnue" not in err
        assert "-resume-other-builds" in err
    assert finished(tmp_path) == played
    told = table.play(tmp_path, *resumed, "-resume-other-builds")
    assert f"the results are of several builds: new: {new}" in told.stdout
    build(new, "good", "1")
    net.write_text("others")
    assert "new: small.nnue has SHA-256" in table.play(tmp_path, *resumed, code=3).stderr
    net.write_text("weights")
    assert "builds" not in table.play(tmp_path, *resumed).stdout


@pytest.mark.parametrize("case", ["again", "crash", "copy", "stays"])
def test_an_engine_that_is_built_again_stops_the_running_match(
    tmp_path: pathlib.Path, case: str
) -> None:
    """No other build is started: exit code 3, all games are of one build, and it can go on.

    An engine that stays is the build that it was, and the same bytes are the same build.
    """
    new, next_build = tmp_path / "new", tmp_path / "next"
    build(new, "good", "1")
    build(next_build, "good" if case == "copy" else "bad", "1" if case == "copy" else "2")
    restart = [] if case in ("stays", "crash") else ["restart=on"]
    opponent = table.mating("bad", "Bad")
    if case == "crash":
        new.write_text("#!/bin/sh\nexit 1\n")
        next_build.write_text("#!/bin/sh\nexit 2\n")
        opponent = table.mating("good", "Good")
    whole = new.read_bytes()
    words = ["-engine", "cmd=./new", *restart, *opponent]
    words += ["-each", "tc=10", *MANY, "-rounds", "6", "-concurrency", "1", "-wait", "300"]
    process = table.start(tmp_path, *words)
    try:
        harness.wait(lambda: finished(tmp_path) >= 2, "two games")
        next_build.replace(new)
        out, err = process.communicate(timeout=table.PATIENCE)
    finally:
        process.kill()
    games = table.games(tmp_path / "g.pgn.jsonl")
    winners = {game["white" if game["result"] == "1-0" else "black"] for game in games}
    assert winners == {"Good" if case == "crash" else "new"}
    assert not table.survivors(tmp_path)
    if case in ("copy", "stays"):
        assert (process.returncode, len(games)) == (0, 12), out + err
        return
    assert process.returncode == 3, out + err
    assert 2 <= len(games) < 12
    was = hashlib.sha256(whole).hexdigest()
    assert f"new: {new} has SHA-256 {sha256(new)}, before it had {was}" in err
    assert "farm match -resume -journal g.pgn.jsonl" in err
    assert out.count("Finished game") == len(games)
    new.write_bytes(whole)
    assert table.run_json(tmp_path, "-resume", "-pgnout", "g.pgn")["played"] == 12
    assert len(list(pgn_games(tmp_path / "g.pgn"))) == 12


@pytest.mark.parametrize("switch", ["openings", "engines"])
def test_openings_of_an_edited_book_are_not_gone_on_with(
    tmp_path: pathlib.Path, switch: str
) -> None:
    """A book with another content would give a pair two openings; a journal of before is told."""
    book, whole = tmp_path / "b.epd", b"\n".join(b"4k3/8/8/8/8/8/8/R3K3 w Q -" for _ in range(9))
    words = table.good_and_bad(*MANY, "-openings", "file=b.epd", "format=epd")
    other = whole[: whole.rindex(b"\n")]
    if switch == "engines":
        book, whole, other = tmp_path / "b.bin", bytes(16), bytes(32)
        words = table.good_and_bad(*MANY, "-each", "book=b.bin")
    book.write_bytes(whole)
    table.play(tmp_path, *words)
    old, played = sha256(book), finished(tmp_path)
    book.write_bytes(other)
    for again in (("-resume", "-pgnout", "g.pgn", "-rounds", "2"), (*words, "-resume")):
        err = table.play(tmp_path, *again, code=3).stderr
        assert f"{book.name} has SHA-256 {sha256(book)}, before it had {old}" in err
        assert "Traceback" not in err
    assert finished(tmp_path) == played
    journal = tmp_path / "g.pgn.jsonl"
    before = journal.read_text()
    journal.write_text(re.sub(r',"books":\{[^}]*\}', "", before))
    told = table.play(tmp_path, "-resume", "-pgnout", "g.pgn").stdout
    assert "g.pgn.jsonl does not say which book its openings are from" in told
    journal.write_text(before)
    book.write_bytes(whole)
    table.play(tmp_path, "-resume", "-pgnout", "g.pgn", "-rounds", "2")
    assert finished(tmp_path) == played + 2
    book = book.rename(tmp_path / f"moved{book.suffix}")
    moved = {"openings": f"-openings file={book} format=epd", "engines": f"-each book={book}"}
    more = ("-rounds", "3", *moved[switch].split())
    table.play(tmp_path, "-resume", "-pgnout", "g.pgn", *more)
    assert finished(tmp_path) == played + 4


def test_a_journal_without_checksums_is_gone_on_with_and_that_is_said(
    tmp_path: pathlib.Path,
) -> None:
    """An earlier version's journal cannot say which builds played."""
    table.play(tmp_path, *table.good_and_bad(*MANY))
    journal = tmp_path / "g.pgn.jsonl"
    head, *games = journal.read_text().splitlines()
    without = re.sub(r'"checksums":\{[^}]*\}', '"checksums":{}', head)
    assert without != head
    journal.write_text("\n".join([without, *games, ""]))
    out = table.play(tmp_path, "-resume", "-pgnout", "g.pgn", "-rounds", "2").stdout
    assert "g.pgn.jsonl does not say which builds played its games" in out
    assert finished(tmp_path) == 4


def test_the_same_line_again_says_that_its_match_stands_unfinished(tmp_path: pathlib.Path) -> None:
    """Who starts a killed match anew is told, and can still go on with it until a game ends."""
    slow = ["-concurrency", "1", "-wait", "300"]
    words = [*table.good_and_bad(*MANY, "-rounds", "4", *slow)]
    process = table.start(tmp_path, *words)
    try:
        harness.wait(lambda: finished(tmp_path) >= 1, "a game")
    finally:
        process.kill()
        process.communicate(timeout=table.PATIENCE)
    played = finished(tmp_path)
    assert played < 8
    note = f"g.pgn.jsonl has an unfinished match of this command line ({played} of 8 games)"
    hold = "from worker_cpu.match import runner; runner.Runner.run = lambda *_: 1 / 0; "
    fresh = table.play(tmp_path, *words, code=1, first=hold)  # ends before its first game does
    assert note in fresh.stdout
    assert "Ctrl-C twice" in fresh.stdout, "once lets the game end that must not"
    assert "farm match -resume -journal g.pgn.jsonl" in fresh.stdout
    found = table.run_json(tmp_path, "-resume", "-pgnout", "g.pgn")
    assert (found["played"], finished(tmp_path)) == (8, 8)
    assert len(list(pgn_games(tmp_path / "g.pgn"))) == 8
    out = table.play(tmp_path, *words).stdout  # of a whole match nothing is said
    assert "unfinished" not in out
    assert len(list(pgn_games(tmp_path / "g.pgn"))) == 16, "games are appended, as elsewhere"
    assert table.run_json(tmp_path, "-resume", "-pgnout", "g.pgn")["played"] == 8
    assert finished(tmp_path) == 16


# -- signals -----------------------------------------------------------------------------


@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_finishes_or_drops_the_running_games(tmp_path: pathlib.Path, presses: int) -> None:
    """One Ctrl-C finishes the running games, a second drops them; what is finished stays."""
    gate = tmp_path / "gate"  # while it is there both games stand
    words = [*table.scripted("One", *holds(gate)), *table.scripted("Two", *holds(gate))]
    plan = ("-rounds", "500", "-concurrency", "2", "-maxmoves", "3")
    process = table.start(tmp_path, *words, "-each", "tc=600", *MANY, *plan)
    try:
        harness.wait(lambda: finished(tmp_path) >= 2, "two games")
        gate.touch()
        harness.stands(gate, engines=2)
        process.send_signal(signal.SIGINT)
        hear(process, "Stopping: 2 running games are finished first")
        before = finished(tmp_path)
        if presses == 1:
            gate.unlink()
        else:
            process.send_signal(signal.SIGINT)
    except BaseException:
        process.kill()  # its games stand: what failed is not to be hidden by waiting for them
        print(end(process))
        raise
    out = end(process)
    assert process.returncode == 130, out
    assert "farm match -resume -journal g.pgn.jsonl" in out
    after = finished(tmp_path)
    assert after == len(list(pgn_games(tmp_path / "g.pgn")))
    assert after - before == (2 if presses == 1 else 0)
    assert not table.survivors(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def test_a_match_that_is_stopped_before_its_first_game_says_so(
    tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    """It reads its openings still: the exit code of every stop, and nothing is left behind."""
    book = tmp_path / "book.epd"
    os.mkfifo(book)  # nothing is ever written to it
    fds: list[int] = []

    def reads() -> bool:
        with contextlib.suppress(OSError):  # nobody reads it yet
            fds.append(os.open(book, os.O_WRONLY | os.O_NONBLOCK))
        return bool(fds)

    words = (*table.scripted("One"), *table.scripted("Two"), "-each", "tc=600", *MANY)
    process = table.start(tmp_path, *words, "-openings", f"file={book}")
    try:
        harness.wait(reads, "the match to read its book")
        process.send_signal(number)
        out = end(process)
    finally:
        process.kill()
        for fd in fds:
            os.close(fd)
    assert process.returncode == 130, out
    assert "stopped" in out
    assert "Traceback" not in out
    assert [path.name for path in tmp_path.iterdir() if "pgn" in path.name] == []


def test_the_first_ctrl_c_drops_running_games_in_a_dialect(tmp_path: pathlib.Path) -> None:
    """As there: fishtest's worker reads the PGN when its test is decided; no game comes late."""
    gate = tmp_path / "gate"
    words = [*table.scripted("One", *holds(gate)), *table.scripted("Two", *holds(gate))]
    words += ["-each", "tc=600", *MANY, "-rounds", "500", "-maxmoves", "3", "-recover"]
    process = table.start(tmp_path, *words, "-dialect", "fastchess")
    try:
        harness.wait(lambda: finished(tmp_path) >= 2, "two games")
        gate.touch()
        harness.stands(gate, engines=1)
        before = finished(tmp_path)
        process.send_signal(signal.SIGINT)
        out = end(process)
    finally:
        process.kill()
    assert process.returncode == 130, out
    assert finished(tmp_path) == before == len(list(pgn_games(tmp_path / "g.pgn")))
    assert not table.survivors(tmp_path)


def holds(gate: pathlib.Path) -> tuple[str, str]:
    """Return the words by which an engine thinks while a file is there."""
    return "--fault", f"hold:{gate}"


def hear(process: subprocess.Popen[str], words: str) -> None:
    """Read what a match prints up to some words."""
    assert process.stdout is not None
    said = ""
    while words not in said:
        told = select.select([process.stdout], [], [], table.PATIENCE)[0]
        piece = os.read(process.stdout.fileno(), 4096).decode() if told else ""
        assert piece, said
        said += piece


# -- cores -------------------------------------------------------------------------------


def engine_cores(directory: pathlib.Path) -> dict[str, set[str]]:
    """Return, by game, the CPU lists of its engines as the kernel tells them."""
    found: dict[str, set[str]] = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if not entry.name.isdigit() or (entry / "cwd").readlink() != directory:
                continue
            variables = (entry / "environ").read_bytes().split(b"\0")
            status = (entry / "status").read_text()
        except OSError:
            continue
        game = next((v.decode() for v in variables if v.startswith(b"FARM_GAME=")), None)
        listed = [line for line in status.splitlines() if line.startswith("Cpus_allowed_list")]
        if game is not None and listed:
            found.setdefault(game, set()).add(listed[0].partition(":")[2].strip())
    return found


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="hardware: needs two CPUs")
def test_concurrent_games_have_cores_of_their_own(tmp_path: pathlib.Path) -> None:
    """Both engines of a game run on its CPU, and no two games share one."""
    pause = ("arg=200",)
    words = [*table.mating("good", "Good", *pause), *table.mating("bad", "Bad", *pause)]
    process = table.start(
        tmp_path, *words, "-each", "tc=60", *MANY, "-rounds", "4", "-concurrency", "2"
    )

    def two_games() -> bool:
        lists = engine_cores(tmp_path)
        whole = len(lists) == 2 and all(len(cpus) == 1 for cpus in lists.values())
        return whole and set.isdisjoint(*lists.values())

    try:
        harness.wait(two_games, "two games on disjoint CPUs")
    finally:
        process.send_signal(signal.SIGTERM)
        end(process)
    assert not table.survivors(tmp_path)


# -- the command line ----------------------------------------------------------------------


def test_usage_errors_have_their_exit_code_and_the_help_its_switches(
    tmp_path: pathlib.Path,
) -> None:
    """Wrong words end with code 2 and a sentence; -help explains and ends with 0."""
    err = table.play(tmp_path, "-engine", "cmd=true", "-rouns", "3", code=2).stderr
    assert "-rouns" in err
    assert "did you mean -rounds" in err
    assert "-sprt elo0= elo1=" in table.play(tmp_path, "-help").stdout


def test_traffic_and_stderr_go_into_their_files(tmp_path: pathlib.Path) -> None:
    """-log keeps all that was said, stderr= what an engine wrote there."""
    program = "import sys; print('oh', file=sys.stderr, flush=True)"
    words = ["-engine", f"cmd={sys.executable}", "arg=-c", f"arg={program}", "stderr=e.txt"]
    table.play(
        tmp_path, *words, *table.mating("good", "Good"), "-each", "tc=1", "-log", "file=log.txt"
    )
    assert (tmp_path / "e.txt").read_text() == "oh\n"
    assert " 1 Good > uci\n" in (tmp_path / "log.txt").read_text()
