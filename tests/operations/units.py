"""systemd's part on a host without systemd: a service is started as its unit's file says.

From the file come ExecStart, user, environment, environment files, credentials, working
directory; limits, namespaces and filters are held by ``systemd-analyze``.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import hosts

FOLDER = "etc/systemd/system"


class Unit:
    """A service: read from its file, started by us."""

    def __init__(self, host: hosts.Host, name: str, folder: str = FOLDER) -> None:
        """Read the unit; ``name`` may be an instance of a template."""
        self._host = host
        file, _, rest = name.partition("@")
        self._instance = rest.removesuffix(".service")
        path = host.root / folder / (f"{file}@.service" if rest else name)
        self._lines = [line for line in path.read_text().splitlines() if "=" in line]
        self.name = name
        self.process: subprocess.Popen[bytes] | None = None
        self.log = host.root.parent / f"{name}.log"

    def _all(self, key: str) -> list[str]:
        found = [line.partition("=")[2] for line in self._lines if line.startswith(f"{key}=")]
        return [text.replace("%i", self._instance).replace("%H", "farmhost") for text in found]

    def start(self, also: Mapping[str, str] | None = None) -> None:
        """Start it with its user, directory, environment and credentials."""
        credentials = f"/run/credentials-{self.log.stem}"
        (self._host.root / credentials[1:]).mkdir(mode=0o755, exist_ok=True)
        for text in self._all("LoadCredential"):
            name, _, source = text.partition(":")
            target = self._host.root / credentials[1:] / name
            shutil.copy(self._host.root / source[1:], target)
            target.chmod(0o644)
        told = self._environment(credentials) | dict(also or {})
        user = (self._all("User") or ["root"])[0]
        place = (self._all("WorkingDirectory") or ["/"])[0]
        as_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
        words = [*as_user, "env", "-i", f"--chdir={place}", *(f"{k}={v}" for k, v in told.items())]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._host.command([*words, *self._command(told)]), stdout=log, stderr=log
            )

    def _environment(self, credentials: str) -> dict[str, str]:
        """Return what the unit tells; what environment files say wins, as in systemd."""
        told: dict[str, str] = {"PATH": "/opt/farm/venv/bin:/usr/bin:/bin"}
        for text in self._all("Environment"):
            told |= dict(pair.split("=", 1) for pair in shlex.split(text))
        for text in self._all("EnvironmentFile"):
            path = self._host.root / text.lstrip("-").lstrip("/")
            if path.exists() or not text.startswith("-"):
                lines = [line for line in path.read_text().splitlines() if "=" in line]
                told |= dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        return {name: value.replace("%d", credentials) for name, value in told.items()}

    def _command(self, told: Mapping[str, str]) -> list[str]:
        line = re.sub(r"\$\{(\w+)\}", lambda found: told[found[1]], self._all("ExecStart")[0])
        return shlex.split(line)

    @property
    def running(self) -> bool:
        """Say whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    def run(self) -> None:
        """Start a service of one run and wait for its end; fail with its log."""
        self.start()
        assert self.process is not None
        assert self.process.wait(60) == 0, self.log.read_text()

    def stop(self) -> None:
        """End what was started; its namespace ends the rest."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Farm:
    """The farm on a host, as an operator there sees it by ``farm``."""

    def __init__(self, host: hosts.Host, environment: Sequence[str], units: list[Unit]) -> None:
        """Speak for a host whose services are ``units``."""
        self._host, self._environment, self.units = host, environment, units

    def __call__(self, *words: str) -> str:
        """Run a command of the farm; fail with all that it printed."""
        return hosts.run(*self._words(words))

    def _words(self, words: Sequence[str]) -> list[str]:
        return self._host.command(["env", *self._environment, "/opt/farm/venv/bin/farm", *words])

    def status(self) -> dict[str, Any]:
        """Return seasons and halls, nothing while Redis is away."""
        done = subprocess.run(self._words(["status", "--json"]), capture_output=True, check=False)
        return dict(json.loads(done.stdout)) if done.returncode == 0 else {}

    def season(self, name: str) -> str:
        """Return the status of a season."""
        told = {one["season"]: one["status"] for one in self.status().get("seasons", [])}
        return str(told.get(name, ""))

    def in_flight(self) -> bool:
        """Say whether a game is played."""
        return any(hall["game"] for hall in self.status().get("halls", []))

    def get(self, url: str) -> str:
        """Return what a server on the host answers."""
        ask = f"import urllib.request as r; print(r.urlopen({url!r}).read().decode())"
        return hosts.run(*self._host.command(["python3", "-c", ask]))

    def wait(self, condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait for a condition; fail with the services' last lines."""
        deadline = time.monotonic() + seconds
        while not condition():
            logs = [f"{u.name}:\n{u.log.read_text()[-2500:]}" for u in self.units if u.log.exists()]
            assert time.monotonic() < deadline, f"waited for {what}\n" + "\n".join(logs)
            time.sleep(0.5)
