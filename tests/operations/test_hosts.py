"""The playbooks: linted; and run for real on a host that then plays a league.

The real run needs root, debootstrap and minutes: ``make hosts``. Everything a host does is
read from what ansible put there: the services are started from their units' ExecStart,
user, environment and credentials.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

import hosts
import pytest
import units
import yaml

from orchestrator import contract

ANSIBLE = hosts.ROOT / "ansible"
PLAYBOOKS = sorted((ANSIBLE / "playbooks").glob("*.yml"))
ROLES = sorted(path.name for path in (ANSIBLE / "roles").iterdir())


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


def test_yamllint_is_content() -> None:
    """``yamllint --strict`` finds nothing."""
    done = tool("yamllint", "-s", ".")
    assert done.returncode == 0, done.stdout


def test_ansible_lint_is_content_in_profile_production() -> None:
    """``ansible-lint`` passes in its strictest profile, without network."""
    assert yaml.safe_load((ANSIBLE / ".ansible-lint").read_text())["profile"] == "production"
    done = tool("ansible-lint", "--offline", "-q")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_playbooks_parse() -> None:
    """Every playbook passes ``--syntax-check`` against the example inventory."""
    done = tool("ansible-playbook", "--syntax-check", *PLAYBOOKS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("role", ROLES)
def test_each_variable_is_specified_and_prefixed(role: str) -> None:
    """Defaults, argument_specs and use agree; names begin with the role's."""
    folder = ANSIBLE / "roles" / role
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
    for path in [*(ANSIBLE / "roles").rglob("*.yml"), *(ANSIBLE / "playbooks").rglob("*.yml")]:
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
    done = tool(
        *("ansible-playbook", "-i", tmp_path / "hosts.yml", ANSIBLE / "playbooks" / "upgrade.yml"),
        *("-e", json.dumps(told | {"upgrade_delay_seconds": 1})),
    )
    assert done.returncode != 0
    assert "a game is in flight in hall-1 on hall-host" in done.stdout + done.stderr
    assert "Upgrade the control host" not in done.stdout, done.stdout


# -- for real --------------------------------------------------------------------------

VARIABLES = """    base_sysfs: /srv/sysfs
    base_shell: /bin/sh
    base_housekeeping_cpus: "0"
    base_hall_cpus: "1"
    program_wheels: /srv/wheels
    program_archive: {work}/farm.tar.gz
    program_passwords_src: {work}/passwords
    redis_acl_src: {work}/passwords/users.acl
    control_notify_src: {work}/notify.toml
    hall_check_size: false
    hall_sandbox: plain
    hall_boxes_src: {work}/boxes
    hall_lanes:
      - {{name: a, cpus: 0-1}}
    gpu_box_name: gpu-1
    gpu_box_nvidia_smi: /srv/nvidia-smi
    gpu_box_clock_mhz: 1410,1410
    gpu_box_power_watts: 200
    gpu_box_agent_key: {play}
    gpu_box_push_key: {push}
    monitoring_docs_url: http://127.0.0.1:8080/docs
    engines_list:
      - {{id: patient, src: {work}/patient, sha256: {digest}, name: patient}}
"""

BOXES = """[box.gpu-1]
address = "127.0.0.1"
user = "farm"
key = "/etc/farm/boxes/play"
push_key = "/etc/farm/boxes/push"
host_key = "{host_key}"
"""

# Plays as the farm's own engine, but not before /srv/go is there: a game as long as we like.
PATIENT = """#!/usr/bin/python3
import os, subprocess, sys, time
command = ["/opt/farm/venv/bin/farm-engine", "--nodes", "30"]
engine = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0)
for line in sys.stdin.buffer:
    while line.startswith(b"go") and not os.path.exists("/srv/go"):
        time.sleep(0.05)
    engine.stdin.write(line)
"""

