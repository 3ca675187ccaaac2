"""A host for ansible without a machine: a debootstrap root, a network namespace, an sshd.

The root is made once and kept (``FARM_HOSTS_CACHE``, default in the temporary directory),
then copied for each run; nothing in it can reach another network than its own pair of
interfaces. All of its processes are in one process namespace and end with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pathlib
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence

ROOT = pathlib.Path(__file__).parents[2]
PACKAGES = (
    *("python3", "python3-apt", "python3-venv", "openssh-server", "ca-certificates", "iproute2"),
    *("chrony", "bubblewrap", "redis-server", "nginx-light"),
    *("prometheus", "prometheus-alertmanager"),
)
MIRROR = "http://deb.debian.org/debian"


def run(*words: str | pathlib.Path, timeout: float = 600) -> str:
    """Run a command; fail with all that it printed."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, timeout=timeout
    )
    assert done.returncode == 0, f"{shlex.join(map(str, words))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def cache() -> pathlib.Path:
    """Return the folder with root and wheels; make what is missing."""
    usual = pathlib.Path(tempfile.gettempdir()) / "farm-hosts"
    kept = pathlib.Path(os.environ.get("FARM_HOSTS_CACHE", usual))
    kept.mkdir(parents=True, exist_ok=True)
    if not (kept / "root.done").exists():
        shutil.rmtree(kept / "root", ignore_errors=True)
        words = ["--variant=minbase", f"--include={','.join(PACKAGES)}", "bookworm"]
        run("debootstrap", *words, kept / "root", os.environ.get("FARM_MIRROR", MIRROR))
        (kept / "root.done").touch()
    made = wheels(kept)
    if not made.with_suffix(".done").exists():
        pip = (sys.executable, "-m", "pip", "download", "-q", "-d", made)
        run(*pip, "--require-hashes", "-r", ROOT / "requirements.lock")
        # Debian's Python is 3.11.2: the lock asks for this one below 3.11.3.
        lock = (ROOT / "requirements.lock").read_text()
        older = re.findall(r"^(async-timeout==\S+)", lock, re.MULTILINE)
        run(*pip, "--no-deps", "setuptools>=68", "wheel", *older)
        made.with_suffix(".done").touch()
    return kept


def wheels(kept: pathlib.Path) -> pathlib.Path:
    """Return the folder of the wheels that the present lock asks for."""
    lock = (ROOT / "requirements.lock").read_bytes()
    return kept / f"wheels-{hashlib.sha256(lock).hexdigest()[:12]}"


class Host:
    """One host: its root directory, its address, how it is reached."""

    def __init__(self, root: pathlib.Path, address: str, key: pathlib.Path, init: int) -> None:
        """Describe a host that is up."""
        self.root, self.address, self.key, self._init = root, address, key, init

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the words that run a command inside, as root."""
        inside = ("nsenter", "-t", str(self._init), "-m", "-p", "-n", "--root", "--wd")
        return [*inside, *words]

    def inventory(self, path: pathlib.Path, variables: str) -> pathlib.Path:
        """Write the inventory in which this one host is everything."""
        groups = "".join(
            f"    {group}:\n      hosts:\n        farmhost:\n"
            for group in ("control", "halls", "gpu_boxes", "monitoring")
        )
        options = "-o UserKnownHostsFile=/dev/null -o StrictHostKeyChecking=no"
        path.write_text(
            f"""---
all:
  vars:
    ansible_host: {self.address}
    ansible_user: root
    ansible_become: false
    ansible_python_interpreter: /usr/bin/python3
    ansible_ssh_private_key_file: {self.key}
    ansible_ssh_common_args: {options}
{variables}
  children:
{groups}"""
        )
        return path


@contextlib.contextmanager
def host(work: pathlib.Path) -> Iterator[Host]:
    """Copy the root, give it a network and an sshd, and take all of it away again."""
    kept, root = cache(), work / "root"
    run("cp", "-a", kept / "root", root)
    shutil.copytree(wheels(kept), root / "srv" / "wheels")
    key = work / "key"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)
    shutil.copy(key.with_suffix(".pub"), root / "root/.ssh/authorized_keys")
    (root / "run/sshd").mkdir(parents=True, exist_ok=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost farmhost\n")
    # apt's lists are as old as the root; the hosts have no network to fetch newer ones.
    (root / "var/cache/apt/pkgcache.bin").touch()
    lists = root / "var/lib/apt/lists"
    lists.mkdir(parents=True, exist_ok=True)
    os.utime(lists)
    sysfs(root / "srv/sysfs")
    with network() as (namespace, address):
        script = (
            f"mount -t proc proc {root}/proc && mount --rbind /dev {root}/dev &&"
            f" exec chroot {root} /usr/sbin/sshd -D -e -o UsePAM=no -o PermitRootLogin=yes"
        )
        wrapped = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script]
        log = (work / "sshd.log").open("wb")
        process = subprocess.Popen(
            ["ip", "netns", "exec", namespace, *wrapped], stdout=log, stderr=log
        )
        try:
            yield Host(root, address, key, _init(process))
        finally:
            process.kill()
            process.wait()
            log.close()
            run("rm", "-rf", "--one-file-system", root)  # most of a gigabyte


def _init(process: subprocess.Popen[bytes]) -> int:
    """Return the first process of the namespace: the child of ``unshare``."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = children.read_text().split()
        if found and "sshd" in pathlib.Path(f"/proc/{found[0]}/cmdline").read_text():
            return int(found[0])
        time.sleep(0.1)
    raise AssertionError("the host's sshd did not start")


def sysfs(root: pathlib.Path) -> None:
    """Write a copy of the part of sysfs that the roles set, as a noisy host has it."""
    cpu = root / "devices/system/cpu"
    for number in range(4):
        governor = cpu / f"cpu{number}/cpufreq/scaling_governor"
        governor.parent.mkdir(parents=True, exist_ok=True)
        governor.write_text("powersave\n")
    for name, text in (("intel_pstate/no_turbo", "1"), ("smt/control", "on")):
        (cpu / name).parent.mkdir(parents=True, exist_ok=True)
        (cpu / name).write_text(f"{text}\n")


@contextlib.contextmanager
def network() -> Iterator[tuple[str, str]]:
    """Make a network namespace with one pair of interfaces; yield its name and address."""
    tag = secrets.token_hex(2)
    name, outside, inside = f"farm-{tag}", f"fh{tag}o", f"fh{tag}i"
    number = int(tag, 16)
    net = f"10.{200 + number % 50}.{number // 256}"
    run("ip", "netns", "add", name)
    try:
        run("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", name)
        run("ip", "addr", "add", f"{net}.1/24", "dev", outside)
        run("ip", "link", "set", outside, "up")
        for words in (
            ("addr", "add", f"{net}.2/24", "dev", inside),
            ("link", "set", inside, "up"),
            ("link", "set", "lo", "up"),
        ):
            run("ip", "-n", name, *words)
        yield name, f"{net}.2"
    finally:
        run("ip", "netns", "del", name)
