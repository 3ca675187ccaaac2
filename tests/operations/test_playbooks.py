"""The playbooks: linted, specified, and refused beside a game in flight.

They are run for real in ``test_hosts``.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from typing import Any

import hosts
import jinja2
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


def test_what_lies_beside_an_inventory_is_no_host(tmp_path: pathlib.Path) -> None:
    """Passwords are where ``group_vars`` look for them, and none is taken for a host's name."""
    shutil.copytree(playbooks.ANSIBLE / "inventory" / "example", tmp_path / "ours")
    (tmp_path / "ours" / "files" / "redis").mkdir(parents=True)
    (tmp_path / "ours" / "files" / "redis" / "worker.password").write_text("sesame\n")
    done = playbooks.tool("ansible-inventory", "-i", str(tmp_path / "ours"), "--list")
    assert done.returncode == 0, done.stderr
    assert "cpu1.example.org" in done.stdout
    assert "sesame" not in done.stdout + done.stderr


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


# A farm that says: drained, and a game is in flight in hall-7; it notes what it was asked.
BUSY = """#!/bin/sh
[ "$1" = drain ] && echo "$2" > {place}/drained
[ "$1" = status ] && echo '{{"halls": [{{"hall": "hall-7", "game": "league.1"}}]}}'
[ "$1" = doctor ] && env > {place}/asked
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
    halls:
      hosts: {{hall-host: }}
      vars: {{hall_name: hall-7, hall_sandbox: plain}}
"""


def on_two_hosts(
    place: pathlib.Path, playbook: str, **told: object
) -> subprocess.CompletedProcess[str]:
    """Run a playbook on a control host and a hall of the name hall-7, whose farm is busy."""
    (place / "farm").write_text(BUSY.format(place=place))
    (place / "farm").chmod(0o755)
    (place / "hosts.yml").write_text(TWO_HOSTS.format(python=sys.executable))
    path = playbooks.ANSIBLE / "playbooks" / f"{playbook}.yml"
    told[f"{playbook}_farm"] = [str(place / "farm")]
    words = ("ansible-playbook", "-i", place / "hosts.yml", path, "-e", json.dumps(told))
    return playbooks.tool(*words)


UNIT = re.compile(r"farm-\w+@?")


def test_an_upgrade_stops_on_all_hosts_while_a_game_is_in_flight(tmp_path: pathlib.Path) -> None:
    """It drains the hall by its own name, refuses by it, and begins nothing on the control host."""
    done = on_two_hosts(tmp_path, "upgrade", upgrade_tries=1, upgrade_delay_seconds=1)
    assert done.returncode != 0
    assert (tmp_path / "drained").read_text() == "hall-7\n"
    assert "a game is in flight in hall-7 on hall-host" in done.stdout + done.stderr
    assert "Upgrade the control host" not in done.stdout, done.stdout


def test_an_upgrade_that_was_cut_off_starts_the_new_version_when_it_is_run_again() -> None:
    """Whether this run has installed it does not decide whether services are restarted."""
    plays = yaml.safe_load(playbooks.UPGRADE.read_text())
    after = [task for play in plays for task in play.get("post_tasks", ())]
    started = [one for one in after if "ansible.builtin.systemd_service" in one]
    assert [one["when"] for one in started] == ['ansible_facts.service_mgr == "systemd"'] * 3


def test_an_upgrade_restarts_all_that_runs_with_games_before_spectators() -> None:
    """Each unit of the farm that runs for good is named; the others are oneshot."""
    plays = yaml.safe_load(playbooks.UPGRADE.read_text())
    assert [one["hosts"] for one in plays] == ["halls", "control", "halls:gpu_boxes", "kibitzers"]
    restarted = {unit for play in plays for unit in UNIT.findall(str(play.get("post_tasks")))}
    units = (hosts.ROOT / "deploy" / "systemd").glob("*.service")
    lasting = {path.stem for path in units if "Type=oneshot" not in path.read_text()}
    assert restarted == lasting


def test_the_doctor_looks_at_the_hall_as_its_unit_plays(tmp_path: pathlib.Path) -> None:
    """The hall's name, its host's name and its sandbox are the inventory's."""
    done = on_two_hosts(tmp_path, "preflight")
    assert done.returncode == 0, done.stdout
    asked = (tmp_path / "asked").read_text().splitlines()
    assert {"FARM_HALL=hall-7", "FARM_HOST=hall-host", "FARM_SANDBOX=plain"} <= set(asked)


# -- tasks and templates by themselves ---------------------------------------------------------


def tasks(role: str) -> list[dict[str, Any]]:
    """Return a role's tasks."""
    path = playbooks.ANSIBLE / "roles" / role / "tasks" / "main.yml"
    read: list[dict[str, Any]] = yaml.safe_load(path.read_text())
    return read


