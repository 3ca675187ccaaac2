"""The steps of the laboratory: what an operator or the world does, then a look at the farm.

Commands on hosts are those of the pages (``Desk.follow``); what the pages leave to the reader,
names, addresses and cores, is set here.
"""

from __future__ import annotations

import json
import pathlib
import re
from typing import Any

import desk
import host
import season

SITE = "site.yml -i inventory/production\n"
HALL = "farm-hall@hall-1.service"
SMALL = {  # what the page's "set cores" means on a machine of any size
    "hall_threads": 1,
    "hall_hash_mb": 16,
    "hall_margin_mb": 0,
    "hall_referee_cpus": "",
    "hall_engine_cpus": "",
    "base_housekeeping_cpus": "",
    "base_hall_cpus": "",
}


class Lab:
    """The hosts of a laboratory, the desk, and what an operator there sees of the farm."""

    def __init__(self, hosts: host.Hosts, log: pathlib.Path) -> None:
        """Begin with a desk and no host."""
        self.hosts = hosts
        self.control_name = "control"
        self.desk = desk.Desk(hosts, log)

    def __getitem__(self, name: str) -> host.Host:
        """Return a host by its name."""
        return self.hosts.up[name]

    @property
    def control(self) -> host.Host:
        """Return the host where Redis and the control side are now."""
        return self[self.control_name]

    def status(self) -> dict[str, Any]:
        """Return seasons and halls; empty while the farm does not answer."""
        return dict(self.desk.ask("status") or {})

    def hall(self, name: str = "hall-1") -> dict[str, Any]:
        """Return what the status says of a hall; empty if nothing."""
        return next((one for one in self.status().get("halls", []) if one["hall"] == name), {})

    def season(self, name: str) -> dict[str, Any]:
        """Return what the status says of a season; empty if nothing."""
        found = self.status().get("seasons", [])
        return next((one for one in found if one["season"] == name), {})

    def story(self) -> str:
        """Return what somebody who looks for a fault would read first."""
        told = [json.dumps(self.status(), indent=1)]
        for one in self.hosts.up.values():
            units = one.ask(
                "systemctl", "--no-legend", "--no-pager", "list-units", "--all", "farm-*"
            )
            told.append(
                f"-- {one.name}\n{units}\n{one.ask('systemctl', '--failed', '--no-legend')}"
            )
            units = ("farm-serve", "farm-hall@*", "farm-gpu", "farm-kibitz@*", "redis-server")
            told += [f"-- {one.name}: {unit}\n{one.journal(unit, 12)}" for unit in units]
        return "\n".join(told)

    def wait(self, condition: Any, what: str, seconds: float = host.PATIENCE) -> None:
        """Wait for a fact; fail with the farm's story."""
        host.wait(condition, what, seconds, self.story)


def check(fact: object, what: str, more: object = "") -> None:
    """Fail with words where something is not so."""
    if not fact:
        raise AssertionError(f"{what}\n{more}")


# -- hosts and what is installed on them ---------------------------------------------------


def the_page_makes_files(lab: Lab) -> None:
    """Make archive, users, notices and certificates: the page's first commands."""
    lab.desk.follow("operate-hosts", "make-source-archive", "farm acl")
    lab.desk.follow("operate-hosts", "make-certificates")
    for name in ("mail-password", "webhook-url", "webhook-secret"):
        (lab.desk.files / "notify" / name).write_text("http://127.0.0.1:9/\n")
    mode = lab.desk.files.joinpath("redis", "worker.password").stat().st_mode
    check(mode & 0o077 == 0, "others may read the passwords at the desk")


