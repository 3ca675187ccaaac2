"""The command group as operators and scripts meet it: output, JSON, errors, exit codes."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import click
import driver
import harness
import on_paper
import pytest

from orchestrator import commands, contract
from orchestrator.commands import launch, paths, programs
from orchestrator.common import errors, numbers
from orchestrator.ledger import store


@pytest.fixture
def url(tmp_path: pathlib.Path) -> Iterator[str]:
    """Run a Redis for one test."""
    with harness.Redis(tmp_path / "redis") as server:
        yield server.url_of(harness.OPERATOR)


def farm(url: str | None, *words: str, data: str = "nowhere") -> subprocess.CompletedProcess[str]:
    """Run the program ``farm``."""
    return harness.run_farm(environment(url, data), *words)


def environment(url: str | None, data: str = "nowhere") -> dict[str, str]:
    """Return the environment of a command: with a Redis or none."""
    known = {} if url is None else {"FARM_REDIS_URL": url}
    return harness.without_farm() | {"FARM_DATA": data} | known


def season(tmp_path: pathlib.Path, **changes: str) -> pathlib.Path:
    """Write a good season file, with pieces of its text exchanged."""
    engines = [harness.scripted(tmp_path / "life", strength) for strength in range(4)]
    path = harness.league(tmp_path / "season.toml", engines)
    text = path.read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    return path


def test_a_season_is_launched_and_looked_at(url: str, tmp_path: pathlib.Path) -> None:
    """Launch journals the season; every looking command shows it, to people and programs."""
    words = ("launch", str(season(tmp_path)), "--by", "anna", "--json")
    launched = harness.celery_farm(environment(url), *words)
    assert launched.returncode == 0, launched.stderr
    facts = json.loads(launched.stdout)
    assert facts["season"] == "test"
    assert facts["games"] == 16
    with store.connect(url) as ledger:
        first = ledger.read("test")[0]
    assert first.kind == "launched"
    assert first.by.startswith("anna@")
    assert facts["seed_sha256"] == first.data["seed_sha256"]
    for command in ("status", "standings", "schedule", "games", "graph", "watch"):
        once = ("--once",) if command == "watch" else ()
        shown = farm(url, command, *once)
        assert shown.returncode == 0, shown.stderr
        assert shown.stdout.strip()
        told = [farm(url, command, *options, "--json").stdout for options in {once, ()}]
        for output in (shown.stdout, *told):
            assert first.data["seed"] not in output, f"{command} tells the seed"
        for output in told:
            json.loads(output)


def test_the_games_to_come_are_seen_while_a_pause_keeps_them_back(
    url: str, tmp_path: pathlib.Path
) -> None:
    """Launched paused, a season shows the order in which it will play; nothing begins."""
    file = str(season(tmp_path))
    assert farm(url, "launch", file, "--by", "anna", "--paused").returncode == 0
    rows = json.loads(farm(url, "schedule", "--json").stdout)
    assert [row["game"] for row in rows] == [f"league.{number}" for number in range(1, 13)]
    none = farm(url, "schedule", "--event", "final").stdout
    assert "No game of final is paired yet; `farm status` says what is waited for" in none
    with store.connect(url) as ledger:
        assert [entry.kind for entry in ledger.read("test")] == ["launched", "paused"]


def test_an_import_is_tried_against_a_file_before_the_launch(tmp_path: pathlib.Path) -> None:
    """No farm is needed; what must be changed in the file is known before anything is launched."""
    file, pgn = str(season(tmp_path)), tmp_path / "old.pgn"
    tags = '[Event "x"]\n[White "Scripted {}"]\n[Black "Scripted {}"]\n[Result "0-1"]\n\n'
    pgn.write_text(tags.format(1, 2) + "1. f3 e5 2. g4 Qh4# 0-1\n")
    words = ("import", str(pgn), "--file", file)
    shown = farm(None, *words, "--dry-run", "--json")
    assert shown.returncode == 3, "a script goes by it, as by that of the import"
    assert "nothing would be imported: game 1: " in shown.stderr
    told = json.loads(shown.stdout)
    assert "next in the schedule is league.1" in told["games"][0]["problem"]
    assert 'table = "' in told["hints"][0] or "entrants = [" in told["hints"][0]
    read = farm(None, *words, "--dry-run")
    assert (read.returncode, "would be imported" in read.stdout) == (3, False)
    assert read.stdout.count("Hint: ") + read.stderr.count("Hint: ") == 1
    earnest = farm(None, *words, "--by", "anna", "--reason", "moved")
    assert earnest.returncode != 0
    assert "give it with --dry-run" in earnest.stderr


def test_a_reading_command_takes_its_season_in_both_forms(url: str, tmp_path: pathlib.Path) -> None:
    """SEASON and --season mean the same; two that differ are refused, not guessed at."""
    file = str(season(tmp_path))
    for name in ("one", "two"):
        assert farm(url, "launch", file, "--id", name, "--by", "anna").returncode == 0
    for words in (("one",), ("--season", "one")):
        (seen,) = json.loads(farm(url, "status", *words, "--json").stdout)["seasons"]
        assert seen["season"] == "one"
    logged = farm(url, "log", "--season", "two")
    assert "launched" in logged.stdout
    assert "anna" in logged.stdout
    assert "two: no operator has changed it" in logged.stdout
    refused = farm(url, "log", "one", "--season", "two")
    assert refused.returncode == 2
    assert "name one season" in refused.stderr


def test_the_reason_of_a_launch_is_kept(url: str, tmp_path: pathlib.Path) -> None:
    """``launch --reason`` is in the journal, and the log shows it."""
    words = ("--by", "anna", "--reason", "autumn cup")
    assert farm(url, "launch", str(season(tmp_path)), *words).returncode == 0
    with store.connect(url) as ledger:
        assert ledger.read("test")[0].data["reason"] == "autumn cup"
    (kept,) = json.loads(farm(url, "log", "--json").stdout)
    assert kept["reason"] == "autumn cup"


def test_the_same_season_is_not_launched_twice(url: str, tmp_path: pathlib.Path) -> None:
    """A second launch under the same id is refused by the state; another id is not."""
    file = str(season(tmp_path))
    assert farm(url, "launch", file).returncode == 0
    for run in (harness.run_farm, harness.celery_farm):
        again = run(environment(url), "launch", file)
        assert again.returncode == 3
        assert "--id" in again.stderr
    assert farm(url, "launch", file, "--id", "second").returncode == 0


def test_a_dry_run_changes_nothing(url: str, tmp_path: pathlib.Path) -> None:
    """With --dry-run every check is made and nothing is written."""
    done = farm(url, "launch", str(season(tmp_path)), "--dry-run")
    assert done.returncode == 0
    with store.connect(url) as ledger:
        assert ledger.seasons() == ()


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ('name = "League"', 'name = "League"\ntime = 3', "time"),
        ("{ top = 2,", "{ top = 5,", "promote"),
        ('time_control = "20s+1s"', 'time_control = "abc"', "time_control"),
        ('command = ["', 'commando = ["', "command"),
    ],
)
def test_a_bad_season_file_is_refused_by_place(
    url: str, tmp_path: pathlib.Path, old: str, new: str, place: str
) -> None:
    """The message names file and place, the exit code says wrong input, nothing is launched."""
    done = farm(url, "launch", str(season(tmp_path, **{old: new})))
    assert done.returncode == 2, done.stderr
    assert "season.toml" in done.stderr
    assert place in done.stderr
    assert "Traceback" not in done.stderr
    with store.connect(url) as ledger:
        assert ledger.seasons() == ()


def test_pause_and_resume_are_journaled_with_who_and_why(url: str, tmp_path: pathlib.Path) -> None:
    """A pause stands in the journal and holds the ledger; a second one is refused."""
    farm(url, "launch", str(season(tmp_path)))
    assert farm(url, "pause", "--by", "anna", "--reason", "power work").returncode == 0
    with store.connect(url) as ledger:
        entry = ledger.read("test")[-1]
        assert (entry.kind, entry.data["reason"]) == ("paused", "power work")
        assert entry.by.startswith("anna@")
        assert ledger.holds("test") == {"pause": "power work"}
    assert farm(url, "pause").returncode == 3
    assert "power work" in farm(url, "status").stdout
    assert farm(url, "resume").returncode == 0
    with store.connect(url) as ledger:
        assert ledger.holds("test") == {}
    assert farm(url, "resume").returncode == 3


def test_of_several_open_seasons_the_one_to_be_changed_is_named(
    url: str, tmp_path: pathlib.Path
) -> None:
    """A change without a name is wrong usage then and journals nothing; looking is not."""
    path = season(tmp_path)
    farm(url, "launch", str(path), "--id", "meant")
    farm(url, "launch", str(path), "--id", "mistake")
    refused = farm(url, "pause")
    assert refused.returncode == 2
    assert "several seasons are open: meant, mistake; name one with --season" in refused.stderr
    assert farm(url, "pause", "mistake").returncode == 0
    assert farm(url, "decisions").returncode == 0
    with store.connect(url) as ledger:
        kinds = {name: [one.kind for one in ledger.read(name)] for name in ledger.seasons()}
    assert kinds == {"meant": ["launched"], "mistake": ["launched", "paused"]}


def test_a_missing_program_is_warned_of_before_the_first_game(
    url: str, tmp_path: pathlib.Path
) -> None:
    """Check and launch name engine and program and refuse nothing: the hall may be elsewhere."""
    good, wrong = tmp_path / "good", tmp_path / "wrong"
    good.mkdir()
    wrong.mkdir()
    typo = str(season(wrong, **{sys.executable: "/opt/enigne"}))
    for words in (("check", typo), ("launch", typo)):
        done = farm(url, *words)
        assert done.returncode == 0, done.stderr
        assert "Warning: no program on this machine" in done.stdout + done.stderr
        assert "scripted-3 (/opt/enigne)" in done.stdout + done.stderr
    assert len(json.loads(farm(url, "check", typo, "--json").stdout)["warnings"]) == 1
    assert json.loads(farm(url, "check", str(season(good)), "--json").stdout)["warnings"] == []


def test_a_folder_hides_no_bundled_season(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is called as a bundled season is no season file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    assert launch.season_file("demo").name == "demo.toml"


def test_a_missing_network_is_warned_of(tmp_path: pathlib.Path) -> None:
    """It is looked for where a hall does: from the engine's directory, not from here."""
    spec = contract.EngineSpec(
        id="igel", name="Igel", command=(sys.executable,), directory=str(tmp_path), network="a b.nn"
    )
    (told,) = programs.warnings([spec])
    assert told.startswith("no network file on this machine: igel (a b.nn);")
    (tmp_path / "a b.nn").touch()
    assert programs.warnings([spec]) == []


