"""The playbooks: linted, specified, and refused beside a game in flight.

They are run for real in ``test_hosts``.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys

import playbooks
import pytest
import yaml


def test_yamllint_is_content() -> None:
    """``yamllint --strict`` finds nothing."""
    done = playbooks.tool("yamllint", "-s", ".")
    assert done.returncode == 0, done.stdout


def test_ansible_lint_is_content_in_profile_production() -> None:
    """``ansible-lint`` passes in its strictest profile, without network."""
    told = yaml.safe_load((playbooks.ANSIBLE / ".ansible-lint").read_text())
    assert told["profile"] == "production"
    done = playbooks.tool("ansible-lint", "--offline", "-q")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_playbooks_parse() -> None:
    """Every playbook passes ``--syntax-check`` against the example inventory."""
    done = playbooks.tool("ansible-playbook", "--syntax-check", *playbooks.PLAYBOOKS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("role", playbooks.ROLES)
def test_each_variable_is_specified_and_prefixed(role: str) -> None:
    """Defaults, argument_specs and use agree; names begin with the role's."""
    folder = playbooks.ANSIBLE / "roles" / role
    spec = yaml.safe_load((folder / "meta" / "argument_specs.yml").read_text())
    options = spec["argument_specs"]["main"]["options"]
    assert all(name.startswith(f"{role}_") for name in options)
    assert all(one["description"] for one in options.values())
    defaults = yaml.safe_load((folder / "defaults" / "main.yml").read_text())
    assert defaults == {n: one["default"] for n, one in options.items() if "default" in one}
    text = "".join(path.read_text() for path in folder.rglob("*") if path.is_file())
    assert all(len(re.findall(rf"\b{name}\b", text)) > 2 for name in options), "used somewhere"


def test_only_modules_of_ansible_core_are_used() -> None:
    """No collection has to be fetched."""
    for folder in ("roles", "playbooks"):
        for path in (playbooks.ANSIBLE / folder).rglob("*.yml"):
            for module in re.findall(r"^\s+(\w+\.\w+\.\w+):", path.read_text(), re.MULTILINE):
                assert module.startswith("ansible.builtin."), f"{path}: {module}"


# A farm that says: drained, and a game is in flight.
BUSY = """#!/bin/sh
[ "$1" = status ] && echo '{"halls": [{"hall": "hall-1", "game": "league.1"}]}'
exit 0
"""

TWO_HOSTS = """---
all:
  vars:
    ansible_connection: local
    ansible_become: false
    ansible_python_interpreter: {python}
  children:
    control: {{hosts: {{control-host: }}}}
    halls: {{hosts: {{hall-host: }}}}
"""


def test_an_upgrade_stops_on_all_hosts_while_a_game_is_in_flight(tmp_path: pathlib.Path) -> None:
    """It refuses by name, and no task is begun on the control host either."""
    (tmp_path / "farm").write_text(BUSY)
    (tmp_path / "farm").chmod(0o755)
    (tmp_path / "hosts.yml").write_text(TWO_HOSTS.format(python=sys.executable))
    told = {"upgrade_farm": [str(tmp_path / "farm")], "upgrade_tries": 1}
    done = playbooks.tool(
        *("ansible-playbook", "-i", tmp_path / "hosts.yml", playbooks.UPGRADE),
        *("-e", json.dumps(told | {"upgrade_delay_seconds": 1})),
    )
    assert done.returncode != 0
    assert "a game is in flight in hall-1 on hall-host" in done.stdout + done.stderr
    assert "Upgrade the control host" not in done.stdout, done.stdout
