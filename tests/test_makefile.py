"""What the targets check that a contributor runs: all that they promise, whatever cannot run."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

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
    stand_in(tmp_path)
    npm = tmp_path / ".venv" / "bin" / "npm"
    script(npm, 'echo "npm error code SELF_SIGNED_CERT_IN_CHAIN" >&2; exit 1')
    done = make(tmp_path, *target.split())
    assert done.returncode != 0
    for checked in ("mypy was here", "ruff was here: check", "ruff was here: format"):
        assert checked in done.stdout, done.stdout + done.stderr
    assert "NODE_EXTRA_CA_CERTS=FILE" in done.stderr
    assert "NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt" in done.stderr
    assert "tsc and eslint were not run" in done.stderr


@pytest.mark.parametrize(
    ("target", "fails", "red"),
    [
        ("quick", ("npm",), "tsc, eslint"),
        ("quick", ("python", "ruff"), "ruff, stale"),
        ("test", ("npm", "mypy"), "mypy, tsc, eslint"),
        ("test", ("python",), "house"),
    ],
)
def test_the_last_lines_name_what_was_red(
    target: str, fails: tuple[str, ...], red: str, tmp_path: pathlib.Path
) -> None:
    """Whatever went on behind it, and a check that passed before has to pass again."""
    stand_in(tmp_path)
    good = make(tmp_path, target)
    assert good.returncode == 0, good.stdout + good.stderr
    assert "red:" not in good.stdout + good.stderr
    for program in fails:
        script(tmp_path / ".venv" / "bin" / program, "exit 1")
    shutil.rmtree(tmp_path / LOCK.replace("package-lock.json", "node_modules"))
    done = make(tmp_path, target)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2] == f"red: {red} (see above)", done.stderr


def stand_in(folder: pathlib.Path) -> None:
    """Make a folder with the Makefile, in which each program says that it was called."""
    shutil.copy(ROOT / "Makefile", folder)
    for path in (*map(folder.joinpath, MADE), folder / ".venv" / ".dev"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    script(folder / "scripts" / "install-system-packages", "true")
    for program in ("mypy", "ruff", "python"):
        script(folder / ".venv" / "bin" / program, f'echo "{program} was here: $*"')
    installed = LOCK.replace("package-lock.json", "node_modules")
    script(folder / ".venv" / "bin" / "npm", f"mkdir -p {installed}")


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


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_test_that_fails_is_named_at_once(processes: str, tmp_path: pathlib.Path) -> None:
    """Not in the summary alone, which comes half an hour later; of a parallel run as well."""
    failing = "def test_bad():\n    assert not 1\n\n\ndef test_good():\n    pass\n"
    (tmp_path / "test_it.py").write_text(failing)
    words = ("-c", ROOT / "pyproject.toml", "-p", "conftest", "-p", "no:cacheprovider", "-q")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "--no-summary", "-n", processes, tmp_path],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == pytest.ExitCode.TESTS_FAILED, run.stdout + run.stderr
    assert re.search(r"^FAILED \S*test_it\.py::test_bad$", run.stdout, re.MULTILINE), run.stdout
