"""Roster files: what they say, what is refused with its clause, and where they come from."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import driver
import jsonschema
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.commands import rosters
from orchestrator.common import errors
from orchestrator.engines import builds
from orchestrator.season.amend import engine_update, operations
from orchestrator.season.file import load as file_load
from orchestrator.season.file import roster
from orchestrator.season.spec import model

SHA = "0" * 63 + "1"
ENGINES = f"""
schema = 1

[[engine]]
name = "Igel 2.3"
id = "igel"
version = "2.3"
family = "Igel"
author = "V. Shcherbyna"
country = "ch"
command = {{ avx2 = ["./igel-avx2", "-x"], popcnt = ["./igel-popcnt"], x86-64 = ["./igel"] }}
directory = "/opt/igel"
network = "igel.nn"
checksums = {{ "./igel-avx2" = "{SHA}", "igel.nn" = "{SHA}" }}
rating = 3100
provisional = true
options = {{ "Move Overhead" = 100 }}
settings.final = {{ Contempt = 3 }}

[[engine]]
name = "Old One"
command = ["old"]
dropped = "no release for three years"

[[engine]]
name = "Allie"
command = {{ cpu = ["allie-cpu"], gpu = ["allie-cuda"] }}
competition = "gpu"
box = "gpu-1"
neural = {{ training = "Own", network = "N1", engine = "Allie" }}
"""


def season(text: str) -> str:
    """Return the driver's season with a roster file before two engines of its own."""
    own = driver.season_text(engines=2)
    assert "[roster]" in own
    return own.replace("[roster]", f'[roster]\nfile = "{text}"')


def load(folder: Path, engines: str = ENGINES, text: str = "") -> file_load.Loaded:
    """Load a season that names an engines file."""
    (folder / "engines.toml").write_text(engines)
    return driver.load(folder, text or season("engines.toml"))


def test_a_roster_file_comes_before_the_engines_of_the_season(tmp_path: Path) -> None:
    """All of an entry is in the season; who is dropped is not, and the next moves up."""
    loaded = load(tmp_path)
    assert [engine.id for engine in loaded.engines] == ["igel", "allie", "e1", "e2"]
    igel = loaded.engines[0]
    assert (igel.version, igel.family, igel.country) == ("2.3", "Igel", "ch")
    assert (igel.network, igel.checksums["igel.nn"]) == ("igel.nn", SHA)
    assert igel.settings["final"] == {"Contempt": 3}


def test_the_launch_holds_the_roster_file_whole(tmp_path: Path) -> None:
    """A launched season needs the file no more: its journal has every entry."""
    (launched,) = operations.launch(load(tmp_path), "test", "seed", "hall", "1")
    entries = launched.data["season"]["roster"]["engine"]
    assert [entry["name"] for entry in entries[:3]] == ["Igel 2.3", "Old One", "Allie"]
    assert entries[1]["dropped"] == "no release for three years"
    assert driver.Driver.launched(load(tmp_path)).state.engines["igel"].rating == 3100


@pytest.mark.parametrize(
    ("flags", "build", "program"),
    [
        ({"lm", "popcnt", "sse4_1", "avx2", "bmi2"}, "avx2", "./igel-avx2"),
        ({"lm", "popcnt", "sse4_1"}, "popcnt", "./igel-popcnt"),
        ({"lm"}, "x86-64", "./igel"),
        (set(), "", "./igel"),
    ],
)
def test_the_best_build_for_the_processor_plays(
    tmp_path: Path, flags: set[str], build: str, program: str
) -> None:
    """N1 Compiles: the best one that the processor supports, and it is named."""
    chosen = builds.best(load(tmp_path).engines[0], flags)
    assert (chosen.build, chosen.command[0]) == (build, program)


def test_an_engine_of_the_gpu_competition_plays_its_gpu_build(tmp_path: Path) -> None:
    """S17-2: the competition, not the processor, chooses it."""
    allie = load(tmp_path).engines[1]
    assert (allie.command, dict(allie.builds)) == (("allie-cuda",), {})
    assert builds.best(allie, {"avx2", "popcnt", "lm"}).command == ("allie-cuda",)