def names_are_set(lab: Lab, **groups: list[str]) -> None:
    """Name hosts, addresses and cores in the inventory."""
    everything = ("control", "halls", "gpu_boxes", "kibitzers", "monitoring")
    lab.desk.groups({group: groups.get(group, []) for group in everything})
    lab.desk.set("all", program_wheels="/srv/wheels")
    lab.desk.set("control", redis_bind=f"127.0.0.1 {_address(lab, groups['control'][0])}")
    lab.desk.set("halls", **SMALL, hall_boxes_src="", hall_lanes=[], syzygy_checksums_src="")
    watch = [_address(lab, name) for name in groups.get("monitoring", [])]
    lab.desk.set("all", watched_from=watch)
    lab.desk.set("monitoring", monitoring_alert_webhook=f"http://desk.{host.DOMAIN}:9999/")
    patient = lab.desk.files / "patient"
    patient.write_text(season.PATIENT)
    engine = {"id": "patient", "src": str(patient), "sha256": season.DIGEST, "name": "patient"}
    lab.desk.set("halls", engines_list=[engine])


def _address(lab: Lab, name: str) -> str:
    return lab.hosts.network.addresses[lab[name].full]


def bare_hosts_are_looked_at(lab: Lab) -> None:
    """Look before anything is done: the page's check mode, on hosts with nothing of the farm."""
    told = lab.desk.follow("operate-hosts", "site.yml", "--check --diff")
    check(told.total("failed") == 0, "something failed", told.tail())
    for one in lab.hosts.up.values():
        check(not one.ask("ls", "-d", "/opt/farm"), f"check mode has changed {one.name}")


def a_run_fails_in_the_middle(lab: Lab) -> None:
    """Let a file be missing that the control side wants after Redis: the run fails there."""
    kept = lab.desk.files / "notify.toml"
    away = kept.rename(kept.with_suffix(".away"))
    told = lab.desk.follow("operate-hosts", SITE, expect=2)
    away.rename(kept)
    counts = told.counts()
    check(counts[lab.control.full]["failed"] == 1, "the control host did not fail", told.tail())
    others = {name: one for name, one in counts.items() if name != lab.control.full}
    wrong = {name: one for name, one in others.items() if one["failed"] or one["ok"] < 20}
    check(not wrong, "hosts were left out because another one failed", (wrong, told.tail()))


def site_is_run(lab: Lab) -> None:
    """Make the hosts: the page's site.yml."""
    told = lab.desk.follow("operate-hosts", SITE)
    check(told.total("failed") == 0, "something failed", told.tail())
    lab.desk.as_operator("anna", lab.control.full)
    lab.wait(lambda: bool(lab.status()), "Redis to answer an operator at the desk, over TLS")


def nothing_is_left_to_do(lab: Lab) -> None:
    """Run site.yml again: nothing is changed, in check mode neither."""
    for words in (SITE, "--check --diff"):
        told = lab.desk.follow("operate-hosts", words)
        changed, failed = told.total("changed"), told.total("failed")
        check((changed, failed) == (0, 0), f"changed={changed}, failed={failed}", told.tail(20000))


def services_run(lab: Lab, *, restarts: bool = False) -> None:
    """Look at every service that roles enable: each is active, none has failed and come back."""
    for one in lab.hosts.up.values():
        failed = one.ask("systemctl", "--failed", "--no-legend", "--plain")
        check(not failed, f"{one.name} has failed units", failed)
        units = one.ask("systemctl", "list-unit-files", "--state=enabled", "--no-legend", "farm-*")
        wanted = [line.split()[0] for line in units.splitlines()]
        for unit in wanted:
            if one.ask("systemctl", "show", "-P", "Type", unit) == "oneshot":
                continue  # done when its program was
            lab.wait(lambda o=one, u=unit: o.active(u) == "active", f"{unit} on {one.name}")
            number = one.ask("systemctl", "show", "-P", "NRestarts", unit)
            check(
                restarts or number in {"0", ""},
                f"{unit} restarted {number} times",
                one.journal(unit),
            )


# -- play --------------------------------------------------------------------------------


def halls_get_engines(lab: Lab, *names: str) -> None:
    """Install Debian's engine in halls, as an operator may; it moves without delay."""
    for name in names:
        words = ("install", "-y", "-q", "--no-install-recommends", "stockfish")
        lab[name].run("apt-get", *words)
        pace(lab, 0, name)


