"""The exporter: what it says without Redis, of damage, and of a clock's use."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import pathlib
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator

import driver
import harness
import prometheus_client
import pytest
import redis
from twins import kibitz_memory, memory

from orchestrator import contract
from orchestrator.commands import common, launch
from orchestrator.common import errors, version
from orchestrator.contract import bells
from orchestrator.ledger import (
    address,
    api,
    embedded_redis,
    keys,
    lane_store,
    services,
    store,
    vitals,
    worker_tokens,
)
from orchestrator.ledger import lanes as ledger_lanes
from orchestrator.metrics import collector, families, halls, health, seasons
from orchestrator.notify import notices, outbox
from orchestrator.season.file import load
from orchestrator.season.fold import abandoning, events
from orchestrator.serve import loop
from worker_cpu import settings
from worker_cpu.host import heartbeat as sampling


@pytest.fixture
def farm(tmp_path: pathlib.Path) -> harness.Farm:
    """Return a farm whose processes are not started."""
    return harness.Farm(tmp_path)


def scrape(made: collector.FarmCollector) -> dict[str, float]:
    """Return the samples by their text without labels' order."""
    told = prometheus_client.CollectorRegistry()
    told.register(made)
    found = {}
    for family in told.collect():
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}"] = sample.value
    return found


def test_a_scrape_without_redis_says_so_and_raises_nothing(tmp_path: pathlib.Path) -> None:
    """While Redis is away the exporter answers: up 0, no error of the ledger, its own version."""
    with store.connect(f"unix://{tmp_path}/nobody") as ledger:
        made = collector.FarmCollector(ledger, tmp_path, tmp_path)
        scrape(made)
        found = scrape(made)
    assert found["farm_redis_up{}"] == 0
    assert found["farm_scrape_errors_total{}"] == 0
    assert any(name.startswith("farm_build_info") for name in found)
    assert not any(name.startswith("farm_season") for name in found)


def test_a_damaged_journal_hides_no_other(farm: harness.Farm, tmp_path: pathlib.Path) -> None:
    """Of two seasons the one that cannot be folded is left out and counted once."""
    farm.redis.start()
    try:
        with store.connect(farm.redis.url) as farm.ledger:
            entries = [harness.scripted(farm.life, strength) for strength in (1, 2)]
            farm.launch(harness.league(tmp_path / "s.toml", entries), "good")
            with redis.Redis.from_url(farm.redis.url) as client:
                client.rpush(keys.Keys().seasons, "bad")
                fields = {"v": 1, "kind": "nonsense", "at": 1, "by": "x", "data": "{}", "token": ""}
                client.xadd(keys.Keys().journal("bad"), fields, id="1-0")  # type: ignore[arg-type]
            made = collector.FarmCollector(farm.ledger, tmp_path, tmp_path)
            scrape(made)
            found = scrape(made)
    finally:
        farm.redis.stop()
    assert found["farm_season_journal_entries{season=good}"] >= 1
    bad = [name for name in found if "season=bad" in name]
    assert bad == ["farm_season_out_of_service{reason=damaged,season=bad}"]
    assert found["farm_scrape_errors_total{}"] == 1
    assert found["farm_redis_up{}"] == 1


def test_a_season_that_goes_on_is_told_however_many_came_after_it(
    farm: harness.Farm, tmp_path: pathlib.Path
) -> None:
    """Nobody is woken for a season without samples: those that are over make room, not it."""
    names = [f"s{number}" for number in range(collector.SHOWN + 2)]
    rows = [harness.scripted(farm.life, strength) for strength in (1, 2)]
    loaded = load.load(harness.league(tmp_path / "s.toml", rows))
    farm.redis.start()
    try:
        with store.connect(farm.redis.url) as ledger:
            for name in names:
                launch.start(ledger, loaded, name, harness.HALL, "00", "test")
            for name in names[1:]:
                state = common.fold(ledger, name)
                ledger.append(name, state.seq, abandoning.abandon(state, "ann", "why"), "ann")
            found = scrape(collector.FarmCollector(ledger, tmp_path, tmp_path))
    finally:
        farm.redis.stop()
    shown = {name for name in names if f"farm_season_journal_entries{{season={name}}}" in found}
    assert shown == {names[0], *names[-collector.SHOWN :]}


