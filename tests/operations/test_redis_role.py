"""Role ``redis``: what runs is made what the files say, on a real server, and rarely restarted.

``systemctl restart`` is a stub that starts the server of the test again.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator

import harness
import hosts
import jinja2
import playbooks
import pytest
import redis
import yaml

FARM = shutil.which("farm") or "farm"
PLACES = ("/etc/redis", "/var/lib/redis", "/var/log/redis")


class Host:
    """A control host's Redis, in a folder."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root, self.port = root, harness.free_port()
        for place in PLACES:
            (root / place[1:]).mkdir(parents=True)
        (root / "bin").mkdir()
        role = playbooks.ANSIBLE / "roles/redis"
        told = yaml.safe_load((role / "defaults/main.yml").read_text())
        told |= {"redis_tls": True, "redis_acl_src": "users.acl", "redis_port": self.port}
        jinja = jinja2.Environment(trim_blocks=True, keep_trailing_newline=True, autoescape=False)
        self.write("etc/redis/redis.conf", jinja, role / "templates/redis.conf.j2", told)
        self.write("agree", jinja, role / "templates/farm-redis-agree.j2", told)
        systemctl = f'#!/bin/sh\necho "$*" >> {root}/restarts\ntouch {root}/restart\n'
        systemctl += f"while [ -e {root}/restart ]; do sleep 0.05; done\n"
        (root / "bin/systemctl").write_text(systemctl)
        (root / "bin/systemctl").chmod(0o755)
        self.process: subprocess.Popen[bytes] | None = None

    def write(
        self, name: str, jinja: jinja2.Environment, source: pathlib.Path, told: dict[str, object]
    ) -> None:
        """Write a template as this host's."""
        text = jinja.from_string(source.read_text()).render(told)
        for place in PLACES:
            text = text.replace(place, f"{self.root}{place}")
        (self.root / name).write_text(text)

    def users(self, *words: str) -> None:
        """Make the users' file."""
        known = ("acl", "--passwords", self.root / "passwords", "--operator", "anna", *words)
        (self.root / "etc/redis/users.acl").write_text(hosts.run(FARM, *known))

    def certificate(self) -> bytes:
        """Make a certificate and return it."""
        hosts.run(hosts.ROOT / "scripts/make-certificates", self.root / "made", "127.0.0.1")
        for name, target in (
            ("ca.crt", "ca.crt"),
            ("redis.crt", "tls.crt"),
            ("redis.key", "tls.key"),
        ):
            shutil.copy(self.root / "made" / name, self.root / "etc/redis" / target)
        return (self.root / "made/redis.crt").read_bytes()

    def start(self, *words: str | pathlib.Path) -> None:
        """Start the server, by default with its file."""
        file = self.root / "etc/redis/redis.conf"
        self.process = subprocess.Popen(["redis-server", *(words or (file, "--supervised", "no"))])

    def restart(self) -> None:
        """Do what systemd is asked for."""
        self.stop()
        self.start()
        (self.root / "restart").unlink()

    def stop(self) -> None:
        """End the server."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)

    def agree(self, code: int = 0) -> str:
        """Run the program of the role; return what it says."""
        passwords = [self.root / "passwords" / f"admin.{end}" for end in ("password", "previous")]
        with subprocess.Popen(
            ["bash", self.root / "agree"],
            env={"PATH": f"{self.root}/bin:/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as asked:
            assert asked.stdin is not None
            assert asked.stdout is not None
            asked.stdin.write("".join(path.read_text() for path in passwords if path.exists()))
            asked.stdin.close()
            while asked.poll() is None:
                time.sleep(0.02)
                if (self.root / "restart").exists():
                    self.restart()
            said = asked.stdout.read()
        assert asked.returncode == code, said
        return said

    def restarts(self) -> int:
        """Count the restarts."""
        path = self.root / "restarts"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def client(self, user: str) -> redis.Redis:
        """Return a client that trusts the farm's authority."""
        return redis.Redis(
            host="127.0.0.1",
            port=self.port,
            username=user,
            password=(self.root / "passwords" / f"{user}.password").read_text().strip(),
            ssl=True,
            ssl_ca_certs=str(self.root / "made/ca.crt"),
        )


