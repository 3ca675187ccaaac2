"""The install script: releases beside each other, one switch, nothing half done.

The short tests give it a stub in place of Python, venv and pip; the long one installs for real.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess
import sys

import pytest
import watched_run

SCRIPT = watched_run.ROOT / "deploy" / "install" / "install-farm"
PARTS = ("docs", "orchestrator", "worker_cpu", "worker_gpu", "deploy/install")
FILES = ("pyproject.toml", "requirements.lock", "README.md", "LICENSE")

# `-m venv DIR` copies it there; `-m pip install` fails where the source says so; the import of what
# was installed fails in a release that is damaged.
STUB = """#!/bin/sh
case "$*" in
  "-m venv "*) mkdir -p "$3/bin"; cp "$0" "$3/bin/python3" ;;
  "-m pip install "*) ! grep -rqs "cannot be built" "$(dirname "$0")/../../source/orchestrator" ;;
  "-P -c"*) [ ! -e "$(dirname "$0")/../damaged" ] ;;
  "-c"*) cat "$(dirname "$0")/version" ;;
esac
"""


class Place:
    """A source, a stub of Python and a prefix."""

    def __init__(self, root: pathlib.Path) -> None:
        self.source, self.prefix, self.python = root / "source", root / "opt", root / "python"
        for part in PARTS:
            (self.source / part).mkdir(parents=True)
        for file in FILES:
            (self.source / file).write_text(file)
        self.version("1")
        self.python.write_text(STUB)
        self.python.chmod(0o755)
        (root / "version").write_text("3.11\n")

    def version(self, text: str) -> None:
        """Make the source another version."""
        path = self.source / "orchestrator/common/version.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def install(self, *more: str, code: int = 0) -> str:
        """Run the script; return its last line."""
        words = [SCRIPT, "--source", self.source, "--prefix", self.prefix, "--python", self.python]
        words += more
        done = subprocess.run(words, capture_output=True, text=True, check=False, umask=0o077)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout.strip()

    def current(self) -> pathlib.Path:
        """Return the release that is in use."""
        return (self.prefix / "current").resolve()

    def releases(self) -> int:
        """Count the releases."""
        return len(list((self.prefix / "releases").glob("*/")))

    def installed(self) -> str:
        """Return the version that the prefix leads to."""
        return (self.prefix / "source/orchestrator/common/version.py").read_text()


@pytest.fixture
def place(tmp_path: pathlib.Path) -> Place:
    """Return a source that is not installed yet."""
    return Place(tmp_path)


def test_what_is_there_is_left_alone(place: Place) -> None:
    """The same source again changes nothing."""
    assert [place.install(), place.install()] == ["installed", "unchanged"]
    assert (place.prefix / "venv/bin/python3").exists()
    assert (place.prefix / "docs").is_dir()
    made = place.current()
    assert {path.stat().st_mode & 0o055 for path in (made, made / "venv/bin")} == {0o055}


def test_a_build_that_fails_switches_nothing_and_leaves_nothing(place: Place) -> None:
    """What ran before is untouched, and is still known to be whole."""
    place.install()
    before = place.current()
    place.version("cannot be built")
    place.install(code=1)
    assert (place.current(), place.releases(), place.installed()) == (before, 1, "1")
    place.version("1")
    assert place.install() == "unchanged"


def test_the_way_back_is_a_switch(place: Place) -> None:
    """The release before is kept, and what a process was started from stays as it is."""
    place.install()
    first = place.current()
    place.version("2")
    assert place.install() == "installed"
    assert place.installed() == "2"
    assert (first / "source/orchestrator/common/version.py").read_text() == "1"
    place.version("1")
    assert place.install() == "switched"
    assert place.current() == first


def test_a_prepared_release_is_switched_to_later(place: Place) -> None:
    """An upgrade builds first, while games are played: what fails then has cost nobody anything."""
    place.install()
    place.version("2")
    assert [place.install("--prepare") for _ in range(2)] == ["prepared"] * 2
    assert place.installed() == "1"
    assert place.install() == "switched"
    assert place.installed() == "2"


def test_a_damaged_release_is_made_again(place: Place) -> None:
    """A stamp alone does not make an environment whole."""
    place.install()
    damaged = place.current()
    (damaged / "venv/damaged").touch()
    assert place.install() == "installed"
    assert place.current() != damaged


def test_another_python_is_another_release(place: Place) -> None:
    """An upgrade of Debian takes the interpreter away that an environment links to."""
    place.install()
    (place.python.parent / "version").write_text("3.13\n")
    assert place.install() == "installed"
    assert place.releases() == 2


def test_old_releases_go_but_those_that_run(place: Place, tmp_path: pathlib.Path) -> None:
    """Kept: the present one, the one before, and one that a process was started from."""
    place.install()
    running = place.current()
    program = running / "venv/bin/sleeper"
    shutil.copy(sys.executable, program)
    with subprocess.Popen([program, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        for version in ("2", "3", "4"):
            place.version(version)
            place.install()
        assert running.is_dir()
        assert place.releases() == 3
        process.kill()
    place.version("5")
    place.install()
    assert not running.exists()
    assert place.releases() == 2


def test_upgrades_that_are_built_first_leave_no_old_release_behind(place: Place) -> None:
    """As playbooks do it, each version prepared and then switched to; the way back is kept."""
    place.install()
    for version in ("2", "3", "4"):
        place.version(version)
        assert [place.install("--prepare"), place.install()] == ["prepared", "switched"]
        assert place.releases() == 2
    place.version("3")
    assert place.install() == "switched"
    assert (place.installed(), place.releases()) == ("3", 2)


def test_an_install_of_before_there_were_releases_is_taken_over(place: Place) -> None:
    """Folders of that time become links, so that units find what they name."""
    for name in ("venv", "docs", "source"):
        (place.prefix / name).mkdir(parents=True)
    (place.prefix / ".installed").write_text("a stamp")
    assert place.install() == "installed"
    assert all((place.prefix / name).is_symlink() for name in ("venv", "docs", "source"))
    assert place.install() == "unchanged"


def test_a_wrong_argument_is_named(tmp_path: pathlib.Path) -> None:
    """A wrong argument or source is named, exit code 2, and nothing is made."""
    for words in (["--nonsense", "x"], ["--source", str(tmp_path)], ["--prefix"]):
        done = subprocess.run([SCRIPT, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert words[0] in done.stderr


@pytest.mark.long
def test_it_installs_for_real(tmp_path: pathlib.Path) -> None:
    """What it made runs ``farm`` and the farm's own engine, whose file names no release."""
    prefix = tmp_path / "opt"
    words = [SCRIPT, "--source", watched_run.ROOT, "--prefix", prefix]
    first = subprocess.run(words, capture_output=True, text=True, check=False)
    assert first.stdout.split()[-1:] == ["installed"], first.stderr
    farm = [prefix / "venv/bin/farm", "--help"]
    assert "launch" in subprocess.run(farm, capture_output=True, text=True, check=False).stdout
    engine = prefix / "venv/bin/farm-engine"
    spoken = subprocess.run([engine], input="uci\n", capture_output=True, text=True, check=False)
    assert "uciok" in spoken.stdout, spoken.stderr
    assert str(prefix) not in engine.read_text()
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.stdout.split() == ["unchanged"]
