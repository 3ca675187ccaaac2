"""The laboratory's short form: a host from bare Debian, a game, a restart of Redis in mid-game.

The long form is ``make lab``. Here one host is control side and hall at once.
"""

from __future__ import annotations

import pathlib

import host
import lab
import pytest


def test_a_host_made_by_the_page_plays_on_when_redis_is_restarted(tmp_path: pathlib.Path) -> None:
    """By the page, under systemd, with users, TLS and bubblewrap: nothing is lost."""
    if why := host.problem():
        pytest.skip(f"hardware: a host of the laboratory cannot be made here: {why}")
    run = lab.Run(tmp_path / "lab.log")
    with lab.place(keep=False) as hosts:
        lab.short(run, hosts)