@pytest.fixture
def host(tmp_path: pathlib.Path) -> Iterator[Host]:
    """Return a host whose Redis runs with Debian's own configuration: no TLS, no users."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed (scripts/system-packages.txt)")
    made = Host(tmp_path)
    made.users()
    made.certificate()
    made.start("--port", str(made.port), "--bind", "127.0.0.1", "--dir", str(tmp_path))
    yield made
    made.stop()


def test_an_install_that_was_cut_off_is_completed(host: Host) -> None:
    """Redis on Debian's own configuration is restarted with the farm's; then nothing is left."""
    assert "changed: Redis was restarted" in host.agree()
    with host.client("admin") as admin:
        assert admin.config_get("appendfsync") == {"appendfsync": "always"}
    assert host.agree() == ""
    assert host.restarts() == 1


def test_users_and_certificates_are_taken_without_a_restart(host: Host) -> None:
    """An operator, a password, a certificate: connections stay, new ones get what is new."""
    host.agree()
    with host.client("anna") as anna:
        number = anna.client_id()
        host.users("--operator", "boris", "--rotate")
        certificate = host.certificate()
        assert "changed: users and certificates" in host.agree()
        assert host.agree() == ""
        assert anna.client_id() == number
    assert host.client("boris").ping()
    assert host.client("worker").ping()
    shown = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{host.port}"],
        input=b"",
        capture_output=True,
        check=False,
    )
    assert certificate.strip() in shown.stdout
    host.users("--finish")
    assert "changed" in host.agree()
    with pytest.raises(redis.AuthenticationError):
        host.client("boris").ping()
    assert host.restarts() == 1


def test_a_desk_reaches_the_farm_by_the_lines_of_the_page(host: Host) -> None:
    """What `Make and watch hosts` has an operator export is all that `farm status` needs."""
    host.agree()
    files = host.root / "inventory/production/files"
    files.mkdir(parents=True)
    (files / "redis").symlink_to(host.root / "passwords")
    (files / "ca.crt").symlink_to(host.root / "made/ca.crt")
    page = (hosts.ROOT / "docs/how-to/operate-hosts.md").read_text(encoding="utf-8")
    lines = re.findall(r"^export FARM_\w+=.*$", page, re.MULTILINE)
    assert lines, "the page does not say how a desk speaks to the farm"
    script = "\n".join(lines).replace("control.example.org:6379", f"127.0.0.1:{host.port}")
    done = subprocess.run(
        ["bash", "-ec", f"{script}\n{FARM} status --json"],
        cwd=host.root,
        env={name: value for name, value in os.environ.items() if not name.startswith("FARM_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"halls": []' in done.stdout


def test_a_certificate_that_does_not_fit_its_key_is_refused(host: Host) -> None:
    """Redis keeps the one it has, the run fails and says so; the next one takes the right one."""
    host.agree()
    (host.root / "etc/redis/tls.key").write_bytes((host.root / "made/ca.key").read_bytes())
    assert "did not take the new one" in host.agree(code=1)
    assert host.client("worker").ping()
    host.certificate()
    assert "changed" in host.agree()
    assert host.restarts() == 1


def test_what_runs_otherwise_than_its_file_says_is_found(host: Host) -> None:
    """A setting that was changed by hand would lose writes at the next power cut."""
    host.agree()
    with host.client("admin") as admin:
        admin.config_set("appendfsync", "everysec")
    assert "appendfsync is 'everysec' and should be 'always'" in host.agree()
    with host.client("admin") as admin:
        assert admin.config_get("appendfsync") == {"appendfsync": "always"}