def pace(lab: Lab, seconds: float, *names: str) -> None:
    """Set how long a move takes in the halls of these hosts."""
    for name in names:
        lab[name].write(f"{season.FOLDER}/pace", f"{seconds}\n")


def launched(
    lab: Lab, name: str, games: int, hall: str = "hall-1", box: str = "", *, paused: bool = False
) -> None:
    """Launch a match from the desk; its second engine sits on a GPU box where one is named."""
    path = lab.hosts.folder / f"{name}.toml"
    path.write_text(season.text(name, games, box))
    lab.desk.farm("launch", str(path), "--hall", hall, *(["--paused"] if paused else []))


def engines_are_tried(lab: Lab, name: str) -> None:
    """Try the engines of a paused match on the hall's host by the page; then let it play."""
    ours = {"cpu1.": f"{name}.", "preflight main": "preflight match"}
    lab.desk.follow("operate-hosts", "season preflight", named=ours)
    told = lab[name].run("sh", "-c", "cat /var/lib/farm/archive/match/preflight/match-*.json")
    findings = json.loads(told)["findings"]
    engines = [one["status"] for one in findings if one["area"] == "engine"]
    check(engines == ["ok", "ok"], "engines that did not start as in a game", told)
    (priority,) = (one for one in findings if one["name"] == "real-time priority")
    limits = f"grep 'realtime priority' /proc/$(systemctl show -P MainPID {HALL})/limits"
    allowed = int(lab[name].run("sh", "-c", limits).split()[3]) > 0  # not where the laboratory is
    check((priority["status"] == "ok") == allowed, "another priority than the hall's", priority)
    left = lab[name].ask("sh", "-c", "ls /var/lib/farm/*.password")
    check(not left, "a password is left behind", left)
    lab.desk.farm("resume")


def in_play(lab: Lab, hall: str = "hall-1", plies: int = 2) -> dict[str, Any]:
    """Wait until a game of the hall is well under way; return what the status says of it."""
    found: dict[str, Any] = {}

    def under_way() -> bool:
        for one in lab.status().get("seasons", []):
            check(one["hall"] != hall or one["status"] != "held", "held", one)
        found.clear()
        found.update(lab.hall(hall))
        return bool(found.get("ply", 0) >= plies)

    lab.wait(under_way, f"a game in {hall} to be under way")
    return found


def goes_on(lab: Lab, before: dict[str, Any], plies: int = 2) -> None:
    """Wait until the same attempt has more plies than before, or was played to its end."""

    def further() -> bool:
        now = lab.hall(before["hall"])
        if now.get("game") not in {before["game"], None}:
            ended = [one["game"] for one in lab.season(before["season"])["interruptions"]]
            check(before["game"] not in ended, f"{before['game']} was interrupted", (before, now))
            return True
        check(now.get("attempt") in {before["attempt"], None}, "another attempt", (before, now))
        return bool(now.get("ply", 0) >= before["ply"] + plies)

    lab.wait(further, f"{before['game']} in {before['hall']} to go on")


def over(lab: Lab, name: str, seconds: float = 600) -> None:
    """Wait until a season is finished."""

    def finished() -> bool:
        now = lab.season(name)
        check(now.get("status") != "held", f"{name} is held", now.get("reason"))
        return now.get("status") == "finished"

    lab.wait(finished, f"the end of {name}", seconds)


def sandboxed(lab: Lab, name: str) -> None:
    """Look at the hall's processes: the engines are bubblewrap's, in the unit's own group."""
    shown = lab[name].run("systemctl", "status", "--no-pager", "--full", "-n", "0", HALL)
    check(shown.count("bwrap") >= 2, "no two engines in bubblewrap below the hall's unit", shown)


