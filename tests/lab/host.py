"""One host of the laboratory: an overlay root, namespaces of its own, systemd as its first process.

A host reaches the other hosts and the operator's desk over a bridge in a network namespace of
the laboratory, and nothing else. It is rebooted by itself (``systemctl reboot`` inside) as by us
(``Host.reboot``), loses power (``Host.cut``), and is thrown away with its files.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import base

BOOT = pathlib.Path(__file__).with_name("boot.sh")
GROUPS = pathlib.Path("/sys/fs/cgroup")
DOMAIN = "example.org"  # the example inventory's hosts are the laboratory's
PATIENCE = 240.0  # s: what a host needs at a busy machine to boot or to end its services
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def problem() -> str:
    """Return why no host can be made here, '' when one can."""
    if os.geteuid() != 0:
        return "root is needed for namespaces"
    missing = [name for name in ("debootstrap", "unshare", "ip") if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)} on this machine"
    if groups() is None:
        return "this kernel has no cgroup version 2"
    probe = ["unshare", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net", "--fork", "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return done.stderr.strip()


def groups() -> pathlib.Path | None:
    """Return where control groups of version 2 are: alone, or beside version 1's."""
    for place in (GROUPS, GROUPS / "unified"):
        if (place / "cgroup.controllers").exists():
            return place
    return None


def controllers() -> list[str]:
    """Return the controllers that hosts have: cpusets and weights hold only with theirs."""
    place = groups()
    return (place / "cgroup.controllers").read_text().split() if place else []


