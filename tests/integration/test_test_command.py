"""``farm test`` as an operator uses it: real lanes of a real farm, and its refusals."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

import click
import harness
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.commands import submitting, test_games
from orchestrator.commands import test as test_command
from orchestrator.common import errors
from orchestrator.ledger import api, lanes, store
from orchestrator.ops import supervisor
from orchestrator.rating import sprt
from orchestrator.testmatch import orders, sprt_match, spsa

ROSTER = """
schema = 1
[[engine]]
id = "dev"
name = "Dev"
command = {dev}
[[engine]]
id = "base"
name = "Base"
command = {base}
[[engine]]
id = "broken"
name = "Broken"
command = {broken}
[[engine]]
id = "wild"
name = "Wild"
command = {wild}
"""
AWAY = """
[[engine]]
id = "away"
name = "Away"
command = ["/opt/lc0"]
competition = "gpu"
box = "gpu-1"
"""


def roster(folder: pathlib.Path) -> pathlib.Path:
    """Write a roster file: one strong, one weak, one that crashes, one whose moves are illegal."""
    told = {
        name: json.dumps(harness.scripted(folder / "life.jsonl", strength, *extra)["command"])
        for name, strength, extra in (
            ("dev", 3, ()),
            ("base", 1, ()),
            ("broken", 2, ("--fault", "crash@6")),
            ("wild", 2, ("--fault", "illegal@6", "--fault", "illegal@7")),
        )
    }
    spoken = ("sh", "-c", 'echo "assert failed: nlines" >&2; exec "$@"', "sh")
    told["broken"] = json.dumps([*spoken, *json.loads(told["broken"])])
    path = folder / "engines.toml"
    path.write_text(ROSTER.format(**told), encoding="utf-8")
    return path


def test_a_match_in_a_lane_with_its_test_and_a_self_check(tmp_path: pathlib.Path) -> None:
    """The games are played and counted, a gauntlet too; a crash fails the self-check."""
    file = roster(tmp_path)
    with harness.running(tmp_path) as farm:
        seen = farm.worker.environment | {"FARM_LANE_GPU_IDS": "0,2"}
        worker = dataclasses.replace(farm.worker, environment=seen)
        lane = supervisor.lane("a=0", worker, harness.HALL)
        lane.start()
        try:
            words = ("dev", "--against", "base", "--file", str(file), "--games", "4")
            odds = ("--tc-against", "40s+1s", "--gpus", "2")
            told = _run(farm, *words, "--maxmoves", "8", *odds)
            assert told.exit_code == 0, told.output
            assert "by faults" not in told.output, "none of them lost all its games so"
            facts = json.loads(told.stdout)
            assert (facts["games"], facts["wins"] + facts["draws"] + facts["losses"]) == (4, 4)
            assert sum(facts["pairs"]) == 2
            games = pathlib.Path(facts["pgn"]).read_text()
            assert games.count("[Event ") == 4
            clocks = (
                games.count('[WhiteTimeControl "40+1"]'),
                games.count('[WhiteTimeControl "20+1"]'),
            )
            assert clocks == (2, 2), "time odds are the opponent's, of either colour"
            beats = (tmp_path / "life.jsonl").read_text().splitlines()
            assert {json.loads(beat)["gpus"] for beat in beats} == {"0,2"}
            unwrapped = " ".join(games.split())  # a PGN's lines end anywhere
            assert unwrapped.count("max moves rule} 1/2-1/2") == 4, (
                "the limit of --maxmoves ends each game"
            )
            values = ("--parameter", "Hash size,1,1,9,1,1", "--iterations", "1")
            tuned = _farm(farm, "tune", "dev", "--file", str(file), *values, "--maxmoves", "2")
            assert tuned.exit_code == 3, tuned.output
            assert "Hash size: " in tuned.output
            checked = _run(farm, "broken", "--self-check", "--file", str(file), "--games", "2")
            assert checked.exit_code == 3, checked.output
            assert "the self-check has found faults: 2 games (1, 2): Broken: " in checked.output
            assert "Broken lost 2 of 2 games by faults" in checked.stderr, "of stdout JSON is read"
            _crashes_are_told(farm, file)
            shown = _farm(farm, "lanes", "--json")
            assert [one["lane"] for one in json.loads(shown.stdout)["lanes"]] == ["a"]
        finally:
            lane.kill()


def _crashes_are_told(farm: harness.Farm, file: pathlib.Path) -> None:
    """At a match's end and afterwards: whose they were, how many, and what the engine wrote."""
    words = ("base", "--against", "broken", "--file", str(file), "--games", "2", "--id", "crashed")
    played = _farm(farm, "test", *words, "--tc", "20s+1s")
    assert played.exit_code == 0, played.output
    every = "Broken lost 2 of 2 games by faults: the score is no measure of its strength"
    assert played.output.splitlines()[-1] == f"{every} (farm match show crashed)"
    for text in (played.output, _farm(farm, "show-test", "crashed").output):
        assert every in text
        assert "faults of Broken: 2" in text
        assert "fault: game 1: Broken: Black disconnects" in text
        assert "fault: game 2: Broken: White disconnects" in text
        assert text.count("assert failed: nlines\n") == 2, "once for each fault"
    told = json.loads(_farm(farm, "show-test", "crashed", "--json").stdout)
    assert [fault.partition(": Broken: ")[0] for fault in told["faults"]] == ["game 1", "game 2"]
    words = ("base", "--against", "wild", "--file", str(file), "--games", "2")
    played = _farm(farm, "test", *words, "--tc", "20s+1s")
    assert re.search(
        r"fault: game \d: Wild: \w+ makes an illegal move: a1a1 in \S+ [wb] ", played.output
    )