@pytest.fixture
def ledger(farm: harness.Farm) -> Iterator[store.RedisLedger]:
    """Give the ledger of a running Redis, empty."""
    farm.redis.start()
    try:
        with store.connect(farm.redis.url) as made:
            yield made
    finally:
        farm.redis.stop()


READY = "farm_season_ready_since_timestamp_seconds"


def test_only_the_next_season_of_a_free_hall_waits(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Of three seasons in two halls: not the one whose hall plays another, nor one behind it."""
    rows = [harness.scripted(tmp_path / "life", strength) for strength in (1, 2)]
    loaded = load.load(harness.league(tmp_path / "s.toml", rows))
    for name, hall in (("one", harness.HALL), ("two", harness.HALL), ("three", "hall-2")):
        launch.start(ledger, loaded, name, hall, "00", "test")
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)

    def waits() -> dict[str, float]:
        harness.serve_once(ledger, tmp_path / "archive")
        return {name: value for name, value in scrape(made).items() if READY in name}

    at = common.fold(ledger, "one").at_ms
    before = waits()
    assert set(before) == {
        f"{READY}{{hall=hall-1,season=one}}",
        f"{READY}{{hall=hall-2,season=three}}",
    }
    assert before[f"{READY}{{hall=hall-1,season=one}}"] >= at / 1000
    taken = harness.claim("one", ledger.offered(harness.HALL)["one"], "a-1")
    claimed = ledger.claim(taken)
    assert isinstance(claimed, api.Claimed)
    assert set(waits()) == {f"{READY}{{hall=hall-2,season=three}}"}, "hall-1 plays season one"
    order = contract.GameOrder.decode(claimed.order)
    finished, record = harness.invented(order, taken, claimed.token)
    ledger.complete(harness.HALL, claimed.token, "one", finished, record)
    again = waits()[f"{READY}{{hall=hall-1,season=one}}"]
    assert again * 1000 >= ledger.read("one")[-1].at_ms - 1000
    launched = common.fold(ledger, "one")
    ledger.append("one", launched.seq, abandoning.abandon(launched, "ann", "why"), "ann")
    freed = waits()
    assert set(freed) == {
        f"{READY}{{hall=hall-1,season=two}}",
        f"{READY}{{hall=hall-2,season=three}}",
    }
    assert freed[f"{READY}{{hall=hall-1,season=two}}"] >= again - 1, "not since its launch"


def test_the_feeds_show_one_season_of_several_halls(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """The alert of stale feeds looks at the hall that the feeds show, whatever other halls do."""
    rows = [harness.scripted(tmp_path / "life", strength) for strength in (1, 2)]
    loaded = load.load(harness.league(tmp_path / "s.toml", rows))
    for name, hall in (("one", "hall-1"), ("two", "hall-2")):
        launch.start(ledger, loaded, name, hall, "00", "test")
    harness.serve_once(ledger, tmp_path / "archive")
    found = scrape(collector.FarmCollector(ledger, tmp_path, tmp_path))
    shown = [name for name in found if name.startswith("farm_feed_followed")]
    assert shown == ["farm_feed_followed{hall=hall-2,season=two}"]


def test_a_season_that_was_damaged_is_read_again_after_its_restore(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """It is out of service until then, whoever found it, and no scrape counts it twice."""
    rows = [harness.scripted(tmp_path / "life", strength) for strength in (1, 2)]
    loaded = load.load(harness.league(tmp_path / "s.toml", rows))
    launch.start(ledger, loaded, "s", harness.HALL, "00", "test")
    whole = ledger.read("s")
    journal = keys.Keys().journal("s")
    bad = {"v": 1, "kind": "nonsense", "at": 1, "by": "x", "data": "{}", "token": "", "op": ""}
    ledger.server.client.delete(journal)
    ledger.server.client.xadd(journal, bad, id="1-0")  # type: ignore[arg-type]
    report = services.Serve(at_ms=1, damaged=("s", "t"), stopped=("u",))
    ledger.set_alarms({"s": "why", "u": "why", "v": "why"})
    ledger.set_service(services.SERVE, report.encode())
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)
    out = "farm_season_out_of_service"
    for _ in range(2):
        found = scrape(made)
        assert [name for name in found if name.startswith(out)] == [
            f"{out}{{reason=damaged,season=s}}",
            f"{out}{{reason=damaged,season=t}}",
            f"{out}{{reason=disk,season=u}}",
            f"{out}{{reason=lost,season=v}}",
        ]
        assert found["farm_scrape_errors_total{}"] == 1
    ledger.server.client.delete(journal)
    ledger.raise_epoch(7)
    ledger.load("s", whole)
    ledger.set_service(services.SERVE, services.Serve(at_ms=1).encode())
    ledger.set_alarms({})
    found = scrape(made)
    assert not [name for name in found if name.startswith(out)]
    assert found["farm_season_journal_entries{season=s}"] == len(whole)


def test_a_host_whose_hall_was_drained_is_silent_on_purpose(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Drained is a hall when its game is over, and its host; its worker's next start ends it."""
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)

    def drained() -> dict[str, float]:
        return {
            name.partition("{")[2].rstrip("}"): value
            for name, value in scrape(made).items()
            if "_drained{" in name
        }

    for host in ("one", "two"):
        ledger.open_hall(f"hall-{host}", host, f"{host}/first")
        seen = vitals.Vitals(host=host, at_ms=ledger.now_ms(), hall=f"hall-{host}")
        ledger.set_vitals(host, seen.encode())
    assert set(drained().values()) == {0}
    effect = api.Drain("hall-two", "two/first", "upgrade")
    ledger.append(api.FARM, 0, [contract.Draft("drained", {})], "ann", [effect])
    assert drained() == {"hall=hall-one": 0, "host=one": 0, "hall=hall-two": 1, "host=two": 1}
    ledger.open_hall("hall-two", "two", "two/second")
    assert set(drained().values()) == {0}


