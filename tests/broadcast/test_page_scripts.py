"""The page's scripts that need no browser, tested in node: the tests are in ``page/*.test.js``."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

from orchestrator.broadcast.web import page_files

NODE = pathlib.Path(sys.executable).with_name("node")  # of requirements-dev.lock
PAGE = pathlib.Path(page_files.__file__).parent.parent / "page"
TESTS = sorted((pathlib.Path(__file__).parent / "page").glob("*.test.js"))


def test_the_pages_scripts_pass_their_own_tests() -> None:
    """Node runs every file of tests, and none of them fails."""
    assert TESTS
    command = [NODE, "--test", "--test-reporter=tap", *TESTS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    failed = re.findall(r"^ *not ok .*?(?=^ *code:|\Z)", ran.stdout, re.MULTILINE | re.DOTALL)
    assert not failed, "".join(failed)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\n# skipped 0\n" in ran.stdout


def test_the_types_of_every_script_are_checked() -> None:
    """`make types` looks at modules that ask for it by their first line: all of ours do."""
    scripts = [*(PAGE / "js").glob("*.js"), PAGE / page_files.WORKER]
    assert len(scripts) > 25
    heads = {path.name: path.read_text(encoding="utf-8").split("\n", 1)[0] for path in scripts}
    assert heads == dict.fromkeys(heads, "// @ts-check")
