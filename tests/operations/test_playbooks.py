"""The playbooks: linted, specified, and refused beside a game in flight.

They are run for real, on whole hosts, in ``tests/lab``.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from typing import Any

import hosts
import jinja2
import playbooks
import pytest
import yaml


def test_yamllint_is_content() -> None:
    """``yamllint --strict`` finds nothing."""
    done = playbooks.tool("yamllint", "-s", ".")
    assert done.returncode == 0, done.stdout


def test_ansible_lint_is_content_in_profile_production() -> None:
    """``ansible-lint`` passes in its strictest profile, without network."""
    told = yaml.safe_load((playbooks.ANSIBLE / ".ansible-lint").read_text())
    assert told["profile"] == "production"
    done = playbooks.tool("ansible-lint", "--offline", "-q")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_playbooks_parse() -> None:
    """Every playbook passes ``--syntax-check`` against the example inventory."""
    done = playbooks.tool("ansible-playbook", "--syntax-check", *playbooks.PLAYBOOKS)
    assert done.returncode == 0, done.stderr


def test_what_lies_beside_an_inventory_is_no_host(tmp_path: pathlib.Path) -> None:
    """Passwords are where ``group_vars`` look for them, and none is taken for a host's name."""
    shutil.copytree(playbooks.ANSIBLE / "inventory" / "example", tmp_path / "ours")
    (tmp_path / "ours" / "files" / "redis").mkdir(parents=True)
    (tmp_path / "ours" / "files" / "redis" / "worker.password").write_text("sesame\n")
    done = playbooks.tool("ansible-inventory", "-i", str(tmp_path / "ours"), "--list")
    assert done.returncode == 0, done.stderr
    assert "cpu1.example.org" in done.stdout
    assert "sesame" not in done.stdout + done.stderr


@pytest.mark.parametrize("role", playbooks.ROLES)
def test_each_variable_is_specified_and_prefixed(role: str) -> None:
    """Defaults, argument_specs and use agree; names begin with the role's."""
    folder = playbooks.ANSIBLE / "roles" / role
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
    for folder in ("roles", "playbooks"):
        for path in (playbooks.ANSIBLE / folder).rglob("*.yml"):
            for module in re.findall(r"^\s+(\w+\.\w+\.\w+):", path.read_text(), re.MULTILINE):
                assert module.startswith("ansible.builtin."), f"{path}: {module}"


# A farm that says: drained, and a game is in flight in hall-7; it notes what it was asked.
BUSY = """#!/bin/sh
echo "$1 $2 $3" >> {place}/words
[ "$1" = status ] && [ -e {place}/away ] && {{ {place}/away; echo no Redis >&2; exit 4; }}
[ "$1" = status ] && cat {place}/status && [ -e {place}/alarm ] && exit 3
[ "$1" = doctor ] && env > {place}/asked && cat {place}/findings
exit 0
"""
IN_FLIGHT = '{"halls": [{"hall": "hall-7", "game": "league.1"}, {"hall": "hall-8", "game": null}]}'
IDLE = '{"halls": [{"hall": "hall-7", "game": null}]}'

FINDINGS = [
    {"area": "redis", "name": "fsync", "status": "ok", "found": "always", "do": ""},
    {"area": "here", "name": "swap", "status": "warning", "found": "9 MiB", "do": "end it"},
    {"area": "here", "name": "cores", "status": "warning", "found": "none", "do": "set some"},
    {"area": "here", "name": "speed", "status": "unknown", "found": "in play", "do": "later"},
]

TWO_HOSTS = """---
all:
  vars:
    ansible_connection: local
    ansible_become: false
    ansible_python_interpreter: {python}
  children:
    control: {{hosts: {{control-host: }}}}
    halls:
      hosts: {{hall-host: {{hall_name: hall-7}}, other-host: {{hall_name: {other}}}}}
      vars: {{hall_sandbox: plain}}
"""