def test_a_gpu_engine_without_a_box_is_refused(tmp_path: Path) -> None:
    """S17-2b: it would play in the hall, on the host of the CPU competition."""
    with pytest.raises(errors.SeasonFileError, match=r"engine allie\] box.*S17-2b"):
        load(tmp_path, ENGINES.replace('box = "gpu-1"\n', ""))
    played = driver.Driver.launched(load(tmp_path))
    entry = engine_update.entries_of(played.state)["allie"].model_copy(update={"box": None})
    with pytest.raises(errors.RefusedError, match=r"without a box.*S17-2b"):
        engine_update.update(played.state, entry, None, played.now_ms, "ann", "moved")


def test_processor_flags_are_read_from_the_kernel_text() -> None:
    """x86 calls them flags, ARM Features; the first processor speaks for all."""
    assert builds.processor_flags("processor\t: 0\nflags\t\t: lm avx2\n") == {"lm", "avx2"}
    assert builds.processor_flags("Features : asimd fp\nFeatures : fp\n") == {"asimd", "fp"}


@pytest.mark.parametrize(
    ("old", "new", "where", "found", "allowed"),
    [
        ('["old"]', "[]", "[engine Old One] command", "[]", "at least one"),
        ("avx2 = [", "avx3 = [", "[engine igel] builds.avx3", "'avx3'", "avx512, bmi2"),
        (f'"igel.nn" = "{SHA}"', '"igel.nn" = "abc"', "checksums.igel.nn", "'abc'", "64"),
        ("country", "contry", "[engine igel] contry", "unknown key", "did you mean country"),
        ("schema = 1", "schema = 2", "schema", "2", "1"),
        ("schema = 1", "schema = 1\nrating = 1", "rating", "unknown key", "belongs in [[engine]]"),
        ("3100", '"3100"', "[engine igel] rating", "'3100'", "whole number"),
    ],
)
def test_a_bad_roster_file_is_refused_by_place(
    tmp_path: Path, old: str, new: str, where: str, found: str, allowed: str
) -> None:
    """The file, the entry and key, what was found and what is allowed."""
    assert old in ENGINES
    with pytest.raises(errors.SeasonFileError) as refused:
        load(tmp_path, ENGINES.replace(old, new, 1))
    assert refused.value.file == str(tmp_path / "engines.toml")
    assert where in refused.value.where
    assert found in refused.value.found
    assert allowed in refused.value.allowed


def _neural(name: str, training: str, network: str, engine: str) -> str:
    parts = f'training = "{training}", network = "{network}", engine = "{engine}"'
    return f'[[engine]]\nname = "{name}"\ncommand = ["x"]\nneural = {{ {parts} }}\n'


def test_parts_taken_from_two_entries_are_not_unique(tmp_path: Path) -> None:
    """S16-16c: two parts must be unlike those of every other entry, not of each one."""
    clash = "schema = 1\n" + "".join(
        (
            _neural("Leela", "Zero", "T40", "Lc0"),
            _neural("Allie", "Own", "AllieNet", "Allie"),
            _neural("Mixed", "Zero", "AllieNet", "Mixed"),
        )
    )
    with pytest.raises(errors.SeasonFileError) as refused:
        load(tmp_path, clash)
    text = str(refused.value)
    assert "[roster.engine Mixed] neural" in text
    assert "the same training as Leela and the same network as Allie" in text
    assert "S16-16" in text
    excepted = clash + 'exception = "voted by the committee"\n'
    assert len(load(tmp_path, excepted).engines) == 5


