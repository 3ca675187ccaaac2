"""What is deployed: units, compose file, images' build steps, nginx; held by their own tools."""

from __future__ import annotations

import json
import pathlib
import re
import shutil
import socket
import subprocess

import jsonschema
import pytest
import watched_run
import yaml

from orchestrator.commands import serve
from orchestrator.ops import supervisor
from worker_cpu.engines import sandbox
from worker_cpu.referee import process

DEPLOY = watched_run.ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
SERVICES = [path for path in UNITS if path.suffix == ".service"]
VENDOR = pathlib.Path(__file__).parent / "vendor"
EXPOSURE = 35  # tenths of systemd's points: the hall must be able to make sandboxes


def named(path: pathlib.Path) -> str:
    """Return a unit's name, of a template an instance of it."""
    return path.name.replace("@.", "@main.")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a root directory that holds the units, systemd's own, and the programs."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed (scripts/system-packages.txt)")
    made = tmp_path_factory.mktemp("root")
    place = made / "etc/systemd/system"
    place.mkdir(parents=True)
    for path in UNITS:
        shutil.copy(path, place)
    shutil.copytree("/usr/lib/systemd/system", made / "usr/lib/systemd/system", symlinks=True)
    for program in (
        "opt/farm/venv/bin/farm",
        "opt/farm/venv/bin/celery",
        "usr/local/sbin/farm-quiet",
        "usr/sbin/nft",
        "usr/local/sbin/farm-gpu-clocks",
    ):
        (made / program).parent.mkdir(parents=True, exist_ok=True)
        (made / program).write_text("#!/bin/sh\n")
        (made / program).chmod(0o755)
    return made