class Hosts:
    """A control host and two halls, hall-7 and another, whose farm is busy."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place, self.prefix = place, place / "opt"
        self.prefix.mkdir()
        (place / "farm").write_text(BUSY.format(place=place))
        (place / "farm").chmod(0o755)
        (place / "status").write_text(IN_FLIGHT)
        (place / "words").touch()
        (place / "findings").write_text(json.dumps({"findings": FINDINGS}))
        self.name_other("hall-8")
        self.archive("echo prepared")

    def name_other(self, name: str) -> None:
        """Write the inventory."""
        text = TWO_HOSTS.format(python=sys.executable, other=name)
        (self.place / "hosts.yml").write_text(text)

    def archive(self, install: str) -> None:
        """Make a version whose install script is a stub."""
        script = self.place / "install-farm"
        script.write_text(f"#!/bin/sh\n{install}\n")
        script.chmod(0o755)
        with tarfile.open(self.place / "farm.tar.gz", "w:gz") as archive:
            archive.add(script, "deploy/install/install-farm")

    def run(
        self, playbook: str, limit: str = "all", **told: object
    ) -> subprocess.CompletedProcess[str]:
        """Run a playbook on the hosts of a limit."""
        path = playbooks.ANSIBLE / "playbooks" / f"{playbook}.yml"
        for name in ("upgrade", "preflight", "undrain"):
            told[f"{name}_farm"] = [str(self.place / "farm")]
        told |= {"program_prefix": str(self.prefix)}
        told |= {"program_archive": str(self.place / "farm.tar.gz")}
        words = ("ansible-playbook", "-i", self.place / "hosts.yml", path, "-e", json.dumps(told))
        return playbooks.tool(*words, "--limit", limit)

    def words(self, verb: str) -> list[str]:
        """Return what the farm was told with a verb."""
        lines = (self.place / "words").read_text().splitlines()
        return sorted(line.split()[1] for line in lines if line.startswith(f"{verb} "))


@pytest.fixture
def two(tmp_path: pathlib.Path) -> Hosts:
    """Return the hosts of a farm of two halls."""
    if os.geteuid() != 0:
        pytest.skip("hardware: files of root's need root")
    return Hosts(tmp_path)


UNIT = re.compile(r"farm-\w+@?")
QUICK = {"upgrade_tries": 1, "upgrade_delay_seconds": 1}


def test_an_upgrade_stops_on_all_hosts_while_a_game_is_in_flight(two: Hosts) -> None:
    """All halls are drained, by their own names; it refuses, and changes no host."""
    done = two.run("upgrade", **QUICK)
    assert done.returncode != 0
    assert two.words("drain") == ["hall-7", "hall-8"], "both before one is waited for"
    assert "a game is in flight in hall-7 on hall-host" in done.stdout + done.stderr
    assert "Upgrade the control host" not in done.stdout, done.stdout


def drain(two: Hosts, away: str) -> subprocess.CompletedProcess[str]:
    """Drain a hall, with a Redis that is away until the program ``away`` has removed itself."""
    (two.place / "status").write_text(IDLE)
    (two.place / "away").write_text(f"#!/bin/sh\n{away}\n")
    (two.place / "away").chmod(0o755)
    told = {"upgrade_farm": [str(two.place / "farm")], "upgrade_hall": "hall-7"}
    told |= {"upgrade_tries": 2, "upgrade_delay_seconds": 1, "upgrade_reason": "test"}
    steps = {"ansible.builtin.import_tasks": str(playbooks.ANSIBLE / "playbooks/tasks/drain.yml")}
    play = {"name": "Drain", "hosts": "hall-host", "gather_facts": False}
    play |= {"vars": told, "tasks": [{"name": "Drain", **steps}]}
    (two.place / "play.yml").write_text(yaml.dump([play]))
    return playbooks.tool("ansible-playbook", "-i", two.place / "hosts.yml", two.place / "play.yml")


def test_a_drain_outlasts_a_moment_without_redis(two: Hosts) -> None:
    """Hours of waiting are not lost by one look that failed; where all fail it says why."""
    done = drain(two, 'rm "$0"')
    assert done.returncode == 0, done.stdout
    done = drain(two, ":")
    assert done.returncode != 0
    assert "is not known: `farm status` on control-host says: no Redis" in done.stdout


def test_a_drain_is_not_kept_up_by_an_alarm(two: Hosts) -> None:
    """``farm status`` says what is played with exit code 3, too: an upgrade may be the remedy."""
    (two.place / "alarm").touch()
    done = drain(two, 'rm "$0"')
    assert done.returncode == 0, done.stdout


def test_an_upgrade_that_cannot_be_built_drains_nobody(two: Hosts) -> None:
    """It is built while games are played; what fails then has cost no game."""
    two.archive("echo no such wheel >&2; exit 1")
    done = two.run("upgrade", **QUICK)
    assert done.returncode != 0
    assert "no such wheel" in done.stdout + done.stderr
    assert two.words("drain") == []


def test_halls_whose_upgrade_was_put_off_play_on(two: Hosts) -> None:
    """Each drain is taken back by its hall's name."""
    done = two.run("undrain")
    assert done.returncode == 0, done.stdout
    assert two.words("undrain") == ["hall-7", "hall-8"]