def test_half_a_slot_hides_no_other_hall(ledger: store.RedisLedger, tmp_path: pathlib.Path) -> None:
    """What Redis has lost in part is counted as unreadable; Redis itself is not down."""
    for hall in ("hall-1", "hall-2"):
        ledger.open_hall(hall, "host", "worker")
    ledger.server.client.hset(keys.Keys().slot("hall-1"), "attempt", "a")
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)
    scrape(made)
    found = scrape(made)
    assert found["farm_redis_up{}"] == 1
    assert found["farm_scrape_errors_total{}"] == 2
    assert found["farm_hall_playing{hall=hall-2}"] == 0


def test_the_ledgers_size_is_that_of_all_its_journals(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """A Redis that was emptied has a size as well, and that is how it is seen."""
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)
    for name in ("one", "two"):
        ledger.append(name, 0, [contract.Draft("x", {}), contract.Draft("y", {})], "test")
    ledger.append(api.FARM, 0, [contract.Draft("z", {})], "test")
    assert scrape(made)["farm_ledger_entries{epoch=1}"] == 5
    ledger.server.client.flushall()
    assert scrape(made)["farm_ledger_entries{epoch=1}"] == 0


def test_serve_tells_what_only_it_may_see(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Its heartbeat is shown, and with it a setting that INFO does not tell, while it is fresh."""
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)
    found = scrape(made)
    assert found["farm_serve_last_beat_timestamp_seconds{}"] == 0
    assert found["farm_redis_durable{}"] == 1
    ledger.server.client.config_set("appendfsync", "everysec")
    _serve_until(ledger, tmp_path, lambda: scrape(made)["farm_redis_durable{}"] == 0)
    found = scrape(made)
    assert abs(found["farm_serve_last_beat_timestamp_seconds{}"] - ledger.now_ms() / 1000) < 60
    assert any(name.startswith("farm_serve_info") and version.build() in name for name in found)
    ledger.server.client.config_set("appendfsync", "always")
    _serve_until(ledger, tmp_path, lambda: scrape(made)["farm_redis_durable{}"] == 1)
    stale = services.Serve(at_ms=ledger.now_ms() - health.FRESH_MS, unsafe=("x",))
    ledger.set_service(services.SERVE, stale.encode())
    assert scrape(made)["farm_redis_durable{}"] == 1, "an old report says nothing of now"


def _serve_until(ledger: store.RedisLedger, root: pathlib.Path, fact: Callable[[], bool]) -> None:
    stop = threading.Event()
    server = loop.Server(ledger, root / "archive", lambda _: None)
    thread = threading.Thread(target=server.run, args=(stop,))
    thread.start()
    try:
        harness.wait(fact, "what serve reports")
    finally:
        stop.set()
        thread.join()


def test_a_backup_tells_what_came_of_it(farm: harness.Farm, tmp_path: pathlib.Path) -> None:
    """Never, well, failed on its way off the host, and refused: each is told to the exporter."""
    target, program = tmp_path / "copy", tmp_path / "offsite"
    program.write_text('#!/bin/sh\ncp -r "$1" "$1.away"\n')
    program.chmod(0o755)
    farm.redis.start()
    try:
        env = {"FARM_REDIS_URL": farm.redis.url, "FARM_DATA": str(tmp_path)}
        with store.connect(farm.redis.url) as ledger:
            made = collector.FarmCollector(ledger, tmp_path, tmp_path)
            assert scrape(made)["farm_backup_last_success_timestamp_seconds{}"] == 0
            ledger.append(api.FARM, 0, [contract.Draft("z", {})], "test")
            harness.farm("backup", "--to", str(target), env=env)
            first = scrape(made)
            assert first["farm_backup_last_success_timestamp_seconds{}"] > 0
            assert first["farm_backup_last_offsite_timestamp_seconds{}"] == 0
            assert (first["farm_backup_failed{}"], first["farm_backup_journal_entries{}"]) == (0, 1)
            words = ("backup", "--to", str(target), "--offsite", str(program))
            harness.farm(*words, env=env)
            away = scrape(made)["farm_backup_last_offsite_timestamp_seconds{}"]
            assert away > 0
            assert (tmp_path / "copy.away" / "farm" / "journal.jsonl").exists()
            program.write_text("#!/bin/sh\nexit 7\n")
            assert "ended with 7" in harness.farm(*words, code=errors.HostError.exit_code, env=env)
            failed = scrape(made)
            assert failed["farm_backup_failed{}"] == 1
            assert failed["farm_backup_last_offsite_timestamp_seconds{}"] == away
            before = failed["farm_backup_last_success_timestamp_seconds{}"]
            ledger.server.client.flushall()
            harness.farm(*words, code=errors.RefusedError.exit_code, env=env)
            lost = scrape(made)
            assert lost["farm_backup_failed{}"] == 1
            assert lost["farm_backup_last_success_timestamp_seconds{}"] in {0, before}
    finally:
        farm.redis.stop()


def test_notices_that_nobody_got_are_told(tmp_path: pathlib.Path) -> None:
    """Without an outbox nothing; with one, who waits, who failed, and when it was at work."""
    path = tmp_path / "outbox.json"
    sheet = families.Sheet()
    health.notices(sheet, path)
    assert list(sheet.families()) == []
    box = outbox.Outbox(path)
    box.add(
        notices.Notice(f"n{number}", notices.Kind.HOST_AWAY, 1, f"silent:{number}", {})
        for number in (1, 2)
    )
    box.waiting["n1"] = box.waiting["n1"].model_copy(update={"failed": {"mail": "refused"}})
    box.save()
    os.utime(path, (1, 1))
    box.save()  # nothing has changed, and it is touched
    health.notices(sheet, path)
    told = {one.name: one.samples[0].value for one in sheet.families()}
    assert told.pop("farm_notify_last_beat_timestamp_seconds") > 1
    assert told == {"farm_notices_waiting": 2, "farm_notices_failed": 1}


def test_lanes_tell_of_their_games(ledger: store.RedisLedger, tmp_path: pathlib.Path) -> None:
    """Lanes, their queues, a lease that ran out, games that a lane of the hall may play; tokens."""
    known = worker_tokens.RedisTokens(ledger.server)
    for name, changed in (("a", {}), ("b", {"condemned": "why"}), ("c", {"revoked_ms": 1})):
        token, _ = worker_tokens.make(name, ("*",), 0, 1 << 50, "test", 1)
        known.write(dataclasses.replace(token, **changed))  # type: ignore[arg-type]
    tests = lane_store.RedisLanes(ledger.server)
    for name, cpus in (("a", frozenset({1})), ("b", frozenset({2}))):
        tests.open_lane(ledger_lanes.Lane("hall-1", name, "host", cpus, 100))
    ledger.open_hall("hall-1", "host", "worker")
    ledger.open_hall("hall-2", "host-2", "worker")
    tests.open_match(ledger_lanes.Match("m", 10, "{}"))
    tests.open_match(ledger_lanes.Match("n", 5, "{}", halls=("hall-2",)))
    tests.open_match(ledger_lanes.Match("big", 5, "{}", needs=ledger_lanes.Needs(threads=64)))
    claim = ledger_lanes.LaneClaim("hall-1", "a", "attempt", "w-a", "host", 1)
    assert isinstance(tests.claim_lane(claim), ledger_lanes.Dealt)
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)
    overdue = "farm_lane_lease_overdue_seconds{hall=hall-1,lane=a}"
    harness.wait(lambda: scrape(made)[overdue] > 0, "a lease that ran out")
    found = scrape(made)
    assert found["farm_lane_playing{hall=hall-1,lane=a}"] == 1
    assert found["farm_lane_playing{hall=hall-1,lane=b}"] == 0
    assert found["farm_lane_lease_overdue_seconds{hall=hall-1,lane=b}"] == 0
    assert found["farm_hall_test_games_waiting{hall=hall-1}"] == 9
    assert "farm_hall_test_games_waiting{hall=hall-2}" not in found
    for state in ("valid", "condemned", "revoked"):
        assert found[f"farm_worker_tokens{{state={state}}}"] == 1
    assert sum(name.startswith("farm_queue_length") for name in found) == 4


def test_dropped_messages_are_counted_by_queues_that_there_are(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Queues of halls count from 0 on; a name that somebody made up is no label."""
    ledger.open_hall("hall-1", "host", "worker")
    made = collector.FarmCollector(ledger, tmp_path, tmp_path)
    assert _dropped(scrape(made)) == {"farm.play.hall-1": 0, "other": 0}
    client = ledger.server.client
    names = (bells.queue("hall-1"), bells.box_queue("box"), "/0.celery.pidbox", "x" * 1000, b"\xff")
    for name in names:
        client.hincrby(bells.DROPPED, name, 2)  # type: ignore[arg-type]
    assert _dropped(scrape(made)) == {"farm.play.hall-1": 2, "other": 8}
    client.hset(bells.DROPPED, "x", "9" * 5_000)
    assert _dropped(scrape(made))["farm.play.hall-1"] == 2
    for count in (b"many", b"", b"\xff"):
        client.hset(bells.DROPPED, "x", count)  # type: ignore[arg-type]
        found = scrape(made)
        assert not _dropped(found)
        assert found["farm_redis_up{}"] == 1
        assert found["farm_hall_playing{hall=hall-1}"] == 0
    assert found["farm_scrape_errors_total{}"] == 3


def _dropped(found: dict[str, float]) -> dict[str, float]:
    head = "farm_messages_dropped_total{queue="
    return {k.removeprefix(head)[:-1]: v for k, v in found.items() if k.startswith(head)}


def test_a_queue_of_another_type_hides_nothing_else(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Redis is not down because somebody has written a string where a hall's rings wait."""
    for number in (1, 2):
        ledger.open_hall(f"hall-{number}", "host", "worker")
    for name in (bells.KEYS + bells.queue("hall-1"), bells.DROPPED):
        ledger.server.client.set(name, "x")
    found = scrape(collector.FarmCollector(ledger, tmp_path, tmp_path))
    assert found["farm_redis_up{}"] == 1
    assert found["farm_queue_length{queue=farm.play.hall-2}"] == 0
    assert "farm_queue_length{queue=farm.play.hall-1}" not in found
    assert found["farm_scrape_errors_total{}"] == 2


def test_the_certificates_end_is_told(tmp_path: pathlib.Path) -> None:
    """Of a Redis that speaks TLS, as openssl wrote it; of another one nothing."""
    stem = tmp_path / "redis"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
            ),
            *("-nodes", "-days", "3", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", f"{stem}.key", "-out", f"{stem}.crt"),
        ],
        check=True,
        capture_output=True,
    )
    port = harness.free_port()
    words = [
        *(
            embedded_redis.find_server()[0],
            "--port",
            "0",
            "--tls-port",
            str(port),
            "--bind",
            "127.0.0.1",
        ),
        *("--tls-auth-clients", "no", "--tls-ca-cert-file", f"{stem}.crt", "--save", ""),
        *("--tls-cert-file", f"{stem}.crt", "--tls-key-file", f"{stem}.key"),
    ]
    name = "farm_redis_certificate_expiry_timestamp_seconds{}"
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as server:
        try:
            url = address.url(
                {"FARM_REDIS_URL": f"rediss://127.0.0.1:{port}", "FARM_REDIS_CA": f"{stem}.crt"}
            )
            with store.connect(url) as ledger:
                made = collector.FarmCollector(ledger, tmp_path, tmp_path)
                harness.wait(lambda: scrape(made)["farm_redis_up{}"] == 1, "a server with TLS")
                ends = scrape(made)[name]
        finally:
            server.terminate()
    assert 2 * 86_400 < ends - time.time() < 3 * 86_400 + 60


