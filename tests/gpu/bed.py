"""A GPU box for tests: a real sshd, on loopback or behind a slow and lossy network.

The box has its own network namespace; between it and the hall stand two TUN devices and a
forwarder in user space (``forwarder.py``). Everything is ended by process id.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import forwarder
import harness
import pytest

from orchestrator import contract

AGENT = pathlib.Path(__file__).parents[2] / "worker_gpu" / "agent.py"
HERE = pathlib.Path(__file__).parent
SSHD = pathlib.Path("/usr/sbin/sshd")
PATIENCE = 60.0  # s: how long a busy machine may take


def require_sshd() -> None:
    """Skip by name where this machine cannot run a box."""
    if not SSHD.exists() or shutil.which("ssh-keygen") is None:
        pytest.skip("package openssh-server is not installed")


def require_network() -> None:
    """Skip by name where this machine cannot make a network of its own.

    A package can be installed, and CI fails without it; root's rights, and what the kernel or the
    container around this machine does not give, count as hardware (CONTRIBUTING).
    """
    require_sshd()
    if shutil.which("ip") is None:
        pytest.skip("package iproute2 is not installed")
    if os.geteuid() != 0:
        pytest.skip("hardware: a network namespace needs root")
    refused = _refused_network()
    if refused:
        pytest.skip(f"hardware: {refused}")


@functools.cache
def _refused_network() -> str:
    """Return why this machine gives no TUN device or no network namespace, '' where it does."""
    mark = f"farm{secrets.token_hex(3)}"
    try:
        os.close(forwarder.device(mark))
    except OSError as error:
        return f"this machine gives no TUN device: {error}"
    try:
        _ip("netns", "add", mark)
        _ip("netns", "del", mark)
    except subprocess.CalledProcessError as error:
        return f"this machine gives no network namespace: {error.stderr.decode().strip()}"
    return ""


class Network:
    """A namespace behind a forwarder; ``address`` is the box's."""

    def __init__(self) -> None:
        mark = secrets.token_hex(3)
        self.namespace = f"farm{mark}"
        near, far = f"fa{mark}", f"fb{mark}"
        third = int(mark, 16) % 60_000
        net = f"10.{77 + third // 16_384}.{third // 64 % 256}"
        base = third % 64 * 4
        self.near, self.address = f"{net}.{base + 1}", f"{net}.{base + 2}"
        self._forwarder = subprocess.Popen(
            [sys.executable, str(HERE / "forwarder.py"), near, far],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._hear()
        _ip("netns", "add", self.namespace)
        _ip("link", "set", far, "netns", self.namespace)
        _ip("addr", "add", self.near, "peer", self.address, "dev", near)
        _ip("link", "set", near, "up")
        inside = ("-n", self.namespace)
        _ip(*inside, "addr", "add", self.address, "peer", self.near, "dev", far)
        _ip(*inside, "link", "set", far, "up")
        _ip(*inside, "link", "set", "lo", "up")

    def _hear(self) -> None:
        assert self._forwarder.stdout is not None
        assert self._forwarder.stdout.readline()

    def say(self, line: str) -> None:
        """Give the forwarder a command and wait until it has obeyed."""
        assert self._forwarder.stdin is not None
        self._forwarder.stdin.write(line + "\n")
        self._forwarder.stdin.flush()
        self._hear()

    def slow(self) -> None:
        """Delay by 50 ± 20 ms each way, drop one packet in a hundred."""
        self.say("set 50 20 1")

    def wrap(self, command: list[str]) -> list[str]:
        """Return a command that runs inside the namespace."""
        return ["ip", "netns", "exec", self.namespace, *command]

    def close(self) -> None:
        """End the forwarder and remove the namespace."""
        assert self._forwarder.stdin is not None
        assert self._forwarder.stdout is not None
        self._forwarder.stdin.close()
        self._forwarder.wait(PATIENCE)
        self._forwarder.stdout.close()
        _ip("netns", "del", self.namespace)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@dataclasses.dataclass
class Box:
    """A GPU box: its directory, its sshd, its keys."""

    root: pathlib.Path
    network: Network | None = None
    beat_ms: int = 300
    grace_ms: int = 5_000
    ordinary: bool = False  # without the right to real-time priority
    python: str = sys.executable  # the agent runs by it
    agent: pathlib.Path = AGENT

    def __post_init__(self) -> None:
        """Make keys and configuration, and start sshd."""
        self.farm = self.root / "farm"
        (self.farm / "seats").mkdir(parents=True)
        (self.farm / "incoming").mkdir()
        self.home = self.root / "home"
        self.home.mkdir()
        self.address = "127.0.0.1" if self.network is None else self.network.address
        self.port = harness.free_port() if self.network is None else 2222
        for name in ("host", "play", "push", "login"):
            key = str(self.root / name)
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        self.host_key = " ".join((self.root / "host.pub").read_text().split()[:2])
        less = "setpriv --bounding-set -sys_nice " if self.ordinary else ""
        serve = f"{less}{self.python} -I -S {self.agent} --serve --root {self.farm}"
        lines = [
            f'restrict,command="{serve}" {(self.root / "play.pub").read_text()}',
            f'restrict,command="internal-sftp" {(self.root / "push.pub").read_text()}',
            (self.root / "login.pub").read_text(),
        ]
        (self.root / "authorized_keys").write_text("".join(lines))
        (self.root / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress {self.address}\nHostKey {self.root / 'host'}\n"
            f"AuthorizedKeysFile {self.root / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n"
            "Subsystem sftp internal-sftp\nMaxStartups 50\nLogLevel VERBOSE\n"
            f"SetEnv HOME={self.home}\n"
        )
        self.start()

    def start(self) -> None:
        """Start sshd and wait until it listens."""
        with contextlib.suppress(PermissionError):  # an ordinary user's sshd needs none
            pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        command = [str(SSHD), "-D", "-e", "-f", str(self.root / "sshd_config")]
        with (self.root / "sshd.log").open("ab") as log:
            self.sshd = subprocess.Popen(
                self.network.wrap(command) if self.network else command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError), socket.create_connection((self.address, self.port)):
                return
            time.sleep(0.02)
        pytest.fail(f"sshd does not come up: {(self.root / 'sshd.log').read_text()}")

    def seat(
        self, command: list[str], gpus: tuple[str, ...] = (), attempt: str = "a-1", **more: Any
    ) -> contract.SeatAddress:
        """Prepare a seat as the GPU worker does, and return how the hall finds it."""
        name, secret = f"{attempt}-{secrets.token_hex(4)}", secrets.token_hex(16)
        order = {
            "attempt": attempt,
            "argv": command,
            "cwd": None,
            "env": {"PATH": os.environ["PATH"], "FARM_SEAT": name},
            "gpus": list(gpus),
            "checksums": {},
            "secret_sha256": hashlib.sha256(secret.encode()).hexdigest(),
            "grace_ms": self.grace_ms,
            "beat_ms": self.beat_ms,
        }
        (self.farm / "seats" / f"{name}.json").write_text(json.dumps(order | more))
        return contract.SeatAddress(
            box="box",
            seat=name,
            address=self.address,
            port=self.port,
            user=user(),
            key=str(self.root / "play"),
            host_key=self.host_key,
            grace_ms=self.grace_ms,
            beat_ms=self.beat_ms,
            secret=secret,
        )

    def identity(self, seat: contract.SeatAddress) -> dict[str, Any]:
        """Return the process ids of a seat's agent and engine."""
        deadline = time.monotonic() + PATIENCE
        path = self.farm / "run" / seat.seat / "identity"
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):
                found: dict[str, Any] = json.loads(path.read_text())
                return found
            time.sleep(0.01)
        pytest.fail("no agent has begun")

    def sessions(self) -> list[int]:
        """Return the processes that sshd has started for its connections."""
        found, todo = [], [self.sshd.pid]
        while todo:
            for pid in _children(todo.pop()):
                found.append(pid)
                todo.append(pid)
        return found

    def close(self) -> None:
        """End sshd and all its sessions."""
        for pid in [*self.sessions(), self.sshd.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, 9)
        self.sshd.wait(PATIENCE)


def _children(pid: int) -> list[int]:
    try:
        text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(word) for word in text.split()]


def survivors(root: pathlib.Path) -> list[str]:
    """Return the command lines of living processes that name a box's directory."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if str(root) in command and "sshd" not in command:
                found.append(f"{entry.name} {command}")
    return found


def gone(root: pathlib.Path, seconds: float = PATIENCE) -> bool:
    """Wait until no process names a box's directory."""
    deadline = time.monotonic() + seconds
    while survivors(root):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@contextlib.contextmanager
def loopback(root: pathlib.Path, **more: Any) -> Iterator[Box]:
    """Run a box on loopback."""
    require_sshd()
    box = Box(root / "box", **more)
    try:
        yield box
    finally:
        box.close()


@contextlib.contextmanager
def remote(root: pathlib.Path, **more: Any) -> Iterator[tuple[Box, Network]]:
    """Run a box behind a network of its own."""
    require_network()
    network = Network()
    try:
        box = Box(root / "box", network, **more)
        try:
            yield box, network
        finally:
            box.close()
    finally:
        network.close()


def user() -> str:
    """Return whom sshd lets in: the user who runs the tests."""
    return pwd.getpwuid(os.geteuid()).pw_name