def test_two_halls_of_one_name_are_refused(two: Hosts) -> None:
    """The second host would wait for ever: nothing is done on any."""
    two.name_other("hall-7")
    done = two.run("site")
    assert done.returncode != 0
    assert "two hosts of group halls have one name" in done.stdout + done.stderr
    assert "Make every host" not in done.stdout


def test_a_host_that_fails_ends_its_own_part_alone() -> None:
    """A play of halls that all fail would end the run before GPU boxes and monitoring, silently."""
    plays = yaml.safe_load(playbooks.SITE.read_text())
    assert [one["hosts"] for one in plays] == ["all", "all"]
    assert plays[1]["force_handlers"] is True
    named = {task["ansible.builtin.include_role"]["name"] for task in plays[1]["tasks"]}
    assert named == set(playbooks.ROLES)


def test_what_the_inventory_does_not_name_is_removed(two: Hosts) -> None:
    """A lane, a kibitzer, a hall of another name, which is drained first; the rest stays.

    A season that is not over in that hall is named, others are not.
    """
    settings = two.place / "etc"
    settings.mkdir()
    names = (
        "hall-hall-7",
        "lane-hall-7.a",
        "lane-hall-7.b",
        "kibitz-0",
        "hall-hall-9",
        "lane-hall-9.a",
    )
    for name in (*names, "farm"):
        (settings / f"{name}.env").touch()
    seasons = [
        {"season": name, "hall": hall, "status": status}
        for name, hall, status in (
            ("winter", "hall-9", "running"),
            ("summer", "hall-9", "finished"),
            ("autumn", "hall-7", "running"),
        )
    ]
    (two.place / "status").write_text(json.dumps(json.loads(IDLE) | {"seasons": seasons}))
    told = {"remove_settings": str(settings), "remove_data": str(two.place)} | QUICK
    lanes = {"hall_lanes": [{"name": "a", "cpus": "5-8"}]}
    spooled = two.place / "halls/hall-9/spool/a.spool"
    spooled.parent.mkdir(parents=True)
    spooled.touch()
    refused = two.run("remove", **told, **lanes, limit="hall-host")
    assert refused.returncode != 0
    assert "1 finished games of hall-hall-9" in refused.stdout + refused.stderr
    spooled.unlink()
    done = two.run("remove", **told, **lanes, limit="hall-host")
    assert "winter is not over and waits in hall-9" in done.stdout
    assert not {"summer", "autumn"} & set(re.findall(r"\w+", done.stdout))
    kept = {"farm.env", "hall-hall-7.env", "lane-hall-7.a.env"}
    assert {path.name for path in settings.iterdir()} == kept, done.stdout
    assert "hall-9" in two.words("drain")
    assert "hall-7" not in two.words("drain")
    assert "lanes --close hall-7.b" in (two.place / "words").read_text()


def test_an_upgrade_that_was_cut_off_starts_the_new_version_when_it_is_run_again() -> None:
    """Whether this run has installed it does not decide whether services are restarted."""
    plays = yaml.safe_load(playbooks.UPGRADE.read_text())
    after = [task for play in plays for task in play.get("post_tasks", ())]
    started = [one for one in after if "ansible.builtin.systemd_service" in one]
    assert [one["when"] for one in started] == ['ansible_facts.service_mgr == "systemd"'] * 3


def test_an_upgrade_restarts_all_that_runs_with_games_before_spectators() -> None:
    """Each unit of the farm that runs for good is named; the others are oneshot."""
    plays = yaml.safe_load(playbooks.UPGRADE.read_text())
    all_of_them = "control:halls:gpu_boxes:kibitzers"
    order = [all_of_them, "halls", "control", "halls:gpu_boxes", "kibitzers"]
    assert [one["hosts"] for one in plays] == order
    restarted = {unit for play in plays for unit in UNIT.findall(str(play.get("post_tasks")))}
    units = (hosts.ROOT / "deploy" / "systemd").glob("*.service")
    lasting = {path.stem for path in units if "Type=oneshot" not in path.read_text()}
    assert restarted == lasting


def test_an_upgrade_restarts_the_lanes_of_its_hall(two: Hosts) -> None:
    """Their units have the names that role hall has given them."""
    plays = yaml.safe_load(playbooks.UPGRADE.read_text())
    (task,) = [one for one in plays[3]["post_tasks"] if "upgrade_lanes" in one.get("vars", ())]
    said = {"name": "Say", "ansible.builtin.debug": {"msg": task["loop"]}, "vars": task["vars"]}
    play = {"name": "Say", "hosts": "hall-host", "gather_facts": False, "tasks": [said]}
    (two.place / "play.yml").write_text(yaml.dump([play]))
    lanes = json.dumps({"hall_lanes": [{"name": "a"}, {"name": "b"}]})
    done = playbooks.play(two.place / "hosts.yml", two.place / "play.yml", "-e", lanes)
    wanted = ["farm-hall@hall-7.service", *(f"farm-lane@hall-7.{name}.service" for name in "ab")]
    assert re.findall(r"farm-[^\s\",]+", done) == wanted


