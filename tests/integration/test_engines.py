"""Engines of a running farm: test games at a gate, and a file that was swapped."""

from __future__ import annotations

import json
import pathlib
import shutil
from typing import Any

import harness
import pytest
from click import testing

from orchestrator import commands
from orchestrator.commands import launch
from orchestrator.ledger import store
from orchestrator.season.file import load
from worker_cpu.engines import sandbox


def networked(folder: pathlib.Path, entry: dict[str, Any]) -> dict[str, Any]:
    """Return a roster entry with a network file of its own."""
    path = folder / f"{entry['id']}.nn"
    path.write_text("weights")
    return entry | {"network": str(path)}


def farm(running: harness.Farm, *words: str) -> testing.Result:
    """Run a command as the operator of the hall's host does."""
    environment = running.environment(harness.OPERATOR)
    return testing.CliRunner().invoke(commands.farm, list(words), env=environment)


def test_engines_are_tested_at_a_gate_and_a_swapped_file_stops_the_season(
    tmp_path: pathlib.Path,
) -> None:
    """No test beside an official game; no game with another file than the pinned one."""
    life = tmp_path / "life.jsonl"
    engines = [networked(tmp_path, harness.scripted(life, n)) for n in (1, 2)]
    file = harness.league(tmp_path / "season.toml", engines, double_rounds=2)
    with harness.running(tmp_path) as running:
        running.launch(file, "test")
        running.wait(lambda: len(_finished(running)) >= 1, 60, "a first game")
        refused = farm(running, "engine", "test", "scripted-1")
        assert refused.exit_code == 3, refused.output
        assert "gate, paused or held" in refused.output
        assert farm(running, "pause", "--reason", "tests").exit_code == 0
        running.wait(lambda: running.ledger.slot(harness.HALL) is None, 60, "a free hall")
        running.wait(lambda: not running.ledger.offered(harness.HALL), 10, "no offer")
        _test_games(running)
        _swapped(running, tmp_path / "scripted-1.nn")
        played = len(_finished(running))
        running.wait(lambda: len(_finished(running)) > played, 60, "another game")
        games = running.state("test").games.values()
    details = [game.finished.details for game in games if game.finished]
    assert not [told for told in details if "disconnect" in told]


ROSTER = """
schema = 1
[[engine]]
id = "scripted-1"
name = "Scripted 1"
version = "2"
command = ["./engine"]
directory = "DIRECTORY"
[[engine]]
name = "New One"
command = ["new"]
"""


def test_submissions_are_journaled_with_who_and_why(tmp_path: pathlib.Path) -> None:
    """Update, deadline and addition act on the journal; the refused ones and dry runs do not."""
    (tmp_path / "engine").write_text("program")
    roster = tmp_path / "engines.toml"
    roster.write_text(ROSTER.replace("DIRECTORY", str(tmp_path)))
    engines = [harness.scripted(tmp_path / "life", n) for n in (1, 2)]
    loaded = load.load(harness.league(tmp_path / "season.toml", engines))
    why = ("--by", "ann", "--reason", "by mail", "--json")
    with harness.Redis(tmp_path / "redis") as server:
        ledger = store.connect(server.url)
        launch.start(ledger, loaded, "test", harness.HALL, "00", "test")

        def say(*words: str) -> testing.Result:
            environment = {
                "FARM_REDIS_URL": server.url_of(harness.OPERATOR),
                "FARM_DATA": str(tmp_path),
            }
            runner = testing.CliRunner()
            return runner.invoke(commands.farm, ["engine", *words], env=environment)

        source = ("--file", str(roster), *why)
        dry = say("update", "scripted-1", *source, "--dry-run")
        assert dry.exit_code == 0, dry.output
        assert say("update", "new-one", *source).exit_code == 3
        assert say("update", "nobody", *source).exit_code == 2
        assert say("deadline", "final", "--at", "soon", *why).exit_code == 2
        assert ledger.last("test") == 1
        for words in (
            ("update", "scripted-1", "--pin", *source),
            ("add", "new-one", "--event", "league", *source),
            ("deadline", "league", "--at", "36h", *why),
        ):
            done = say(*words)
            assert done.exit_code == 0, done.output
        journaled = ledger.read("test", 1)
        listed = json.loads(say("list", "--json").output)
        shown = say("show", "scripted-1").output
        ledger.close()
    assert [entry.kind for entry in journaled] == [
        "engine_updated",
        "engine_added",
        "deadline_set",
    ]
    assert all(entry.by.startswith("ann@") for entry in journaled)
    assert all(entry.data["reason"] == "by mail" for entry in journaled)
    assert journaled[0].data["engine"]["checksums"].keys() == {"./engine"}
    assert {row["engine"]: row["state"] for row in listed} == {
        "scripted-1": "next league",
        "scripted-2": "next league",
        "new-one": "next league",
    }
    assert "version: 2" in shown
    assert "league = open" in shown