def redis_is_restarted(lab: Lab) -> None:
    """Restart Redis in mid-game: no entry is lost, and the same game goes on."""
    _redis_goes_down(lab, "systemctl", "restart", "redis-server")


def redis_is_killed(lab: Lab) -> None:
    """Kill Redis in mid-game: no entry is lost, and the same game goes on."""
    _redis_goes_down(lab, "systemctl", "kill", "-s", "KILL", "redis-server")


def _redis_goes_down(lab: Lab, *words: str) -> None:
    before = in_play(lab)
    entries = lab.season(before["season"])["journal_entries"]
    born = _main(lab.control, "redis-server")
    lab.control.run(*words)
    lab.wait(
        lambda: _main(lab.control, "redis-server") not in {born, "0", ""},
        "another Redis process",
    )
    lab.wait(lambda: bool(lab.status()), "Redis to answer again")
    now = lab.season(before["season"]).get("journal_entries", 0)
    check(
        now >= entries,
        f"{entries} entries before, {now} after",
        lab.control.ask("tail", "-n", "20", "/var/log/redis/redis-server.log"),
    )
    goes_on(lab, before)


def redis_disk_is_lost(lab: Lab) -> None:
    """Lose Redis' disk in mid-game: the page's restore brings all back from backup and mirror."""
    before = in_play(lab)
    entries = lab.season(before["season"])["journal_entries"]
    lab.control.run("systemctl", "start", "farm-backup.service")
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    lab.desk.follow("restore", "appendonlydir.lost", "--dry-run")
    check(not lab.season(before["season"]), "Redis is not empty")
    told = lab.desk.follow("restore", "farm restore", "farm fsck")
    now = lab.season(before["season"]).get("journal_entries", 0)
    check(now >= entries, f"{entries} entries before, {now} after", told.tail())
    check(not lab.control.ask("ls", "/var/lib/farm/anna.password"), "a password is left there")
    in_play(lab)
    lab.desk.follow("operate-hosts", "farm notify list")


def the_copies_agree(lab: Lab, name: str) -> None:
    """Compare a finished season's journal in Redis with its mirror and archive: `farm fsck`."""
    entries = lab.season(name)["journal_entries"]
    path = f"/var/lib/farm/archive/{name}/journal.jsonl"
    lab.wait(
        lambda: lab.control.ask("sh", "-c", f"wc -l < {path}") == str(entries),
        f"all {entries} entries of {name} in the mirror",
    )


# -- what happens to hosts in mid-game -------------------------------------------------------


def the_hall_is_rebooted(lab: Lab, name: str) -> None:
    """Reboot a hall's host in mid-game: the game is finished first, then the next is played."""
    before = in_play(lab)
    pace(lab, 0.1, name)
    lab[name].reboot()
    pace(lab, 1, name)
    played = lab.season(before["season"])["interruptions"]
    check(not played, "the reboot has interrupted a game", played)
    after = in_play(lab, plies=2)
    check(after["game"] != before["game"], "the same game is played", (before, after))
    governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"
    check(lab[name].run("cat", governor).strip() == "performance", "a noisy host after its reboot")


def an_operator_is_added(lab: Lab) -> None:
    """Add an operator in mid-game: she can log in, Redis is not restarted, the game goes on."""
    before, born = in_play(lab), _main(lab.control, "redis-server")
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    lab.desk.follow("operate-hosts", "--operator boris", "rotate.yml")
    lab.desk.as_operator("boris", lab.control.full)
    check(lab.status(), "the new operator is refused")
    lab.desk.as_operator("anna", lab.control.full)
    check(_main(lab.control, "redis-server") == born, "Redis was restarted for a new operator")
    goes_on(lab, before)


def _main(one: host.Host, unit: str) -> str:
    return one.ask("systemctl", "show", "-P", "MainPID", unit)