def analyze(root: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze on the root."""
    return subprocess.run(
        ["systemd-analyze", *words, f"--root={root}"],
        cwd=root / "etc/systemd/system",
        capture_output=True,
        text=True,
        check=False,
    )


def test_every_unit_is_valid(root: pathlib.Path) -> None:
    """``systemd-analyze verify`` says nothing of the units; of a broken one it does."""
    done = analyze(root, "verify", *map(named, UNITS))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    broken = root / "etc/systemd/system/broken.service"
    broken.write_text("[Service]\nExecStart=/nowhere\nNonsense=1\n")
    assert "Nonsense" in analyze(root, "verify", "broken.service").stderr
    broken.unlink()


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_every_service_is_hardened(root: pathlib.Path, path: pathlib.Path) -> None:
    """``systemd-analyze security --offline`` stays below the threshold."""
    words = ("security", "--offline=true", f"--threshold={EXPOSURE}", "--no-pager", named(path))
    done = analyze(root, *words)
    assert done.returncode == 0, done.stdout[-400:]


def test_a_stop_of_a_hall_is_told_to_its_main_process_alone() -> None:
    """KillMode=mixed: SIGTERM to engines and dead man would kill the game that may end."""
    text = (DEPLOY / "systemd" / "farm-hall@.service").read_text()
    assert "KillMode=mixed" in text
    assert "Slice=farm-hall.slice" in text


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_no_unit_names_cores_that_a_hosts_own_would_be_added_to(path: pathlib.Path) -> None:
    """AllowedCPUs= of a unit and its drop-ins are united: 0-1023 and 4-47 would bind nothing."""
    assert not re.search(r"^AllowedCPUs=", path.read_text(), re.MULTILINE)


def test_units_start_what_farm_up_starts() -> None:
    """Serve, halls, lanes and boxes have the command lines of ``processes``, that tests run."""
    worker = " ".join(supervisor.worker_command("%i")[3:]).replace("%h", "%H")
    worker = worker.partition(" --loglevel")[0]
    for unit in ("farm-hall@.service", "farm-lane@.service"):
        assert f"celery {worker}" in (DEPLOY / "systemd" / unit).read_text()
    image = worker.replace("%i", "${FARM_HALL:?its name}", 1).replace("%i@%H", "$FARM_HALL@%h")
    assert f'exec celery {image}"]' in (DEPLOY / "hall" / "Dockerfile").read_text()
    box = " ".join(supervisor.box_command("${FARM_BOX}")[3:]).replace("%h", "%H")
    box = box.partition(" --loglevel")[0]
    assert f"celery {box}" in (DEPLOY / "systemd" / "farm-gpu.service").read_text()
    serve = " ".join(supervisor.serve_command()[3:])
    text = (DEPLOY / "systemd" / "farm-serve.service").read_text()
    assert f"celery {serve}" in text
    assert "WatchdogSec=" in text


PLAYING = ("farm-hall@.service", "farm-lane@.service", "farm-kibitz@.service", "farm-gpu.service")


@pytest.mark.parametrize("name", PLAYING)
def test_what_starts_engines_finds_those_of_the_farm_and_of_debian(name: str) -> None:
    """Rosters name programs without a path: ``farm-engine``, and Debian's engines."""
    text = (DEPLOY / "systemd" / name).read_text()
    (path,) = re.findall(r"^Environment=PATH=(\S+)$", text, re.MULTILINE)
    assert path.split(":")[0] == "/opt/farm/venv/bin"
    assert {"/usr/bin", "/bin", "/usr/games"} <= set(path.split(":"))


@pytest.mark.parametrize("name", ["farm-hall@.service", "farm-lane@.service"])
def test_a_drained_worker_stays_ended(name: str) -> None:
    """It ends with status 0, which alone is no reason to start it again."""
    assert "\nRestart=on-failure\n" in (DEPLOY / "systemd" / name).read_text()


@pytest.mark.parametrize(
    "path",
    [*UNITS, *(watched_run.ROOT / "ansible" / "roles").glob("*/templates/*.conf.j2")],
    ids=lambda path: path.name,
)
def test_no_unit_fails_in_silence(path: pathlib.Path) -> None:
    """An Assert that does not hold leaves no failed unit: no OnFailure= and no alert follows."""
    assert not re.search(r"^Assert\w+=", path.read_text(), re.MULTILINE)


def test_a_lane_is_never_started_as_the_hall() -> None:
    """Without the file that names the lane its unit does not start."""
    text = (DEPLOY / "systemd" / "farm-lane@.service").read_text()
    assert "\nEnvironmentFile=/etc/farm/lane-%i.env\n" in text


@pytest.mark.parametrize("name", ["farm-hall@.service", "farm-lane@.service"])
def test_the_referee_may_run_at_once_and_no_engine_may(name: str) -> None:
    """The unit grants the lowest real-time priority, and each engine has it taken."""
    text = (DEPLOY / "systemd" / name).read_text()
    assert f"\nLimitRTPRIO={process.PRIORITY}\n" in text
    assert "RestrictRealtime" not in text
    assert sandbox.Confinement().limits()["RTPRIO"] == 0


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_a_units_documentation_is_installed_with_it(path: pathlib.Path) -> None:
    """``Documentation=`` names a file that the install script puts there."""
    told = re.findall(r"^Documentation=file:///opt/farm/(\S+)$", path.read_text(), re.MULTILINE)
    assert told
    assert all((watched_run.ROOT / one).is_file() for one in told), told


def test_no_unit_carries_a_secret() -> None:
    """Passwords come from files, never in a unit or an environment.

    Credentials are for services that may be restarted; what plays reads a new one by itself.
    """
    for path in SERVICES:
        text = path.read_text()
        assert "PASSWORD=" not in text
        plays = path.name in {"farm-hall@.service", "farm-lane@.service"}
        assert ("PASSWORD_FILE=/etc/farm/redis/worker\n" in text) == plays, path.name
        given = "LoadCredential=" in text or plays
        assert given == ("FARM_REDIS_USER=" in text), path.name


def test_the_loop_feeds_the_watchdog(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first pass says READY=1, each WATCHDOG=1; without a socket nothing is said."""
    serve.Watchdog().alive()
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(5)
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        told = serve.Watchdog()
        told.alive()
        told.alive()
        assert [systemd.recv(100) for _ in range(2)] == [b"READY=1\nWATCHDOG=1", b"WATCHDOG=1"]


def test_the_compose_file_keeps_its_schema() -> None:
    """It is valid by the Compose specification; its files, volumes and secrets are there."""
    told = yaml.safe_load((DEPLOY / "compose" / "compose.yml").read_text())
    schema = json.loads((VENDOR / "compose-spec.json").read_text())
    jsonschema.Draft7Validator(schema).validate(told)
    for name in ("tlcs.yml", "offsite.yml"):
        beside = yaml.safe_load((DEPLOY / "compose" / name).read_text())
        assert beside["services"].keys() <= told["services"].keys()
        jsonschema.Draft7Validator(schema).validate(beside)
    wanted = {"redis", "serve", "web", "prometheus", "alertmanager", "grafana", "exporter"}
    assert wanted <= told["services"].keys()
    for name, service in told["services"].items():
        for mount in service.get("volumes", []):
            bound = isinstance(mount, dict)
            source = mount["source"] if bound else mount.split(":")[0]
            if bound:
                assert mount["bind"] == {"create_host_path": False}, "a missing file is no folder"
                continue
            if source.startswith("../"):
                assert (DEPLOY / "compose" / source).exists(), mount
            elif not source.startswith("./"):
                assert source in told["volumes"], mount
        assert set(service.get("secrets", [])) <= told["secrets"].keys(), name
        assert ":latest" not in service["image"]


@pytest.mark.parametrize("image", ["compose", "worker", "hall"])
def test_image_steps_are_the_install_scripts(image: str) -> None:
    """The image runs the script that ansible and the test below run, and nothing of its own."""
    lines = (DEPLOY / image / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    runs = [line for line in lines if line.startswith("RUN ")]
    kinds = [
        re.match(r"RUN (apt-get update|/usr/src/farm/deploy/install/install-farm|groupadd)", r)
        for r in runs
    ]
    assert all(kinds), runs
    assert any("install-farm --source /usr/src/farm --prefix /opt/farm" in run for run in runs)


def test_nginx_accepts_its_configuration(tmp_path: pathlib.Path) -> None:
    """``nginx -t`` passes with the site in an http block."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    if not pathlib.Path(program).exists():
        pytest.skip("nginx-light is not installed (scripts/system-packages.txt)")
    site = (
        (DEPLOY / "nginx" / "farm.conf")
        .read_text()
        .replace("server web:8080", "server 127.0.0.1:8080")
    )
    (tmp_path / "site.conf").write_text(site)
    main = tmp_path / "nginx.conf"
    main.write_text(
        f"pid {tmp_path}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; include {tmp_path}/site.conf; }}\n"
    )
    done = subprocess.run([program, "-t", "-c", main], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