BROKEN = """
schema = 1
[[engine]]
id = "sf"
name = "Stockfish"
command = ["stockfish"]
options = { Nonsense = 1 }
[[engine]]
id = "broken"
name = "Broken"
command = ["/bin/sh", "-c", "echo no weights >&2; exit 1"]
"""


def test_a_test_game_finds_what_a_hall_finds_and_tells_last_words(tmp_path: pathlib.Path) -> None:
    """Debian's games need no PATH, the sandbox holds, faults and options that are none are told."""
    if shutil.which("stockfish", path="/usr/games") is None:
        pytest.skip("package stockfish is not installed")
    (tmp_path / "engines.toml").write_text(BROKEN)
    words = ("sf", "--against", "broken", "--file", str(tmp_path / "engines.toml"), "--games", "1")
    environment = {"PATH": "/usr/bin:/bin", "FARM_DATA": str(tmp_path), "FARM_REDIS_URL": None}
    environment["FARM_SANDBOX"] = "auto"
    done = testing.CliRunner().invoke(commands.farm, ["engine", "test", *words], env=environment)
    assert done.exit_code == 0, done.output
    assert "1-0 (Black disconnects: exit 1" in done.output
    assert "stderr: no weights" in done.output
    told = testing.CliRunner().invoke(
        commands.farm, ["engine", "test", *words, "--json"], env=environment
    )
    (game,) = json.loads(told.stdout)["games"]
    assert set(game["sandbox"].values()) == {sandbox.choose("auto")}
    assert [path.name for path in tmp_path.iterdir()] == ["engines.toml"], "folders were left"
    words = ("sf", "--file", str(tmp_path / "engines.toml"), "--games", "1", "--tc", "100ms+1ms")
    done = testing.CliRunner().invoke(commands.farm, ["engine", "test", *words], env=environment)
    assert done.output.count("Stockfish: option Nonsense: engine has no such option") == 1


def _finished(running: harness.Farm) -> list[str]:
    games = running.state("test").games.values() if "test" in running.ledger.seasons() else ()
    return [game.id for game in games if game.finished]


def _test_games(running: harness.Farm) -> None:
    """Play two test games; they stand in no journal."""
    words = ("scripted-1", "--against", "scripted-2", "--tc", "20s+1s", "--json")
    done = farm(running, "engine", "test", *words)
    assert done.exit_code == 0, done.output
    games = json.loads(done.stdout)["games"]
    assert [(game["white"], game["black"]) for game in games] == [
        ("Scripted 1", "Scripted 2"),
        ("Scripted 2", "Scripted 1"),
    ]
    assert all(len(game["checksums"]["white"]) == 2 for game in games)
    assert not any('"test-1"' in entry.line() for entry in running.ledger.read("test"))


def _swapped(running: harness.Farm, path: pathlib.Path) -> None:
    """Swap a network in the middle of the event: the season is held; put it back: it goes on."""
    content = path.read_text()
    path.write_text("wrong" + content)
    assert farm(running, "resume", "--reason", "tests are done").exit_code == 0
    running.wait(lambda: bool(running.state("test").held), 60, "the hold")
    held = running.state("test").held
    assert "not the pinned file" in held
    assert str(path) in held
    path.write_text(content)
    assert farm(running, "resume", "--reason", "put back").exit_code == 0
