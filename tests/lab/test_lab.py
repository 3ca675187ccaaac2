"""The laboratory's short form: a host from bare Debian, a game, a restart of Redis in mid-game.

The long form is ``make lab``. Here one host is control side and hall at once.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys

import base
import host
import image
import lab
import pytest
import undo

KILLED = """
import os, signal
import lab
with lab.laboratory(keep=False) as hosts:
    hosts.add("control")
    print(hosts.folder, hosts.network.name, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_host_made_by_the_page_plays_on_when_redis_is_restarted(tmp_path: pathlib.Path) -> None:
    """By the page, under systemd, with users, TLS and bubblewrap: nothing is lost."""
    if why := host.problem():
        pytest.skip(f"hardware: a host of the laboratory cannot be made here: {why}")
    run = lab.Run(tmp_path / "lab.log")
    with lab.laboratory(keep=False) as hosts:
        lab.short(run, hosts)


def test_what_a_killed_run_has_left_is_taken_away_by_the_next() -> None:
    """Its hosts' processes, network and files are gone when the next laboratory is there."""
    if why := host.problem():
        pytest.skip(f"hardware: a host of the laboratory cannot be made here: {why}")
    script = [sys.executable, "-c", KILLED]
    here = pathlib.Path(__file__).parent
    done = subprocess.run(script, cwd=here, stdout=subprocess.PIPE, text=True, check=False)
    folder, network = done.stdout.split()
    groups = host.groups()
    assert groups is not None
    assert list(groups.glob(f"{network}-*")), "nothing was left"
    with lab.laboratory(keep=False):
        assert not pathlib.Path(folder).exists()
        assert network not in base.run("ip", "netns")
        assert not list(groups.glob(f"{network}-*"))


@pytest.mark.long
def test_each_step_of_the_image_runs_in_a_root_of_its_own(tmp_path: pathlib.Path) -> None:
    """Packages, user, copies and installation; then the farm starts as the image's user."""
    if why := host.problem():
        pytest.skip(f"hardware: no root of the laboratory can be made here: {why}")
    image.works(tmp_path / "image")


@pytest.mark.parametrize("point", undo.FAULTS)
def test_every_fault_of_old_can_be_put_back(point: str) -> None:
    """The texts that `make lab UNDO=n` replaces are where it looks for them."""
    for edit in undo.FAULTS[point].edits:
        assert any(edit.old in path.read_text() for path in base.ROOT.glob(edit.files)), edit
