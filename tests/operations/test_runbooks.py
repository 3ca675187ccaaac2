"""Runbooks, followed literally on a small farm: their commands end their alert.

Each alert's own query is asked of a real Prometheus that scrapes a real exporter; the commands
are those of the page, with the names of this farm in place of its capital letters.
"""

from __future__ import annotations

import dataclasses
import pathlib
import re
import shlex
import shutil
from collections.abc import Callable, Iterator

import harness
import pytest
import watched_run as run
import yaml

from orchestrator import contract
from orchestrator.ledger import api, services, vitals
from orchestrator.season.fold import entries

RUNBOOKS = run.ROOT / "docs" / "runbooks"
SEASON = "s"


def _rules() -> dict[str, str]:
    told = yaml.safe_load((run.PROMETHEUS / "rules" / "alerts.yml").read_text())
    return {rule["alert"]: rule["expr"] for group in told["groups"] for rule in group["rules"]}


RULES = _rules()


@dataclasses.dataclass
class Scene:
    """A farm without a worker, the exporter and Prometheus beside it."""

    farm: harness.Farm
    prometheus: run.Prometheus
    root: pathlib.Path

    def fires(self, alert: str) -> bool:
        """Say whether the alert's query finds anything; how long it has is left out."""
        return bool(self.prometheus.query(RULES[alert]))

    def await_alert(self, alert: str, *, fires: bool) -> None:
        """Wait until the alert's query finds something, or nothing any more."""
        what = f"{alert} to be {'on' if fires else 'over'}"
        harness.wait(lambda: self.fires(alert) is fires, what, 60)

    def follow(self, alert: str) -> None:
        """Run the commands of the alert's runbook, as they stand there, as those it names."""
        commands = steps(alert)
        assert commands, f"{alert}: no command to run"
        for line in commands:
            words = [self._named(word) for word in shlex.split(line)]
            if words[0] == "redis-cli":
                done = self.farm.redis.cli("admin", *words[1:])
            else:
                assert words[0] == "farm", line
                user = "orchestrator" if words[1] == "backup" else harness.OPERATOR  # as the unit
                done = harness.run_farm(self.farm.environment(user), *words[1:])
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    def _named(self, word: str) -> str:
        names = {"SEASON": SEASON, "HALL": harness.HALL, "HOST": "gone"}
        return names.get(word, word.replace("/var/backups/farm", str(self.root / "backup")))


