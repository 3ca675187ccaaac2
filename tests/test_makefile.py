"""What the targets check that a contributor runs: all that they promise, whatever cannot run."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parent.parent
LOCK = "tests/broadcast/page/package-lock.json"
MADE = ("requirements.lock", "requirements-dev.lock", "pyproject.toml", LOCK)


def make(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run make in a folder, as from a shell: nothing of a make above it reaches it."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(
        ["make", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("target", ["quick", "test", "-k types lint"])
def test_python_is_checked_where_npm_cannot_install(target: str, tmp_path: pathlib.Path) -> None:
    """Behind a proxy mypy and ruff say what they find all the same; what fails says what to do."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    programs = tmp_path / ".venv" / "bin"
    for path in (*map(tmp_path.joinpath, MADE), tmp_path / ".venv" / ".dev"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    script(tmp_path / "scripts" / "install-system-packages", "true")
    for program in ("mypy", "ruff", "python"):
        script(programs / program, f'echo "{program} was here: $*"')
    script(programs / "npm", 'echo "npm error code SELF_SIGNED_CERT_IN_CHAIN" >&2; exit 1')
    done = make(tmp_path, *target.split())
    assert done.returncode != 0
    for checked in ("mypy was here", "ruff was here: check", "ruff was here: format"):
        assert checked in done.stdout, done.stdout + done.stderr
    assert "NODE_EXTRA_CA_CERTS=FILE" in done.stderr
    assert "tsc and eslint were not run" in done.stderr


def script(path: pathlib.Path, text: str) -> None:
    """Write a program of one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_quick_runs_each_test_that_says_what_is_missing() -> None:
    """`make quick` has every test of which architecture.md says that it names what lacks."""
    architecture = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    changes = architecture.partition("## Where common changes go")[2]
    clauses = [part for part in re.split(r"[;|]|\. ", changes) if re.search(r"missing|lacks", part)]
    named = {test for clause in clauses for test in re.findall(r"tests/[\w/]+\.py", clause)}
    assert len(named) > 4
    run = make(ROOT, "--dry-run", "stale").stdout
    assert not {test for test in named if test not in run}, "STALE in the Makefile lacks them"
    for words in run.split():
        if words.startswith("tests/"):
            assert (ROOT / words.partition("::")[0]).is_file(), words