@pytest.mark.parametrize(
    ("event", "more", "clause"),
    [
        ('competition = "cpu"\nentrants = "roster"', "", "engines of cpu (S17-2)"),
        ('entrants = ["igel", "old-one", "e1"]', "", "who is dropped: no release"),
        ('entrants = ["igel", "old-one", "e1"]', "", "(CUP-1c, FRC-1c)"),
        ('entrants = "roster"', "options = { Threads = 99 }", "S16 Engine configuration"),
    ],
)
def test_a_roster_that_breaks_a_rule_is_refused_with_its_clause(
    tmp_path: Path, event: str, more: str, clause: str
) -> None:
    """Limits, competition and dropped engines: at `farm check` and at the launch alike."""
    limits = 'limits = { threads = 43 }\nadjudication = { rules = "s16", syzygy = false }\n'
    text = season("engines.toml").replace('entrants = "roster"', limits + event)
    with pytest.raises(errors.SeasonFileError) as refused:
        load(tmp_path, ENGINES + more, text)
    assert clause in str(refused.value)


def test_the_schema_of_roster_files_takes_what_the_farm_takes(tmp_path: Path) -> None:
    """`farm schema engines` is a JSON Schema that knows commands by host class."""
    shown = testing.CliRunner().invoke(commands.farm, ["schema", "engines"])
    assert shown.exit_code == 0, shown.output
    schema = json.loads(shown.output)
    validator = jsonschema.Draft202012Validator(schema)
    raw: dict[str, Any] = tomllib.loads(ENGINES)
    validator.validate(raw)
    raw["engine"][0]["command"]["avx3"] = ["x"]
    assert not validator.is_valid(raw)


CUTECHESS = [
    {
        "name": "Stockfish 16",
        "command": "./stockfish --quiet",
        "workingDirectory": "/opt/stock fish",
        "arguments": ["bench"],
        "protocol": "uci",
        "options": [{"name": "Move Overhead", "value": 5}, {"name": "Own", "value": False}],
        "initStrings": ['say "hi"\t\x7f'],
        "whitepov": True,
        "restart": "auto",
    },
    {"name": "stockfish-16", "command": "sf", "protocol": "xboard"},
]


def test_cutechess_engines_become_a_roster(tmp_path: Path) -> None:
    """`farm engine import` keeps command, directory, options and lines; ids are unique."""
    source, target = tmp_path / "engines.json", tmp_path / "engines.toml"
    source.write_text(json.dumps(CUTECHESS))
    runner = testing.CliRunner()
    arguments = ["engine", "import", str(source), "-o", str(target)]
    done = runner.invoke(commands.farm, arguments)
    assert done.exit_code == 0, done.output
    first, second = file_load.load_engines(target)
    assert (roster.id_of(first), roster.id_of(second)) == ("stockfish-16", "stockfish-16-2")
    assert first.command == ("./stockfish", "--quiet", "bench")
    assert first.directory == "/opt/stock fish"
    assert first.options == {"Move Overhead": "5", "Own": "false"}
    assert first.init == ('say "hi"\t\x7f',)
    assert first.white_pov
    assert second.protocol == "xboard"
    assert runner.invoke(commands.farm, arguments).exit_code == 2


