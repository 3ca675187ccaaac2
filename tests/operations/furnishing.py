"""What stands on a host beside the farm: variables, keys, engines, a season, a driver."""

from __future__ import annotations

import pathlib
import shutil

import hosts

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
    monitoring_alert_webhook: http://127.0.0.1:9/alerts
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


def prepare(work: pathlib.Path) -> dict[str, str]:
    """Make what the variables name: passwords, notices, the source, an engine, keys of boxes.

    Return the engine's checksum and the public keys, by their names in ``VARIABLES``.
    """
    passwords, boxes = work / "passwords", work / "boxes"
    farm = shutil.which("farm") or "farm"
    users = hosts.run(farm, "acl", "--passwords", passwords, "--operator", "anna")
    (passwords / "users.acl").write_text(users)
    (work / "notify.toml").write_text(hosts.run(farm, "notify", "example"))
    hosts.run(hosts.ROOT / "scripts" / "make-source-archive", work / "farm.tar.gz")
    engine = work / "patient"
    engine.write_text(PATIENT)
    told = {"digest": hosts.run("sha256sum", engine).split()[0]}
    boxes.mkdir()
    for name in ("play", "push"):
        hosts.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", boxes / name)
        told[name] = (boxes / f"{name}.pub").read_text().strip()
    return told


def inventory(host: hosts.Host, work: pathlib.Path, told: dict[str, str]) -> pathlib.Path:
    """Write the inventory of a host that is up, and how its box is reached; return its path."""
    host_key = (host.root / "etc/ssh/ssh_host_ed25519_key.pub").read_text().split()[:2]
    (work / "boxes" / "boxes.toml").write_text(BOXES.format(host_key=" ".join(host_key)))
    return host.inventory(work / "hosts.yml", VARIABLES.format(work=work, **told))