def secrets_are_rotated(lab: Lab) -> None:
    """Rotate the worker's password and Redis' certificate in mid-game, by the page.

    The game goes on in the same attempt; the old password is refused at the end; nobody of the
    farm is left with it; what is asked over TLS shows the new certificate.
    """
    before, born = in_play(lab), _main(lab.control, "redis-server")
    old = lab.desk.files.joinpath("redis", "worker.password").read_text()
    shown = _certificate(lab)
    lab.desk.sh(f"cd {lab.desk.clone}")
    lab.desk.follow("rotate-secrets", "rotate.yml")
    new = lab.desk.files.joinpath("redis", "worker.password").read_text()
    check(new != old, "the page has not made a new password")
    check(_certificate(lab) != shown, "Redis shows the old certificate")
    check(_main(lab.control, "redis-server") == born, "Redis was restarted")
    goes_on(lab, before)
    services_run(lab, restarts=True)
    secret = lab.hosts.folder / "old.password"
    secret.write_text(old)
    as_worker = {"FARM_REDIS_USER": "worker", "FARM_REDIS_PASSWORD_FILE": str(secret)}
    lab.desk.environment |= as_worker
    check(not lab.status(), "the old password is still good")
    lab.desk.as_operator("anna", lab.control.full)
    nobody_keeps_an_old_password(lab)
    goes_on(lab, before)


def nobody_keeps_an_old_password(lab: Lab) -> None:
    """Cut all connections: whoever is of the farm comes back with a password that is good."""
    before, hosts = in_play(lab), lab.hosts.up.values()
    units = ("farm-serve", "farm-exporter", "farm-web", "farm-hall@hall-1")
    running = [(one, unit) for one in hosts for unit in units if one.active(unit) == "active"]
    _as_admin(lab, "ACL", "LOG", "RESET")
    _as_admin(lab, "CLIENT", "KILL", "TYPE", "normal")
    goes_on(lab, before)
    seen = f'farm_season_journal_entries{{season="{before["season"]}"}}'

    def back() -> bool:
        refused = _as_admin(lab, "ACL", "LOG")
        check("auth" not in refused.split(), "somebody came with a password that is dead", refused)
        return seen in _metrics(lab)

    lab.wait(back, "the exporter to read the ledger again")
    for one, unit in running:
        check(one.active(unit) == "active", f"{unit} on {one.name} has ended", one.journal(unit))


def _as_admin(lab: Lab, *words: str) -> str:
    password = lab.desk.files.joinpath("redis", "admin.password").read_text().strip()
    tls = ("--tls", "--cacert", "/etc/redis/ca.crt", "-h", lab.control.full)
    command = ("redis-cli", *tls, "--user", "admin", *words)
    return lab.control.run("env", f"REDISCLI_AUTH={password}", *command)


def _certificate(lab: Lab) -> str:
    command = f"openssl s_client -connect {lab.control.full}:6379 </dev/null 2>/dev/null"
    return lab.desk.sh(f"{command} | openssl x509 -noout -serial -fingerprint").text


# -- hosts that come and go ------------------------------------------------------------------


def a_hall_is_added(lab: Lab, name: str, hall: str) -> None:
    """Add a host with a hall of its own, by the page, while the first one plays."""
    before = in_play(lab)
    lab.hosts.add(name)
    lab.desk.set(lab["cpu1"].full, hall_name="hall-1")
    lab.desk.set(lab[name].full, hall_name=hall)
    lab.desk.groups({"halls": ["cpu1", name]})
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    lab.desk.follow("add-and-remove-halls", f"--limit {lab[name].full}")
    lab.wait(lambda: lab.hall(hall).get("worker"), f"{hall} to be open")
    halls_get_engines(lab, name)
    launched(lab, f"in-{hall}", 2, hall)
    in_play(lab, hall)
    goes_on(lab, before)
    over(lab, f"in-{hall}")


