"""What is wrong with one season, one hall or the farm's own journal is wrong with no other.

Keys of Redis by another hand, as a hall that was taken over could write them. Whoever reads them
goes on with the rest: `serve`, exporter, notices, page, and the commands that are needed then.
"""

from __future__ import annotations

import json
import pathlib
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import harness
import prometheus_client
import pytest
import structlog.testing

from orchestrator import contract
from orchestrator.broadcast import projector
from orchestrator.broadcast.content import documents
from orchestrator.broadcast.feeds import files
from orchestrator.commands import launch
from orchestrator.ledger import api, embedded_redis, keys, store
from orchestrator.metrics import collector
from orchestrator.notify import outbox, runner, settings
from orchestrator.ops.recovery import backup
from orchestrator.season.file import load
from orchestrator.serve import loop

GOOD = "good"
KEYS = keys.Keys()
Harm: TypeAlias = Callable[[Any], object]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Keep the log: to draw a traceback for a terminal costs more than a test."""
    with structlog.testing.capture_logs():
        yield


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded_redis.EmbeddedRedis]:
    """Run one real server for all tests of this file."""
    directory = tmp_path_factory.mktemp("redis")
    with embedded_redis.EmbeddedRedis(directory) as running:
        yield running
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> load.Loaded:
    """Read the season's file."""
    root = tmp_path_factory.mktemp("season")
    engines = [harness.scripted(root / "life", strength) for strength in range(2)]
    return load.load(harness.league(root / "season.toml", engines))


@pytest.fixture
def ledger(
    server: embedded_redis.EmbeddedRedis, loaded: load.Loaded
) -> Iterator[store.RedisLedger]:
    """Give a ledger with one launched season."""
    with store.connect(server.url) as opened:
        opened.server.client.flushall()
        launch.start(opened, loaded, GOOD, harness.HALL, "00", "test")
        yield opened


def another_name(client: Any) -> None:
    """Let the good season's journal stand under another name, too."""
    for entry_id, fields in client.xrange(KEYS.journal(GOOD)):
        client.xadd(KEYS.journal("copy"), fields, id=entry_id)
    client.rpush(KEYS.seasons, "copy")


def no_stream(client: Any) -> None:
    """Launch a season whose journal is none."""
    client.rpush(KEYS.seasons, "bad")
    client.hset(KEYS.journal("bad"), "a", "b")


def unread(client: Any) -> None:
    """Launch a season whose last entry nobody has written."""
    client.rpush(KEYS.seasons, "bad")
    client.xadd(KEYS.journal("bad"), {"x": "y"}, id="1-0")


def names_of_bytes(client: Any) -> None:
    """Name a season, a hall, a host and a resting season by what is no text."""
    client.rpush(KEYS.seasons, b"\xff\xfe")
    client.sadd(KEYS.halls, b"\xff", "../x", "a b")
    client.hset(KEYS.vitals, b"\xff", b"\xff")
    for name, told in (("skewed", '"clock_skew_seconds":1e999'), ("old", f'"cpus":{10**400}')):
        client.hset(KEYS.vitals, name, f'{{"host":"{name}","at_ms":1,{told}}}')
    client.hset(KEYS.vitals, "late", f'{{"host":"late","at_ms":{10**400}}}')
    client.hset(KEYS.checked, b"over \xff", b"\xff")


def false_rests(client: Any) -> None:
    """Say of seasons that they rest, in other words than ours."""
    for name, last in (("x over y", "1"), ("over z", "many"), ("over q", "1" * 5000)):
        client.hset(KEYS.checked, name, last)


def hall_without_offers(client: Any) -> None:
    """Let a hall's offers be none; a season that is suspended is withdrawn from all halls."""
    client.sadd(KEYS.halls, "a-sick-one")
    client.set(KEYS.offers("a-sick-one"), "x")
    no_stream(client)


def overdue_slot(client: Any) -> None:
    """Let a hall be held for a season that is none, by a lease that has run out."""
    client.sadd(KEYS.halls, "a-sick-one")
    lease = dict.fromkeys(keys.SLOT_FIELDS, "x")
    times = {"token": "1.1", "ttl": "1", "deadline": "1", "ply": "0", "last_move": "0"}
    client.hset(KEYS.slot("a-sick-one"), mapping=lease | times | {"suspect": "", "season": "none"})


def farm_journal(client: Any) -> None:
    """Write what nobody can read into the farm's own journal."""
    (last,) = client.xrevrange(KEYS.journal(api.FARM), count=1)
    seq = int(last[0].split(b"-")[0]) + 1
    nested = "[" * 900 + "]" * 900
    fields = dict(last[1]) | {b"data": f'{{"x":{nested},"y":"\\u0041"}}'.encode()}
    client.xadd(KEYS.journal(api.FARM), fields, id=f"{seq}-0")


