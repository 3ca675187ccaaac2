"""The argument language: every switch means what it does elsewhere, or is refused by name."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

from orchestrator import contract
from orchestrator.common import errors
from worker_cpu.match import arguments, engines, switches

TWO = ["-engine", "cmd=true", "name=A", "-engine", "cmd=false", "name=B"]
CLOCK = ["-each", "tc=10+0.1"]


def read(*words: str) -> arguments.Settings:
    """Read a command line with two engines and a clock."""
    return arguments.read([*TWO, *CLOCK, *words])


def first(*words: str) -> engines.Engine:
    """Read one engine's words; the other one has a clock of its own."""
    return arguments.read(["-engine", *words, "-engine", "cmd=true", "tc=1"]).engines[0]


@pytest.mark.parametrize(
    ("words", "clock"),
    [
        (["tc=60"], {"base_ms": 60_000}),
        (["tc=8+0.08"], {"base_ms": 8_000, "increment_ms": 80}),
        (["tc=0:10+0.1"], {"base_ms": 10_000, "increment_ms": 100}),
        (["tc=40/1:30+1"], {"base_ms": 90_000, "increment_ms": 1_000, "moves": 40}),
        (["tc=0/60"], {"base_ms": 60_000}),
        (["st=0.5"], {"move_ms": 500}),
        (["nodes=1000"], {"nodes": 1000}),
        (["tc=inf", "depth=6"], {"depth": 6}),
        (["tc=10", "plies=6"], {"base_ms": 10_000, "depth": 6}),
        (["tc=2+0.02s"], {"base_ms": 2_000, "increment_ms": 20}),
        (["tc=inf/8+0.08"], {"base_ms": 8_000, "increment_ms": 80}),
        (["tc=infinite", "nodes=9"], {"nodes": 9}),
        (["tc=inf"], {"base_ms": engines.LONGEST_MS}),
    ],
)
def test_time_controls(words: list[str], clock: dict[str, int]) -> None:
    """Every form of a clock reads as both programs read it; times are seconds."""
    assert first("cmd=true", *words).control == contract.TimeControl.model_validate(clock)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["tc=x"],
        ["tc=0+1"],
        ["tc=1+inf"],
        ["tc=nan"],
        ["tc=10", "st=1"],
        ["st=0"],
        ["nodes=0"],
        ["tc=1:2:3:4"],
        ["tc=1000000"],
    ],
)
def test_a_clock_that_is_none_is_refused(words: list[str]) -> None:
    """No clock, two clocks and nonsense are wrong usage, with what is allowed."""
    with pytest.raises(errors.UsageError, match=r"-engine 1.*allowed"):
        first("cmd=true", *words)


def test_an_engine_has_all_its_keys(tmp_path: pathlib.Path) -> None:
    """Command, arguments, directory, options and the rest reach the referee's order."""
    engine = first(
        *("cmd=true", "name=X", f"dir={tmp_path}", "arg=-a b", "args=c 'd e'", "proto=xboard"),
        *("tc=1", "timemargin=20", "whitepov", "initstr=one\\ntwo", "stderr=err.txt"),
        *("option.Hash=32", "option.Threads=3", "option.Eval File=net.nnue", "restart=on"),
    )
    spec = engine.spec
    assert pathlib.Path(spec.command[0]).name == "true"
    assert spec.command[1:] == ("-a b", "c", "d e")
    assert (spec.name, spec.protocol, spec.directory) == ("X", "xboard", str(tmp_path))
    assert spec.options == {"Hash": "32", "Threads": "3", "Eval File": "net.nnue"}
    assert (spec.white_pov, spec.init) == (True, ("one", "two"))
    assert (engine.margin_ms, engine.threads) == (20, 3)
    assert engine.stderr == pathlib.Path("err.txt").absolute()


def test_each_stands_behind_what_an_engine_says_itself() -> None:
    """-each fills in what -engine leaves out, wherever it stands."""
    words = ["-each", "tc=5", "option.Hash=1", "timemargin=7", "-engine", "cmd=true", "st=2"]
    settings = arguments.read([*words, "option.Hash=2", "-engine", "cmd=true"])
    one, two = settings.engines
    assert one.control == contract.TimeControl(move_ms=2000)
    assert two.control == contract.TimeControl(base_ms=5000)
    assert (one.spec.options["Hash"], two.spec.options["Hash"]) == ("2", "1")
    assert (one.margin_ms, two.margin_ms) == (7, 7)