def test_a_match_is_closed_whoever_ends_its_keeper(tmp_path: pathlib.Path) -> None:
    """SIGTERM closes it as Ctrl-C does; what kill -9 leaves is told with the way out of it.

    A Redis that is started again ends it not.
    """
    words = ("dev", "--against", "base", "--file", str(roster(tmp_path)), "--games", "2")
    with harness.Redis(tmp_path / "redis") as redis:
        environment = {"FARM_REDIS_URL": redis.url_of(harness.OPERATOR), "FARM_DATA": str(tmp_path)}
        assert _ended(environment, signal.SIGKILL, *words) == -signal.SIGKILL
        assert "m has no keeper: `farm match test --id m`" in harness.farm("lanes", env=environment)
        assert _ended(environment, signal.SIGTERM, restarted=redis) == 130
        shown = harness.farm("lanes", "--json", env=environment)
        assert json.loads(shown)["matches"] == []
        assert "farm match test" not in harness.farm("lanes", env=environment)
        wish = ("match", "stop", "m", "--by", "anna", "--reason", "rebased")
        assert "no test match 'm' is open; open ones: none" in harness.farm(
            *wish, env=environment, code=3
        )
        assert _ended(environment, wish) == 130
        with store.connect(redis.url) as ledger:
            told = [one for one in ledger.read(api.FARM) if one.kind == lanes.ENDED]
        assert [one.data["match"] for one in told] == ["m"]
        user = harness.OPERATOR if redis.users else "default"
        assert f"stopped by anna@{user}: rebased" in str(told[0].data["why"])