def test_the_doctor_looks_at_the_hall_as_its_unit_plays(two: Hosts) -> None:
    """The hall's name, its host's name and its sandbox are the inventory's."""
    done = two.run("preflight", limit="hall-host")
    assert done.returncode == 0, done.stdout
    asked = (two.place / "asked").read_text().splitlines()
    assert "FARM_SANDBOX=plain" in asked
    assert {"FARM_HALL=hall-7", "FARM_HOST=hall-host"} <= set(asked)


def test_the_look_at_the_halls_says_what_it_has_found(two: Hosts) -> None:
    """What is amiss with what to do, the names of the rest; nothing of cores it was not told."""
    done = two.run("preflight", limit="hall-host")
    wanted = ("warning: here swap: 9 MiB → end it", "ok: fsync", "not to be seen from here: speed")
    assert all(f"        {line}\n" in done.stdout for line in wanted), done.stdout
    assert "cores" not in done.stdout


def test_engines_are_installed_and_the_roster_lines_that_fit_are_printed(two: Hosts) -> None:
    """What is printed is TOML of a roster, and names files that lie there."""
    files = {"mine": ("mine", "#!/bin/sh\n"), "net": ("mine.nn", "weights")}
    listed = []
    for name, text in files.values():
        (two.place / name).write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        one = {"id": "mine", "src": str(two.place / name), "sha256": digest, "name": name}
        listed.append(one | {"executable": not name.endswith(".nn")})
    told = {"engines_list": listed, "engines_root": str(two.place / "engines")}
    done = two.run("engine_deploy", limit="hall-host", **told)
    assert done.returncode == 0, done.stdout
    (printed,) = re.findall(r"msg: \|-\n((?: {8}.*\n)+)", done.stdout)
    roster = tomllib.loads(printed)
    (engine,) = roster["engine"]
    assert (pathlib.Path(engine["directory"]) / engine["command"][0]).is_file()
    assert engine["checksums"] == {"./mine": listed[0]["sha256"]}
    network = re.findall(r"(/\S+/mine\.nn)", printed)
    assert [pathlib.Path(path).read_text() for path in network] == ["weights"]


def role(two: Hosts, name: str, count: int, **told: object) -> subprocess.CompletedProcess[str]:
    """Run the first tasks of a role on a hall's host."""
    defaults = yaml.safe_load((playbooks.ANSIBLE / f"roles/{name}/defaults/main.yml").read_text())
    return played(two, "hall-host", tasks(name)[:count], **(defaults | told))


def played(
    two: Hosts, host: str, wanted: list[dict[str, Any]], *words: str, **told: object
) -> subprocess.CompletedProcess[str]:
    """Run some tasks of a role on a host, with these variables and further words."""
    play = {"name": "Role", "hosts": host, "gather_facts": False, "vars": told, "tasks": wanted}
    (two.place / "play.yml").write_text(yaml.safe_dump([play], width=10_000))
    line = ("ansible-playbook", "-i", two.place / "hosts.yml", two.place / "play.yml", *words)
    return playbooks.tool(*line)


def test_a_farm_without_tablebases_boxes_or_notices_is_told_what_to_set(two: Hosts) -> None:
    """A file of the example's group_vars that nobody has made is named, with the way without it."""
    away = str(two.place / "files")
    no_tables = role(two, "syzygy", 1, syzygy_checksums_src=away)
    assert no_tables.returncode != 0
    assert "set syzygy_checksums_src to ''" in no_tables.stdout
    no_boxes = role(two, "hall", 2, hall_boxes_src=away, hall_check_size=False)
    assert no_boxes.returncode != 0
    assert "set hall_boxes_src to ''" in no_boxes.stdout
    settings = two.place / "notify.toml"
    settings.touch()
    for told in ({"control_notify_src": away}, {"control_notify_secrets_src": away}):
        no_notices = role(two, "control", 1, **({"control_notify_src": str(settings)} | told))
        assert no_notices.returncode != 0
        assert f"{away} does not exist" in no_notices.stdout
        assert "set control_notify_src to ''" in re.sub(r"\s+", " ", no_notices.stdout)
    assert role(two, "syzygy", 1).returncode == 0
    assert role(two, "hall", 2, hall_check_size=False).returncode == 0
    # The word for no notices is one: the example's folder of their secrets may stay named.
    assert role(two, "control", 1, control_notify_secrets_src=away).returncode == 0
    tied = [one for one in tasks("control") if "control_notify_secrets_src" in str(one)]
    copies = [one for one in tied if "ansible.builtin.copy" in one]
    assert copies
    told = {"control_notify_src": "", "control_notify_secrets_src": away}
    done = played(two, "control-host", copies, **told)
    assert done.returncode == 0, done.stdout


