"""The page's scripts that need no browser, tested in node: the tests are in ``page/*.test.js``."""

from __future__ import annotations

import pathlib
import shutil
import subprocess

import pytest

TESTS = sorted((pathlib.Path(__file__).parent / "page").glob("*.test.js"))


def test_the_pages_scripts_pass_their_own_tests() -> None:
    """Node runs every file of tests, and none of them fails."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("nodejs is not installed (scripts/system-packages.txt)")
    assert TESTS
    command = [node, "--test", "--test-reporter=tap", *TESTS]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "\n# skipped 0\n" in ran.stdout
