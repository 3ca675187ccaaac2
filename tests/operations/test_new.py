"""``farm new``: a few answers become a season file that can be launched."""

from __future__ import annotations

import functools
import json
import os
import pathlib
import pty
import re
import subprocess
import sys

import pytest
from click import testing

from orchestrator import commands
from orchestrator.commands import programs
from orchestrator.ledger import embedded_redis
from orchestrator.season.file import load
from orchestrator.season.fold import plan
from worker_cpu.hall import directory

PATIENCE = 120.0  # s


def made(place: pathlib.Path, *words: str, code: int = 0) -> str:
    """Write a season in a folder, asking nothing; return what is said."""
    done = testing.CliRunner().invoke(commands.farm, ["new", str(place / "my-cup.toml"), *words])
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.parametrize("kind", ["round-robin", "knockout", "gauntlet", "swiss"])
@pytest.mark.parametrize("engines", [2, 3, 6, 17])
def test_every_format_takes_every_field(tmp_path: pathlib.Path, kind: str, engines: int) -> None:
    """The file is loaded, with as many engines as were named, and has games."""
    made(tmp_path, "--format", kind, "--engines", ",".join(["farm-engine"] * engines), "--yes")
    loaded = load.load(tmp_path / "my-cup.toml")
    assert len({engine.id for engine in loaded.engines}) == engines
    schedules = plan.schedules(loaded.season, engines).values()
    assert all(schedule.games > 0 for schedule in schedules)
    assert len(loaded.books["balanced"]) > 200


@pytest.mark.parametrize(("kind", "first"), [("round-robin", "main"), ("knockout", "semifinal")])
def test_a_season_can_wait_for_an_announced_time(
    tmp_path: pathlib.Path, kind: str, first: str
) -> None:
    """The mark taken away from one comment, the first event has a gate, and how to open it."""
    made(tmp_path, "--format", kind, "--engines", "a,b,c,d", "--yes")
    file = tmp_path / "my-cup.toml"
    text = file.read_text()
    assert text.count('# break = "operator"') == 1
    assert f"farm season amend gate {first} --at" in text
    file.write_text(text.replace('# break = "operator"', 'break = "operator"'))
    assert load.load(file).season.events[0].break_ == "operator"


@pytest.mark.parametrize("kind", ["round-robin", "gauntlet", "swiss"])
def test_a_final_is_added(tmp_path: pathlib.Path, kind: str) -> None:
    """The first two meet again, by the time, limits and early ends of the event before."""
    made(tmp_path, "--format", kind, "--engines", "a b c d", "--final", "4", "--yes")
    main, final = load.load(tmp_path / "my-cup.toml").season.events
    assert final.format.kind == "match"
    assert (main.promote[0].top, main.promote[0].to) == (2, "final")
    for key in ("time_control", "limits", "adjudication", "book"):
        assert getattr(final, key) == getattr(main, key)


def test_a_final_in_comments_is_one_without_their_marks(tmp_path: pathlib.Path) -> None:
    """Who takes the marks away has the same final, and need write nothing."""
    made(tmp_path, "--engines", "a,b,c,d", "--yes")
    file = tmp_path / "my-cup.toml"
    above, mark, below = file.read_text().partition("# A final of the first two")
    _, _, lines = below.partition("\n")
    above = above.replace("# promote = ", "promote = ")
    file.write_text(above + mark + "\n" + re.sub(r"(?m)^# ", "", lines))
    main, final = load.load(file).season.events
    assert (main.limits, main.adjudication) == (final.limits, final.adjudication)
    assert final.id == "final"


def test_one_event_is_said_as_one(tmp_path: pathlib.Path) -> None:
    """Sentences about a season count as people do."""
    said = made(tmp_path, "--format", "round-robin", "--engines", "a,b,c", "--yes")
    assert "3 engines, 1 event, 6 games" in said


def test_answers_are_in_the_file(tmp_path: pathlib.Path) -> None:
    """Name, engines by name and path, games, time; XBoard engines are known by their names."""
    words = ("--name", 'The "Cup"', "--engines", "stockfish,phalanx, ./a/mine", "--games", "4")
    told = json.loads(made(tmp_path, *words, "--time", "10s+100ms", "--json"))
    assert (told["name"], told["games"]) == ('The "Cup"', 12)
    loaded = load.load(tmp_path / "my-cup.toml")
    assert (loaded.season.id, loaded.season.name) == ("my-cup", 'The "Cup"')
    assert loaded.season.events[0].name == "Round robin"  # the Event tag has both names
    assert [e.protocol for e in loaded.engines] == ["uci", "xboard", "uci"]
    assert loaded.engines[2].command == (str(pathlib.Path("a/mine").absolute()),)
    assert loaded.season.events[0].time_control.base_ms == 10_000