SEASON = """schema = 1
id = "boxed"
name = "A hall against a GPU box"
[roster]
[[roster.engine]]
id = "near"
name = "Near"
command = ["/opt/engines/patient/{short}/patient"]
[[roster.engine]]
id = "far"
name = "Far"
command = ["/opt/farm/venv/bin/farm-engine", "--nodes", "30"]
competition = "gpu"
box = "gpu-1"
[[event]]
id = "match"
name = "Match"
format = {{ kind = "match", games = 2 }}
entrants = "roster"
time_control = "600s+1s"
limits = {{ threads = 1, hash_mb = 16 }}
adjudication = {{ max_moves = 6 }}
tiebreaks = ["seed"]
"""

ENGINES = """schema = 1
[[engine]]
id = "dev"
name = "Dev"
command = ["/opt/farm/venv/bin/farm-engine", "--nodes", "30"]
[[engine]]
id = "base"
name = "Base"
command = ["/opt/farm/venv/bin/farm-engine", "--nodes", "20"]
"""

SMI = """#!/bin/sh
echo "$@" >> /srv/nvidia-smi.log
"""
GPU = "GPU-aaaa RTX-2080-Ti 45 1545 120 0 0\n"  # as tests/gpu/fake_nvml.c reads it
DRIVER = "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[hosts.Host, pathlib.Path]]:
    """Return a host that is up, and its inventory; nothing of the farm is on it yet."""
    work = tmp_path_factory.mktemp("hosts")
    passwords, boxes = work / "passwords", work / "boxes"
    farm = shutil.which("farm") or "farm"
    users = hosts.run(farm, "acl", "--passwords", passwords, "--operator", "anna")
    (passwords / "users.acl").write_text(users)
    (work / "notify.toml").write_text(hosts.run(farm, "notify", "example"))
    hosts.run(hosts.ROOT / "scripts" / "make-source-archive", work / "farm.tar.gz")
    engine = work / "patient"
    engine.write_text(PATIENT)
    digest = hosts.run("sha256sum", engine).split()[0]
    boxes.mkdir()
    keys = {}
    for name in ("play", "push"):
        hosts.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", boxes / name)
        keys[name] = (boxes / f"{name}.pub").read_text().strip()
    with hosts.host(work) as host:
        host_key = (host.root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
        (boxes / "boxes.toml").write_text(BOXES.format(host_key=" ".join(host_key)))
        furnish(host, digest)
        variables = VARIABLES.format(work=work, digest=digest, **keys)
        yield host, host.inventory(work / "hosts.yml", variables)


def furnish(host: hosts.Host, digest: str) -> None:
    """Put what is no part of the farm onto the host: a driver, and what a person would type."""
    source = hosts.ROOT / "tests" / "gpu" / "fake_nvml.c"
    (host.root / DRIVER).parent.mkdir(parents=True, exist_ok=True)
    hosts.run("gcc", "-shared", "-fPIC", "-o", host.root / DRIVER, source)
    files = {
        "nvidia-smi": SMI,
        "gpus": GPU,
        "boxed.toml": SEASON.format(short=digest[:12]),
        "engines.toml": ENGINES,
    }
    for name, text in files.items():
        (host.root / "srv" / name).write_text(text)
    (host.root / "srv/nvidia-smi").chmod(0o755)


def play(inventory: pathlib.Path, *words: str) -> str:
    """Run ansible-playbook; fail with its last lines."""
    done = tool("ansible-playbook", "-i", inventory, *words)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


def recap(text: str) -> dict[str, int]:
    """Return the counts of ansible's last line."""
    line = next(line for line in text.splitlines() if re.match(r"farmhost\s+:", line))
    return {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", line)}


@pytest.mark.long
def test_the_second_run_changes_nothing(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """site.yml makes the host; again, and in check mode, nothing is left to do."""
    host, inventory = made
    site = str(ANSIBLE / "playbooks" / "site.yml")
    first = recap(play(inventory, site))
    assert first["changed"] > 20, first
    second = play(inventory, site)
    assert (recap(second)["changed"], recap(second)["failed"]) == (0, 0), second[-4000:]
    checked = play(inventory, site, "--check", "--diff")
    assert recap(checked)["changed"] == 0, checked[-4000:]
    cpu = host.root / "srv/sysfs/devices/system/cpu"
    assert (cpu / "cpu3/cpufreq/scaling_governor").read_text() == "performance\n"
    assert (cpu / "smt/control").read_text() == "off\n"


@pytest.mark.long
def test_the_halls_keys_open_the_box_for_one_thing_each(
    made: tuple[hosts.Host, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """One key reaches the agent of prepared seats alone, the other SFTP alone; no shell."""
    host, inventory = made
    told = {
        words: ssh(host, inventory.parent / "boxes" / "play", words)
        for words in ("seat nobody-1", "id", "sh -i")
    }
    assert "no such seat is prepared" in told["seat nobody-1"]
    assert "starts or rejoins a prepared seat, nothing else" in told["id"]
    assert told["id"] == told["sh -i"]
    (tmp_path / "file").write_text("pushed")
    (tmp_path / "batch").write_text(f"put {tmp_path / 'file'} pushed\n")
    push = inventory.parent / "boxes" / "push"
    hosts.run("sftp", *ssh_options(push), "-b", tmp_path / "batch", f"farm@{host.address}")
    assert (host.root / "var/lib/farm-gpu/pushed").read_text() == "pushed"
    assert "uid=" not in ssh(host, push, "id")


def ssh_options(key: pathlib.Path) -> list[str]:
    """Return the options of ssh and sftp for a host of which nothing is known yet."""
    told = ("BatchMode=yes", "UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no")
    return ["-q", "-i", str(key), *(word for one in told for word in ("-o", one))]


def ssh(host: hosts.Host, key: pathlib.Path, words: str) -> str:
    """Return what a key is answered."""
    command = ["ssh", *ssh_options(key), f"farm@{host.address}", words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


@pytest.mark.long
def test_what_a_reboot_forgets_is_set_again(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """Governor by farm-quiet; persistence, clocks and power by the driver's own tool."""
    host, _ = made
    governor = host.root / "srv/sysfs/devices/system/cpu/cpu3/cpufreq/scaling_governor"
    governor.write_text("powersave\n")
    for name in ("farm-quiet", "farm-gpu-clocks"):
        units.Unit(host, f"{name}.service").run()
    assert governor.read_text() == "performance\n"
    log = (host.root / "srv/nvidia-smi.log").read_text()
    assert log == "-pm 1\n-lgc 1410,1410\n-pl 200\n"


@pytest.mark.long
def test_the_host_that_was_made_plays(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """Hall, GPU box and lane play, started from their units; an upgrade waits for their game."""
    host, inventory = made
    farm = the_farm(host, inventory)
    redis, control, (hall, gpu, lane) = farm.units[0], farm.units[1:5], farm.units[5:]
    try:
        redis.start()
        farm.wait(lambda: bool(farm.status()), 120, "Redis")
        for unit in (*control, hall):
            unit.start()
        gpu.start({"FARM_FAKE_NVML": "/srv/gpus"})
        farm("launch", "/srv/boxed.toml")
        farm.wait(farm.in_flight, 180, "a game to begin")
        an_upgrade_waits_for_the_game(farm, hall, inventory, host)
        hall.start()  # the new version plays on
        farm.wait(lambda: farm.season("boxed") == "finished", 300, "the match of hall and box")
        the_box_was_charged_by_its_own_clock(host)
        farm("launch", "demo")
        farm.wait(lambda: farm.season("demo") == "finished", 600, "the demo season")
        lane.start()  # while an official game runs it could not make itself known
        a_lane_plays_a_test_match(farm)
        everybody_is_told(farm)
        a_backup_is_made(host)
        assert all(unit.running for unit in farm.units)
    finally:
        for unit in farm.units:
            unit.stop()


def the_farm(host: hosts.Host, inventory: pathlib.Path) -> units.Farm:
    """Return the farm on the host: Redis, the control side, hall, GPU box, lane."""
    (host.root / "var/log/redis").mkdir(exist_ok=True)
    control = ("farm-serve", "farm-exporter", "farm-web", "farm-notify")
    names = (*control, "farm-hall@hall-1", "farm-gpu", "farm-lane@hall-1.a")
    services = [
        units.Unit(host, "redis-server.service", "usr/lib/systemd/system"),
        *(units.Unit(host, f"{name}.service") for name in names),
    ]
    password = (inventory.parent / "passwords" / "anna.password").read_text().strip()
    url = f"FARM_REDIS_URL=redis://anna:{password}@127.0.0.1:6379/0"
    path = "PATH=/opt/farm/venv/bin:/usr/bin:/bin"
    return units.Farm(host, [url, path, "FARM_DATA=/srv/anna"], services)


def an_upgrade_waits_for_the_game(
    farm: units.Farm, hall: units.Unit, inventory: pathlib.Path, host: hosts.Host
) -> None:
    """It refuses while the game is in flight and does nothing; then it goes through."""
    words = ("-i", inventory, ANSIBLE / "playbooks" / "upgrade.yml")
    quick = ("-e", "upgrade_tries=1", "-e", "upgrade_delay_seconds=1")
    refused = tool("ansible-playbook", *words, *quick)
    assert refused.returncode != 0
    assert "a game is in flight in hall-1" in refused.stdout + refused.stderr
    assert "Copy the source" not in refused.stdout, "nothing is installed beside a game"
    assert farm.in_flight(), "the refused upgrade has ended the game"
    (host.root / "srv/go").touch()
    assert hall.process is not None
    farm.wait(lambda: not farm.in_flight(), 180, "the game's end")
    assert hall.process.wait(120) == 0, "a drained worker ends after its game, and stays ended"
    passed = recap(play(inventory, str(ANSIBLE / "playbooks" / "upgrade.yml"), *quick))
    assert passed["failed"] == 0


def the_box_was_charged_by_its_own_clock(host: hosts.Host) -> None:
    """The records say so: box and GPU of the far engine, and what the network took."""
    found = sorted((host.root / "var/lib/farm/archive/boxed").rglob("record.json"))
    assert len(found) == 2
    for path in found:
        record = contract.GameRecord.decode(path.read_bytes())
        (far,) = [one for one in (record.white, record.black) if one.box == "gpu-1"]
        assert far.gpus == ("RTX-2080-Ti GPU-aaaa",), path
        assert any(ply.network_ns for ply in record.plies)


def a_lane_plays_a_test_match(farm: units.Farm) -> None:
    """The lane's worker makes itself known and plays what it is dealt."""
    farm.wait(lambda: bool(json.loads(farm("lanes", "--json"))["lanes"]), 120, "the lane")
    (lane,) = json.loads(farm("lanes", "--json"))["lanes"]
    assert (lane["hall"], lane["lane"], lane["host"]) == ("hall-1", "a", "farmhost")
    words = ("--against", "base", "--file", "/srv/engines.toml", "--games", "2", "--tc", "1s+20ms")
    told = json.loads(farm("test", "dev", *words, "--id", "trial", "--json"))
    assert told["games"] == 2, told


def everybody_is_told(farm: units.Farm) -> None:
    """Metrics, page, and the runbook that an alert's link leads to."""
    gpu = re.compile(r'farm_gpu_temperature_celsius\{[^}]*"GPU-aaaa"[^}]*\} 45\.0')
    shown = "http://127.0.0.1:9464/metrics"
    farm.wait(lambda: bool(gpu.search(farm.get(shown))), 60, "the box to tell of its GPU")
    metrics = farm.get(shown)
    assert 'farm_season_status{season="demo",status="finished"} 1.0' in metrics
    assert "<html" in farm.get("http://127.0.0.1:8080/").lower()
    runbook = farm.get("http://127.0.0.1:8080/docs/runbooks/FarmExporterDown/")
    assert runbook.startswith("# FarmExporterDown")


def a_backup_is_made(host: hosts.Host) -> None:
    """The unit that the timer starts every hour brings the backup up to date."""
    units.Unit(host, "farm-backup.service").run()
    assert list((host.root / "var/backups/farm").rglob("journal.jsonl"))