def steps(alert: str) -> list[str]:
    """Return the commands under "What to do" of a runbook."""
    page = (RUNBOOKS / f"{alert}.md").read_text()
    found = re.search(r"\*\*What to do\.\*\*(.*?)\*\*When it ends", page, re.DOTALL)
    assert found is not None, alert
    blocks: list[str] = re.findall(r"```sh\n(.*?)```", found[1], re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Give a farm with one season, whose worker is not started."""
    for program in ("prometheus", "redis-cli"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed (scripts/system-packages.txt)")
    root = tmp_path_factory.mktemp("farm")
    with (
        harness.running(root) as farm,
        run.exporting(farm) as port,
        run.gpu_exporters() as gpu,
        run.scraping(tmp_path_factory.mktemp("prometheus"), port, gpu) as prometheus,
    ):
        farm.worker.stop(30)
        rows = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(farm.root / "s.toml", rows), SEASON)
        yield Scene(farm, prometheus, root)


def pause(scene: Scene) -> None:
    """Pause the season."""
    scene.farm.operate("pause", "--reason", "test")


def hold_season(scene: Scene) -> None:
    """Hold the season as the farm does."""
    ledger = scene.farm.ledger
    held = contract.Draft.of(entries.HELD, entries.Held(reason="three attempts"))
    effect = api.Hold(SEASON, "held", "three attempts")
    while isinstance(
        ledger.append(SEASON, ledger.last(SEASON), [held], "serve", [effect]), api.Stale
    ):
        pass


def hold_hall(scene: Scene) -> None:
    """Hold the hall as a worker on a sick host does."""
    ledger = scene.farm.ledger
    effect = api.Hold(f"hall:{harness.HALL}", "sick", "the house's engine failed")
    told = contract.Draft("x", {})
    ledger.append(api.FARM, ledger.last(api.FARM), [told], "w", [effect])


def silent_host(scene: Scene) -> None:
    """Let a host be known that is no more."""
    ledger = scene.farm.ledger
    told = vitals.Vitals(host="gone", at_ms=ledger.now_ms() - 120_000)
    ledger.set_vitals("gone", told.encode())


def unsafe_redis(scene: Scene) -> None:
    """Let Redis acknowledge what is not on disk."""
    client = scene.farm.ledger.server.client
    client.config_set("appendfsync", "everysec")
    client.config_set("maxmemory-policy", "allkeys-lru")


def nothing(_: Scene) -> None:
    """Leave the farm as it is: it has no backup."""


def old_backup(scene: Scene) -> None:
    """Let the last complete backup be of yesterday."""
    ledger = scene.farm.ledger
    at_ms = ledger.now_ms() - 86_400_000
    report = services.Backup(at_ms=at_ms, complete_ms=at_ms)
    ledger.set_service(services.BACKUP, report.encode())


def failed_backup(scene: Scene) -> None:
    """Let the last backup fail on its way off the host."""
    words = ("backup", "--to", str(scene.root / "backup"), "--offsite", "/bin/false")
    done = harness.run_farm(scene.farm.serve.environment, *words)
    assert done.returncode != 0


CASES: dict[str, Callable[[Scene], None]] = {
    "FarmSeasonPaused": pause,
    "FarmSeasonHeld": hold_season,
    "FarmHallHeld": hold_hall,
    "FarmHostSilent": silent_host,
    "FarmRedisNotDurable": unsafe_redis,
    "FarmBackupMissing": nothing,
    "FarmBackupOld": old_backup,
    "FarmBackupFailed": failed_backup,
}


@pytest.mark.parametrize("alert", CASES)
def test_the_runbooks_commands_end_the_alert(scene: Scene, alert: str) -> None:
    """The alert's query finds the fault, and nothing after the page was followed."""
    CASES[alert](scene)
    scene.await_alert(alert, fires=True)
    scene.follow(alert)
    scene.await_alert(alert, fires=False)


def test_lost_facts_are_seen_and_their_runbook_brings_them_back(scene: Scene) -> None:
    """Redis is emptied: the alert is on, the backup is refused, the restore ends both."""
    farm = scene.farm
    scene.await_alert("FarmLedgerShrunk", fires=False)
    before = farm.ledger.read(SEASON)
    harness.wait(lambda: farm.ledger.mirrored(SEASON) == len(before), "the mirror")
    farm.ledger.server.client.flushall()
    scene.await_alert("FarmLedgerShrunk", fires=True)
    words = ("backup", "--to", str(scene.root / "backup"))
    assert "Redis has lost facts" in harness.run_farm(farm.serve.environment, *words).stderr
    farm.serve.kill()
    scene.follow("FarmLedgerShrunk")
    farm.serve.start()
    scene.await_alert("FarmLedgerShrunk", fires=False)
    assert farm.ledger.read(SEASON)[: len(before)] == before


def test_serve_that_has_ended_is_missed(scene: Scene) -> None:
    """Its old report raises the alert; started again, its next report ends it."""
    farm = scene.farm
    farm.serve.kill()
    old = services.Serve(at_ms=farm.ledger.now_ms() - 61_000)
    farm.ledger.set_service(services.SERVE, old.encode())
    scene.await_alert("FarmServeSilent", fires=True)
    farm.serve.start()
    scene.await_alert("FarmServeSilent", fires=False)


def test_commands_of_runbooks_are_tried() -> None:
    """Each runbook that gives commands of the farm to run as they stand is followed here."""
    elsewhere = {"FarmRedisRewriteFailing", "FarmGameNotStarted"}  # a disk that fails; as HallHeld
    told = {path.stem for path in RUNBOOKS.glob("Farm*.md") if steps(path.stem)}
    assert told == {*CASES, "FarmLedgerShrunk", *elsewhere}