def a_hall_is_replaced(lab: Lab, name: str) -> None:
    """Lose a hall's host in mid-game, and make another one under its name, by the page.

    The game is judged or played again by the event's rules; the season goes on.
    """
    before = in_play(lab)
    lab.hosts.drop(name)
    lab.desk.farm("pause", "--season", before["season"], "--reason", "new host")
    lab.hosts.add(name)
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    lab.desk.follow("replace-a-host", "--limit halls")
    halls_get_engines(lab, name)
    pace(lab, 5, name)  # games enough are left for the steps that follow
    lab.desk.farm("resume", "--season", before["season"])
    in_play(lab)


def an_upgrade_fails_to_build(lab: Lab) -> None:
    """Upgrade to a version that cannot be built, in mid-game: nothing is changed, all play on."""
    before = in_play(lab)
    release = _releases(lab)
    broken = lab.desk.clone / "orchestrator" / "common" / "version.py"
    kept = broken.read_text()
    broken.write_text("raise RuntimeError('a version that cannot be imported')\n")
    lab.desk.sh(f"cd {lab.desk.clone}")
    with lab.desk.without_source(), lab.desk.beside("upgrade", "upgrade.yml") as ended:
        while (told := ended()) is None:
            drained = lab.hall().get("drained")
            check(not drained, "the hall is drained for a version that cannot be imported")
    broken.write_text(kept)
    check(told.code == 2, f"the upgrade ended with {told.code}", told.tail())
    check("cannot be imported" in told.text, "the upgrade does not say what is wrong", told.tail())
    check(_releases(lab) == release, "hosts have another release", (release, _releases(lab)))
    goes_on(lab, before)


def _releases(lab: Lab) -> dict[str, str]:
    told = {name: one.ask("readlink", "/opt/farm/current") for name, one in lab.hosts.up.items()}
    return {name: release for name, release in told.items() if release}


def an_upgrade_is_made(lab: Lab, *halls: str) -> None:
    """Upgrade while a game is played: it is waited for, and counts; then all run the new one."""
    before = in_play(lab)
    release = _releases(lab)
    (lab.desk.clone / "docs" / "new.md").write_text("# A page of the new version\n")
    lab.desk.sh(f"cd {lab.desk.clone}")
    with lab.desk.beside("upgrade", "upgrade.yml") as ended:

        def drained() -> bool:
            # A game may well be won while the new version is built: what counts is the last one.
            now = lab.hall()
            if not now.get("drained"):
                before.update(now if now.get("attempt") else {})
                return ended() is not None
            return True

        lab.wait(drained, "the hall to be drained", 1200)
        check(lab.hall().get("attempt") == before["attempt"], "the game was ended by the upgrade")
        pace(lab, 0.1, *halls)
        lab.wait(ended, "the upgrade's end", desk.PLAYBOOK)
        told = ended()
    check(told is not None and told.code == 0, "the upgrade has failed", told and told.tail())
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    after = _releases(lab)
    check(all(after[name] != release[name] for name in release), "an old release", (release, after))
    check(not lab.season(before["season"])["interruptions"], "a game was interrupted")
    pace(lab, 3, *halls)
    check(in_play(lab)["game"] != before["game"], "the same game again", before)


def the_way_back(lab: Lab) -> None:
    """Go back to the version of before, in the older version's folder: the same lines."""
    release = _releases(lab)
    (lab.desk.clone / "docs" / "new.md").unlink()
    pace(lab, 0.1, "cpu1")
    lab.desk.sh(f"cd {lab.desk.clone}")
    lab.desk.follow("upgrade", "upgrade.yml")
    pace(lab, 3, "cpu1")
    now = _releases(lab)
    check(all(now[name] != release[name] for name in release), "not gone back", (release, now))
    in_play(lab)