def test_builds_differ_where_files_do(tmp_path: pathlib.Path) -> None:
    """The same version twice is one build only where names and bytes are the same."""
    root = pathlib.Path(version.__file__).parents[2]
    for number in (1, 2):
        for package in version.PACKAGES:
            shutil.copytree(root / package, tmp_path / str(number) / package)
    one, two = (tmp_path / name for name in ("1", "2"))
    (two / "orchestrator" / "left.pyc").write_bytes(b"compiled")
    assert version.checksum(one) == version.checksum(two) == version.build().partition("+")[2]
    (two / "worker_cpu" / "__init__.py").write_text("# another checkout\n")
    assert version.checksum(one) != version.checksum(two)


def test_an_abandoned_season_is_a_status_of_its_own(tmp_path: pathlib.Path) -> None:
    """No other status holds then, it has ended, and nothing more is expected of it."""
    ledger = memory.MemoryLedger()
    entries = [harness.scripted(tmp_path / "life", strength) for strength in (1, 2)]
    loaded = load.load(harness.league(tmp_path / "s.toml", entries))
    launch.start(ledger, loaded, "s", harness.HALL, "00", "test")
    watched = seasons.Watched("s")
    watched.follow(functools.partial(ledger.read, "s"))
    ledger.append("s", 1, abandoning.abandon(watched.state, "ann", "a mistake"), "ann")
    watched.follow(functools.partial(ledger.read, "s"))
    sheet = families.Sheet()
    seasons.write(sheet, watched, watched.state.at_ms + 3_600_000, 2)
    told = {
        (one.name, sample.labels.get("status", "")): sample.value
        for one in sheet.families()
        for sample in one.samples
    }
    holding = [status for status in seasons.STATUSES if told["farm_season_status", status]]
    assert holding == ["abandoned"]
    assert told["farm_season_end_timestamp_seconds", ""] == watched.state.at_ms / 1000


