"""What ``farm --version`` says of the program that runs."""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import re
import shutil
import subprocess
import types

import pytest
from click import testing

from orchestrator import commands
from orchestrator.common import version


@pytest.fixture
def elsewhere(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Let the program lie in a folder of the test's."""
    monkeypatch.setattr(version, "__file__", str(tmp_path / "orchestrator/common/version.py"))
    return tmp_path


def test_the_program_says_version_files_and_where_it_may_the_commit() -> None:
    """One line that a bug report can hold."""
    told = testing.CliRunner().invoke(commands.farm, ["--version"]).output
    form = r"farm, version \S+ \(files [0-9a-f]{8}(, commit [0-9a-f]{8,}\+?)?\)\n"
    assert re.fullmatch(form, told), told


def test_a_checkout_says_its_commit_and_whether_it_was_changed(elsewhere: pathlib.Path) -> None:
    """Git is asked; a file that differs from the commit is marked."""
    if shutil.which("git") is None:
        pytest.skip("package git is not installed")
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")

    def git(*words: str) -> str:
        done = subprocess.run(["git", *who, *words], cwd=elsewhere, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    (elsewhere / "file").write_text("one")
    git("add", "file")
    git("commit", "-q", "-m", "one")
    assert version.commit() == git("rev-parse", "HEAD")[:8]
    (elsewhere / "file").write_text("two")
    assert version.commit() == git("rev-parse", "HEAD")[:8] + "+"


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        (None, ""),
        ({"url": "file:///x.whl", "archive_info": {}}, ""),
        (
            {"url": "https://x", "vcs_info": {"vcs": "git", "commit_id": "0123456789" * 4}},
            "01234567",
        ),
    ],
)
def test_an_installed_package_says_the_commit_that_it_came_from(
    elsewhere: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    notes: dict[str, object] | None,
    said: str,
) -> None:
    """The installer's notes name it where there was a repository."""
    text = None if notes is None else json.dumps(notes)
    found = types.SimpleNamespace(read_text=lambda _: text)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: found)
    assert version.commit() == said