def test_a_host_is_made_quiet_as_far_as_it_can_be(tmp_path: pathlib.Path) -> None:
    """A core that is offline (its file cannot be read) and missing SMT stop nothing."""
    hosts.sysfs(tmp_path)
    cpu = tmp_path / "devices/system/cpu"
    (cpu / "cpu3/cpufreq/scaling_governor").unlink()
    (cpu / "cpu3/cpufreq/scaling_governor").mkdir()
    (cpu / "smt/control").write_text("notsupported\n")
    role = playbooks.ANSIBLE / "roles" / "base"
    settings = yaml.safe_load((role / "defaults/main.yml").read_text())
    text = (role / "templates/farm-quiet.j2").read_text()
    script = jinja2.Template(text).render(settings | {"base_sysfs": tmp_path})
    runs = [
        subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [(one.returncode, one.stderr) for one in runs] == [(0, "")] * 2
    assert [one.stdout.count("changed") for one in runs] == [4, 0], "three governors, turbo"
    assert (cpu / "cpu2/cpufreq/scaling_governor").read_text() == "performance\n"
    assert (cpu / "smt/control").read_text() == "notsupported\n"


def test_tables_are_read_again_only_when_one_has_changed(tmp_path: pathlib.Path) -> None:
    """150 GB are not read at every run; a table that has changed since is, and is told."""
    shell = "ansible.builtin.shell"
    (script,) = [one[shell]["cmd"] for one in tasks("syzygy") if shell in one]
    table, stamp = tmp_path / "KQvK.rtbw", (1_000_000_000, 1_000_000_000)

    def hold(content: str, at: tuple[int, int]) -> subprocess.CompletedProcess[str]:
        table.write_text(content)
        os.utime(table, at)
        return subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    digest = hashlib.sha256(b"whole").hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  KQvK.rtbw\n")
    first, second, unread = hold("whole", stamp), hold("whole", stamp), hold("WHOLE", stamp)
    assert [one.returncode for one in (first, second, unread)] == [0, 0, 0], first.stderr
    assert ["unchanged" in one.stdout for one in (first, second, unread)] == [False, True, True]
    for _ in range(2):
        damaged = hold("WHOLE", (1_000_000_001, 1_000_000_001))
        assert damaged.returncode != 0
        assert "KQvK.rtbw: FAILED" in damaged.stdout


def test_only_what_is_in_the_archive_is_installed(tmp_path: pathlib.Path) -> None:
    """A module that a new version does not have any more is not installed with it."""
    if os.geteuid() != 0:
        pytest.skip("hardware: files of root's need root")
    script = tmp_path / "install-farm"
    script.write_text('#!/bin/sh\nls "$2" > "$4/seen"\necho installed\n')
    script.chmod(0o755)
    unpacking = tasks("program")
    names = [one["name"] for one in unpacking]
    del unpacking[names.index("Install the program, beside what runs") + 1 :]
    prefix = tmp_path / "opt"
    prefix.mkdir()
    told = {"program_prefix": str(prefix), "program_archive": str(tmp_path / "new.tar.gz")}
    told |= {"program_wheels": "", "program_prepare": False}
    play = {"name": "Unpack", "hosts": "hall-host", "gather_facts": False, "tasks": unpacking}
    (tmp_path / "play.yml").write_text(yaml.dump([play | {"vars": told}]))
    (tmp_path / "hosts.yml").write_text(TWO_HOSTS.format(python=sys.executable))
    for module in ("gone.py", "kept.py"):
        with tarfile.open(tmp_path / "new.tar.gz", "w:gz") as archive:
            archive.add(script, "deploy/install/install-farm")
            archive.add(__file__, module)
        playbooks.play(tmp_path / "hosts.yml", tmp_path / "play.yml")
        assert (prefix / "seen").read_text().split() == ["deploy", module]


READ = re.compile(r'"/\.\./\.\./(deploy/[^"{]+)", rstrip=false\)(.*?)\}\}', re.DOTALL)


def test_what_containers_call_by_name_is_replaced_on_hosts() -> None:
    """Each text that a role replaces is the file's; Grafana's source is not copied as it is."""
    found = set()
    for role in playbooks.ROLES:
        text = (playbooks.ANSIBLE / "roles" / role / "tasks" / "main.yml").read_text()
        assert "src: provisioning/," not in text
        for file, words in READ.findall(text):
            found.add(file)
            replaced = re.findall(r'replace\("([^"]+)"', words)
            assert replaced, file
            shared = (hosts.ROOT / file).read_text()
            assert all(one in shared for one in replaced), (file, replaced)
    assert found == {
        "deploy/nginx/farm.conf",
        "deploy/grafana/provisioning/datasources/prometheus.yml",
    }