def what_is_removed_is_gone(lab: Lab, hall_host: str, hall: str) -> None:
    """Take a lane, a kibitzer and a hall out of the inventory: `remove.yml` removes all three."""
    lane, kibitzer = "farm-lane@hall-1.a.service", "farm-kibitz@0.service"
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    lab.desk.set("halls", hall_lanes=[{"name": "a", "cpus": "0-1"}])
    engine = {"desk": 0, "engine": "/usr/games/stockfish", "hash_mb": 16, "threads": 1}
    lab.desk.set("kibitzers", kibitzer_hall="hall-1", kibitzer_list=[engine])
    lab.desk.groups({"kibitzers": ["watch"]})
    halls_get_engines(lab, "watch")
    lab.desk.follow("operate-hosts", SITE)
    lab.wait(lambda: lab["cpu1"].active(lane) == "active", "the lane's worker")
    # A lane makes itself known only while no official game has its hall.
    lab.wait(lambda: f"{hall}.a" in _lanes(lab), "the idle hall's lane to be known")
    ready = "kibitzer.ready"
    lab.wait(lambda: ready in lab["watch"].journal(kibitzer), "the kibitzer to be ready")
    lab.desk.set("halls", hall_lanes=[])
    lab.desk.set("kibitzers", kibitzer_list=[])
    lab.desk.groups({"halls": ["cpu1"]})
    lab.desk.follow("add-and-remove-halls", "remove.yml")
    check(lab["cpu1"].active(lane) != "active", "the lane's worker still runs")
    check(not _lanes(lab), "the ledger still knows the lane")
    check(lab["watch"].active(kibitzer) != "active", "the kibitzer still runs")
    unit = f"farm-hall@{hall}.service"
    check(lab[hall_host].active(unit) != "active", "the hall's worker still runs")
    check(lab[hall_host].ask("systemctl", "is-enabled", unit) != "enabled", "it is still enabled")
    check(lab["cpu1"].active(HALL) == "active", "the other hall was stopped")


def _lanes(lab: Lab) -> list[str]:
    found = lab.desk.ask("lanes") or {}
    return [f"{lane['hall']}.{lane['lane']}" for lane in found.get("lanes", [])]


def a_gpu_box_is_added(lab: Lab, name: str, hall_host: str) -> None:
    """Add a box by the page, and play a match whose one engine sits there, behind its agent.

    The hall learns of boxes when it is started again: it is drained, its game is waited for.
    """
    waiting = _open_seasons(lab)
    lab.hosts.add(name)
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
    lab.desk.follow("operate-hosts", "ssh-keyscan")
    lab.desk.set("gpu_boxes", gpu_box_packages=[], gpu_box_cards=[], gpu_box_gpus="none")
    lab.desk.set("halls", hall_boxes_src="{{ inventory_dir }}/files/boxes")
    lab.desk.groups({"gpu_boxes": [name]})
    lab.desk.follow("operate-hosts", SITE)
    lab.wait(lambda: lab[name].active("farm-gpu.service") == "active", "the box's worker")
    for one in waiting:
        lab.desk.farm("pause", one, "--reason", "a match with a box")
    lab.desk.farm("drain", "hall-1", "--reason", "boxes")
    pace(lab, 0, hall_host)
    lab.wait(lambda: lab[hall_host].active(HALL) != "active", "the hall's worker to end")
    lab.desk.follow("add-and-remove-halls", "undrain.yml")
    launched(lab, "boxed", 2, box="gpu-1")
    over(lab, "boxed")
    for path in lab.control.run(
        "find", "/var/lib/farm/archive/boxed", "-name", "record.json"
    ).split():
        text = lab.control.run("cat", path)
        check('"gpu-1"' in text, "a record names no box", text[:2000])
    pace(lab, 3, hall_host)
    for one in waiting:
        lab.desk.farm("resume", one, "--reason", "the match with a box is over")
    in_play(lab)


def _open_seasons(lab: Lab) -> list[str]:
    return [one["season"] for one in lab.status()["seasons"] if one["status"] != "finished"]


