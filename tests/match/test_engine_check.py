"""``farm engine check``: a good engine passes, each broken rule is named with its talk."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest
import table
from click import testing

from orchestrator import commands
from worker_cpu.match import engine_check

GOOD = f"{sys.executable} -m worker_cpu.builtin_engine.uci"
CARELESS = """
import os, sys, time
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]:
        print("id name Careless")
        print("option name Hash type spin default 5000 min 1 max 64")
        print("option name Ponder type check default false")
        print("option name MultiPV type spin default 1 min 1 max 9")
        print("uciok")
    elif words[:1] == ["isready"]:
        print("readyok")
    elif words[:1] == ["ucinewgame"]:
        os.close(1)  # its pipe is closed before the process has ended
        time.sleep(0.2)
        os.kill(os.getpid(), 9)
    elif words[:1] == ["go"]:
        print("info depth 1 score cp 1 pv e2e4 e2e4")
        print("bestmove e2e4")
    elif words[:1] == ["quit"]:
        sys.exit(3)
    sys.stdout.flush()
"""


def findings(command: list[str], tmp_path: pathlib.Path, protocol: str = "uci") -> dict[str, str]:
    """Run all checks; return what each found, by its name."""
    checks = engine_check.PROTOCOLS[protocol](command, tmp_path, 10.0, {})
    return {found.name: f"{found.state}: {found.words}" for found in checks.run()}


def test_the_farms_own_engine_passes_as_the_page_says(tmp_path: pathlib.Path) -> None:
    """Exit code 0; JSON has every check, JUnit is what a CI system reads."""
    words = ["check", "engine", GOOD, "--json", "--junit", "reports/e.xml"]
    done = subprocess.run(
        [*table.FARM, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert set(checks) == set(engine_check.UciChecks.RULES)
    failed = [name for name, check in checks.items() if check["state"] == "failed"]
    assert set(failed) <= {"clock"}, done.stdout  # a busy machine may take its second
    assert done.returncode == (3 if failed else 0)
    assert "> go infinite" in checks["infinite"]["talk"]
    suite = ET.parse(tmp_path / "reports" / "e.xml").getroot()
    assert suite.attrib["failures"] == str(len(failed))
    assert [case.attrib["name"] for case in suite] == list(checks)


def test_each_broken_rule_is_named(tmp_path: pathlib.Path) -> None:
    """One engine that is careless in many ways: what it says decides, and it is started again."""
    program = tmp_path / "careless.py"
    program.write_text(CARELESS)
    found = findings([sys.executable, "-S", str(program)], tmp_path)
    begins = {
        "handshake": "ok: Careless",
        "options": "failed: option Hash (spin 1..64, default 5000): its default is out",
        "isready": "ok",
        "bestmove": "ok: e2e4",
        "info": "failed: pv e2e4 e2e4: e2e4 is not legal",
        "searchmoves": "warning: played e2e4",
        "busy-isready": "failed: bestmove e2e4 before stop",
        "infinite": "failed: bestmove e2e4 before stop",
        "ponderhit": "failed: bestmove e2e4 before ponderhit",
        "black": "failed: 'bestmove e2e4' is no legal move",
        "promotion": "failed",
        "mate": "failed",
        "new-game": "failed: ",
        "multipv": "failed: no info line with multipv 2",
        "chess960": "skipped: no option UCI_Chess960",
        "quit": "failed: ended with status 3",
        "end-of-input": "ok",
    }
    wrong = {
        name: found[name] for name, words in begins.items() if not found[name].startswith(words)
    }
    assert not wrong
    assert found["new-game"].endswith("the engine ended by signal SIGKILL")
    assert set(found) == set(engine_check.UciChecks.RULES)
    assert not table.survivors(tmp_path)


def test_a_failed_check_is_exit_code_3_with_what_was_said(tmp_path: pathlib.Path) -> None:
    """People see the talk of what failed; fastchess' word for the same is taken, too."""
    (tmp_path / "careless.py").write_text(CARELESS)
    command = f"{sys.executable} -S {tmp_path}/careless.py"
    words = ["match", "--compliance", command, "--junit", "e.xml"]
    done = subprocess.run(
        [*table.FARM, *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stdout + done.stderr
    assert "failed   infinite" in done.stdout
    assert "< bestmove e2e4" in done.stdout
    failures = ET.parse(tmp_path / "e.xml").getroot().findall("testcase/failure")
    assert any("> go infinite" in (failure.text or "") for failure in failures)


@pytest.mark.parametrize("name", ["farm", "fastchess"])
def test_fastchess_own_line_is_taken_as_it_is(tmp_path: pathlib.Path, name: str) -> None:
    """Through a link named like it, too; the engine's arguments stand in a word of their own."""
    program = tmp_path / name
    program.symlink_to(shutil.which("farm") or "/none")
    beginning = [program, "match"] if name == "farm" else [program]
    script = tmp_path / "an engine.py"
    script.write_text(f"#!{sys.executable} -S\nimport sys\nsys.exit(str(sys.argv[1:]))\n")
    script.chmod(0o755)
    words = [*beginning, "--compliance", script, "--quiet -x", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stdout + done.stderr
    checks = {check["name"]: check for check in json.loads(done.stdout)["checks"]}
    assert "['--quiet', '-x']" in checks["handshake"]["words"]


def test_an_xboard_engine_is_known_by_its_name(tmp_path: pathlib.Path) -> None:
    """All checks of the wrong protocol fail: what to type stands before them."""
    program = tmp_path / "phalanx"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    for words, noted in (([], True), (["--protocol", "xboard"], False)):
        line = ["engine", "check", str(program), "--json", *words]
        done = testing.CliRunner().invoke(commands.farm, line)
        assert ("Note: programs of that name speak XBoard" in done.stderr) == noted


def test_a_check_without_an_engine_says_what_is_missing() -> None:
    """It is a command of its family: listed, near to a mistyped one, with a usage of its own."""
    family = testing.CliRunner().invoke(commands.farm, ["engine", "--help"]).output
    assert re.search(r"(?m)^ +check +Check whether an engine keeps its protocol", family)
    alone = testing.CliRunner().invoke(commands.farm, ["engine", "check"])
    assert "Missing argument 'COMMAND'" in alone.output
    near = testing.CliRunner().invoke(commands.farm, ["engine", "chek", "x"])
    assert "Did you mean 'check'?" in near.output


DEAF = """
import sys, time
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]:
        print("id name Deaf")
        print("option name Ponder type check default false")
        print("uciok")
    elif words[:1] == ["isready"]:
        print("readyok")
    elif words[:1] == ["go"]:
        time.sleep(0.6)  # longer than the checks wait for a bestmove that must not come
        print("info depth 1 score mate 12 pv a1a8")
        print("bestmove a1a8")
    elif words[:1] == ["quit"]:
        sys.exit()
    sys.stdout.flush()
"""


def test_who_hears_nothing_while_it_thinks_passes_no_check_of_that(tmp_path: pathlib.Path) -> None:
    """What comes behind its search's own end is no answer: neither readyok nor bestmove."""
    program = tmp_path / "deaf.py"
    program.write_text(DEAF)
    found = findings([sys.executable, "-S", str(program)], tmp_path)
    assert found["busy-isready"].startswith("failed: bestmove a1a8 before stop: readyok came when")
    assert found["infinite"].startswith("skipped: not known: it does not answer while it thinks")
    assert found["ponderhit"].startswith("skipped: not known: it does not answer while it thinks")
    assert found["mate"] == "warning: no score mate 1", "mate 12 is another one"


FAULTY = """
import os, sys
thinks, ready = False, 0
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]:
        print("id name Faulty")
        print("option name Ponder type check default false")
        print("uciok")
    elif words[:1] == ["isready"] and thinks and FAULT == "crash":
        os.abort()
    elif words[:1] == ["isready"]:
        hangs = thinks and FAULT == "hang"
        print("readyok")
    elif words[:1] == ["go"]:
        thinks, hangs = words[1] in ("infinite", "ponder"), False
        if not thinks:
            print("info depth 1 score cp 1 pv e2e4")
            print("bestmove e2e4")
    elif words[:1] in (["stop"], ["ponderhit"]) and thinks and not hangs:
        thinks = False
        print("bestmove e2e4")
    elif words[:1] == ["quit"]:
        sys.exit()
    sys.stdout.flush()
"""


@pytest.mark.parametrize("fault", ["hang", "crash"])
def test_who_hangs_or_crashes_in_a_search_is_not_called_deaf(
    tmp_path: pathlib.Path, fault: str
) -> None:
    """Who answered isready while it thought does so; of who crashed before it nobody knows."""
    program = tmp_path / "faulty.py"
    program.write_text(FAULTY.replace("FAULT", repr(fault)))
    checks = engine_check.UciChecks([sys.executable, "-S", str(program)], tmp_path, 2.0, {})
    found = {one.name: f"{one.state}: {one.words}" for one in checks.run()}
    if fault == "hang":
        assert found["busy-isready"] == "failed: no bestmove within 2 s"
        assert found["infinite"] == found["ponderhit"] == "ok: bestmove e2e4"
        return
    assert found["busy-isready"] == "failed: no readyok: the engine ended by signal SIGABRT"
    for name in ("infinite", "ponderhit"):
        assert found[name].startswith("skipped: not known: it crashed in busy-isready, so its")


@pytest.mark.parametrize("protocol", ["uci", "xboard"])
def test_who_does_not_speak_the_protocol_fails_once(tmp_path: pathlib.Path, protocol: str) -> None:
    """The other checks are not tried, each would wait for as long."""
    program = tmp_path / "mute.py"
    program.write_text("import sys\nfor line in sys.stdin:\n    pass\n")
    words = [sys.executable, "-S", str(program)]
    checks = engine_check.PROTOCOLS[protocol](words, tmp_path, 0.5, {})
    first, *others = checks.run()
    assert first.state == "failed"
    assert len(others) == len(checks.RULES) - 1
    assert {(other.state, other.words) for other in others} == {
        ("skipped", f"not tried: {first.name} failed")
    }


CRASHING = """
import os, sys
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["go"]:
        sys.stderr.write("x" * 200_000 + "\\nassertion failed: nlines" + END)
        sys.stderr.flush()
        os.abort()
    if words[:1] == ["quit"]:
        sys.stderr.write("y" * 200_000)
        sys.exit()
    print({"uci": "id name Crash\\nuciok", "isready": "readyok"}.get(line.strip(), ""), flush=True)
"""


@pytest.mark.parametrize("end", ["\n", ""])
def test_a_crash_is_told_with_its_last_line_and_what_to_send(
    tmp_path: pathlib.Path, end: str
) -> None:
    """How it ended and what stderr says; what was sent before is whole, to be sent again."""
    program = tmp_path / "crashing.py"
    program.write_text(CRASHING.replace("END", repr(end)))
    checks = engine_check.UciChecks([sys.executable, "-S", str(program)], tmp_path, 10.0, {})
    found = {finding.name: finding for finding in checks.run()}
    for name in ("bestmove", "long-game"):
        told = "the engine ended by signal SIGABRT; its last line: assertion failed: nlines"
        assert found[name].words.endswith(told)
        assert found[name].talk[-1] == "! assertion failed: nlines"
        assert max(map(len, found[name].talk[-2:])) <= engine_check.LONGEST + 1
    assert found["quit"].state == "ok", "who writes much to stderr at its end is read"
    (position,) = (line for line in found["long-game"].talk if line.startswith("> position"))
    assert position.split()[-1] == engine_check.SHUFFLE[-1]
    assert len(position.split()) > 400


ENDING = """
import os, sys, time
for line in sys.stdin:
    words = line.split()
    if words[:1] == ["uci"]:
        print("id name Ending\\nuciok")
    elif words[:1] == ["isready"]:
        print("readyok")
    elif "e2e5" in words:
        print("Traceback:\\n    moves[e2e5]\\n          ^^^^", file=sys.stderr, flush=True)
        os.abort()
    elif words[:1] == ["go"]:
        print("bestmove e2e4")
    elif words[:1] == ["quit"]:
        sys.exit(0)
    sys.stdout.flush()
LAST
"""


def test_the_talk_with_an_engine_that_a_check_ends_is_kept(tmp_path: pathlib.Path) -> None:
    """A warning of a crash shows which line did it, and stderr as it stands there."""
    program = tmp_path / "ending.py"
    program.write_text(ENDING.replace("LAST", ""))
    checks = engine_check.UciChecks([sys.executable, "-S", str(program)], tmp_path, 10.0, {})
    found = {finding.name: finding for finding in checks.run()}
    assert found["illegal"].state == "warning"
    talk = found["illegal"].talk
    assert "> position startpos moves e2e5" in talk
    assert talk[-3:] == ("! Traceback:", "!     moves[e2e5]", "!           ^^^^")
    assert found["quit"].talk[-1] == "> quit"
    assert not [line for line in found["line-ends"].talk if "e2e5" in line]


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ("sys.exit(0)", "ok: "),
        ("sys.exit('no input')", "warning: ended with status 1; its last line: no input"),
        ("time.sleep(600)", "warning: runs on after 5 s; it stays behind when its GUI dies"),
    ],
)
def test_only_an_engine_that_runs_on_is_said_to_stay_behind(
    tmp_path: pathlib.Path, last: str, words: str
) -> None:
    """One that ends with another status than 0 at the end of its input has ended."""
    program = tmp_path / "ending.py"
    program.write_text(ENDING.replace("LAST", last))
    checks = engine_check.UciChecks([sys.executable, "-S", str(program)], tmp_path, 5.0, {})
    found = {finding.name: f"{finding.state}: {finding.words}" for finding in checks.run()}
    assert found["end-of-input"] == words
    assert found["quit"] == "ok: "


def test_a_wrong_path_is_told_in_the_commands_own_words(tmp_path: pathlib.Path) -> None:
    """Neither another command nor a key that nobody typed."""
    for words, place in ((("engine", "check"), "--dir"), (("match",), "from here")):
        given = [*words, "./nosuch", *(["./nosuch"] if words == ("match",) else [])]
        done = subprocess.run(
            [*table.FARM, *given], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        begin = f"farm {' '.join(words)}: found ./nosuch, but no file {tmp_path}/nosuch; allowed: "
        assert begin in done.stderr
        assert place in done.stderr
        assert "cmd=" not in done.stderr
        assert done.returncode == 2


@pytest.mark.parametrize("command", ["/bin/false", "/bin/cat"])
def test_no_engine_at_all_ends_soon(command: str, tmp_path: pathlib.Path) -> None:
    """Neither a program that ends nor one that says nonsense stops the checks."""
    checks = engine_check.XboardChecks([command], tmp_path, 0.2, {})
    states = [found.state for found in checks.run()]
    assert states[0] == "failed"
    assert len(states) == len(engine_check.XboardChecks.RULES)


def test_an_xboard_engine_is_checked_by_its_own_protocol(tmp_path: pathlib.Path) -> None:
    """Features, ping, moves and the end."""
    command = [sys.executable, str(table.ENGINES / "scripted.py"), "--protocol", "xboard"]
    found = findings(command, tmp_path, "xboard")
    assert {name: words for name, words in found.items() if words.startswith("failed")} == {}
