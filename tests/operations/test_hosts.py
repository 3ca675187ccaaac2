"""The playbooks run for real, on a host that then plays a league: ``make hosts``.

It needs root, debootstrap and minutes. Everything a host does is read from what ansible put
there: the services are started from their units' ExecStart, user, environment and credentials.
"""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
from collections.abc import Iterator

import furnishing
import hosts
import playbooks
import pytest
import units

from orchestrator import contract


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[hosts.Host, pathlib.Path]]:
    """Return a host that is up, and its inventory; nothing of the farm is on it yet."""
    work = tmp_path_factory.mktemp("hosts")
    told = furnishing.prepare(work)
    with hosts.host(work) as host:
        furnishing.furnish(host, told["digest"])
        yield host, furnishing.inventory(host, work, told)


@pytest.mark.long
def test_the_second_run_changes_nothing(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """site.yml makes the host; again, and in check mode, nothing is left to do."""
    host, inventory = made
    first = playbooks.recap(playbooks.play(inventory, playbooks.SITE))
    assert first["changed"] > 20, first
    second = playbooks.play(inventory, playbooks.SITE)
    counts = playbooks.recap(second)
    assert (counts["changed"], counts["failed"]) == (0, 0), second[-4000:]
    checked = playbooks.play(inventory, playbooks.SITE, "--check", "--diff")
    assert playbooks.recap(checked)["changed"] == 0, checked[-4000:]
    cpu = host.root / "srv/sysfs/devices/system/cpu"
    assert (cpu / "cpu3/cpufreq/scaling_governor").read_text() == "performance\n"
    assert (cpu / "smt/control").read_text() == "off\n"


@pytest.mark.long
def test_the_halls_keys_open_the_box_for_one_thing_each(
    made: tuple[hosts.Host, pathlib.Path], tmp_path: pathlib.Path
) -> None:
    """One key reaches the agent of prepared seats alone, the other SFTP alone; no shell."""
    host, inventory = made
    told = {
        words: ssh(host, inventory.parent / "boxes" / "play", words)
        for words in ("seat nobody-1", "id", "sh -i")
    }
    assert "no such seat is prepared" in told["seat nobody-1"]
    assert "starts or rejoins a prepared seat, nothing else" in told["id"]
    assert told["id"] == told["sh -i"]
    (tmp_path / "file").write_text("pushed")
    (tmp_path / "batch").write_text(f"put {tmp_path / 'file'} pushed\n")
    push = inventory.parent / "boxes" / "push"
    hosts.run("sftp", *ssh_options(push), "-b", tmp_path / "batch", f"farm@{host.address}")
    assert (host.root / "var/lib/farm-gpu/pushed").read_text() == "pushed"
    assert "uid=" not in ssh(host, push, "id")


def ssh_options(key: pathlib.Path) -> list[str]:
    """Return the options of ssh and sftp for a host of which nothing is known yet."""
    told = ("BatchMode=yes", "UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no")
    return ["-q", "-i", str(key), *(word for one in told for word in ("-o", one))]


def ssh(host: hosts.Host, key: pathlib.Path, words: str) -> str:
    """Return what a key is answered."""
    command = ["ssh", *ssh_options(key), f"farm@{host.address}", words]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=60
    )
    return done.stdout + done.stderr