@pytest.mark.parametrize(("rule", "left"), [("", []), ("disqualify_after = 3", [2, 1])])
def test_crashes_left_follow_the_events_rule(
    tmp_path: pathlib.Path, rule: str, left: list[int]
) -> None:
    """Of engines that have crashed and are in; nobody is told of where nobody is disqualified."""

    def crash(game: events.Game) -> driver.Verdict:
        """Invent a world in which the first engine always crashes, and no other one."""
        return "0-1" if game.white == "e1" else "1-0", contract.Ending.DISCONNECT

    text = driver.season_text(2, 3).replace('id = "league"', f'id = "league"\n{rule}')
    season = driver.Driver.launched(driver.load(tmp_path, text), crash)
    told = []
    for _ in range(4):
        season.settle()
        watched, sheet = seasons.Watched("test"), families.Sheet()
        watched.follow(lambda after, season=season: season.journal[after:])  # type: ignore[misc]
        seasons.write(sheet, watched, season.now_ms, 0)
        shown = [one for one in sheet.families() if one.name == "farm_engine_crashes_left"]
        told += [(s.labels["engine"], s.value) for one in shown for s in one.samples]
        season.play_one()
    assert told == [("e1", value) for value in left]


def test_counters_of_a_clock_count_own_moves() -> None:
    """Of 10 plies behind a book of 3, White made 3 and Black 4; each adds its increment."""
    assert seasons.own_moves(3, 10, 0) == 3
    assert seasons.own_moves(3, 10, 1) == 4
    control = contract.TimeControl(base_ms=60_000, increment_ms=1_000)
    assert seasons.given(control, 3) == 63_000_000_000