def test_nothing_is_missed_at_a_desk(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose farm is on other machines has no engines here; with a farm's archive here it has."""
    spec = contract.EngineSpec(id="a", name="A", command=("/opt/none",))
    monkeypatch.delenv("FARM_DATA", raising=False)
    monkeypatch.setenv("FARM_REDIS_URL", "rediss://control.example.org:6379/0")
    monkeypatch.chdir(tmp_path)
    assert programs.warnings([spec]) == []
    (tmp_path / ".farm" / "archive").mkdir(parents=True)
    assert len(programs.warnings([spec])) == 1
    (tmp_path / ".farm" / "archive").rmdir()
    monkeypatch.setenv("FARM_REDIS_URL", "redis://127.0.0.1:6379/0")
    assert len(programs.warnings([spec])) == 1


def test_what_the_state_does_not_allow_is_refused(url: str, tmp_path: pathlib.Path) -> None:
    """Nothing to abort, no gate to open, no worker to drain, no such season: exit code 3."""
    assert farm(url, "standings").returncode == 3
    farm(url, "launch", str(season(tmp_path)))
    for words in (
        ("abort",),
        ("open-gate", "final"),
        ("open-gate", "nothing"),
        ("drain", "hall-9"),
        ("standings", "nothing"),
        ("schedule", "--event", "nothing"),
    ):
        done = farm(url, *words)
        assert done.returncode == 3, words
        assert done.stderr.startswith("farm: ")
        assert "Traceback" not in done.stderr


def test_an_unreachable_redis_has_its_own_exit_code(tmp_path: pathlib.Path) -> None:
    """Exit code 4, and the message names the server but not its password."""
    gone = f"unix://{tmp_path}/no.sock"
    assert farm(gone, "status").returncode == 4
    assert farm(None, "status", data=str(tmp_path)).returncode == 4
    secret = farm("redis://user:hunter2@127.0.0.1:1/0", "status")
    assert secret.returncode == 4
    assert "hunter2" not in secret.stderr + secret.stdout


def test_wrong_usage_is_told_with_what_is_meant(url: str) -> None:
    """A mistyped command names the right one; a missing file names what is bundled."""
    typed = farm(url, "lanch", "demo")
    assert typed.returncode == 2
    assert "launch" in typed.stderr
    missing = farm(url, "launch", "no-such-file.toml")
    assert missing.returncode == 2
    assert "demo" in missing.stderr
    assert "contradict" in farm(url, "up", "--web", "8080", "--no-web").stderr


@pytest.mark.parametrize("words", [("season", "launch"), ("season", "simulate"), ("rate",)])
def test_a_name_that_no_system_takes_is_wrong_usage(
    words: tuple[str, ...], tmp_path: pathlib.Path
) -> None:
    """It can only be the command line's fault: exit code 2, not the host's."""
    name = "a" * 300
    done = farm(None, *words, name, data=str(tmp_path))
    assert done.returncode == errors.UsageError.exit_code
    assert done.stderr == f"farm: {name}: File name too long\n"


def test_both_programs_are_the_same_group() -> None:
    """`celery -A orchestrator farm` and `farm` list every command, and tell how one is used."""
    short = farm(None, "--help").stdout
    listed = harness.celery_farm(environment(None), "--help").stdout
    for name in commands.farm.list_commands(click.Context(commands.farm)):
        assert f"\n  {name} " in listed, name
        assert f"\n  {name} " in short, name
    for run in (harness.run_farm, harness.celery_farm):
        assert "Example:" in run(environment(None), "launch", "--help").stdout


def test_a_pause_is_shown_as_one_and_a_farm_that_goes_on_needs_no_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reason alone is not understood; what `--until-finished` waits for is one season, no two."""
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    with on_paper.launched(tmp_path, monkeypatch, driver.season_text()):
        harness.farm("pause", "--reason", "tea")
        assert "paused: tea" in harness.farm("status")
        file = str(tmp_path / "season.toml")
        harness.farm("launch", file, "--id", "another", "--hall", driver.HALL)
        several = harness.farm("up", "--until-finished", "--no-web", code=3)
        assert "several seasons go on here (test, another)" in several
        for season in ("test", "another"):
            harness.farm("abandon", season, "--reason", "over", "--yes")
        over = harness.farm("up", "--until-finished", "--no-web", code=3)
        assert "begin one with --launch FILE" in over


def test_who_has_no_name_on_this_machine_is_a_number(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container runs the program as whom it is told to."""
    with on_paper.launched(tmp_path, monkeypatch, driver.season_text()):
        for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(os, "getuid", lambda: 54321)
        harness.farm("pause", "--reason", "tea")
        assert "uid 54321" in harness.farm("log")


def test_at_a_desk_the_engines_of_the_desk_are_said_to_be_no_hall_s(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A season that looks for engines finds the desk's: the hall may have none of them."""
    program = tmp_path / "found-at-the-desk"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    text = driver.season_text().replace("[roster]", '[roster]\nfind = ["found-at-the-desk"]')
    assert "find = " in text
    with on_paper.launched(tmp_path, monkeypatch, text):
        file = str(tmp_path / "season.toml")
        words = ("launch", file, "--id", "other", "--dry-run")
        assert "no hall" not in harness.farm(*words)
        monkeypatch.setattr(paths, "at_desk", lambda: True)  # this Redis is on this machine
        for command in (words, ("check", file)):
            said = " ".join(harness.farm(*command).split())
            assert f"which is no hall: found-at-the-desk ({program})" in said
            assert "`farm season preflight` there tries them" in said


def test_a_farm_without_a_season_says_how_to_begin_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a desk it is no demo: that would be given the desk's engines."""
    with harness.Redis(tmp_path / "redis") as server:
        monkeypatch.setenv("FARM_REDIS_URL", server.url_of(harness.OPERATOR))
        assert "`farm season launch demo` starts one" in harness.farm("status")
        monkeypatch.setattr(paths, "at_desk", lambda: True)
        assert "`farm season new FILE` writes one" in harness.farm("status")


def test_no_command_takes_what_is_no_number_for_one() -> None:
    """``nan`` and ``inf`` are numbers to click: an option that takes them has another type."""
    asked: list[str] = []
    groups: list[tuple[str, click.Command]] = [("farm", commands.farm)]
    while groups:
        path, command = groups.pop()
        for option in command.params:
            if isinstance(option.type, click.types.FloatParamType):
                asked.append(f"{path} {option.opts[0]}")
                assert isinstance(option.type, numbers.Number), f"{path} {option.opts[0]}"
        if isinstance(command, click.Group):
            context = click.Context(command)
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                groups.append((f"{path} {name}", below))
    assert len(asked) > 15
    for word in ("nan", "inf", "-inf"):
        for words in (("rate", "x.pgn", "--average"), ("forecast", "demo", "--rating-error")):
            refused = harness.farm(*words, word, code=2)
            assert "is no number that can be counted with" in refused or "range" in refused