@pytest.mark.long
def test_what_a_reboot_forgets_is_set_again(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """Governor by farm-quiet; persistence, clocks and power by the driver's own tool."""
    host, _ = made
    governor = host.root / "srv/sysfs/devices/system/cpu/cpu3/cpufreq/scaling_governor"
    governor.write_text("powersave\n")
    for name in ("farm-quiet", "farm-gpu-clocks"):
        units.Unit(host, f"{name}.service").run()
    assert governor.read_text() == "performance\n"
    log = (host.root / "srv/nvidia-smi.log").read_text()
    assert log == "-pm 1\n-lgc 1410,1410\n-pl 200\n"


@pytest.mark.long
def test_the_host_that_was_made_plays(made: tuple[hosts.Host, pathlib.Path]) -> None:
    """Hall, GPU box and lane play, started from their units; an upgrade waits for their game."""
    host, inventory = made
    farm = the_farm(host, inventory)
    redis, control, (hall, gpu, lane) = farm.units[0], farm.units[1:5], farm.units[5:]
    try:
        redis.start()
        farm.wait(lambda: bool(farm.status()), 120, "Redis")
        for unit in (*control, hall):
            unit.start()
        gpu.start({"FARM_FAKE_NVML": "/srv/gpus"})
        farm("launch", "/srv/boxed.toml")
        farm.wait(farm.in_flight, 180, "a game to begin")
        an_upgrade_waits_for_the_game(farm, hall, inventory, host)
        hall.start()  # the new version plays on
        farm.wait(lambda: farm.season("boxed") == "finished", 300, "the match of hall and box")
        the_box_was_charged_by_its_own_clock(host)
        farm("launch", "demo")
        farm.wait(lambda: farm.season("demo") == "finished", 600, "the demo season")
        lane.start()  # while an official game runs it could not make itself known
        a_lane_plays_a_test_match(farm)
        everybody_is_told(farm)
        a_backup_is_made(host)
        assert all(unit.running for unit in farm.units)
    finally:
        for unit in farm.units:
            unit.stop()


def the_farm(host: hosts.Host, inventory: pathlib.Path) -> units.Farm:
    """Return the farm on the host: Redis, the control side, hall, GPU box, lane."""
    (host.root / "var/log/redis").mkdir(exist_ok=True)
    control = ("farm-serve", "farm-exporter", "farm-web", "farm-notify")
    names = (*control, "farm-hall@hall-1", "farm-gpu", "farm-lane@hall-1.a")
    services = [
        units.Unit(host, "redis-server.service", "usr/lib/systemd/system"),
        *(units.Unit(host, f"{name}.service") for name in names),
    ]
    password = (inventory.parent / "passwords" / "anna.password").read_text().strip()
    url = f"FARM_REDIS_URL=redis://anna:{password}@127.0.0.1:6379/0"
    path = "PATH=/opt/farm/venv/bin:/usr/bin:/bin"
    return units.Farm(host, [url, path, "FARM_DATA=/srv/anna"], services)


def an_upgrade_waits_for_the_game(
    farm: units.Farm, hall: units.Unit, inventory: pathlib.Path, host: hosts.Host
) -> None:
    """It refuses while the game is in flight and does nothing; then it goes through."""
    words = ("-i", inventory, playbooks.UPGRADE)
    quick = ("-e", "upgrade_tries=1", "-e", "upgrade_delay_seconds=1")
    refused = playbooks.tool("ansible-playbook", *words, *quick)
    assert refused.returncode != 0
    assert "a game is in flight in hall-1" in refused.stdout + refused.stderr
    assert "Copy the source" not in refused.stdout, "nothing is installed beside a game"
    assert farm.in_flight(), "the refused upgrade has ended the game"
    (host.root / "srv/go").touch()
    assert hall.process is not None
    farm.wait(lambda: not farm.in_flight(), 180, "the game's end")
    assert hall.process.wait(120) == 0, "a drained worker ends after its game, and stays ended"
    passed = playbooks.recap(playbooks.play(inventory, playbooks.UPGRADE, *quick))
    assert passed["failed"] == 0


def the_box_was_charged_by_its_own_clock(host: hosts.Host) -> None:
    """The records say so: box and GPU of the far engine, and what the network took."""
    found = sorted((host.root / "var/lib/farm/archive/boxed").rglob("record.json"))
    assert len(found) == 2
    for path in found:
        record = contract.GameRecord.decode(path.read_bytes())
        (far,) = [one for one in (record.white, record.black) if one.box == "gpu-1"]
        assert far.gpus == ("RTX-2080-Ti GPU-aaaa",), path
        assert any(ply.network_ns for ply in record.plies)


def a_lane_plays_a_test_match(farm: units.Farm) -> None:
    """The lane's worker makes itself known and plays what it is dealt."""
    farm.wait(lambda: bool(json.loads(farm("lanes", "--json"))["lanes"]), 120, "the lane")
    (lane,) = json.loads(farm("lanes", "--json"))["lanes"]
    assert (lane["hall"], lane["lane"], lane["host"]) == ("hall-1", "a", "farmhost")
    words = ("--against", "base", "--file", "/srv/engines.toml", "--games", "2", "--tc", "1s+20ms")
    told = json.loads(farm("test", "dev", *words, "--id", "trial", "--json"))
    assert told["games"] == 2, told


def everybody_is_told(farm: units.Farm) -> None:
    """Metrics, page, and the runbook that an alert's link leads to."""
    gpu = re.compile(r'farm_gpu_temperature_celsius\{[^}]*"GPU-aaaa"[^}]*\} 45\.0')
    shown = "http://127.0.0.1:9464/metrics"
    farm.wait(lambda: bool(gpu.search(farm.get(shown))), 60, "the box to tell of its GPU")
    metrics = farm.get(shown)
    assert 'farm_season_status{season="demo",status="finished"} 1.0' in metrics
    assert "<html" in farm.get("http://127.0.0.1:8080/").lower()
    runbook = farm.get("http://127.0.0.1:8080/docs/runbooks/FarmExporterDown/")
    assert runbook.startswith("# FarmExporterDown")


def a_backup_is_made(host: hosts.Host) -> None:
    """The unit that the timer starts every hour brings the backup up to date."""
    units.Unit(host, "farm-backup.service").run()
    assert list((host.root / "var/backups/farm").rglob("journal.jsonl"))