def test_an_address_that_the_control_host_does_not_have_is_refused(two: Hosts) -> None:
    """Redis would fail to start, and say why in its own log alone."""
    facts = {"all_ipv4_addresses": ["10.20.0.2"], "cacheable": True}
    look = [{"ansible.builtin.set_fact": facts}, *tasks("redis")[:2]]
    foreign, told = "203.0.113.9", {"redis_acl_src": ""}
    for words in ((), ("--check",)):
        refused = played(two, "control-host", look, *words, **told, redis_bind=foreign)
        assert refused.returncode != 0
        said = " ".join(refused.stdout.split())
        assert (
            f"redis_bind is {foreign}, and control-host has no address {foreign}; it has 10."
            in said
        )
    named = f"127.0.0.1 10.20.0.2 -{foreign} control.example.org -::1"
    done = played(two, "control-host", look, **told, redis_bind=named)
    assert done.returncode == 0, done.stdout
    unknown = played(two, "control-host", look[1:], **told, redis_bind=foreign)
    assert unknown.returncode == 0, f"without facts nothing can be said: {unknown.stdout}"


def test_notices_whose_secrets_are_not_there_are_refused(two: Hosts) -> None:
    """Each secret that the settings name must be on the host, before the first notice needs it."""
    wanted = tasks("control")
    look = [one for one in wanted if "secrets" in one["name"] and "copy" not in str(one)]
    look = [one for one in look if "ansible.builtin.file" not in one]
    there, away = two.place / "mail-password", two.place / "webhook-secret"
    there.touch()
    named = [f'password_file = "{there}"', '# url_file = "/no"', f'secret_file = "{away}" # it']
    (two.place / "notify.toml").write_text("\n".join(named))
    told: dict[str, object] = {"control_notify_src": str(two.place / "notify.toml")}
    refused = played(two, "control-host", look, **told)
    assert refused.returncode != 0
    assert f"names {away}, which" in re.sub(r"\s+", " ", refused.stdout)
    away.touch()
    done = played(two, "control-host", look, **told)
    assert done.returncode == 0, done.stdout
    # A check copies nothing: what counts is what lies in the folder here.
    folder = two.place / "secrets"
    folder.mkdir()
    (two.place / "notify.toml").write_text('url_file = "/etc/farm/notify/pager-of-a-test"\n')
    told = {"control_notify_src": str(two.place / "notify.toml")}
    told |= {"control_notify_secrets_src": str(folder)}
    refused = played(two, "control-host", look, "--check", **told)
    assert "names /etc/farm/notify/pager-of-a-test, which" in " ".join(refused.stdout.split())
    (folder / "pager-of-a-test").touch()
    done = played(two, "control-host", look, "--check", **told)
    assert done.returncode == 0, done.stdout
    done = played(two, "control-host", look, **told | {"control_notify_src": ""})
    assert done.returncode == 0, f"a farm that sends no notices: {done.stdout}"


SETTINGS = re.compile(r"/etc/farm/[\w{}. -]+\.(env|toml)|/usr/local/sbin/farm-gpu-clocks")
ONCE = "/etc/farm/backup.env"  # read each time by a unit that a timer starts


def test_settings_that_have_changed_are_taken_or_reported() -> None:
    """What plays nothing is restarted by a handler; of what plays, the playbook says what to do."""
    found = set()
    for role in playbooks.ROLES:
        folder = playbooks.ANSIBLE / "roles" / role
        for path in sorted((folder / "tasks").glob("*.yml")):
            for task in yaml.safe_load(path.read_text()):
                written = task.get("ansible.builtin.template") or task.get("ansible.builtin.copy")
                dest = str((written or {}).get("dest"))
                if not SETTINGS.fullmatch(dest) or dest == ONCE:
                    continue
                found.add(dest.rpartition("/")[2])
                plays = role == "hall"
                handlers = yaml.safe_load((folder / "handlers/main.yml").read_text())
                named = {handler["name"] for handler in handlers}
                assert plays or task.get("notify") in named, dest
                text = (folder / "tasks/main.yml").read_text()
                assert not plays or text.count(f"{task['register']}") >= 2, dest
    assert {"farm.env", "gpu.env", "notify.toml", "farm-gpu-clocks"} < found
    assert len(found) == 9


