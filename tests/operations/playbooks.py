"""Ansible's programs, run in their directory; what they say of a run."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import hosts
import pytest

ANSIBLE = hosts.ROOT / "ansible"
PLAYBOOKS = sorted((ANSIBLE / "playbooks").glob("*.yml"))
ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())
SITE, UPGRADE = (ANSIBLE / "playbooks" / f"{name}.yml" for name in ("site", "upgrade"))


def tool(*words: str | pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run one of ansible's programs in its directory."""
    program = shutil.which(str(words[0]))
    if program is None:
        pytest.skip(f"{words[0]} is not installed (requirements-dev.lock)")
    return subprocess.run(
        [program, *map(str, words[1:])],
        cwd=ANSIBLE,
        env=os.environ | {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(ANSIBLE / "ansible.cfg")},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def play(inventory: pathlib.Path, *words: str | pathlib.Path) -> str:
    """Run ansible-playbook; fail with its last lines."""
    done = tool("ansible-playbook", "-i", inventory, *words)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def recap(text: str) -> dict[str, int]:
    """Return the counts of ansible's last line."""
    line = next(line for line in text.splitlines() if re.match(r"farmhost\s+:", line))
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}
