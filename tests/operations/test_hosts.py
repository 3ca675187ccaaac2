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
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator

import hosts
import pytest
import yaml

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


# -- for real --------------------------------------------------------------------------

VARIABLES = """    base_sysfs: /srv/sysfs
    base_shell: /bin/sh
    base_housekeeping_cpus: "0"
    base_hall_cpus: "1"
    program_wheels: /srv/wheels
    program_archive: {archive}
    program_passwords_src: {passwords}
    redis_acl_src: {passwords}/users.acl
    hall_check_size: false
    hall_sandbox: plain
    gpu_box_agent_key: ssh-ed25519 AAAA hall-1
    engines_list:
      - {{id: toy, src: {engine}, sha256: {digest}, name: toy}}
"""

USERS = ("orchestrator", "exporter", "broadcast", "worker", "admin", "anna")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[hosts.Host, pathlib.Path]]:
    """Return a host that is up, and its inventory; nothing is on it yet."""
    work = tmp_path_factory.mktemp("hosts")
    passwords = work / "passwords"
    farm = shutil.which("farm") or "farm"
    words = [farm, "acl", "--passwords", passwords, "--operator", "anna"]
    users = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    (passwords / "users.acl").write_text(users)
    hosts.run(hosts.ROOT / "scripts" / "make-source-archive", work / "farm.tar.gz")
    engine = work / "toy"
    engine.write_text("#!/bin/sh\nexit 0\n")
    digest = hosts.run("sha256sum", engine).split()[0]
    with hosts.host(work) as host:
        variables = VARIABLES.format(
            archive=work / "farm.tar.gz",
            passwords=passwords,
            engine=engine,
            digest=digest,
        )
        yield host, host.inventory(work / "hosts.yml", variables)


def _redis(user: str, password: str) -> list[str]:
    return [f"FARM_REDIS_URL=redis://{user}:{password.strip()}@127.0.0.1:6379/0"]


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
    keys = (host.root / "var/lib/farm/.ssh/authorized_keys").read_text()
    assert keys.startswith('restrict,command="')


class Unit:
    """A systemd service as systemd would start it: read from its file, started by us."""

    def __init__(self, host: hosts.Host, name: str, folder: str = "etc/systemd/system") -> None:
        """Read the unit; ``name`` may be an instance of a template."""
        self._host = host
        file, _, rest = name.partition("@")
        self._instance = rest.removesuffix(".service")
        path = host.root / folder / (f"{file}@.service" if rest else name)
        self._lines = [line for line in path.read_text().splitlines() if "=" in line]
        self.process: subprocess.Popen[bytes] | None = None
        self.log = host.root.parent / f"{name}.log"

    def _all(self, key: str) -> list[str]:
        found = [line.partition("=")[2] for line in self._lines if line.startswith(f"{key}=")]
        return [text.replace("%i", self._instance).replace("%H", "farmhost") for text in found]

    def start(self) -> None:
        """Start it with its user, directory, environment and credentials."""
        credentials = f"/run/credentials-{self.log.stem}"
        (self._host.root / credentials[1:]).mkdir(mode=0o755, exist_ok=True)
        for text in self._all("LoadCredential"):
            name, _, source = text.partition(":")
            target = self._host.root / credentials[1:] / name
            shutil.copy(self._host.root / source[1:], target)
            target.chmod(0o644)
        told: dict[str, str] = {"PATH": "/opt/farm/venv/bin:/usr/bin:/bin"}
        for text in self._all("Environment"):
            told |= dict(pair.split("=", 1) for pair in shlex.split(text))
        for text in self._all("EnvironmentFile"):
            path = self._host.root / text.lstrip("-").lstrip("/")
            if path.exists():
                lines = [line for line in path.read_text().splitlines() if "=" in line]
                told |= dict(line.split("=", 1) for line in lines if not line.startswith("#"))
        told = {name: value.replace("%d", credentials) for name, value in told.items()}
        user = (self._all("User") or ["root"])[0]
        place = (self._all("WorkingDirectory") or ["/"])[0]
        as_user = ("setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups")
        words = [*as_user, "env", "-i", f"--chdir={place}", *(f"{k}={v}" for k, v in told.items())]
        command = shlex.split(self._all("ExecStart")[0])
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                self._host.command([*words, *command]), stdout=log, stderr=log
            )

    def stop(self) -> None:
        """End what was started; its namespace ends the rest."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.mark.long
def test_the_host_that_was_made_plays_a_league(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """Its services, started from their units, play the demo season to its end."""
    host, inventory = made
    (host.root / "var/log/redis").mkdir(exist_ok=True)
    redis = Unit(host, "redis-server.service", "usr/lib/systemd/system")
    names = ("farm-serve", "farm-exporter", "farm-web", "farm-hall@hall-1")
    units = [redis, *(Unit(host, f"{name}.service") for name in names)]
    password = (inventory.parent / "passwords" / "anna.password").read_text()
    farm = host.command(["env", *_redis("anna", password), "/opt/farm/venv/bin/farm"])

    def status() -> dict[str, object]:
        done = subprocess.run([*farm, "status", "--json"], capture_output=True, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}  # type: ignore[no-any-return]

    try:
        redis.start()
        wait(lambda: bool(status()), 30, units)
        for unit in units[1:]:
            unit.start()
        hosts.run(*farm, "launch", "demo")
        wait(lambda: str(status()).count("'status': 'running'") > 0, 60, units)
        refused = tool(
            *("ansible-playbook", "-i", inventory, ANSIBLE / "playbooks/upgrade.yml"),
            *("-e", "upgrade_tries=1", "-e", "upgrade_delay_seconds=1"),
        )
        told = refused.stdout + refused.stderr
        finished = "'status': 'finished'" in str(status())
        assert finished or "a game is in flight in hall-1" in told, told[-3000:]
        units[4].stop()
        units[4].start()  # drained workers end; the next one plays on
        wait(lambda: "'status': 'finished'" in str(status()), 300, units)
        metrics = hosts.run(*host.command(["python3", "-c", GET.format(port=9464)]))
        assert 'farm_season_status{season="demo",status="finished"} 1.0' in metrics
        page = hosts.run(*host.command(["python3", "-c", GET.format(port=8080)]))
        assert "<html" in page.lower()
    finally:
        for unit in units:
            unit.stop()


GET = (
    "import urllib.request as r;"
    "print(r.urlopen('http://127.0.0.1:{port}/metrics' if {port}==9464 else"
    " 'http://127.0.0.1:{port}/').read().decode())"
)


def wait(condition: object, seconds: float, units: list[Unit]) -> None:
    """Wait for a condition; fail with the services' last lines."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition():
        logs = [f"{u.log.name}:\n{u.log.read_text()[-1500:]}" for u in units if u.log.exists()]
        assert time.monotonic() < deadline, "\n".join(logs)
        time.sleep(0.5)