HARMS: list[Harm] = [
    *(another_name, no_stream, unread, names_of_bytes, false_rests),
    *(hall_without_offers, overdue_slot, farm_journal),
]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: str(harm.__name__))
def test_serve_plays_the_others(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, harm: Harm
) -> None:
    """No pass fails; the good season's game is offered, its hall rung, its lease looked at."""
    harm(ledger.server.client)
    rung: list[str] = []
    server = loop.Server(ledger, tmp_path / "archive", rung.append)
    for _ in range(4):
        server.once()
    server.close()
    assert ledger.offered(harness.HALL).keys() == {GOOD}
    assert harness.HALL in rung
    assert GOOD not in ledger.alarms()
    assert harm is not another_name or "launches good, not copy" in ledger.alarms()["copy"]


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: str(harm.__name__))
def test_the_exporter_shows_the_others(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, harm: Harm
) -> None:
    """Redis is up, and the good season has its samples."""
    harm(ledger.server.client)
    registry = prometheus_client.CollectorRegistry()
    registry.register(collector.FarmCollector(ledger, tmp_path, tmp_path))
    text = prometheus_client.generate_latest(registry).decode()
    assert "\nfarm_redis_up 1.0\n" in text
    assert 'farm_season_journal_entries{season="good"} 1.0' in text


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: str(harm.__name__))
def test_notices_are_told_of_the_others(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, harm: Harm
) -> None:
    """The good season is read to its end."""
    harm(ledger.server.client)
    box = outbox.Outbox(tmp_path / "outbox.json")
    hook = {"kind": "webhook", "name": "hook", "url": "http://127.0.0.1:9/nobody"}
    made = runner.Runner(ledger, settings.Settings.model_validate({"channel": [hook]}), box)
    for _ in range(2):
        made.once()
    assert box.read[GOOD] == ledger.last(GOOD)


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: str(harm.__name__))
def test_the_page_shows_the_others(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, harm: Harm
) -> None:
    """The good season stands in the list, and is the one that is looked at."""
    harm(ledger.server.client)
    shelf = documents.Library()
    directory = files.Directory(tmp_path / "feeds")
    made = projector.Projector(ledger, tmp_path / "archive", shelf, directory, lambda _: None)
    for _ in range(2):
        made.look()
    assert shelf.shown == GOOD
    assert shelf.get(f"seasons/{GOOD}") is not None


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: str(harm.__name__))
def test_the_commands_show_the_others(
    ledger: store.RedisLedger,
    server: embedded_redis.EmbeddedRedis,
    tmp_path: pathlib.Path,
    harm: Harm,
) -> None:
    """Status, a command that names no season, and the check of everything."""
    harm(ledger.server.client)
    damaged = harm in (another_name, no_stream, unread, names_of_bytes, hall_without_offers)
    environment = {"FARM_REDIS_URL": server.url, "FARM_DATA": str(tmp_path)}
    shown = json.loads(harness.farm("status", "--json", code=3 * damaged, env=environment))
    assert [season["season"] for season in shown["seasons"]] == [GOOD]
    assert bool(shown["alarms"]) == damaged
    assert shown["clocks"] == {}
    assert GOOD in harness.farm("season", "log", env=environment)
    harness.farm("host", "list", env=environment)
    harness.farm("fsck", code=3, env=environment)  # a season without its mirror, at least
    rated = harness.farm("ratings", "--live", "--json", env=environment)
    assert len(json.loads(rated[rated.index("{") :])["ratings"]) == 2  # the good season's engines
    report = harness.farm("doctor", "--only", "journal", "--json", code=3, env=environment)
    assert f'"name": "{GOOD}"' in report


def test_the_status_says_what_may_lose_facts(
    ledger: store.RedisLedger, server: embedded_redis.EmbeddedRedis, tmp_path: pathlib.Path
) -> None:
    """Redis was set otherwise while the farm runs: the next report of `serve` says so."""
    client = ledger.server.client
    client.config_set("maxmemory-policy", "allkeys-lru")
    try:
        stop = threading.Event()
        ring = stop.set
        loop.Server(ledger, tmp_path / "archive", lambda _: ring()).run(stop)
    finally:
        client.config_set("maxmemory-policy", "noeviction")
    shown = harness.farm("status", env={"FARM_REDIS_URL": server.url, "FARM_DATA": str(tmp_path)})
    assert "may lose what it has acknowledged: maxmemory-policy is allkeys-lru" in shown


def test_a_copy_is_written_inside_its_folder(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """What a season or an attempt calls itself is no path."""
    client, target = ledger.server.client, tmp_path / "a" / "b" / "copy"
    out = "../../../out"
    for entry_id, fields in client.xrange(KEYS.journal(GOOD)):
        client.xadd(KEYS.journal(out), fields, id=entry_id)
    client.rpush(KEYS.seasons, out)
    end = {"game": "league.1", "attempt": f"../../{out}", "cause": "x"}
    for game, attempt in (("league.1", f"../../{out}"), (f"../{out}", "a")):
        draft = contract.Draft("attempt_ended", end | {"game": game, "attempt": attempt})
        ledger.append(GOOD, ledger.last(GOOD), [draft], "test")
        client.xadd(KEYS.plies(attempt), {"p": "{}"}, id="0-1")
    before = set(tmp_path.rglob("*"))
    made = backup.export(ledger, target)
    assert made.journals[GOOD] == ledger.last(GOOD)
    new = set(tmp_path.rglob("*")) - before
    assert all(path.is_relative_to(tmp_path / "a") for path in new)
    assert not list((tmp_path / "a").rglob("*out*"))
