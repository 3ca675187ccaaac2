"""What real shells offer at a Tab, with a farm, without one, and with one that hangs."""

from __future__ import annotations

import os
import pathlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence

import pytest

from orchestrator.commands import completion, launch, shell_offers
from orchestrator.ledger import embedded_redis, store
from orchestrator.season.file import load

PROGRAMS = pathlib.Path(sys.executable).parent
BASH = """
set -u
source "$SCRIPT"
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
compopt() { echo "files"; }
_farm_completion farm
printf '%s\\n' ${COMPREPLY[@]+"${COMPREPLY[@]}"}
"""


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run a Redis in which two seasons are launched; return its address."""
    with embedded_redis.EmbeddedRedis(tmp_path_factory.mktemp("redis")) as redis:
        with store.connect(redis.url) as ledger:
            for season, file in (("autumn", "demo.toml"), ("winter", "cup.toml")):
                loaded = load.load(launch.SEASONS / file)
                launch.start(ledger, loaded, season, "hall-1", "00", "test")
        yield redis.url


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Let the farm write its completion for bash."""
    path = tmp_path_factory.mktemp("bash") / "farm.bash"
    told = [PROGRAMS / "farm", "completion", "bash"]
    path.write_bytes(subprocess.run(told, capture_output=True, check=True).stdout)
    return path


def environment(folder: pathlib.Path, url: str = "") -> dict[str, str]:
    """Return an environment with the programs of this Python, and a farm or none."""
    hidden = {"FARM_REDIS_URL", "FARM_REDIS_URL_FILE", "FARM_DATA"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    named = {"FARM_REDIS_URL": url} if url else {}
    path = f"{PROGRAMS}:{kept['PATH']}"
    return kept | {"PATH": path, "HOME": str(folder), "FARM_DATA": str(folder / "none")} | named


def offered(
    script: pathlib.Path,
    folder: pathlib.Path,
    words: Sequence[str],
    url: str = "",
    patience: str = "60",
) -> list[str]:
    """Return what bash offers behind ``farm`` and ``words``, the last of them unfinished."""
    done = subprocess.run(
        ["bash", "--norc", "-c", BASH, "bash", "farm", *words],
        cwd=folder,
        env=environment(folder, url) | {"SCRIPT": str(script), shell_offers.PATIENCE: patience},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["season", "stan"], ["standings"]),
        (["sea"], ["season"]),
        (["amend", "ga"], ["gate"]),
        (["standings", "--ev"], ["--event"]),  # the name of before
        (["season", "standings", "--ev"], ["--event"]),
        (["completion", ""], list(completion.SHELLS)),
        (["check", "season1"], ["season16", "season17"]),
        (["check", "my-"], ["my-season.toml"]),
        (["check", "folder/"], ["files"]),
        (["no-such-command", "x"], []),
        (["standings", ""], []),
        (["standings", "--event", ""], []),
    ],
    ids=" ".join,
)
def test_bash_completes_without_a_farm(
    script: pathlib.Path, tmp_path: pathlib.Path, words: list[str], expected: list[str]
) -> None:
    """Commands, options and files are offered, names of a season not, and nothing is said."""
    (tmp_path / "my-season.toml").touch()
    assert offered(script, tmp_path, words) == expected


def test_bash_completes_the_names_of_a_farm(
    script: pathlib.Path, tmp_path: pathlib.Path, farm: str
) -> None:
    """Seasons, events and engines are those of the farm that the environment names."""
    engines = [engine.id for engine in load.load(launch.SEASONS / "demo.toml").engines]
    assert offered(script, tmp_path, ["standings", "a"], farm) == ["autumn"]
    assert offered(script, tmp_path, ["standings", "autumn", "--event", ""], farm) == [
        "league",
        "final",
    ]
    assert offered(script, tmp_path, ["open-gate", "f"], farm) == ["final"]
    assert offered(script, tmp_path, ["engine", "show", "--season", "autumn", ""], farm) == engines
    assert "round-32" in offered(script, tmp_path, ["standings", "--event", ""], farm)


def test_a_silent_redis_is_not_waited_for(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    """A server that takes the connection and says nothing leaves the shell without offers."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        url = f"redis://127.0.0.1:{mute.getsockname()[1]}/0"
        assert offered(script, tmp_path, ["standings", ""], url, patience="1") == []


def test_fish_completes(tmp_path: pathlib.Path, farm: str) -> None:
    """The script for fish works in fish."""
    if shutil.which("fish") is None:
        pytest.skip("package fish is not installed")
    asked = 'farm completion fish | source; complete --do-complete "farm standings au"'
    done = subprocess.run(
        ["fish", "--no-config", "-c", asked],
        cwd=tmp_path,
        env=environment(tmp_path, farm) | {shell_offers.PATIENCE: "60"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["autumn"]


def test_zsh_completes(tmp_path: pathlib.Path) -> None:
    """The script for zsh is zsh, and binds the program."""
    if shutil.which("zsh") is None:
        pytest.skip("package zsh is not installed")
    asked = 'autoload -Uz compinit; compinit -u; eval "$(farm completion zsh)"; print $_comps[farm]'
    done = subprocess.run(
        ["zsh", "-f", "-c", asked],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["_farm_completion"]