# -- tasks and templates by themselves ---------------------------------------------------------


def tasks(role: str) -> list[dict[str, Any]]:
    """Return a role's tasks."""
    path = playbooks.ANSIBLE / "roles" / role / "tasks" / "main.yml"
    read: list[dict[str, Any]] = yaml.safe_load(path.read_text())
    return read


def test_a_host_is_made_quiet_as_far_as_it_can_be(tmp_path: pathlib.Path) -> None:
    """A core that is offline (its file cannot be read) and missing SMT stop nothing."""
    hosts.sysfs(tmp_path)
    cpu = tmp_path / "devices/system/cpu"
    (cpu / "cpu3/cpufreq/scaling_governor").unlink()
    (cpu / "cpu3/cpufreq/scaling_governor").mkdir()
    (cpu / "smt/control").write_text("notsupported\n")
    role = playbooks.ANSIBLE / "roles" / "base"
    settings = yaml.safe_load((role / "defaults/main.yml").read_text())
    text = (role / "templates/farm-quiet.j2").read_text()
    script = jinja2.Template(text).render(settings | {"base_sysfs": tmp_path})
    runs = [
        subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [(one.returncode, one.stderr) for one in runs] == [(0, "")] * 2
    assert [one.stdout.count("changed") for one in runs] == [4, 0], "three governors, turbo"
    assert (cpu / "cpu2/cpufreq/scaling_governor").read_text() == "performance\n"
    assert (cpu / "smt/control").read_text() == "notsupported\n"


def _quiet(**told: object) -> str:
    """Return the program that makes a host quiet, with settings."""
    role = playbooks.ANSIBLE / "roles" / "base"
    settings = yaml.safe_load((role / "defaults/main.yml").read_text())
    text = (role / "templates/farm-quiet.j2").read_text()
    return jinja2.Template(text).render(settings | told)


def test_the_kernel_works_on_the_housekeeping_cores(tmp_path: pathlib.Path) -> None:
    """Interrupts, workqueues, idle states and huge pages are set once; what cannot be is left."""
    files = {
        "sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never\n",
        "sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never\n",
        "sys/devices/virtual/workqueue/cpumask": "ffff,ffffffff\n",
        "proc/irq/default_smp_affinity": "ffff,ffffffff\n",
        "proc/irq/7/smp_affinity_list": "0-47\n",
        "proc/irq/8/smp_affinity_list": "0-3,33\n",
    }
    for state, latency in (("state0", 0), ("state1", 2), ("state3", 133)):
        files[f"sys/devices/system/cpu/cpu0/cpuidle/{state}/latency"] = f"{latency}\n"
        files[f"sys/devices/system/cpu/cpu0/cpuidle/{state}/disable"] = "0\n"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    fixed = tmp_path / "proc/irq/9/smp_affinity_list"  # an interrupt of one core: it cannot be set
    fixed.mkdir(parents=True)
    script = _quiet(
        base_sysfs=tmp_path / "sys",
        base_procfs=tmp_path / "proc",
        base_housekeeping_cpus="0-3,33",
        base_idle_latency_us=10,
    )
    words = ["sh", "-c", script]
    first, second = (
        subprocess.run(words, capture_output=True, text=True, check=False) for _ in range(2)
    )
    assert (first.returncode, first.stderr, second.stderr) == (0, "", "")
    assert first.stdout.count("changed") == 5, first.stdout

    def now(name: str) -> str:
        return (tmp_path / name).read_text().strip()

    assert now("sys/kernel/mm/transparent_hugepage/enabled") == "madvise"
    assert now("sys/devices/virtual/workqueue/cpumask") == "00000002,0000000f"
    assert now("proc/irq/default_smp_affinity") == "00000002,0000000f"
    assert now("proc/irq/7/smp_affinity_list") == "0-3,33"
    assert [now(f"sys/devices/system/cpu/cpu0/cpuidle/state{n}/disable") for n in (0, 1, 3)] == [
        "0",
        "0",
        "1",
    ]
    assert "changed" not in second.stdout


def test_each_card_has_its_own_clock_and_power(tmp_path: pathlib.Path) -> None:
    """By its whole name: a 2080 is no 2080 Ti; a card that is not there is named."""
    smi = tmp_path / "smi"
    smi.write_text(
        f"""#!/bin/sh
case "$1" in
  --query-gpu*) printf '0, NVIDIA GeForce RTX 2080 Ti\\n1, NVIDIA GeForce RTX 2080\\n' ;;
  *) echo "$@" >> {tmp_path}/asked ;;
esac
"""
    )
    smi.chmod(0o755)
    role = playbooks.ANSIBLE / "roles" / "gpu_box"
    settings = yaml.safe_load((role / "defaults/main.yml").read_text())
    example = playbooks.ANSIBLE / "inventory/example/group_vars/gpu_boxes.yml"
    cards = yaml.safe_load(example.read_text())["gpu_box_cards"]
    text = (role / "templates/farm-gpu-clocks.j2").read_text()

    def run(told: list[dict[str, object]]) -> subprocess.CompletedProcess[str]:
        more = {"gpu_box_nvidia_smi": smi, "gpu_box_cards": told}
        script = jinja2.Template(text).render(settings | more)
        return subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)

    assert run(cards).returncode == 0
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == [
        "-pm 1",
        *("-i 0 -lgc 1545,1545", "-i 0 -pl 250"),
        *("-i 1 -lgc 1710,1710", "-i 1 -pl 215"),
    ]
    missing = run([{"name": "NVIDIA A100", "power_watts": 250}])
    assert missing.returncode == 1
    assert "there is no NVIDIA A100 here" in missing.stderr


