"""Role monitoring and role watched: who gets alerts, what is asked, and who may ask."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import playbooks
import pytest
import watched_run as run
import yaml

ROLES = playbooks.ANSIBLE / "roles"
INVENTORY = """---
all:
  vars:
    ansible_connection: local
    ansible_become: false
  children:
    control: {hosts: {control.example.org: }}
    halls: {hosts: {cpu1.example.org: , cpu2.example.org: }}
    gpu_boxes: {hosts: {gpu1.example.org: }}
    monitoring: {hosts: {watch.example.org: }}
"""
PLAY = """---
- hosts: monitoring
  gather_facts: false
  tasks:
    - ansible.builtin.include_vars: {{file: {roles}/{role}/defaults/main.yml, name: usual}}
    - ansible.builtin.set_fact: {{"{{{{ item.key }}}}": "{{{{ item.value }}}}"}}
      loop: "{{{{ usual | dict2items | rejectattr('key', 'in', told) }}}}"
    - ansible.builtin.template:
        src: {roles}/{role}/templates/{name}.j2
        dest: {dest}
        mode: "0644"
      vars: {{role_path: {roles}/{role}}}
"""


def rendered(place: pathlib.Path, role: str, name: str, **told: object) -> pathlib.Path:
    """Return a role's template as ansible writes it for the monitoring host."""
    (place / "hosts.yml").write_text(INVENTORY)
    dest = place / name
    (place / "play.yml").write_text(PLAY.format(roles=ROLES, role=role, name=name, dest=dest))
    words = ["-i", place / "hosts.yml", place / "play.yml"]
    words += ["-e", json.dumps(told | {"told": list(told)})]
    done = playbooks.tool("ansible-playbook", *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    return dest


def checked(*words: str | pathlib.Path, skip: str = "") -> str:
    """Run a program; fail with what it says, skip where it is not installed."""
    program = shutil.which(str(words[0]))
    if program is None:
        pytest.skip(f"{words[0]} is not installed (scripts/system-packages.txt) {skip}")
    done = subprocess.run(
        [program, *words[1:]], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


WEBHOOK = {"monitoring_alert_webhook": "https://pager.example.net/farm"}
MAIL = {
    "monitoring_alert_email_to": "a@example.net, b@example.net",
    "monitoring_alert_email_from": "farm@example.net",
    "monitoring_alert_smarthost": "mail.example.net:587",
    "monitoring_alert_smtp_user": "farm",
    "monitoring_alert_smtp_password": 'a"b: #c',
}


@pytest.mark.parametrize(
    ("told", "receivers"),
    [
        (WEBHOOK, {"webhook_configs"}),
        (MAIL, {"email_configs"}),
        (
            WEBHOOK | MAIL | {"monitoring_watchdog_url": "https://dead.example.net/1"},
            {"webhook_configs", "email_configs"},
        ),
    ],
    ids=["webhook", "mail", "both and a watchdog"],
)
def test_alerts_go_to_those_who_are_named(
    tmp_path: pathlib.Path, told: dict[str, str], receivers: set[str]
) -> None:
    """Alertmanager accepts what is written, and routes by it."""
    path = rendered(tmp_path, "monitoring", "alertmanager.yml", **told)
    checked("amtool", "check-config", path)
    found = yaml.safe_load(path.read_text())
    operators, watchdog = found["receivers"]
    assert set(operators) - {"name"} == receivers
    assert ("webhook_configs" in watchdog) == ("monitoring_watchdog_url" in told)
    if "email_configs" in receivers:
        assert found["global"]["smtp_auth_password"] == MAIL["monitoring_alert_smtp_password"]
    assert "example.org" not in path.read_text()
    route = ("amtool", "config", "routes", "test", f"--config.file={path}")
    assert checked(*route, "alertname=FarmWatchdog", "severity=none").split() == ["watchdog"]
    assert checked(*route, "alertname=FarmRedisDown", "severity=critical").split() == ["operators"]


def test_alerts_that_nobody_gets_are_refused(tmp_path: pathlib.Path) -> None:
    """By the role, before anything is installed; the file by hand by Alertmanager itself."""
    (tmp_path / "hosts.yml").write_text(INVENTORY)
    play = tmp_path / "play.yml"
    play.write_text(f"- hosts: monitoring\n  gather_facts: false\n  roles: [{ROLES}/monitoring]\n")
    done = playbooks.tool("ansible-playbook", "-i", tmp_path / "hosts.yml", play, "--check")
    assert done.returncode != 0
    assert "Nobody would get an alert. Set monitoring_alert_webhook" in done.stdout
    assert "Install Prometheus" not in done.stdout
    shared = run.ROOT / "deploy" / "alertmanager" / "alertmanager.yml"
    if shutil.which("amtool"):
        done = subprocess.run(["amtool", "check-config", shared], capture_output=True, check=False)
        assert done.returncode != 0
    own = tmp_path / "own.yml"
    own.write_text(shared.read_text().replace("FARM_ALERT_WEBHOOK", "https://pager.example.net"))
    checked("amtool", "check-config", own)


def test_targets_follow_from_the_groups(tmp_path: pathlib.Path) -> None:
    """Each host's node_exporter, the control host's exporter, Prometheus and Alertmanager."""
    path = rendered(tmp_path, "monitoring", "prometheus.yml", monitoring_grafana_package="grafana")
    checked("promtool", "check", "config", "--syntax-only", path)
    jobs = {job["job_name"]: job for job in yaml.safe_load(path.read_text())["scrape_configs"]}
    assert jobs["farm"]["static_configs"] == [{"targets": ["control.example.org:9464"]}]
    assert {"prometheus", "alertmanager", "grafana", "node", "gpu"} <= jobs.keys()
    defaults = yaml.safe_load((ROLES / "monitoring" / "defaults" / "main.yml").read_text())
    (tmp_path / "node.j2").write_text(defaults["monitoring_node_targets"])
    hosts = re.findall(r"\S+:9100", _evaluated(tmp_path, "node.j2"))
    assert len(hosts) == 5


def _evaluated(place: pathlib.Path, name: str) -> str:
    words = ("-i", place / "hosts.yml", "watch.example.org", "-m", "ansible.builtin.template")
    dest = place / "evaluated"
    done = playbooks.tool("ansible", *words, "-a", f"src={place / name} dest={dest} mode=0644")
    assert done.returncode == 0, done.stdout + done.stderr
    return dest.read_text().replace("'", " ").replace(",", " ")


@contextlib.contextmanager
def namespace(name: str) -> Iterator[tuple[str, ...]]:
    """Make a network namespace; give the words that run a command in it."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("hardware: root and iproute2 are needed for a network of its own")
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        yield ("ip", "netns", "exec", name)
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def arguments(path: pathlib.Path) -> list[str]:
    """Return the arguments of a file of /etc/default, as the unit's shell splits them."""
    found = re.search(r'^ARGS="(.*)"$', path.read_text(), re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.mark.parametrize(
    ("role", "name", "program", "port"),
    [
        ("monitoring", "prometheus", "prometheus", 9090),
        ("monitoring", "prometheus-alertmanager", "prometheus-alertmanager", 9093),
        ("watched", "node-exporter", "prometheus-node-exporter", 9100),
    ],
)
def test_debians_programs_take_their_arguments_and_answer_here_alone(
    tmp_path: pathlib.Path, role: str, name: str, program: str, port: int
) -> None:
    """Started with them in a network of its own, each listens on the loopback and nowhere else."""
    path = rendered(tmp_path, role, name, monitoring_retention_size="10GB")
    words = [shutil.which(program) or pytest.skip(f"{program} is not installed"), *arguments(path)]
    if program == "prometheus":
        config = rendered(tmp_path, "monitoring", "prometheus.yml")
        text = config.read_text().replace("/etc/prometheus", str(tmp_path))
        config.write_text(text)
        words += [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
        assert "--storage.tsdb.retention.time=400d" in words
    elif program == "prometheus-alertmanager":
        config = rendered(tmp_path, "monitoring", "alertmanager.yml", **WEBHOOK)
        words += [f"--config.file={config}", f"--storage.path={tmp_path / 'data'}"]
    with (
        namespace(f"monitoring-{uuid.uuid4().hex[:6]}") as inside,
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen([*inside, *words], stdout=log, stderr=log) as started,
    ):
        try:

            def listens() -> list[str]:
                assert started.poll() is None, (tmp_path / "log").read_text()
                told = subprocess.run(
                    [*inside, "ss", "-Hlntu"], capture_output=True, text=True, check=True
                )
                return [line.split()[4] for line in told.stdout.splitlines()]

            run.wait_for(listens, 60)
            assert listens() == [f"127.0.0.1:{port}"]
        finally:
            started.terminate()


def test_only_the_monitoring_network_may_ask(tmp_path: pathlib.Path) -> None:
    """The filter drops what others ask of the exporters' ports, and nothing else."""
    name = uuid.uuid4().hex[:6]
    path = rendered(tmp_path, "watched", "watched.nft", watched_from=["10.77.0.9", "fd00:77::/64"])
    if shutil.which("nft") is None:
        pytest.skip("nft is not installed (scripts/system-packages.txt)")
    with (
        namespace(f"monitoring-a{name}") as farm,
        namespace(f"monitoring-b{name}") as other,
    ):
        words = ["ip", "link", "add", f"va{name}", "netns", farm[-1], "type", "veth"]
        subprocess.run([*words, "peer", "name", f"vb{name}", "netns", other[-1]], check=True)
        for inside, device, addresses in (
            (farm, f"va{name}", ["10.77.0.1/24"]),
            (other, f"vb{name}", ["10.77.0.9/24", "10.77.0.8/24"]),
        ):
            for address in addresses:
                subprocess.run([*inside, "ip", "addr", "add", address, "dev", device], check=True)
            subprocess.run([*inside, "ip", "link", "set", device, "up"], check=True)
        for _ in range(2):  # a second time replaces the first
            subprocess.run([*farm, "nft", "--file", path], check=True)
        servers = [
            subprocess.Popen(
                [*farm, "python3", "-m", "http.server", str(port), "-d", tmp_path],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for port in (9100, 9464, 8080)
        ]
        try:

            def asked(inside: tuple[str, ...], source: str, to: str, port: int) -> bool:
                code = (
                    "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])),"
                    " 2, (sys.argv[3], 0)).close()"
                )
                words: list[Any] = [*inside, "python3", "-c", code, to, str(port), source]
                return subprocess.run(words, capture_output=True, check=False).returncode == 0

            for port in (9100, 9464, 8080):
                run.wait_for(lambda port=port: asked(farm, "127.0.0.1", "127.0.0.1", port), 30)
                assert asked(other, "10.77.0.9", "10.77.0.1", port)
                # Itself by its name, as a control host that is in group monitoring, too.
                assert asked(farm, "10.77.0.1", "10.77.0.1", port)
            assert asked(other, "10.77.0.8", "10.77.0.1", 8080)
            for port in (9100, 9464):
                assert not asked(other, "10.77.0.8", "10.77.0.1", port)
        finally:
            for server in servers:
                server.terminate()
                server.wait()
