"""The compose file's services, without a container engine: as the images' users, with real modes.

What an engine would do is done by hand: the build's context by .dockerignore, the secrets by
make-secrets, and each service of ours, and Redis, started as the user of its image from its own
command, environment and health check.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import harness
import pytest
import watched_run as run
import yaml

from orchestrator.ledger import embedded_redis

COMPOSE = run.ROOT / "deploy" / "compose"
TOLD = yaml.safe_load((COMPOSE / "compose.yml").read_text())
FARM, REDIS = "10001", "999"


def ignored(path: str) -> bool:
    """Say whether .dockerignore keeps a file from the build; the last pattern that fits counts."""
    kept = True
    for line in (run.ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.strip()
        if not pattern or pattern.startswith("#"):
            continue
        allows, pattern = pattern.startswith("!"), pattern.lstrip("!")
        parents = [path, *map(str, pathlib.PurePath(path).parents)]
        plain = pattern.removeprefix("**/")
        names = parents if plain == pattern else [pathlib.PurePath(one).name for one in parents]
        if any(
            fnmatch.fnmatchcase(name, plain) for name in names if "/" in plain or "/" not in name
        ):
            kept = allows
    return not kept


def test_the_build_gets_what_it_installs_and_nothing_else() -> None:
    """No secret, inventory, history or data can end in a layer; all that is installed is there."""
    script = (run.ROOT / "deploy" / "install" / "install-farm").read_text()
    found = re.search(r"^parts=\((.*)\)$", script, re.MULTILINE)
    assert found is not None
    for part in found[1].split():
        path = run.ROOT / part
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        for file in files:
            name = str(file.relative_to(run.ROOT))
            assert ignored(name) == ("__pycache__" in name or name.endswith(".pyc")), name
    for name in (
        *("deploy/compose/secrets/worker.password", "deploy/compose/secrets/users.acl"),
        *("deploy/compose/secrets/ca.key", "deploy/compose/notify.toml", ".git/config"),
        *("ansible/inventory/production/files/ca.key", ".venv/bin/python", ".farm/notify.toml"),
        *(
            "orchestrator/secrets/x",
            "docs/a.password",
            "tests/harness.py",
            "backup/s/journal.jsonl",
        ),
    ):
        assert ignored(name), name
    copied = re.findall(r"^COPY (\S+) ", (COMPOSE / "Dockerfile").read_text(), re.MULTILINE)
    assert all(name == "." or not ignored(name) for name in copied), copied


def test_every_service_is_limited_and_looked_at() -> None:
    """Memory, processes, log, health check; no capability that it does not need; no new rights."""
    for name, service in TOLD["services"].items():
        assert service["healthcheck"]["test"], name
        assert service["mem_limit"], name
        assert service["pids_limit"], name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["logging"]["options"]["max-size"], name
        assert re.search(r":v?\d+\.\d+|:local$", service["image"]), name


def test_only_redis_and_the_page_answer_beyond_this_host() -> None:
    """Redis where halls reach it, by TLS alone; the page; the rest on the loopback or nowhere."""
    for name, service in TOLD["services"].items():
        ports = service.get("ports", [])
        networks = {
            one for one in service["networks"] if not (TOLD["networks"][one] or {}).get("internal")
        }
        assert bool(ports) <= bool(networks), f"{name}: an internal network publishes nothing"
        for port in ports:
            public = name == "nginx" or (
                name == "redis" and port.startswith("${FARM_REDIS_ADDRESS:?")
            )
            assert public or port.startswith("127.0.0.1:"), (name, port)
    text = (COMPOSE / "redis.conf").read_text()
    assert "\nport 0\n" in text
    assert "\ntls-port 6379\n" in text


@pytest.fixture(scope="module")
def place() -> Iterator[pathlib.Path]:
    """Give a folder that every user may enter, with the secrets made by the script."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("hardware: root is needed to be the images' users")
    made = pathlib.Path(tempfile.mkdtemp(prefix="farm-compose-"))
    made.chmod(0o755)
    try:
        words = [
            "--operator",
            "anna",
            "--name",
            "control.example.org",
            "--folder",
            made / "secrets",
        ]
        done = subprocess.run(
            [COMPOSE / "make-secrets", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        yield made
    finally:
        shutil.rmtree(made)


def as_user(user: str) -> list[str]:
    """Return the words that run a command as a user of an image, without its capabilities."""
    groups = ["--regid", user, "--clear-groups"]
    return ["setpriv", "--reuid", user, *groups, "--inh-caps=-all", "--bounding-set=-all"]


def test_each_image_reads_its_own_secrets_and_no_other(place: pathlib.Path) -> None:
    """A secret is a bound file with its owner and mode; one that cannot be read starts nothing."""
    users = {"orchestrator.password": FARM, "broadcast.password": FARM, "exporter.password": FARM}
    users |= {"users.acl": REDIS, "redis.key": REDIS, "grafana-password": "472", "ca.key": "0"}
    users |= {"restic-password": FARM}
    users |= {"worker.password": "0", "admin.password": "0", "anna.password": "0"}
    for name, owner in users.items():
        for user in (FARM, REDIS, "472", "65534"):
            words = [*as_user(user), "cat", place / "secrets" / name]
            done = subprocess.run(words, capture_output=True, check=False)
            assert (done.returncode == 0) == (user == owner), (name, user)
    for name in ("ca.crt", "redis.crt"):
        subprocess.run([*as_user(FARM), "test", "-r", place / "secrets" / name], check=True)
    files = {secret["file"].removeprefix("./secrets/") for secret in TOLD["secrets"].values()}
    assert files <= {path.name for path in (place / "secrets").iterdir()}


def test_copies_leave_the_host_by_restic(place: pathlib.Path) -> None:
    """With the settings, the secret and the user of service backup, by the program in the image."""
    if shutil.which("restic") is None:
        pytest.skip("restic is not installed (scripts/system-packages.txt)")
    beside = yaml.safe_load((COMPOSE / "offsite.yml").read_text())
    settings = beside["services"]["backup"]["environment"]
    (secret,) = beside["services"]["backup"]["secrets"]
    password = settings["RESTIC_PASSWORD_FILE"].replace(
        f"/run/secrets/{secret}", str(place / beside["secrets"][secret]["file"])
    )
    told = settings | {"RESTIC_PASSWORD_FILE": password, "FARM_OFFSITE_KEEP": "30"}
    told |= {"RESTIC_REPOSITORY": str(place / "away"), "PATH": "/usr/bin:/bin"}
    file = (COMPOSE / "Dockerfile").read_text()
    copied = {there: here for here, there in re.findall(r"^COPY (\S+) (\S+)$", file, re.MULTILINE)}
    script = (run.ROOT / copied[settings["FARM_BACKUP_OFFSITE"]]).read_text()
    for name in ("away", "copy"):
        (place / name).mkdir()
        os.chown(place / name, int(FARM), int(FARM))
    (place / "copy" / "backup.json").write_text("{}")
    made = ["restic", "--quiet", "--no-cache", "init"]
    for words in (made, ["sh", "-c", script, "farm-offsite", str(place / "copy")]):
        command = [*as_user(FARM), *words]
        done = subprocess.run(command, env=told, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert list((place / "away" / "snapshots").iterdir())


def test_secrets_are_made_once(place: pathlib.Path) -> None:
    """A second run changes no password and no certificate; a wrong word is named."""
    before = {path.name: path.read_bytes() for path in (place / "secrets").iterdir()}
    words = [COMPOSE / "make-secrets", "--operator", "anna", "--folder", place / "secrets"]
    subprocess.run([*words, "--name", "control.example.org"], check=True, capture_output=True)
    assert {path.name: path.read_bytes() for path in (place / "secrets").iterdir()} == before
    for more in (["--nonsense", "x"], ["--name", "a b"], []):
        done = subprocess.run([*words, *more], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "make-secrets: " in done.stderr


@contextlib.contextmanager
def started(words: list[Any], log: pathlib.Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program for the length of a block."""
    with log.open("wb") as out, subprocess.Popen(words, stdout=out, stderr=out, **more) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def programs(place: pathlib.Path) -> pathlib.Path:
    """Return the folder of a `farm` that the images' user may run: this one, or one made for it."""
    here = pathlib.Path(sys.executable).parent
    words = [*as_user(FARM), here / "farm", "serve", "--help"]
    if subprocess.run(words, capture_output=True, check=False, cwd="/").returncode == 0:
        return here
    script = run.ROOT / "deploy" / "install" / "install-farm"  # the image's own step
    told = ["--source", run.ROOT, "--prefix", place / "opt", "--python", "/usr/bin/python3"]
    done = subprocess.run([script, *told], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return place / "opt" / "venv" / "bin"


class Engine:
    """A container engine's part: paths of images become folders, names and ports ours."""

    def __init__(self, place: pathlib.Path, programs: pathlib.Path) -> None:
        """Choose a port for Redis and make the volumes' folders."""
        self.programs, self.said = programs, ""
        self.place, self.redis, self.exporter = place, harness.free_port(), harness.free_port()
        for volume, user in (("redis", REDIS), ("archive", FARM), ("backup", FARM), ("web", FARM)):
            (place / volume).mkdir()
            os.chown(place / volume, int(user), int(user))

    def environment(self, name: str) -> dict[str, str]:
        """Return the service's environment, with its data in a folder of ours."""
        told: Mapping[str, str] = TOLD["services"][name].get("environment", {})
        folder = {"serve": "archive", "web": "web"}.get(name, "web")
        found = {key: self._path(value) for key, value in told.items()}
        base = {"FARM_DATA": str(self.place / folder), "FARM_LOG": "json"}
        return base | found | {"PATH": f"{self.programs}:/usr/bin:/bin"}

    def _path(self, text: str) -> str:
        text = re.sub(r"\$\{\w+:-(.*?)\}", r"\1", text)  # what the engine puts for a variable
        for secret, told in TOLD["secrets"].items():
            file = told["file"].removeprefix("./")
            text = text.replace(f"/run/secrets/{secret}", str(self.place / file))
        text = text.replace("redis:6379", f"127.0.0.1:{self.redis}").replace(
            "/archive/", f"{self.place}/archive/"
        )
        text = text.replace("--to=/backup", f"--to={self.place}/backup").replace(
            "/web/", f"{self.place}/web/"
        )
        text = text.replace("/backup/backup.json", f"{self.place}/backup/backup.json")
        return text.replace(":9464", f":{self.exporter}").replace("/notices/", f"{self.place}/web/")

    def command(self, name: str) -> list[Any]:
        """Return the words that start a service of ours as its image's user."""
        service = TOLD["services"][name]
        user, _, group = service["user"].partition(":")
        assert user == group == FARM
        more = [f"--port={self.exporter}"] if name == "exporter" else []
        return [*as_user(user), self.programs / "farm", *map(self._path, service["command"]), *more]

    def healthy(self, name: str) -> bool:
        """Run the service's health check as its user; say what it says."""
        kind, *words = TOLD["services"][name]["healthcheck"]["test"]
        words = [self._path(word) for word in words]
        words = words if kind == "CMD" else ["/bin/sh", "-c", *words]
        done = subprocess.run(
            [*as_user(FARM), *words],
            env=self.environment(name),
            capture_output=True,
            text=True,
            check=False,
            cwd=self.place,
        )
        self.said = f"{name}: {done.stdout}{done.stderr}"
        return done.returncode == 0

    def redis_words(self) -> list[Any]:
        """Write Redis' configuration with paths of ours; return the words that start it."""
        text = (COMPOSE / "redis.conf").read_text()
        names = {"tls.crt": "redis.crt", "tls.key": "redis.key"}
        for mount in TOLD["services"]["redis"]["volumes"][1:5]:
            source, target, mode = mount.split(":")
            assert mode == "ro"
            name = pathlib.PurePath(target).name
            assert source == f"./secrets/{names.get(name, name)}"
            text = text.replace(target, str(self.place / source))
        text = text.replace("dir /data", f"dir {self.place / 'redis'}")
        text = text.replace("tls-port 6379", f"tls-port {self.redis}\nbind 127.0.0.1")
        (self.place / "redis.conf").write_text(text)
        assert TOLD["services"]["redis"]["user"] == f"{REDIS}:{REDIS}"
        program = shutil.which("redis-server") or embedded_redis.find_server()[0]
        return [*as_user(REDIS), program, self.place / "redis.conf"]


def test_the_services_start_as_the_users_of_their_images(
    place: pathlib.Path, programs: pathlib.Path
) -> None:
    """Redis with TLS and users, then ours; each health check fails before and passes after."""
    engine = Engine(place, programs)
    with started(engine.redis_words(), place / "redis.log"):
        assert not engine.healthy("serve"), "no loop is at work yet"
        with contextlib.ExitStack() as stack:
            for name in ("serve", "exporter", "backup"):
                log = place / f"{name}.log"
                more = {"env": engine.environment(name), "cwd": place}
                stack.enter_context(started(engine.command(name), log, **more))
            for name in ("serve", "exporter", "backup"):
                try:
                    run.wait_for(lambda name=name: engine.healthy(name), 60)
                except TimeoutError:
                    logs = [path.read_text()[-1500:] for path in sorted(place.glob("*.log"))]
                    pytest.fail("\n".join([engine.said, *logs]))
            text = run.get(f"http://127.0.0.1:{engine.exporter}/metrics")
            for line in ("farm_redis_up 1.0", "farm_redis_durable 1.0", "farm_backup_failed 0.0"):
                assert line in text
            assert "farm_redis_certificate_expiry_timestamp_seconds" in text
    written = {path: path.stat().st_uid for path in (place / "archive").rglob("*")}
    assert set(written.values()) <= {int(FARM)}
