"""Three hosts on one machine: network namespaces for orchestrator, Redis and hall.

Redis' namespace has a link to each of the other two, which do not see each other. A link is
cut at Redis' end: both directions then lose everything, and nobody is told. One direction
alone is cut by a route that swallows what the sender sends. Needs root and iproute2; the
names begin with ``farm-`` and this process' id, and all are removed at the end.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

REDIS, SERVE, HALL = "redis", "serve", "hall"
NUMBERS = {SERVE: 1, HALL: 2}  # the third byte of a link's addresses, which no one else sees
PORT = 6379


def available() -> bool:
    """Say whether this process may make namespaces and mount file systems."""
    if os.geteuid() != 0 or not (shutil.which("ip") and shutil.which("nsenter")):
        return False
    probe = f"farm-{os.getpid()}-probe"
    made = subprocess.run(["ip", "netns", "add", probe], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", probe], capture_output=True, check=False)
    return made.returncode == 0


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def remove_stale() -> None:
    """Remove namespaces of tests that were killed: their process is no more."""
    for path in pathlib.Path("/run/netns").glob("farm-*-*"):
        owner = path.name.split("-")[1]
        if owner.isdigit() and not pathlib.Path(f"/proc/{owner}").exists():
            subprocess.run(["ip", "netns", "del", path.name], capture_output=True, check=False)


class Namespaces:
    """The three namespaces and the two links between them."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self) -> None:
        """Make namespaces and links; whatever was made is removed by ``remove``."""
        remove_stale()
        for host in (REDIS, SERVE, HALL):
            _ip("netns", "add", self.name(host))
            self._made.append(self.name(host))
            _ip("-n", self.name(host), "link", "set", "lo", "up")
        for host in NUMBERS:
            at_redis = ("name", f"to-{host}", "netns", self.name(REDIS))
            at_host = ("name", "to-redis", "netns", self.name(host))
            _ip("link", "add", *at_redis, "type", "veth", "peer", *at_host)
            for where, link, address in (
                (REDIS, f"to-{host}", self.redis_address(host)),
                (host, "to-redis", self._address(host)),
            ):
                _ip("-n", self.name(where), "address", "add", f"{address}/30", "dev", link)
                _ip("-n", self.name(where), "link", "set", link, "up")

    def remove(self) -> None:
        """Remove the namespaces, and the links with them."""
        while self._made:
            subprocess.run(
                ["ip", "netns", "del", self._made.pop()], capture_output=True, check=False
            )

    def name(self, host: str) -> str:
        """Return a host's namespace."""
        return f"farm-{os.getpid()}-{host}"

    def within(self, host: str) -> list[str]:
        """Return what stands before a command that is to run in a host's namespace."""
        return ["nsenter", f"--net=/run/netns/{self.name(host)}"]

    def redis_address(self, host: str) -> str:
        """Return where a host finds Redis."""
        return f"10.213.{NUMBERS[host]}.1"

    def _address(self, host: str) -> str:
        return f"10.213.{NUMBERS[host]}.2"

    def url(self, host: str) -> str:
        """Return the address of Redis as a host has it."""
        return f"redis://{self.redis_address(host)}:{PORT}/0"

    def cut(self, host: str) -> None:
        """Cut a host's link in both directions."""
        _ip("-n", self.name(REDIS), "link", "set", f"to-{host}", "down")

    def join(self, host: str) -> None:
        """Join a host's link again."""
        _ip("-n", self.name(REDIS), "link", "set", f"to-{host}", "up")

    def swallow_requests(self, host: str) -> None:
        """Lose what a host sends; what it is sent arrives."""
        _ip("-n", self.name(host), "route", "add", "blackhole", f"{self.redis_address(host)}/32")

    def pass_requests(self, host: str) -> None:
        """Undo ``swallow_requests``."""
        _ip("-n", self.name(host), "route", "del", "blackhole", f"{self.redis_address(host)}/32")

    def swallow_replies(self, host: str) -> None:
        """Lose what Redis sends to a host; requests arrive and are carried out."""
        _ip("-n", self.name(REDIS), "route", "add", "blackhole", f"{self._address(host)}/32")

    def pass_replies(self, host: str) -> None:
        """Undo ``swallow_replies``."""
        _ip("-n", self.name(REDIS), "route", "del", "blackhole", f"{self._address(host)}/32")