CORES = (  # of a host with cores 0 to 47, for 43 threads: what its hall is given, whether it fits
    ("5-47", True),
    ("5-40,44-47", False),
    ("6-48", False),
    ("", True),
)


def test_a_hall_has_the_cores_that_its_engines_are_given(tmp_path: pathlib.Path) -> None:
    """43 threads need 43 cores of those that are named, and cores that the host has (0 to 47)."""
    (check, *_) = tasks("hall")
    play, inventory = tmp_path / "play.yml", tmp_path / "hosts.yml"
    defaults = yaml.safe_load((playbooks.ANSIBLE / "roles/hall/defaults/main.yml").read_text())
    facts = {"processor_vcpus": 48, "memtotal_mb": 257_000}
    variables = defaults | {"ansible_facts": facts}
    threads = {"hall_threads": variables.pop("hall_threads")}
    del variables["hall_engine_cpus"]  # each host's own
    whole = {"hosts": "all", "gather_facts": False, "vars": variables, "tasks": [check]}
    play.write_text(yaml.safe_dump([whole], width=10_000))
    hosts_ = {f"host{n}": threads | {"hall_engine_cpus": cpus} for n, (cpus, _) in enumerate(CORES)}
    hosts_["small"] = {"hall_threads": 1, "hall_engine_cpus": 0}  # without quotes a number
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts_}}))
    done = playbooks.tool("ansible-playbook", "-i", inventory, "-c", "local", play)
    for number, (cpus, fits) in enumerate(CORES):
        ended = re.search(rf"host{number} +: .* failed=(\d)", done.stdout)
        assert ended is not None, done.stdout
        assert (ended[1] == "0") is fits, (cpus, done.stdout)
    assert re.search(r"small +: .* failed=0", done.stdout), done.stdout
    assert done.stdout.count("hall_engine_cpus") >= 2, "both refusals name the setting"
    for name in ("hall_threads", "hall_hash_mb", "hall_margin_mb"):
        assert name in done.stdout, "what a smaller host is to be told"


def test_one_core_may_be_written_without_quotes() -> None:
    """YAML reads a number then: what is written is the same as of the text."""
    as_text, as_number = (_quiet(base_housekeeping_cpus=cpus) for cpus in ("0", 0))
    assert as_text == as_number != _quiet()
    for name, cores in (("hall/templates/hall", "hall_"), ("gpu_box/templates/gpu", "gpu_box_")):
        path = playbooks.ANSIBLE / "roles" / f"{name}.env.j2"
        written = re.findall(rf"({cores}\w*cpus)( \| string)? \| length", path.read_text())
        assert written
        assert all(string for _, string in written), written
    asked = [str(task) for role in ("base", "gpu_box", "hall") for task in tasks(role)]
    assert not re.search(r"_cpus( \| default\(\"\"\))? \| length", " ".join(asked))


