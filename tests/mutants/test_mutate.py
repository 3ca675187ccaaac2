"""The mutants themselves: each is another program, and what does not run is left alone."""

from __future__ import annotations

import fcntl
import pathlib
import subprocess
import sys

import mutate
import pytest
import run_mutants

PYTHON = '''
@functools.lru_cache(maxsize=9, typed=True)
def late(left: int = 3) -> bool:
    """Say 1 == 1."""
    if left < 0 and not late:
        raise ValueError("1" * 3)
    return left + 1 == 5
'''
LUA = "if a <= 10 and not b then -- 3 < 4\n  return x.y1 == 2\nend\n"


def test_a_module_is_changed_in_one_place_at_a_time() -> None:
    """Comparisons, connectives, sums, conditions and numbers; no docstring and no error."""
    changes = [mutant.change.partition(":")[0] for mutant in mutate.of_python(PYTHON)]
    assert sorted(changes) == sorted(["4", "negated", "Or", "LtE", "1", "NotEq", "Sub", "2", "6"])
    texts = {mutant.text for mutant in mutate.of_python(PYTHON)}
    assert len(texts) == len(changes)
    assert all("Say 1 == 1." in text and "'1' * 3" in text for text in texts)


def test_a_script_is_changed_in_one_place_at_a_time() -> None:
    """Words of the language and whole numbers, no comment and no name."""
    made = list(mutate.of_lua(LUA))
    assert [mutant.change.partition(":")[0] for mutant in made] == [
        "<= -> <",
        "10 -> 11",
        "and -> or",
        "not -> ",
        "== -> ~=",
        "2 -> 3",
    ]
    assert [mutant.line for mutant in made] == [1, 1, 1, 1, 2, 2]
    assert all(mutant.text != LUA for mutant in made)


def test_mutants_are_drawn_among_the_files_that_match() -> None:
    """However few are asked for: all are of those files, and the same for a seed."""
    drawn = run_mutants.sample(3, 7, "tiebreaks")
    assert [file for file, _, _ in drawn] == ["orchestrator/season/fold/tiebreaks.py"] * 3
    again = run_mutants.sample(3, 7, "tiebreaks")
    assert [one.text for *_, one in drawn] == [one.text for *_, one in again]
    rooms = {tests for _, tests, _ in run_mutants.sample(len(run_mutants.ROOMS), 7)}
    assert rooms == set(run_mutants.ROOMS.values())


def test_nothing_to_change_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    """No file of that name, or no mutant asked for: a sentence, and no share that was noticed."""
    for words in (["--match", "tiebreakz"], ["--match", "tiebreaks", "--count", "0"]):
        with pytest.raises(SystemExit) as ended:
            run_mutants.main(words)
        said = capsys.readouterr()
        assert ended.value.code == 2
        assert "nothing to change" in said.err
        assert "noticed" not in said.out


ALONE = """
import fcntl, os, subprocess, sys

def test_alone():
    for pid in (int(name) for name in os.listdir("/proc") if name.isdecimal()):
        assert str(OTHER) not in open(f"/proc/{pid}/cmdline").read()
    held = open("held", "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    wait = [sys.executable, "-c", "import time; time.sleep(600)"]
    subprocess.Popen(wait, pass_fds=[held.fileno()], start_new_session=True)
"""


def test_a_mutant_is_alone_with_its_processes(tmp_path: pathlib.Path) -> None:
    """It sees none of others, so it can end none, and what it leaves running ends with it."""
    (tmp_path / "test_it.py").write_text(ALONE.replace("OTHER", repr(str(tmp_path / "other"))))
    wait = [sys.executable, "-c", "input()", tmp_path / "other"]
    with subprocess.Popen(wait, stdin=subprocess.PIPE) as other:
        assert run_mutants.run(tmp_path, ["test_it.py"])
        other.kill()
    with (tmp_path / "held").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