OLD = """#!/bin/sh
while read -r word rest; do
  case $word in
    uci) exit 1;;
    protover) echo 'feature myname="Old One" done=1';;
    ping) echo "pong $rest";;
    go) echo "move e2e4";;
    quit) exit 0;;
  esac
done
"""
MISSING = f"no such network {'n' * 150}.nn"  # longer than what a verdict has of a last line
BROKEN = f"#!/bin/sh\necho {MISSING} >&2\nexit 7\n"
PLAYING = f"#!/bin/sh\nexec {pathlib.Path(sys.executable).parent}/farm-engine --nodes 400\n"


def program(path: pathlib.Path, text: str) -> str:
    """Write an engine's program and return its path."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def place(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return a folder without a farm, in which engines of the test's own may be read."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARM_SANDBOX", "plain")
    for name in ("FARM_REDIS_URL", "FARM_REDIS_URL_FILE", "FARM_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_beside_a_running_farm_the_season_is_launched_in_it(place: pathlib.Path) -> None:
    """What to type next begins a farm, or is the launch in the farm that runs in the folder."""
    words = ("--engines", "farm-engine,farm-engine", "--yes")
    assert made(place, *words).endswith("my-cup.toml --until-finished\n")
    (place / "my-cup.toml").unlink()
    with embedded_redis.EmbeddedRedis(place / ".farm/redis"):
        assert f"farm season launch {place / 'my-cup.toml'}\n" in made(place, *words)


def test_each_engine_is_started_once_before_anything_is_launched(place: pathlib.Path) -> None:
    """Its protocol is found out; one that fails is named with its reason, here and afterwards."""
    old, broken = program(place / "bin/old", OLD), program(place / "bin/broken", BROKEN)
    words = ("--engines", f"farm-engine,{old},{broken}", "--yes", "--json")
    told = json.loads(made(place, *words))
    assert [e.protocol for e in load.load(place / "my-cup.toml").engines] == [
        "uci",
        "xboard",
        "uci",
    ]
    assert len(told["warnings"]) == 1
    for said in ("broken fails", "exit 7", "no such network", "`farm engine test broken"):
        assert said in told["warnings"][0]
    assert sorted(path.name for path in place.iterdir()) == ["bin", "books", "my-cup.toml"]

    run = functools.partial(testing.CliRunner().invoke, commands.farm)
    checked = run(["season", "check", "my-cup.toml", "--start", "--json"])
    assert json.loads(checked.output)["warnings"] == told["warnings"]
    assert json.loads(run(["season", "check", "my-cup.toml", "--json"]).output)["warnings"] == []
    said = run(["season", "check", "my-cup.toml", "--start"]).output
    assert said.endswith("Started as in a game: 2 of 3 engines play\n")
    tried = run(["engine", "test", "old", "--file", "my-cup.toml", "--games", "1"])
    assert tried.exit_code == 0, tried.output
    assert "test-1: old - Farm Engine" in tried.output
    rows = json.loads(run(["engine", "list", "--file", "my-cup.toml", "--json"]).output)
    assert [row["engine"] for row in rows] == ["farm-engine", "old", "broken"]
    assert "protocol: xboard" in run(["engine", "show", "old", "--file", "my-cup.toml"]).output
    other = run(["engine", "test", "old", "--file", "my-cup.toml", "--event", "cup"])
    assert "--event: found 'cup'; allowed: main" in other.output
    assert not (place / ".farm").exists()


def test_an_entry_without_its_protocol_is_told_so(place: pathlib.Path) -> None:
    """By its program's name before anything is started, else by a start with the other one."""
    old, known = program(place / "bin/old", OLD), program(place / "bin/gnuchess", OLD)
    made(place, "--engines", f"farm-engine,{old},{known}", "--yes")
    path = place / "my-cup.toml"
    path.write_text(path.read_text().replace('protocol = "xboard"\n', ""))
    run = functools.partial(testing.CliRunner().invoke, commands.farm)
    warnings = json.loads(run(["season", "check", path.name, "--json"]).output)["warnings"]
    assert len(warnings) == 1
    assert "gnuchess" in warnings[0]
    assert 'programs of that name speak XBoard: protocol = "xboard" belongs' in warnings[0]
    started = json.loads(run(["season", "check", path.name, "--json", "--start"]).output)
    failed = [warning for warning in started["warnings"] if " fails when it is started" in warning]
    assert [warning.split()[0] for warning in failed] == ["old", "gnuchess"]
    assert all('; it plays with protocol = "xboard" in its entry' in said for said in failed)


