"""The exporter: what it says without Redis, of damage, and of a clock's use."""

from __future__ import annotations

import pathlib

import driver
import harness
import prometheus_client
import pytest
import redis

from orchestrator import contract
from orchestrator.commands import common, launch
from orchestrator.ledger import keys, kibitz_memory, memory, store, vitals
from orchestrator.metrics import collector, families, halls, hosts, kibitzers, seasons
from orchestrator.season import abandoning, events, files
from worker_cpu import settings
from worker_cpu import vitals as sampling


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
    """While Redis is away the exporter answers: up 0, an error counted, its own version."""
    with store.connect(f"unix://{tmp_path}/nobody") as ledger:
        made = collector.FarmCollector(ledger, tmp_path, tmp_path)
        scrape(made)
        found = scrape(made)
    assert found["farm_redis_up{}"] == 0
    assert found["farm_scrape_errors_total{}"] == 2
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
    assert not any("season=bad" in name for name in found)
    assert found["farm_scrape_errors_total{}"] == 1
    assert found["farm_redis_up{}"] == 1


def test_a_season_that_goes_on_is_told_however_many_came_after_it(
    farm: harness.Farm, tmp_path: pathlib.Path
) -> None:
    """Nobody is woken for a season without samples: those that are over make room, not it."""
    names = [f"s{number}" for number in range(collector.SHOWN + 2)]
    rows = [harness.scripted(farm.life, strength) for strength in (1, 2)]
    loaded = files.load(harness.league(tmp_path / "s.toml", rows))
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


def test_an_abandoned_season_is_a_status_of_its_own(tmp_path: pathlib.Path) -> None:
    """No other status holds then, it has ended, and nothing more is expected of it."""
    ledger = memory.MemoryLedger()
    entries = [harness.scripted(tmp_path / "life", strength) for strength in (1, 2)]
    loaded = files.load(harness.league(tmp_path / "s.toml", entries))
    launch.start(ledger, loaded, "s", harness.HALL, "00", "test")
    watched = seasons.Watched("s")
    watched.apply(*ledger.read("s"))
    ledger.append("s", 1, abandoning.abandon(watched.state, "ann", "a mistake"), "ann")
    watched.apply(*ledger.read("s", 1))
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
        watched, sheet = seasons.Watched("s"), families.Sheet()
        for entry in season.journal:
            watched.apply(entry)
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
    hosts.write(sheet, told, hosts.GONE_MS)
    shown = [sample.labels["host"] for one in sheet.families() for sample in one.samples]
    assert set(shown) == {"new"}


def test_a_desk_tells_of_its_kibitzer_and_of_its_words() -> None:
    """Both desks are shown; words are counted of the game in flight, where somebody sits."""
    desks = kibitz_memory.MemoryKibitzing(memory.MemoryLedger())
    desks.take_desk(1, "host")
    for attempt in ("a", "a", "b"):
        desks.tell(1, attempt, 3, "{}")
    sheet = families.Sheet()
    kibitzers.write(sheet, desks, {"hall-1": "a"})
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
    kibitzers.write(sheet, desks, {"hall-1": "a"})
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
