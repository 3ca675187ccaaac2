"""The supported Pythons: said in one way everywhere, and really tried.

The short form compiles every module under each other supported interpreter that is here;
`make release` installs the lock under each and runs the core of the tests.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator

import pytest
import released
from packaging import requirements, specifiers

ROOT = released.ROOT
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SUPPORTED = ("3.11", "3.12", "3.13")
OWN = f"{sys.version_info.major}.{sys.version_info.minor}"  # of the Python that runs this
CORE = ("tests/test_layers.py", "tests/arbiter", "tests/rating", "tests/ledger", "tests/season")
PIN = re.compile(r"^(?P<pin>[A-Za-z0-9][\w.\-]*==[^\s;\\]+)(?P<marker>\s*;[^\\]+)?", re.MULTILINE)


def interpreters_here() -> Iterator[tuple[str, pathlib.Path]]:
    """Yield the supported interpreters of this machine: in the PATH, then pyenv's."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    for version in SUPPORTED:
        places = [shutil.which(f"python{version}")]
        places += map(str, sorted(pyenv.glob(f"{version}.*/bin/python{version}"), reverse=True))
        for place in filter(None, places):
            if _runs(place, version):
                yield version, pathlib.Path(place)
                break


def _runs(place: str, version: str) -> bool:
    """Say whether an interpreter is one: pyenv's shims stand for versions not chosen, too."""
    done = subprocess.run([place, "--version"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and f" {version}." in done.stdout


FOUND = dict(interpreters_here())


def test_metadata_agrees_about_the_supported_versions() -> None:
    """requires-python, classifiers, the linter's target and the lock name the same versions."""
    project = PYPROJECT["project"]
    prefix = "Programming Language :: Python :: "
    told = [text.removeprefix(prefix) for text in project["classifiers"] if prefix in text]
    assert [version for version in told if "." in version] == list(SUPPORTED)
    assert project["requires-python"] == f">={SUPPORTED[0]}"
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{SUPPORTED[0].replace('.', '')}"
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert f"--universal --python-version {SUPPORTED[0]}" in makefile


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("dev", [False, True], ids=["run", "dev"])
def test_the_lock_serves_every_version(version: str, dev: bool) -> None:
    """Each requirement has exactly one pin that holds under a version, and satisfies it."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["embedded"], *(extras["dev"] if dev else ())]
    place = {"python_version": version, "python_full_version": f"{version}.4", "extra": ""}
    lock = (ROOT / f"requirements{'-dev' if dev else ''}.lock").read_text(encoding="utf-8")
    pins = [
        requirements.Requirement(f"{pin['pin']}{pin['marker'] or ''}") for pin in PIN.finditer(lock)
    ]
    for need in map(requirements.Requirement, wanted):
        holding = [
            pin.specifier
            for pin in pins
            if pin.name == need.name and (pin.marker is None or pin.marker.evaluate(place))
        ]
        assert len(holding) == 1, f"{need}: {holding} under Python {version}"
        (exact,) = holding[0]
        assert specifiers.SpecifierSet(str(need.specifier)).contains(exact.version)


def test_the_lock_is_hashed_and_names_no_place() -> None:
    """Every pin has a hash; no index, no file of a machine stands in a lock."""
    for path in (ROOT / "requirements.lock", ROOT / "requirements-dev.lock"):
        text = path.read_text(encoding="utf-8")
        blocks = re.split(r"\n(?=[A-Za-z0-9])", text)
        assert all("--hash=sha256:" in block for block in blocks)
        assert not re.search(r"://|^-|file:", text, re.MULTILINE)


@pytest.mark.parametrize("version", [version for version in FOUND if version != OWN])
def test_every_module_compiles(version: str, tmp_path: pathlib.Path) -> None:
    """No syntax, and no warning about it, keeps a supported interpreter from the sources."""
    packages = PYPROJECT["tool"]["mypy"]["packages"]
    command = [str(FOUND[version]), "-W", "error", "-m", "compileall", "-q", "-f", *packages]
    env = os.environ | {"PYTHONPYCACHEPREFIX": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("version", FOUND)
def test_the_core_passes(version: str, tmp_path: pathlib.Path) -> None:
    """Lock and farm are installed under each interpreter, and the core's tests pass there."""
    print(f"Python {version}: {FOUND[version]}")
    subprocess.run([FOUND[version], "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    lock = ROOT / "requirements-dev.lock"
    subprocess.run([*install, "--require-hashes", "-r", lock], check=True)
    tree = released.copy(tmp_path)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", tree], check=True)
    path = f"{python.parent}:{os.environ['PATH']}"
    env = os.environ | {"FARM_LONG": "0", "CI": "", "PATH": path}
    tests = ["pytest", "-q", "-n", "2", "--dist", "loadfile", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [python, "-m", *tests, *CORE],
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout.strip().rpartition("\n")[2])
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_this_python_is_supported() -> None:
    """The tests run under one of the versions that are promised."""
    assert OWN in SUPPORTED