def the_control_side_moves(lab: Lab, name: str, *halls: str) -> None:
    """Move Redis, the archive, serve and the page to a bare host, by the page: nothing is lost."""
    old, page = lab.control, "move-the-control-side"
    waiting = _open_seasons(lab)
    for one in waiting:
        lab.desk.farm("pause", one, "--reason", "the control side moves")
    pace(lab, 0, *halls)
    lab.wait(lambda: not lab.hall().get("game"), "the game to be played to its end")
    entries = {one["season"]: one["journal_entries"] for one in lab.status()["seasons"]}
    lab.desk.sh(f"cd {lab.desk.clone}")
    lab.desk.follow(page, "farm-backup.service")
    lab.hosts.add(name)
    lab.desk.groups({"control": [name]})
    lab.desk.set("control", redis_bind=f"127.0.0.1 {_address(lab, name)}")
    lab.desk.set("all", program_redis_url=f"rediss://{lab[name].full}:6379/0")
    lab.desk.follow(page, "make-certificates", "--limit control")
    lab.control_name = name
    lab.desk.follow(page, "farm restore")
    lab.desk.as_operator("anna", lab.control.full)
    now = {one["season"]: one["journal_entries"] for one in lab.status()["seasons"]}
    check(all(now.get(one, 0) >= number for one, number in entries.items()), "lost", (entries, now))
    lab.desk.follow(page, SITE)
    services_run(lab)
    pace(lab, 3, *halls)
    for one in waiting:
        lab.desk.farm("resume", one, "--reason", "it has moved")
    in_play(lab)
    check(not old.ask("pgrep", "-a", "redis-server|celery"), "the old side runs", old.name)


# -- what is watched ---------------------------------------------------------------------------


def _metrics(lab: Lab) -> str:
    url = "http://127.0.0.1:9464/metrics"
    ask = f"import urllib.request as r; print(r.urlopen({url!r}).read().decode())"
    return lab.control.ask("python3", "-c", ask)


def a_queued_season_alarms_nobody(lab: Lab) -> None:
    """Launch a season behind another one in its hall: it waits, and that is no fault."""
    before = in_play(lab)
    launched(lab, "queued", 2)
    lab.wait(lambda: 'farm_season_status{season="queued"' in _metrics(lab), "the queued season")
    for _ in range(2):  # the exporter's next look, too
        late = re.findall(r"^farm_season_ready_since.*$", _metrics(lab), re.MULTILINE)
        check(not late, "what waits behind another season is told as late", late)
        goes_on(lab, before, plies=1)


def a_lazy_redis_is_seen(lab: Lab) -> None:
    """Let Redis promise less than the farm needs: the metric says so, until it is put right."""
    for value, durable in (("everysec", "0.0"), ("always", "1.0")):
        told = _as_admin(lab, "CONFIG", "SET", "appendfsync", value)
        check("OK" in told, "Redis refuses", told)
        line = f"farm_redis_durable {durable}"
        lab.wait(lambda wanted=line: wanted in _metrics(lab), f"`{line}` with appendfsync {value}")


def celery_names_the_hall(lab: Lab, worker: str) -> None:
    """Ask Celery's own commands and Flower in mid-game: all name the worker that plays."""
    in_play(lab)
    lab.desk.sh(f"cd {lab.desk.clone}")
    for words in ("status", "inspect active"):
        told = lab.desk.sh(f"celery -A orchestrator {words} --timeout 20").text
        check(worker in told, f"`celery … {words}` does not name {worker}", told)
    check("farm.play" in told, "no ring is active while a game is played", told)
    flower = "celery -A orchestrator flower --address=127.0.0.1 --port=5555"
    told = lab.desk.sh(
        f"FLOWER_UNAUTHENTICATED_API=true {flower} > /dev/null 2>&1 & flower=$!\n"
        "trap 'kill $flower' EXIT\n"
        "for _ in $(seq 60); do\n"
        "  curl -sf 'http://127.0.0.1:5555/api/workers?refresh=true' && break || sleep 2\n"
        "done"
    ).text
    check(worker in told, f"Flower does not name {worker}", told)
    lab.desk.sh(f"cd {lab.desk.clone}/ansible")