class Network:
    """The bridge that hosts and desk are at, in a network namespace of its own."""

    def __init__(self, tag: str) -> None:
        """Make the namespace; the desk is its first address."""
        self.tag, self.name = tag, f"lab-{tag}"
        self.addresses = {f"desk.{DOMAIN}": "10.20.0.1"}
        self._given = 1
        base.run("ip", "netns", "add", self.name)
        for words in (
            ("link", "add", "br0", "type", "bridge"),
            ("addr", "add", "10.20.0.1/24", "dev", "br0"),
            ("link", "set", "br0", "up"),
            ("link", "set", "lo", "up"),
        ):
            base.run("ip", "-n", self.name, *words)

    def join(self, name: str) -> str:
        """Give a host a namespace with an address on the bridge; return the namespace's name."""
        self._given = number = self._given + 1  # a host that is replaced has another address
        namespace, cable = f"{self.name}-{name}", f"to{number}"
        base.run("ip", "netns", "add", namespace)
        words = ("type", "veth", "peer", "name", "eth0", "netns", namespace)
        base.run("ip", "-n", self.name, "link", "add", cable, *words)
        base.run("ip", "-n", self.name, "link", "set", cable, "master", "br0", "up")
        self.addresses[f"{name}.{DOMAIN}"] = address = f"10.20.0.{number}"
        for words in (
            ("addr", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            base.run("ip", "-n", namespace, *words)
        return namespace

    def leave(self, name: str) -> None:
        """Take a host's namespace away; its address is not given again."""
        base.run("ip", "netns", "del", f"{self.name}-{name}")

    def hosts_file(self) -> str:
        """Return what stands in /etc/hosts on every host and at the desk."""
        lines = [f"{address} {name}" for name, address in self.addresses.items()]
        return "\n".join(["127.0.0.1 localhost", "::1 localhost ip6-localhost", *lines, ""])


class Host:
    """A host that is up, down or gone."""

    def __init__(self, network: Network, name: str, folder: pathlib.Path, key: str) -> None:
        """Describe a bare host; ``key`` may log in as user ``debian``, who may become root."""
        self.name, self.full = name, f"{name}.{DOMAIN}"
        self.folder, self._network = folder, network
        self.boots = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._wanted = False
        self._namespace = network.join(name)
        layers = (base.wheels(), base.packages(), base.root())
        self._lower = ":".join(map(str, layers))
        for part in ("upper", "work", "root", "sys"):
            (folder / part).mkdir(parents=True)
        self._write("etc/hostname", f"{self.full}\n")
        self._write("etc/ssh/authorized", key)
        keys = "AuthorizedKeysFile /etc/ssh/authorized .ssh/authorized_keys\n"
        self._write("etc/ssh/sshd_config.d/lab.conf", keys)
        base.run("ssh-keygen", "-A", "-f", folder / "upper")
        group = groups()
        assert group is not None
        self._group = group / f"{network.name}-{name}"

    def _write(self, path: str, text: str) -> None:
        file = self.folder / "upper" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    @property
    def host_key(self) -> str:
        """Return the public key that the host's sshd shows."""
        text = (self.folder / "upper/etc/ssh/ssh_host_ed25519_key.pub").read_text()
        return " ".join(text.split()[:2])

    # -- power -----------------------------------------------------------------------

    def start(self) -> None:
        """Switch the host on and wait for its sshd; a reboot from inside is followed."""
        self._wanted = True
        self._boot()
        threading.Thread(target=self._follow, daemon=True).start()
        self.wait_up()

    def _boot(self) -> None:
        self._write("etc/hosts", self._network.hosts_file())
        _noise(self.folder / "sys")
        shutil.rmtree(self.folder / "work", ignore_errors=True)
        (self.folder / "work").mkdir()
        script = (
            f'echo $$ > "{self._group}/cgroup.procs" && exec nsenter'
            f" --net=/run/netns/{self._namespace} unshare --mount --pid --uts --ipc --cgroup"
            f' --fork --kill-child sh {BOOT} "$@"'
        )
        self._group.mkdir(exist_ok=True)
        words = ["sh", "-c", script, "sh", self.full, self._lower, str(self.folder)]
        with (self.folder / "console.log").open("ab") as log:
            self._process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        self.boots += 1

    def _follow(self) -> None:
        """Boot again after each reboot that the host itself asked for; a thread's work."""
        while self._wanted and self._process is not None:
            ended = self._process.wait()
            if not self._wanted or ended not in {-signal.SIGHUP, 128 + signal.SIGHUP}:
                return
            self._boot()

    def wait_up(self) -> None:
        """Wait until systemd has started what it starts at boot."""

        def up() -> bool:
            words = ("systemctl", "is-system-running")
            return self.ask(*words) in {"running", "degraded"}

        wait(up, f"{self.name} to boot", PATIENCE, self._console)

    def _console(self) -> str:
        return (self.folder / "console.log").read_text(errors="replace")[-2000:]

    @property
    def init(self) -> int:
        """Return systemd's process id on this machine; 0 while the host is down."""
        if self._process is None or self._process.poll() is not None:
            return 0
        pid = self._process.pid
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                    return int(child)
        return 0

    def reboot(self) -> None:
        """Reboot as an operator does, with all that systemd does at a shutdown; wait for it."""
        before = self.boots
        self.ask("systemctl", "--no-block", "reboot")
        wait(lambda: self.boots > before, f"{self.name} to go down for its reboot", 2 * PATIENCE)
        self.wait_up()

    def cut(self) -> None:
        """Take the power away."""
        self._wanted = False
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def throw_away(self) -> None:
        """Take the host away with its files."""
        self.cut()
        wait(lambda: _emptied(self._group), f"the end of {self.name}'s processes", PATIENCE)
        self._network.leave(self.name)
        base.run("rm", "-rf", "--one-file-system", self.folder)

    # -- what is done on it ------------------------------------------------------------

    def command(self, words: Sequence[str]) -> list[str]:
        """Return the words that run a command inside as root, without this machine's variables."""
        assert self.init, f"{self.name} is down"
        inside = ("nsenter", "-t", str(self.init), "-m", "-u", "-i", "-n", "-p", "-C", "-r", "-w")
        return [*inside, "env", "-i", f"PATH={SYSTEM_PATH}", "LANG=C.UTF-8", "HOME=/root", *words]

    def run(self, *words: str, timeout: float = 300) -> str:
        """Run a command inside; fail with all that it printed."""
        return base.run(*self.command(words), timeout=timeout)

    def ask(self, *words: str) -> str:
        """Return what a command inside prints, whatever its end; '' while the host is down."""
        if not self.init:
            return ""
        done = subprocess.run(
            self.command(words), capture_output=True, text=True, check=False, timeout=300
        )
        return done.stdout.strip()

    def write(self, path: str, text: str, mode: str = "0644") -> None:
        """Write a file inside."""
        script = f"mkdir -p $(dirname {path}) && cat > {path} && chmod {mode} {path}"
        subprocess.run(self.command(("sh", "-c", script)), input=text, text=True, check=True)

    def journal(self, unit: str, lines: int = 40) -> str:
        """Return the last lines that a unit has logged."""
        return self.ask("journalctl", "--no-pager", "-o", "cat", "-n", str(lines), "-u", unit)

    def active(self, unit: str) -> str:
        """Return a unit's state, as ``systemctl is-active`` names it."""
        return self.ask("systemctl", "is-active", unit)


def _noise(sysfs: pathlib.Path) -> None:
    """Copy the parts of sysfs that roles set, as a noisy host has them after each boot."""
    shutil.rmtree(sysfs, ignore_errors=True)
    for tree in ("devices/system/cpu", "devices/virtual/workqueue", "kernel/mm"):
        source = pathlib.Path("/sys") / tree
        if source.is_dir():
            (sysfs / tree).parent.mkdir(parents=True, exist_ok=True)
            words = ["cp", "-r", "--no-preserve=all", str(source), str(sysfs / tree)]
            subprocess.run(words, capture_output=True, check=False)  # what cannot be read
    cpu = sysfs / "devices/system/cpu"
    for number in range(os.cpu_count() or 1):
        governor = cpu / f"cpu{number}/cpufreq/scaling_governor"
        governor.parent.mkdir(parents=True, exist_ok=True)
        governor.write_text("powersave\n")
    for name, text in (("intel_pstate/no_turbo", "1"), ("smt/control", "on")):
        (cpu / name).parent.mkdir(parents=True, exist_ok=True)
        (cpu / name).write_text(f"{text}\n")
    pages = sysfs / "kernel/mm/transparent_hugepage"
    if pages.is_dir():
        (pages / "enabled").write_text("always\n")


def _emptied(group: pathlib.Path) -> bool:
    """Remove a control group and those below it, when nobody is left in them."""
    if not group.is_dir():
        return True
    found = [pathlib.Path(place) for place, _, _ in os.walk(group, topdown=False)]
    try:
        for place in found:
            place.rmdir()
    except OSError:
        return False
    return True


def wait(
    condition: Callable[[], object],
    what: str,
    seconds: float = PATIENCE,
    more: Callable[[], str] = str,
) -> None:
    """Wait for a fact; fail with what was waited for and what ``more`` says then."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}\n{more()}")
        time.sleep(0.25)


class Hosts:
    """All hosts of one laboratory, and the key that opens them."""

    def __init__(self, folder: pathlib.Path) -> None:
        """Make the network; no host is there yet."""
        self.folder = folder
        tag = secrets.token_hex(2)
        (folder / "tag").write_text(tag)  # for `clear`
        self.network = Network(tag)
        self.key = folder / "ssh" / "id_ed25519"
        self.key.parent.mkdir(mode=0o700)
        base.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "operator", "-f", self.key)
        self.up: dict[str, Host] = {}

    def add(self, name: str) -> Host:
        """Make a bare host and switch it on; all others get to know its name."""
        public = self.key.with_suffix(".pub").read_text()
        made = Host(self.network, name, self.folder / name, public)
        self.up[name] = made
        made.start()
        made.run("apt-get", "update", "-q")  # as an installer leaves it
        for other in self.up.values():
            other.write("/etc/hosts", self.network.hosts_file())
        known = [f"{one.full} {one.host_key}\n" for one in self.up.values()]
        (self.folder / "ssh" / "known_hosts").write_text("".join(known))
        (self.folder / "hosts").write_text(self.network.hosts_file())
        return made

    def drop(self, name: str) -> None:
        """Throw a host away: from one moment to the next it is gone."""
        self.up.pop(name).throw_away()

    def close(self) -> None:
        """Throw all away."""
        for name in list(self.up):
            self.drop(name)
        base.run("ip", "netns", "del", self.network.name)

    def desk(self, words: Sequence[str]) -> list[str]:
        """Return the words that run a command at the operator's desk, which is on the network.

        There /etc/hosts knows the hosts, and ~/.ssh opens them.
        """
        bound = (("hosts", "/etc/hosts"), ("ssh", str(pathlib.Path.home() / ".ssh")))
        script = [f'mount --bind "{self.folder / name}" "{place}"' for name, place in bound]
        pathlib.Path.home().joinpath(".ssh").mkdir(mode=0o700, exist_ok=True)
        return [
            *("nsenter", f"--net=/run/netns/{self.network.name}", "unshare", "--mount"),
            *("sh", "-c", " && ".join([*script, 'exec "$@"']), "sh", *words),
        ]


@contextlib.contextmanager
def folder_for(within: pathlib.Path) -> Iterator[pathlib.Path]:
    """Yield a folder for a laboratory; first take away those whose run was killed."""
    with (within / "farm-labs.lock").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        for left in within.glob("farm-lab-*"):
            if _given_up(left / "lock"):
                clear(left)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="farm-lab-", dir=within))
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
    with lock:
        yield folder


def _given_up(lock: pathlib.Path) -> bool:
    """Say whether the run that made a laboratory's folder is no more."""
    try:
        with lock.open() as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):  # it runs, or takes the folder away just now
        return False
    return True


def clear(folder: pathlib.Path) -> None:
    """Take away all of a laboratory: processes, network, mounts, files."""
    top, tag = groups(), folder / "tag"
    if top is not None and tag.exists():
        name = f"lab-{tag.read_text()}"
        for group in top.glob(f"{name}-*"):
            wait(functools.partial(_ended, group), f"the end of {group.name}'s processes")
        for namespace in pathlib.Path("/run/netns").glob(f"{name}*"):
            base.run("ip", "netns", "del", namespace.name)
    mounts = [
        line.split()[1] for line in pathlib.Path("/proc/self/mounts").read_text().splitlines()
    ]
    for mounted in reversed(mounts):
        if pathlib.Path(mounted).is_relative_to(folder):
            base.run("umount", "-l", mounted)
    base.run("rm", "-rf", "--one-file-system", folder)


def _ended(group: pathlib.Path) -> bool:
    """Kill the processes of a control group; say whether none was left, and the group is gone."""
    for listed in group.rglob("cgroup.procs"):
        with contextlib.suppress(OSError):  # it ends meanwhile
            for pid in listed.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
    return _emptied(group)