def _ended(
    environment: dict[str, str],
    by: signal.Signals | tuple[str, ...],
    *words: str,
    restarted: harness.Redis | None = None,
) -> int:
    """Start the match ``m`` where no lane is, end it while it waits; return how it ended.

    It outlives a Redis that is away for a while.
    """
    farm = [sys.executable, "-m", "celery", "-A", "orchestrator", "farm"]
    command = [*farm, "test", *words, "--id", "m"]
    with subprocess.Popen(
        command, env=os.environ | environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "no lane can play this yet" in process.stderr.readline()
        kept = harness.farm("lanes", env=environment)
        if restarted is not None:
            restarted.stop()
            assert "the match goes on when it answers" in process.stderr.readline()
            restarted.start()
            assert "Redis answers again" in process.stderr.readline()
        if isinstance(by, signal.Signals):
            process.send_signal(by)
        else:
            harness.farm(*by, env=environment)
        process.communicate()
    assert "has no keeper" not in kept, "this process was it"
    return process.returncode


def _run(farm: harness.Farm, *words: str) -> testing.Result:
    return _farm(farm, "test", *words, "--tc", "20s+1s", "--json")


def _farm(farm: harness.Farm, *words: str) -> testing.Result:
    environment = farm.environment(harness.OPERATOR)
    return testing.CliRunner().invoke(commands.farm, list(words), env=environment)


def test_what_is_shown_of_workers_that_have_not_built_or_not_played(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build of an earlier match is named; nobody is no empty table."""
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    folder = tmp_path / "tests" / "m"
    folder.mkdir(parents=True)
    fields = {"commit": "ab", "archive": "a" * 64, "make": "make", "program": "tiny", "bench": 7}
    sources = [{"name": f"Tiny {name}", **fields, "seconds": n} for n, name in ((9, "x"), (8, "y"))]
    engines = [{"id": name, "name": name, "command": ["tiny"]} for name in "xy"]
    spec = orders.Spec.model_validate(
        {"id": "m", "engines": engines, "time_control": {"nodes": 9}, "games": 4, "builds": sources}
    )
    (folder / "match.json").write_text(sprt_match.encoded(spec, sprt_match.Terms()))
    (folder / "journal.jsonl").touch()
    run = testing.CliRunner().invoke
    told = run(commands.farm, ["test-workers", "m"])
    assert told.output == "m: no remote worker has played a game or a check yet\n"
    build = spec.builds[0]
    assert build is not None
    made = {"worker": "anna/box", "name": build.name, "commit": "ab", "build": build.id}
    made |= {"machine": "x", "compiler": "cc", "program": "p", "bench": 7, "seconds": 1, "why": ""}
    game = {"game": 1, "lane": "", "hall": "", "host": "anna/box", "attempt": "t/1", "plies": 3}
    game |= {"result": "0-1", "ending": "checkmate", "loser": "white", "pgn": "*"}
    game |= {"details": "Black mates", "note": ""}
    entries = [
        contract.Entry(seq=seq, at_ms=seq, kind=kind, by="", data=data)
        for seq, (kind, data) in enumerate(((lanes.BUILD, made), (lanes.GAME, game)), start=1)
    ]
    (folder / "journal.jsonl").write_text("".join(f"{entry.line()}\n" for entry in entries))
    shown = run(commands.farm, ["show-test", "m"]).output
    assert "anna/box: Tiny y: built for an earlier match\n" in shown
    assert "Tiny x: built" not in shown


def test_a_time_control_is_in_seconds_as_in_every_match() -> None:
    """8+0.08 is what engine authors mean by it, not eight minutes."""
    control = test_games.control("8+0.08")
    assert (control.base_ms, control.increment_ms) == (8_000, 80)


def test_early_ends_are_those_of_a_match_on_one_machine() -> None:
    """The same words mean the same, with commas or spaces between; twosided may stand alone."""
    told = {"maxmoves": 200, "draw": "movenumber=34 movecount=8,score=20", "tb": "/tb"}
    told |= {"resign": "movecount=3,score=600,twosided", "tb_pieces": 5}
    found = test_games.adjudication(told, remote=False)
    assert found == contract.Adjudication(
        max_moves=200,
        draw=contract.MovesDraw(move_number=34, move_count=8, score_cp=20),
        resign=contract.MovesResign(move_count=3, score_cp=600, twosided=True),
        syzygy=contract.Syzygy(path="/tb", men=5),
    )
    with pytest.raises(errors.UsageError, match="--tb: remote workers"):
        test_games.adjudication(told, remote=True)
    none = {"maxmoves": None, "draw": None, "resign": None, "tb": None, "tb_pieces": 6}
    assert test_games.adjudication(none, remote=True) == contract.Adjudication()


@dataclasses.dataclass(frozen=True)
class Wrong:
    """A command line and what its refusal must name."""

    words: tuple[str, ...]
    names: str


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong((), "name an ENGINE"),
        Wrong(("dev",), "--against"),
        Wrong(("dev", "--against", "base", "--sprt", "elo0=0"), "elo1"),
        Wrong(("dev", "--against", "base", "--sprt", "elo0=5", "elo1=0"), "elo0 below elo1"),
        Wrong(("dev", "--against", "base", "elo0=0", "elo1=5"), "--sprt"),
        Wrong(("dev", "--against", "nobody"), "nobody"),
        Wrong(("dev", "--against", "base", "--tc", "soon"), "--tc"),
        Wrong(("dev", "--against", "base", "--tc-against", "never"), "never"),
        Wrong(("dev", "--against", "away", "--remote"), "its box is gpu-1, which remote workers"),
        Wrong(("dev", "--against", "base", "--id", "../x"), "--id"),
        Wrong(("dev", "--against", "base", "--id", "a" * 300), "--id: found 'aaa"),
        Wrong(("dev", "--against", "base", "--draw", "movecount=8,limit=3"), "--draw"),
        Wrong(("dev", "--against", "base", "--draw", "score=1,score=2"), "each once"),
        Wrong(("dev", "--against", "base", "--draw", "movecount=8,score=9"), "no movenumber="),
        Wrong(("dev", "--against", "base", "--resign", "movecount=3"), "no score="),
        Wrong(("dev", "--against", "base", "--resign", "twosided"), "no movecount=, score="),
        Wrong(("dev", "--against", "base", "--resign", "movecount=3,score=x"), "--resign.score_cp"),
        Wrong(("dev", "--against", "base", "--resign", "movecount=x,score=9"), "--resign.move_co"),
    ],
)
def test_a_wrong_command_line_is_refused_by_name(tmp_path: pathlib.Path, wrong: Wrong) -> None:
    """Exit code 2, and the message says which word is wrong; nothing is opened."""
    with roster(tmp_path).open("a", encoding="utf-8") as engines:
        engines.write(AWAY)
    file = ("--file", engines.name) if wrong.words else ()
    environment = {"FARM_REDIS_URL": f"unix://{tmp_path}/no.sock", "FARM_DATA": str(tmp_path)}
    words = ["test", *wrong.words, *file]
    told = testing.CliRunner().invoke(commands.farm, words, env=environment)
    assert (told.exit_code, wrong.names in told.output) == (2, True), told.output


def test_an_old_match_may_have_more_games_and_nothing_that_makes_it_another(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --id alone nothing is ignored in silence: it is done, or refused by its name."""
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    engines = [{"id": name, "name": name, "command": ["tiny"]} for name in "xy"]
    spec = orders.Spec.model_validate(
        {"id": "m", "engines": engines, "time_control": {"nodes": 9}, "games": 60}
    )
    terms = sprt_match.Terms(sprt.Test(0, 20), priority=2)
    folder = tmp_path / "tests" / "m"
    folder.mkdir(parents=True)
    (folder / "match.json").write_text(sprt_match.encoded(spec, terms))
    kept: list[tuple[orders.Spec, sprt_match.Terms]] = []
    monkeypatch.setattr(submitting, "keep", lambda spec, terms, _: kept.append((spec, terms)))

    def run(*words: str) -> testing.Result:
        return testing.CliRunner().invoke(commands.farm, ["test", "--id", "m", *words])

    assert (run().exit_code, kept.pop()) == (0, (spec, terms))
    assert run("--games", "62", "--share", "3", "--hall", "a", "--json").exit_code == 0
    longer = spec.model_copy(update={"games": 62})
    assert kept.pop() == (longer, dataclasses.replace(terms, share=3, halls=("a",)))
    may = {"id", "games", "self-check", "priority", "share", "hall", "min-nps", "gpus", "one-node"}
    may |= {"submit", "approval", "json"}
    options = [one for one in test_command.test.params if isinstance(one, click.Option)]
    values = {"tb-pieces": "5", "variant": "standard", "build": "recipe.toml"}
    for option in options:
        name = option.opts[0].removeprefix("--")
        if name not in may:
            given = (f"--{name}",) if option.is_flag else (f"--{name}", values.get(name, "7"))
            told = run(*given)
            assert told.exit_code == 2, told.output
            assert "goes on with that match as it was opened" in told.output
            assert f"leave out --{name}, or name the ENGINE of a new match" in told.output
    told = run("--sprt", "elo0=0", "elo1=5", "--tc", "5+0.05")
    assert (told.exit_code, "leave out --sprt, --tc, or name" in told.output) == (2, True)
    assert "leave out --sprt's words" in run("elo0=0", "elo1=5").output
    tuning = spsa.Tuning(parameters=tuple(spsa.parameters("R,int,3,1,9,1,0.002", "")), iterations=4)
    tuned = spec.model_copy(update={"games": tuning.games, "tuning": tuning})
    (folder / "match.json").write_text(sprt_match.encoded(tuned, sprt_match.Terms()))
    assert "m: a tuning has 8 games of an engine" in run("--games", "9").output
    assert not kept


def test_bounds_may_stand_before_the_engine(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind --sprt they are not taken for ENGINE; an engine that is named like one is one."""
    file = roster(tmp_path)
    file.write_text(file.read_text().replace('id = "dev"', 'id = "beta"'))
    kept: list[tuple[orders.Spec, sprt_match.Terms]] = []
    monkeypatch.setattr(submitting, "keep", lambda spec, terms, _: kept.append((spec, terms)))
    words = ["test", "--sprt", "elo0=0", "elo1=5", "beta", "--against", "base", "--file", str(file)]
    told = testing.CliRunner().invoke(commands.farm, words)
    assert told.exit_code == 0, told.output
    spec, terms = kept.pop()
    assert ([engine.id for engine in spec.engines], terms.test) == (
        ["beta", "base"],
        sprt.Test(0, 5),
    )