def test_relative_folders_of_cutechess_are_its_files(tmp_path: Path) -> None:
    """A roster names no folder that says nothing in a hall; one that is not here is told."""
    home = tmp_path / "chess"
    (home / "engines" / "sf").mkdir(parents=True)
    (home / "my engine").write_text("program")
    listed = [
        {"name": "One", "command": "./one", "workingDirectory": "engines/sf"},
        {"name": "Two", "command": "bin/two --quiet"},
        {"name": "Three", "command": "./my engine", "workingDirectory": "."},
        {"name": "Four", "command": "four", "workingDirectory": "../gone"},
        {"name": "Five", "command": "five"},
    ]
    (home / "engines.json").write_text(json.dumps(listed))
    target = tmp_path / "engines.toml"
    arguments = ["engine", "import", str(home / "engines.json"), "-o", str(target)]
    done = testing.CliRunner().invoke(commands.farm, arguments)
    assert done.exit_code == 0, done.output
    entries = file_load.load_engines(target)
    assert [(entry.directory, entry.command[0]) for entry in entries] == [
        (str(home / "engines" / "sf"), "./one"),
        (str(home), "bin/two"),
        (str(home), "./my engine"),
        (str(tmp_path / "gone"), "four"),
        (None, "five"),
    ]
    told = [line for line in done.output.splitlines() if "not on this machine" in line]
    assert told == [f"farm: Four: its directory {tmp_path}/gone is not on this machine"]


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("[", "Expecting"),
        ('[{"command": "x"}]', "name"),
        ('[{"name": "x"}]', "no command"),
        ('[{"name": "x", "command": "x", "ponder": true}]', "ponder"),
        ('[{"name": "x", "command": "x", "protocol": "ucci"}]', "xboard"),
    ],
)
def test_a_bad_engines_json_is_refused(tmp_path: Path, content: str, found: str) -> None:
    """What cannot be taken over is named, and nothing is written."""
    (tmp_path / "engines.json").write_text(content)
    target = tmp_path / "engines.toml"
    arguments = ["engine", "import", str(tmp_path / "engines.json"), "-o", str(target)]
    done = testing.CliRunner().invoke(commands.farm, arguments)
    assert done.exit_code == 2
    assert found in done.output
    assert not target.exists()


def test_a_written_roster_reads_as_it_was(tmp_path: Path) -> None:
    """Builds, checksums, settings and odd characters survive the file."""
    (tmp_path / "engines.toml").write_text(ENGINES)
    entries = file_load.load_engines(tmp_path / "engines.toml")
    (tmp_path / "again.toml").write_text(roster.as_toml(entries))
    assert file_load.load_engines(tmp_path / "again.toml") == entries


def test_a_program_that_is_found_from_nowhere_is_refused(tmp_path: Path) -> None:
    """Engines start in a folder of their own: a relative path needs its entry's directory."""
    text = driver.season_text().replace('command = ["engine-1"]', 'command = ["./engine-1"]')
    with pytest.raises(errors.SeasonFileError) as refused:
        driver.load(tmp_path, text)
    assert refused.value.where == "[roster.engine e1] command"
    assert "'./engine-1'" in refused.value.found


def test_a_directory_that_is_found_from_nowhere_is_refused(tmp_path: Path) -> None:
    """A hall may run anywhere: a relative directory is refused before it holds the season."""
    text = driver.season_text().replace(
        'command = ["engine-1"]', 'command = ["./engine-1"]\ndirectory = "eng"'
    )
    with pytest.raises(errors.SeasonFileError) as refused:
        driver.load(tmp_path, text)
    assert refused.value.where == "[roster.engine e1] directory"
    assert "'eng'" in refused.value.found