def test_names_are_unique_and_default_to_the_program() -> None:
    """An engine without a name has its program's; a second one is told apart."""
    settings = arguments.read(["-engine", "cmd=true", "-engine", "cmd=true", *CLOCK])
    assert [engine.spec.name for engine in settings.engines] == ["true", "true_2"]


def test_commands_are_found_by_directory_path_and_with_arguments(tmp_path: pathlib.Path) -> None:
    """A command is a file of the directory, a program of PATH, or a line with arguments."""
    program = tmp_path / "my engine"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert first("cmd=./my engine", f"dir={tmp_path}", "tc=1").spec.command == (str(program),)
    command = first("cmd=env true --x", "tc=1").spec.command
    assert pathlib.Path(command[0]).name == "env"
    assert command[1:] == ("true", "--x")


def test_a_program_of_the_directory_goes_before_one_in_the_path(tmp_path: pathlib.Path) -> None:
    """cmd=true dir=build is build/true, as with fastchess, whatever PATH has."""
    program = tmp_path / "true"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert first("cmd=true", f"dir={tmp_path}", "tc=1").spec.command == (str(program),)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("cmd=no-such-program", r"-engine 1 \(X\): .*no 'no-such-program' in PATH.*dir="),
        ("cmd=./mispelt", r"-engine 1 \(X\): .*no file {home}/mispelt; allowed: .*PATH.*dir="),
        ("cmd=mispelt --uci", r"no 'mispelt' in PATH, and no file {home}/mispelt"),
        ("cmd=text", "{home}/text is not executable"),
        ("cmd=text --uci", "{home}/text is not executable"),
        ("cmd={home}", "no file {home}"),
        ("cmd=it's", "No closing quotation"),
        ("cmd=", "no file"),
        (f"cmd={'x' * 300}", f"no file {{home}}/{'x' * 300}"),
        ("cmd=~nobody-of-this-name/engine", "no file {home}/~nobody"),
    ],
)
def test_a_program_that_is_not_there_is_refused(
    tmp_path: pathlib.Path, wanted: str, message: str
) -> None:
    """The engine, the path and how programs are looked for are named."""
    (tmp_path / "text").write_text("no program")
    with pytest.raises(errors.UsageError, match=message.format(home=tmp_path)):
        first(wanted.format(home=tmp_path), f"dir={tmp_path}", "name=X", "tc=1")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("#!/usr/bin/nopython\n", "its interpreter '/usr/bin/nopython' is missing"),
        ("#!/bin/sh -e\r\n", None),
        ("#! /bin/sh\r\necho\r\n", r"has CR LF line ends.*'/bin/sh\\r'"),
        ("#!/bin/sh", None),
        ("#!/usr/bin/env sh\n", None),
        ("#!/usr/bin/env -S sh script\n", None),
        ("#!/usr/bin/env nopython\n", "its interpreter 'nopython' is not in PATH"),
        ("#!/usr/bin/env sh\r\n", r"has CR LF line ends.*'sh\\r'"),
        ("#!/etc/passwd\n", "its interpreter '/etc/passwd' is not executable"),
        ("garbage", "is no program"),
        ("", "is no program"),
    ],
)
def test_a_file_that_no_kernel_runs_is_refused(
    tmp_path: pathlib.Path, content: str, message: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is missing is named, with the file, before the first game; no arguments mislead."""
    monkeypatch.setattr("worker_cpu.engines.local.EMULATORS", tmp_path / "none", raising=False)
    program = tmp_path / "engine"
    program.write_bytes(content.encode())
    program.chmod(0o755)
    if message is None:
        assert first("cmd=./engine", f"dir={tmp_path}", "tc=1").spec.command == (str(program),)
        return
    with pytest.raises(errors.UsageError, match=f"'{program}' .*{message}"):
        first("cmd=./engine", f"dir={tmp_path}", "tc=1")


def test_a_directory_that_is_not_there_is_refused(tmp_path: pathlib.Path) -> None:
    """No engine can start in it."""
    with pytest.raises(errors.UsageError, match=rf"dir=.*no directory {tmp_path}/none"):
        first("cmd=true", f"dir={tmp_path}/none", "tc=1")
    with pytest.raises(errors.UsageError, match="no directory"):
        first("cmd=true", f"dir={tmp_path}/{'x' * 300}", "tc=1")


# -- engines.json ----------------------------------------------------------------------


def configure(directory: pathlib.Path, *entries: dict[str, Any]) -> None:
    """Write ``engines.json``."""
    (directory / "engines.json").write_text(json.dumps(entries))


def test_conf_takes_an_engine_from_the_configuration(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """conf= reads cutechess' keys; what stands beside it on the command line wins."""
    monkeypatch.chdir(tmp_path)
    options = [{"name": "Hash", "value": 64}, {"name": "Ponder", "value": False}]
    entry = {"name": "Rook", "command": "true --uci", "protocol": "uci", "options": options}
    configure(tmp_path, entry | {"workingDirectory": str(tmp_path), "whitepov": True})
    engine = first("conf=Rook", "tc=1", "option.Hash=8")
    assert engine.spec.name == "Rook"
    assert engine.spec.command[1:] == ("--uci",)
    assert engine.spec.options == {"Hash": "8", "Ponder": "false"}
    assert engine.spec.white_pov
    assert not engine.spec.ponder
    configure(tmp_path, entry | {"ponder": True, "options": []})
    assert first("conf=Rook", "tc=1").spec.ponder


def test_conf_names_what_is_there(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown name is refused with the names of the file, a missing file with its places."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(errors.UsageError, match=r"no engines\.json"):
        first("conf=Rook", "tc=1")
    configure(tmp_path, {"name": "Rock", "command": "true"})
    with pytest.raises(errors.UsageError, match=r"did you mean Rock.*allowed: Rock"):
        first("conf=Rook", "tc=1")


# -- the match -----------------------------------------------------------------------------


def test_the_schedule_of_scripts() -> None:
    """-games, -rounds and -repeat mean pairs of games unless they say otherwise."""
    plan = read("-games", "2", "-rounds", "50", "-repeat").plan
    assert (plan.games, plan.rounds, plan.repeat) == (2, 50, 2)
    plan = read("-rounds", "50", "-repeat").plan
    assert (plan.games, plan.rounds, plan.repeat) == (2, 50, 2)
    plan = read("-games", "10", "-repeat").plan
    assert (plan.games, plan.rounds, plan.repeat) == (10, 1, 2)
    plan = read("-rounds", "10").plan
    assert (plan.games, plan.rounds, plan.repeat) == (1, 10, 1)
    plan = read("-noswap", "-reverse", "-tournament", "gauntlet").plan
    assert (plan.swap, plan.reverse, plan.kind) == (False, True, "gauntlet")


def test_each_dialect_has_its_own_defaults() -> None:
    """What a script leaves open means what its program means, and is said."""
    settings = read("-dialect", "fastchess")
    plan = settings.plan
    assert (plan.games, plan.rounds, plan.repeat, settings.output) == (2, 2, 2, "fastchess")
    assert "2 rounds, each of 2 games of one opening" in settings.remarks[0]
    plan = read("-dialect", "fastchess", "-rounds", "10").plan
    assert (plan.games, plan.rounds, plan.repeat) == (2, 10, 2)
    plan = read("-games", "100", "-rounds", "2", "-dialect", "fastchess").plan
    assert (plan.games, plan.rounds, plan.repeat) == (2, 100, 2)
    plan = read("-dialect", "fastchess", "-rounds", "10", "-games", "1").plan
    assert (plan.games, plan.rounds, plan.repeat) == (1, 10, 1)
    assert not read("-dialect", "fastchess", "-rounds", "5", "-repeat").remarks
    settings = read("-dialect", "cutechess", "-rounds", "10", "-repeat")
    plan = settings.plan
    assert (plan.games, plan.rounds, plan.repeat, settings.output) == (1, 10, 2, "cutechess")
    assert "10 games" in settings.remarks[0]
    plan = read("-dialect", "cutechess", "-games", "2").plan
    assert (plan.games, plan.rounds, plan.repeat) == (2, 1, 1)
    assert "one game a round" in read("-rounds", "10").remarks[0]


def test_what_stands_twice_counts_as_it_stands_last() -> None:
    """As with fastchess, and a note says so; arguments and first lines may be several."""
    settings = read(
        "-openings", "file=a.epd", "file=b.epd", "-rounds", "1", "-rounds", "2", "-repeat"
    )
    assert settings.openings is not None
    assert (settings.openings.file, settings.plan.rounds) == (pathlib.Path("b.epd"), 2)
    assert [remark.partition(" is given")[0] for remark in settings.remarks] == [
        "-rounds",
        "-openings file=",
    ]
    assert not read("-engine", "cmd=true", "arg=-a", "arg=-b").remarks


def test_each_goes_before_an_engine_in_the_other_programs() -> None:
    """Here what an engine says itself; a note tells the difference in both cases."""
    words = ["-engine", "cmd=true", "option.Hash=1", "arg=a", "-engine", "cmd=true", "tc=5"]
    words += ["-each", "tc=9", "option.Hash=2", "arg=b"]
    one, two = arguments.read(words).engines
    assert (one.spec.options["Hash"], two.control.base_ms) == ("1", 5_000)
    settings = arguments.read([*words, "-dialect", "fastchess", "-repeat", "-rounds", "1"])
    one, two = settings.engines
    assert (one.spec.options["Hash"], two.control.base_ms) == ("2", 9_000)
    assert one.spec.command[1:] == ("a", "b")
    assert settings.remarks == ("-dialect fastchess: Hash, tc: -each goes before -engine",)


def test_arguments_of_several_words_are_read_as_each_program_reads_them(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """arg= adds to what stood before, that of engines.json included; of args= the last counts."""
    words = ["-engine", "cmd=true", "args=-a -b", "-engine", "cmd=true", "tc=5", "-each", "args=-c"]
    assert arguments.read([*words, "tc=5"]).engines[0].spec.command[1:] == ("-a", "-b")
    settings = arguments.read(["-dialect", "fastchess", *words, "tc=5"])
    assert [engine.spec.command[1:] for engine in settings.engines] == [("-c",), ("-c",)]
    assert "args: -each goes before -engine" in " ".join(settings.remarks)
    settings = read("-engine", "cmd=true", "args=-a", "args=-b")
    assert settings.engines[2].spec.command[1:] == ("-b",)
    assert settings.remarks == ("-engine args= is given more than once: the last counts",)
    monkeypatch.chdir(tmp_path)
    entry = {"name": "Rook", "command": "true --uci", "arguments": ["-l"], "initStrings": ["one"]}
    configure(tmp_path, entry)
    for dialect in ("farm", "cutechess"):
        words = ["-engine", "conf=Rook", "arg=-x", "initstr=two", "-engine", "cmd=true", "name=B"]
        spec = arguments.read([*words, *CLOCK, "-dialect", dialect]).engines[0].spec
        assert (spec.command[1:], spec.init) == (("--uci", "-l", "-x"), ("one", "two"))


def test_an_empty_word_is_a_variable_that_is_not_set() -> None:
    """cutechess-cli passes over it, and scripts rely on that."""
    settings = arguments.read([*TWO, "-each", "tc=5", "", "", "timemargin=9"])
    assert [engine.margin_ms for engine in settings.engines] == [9, 9]


def test_an_engine_without_a_name_is_called_as_its_program_calls_it() -> None:
    """Without what is behind the last dot in fastchess; cutechess-cli asks the engine."""
    words = ["-engine", "cmd=python3.11", "-engine", "cmd=true", *CLOCK]
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr("worker_cpu.match.programs.command", lambda text, *_, **__: [text])
        fastchess, cutechess, farm = (
            arguments.read([*words, "-dialect", dialect])
            for dialect in ("fastchess", "cutechess", "farm")
        )
    assert [engine.spec.name for engine in fastchess.engines] == ["python3", "true"]
    assert [engine.spec.name for engine in farm.engines] == ["python3.11", "true"]
    assert "without name=" in " ".join(cutechess.remarks)
    assert "without name=" not in " ".join(read("-dialect", "cutechess").remarks)


def test_the_last_of_games_and_repeat_counts_with_fastchess() -> None:
    """There -repeat is another word for -games 2."""
    dialect = ("-dialect", "fastchess", "-rounds", "5")
    assert read(*dialect, "-repeat", "-games", "1").plan.games == 1
    assert read(*dialect, "-games", "1", "-repeat").plan.games == 2


def test_who_goes_on_after_a_crash() -> None:
    """Always here; the other programs with -recover, or in the quick form."""
    assert read().recover
    for dialect in ("fastchess", "cutechess"):
        assert not read("-dialect", dialect).recover
        assert read("-dialect", dialect, "-recover").recover
    quick = ["-quick", "cmd=true", "cmd=false", "book=b.epd", "-dialect", "fastchess"]
    assert arguments.read(quick).recover


def test_what_is_for_two_engines_alone() -> None:
    """A test of three is none, and a knockout of two a match; notes say so."""
    settings = read("-engine", "cmd=true", "-sprt", "elo0=0", "elo1=5")
    assert (settings.test, len(settings.remarks)) == (None, 1)
    settings = read("-tournament", "knockout")
    assert (settings.plan.kind, len(settings.remarks)) == ("round-robin", 1)


def test_words_of_an_engine_that_concern_the_match() -> None:
    """Claims are checked without trust; tscale= lengthens the time-outs, debug keeps a log."""
    settings = read("-each", "trust", "debug", "tscale=2")
    assert len(settings.remarks) == 2
    assert settings.log == switches.LOG_FILE
    usual = contract.Timeouts()
    assert settings.timeouts.start_ms == 2 * usual.start_ms
    assert settings.timeouts.ready_ms == 2 * usual.ready_ms


def test_more_games_at_a_time_than_cores_have_to_be_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with fastchess; cutechess-cli has no bound. 0 and less leave cores free."""
    monkeypatch.setattr(switches, "cores", lambda: 8)
    arguments.check_machine(read("-concurrency", "8"))
    with pytest.raises(errors.UsageError, match=r"-concurrency: found 9; .*-force-concurrency"):
        arguments.check_machine(read("-concurrency", "9"))
    arguments.check_machine(read("-concurrency", "9", "-force-concurrency"))
    arguments.check_machine(read("-concurrency", "9", "-dialect", "cutechess"))
    assert [read("-concurrency", word).concurrency for word in ("0", "-2", "-9")] == [8, 6, 1]


def test_tables_without_the_fifty_move_rule() -> None:
    """All of fastchess' words for tables; without -tb they have no effect, and a note says so."""
    rule = read("-tb", "/a", "-tbignore50", "-tbadjudicate", "WIN_LOSS").adjudication.syzygy
    assert rule == contract.Syzygy(decided_only=True, ignore_fifty=True, path="/a")
    assert read("-tbpieces", "5").adjudication.syzygy is None


@pytest.mark.parametrize(
    ("words", "note"),
    [
        ("-tbpieces 5", "without -tb"),
        ("-resume-other-builds", "without -resume"),
        ("-seeds 1", "without -tournament gauntlet"),
        ("-boxes nofile", "without an engine with host="),
        ("-each bookdepth=4", "without book="),
        ("-openings file=x.epd plies=2", "with format=epd, which has no moves"),
        ("-openings file=x.pgn positions=5", "but with format=frc or dfrc"),
        ("-openings file=x.pgn -srand 4", "without order=random or a book="),
        ("-crc32 pgn=true", "without -pgnout"),
        ("-pgnout g.pgn min nodes=true", "with min"),
        ("-pgnout g.pgn comments=cutechess nps=true nodes=true", "with comments=cutechess"),
    ],
)
def test_what_has_no_effect_alone_produces_a_note(words: str, note: str) -> None:
    """Nothing is ignored silently: the note names what the switch is meant to stand beside."""
    (told,) = read(*words.split()).remarks
    assert ": no effect " in told
    assert told.endswith(note)


@pytest.mark.parametrize(
    "words",
    [
        "-seeds 1 -tournament gauntlet",
        "-openings file=x.pgn plies=2 order=random -srand 4",
        "-openings format=frc positions=5 -variant fischerandom",
        "-variant fischerandom -srand 4",
        "-pgnout g.pgn comments=fastchess nodes=true -crc32 pgn=true",
    ],
)
def test_what_has_an_effect_produces_no_note(words: str) -> None:
    """The same switches beside what they are for."""
    assert not [told for told in read(*words.split()).remarks if "no effect" in told]


@pytest.mark.parametrize("switch", ["-pgnout", "-epdout", "-log", "-journal", "-boxes"])
def test_a_file_without_a_name_is_refused(switch: str) -> None:
    """A script's empty variable, and a folder: before anything is written."""
    for word, found in ("", "no name"), (".", "'.', a folder"):
        with pytest.raises(errors.UsageError, match=rf"{switch}: found {found}; allowed: a file's"):
            read(switch, word)
    for words in ("-openings", "file="), ("-each", "stderr="), ("-engine", "cmd=sh", "book="):
        with pytest.raises(errors.UsageError, match="found no name"):
            read(*words)


def test_all_tables_that_are_there_are_probed_without_a_bound(tmp_path: pathlib.Path) -> None:
    """As with both programs; 0 is fastchess' word for no bound."""
    for name in ("KQvK", "KRPPvKRP"):
        (tmp_path / f"{name}.rtbw").touch()
    for words, men in ([], 7), (["-tbpieces", "0"], 7), (["-tbpieces", "5"], 5):
        rule = read("-tb", f"/none:{tmp_path}", *words).adjudication.syzygy
        assert rule is not None
        assert rule.men == men


def test_an_event_of_several_words() -> None:
    """Scripts forget the quotes."""
    assert read("-event", "New", "against", "old").event == "New against old"


def test_the_quick_form_of_fastchess() -> None:
    """Two programs and a book: the rest is fastchess', and is said."""
    settings = arguments.read(["-quick", "cmd=true", "cmd=false", "book=b.epd"])
    assert [engine.spec.name for engine in settings.engines] == ["true", "false"]
    assert settings.engines[0].control == contract.TimeControl(base_ms=10_000, increment_ms=100)
    assert settings.openings == switches.Openings(pathlib.Path("b.epd"), "epd", "random")
    assert (settings.plan.games, settings.plan.rounds) == (2, 25_000)
    assert "tc=10+0.1" in settings.remarks[0]


def test_adjudication_is_the_contracts() -> None:
    """-draw, -resign, -maxmoves and -tb become the rules of the order."""
    rules = read(
        *("-draw", "movenumber=34", "movecount=8", "score=20"),
        *("-resign", "movecount=3", "score=600", "twosided=true", "-maxmoves", "200"),
        *("-tb", "/a;/b", "-tbpieces", "5", "-tbadjudicate", "DRAW"),
    ).adjudication
    assert rules.draw == contract.MovesDraw(move_number=34, move_count=8, score_cp=20)
    assert rules.resign == contract.MovesResign(move_count=3, score_cp=600, twosided=True)
    assert rules.syzygy == contract.Syzygy(men=5, draw_only=True, path="/a:/b")
    assert rules.max_moves == 200
    assert read("-maxmoves", "0").adjudication == contract.Adjudication()
    assert read("-resign", "movecount=3", "score=600", "twosided").adjudication.resign is not None


@pytest.mark.parametrize("dialect", ["farm", "cutechess", "fastchess"])
@pytest.mark.parametrize(
    ("line", "missing", "fastchess"),
    [
        ("-resign", "movecount=, score=", ""),
        ("-resign movecount=3", "score=", "0"),
        ("-resign score=600 twosided=true", "movecount=", "1"),
        ("-draw", "movenumber=, movecount=, score=", ""),
        ("-draw movecount=8 score=10", "movenumber=", "0"),
        ("-draw movenumber=40", "movecount=, score=", "1, 0"),
        ("-sprt elo1=5 alpha=0.05 beta=0.05", "elo0=", ""),
        ("-sprt elo0=0 elo1=5", "alpha=, beta=", ""),
    ],
)
def test_a_rule_with_a_word_missing_ends_no_game(
    dialect: str, line: str, missing: str, fastchess: str
) -> None:
    """It is refused by the word that is missing, where the program whose line it is refuses it.

    fastchess has values of its own for some: they are played in its dialect, and a note says so.
    Our own test has its usual alpha and beta, as the help says.
    """
    switch, words = line.partition(" ")[0], [*line.split(), "-dialect", dialect]
    if dialect == "fastchess" and fastchess:
        settings = read(*words)
        noted = [remark for remark in settings.remarks if missing in remark]
        assert noted == [f"{switch} without {missing}: {fastchess}, as fastchess has it"]
        for rule in (settings.adjudication.draw, settings.adjudication.resign):
            assert rule is None or rule.move_count >= 1
        return
    if dialect == "farm" and "alpha" in missing:
        test = read(*words).test
        assert test is not None
        assert (test.alpha, test.beta) == (0.05, 0.05)
        return
    with pytest.raises(errors.UsageError, match=f"{switch}: found no {missing}; allowed"):
        read(*words)


def test_openings() -> None:
    """Format follows the name, and every key is kept."""
    words = ["file=b.epd.gz", "order=random", "start=7", "policy=round", "plies=8"]
    settings = read("-openings", *words, "-srand", "42")
    assert settings.openings == switches.Openings(
        pathlib.Path("b.epd.gz"), "epd", "random", plies=8, start=7
    )
    assert (settings.plan.policy, settings.seed) == ("round", 42)
    numbered = read("-variant", "fischerandom", "-openings", "format=frc", "positions=518,0-2")
    assert numbered.openings is not None
    assert numbered.openings.positions == (518, 0, 1, 2)


def test_outputs() -> None:
    """Both programs' forms of -pgnout; the journal lies beside it unless it is named."""
    settings = read(
        "-pgnout", "g.pgn", "min", "fi", "-event", "E", "-site", "S", "-epdout", "e.epd"
    )
    assert (settings.pgn, settings.minimal) == (pathlib.Path("g.pgn"), True)
    assert (settings.event, settings.site) == ("E", "S")
    assert settings.journal == pathlib.Path("g.pgn.jsonl")
    assert settings.epd == pathlib.Path("e.epd")
    assert not read("-log", "file=l", "engine=true", "-epdout", "e").remarks
    assert len(read("-log", "file=l", "level=info").remarks) == 1
    assert len(read("-log", "file=l", "compress=true").remarks) == 1
    settings = read("-log", "level=info")
    assert (settings.log, len(settings.remarks)) == (None, 1)
    assert len(read("-epdout", "file=e", "append=false").remarks) == 1
    settings = read("-epdout")
    assert (settings.epd, len(settings.remarks)) == (pathlib.Path("farm-match.epd"), 1)
    settings = read("-debug", "all")
    assert (settings.log, len(settings.remarks)) == (switches.LOG_FILE, 1)
    settings = read("-pgnout", "notation=san", "nodes=true", "file=g.pgn", "append=false")
    assert (settings.pgn, settings.append) == (pathlib.Path("g.pgn"), False)
    assert read("-journal", "j").journal == pathlib.Path("j")
    assert read().journal == pathlib.Path("farm-match.jsonl")


def test_the_rest() -> None:
    """Numbers and flags reach the settings."""
    settings = read(
        *("-concurrency", "3", "-wait", "20", "-ratinginterval", "5", "-outcomeinterval", "2"),
        *("-use-affinity", "0,2-3", "-startup-ms", "1000", "-ucinewgame-ms", "2000", "-resume"),
        *("-sprt", "elo0=-2", "elo1=3", "alpha=0.1", "beta=0.2", "model=logistic", "--json"),
        *("-output", "format=fastchess", "-report", "penta=true", "-log", "l.txt", "-recover"),
    )
    assert (settings.concurrency, settings.wait_ms, settings.rating_interval) == (3, 20, 5)
    assert (settings.outcome_interval, settings.cpus) == (2, frozenset({0, 2, 3}))
    assert (settings.timeouts.start_ms, settings.timeouts.ready_ms) == (1000, 2000)
    assert settings.test is not None
    assert (settings.test.elo0, settings.test.alpha, settings.test.model) == (-2, 0.1, "logistic")
    assert (settings.resume, settings.json, settings.log) == (True, True, pathlib.Path("l.txt"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-rouns", "3"], "did you mean -rounds"),
        (["--tc", "1+0.01"], r"-tc, an engine's key; allowed: -each tc=\.\.\. for all"),
        (["-engine", "cmd=true", "Hash=16"], r"Hash=, an engine's option; allowed: option\.Hash="),
        (["-bookmod", "disk"], r"'-bookmod' \(did you mean -bookmode\?\); allowed: those of"),
        (["-resultfile", "r"], "^farm match: found '-resultfile'; allowed: .*`farm match -help`"),
        (["-quick", "cmd=true"], "-quick: found cmd=true; allowed: cmd=ONE cmd=OTHER book=FILE"),
        (["-config", "file=c.json"], "-config file=c.json: not supported: farm match -resume"),
        (["-dialect", "arena"], "allowed: farm, fastchess, cutechess"),
        (["-dialect", "fastchess", "-games", "9", "-rounds", "9"], "at most 2 games a round"),
        (["-engine", "cmd=true", "-tournament", "knockout"], "supported: a season file has it"),
        (["-tournament", "swiss"], "allowed: round-robin, roundrobin, gauntlet"),
        (["-gauntlet"], "write -tournament gauntlet"),
        (["-fcp", "cmd=true"], "-fcp: not supported: write -engine"),
        (["-both", "tc=1"], "-both: not supported: write -each"),
        (["-pgnin", "book.pgn"], "write -openings file=FILE format=pgn"),
        (["-variant", "atomic"], "allowed: standard, fischerandom"),
        (["-rounds", "x"], "-rounds: found 'x'; allowed: a whole number from 1"),
        (["-rounds"], "-rounds: found nothing; allowed: one value"),
        (["-rounds", "1", "2"], "found 1 2; allowed: one value"),
        (["-noswap", "x"], "-noswap: found x; allowed: no value"),
        (["-openings", "order=random"], "file=NAME"),
        (["-openings", "file=a", "format=bin"], "allowed: pgn, epd, frc, dfrc"),
        (["-openings", "format=frc"], "-variant fischerandom"),
        (["-openings", "filee=a"], "did you mean file="),
        (["-sprt", "elo0=0"], "no elo1"),
        (["-sprt", "elo0=0", "elo1=5", "model=bayesian"], "model=logistic takes them in Elo"),
        (["-draw", "movenumber=a", "movecount=8", "score=9"], "whole number"),
        (["-resign", "movecount=3", "score=9", "twosided=maybe"], "allowed: true, false"),
        (["-resign", "movecount=3", "score="], "-resign: found ''; allowed: a whole number"),
        (["-pgnout", "file=g", "notation=lan"], "not supported: write san, or uci"),
        (["-tb", "/a", "-tbpieces", "9"], "a whole number from 3 to 7"),
        (["-seeds", "2"], "fewer than the 2 engines"),
        (["-engine", "cmd=true", "ponder", "option.Ponder=false"], "both ponder and option.Ponder"),
        (["-engine", "cmd=true", "bok=x"], "did you mean book|allowed: arg="),
        (["-engine", "name=x"], "no command"),
        (["-engine", "cmd=true", "args='x"], "-engine 3 args: found .*No closing quotation"),
        (["-engine", "cmd=true", "proto=usi"], "allowed: uci, xboard"),
        (["-engine", "cmd=true", "restart=never"], "allowed: auto, on, off"),
        (["-engine", "cmd=true", "tc=2m+1"], "tc: found '2m'; allowed: seconds.*a unit is only s"),
        (["-engine", "cmd=true", "tc=hg10"], "tc=hg10: not supported: hourglass"),
        (["-engine", "cmd=true", "tscale=0"], "-engine tscale: found 0; allowed: above 0 to 100"),
        (["-sprt", "elo0=5", "elo1=0"], "allowed: elo0 below elo1"),
    ],
)
def test_what_is_not_known_is_refused_by_name(words: list[str], message: str) -> None:
    """A wrong word is never ignored: the message names it and what is allowed."""
    with pytest.raises(errors.UsageError, match=message):
        read(*words)


def test_words_before_a_switch_and_missing_engines_are_refused() -> None:
    """The first word is a switch, and two engines are the least."""
    with pytest.raises(errors.UsageError, match="a switch such as -engine"):
        arguments.read(["engine"])
    with pytest.raises(errors.UsageError, match="found 1 engines"):
        arguments.read(["-engine", "cmd=true", "tc=1"])


def test_a_files_name_that_no_system_takes_is_refused() -> None:
    """A wrong input, and no fault of the host."""
    with pytest.raises(
        errors.UsageError, match=r"-openings file: .*[Nn]ame too long.*a file's name"
    ):
        arguments.read(["-engine", "cmd=x", "-openings", f"file={'v' * 300}"])