def test_no_engine_is_started_beside_a_game(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a game runs in the hall nothing is said against an engine that nobody has tried."""
    monkeypatch.setenv("FARM_DATA", str(place))
    with directory.HallDirectory(place / "halls" / "hall-1").locked(1) as lock:
        assert lock is not None
        told = json.loads(made(place, "--engines", "farm-engine,farm-engine", "--yes", "--json"))
    assert len(told["warnings"]) == 1
    said = "not started to see whether they play: farm-engine: a game runs in hall-1"
    assert told["warnings"][0].startswith(said)


def test_what_does_not_play_is_not_offered(
    place: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the programs that are here those that play are the usual field; the others are named."""
    for name in ("weiss", "seer"):
        program(place / "bin" / name, PLAYING)
    program(place / "bin/sjeng", BROKEN)
    monkeypatch.setenv("PATH", f"{place / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(programs, "GAMES", str(place / "bin"))  # no engine of this machine
    said = made(place, "--yes")
    assert [e.id for e in load.load(place / "my-cup.toml").engines] == ["seer", "weiss"]
    assert "sjeng is here and does not play: " in said
    assert "exit 7" in said
    assert said.count("no such network") == 1
    assert f"{MISSING} (sandbox: " in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--engines", "stockfish"), "--engines: found 1"),
        (("--engines", "a,b", "--games", "3"), "--games: found 3"),
        (("--engines", "a,b,c", "--format", "match"), "--format: found a match of 3"),
        (("--engines", "a,b", "--time", "soon"), "--time: found 'soon'"),
        (("--engines", "a,b", "--time", "soon"), "allowed: minutes+seconds such as 3+2"),
        (("--engines", "a,b", "--time", "3/0"), "found '3/0' (give a base time above 0); allowed"),
        (("--engines", "a,b", "--final", "4"), "--final: found a match"),
        (("--engines", "a,b,c", "--final", "3"), "--final: found 3"),
        (("--engines", "a,b", "--format", "swiss", "--games", "9"), "9 Swiss rounds"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_left(
    tmp_path: pathlib.Path, words: tuple[str, ...], said: str
) -> None:
    """The option is named with what it allows; no half of a season is written."""
    assert said in made(tmp_path, *words, code=2)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_answers_on_a_pipe_are_not_passed_over_without_a_word(tmp_path: pathlib.Path) -> None:
    """Without a terminal nothing is asked, and that is said; --yes wants it, and hears nothing."""
    words = ("--engines", "a,b", "--format", "match")
    said = made(tmp_path, *words)
    assert "No terminal, so nothing is asked" in said
    (tmp_path / "my-cup.toml").unlink()
    assert "No terminal" not in made(tmp_path, *words, "--yes")


def test_a_file_that_is_there_stays(tmp_path: pathlib.Path) -> None:
    """Nobody's season is written over, and no book either."""
    (tmp_path / "books").mkdir()
    own = tmp_path / "books" / "balanced.pgn"
    own.write_text("1. e4 e5 2. Nf3 Nc6 *\n")
    made(tmp_path, "--engines", "farm-engine,farm-engine", "--format", "round-robin")
    before = (tmp_path / "my-cup.toml").read_bytes()
    assert "is there already" in made(tmp_path, "--yes", code=3)
    assert (tmp_path / "my-cup.toml").read_bytes() == before
    assert own.read_text() == "1. e4 e5 2. Nf3 Nc6 *\n"


class Terminal:
    """``farm new`` on a terminal of its own, with what it has shown there."""

    def __init__(self, place: pathlib.Path, typed: str = "", games: str = "/none") -> None:
        """Type something before the program is started."""
        self._ours, theirs = pty.openpty()
        main = f"from orchestrator.commands import main, programs; programs.GAMES = {games!r};"
        command = [sys.executable, "-c", f"{main} main()", "new", "my-cup.toml"]
        self.shown = ""
        self.type(typed)
        # No engine of this machine.
        known = f"{games}:{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"
        self._process = subprocess.Popen(
            [*command, "--name", "Autumn"],
            cwd=place,
            env=os.environ | {"PATH": known},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._ours, text.encode())

    def read_until(self, text: str) -> None:
        """Read until a text is shown."""
        while text not in self.shown and self._read():
            pass
        assert text in self.shown

    def _read(self) -> bool:
        try:
            self.shown += os.read(self._ours, 4096).decode()
        except OSError:  # nobody writes any more
            return False
        return True

    def end(self) -> str:
        """Return all that was shown, when the program has ended well."""
        while self._read():
            pass
        code = self._process.wait(PATIENCE)
        os.close(self._ours)
        assert code == 0, self.shown
        return self.shown


def test_on_a_terminal_questions_are_asked(tmp_path: pathlib.Path) -> None:
    """Each with its usual answer; a wrong one is asked again, what an option says is not asked."""
    engines = ("farm-engine", "farm-engine farm-engine")
    answers = (*engines, "Mach", "Match", "few", "5", "6", "soon", "1+1")
    text = Terminal(tmp_path, "".join(f"{answer}\n" for answer in answers)).end()
    time_control = "5. Time control as chess writes it (3+2: 3 minutes, and 2 seconds a move)"
    for question in ("2. Engines", "3. Format", "4. Games", time_control):
        assert question in text
    assert "1. " not in text
    assert "6. " not in text, "a match has no final"
    wrongs = ("found 1; allowed: 2 to 64", "found 'Mach'", "found 'few'", "found 5", "found 'soon'")
    for wrong in wrongs:
        assert text.count(f"Error: {wrong}") == 1, text
    season = load.load(tmp_path / "my-cup.toml").season
    assert (season.name, season.events[0].format.kind) == ("Autumn", "match")
    assert "6 games" in text


def test_a_program_that_is_not_here_is_doubted_at_once(tmp_path: pathlib.Path) -> None:
    """A mistyped name is asked again; who means the hall's says the same again."""
    mistyped, meant = "farm-engine farm-engin", "farm-engine the-halls-own"
    text = Terminal(tmp_path, f"{mistyped}\n{meant}\n{meant}\n\n\n\n").end()
    for name in ("farm-engin", "the-halls-own"):
        assert text.count(f"Error: no program on this machine: {name}; if the hall has it") == 1
    assert load.load(tmp_path / "my-cup.toml").engines[1].command == ("the-halls-own",)


def test_a_comma_among_blanks_is_told_to_part_alone(tmp_path: pathlib.Path) -> None:
    """Several engines that became one name are quoted, and why they did is said."""
    mixed, meant = "farm-engine, farm-engine the-halls-own", "farm-engine farm-engine"
    text = Terminal(tmp_path, f"{mixed}\n{meant}\n\n\n\n").end()
    told = "no program on this machine: 'farm-engine the-halls-own'; if the hall has it, give the"
    assert f"{told} same answer again. With a comma in the answer blanks do not part names" in text


@pytest.mark.parametrize(("answer", "events"), [("", 1), ("3\n4", 2)])
def test_a_final_is_asked_for(tmp_path: pathlib.Path, answer: str, events: int) -> None:
    """Nobody has to know the option; who wants none presses Enter."""
    engines = " ".join(["farm-engine"] * 3)
    text = Terminal(tmp_path, f"{engines}\n\n\n\n{answer}\n").end()
    assert "6. Games of a final of the first two (an even number; 0: no final) [0]" in text
    assert ("Error: found 3; allowed: an even number" in text) == (events == 2)
    assert len(load.load(tmp_path / "my-cup.toml").season.events) == events


def test_what_is_typed_while_engines_are_started_is_no_answer(place: pathlib.Path) -> None:
    """Nobody sees it there; what is done meanwhile is said."""
    for name in ("weiss", "seer"):
        program(place / "bin" / name, PLAYING)
    terminal = Terminal(place, "not an answer\n", games=str(place / "bin"))
    terminal.read_until("2. Engines")
    assert "Of the engines that are here, seer, weiss, each is started once now" in terminal.shown
    terminal.type("\n" * 5)
    assert "Error" not in terminal.end()
    engines = load.load(place / "my-cup.toml").engines
    assert {engine.name for engine in engines} == {"seer", "weiss"}


@pytest.mark.parametrize(("kind", "games"), [("cup", 12), ("league", 12)])
def test_a_line_makes_a_cup_or_a_league(tmp_path: pathlib.Path, kind: str, games: int) -> None:
    """The short form writes what the questions would: engines in order, --tc in seconds."""
    file = tmp_path / "mine.toml"
    words = [kind, "stockfish", "phalanx", "./a", "./b", "--tc", "40/10+0.1", "--file", str(file)]
    done = testing.CliRunner().invoke(commands.farm, [*words, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["games"] == games
    loaded = load.load(file)
    assert [engine.name for engine in loaded.engines] == ["stockfish", "phalanx", "a", "b"]
    control = loaded.season.events[0].time_control
    assert (control.moves, control.base_ms, control.increment_ms) == (40, 10_000, 100)
    assert testing.CliRunner().invoke(commands.farm, words).exit_code == 3, "it is there already"
    wrong = testing.CliRunner().invoke(commands.farm, [kind, "a", "b", "--tc", "soon"])
    assert (wrong.exit_code, "--tc: found 'soon'" in wrong.output) == (2, True)