@pytest.mark.parametrize(
    "words",
    [
        ("check", "season.toml"),
        ("engine", "list", "--file", "engines.toml"),
        ("engine", "test", "igel", "--file", "engines.toml"),
        ("engine", "add", "igel", "--file", "engines.toml"),
        ("engine", "update", "igel", "--file", "engines.toml"),
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_command_refuses_it_in_the_same_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """A roster file is refused by its place, before anything is asked of a farm."""
    unplaced = ENGINES.replace('directory = "/opt/igel"\n', "")
    assert unplaced != ENGINES
    (tmp_path / "engines.toml").write_text(unplaced)
    (tmp_path / "short.epd").write_text(driver.book_text(32))
    (tmp_path / "season.toml").write_text(season("engines.toml"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FARM_REDIS_URL", raising=False)
    done = testing.CliRunner().invoke(commands.farm, words)
    assert done.exit_code == 2, done.output
    told = (
        "engines.toml: [engine igel] command: found './igel', a relative path without `directory`"
    )
    assert told in done.output


def test_who_is_dropped_needs_no_place(tmp_path: Path) -> None:
    """The entry of an engine that the organizers left out may name anything."""
    loaded = load(tmp_path, ENGINES.replace('["old"]', '["./old"]'))
    assert "old-one" not in {engine.id for engine in loaded.engines}


def test_checksums_of_files_at_hand_are_pinned(tmp_path: Path) -> None:
    """`--pin` adds the SHA-256 of program and network; what the entry says stays."""
    (tmp_path / "engine").write_text("#!/bin/sh\n")
    entry = model.EngineEntry(
        name="Own",
        command=("./engine",),
        directory=str(tmp_path),
        network="missing.nn",
        checksums={"extra": SHA},
    )
    pinned = rosters.pinned(entry).checksums
    assert pinned.keys() == {"./engine", "extra"}
    assert pinned["./engine"].startswith("a8076d3d28d21e02")
    assert pinned["extra"] == SHA


def test_a_bare_program_is_pinned_where_a_hall_finds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not only in this account's PATH: the farm's own engines, and Debian's in /usr/games."""
    monkeypatch.setenv("PATH", "/nowhere")
    entry = model.EngineEntry(name="Own", command=("farm-engine",))
    assert rosters.pinned(entry).checksums.keys() == {"farm-engine"}


def test_lists_and_shows_a_roster_file(tmp_path: Path) -> None:
    """`farm engine list|show --file` need no farm; an unknown engine is refused by name."""
    (tmp_path / "engines.toml").write_text(ENGINES)
    runner, file = testing.CliRunner(), ["--file", str(tmp_path / "engines.toml")]
    listed = runner.invoke(commands.farm, ["engine", "list", *file, "--json"])
    states = {row["engine"]: row["state"] for row in json.loads(listed.output)}
    assert states == {
        "igel": "",
        "old-one": "dropped: no release for three years",
        "allie": "",
    }
    shown = runner.invoke(commands.farm, ["engine", "show", "igel", *file])
    assert "V. Shcherbyna" in shown.output
    refused = runner.invoke(commands.farm, ["engine", "show", "nobody", *file])
    assert refused.exit_code == 3
    assert "igel, old-one, allie" in refused.output


def test_a_file_that_cannot_be_read_is_said_to_be_that(tmp_path: Path) -> None:
    """There is no place in it to be repaired."""
    for path, reason in ((tmp_path / "no.toml", "No such file"), (tmp_path, "Is a directory")):
        done = testing.CliRunner().invoke(commands.farm, ["engine", "list", "--file", str(path)])
        assert done.exit_code == 2, done.output
        assert f"{path}: cannot be read: {reason}" in done.output.replace("\n", " ")


def test_a_season_beside_a_file_is_refused(tmp_path: Path) -> None:
    """Nobody can want both: one of them would be passed over without a word."""
    (tmp_path / "engines.toml").write_text(ENGINES)
    file = ["--file", str(tmp_path / "engines.toml")]
    for words in (["list", "autumn"], ["show", "igel", "--season", "autumn"]):
        done = testing.CliRunner().invoke(commands.farm, ["engine", *words, *file])
        assert done.exit_code == 2, done.output
        assert "name one of them" in done.output


@pytest.mark.parametrize(
    "words",
    [
        ("engine", "list", "autumn.toml"),
        ("engine", "show", "igel", "--season", "autumn.toml"),
        ("season", "standings", "autumn.toml"),
        ("season", "pause", "autumn.toml"),
        ("season", "abandon", "autumn.toml"),
    ],
    ids=lambda words: words[1],
)
def test_a_file_in_a_season_s_place_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """A season has an id: said before a farm is looked for, with what looks at a file."""
    monkeypatch.delenv("FARM_REDIS_URL", raising=False)
    done = testing.CliRunner().invoke(commands.farm, words)
    assert done.exit_code == 2, done.output
    assert "autumn.toml names a file" in done.output
    assert "farm engine list --file autumn.toml" in done.output


def test_old_engines_need_none_of_it() -> None:
    """A spec journaled before rosters had builds and checksums is read as it was."""
    spec = contract.EngineSpec.model_validate({"id": "a", "name": "A", "command": ["a"]})
    assert builds.best(spec, {"avx2"}) == spec
