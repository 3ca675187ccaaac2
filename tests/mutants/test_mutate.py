"""The mutants themselves: each is another program, and what does not run is left alone."""

from __future__ import annotations

import pathlib
import signal
import subprocess
import sys

import mutate
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


def test_what_a_mutant_has_left_running_is_ended(tmp_path: pathlib.Path) -> None:
    """A process in a session of its own that runs a file of the tree; no other one."""
    wait = [sys.executable, "-c", "input()"]
    with (
        subprocess.Popen(
            [*wait, tmp_path / "farm" / "agent.py"], stdin=subprocess.PIPE, start_new_session=True
        ) as left,
        subprocess.Popen([*wait, tmp_path / "other"], stdin=subprocess.PIPE) as other,
    ):
        run_mutants.end_left(tmp_path / "farm")
        assert left.wait() == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