def test_tables_are_fetched_and_go_on_where_they_were_cut_off(tmp_path: pathlib.Path) -> None:
    """From a mirror by a list of checksums: whole ones stay, parts go on, no wrong one is kept."""
    there, here = tmp_path / "mirror", tmp_path / "tables"
    there.mkdir()
    here.mkdir()
    content = {name: os.urandom(20_000) for name in ("KQvK.rtbw", "KRvK.rtbw", "KBvK.rtbz")}
    for name, body in content.items():
        (there / name).write_bytes(body)
    lines = [f"{hashlib.sha256(body).hexdigest()}  {name}" for name, body in content.items()]
    (here / "SHA256SUMS").write_text("\n".join(lines) + "\n")
    (here / "KQvK.rtbw").write_bytes(content["KQvK.rtbw"])
    (here / "KRvK.rtbw.part").write_bytes(content["KRvK.rtbw"][:9_000])
    (here / "KBvK.rtbz.part").write_bytes(b"wrong" * 100)
    script = playbooks.ANSIBLE.parent / "deploy" / "syzygy" / "farm-fetch-syzygy"

    def fetch() -> subprocess.CompletedProcess[str]:
        words = [script, there.as_uri(), here]
        return subprocess.run(words, capture_output=True, text=True, check=False)

    done = fetch()
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["KBvK.rtbz", "KRvK.rtbw", "fetched", "fetched"]
    assert {name: (here / name).read_bytes() for name in content} == content
    assert fetch().stdout == ""
    (here / "KRvK.rtbw").unlink()
    (there / "KRvK.rtbw").write_bytes(b"another table")
    refused = fetch()
    assert refused.returncode == 1
    assert "does not agree with SHA256SUMS" in refused.stderr
    assert "not fetched: KRvK.rtbw" in refused.stderr
    assert not (here / "KRvK.rtbw").exists()


def test_tables_are_read_again_only_when_one_has_changed(tmp_path: pathlib.Path) -> None:
    """150 GB are not read at every run; a table that has changed since is, and is told."""
    shell = "ansible.builtin.shell"
    (script,) = [one[shell]["cmd"] for one in tasks("syzygy") if shell in one]
    table, stamp = tmp_path / "KQvK.rtbw", (1_000_000_000, 1_000_000_000)

    def hold(content: str, at: tuple[int, int]) -> subprocess.CompletedProcess[str]:
        table.write_text(content)
        os.utime(table, at)
        return subprocess.run(
            ["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    digest = hashlib.sha256(b"whole").hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  KQvK.rtbw\n")
    first, second, unread = hold("whole", stamp), hold("whole", stamp), hold("WHOLE", stamp)
    assert [one.returncode for one in (first, second, unread)] == [0, 0, 0], first.stderr
    assert ["unchanged" in one.stdout for one in (first, second, unread)] == [False, True, True]
    for _ in range(2):
        damaged = hold("WHOLE", (1_000_000_001, 1_000_000_001))
        assert damaged.returncode != 0
        assert "KQvK.rtbw: FAILED" in damaged.stdout


def test_only_what_is_in_the_archive_is_installed(two: Hosts) -> None:
    """A module that a new version does not have any more is not installed with it."""
    script = two.place / "install-farm"
    two.archive('ls "$2" > "$4/seen"; echo installed')
    path = playbooks.ANSIBLE / "roles/program/tasks/install.yml"
    told = {"program_prefix": str(two.prefix), "program_wheels": "", "program_prepare": False}
    told |= {"program_archive": str(two.place / "farm.tar.gz")}
    play = {"name": "Install", "hosts": "hall-host", "gather_facts": False}
    play |= {"tasks": yaml.safe_load(path.read_text()), "vars": told}
    (two.place / "play.yml").write_text(yaml.dump([play]))
    for module in ("gone.py", "kept.py"):
        with tarfile.open(two.place / "farm.tar.gz", "w:gz") as archive:
            archive.add(script, "deploy/install/install-farm")
            archive.add(__file__, module)
        playbooks.play(two.place / "hosts.yml", two.place / "play.yml")
        assert (two.prefix / "seen").read_text().split() == ["deploy", module]


READ = re.compile(r'"/\.\./\.\./(deploy/[^"{]+)", rstrip=false\)(.*?)\}\}', re.DOTALL)


def test_what_containers_call_by_name_is_replaced_on_hosts() -> None:
    """Each text that a role replaces is the file's; Grafana's source is not copied as it is."""
    found = set()
    for role in playbooks.ROLES:
        tasks = (playbooks.ANSIBLE / "roles" / role / "tasks").glob("*.yml")
        text = "".join(path.read_text() for path in tasks)
        assert "src: provisioning/," not in text
        for file, words in READ.findall(text):
            found.add(file)
            replaced = re.findall(r'replace\("([^"]+)"', words)
            assert replaced, file
            shared = (hosts.ROOT / file).read_text()
            assert all(one in shared for one in replaced), (file, replaced)
    assert found == {
        "deploy/nginx/farm.conf",
        "deploy/grafana/provisioning/datasources/prometheus.yml",
    }