@pytest.mark.parametrize(
    ("score", "pawns"),
    [
        (contract.Score(cp=-150), -1.5),
        (contract.Score(mate=3), 100.0),
        (contract.Score(mate=-1), -100.0),
        (contract.Score(), None),
    ],
)
def test_evals_are_pawns_and_mates_are_bounded(score: contract.Score, pawns: float | None) -> None:
    """A mate is drawn at the edge of the scale, on its side; no score is no sample."""
    assert halls.pawns(score) == pawns


def test_a_host_that_was_silent_for_a_week_is_no_more() -> None:
    """Metrics of hosts end when they are gone, so that labels stay bounded."""
    told = {"old": vitals.Vitals(host="old", at_ms=0), "new": vitals.Vitals(host="new", at_ms=1)}
    sheet = families.Sheet()
    for name, seen in told.items():
        health.host(sheet, name, seen, health.GONE_MS)
    shown = [sample.labels["host"] for one in sheet.families() for sample in one.samples]
    assert set(shown) == {"new"}


def test_a_host_with_a_number_beyond_all_bounds_hides_no_other(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """What a worker reports is JSON, whose integers have no end; a sample is a float."""
    sane = vitals.Vitals(host="b", at_ms=ledger.now_ms(), spooled=3).encode()
    absurd = json.dumps(json.loads(sane) | {"host": "a", "spooled": 10**400})
    ledger.set_vitals("a", absurd)
    ledger.set_vitals("b", sane)
    found = scrape(collector.FarmCollector(ledger, tmp_path, tmp_path))
    assert found["farm_redis_up{}"] == 1
    assert found["farm_host_spooled_games{host=b}"] == 3
    assert not [sample for sample in found if "host=a" in sample], "it is no heartbeat"


def test_a_desk_tells_of_its_kibitzer_and_of_its_words() -> None:
    """Both desks are shown; words are counted of the game in flight, where somebody sits."""
    desks = kibitz_memory.MemoryKibitzing(memory.MemoryLedger())
    desks.take_desk(1, "host")
    for attempt in ("a", "a", "b"):
        desks.tell(1, attempt, 3, "{}")
    sheet = families.Sheet()
    halls.write_kibitzers(sheet, desks, {"hall-1": "a"})
    told = {
        one.name: {tuple(sample.labels.items()): sample.value for sample in one.samples}
        for one in sheet.families()
    }
    assert told == {
        "farm_kibitzer_seated": {(("desk", "0"),): 0, (("desk", "1"),): 1},
        "farm_kibitzer_words": {(("hall", "hall-1"), ("desk", "1")): 2},
    }
    desks.leave_desk(1, "host")
    sheet = families.Sheet()
    halls.write_kibitzers(sheet, desks, {"hall-1": "a"})
    (left,) = sheet.families()
    assert left.name == "farm_kibitzer_seated"
    assert [one.labels for one in left.samples] == [{"desk": "0"}], "ended on purpose: not missed"


def test_a_sheet_knows_its_labels() -> None:
    """A label that is not the metric's, or one that is missing, is a mistake of ours."""
    sheet = families.Sheet()
    with pytest.raises(KeyError):
        sheet.set("farm_redis_up", 1, host="x")
    with pytest.raises(KeyError):
        sheet.set("farm_hall_playing", 1)


def test_a_sample_reads_the_host(tmp_path: pathlib.Path) -> None:
    """Governor, frequency, heat and throttles come from the sysfs tree that is named."""
    cpu = tmp_path / "sys/devices/system/cpu/cpu0"
    for name, text in (
        ("cpufreq/scaling_governor", "powersave"),
        ("cpufreq/scaling_cur_freq", "2000000"),
        ("thermal_throttle/core_throttle_count", "7"),
    ):
        (cpu / name).parent.mkdir(parents=True, exist_ok=True)
        (cpu / name).write_text(f"{text}\n")
    sensor = tmp_path / "sys/class/hwmon/hwmon0/temp1_input"
    sensor.parent.mkdir(parents=True)
    sensor.write_text("61500\n")
    env = {"FARM_REDIS_URL": "redis://x", "FARM_DATA": str(tmp_path), "FARM_HOST": "cpu"}
    sampler = sampling.Sampler(settings.from_environment(env), tmp_path / "sys")
    seen: list[vitals.Vitals] = []

    def measured() -> bool:  # the kernel counts processor time in ticks: one has to pass
        seen.append(sampler.sample(len(seen)))
        return seen[-1].foreign_cpu_ratio is not None

    harness.wait(measured, "a share of foreign load")
    told = seen[-1]
    assert (told.governor, told.frequency_hertz) == ("powersave", 2e9)
    assert (told.temperature_celsius, told.throttles) == (61.5, 7)
    assert told.quiet is False
    assert told.memory_total_bytes is not None
    assert told.foreign_cpu_ratio is not None
    assert 0 <= told.foreign_cpu_ratio <= 1
    assert vitals.Vitals.decode(told.encode()) == told
