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
from orchestrator.common import built, version


def git(folder: pathlib.Path, *words: str) -> str:
    """Let git do something in a folder; return what it says."""
    who = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


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
    git(elsewhere, "init", "-q")
    (elsewhere / "file").write_text("one")
    git(elsewhere, "add", "file")
    git(elsewhere, "commit", "-q", "-m", "one")
    assert version.commit() == git(elsewhere, "rev-parse", "HEAD")[:8]
    (elsewhere / "file").write_text("two")
    assert version.commit() == git(elsewhere, "rev-parse", "HEAD")[:8] + "+"


def test_a_tag_is_a_release_and_what_comes_after_it_is_on_its_way_to_the_next(
    elsewhere: pathlib.Path,
) -> None:
    """Without tags commits are counted; a build's file says it where there is no git."""
    if shutil.which("git") is None:
        pytest.skip("package git is not installed")

    def numbers(*commits: str) -> list[str]:
        found = []
        for tag in commits:
            git(elsewhere, "commit", "-q", "--allow-empty", "-m", "one")
            if tag:
                git(elsewhere, "tag", tag)
            found.append(built.version(elsewhere))
        return found

    assert built.version(elsewhere) == f"{built.NEXT}.dev0"
    git(elsewhere, "init", "-q")
    assert built.version(elsewhere) == f"{built.NEXT}.dev0", "nothing was committed"
    assert numbers("", "other") == [f"{built.NEXT}.dev1", f"{built.NEXT}.dev2"]
    assert numbers("v0.2.0rc1", "", "v0.2.0", "", "") == [
        *("0.2.0rc1", "0.2.0rc2.dev1", "0.2.0", "0.2.1.dev1", "0.2.1.dev2")
    ]
    assert "version 0.2.1.dev2 " in f"version {version.described()}"
    for name, content in built.contents(elsewhere):
        (elsewhere / name).parent.mkdir(parents=True, exist_ok=True)
        (elsewhere / name).write_bytes(content)
    known = version.commit()
    shutil.rmtree(elsewhere / ".git")
    assert (built.version(elsewhere), version.commit()) == ("0.2.1.dev2", known)


def test_hosts_of_two_commits_with_the_same_files_run_the_same_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A commit that changed no file of the program raises no alarm of versions that differ."""
    version.build.cache_clear()
    monkeypatch.setattr(version, "VERSION", "0.2.1.dev7")
    assert version.build().startswith("0.2.1+")
    version.build.cache_clear()


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
