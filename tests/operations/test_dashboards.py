"""Dashboards: generated, linted, and each panel's numbers against what really happened."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import harness
import pytest
import watched_run as run

from orchestrator import contract
from orchestrator.metrics import families
from orchestrator.season.fold import orders
from orchestrator.season.fold import state as season_state

GRAFANA = run.ROOT / "deploy" / "grafana"
BOARDS = sorted((GRAFANA / "dashboards").glob("*.json"))
INTERVAL = {"$__rate_interval": "5m", "$__range": "5m"}


def panels(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    """Yield the panels of a dashboard's file, rows left out."""
    for panel in json.loads(path.read_text())["panels"]:
        if panel["type"] != "row":
            yield panel


def expressions(panel: dict[str, Any]) -> list[str]:
    """Return a panel's queries with every variable at "all"."""
    found = []
    for target in panel["targets"]:
        text = target["expr"]
        for name, value in INTERVAL.items():
            text = text.replace(name, value)
        found.append(re.sub(r"\$(job|instance|season|hall|host)\b", ".+", text))
    return found


def test_the_committed_dashboards_are_what_the_script_writes(tmp_path: pathlib.Path) -> None:
    """Generating them again changes nothing."""
    done = subprocess.run(
        [sys.executable, GRAFANA / "dashboards.py", tmp_path], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        path.name: path.read_text() for path in BOARDS
    }, "`python deploy/grafana/dashboards.py` writes them again"
    assert len(BOARDS) == 5


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: path.stem)
def test_dashboards_keep_the_linters_rules(path: pathlib.Path) -> None:
    """Templated data source, job and instance; units, titles, descriptions; nothing hidden."""
    board = json.loads(path.read_text())
    names = [one["name"] for one in board["templating"]["list"]]
    assert names[:3] == ["datasource", "job", "instance"]
    queries = [one for one in board["templating"]["list"] if one["type"] == "query"]
    assert all(one["refresh"] == 2 for one in queries), "refreshed when the time range changes"
    assert all(one["allValue"] == ".+" for one in queries), (
        "a series without the label is not meant"
    )
    assert all(one["label"] for one in board["templating"]["list"])
    assert board["uid"] == path.stem
    assert not board["editable"]
    assert board["graphTooltip"] == 1
    assert "id" not in board or board["id"] is None
    numbers = [panel["id"] for panel in panels(path)]
    assert len(numbers) == len(set(numbers))
    for panel in panels(path):
        told = panel["title"]
        assert panel["title"], path
        assert panel["description"].endswith((".", ").")), told
        assert panel["fieldConfig"]["defaults"]["unit"], told
        assert panel["datasource"]["uid"] == "${datasource}", told
        for target in panel["targets"]:
            _lint(told, target["expr"])


def _lint(told: str, expr: str) -> None:
    assert "or vector(" not in expr, told
    for window in re.findall(r"rate\([^[]*\[([^]]*)\]", expr):
        assert window == "$__rate_interval", told
    for metric in re.findall(r"\bfarm_\w+|\bgpu:\w+:\w+", expr):
        matchers = f'{metric}{{job=~"$job",instance=~"$instance"'
        assert expr.count(f"{metric}{{") == expr.count(matchers) > 0, f"{told}: {metric}"
    for bare in re.findall(r"(\w+_bucket|farm_move_\w+_count)\{", expr):
        ranged = bare.startswith("farm_game_duration")  # a count over the journal, not a rate
        assert ranged or "rate(" in expr, f"{told}: {bare}"


def test_every_metric_is_shown() -> None:
    """What the exporter tells stands in a panel, or is recorded under a name that does."""
    shown = "".join(path.read_text() for path in BOARDS)
    shown += (run.PROMETHEUS / "rules" / "recording.yml").read_text()
    unshown = [name for name in families.FAMILIES if not re.search(rf"\b{name}(_bucket)?\b", shown)]
    assert not unshown, (
        f"no panel shows {', '.join(unshown)}: add one in deploy/grafana/panels.py and run `python"
        " deploy/grafana/dashboards.py`, or record it in deploy/prometheus/rules/recording.yml"
    )


@dataclasses.dataclass(frozen=True)
class Truth:
    """What happened, from the journal and the ledger; ``now`` is the farm's second."""

    state: season_state.SeasonState
    plies: list[contract.PlyRecord]
    order: contract.GameOrder
    last_seq: int
    now: float


Samples = list[dict[str, Any]]
Seen = tuple[run.Prometheus, Truth, str]


def numbers(samples: Samples) -> list[float]:
    """Return the values of samples."""
    return [float(one["value"][1]) for one in samples]


def by(samples: Samples, *labels: str) -> dict[Any, float]:
    """Return the values of samples by some labels."""
    return {
        tuple(one["metric"].get(label, "") for label in labels): float(one["value"][1])
        for one in samples
    }


def near(value: float, expected: float, margin: float) -> bool:
    """Say whether a value is what is expected, to a margin."""
    return math.isfinite(value) and abs(value - expected) <= margin


def finished(truth: Truth) -> list[contract.GameFinished]:
    """Return the finished games."""
    return [game.finished for game in truth.state.games.values() if game.finished]


def engines(truth: Truth) -> set[str]:
    """Return the engines' ids."""
    return set(truth.state.engines)


def event_engine(value: float) -> Callable[[Samples, Truth], bool]:
    """Return a check that both engines have one value in both events."""

    def check(samples: Samples, truth: Truth) -> bool:
        names = {(event, engine) for event in truth.state.events for engine in engines(truth)}
        return by(samples, "event", "engine") == dict.fromkeys(names, value)

    return check


def only(*expected: float) -> Callable[[Samples, Truth], bool]:
    """Return a check that the values are exactly these."""
    return lambda samples, _: sorted(numbers(samples)) == sorted(expected)


def between(low: float, high: float) -> Callable[[Samples, Truth], bool]:
    """Return a check that there are values, all of them in a range."""
    return lambda samples, _: bool(samples) and all(low <= n <= high for n in numbers(samples))


def labelled(*wanted: tuple[str, ...], labels: tuple[str, ...]) -> Callable[[Samples, Truth], bool]:
    """Return a check of the labels of series that are 1."""
    return lambda samples, _: by(samples, *labels) == dict.fromkeys(wanted, 1.0)


def clocks(truth: Truth) -> dict[tuple[str], float]:
    """Return both clocks in seconds as they stood after the last ply."""
    last = truth.plies[-1]
    return {("white",): last.white_clock_ns / 1e9, ("black",): last.black_clock_ns / 1e9}


def durations(truth: Truth, event: str) -> list[float]:
    """Return how long the games of an event took."""
    games = [game for game in truth.state.games.values() if game.event == event]
    done = [game.finished for game in games if game.finished]
    return [(one.ended_ms - one.started_ms) / 1000 for one in done]


def points(truth: Truth) -> dict[tuple[str, str], float]:
    """Return the points of each engine in each event, from the tally."""
    return {
        (event.id, engine): score.half_points / 2
        for event in truth.state.events.values()
        for engine, score in event.tally.scores.items()
    }


def endings(truth: Truth) -> dict[tuple[str, ...], float]:
    """Return how many games ended how."""
    found: dict[tuple[str, ...], float] = {}
    for game in truth.state.games.values():
        if game.finished:
            key = (game.event, game.finished.result, game.finished.ending.value)
            found[key] = found.get(key, 0) + 1
    return found


def searched(truth: Truth, side: str) -> contract.PlyRecord:
    """Return the last ply of a side."""
    return next(ply for ply in reversed(truth.plies) if ply.side == side)


def gpus(farm: float, smi: float, dcgm: float) -> Callable[[Samples, Truth], bool]:
    """Return a check of what the three exporters' samples say."""
    wanted = {("farm", "GPU-cccc"): farm, ("nvidia_smi", "bbbb"): smi, ("dcgm", "GPU-aaaa"): dcgm}
    return lambda samples, _: by(samples, "source", "uuid") == wanted


MOVER = {"white": "black", "black": "white"}
# May have no data in the scene: no TLS, backup, notices, lanes or tokens, and maybe no sensors.
RARE = {
    *("Certificate ends in", "Age of the backup", "A backup takes", "Backup failed", "Notices"),
    *("Notices looked at", "Lanes at work", "Leases of lanes that ran out", "Test games that wait"),
    *("Out of service", "Next gate opens", "Waits for its hall", "Words of kibitzers", "Network"),
    *("Temperature", "Frequency", "Throttled", "Hash", "Plies until a rule"),
    "Remote workers' tokens",
}
PARTLY = {"Redis memory", "Ledger"}  # one of several queries: no limit, no backup
EXPECTED: dict[str, Callable[[Samples, Truth], bool]] = {
    "Holds": only(0),
    "Games expected": only(6),
    "Launched": lambda s, t: near(numbers(s)[0], t.state.launched_ms, 1),
    "Flagged engines": only(0),
    "Hosts away": only(0),
    "Seasons": labelled((run.SEASON, harness.HALL), labels=("season", "hall")),
    "Status of events": lambda s, _: set(by(s, "event", "status")) >= {("second", "running")},
    "Games expected in each event": lambda s, _: by(s, "event") == {("first",): 4, ("second",): 2},
    "Rewrite of the append-only file": between(0, 60),
    "Last rewrite": only(1),
    "Redis runs since": lambda s, t: between(t.now * 1e3 - 3600e3, t.now * 1e3 + 60e3)(s, t),
    "Last report of serve": between(-5, 120),
    "Epoch": only(1),
    "Ledger": lambda s, t: numbers(s)[0] > t.last_seq,
    "What serve is": only(1),
    "What the feeds show": labelled((run.SEASON, harness.HALL), labels=("season", "hall")),
    "Halls held": only(0),
    "Overdue leases": only(0),
    "Time is kept": between(0, 1),
    "Cores": between(1, 4096),
    "Quiet": between(0, 1),
    "Refused games": only(0),
    "Swap": between(0, 1e13),
    "Temperature": between(-50, 150),
    "Frequency": between(1e8, 1e10),
    "Throttled": between(0, 1e6),
    "Speed of the host": only(0.99),
    "Hash": between(0, 1),
    "Plies until a rule": between(0, 1000),
    "Network": between(0, 10),
    "Progress": only(4 / 6),
    "Games played": only(4),
    "Estimated end": lambda s, t: between(t.now * 1e3 - 60e3, t.now * 1e3 + 20_000e3)(s, t),
    "Open questions": only(0),
    "Status": labelled(("running",), labels=("status",)),
    "Interruptions": only(1),
    "Crashes": only(1),
    "Pauses": only(1),
    "Events": lambda s, _: by(s, "event") == {("first",): 1.0, ("second",): 0.0},
    "Estimated end of events": lambda s, t: near(
        by(s, "event")["first",], t.state.events["first"].ranked_ms or 0, 1
    ),
    "Standings": lambda s, t: by(s, "event", "engine") == points(t),
    "How games end": lambda s, t: by(s, "event", "result", "termination") == endings(t),
    "Interruptions by scenario": lambda s, _: (
        by(s, "event", "scenario") == {("first", "restarted"): 1.0}
    ),
    "Length of games": lambda s, t: between(min(durations(t, "first")) / 10, 600)(s, t),
    "Who plays": lambda s, t: (
        by(s, "event", "white", "black") == {("second", t.order.white.id, t.order.black.id): 1.0}
    ),
    "Ply": lambda s, t: numbers(s) == [t.plies[-1].ply],
    "Since the last move": between(0, 300),
    "Game time": lambda s, t: near(numbers(s)[0], t.now - t.state.running.started_ms / 1e3, 120),  # type: ignore[union-attr]
    "On the move": lambda s, t: by(s, "side") == {(MOVER[t.plies[-1].side],): 1.0},
    "Evaluations": lambda s, t: set(by(s, "side")) <= {("white",), ("black",)} and bool(s),
    "Clocks": lambda s, t: all(near(by(s, "side")[k], v, 0.002) for k, v in clocks(t).items()),
    "Depth": lambda s, t: bool(s) and set(numbers(s)) <= {float(p.depth or -1) for p in t.plies},
    "Speed": lambda s, t: bool(s) and set(numbers(s)) <= {float(p.nps or -1) for p in t.plies},
    "Overhead": between(0, 10),
    "Between the clocks": between(0, 10),
    "Time a move": between(0.01, 100),
    "Moves a minute": between(0.1, 3000),
    "Crashes by engine": lambda s, _: by(s, "event", "engine") == {("first", run.CRASHER): 1.0},
    "Crashes left": lambda s, _: by(s, "event", "engine") == {("first", run.CRASHER): 2.0},
    "Losses on time": event_engine(0.0),
    "Illegal moves": event_engine(0.0),
    "Out of their event": event_engine(0.0),
    "Use of time": between(0.00001, 0.5),
    "Games": lambda s, t: by(s, "engine") == {(engine,): 4.0 for engine in engines(t)},
    "Places": lambda s, t: (
        {k: v for k, v in by(s, "event", "engine").items() if k[0] == "first"}
        == {("first", row.engine): row.rank for row in t.state.events["first"].rows}
    ),
    "Known hosts": lambda s, _: set(by(s, "role")) == {("hall",), ("gpu",)},
    "Silent for": between(0, 300),
    "Drained": between(0, 0),
    "Use of cores": between(0, 1),
    "Foreign load": between(0, 1),
    "Memory available": between(1e8, 1e14),
    "Disk free": between(1e6, 1e16),
    "Clock offset": between(-10, 10),
    "Clocks against Redis": between(-10, 10),
    "Spooled games": between(0, 2),
    "GPU use": gpus(0.5, 0.42, 0.97),
    "GPU clock": gpus(1.2e9, 1.98e9, 1.41e9),
    "GPU temperature": gpus(48, 55, 61),
    "GPU power": gpus(100, 143.2, 287.5),
    "GPU memory": lambda s, t: gpus(2**30, 2**31, 2**32)(s, t) or numbers(s) == [40 << 30],
    "GPU slowed down": gpus(0, 1, 0),
    "Redis": only(1),
    "Durable": only(1),
    "Redis answers in": between(0, 5),
    "Redis memory": between(1e5, 1e10),
    "Append-only file": between(1e3, 1e10),
    "Clients": between(3, 200),
    "Delayed writes": only(0),
    "Lease age": between(0, float(harness.CALM["FARM_LEASE_SECONDS"])),
    "Queues": lambda s, _: set(by(s, "queue")) == {("farm.play.hall-1",)},
    "Dropped messages": only(0, 0),
    "Halls at work": only(1),
    "Mirror lag": only(0),
    "Journal": lambda s, t: numbers(s) == [t.state.seq],
    "Archive's disk": between(1e6, 1e16),
    "Age of the feeds": lambda s, _: near(by(s, "file")["live.json",], 1000, 300),
    "Kibitzers": lambda s, _: by(s, "desk") == {("0",): 0.0, ("1",): 0.0},
    "A scrape takes": between(0, 5),
    "Failed scrapes": only(0),
    "Versions": lambda s, _: numbers(s) == [1],
}


@pytest.fixture(scope="module")
def seen(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Seen]:
    """Play the scene under a real Prometheus; give it, the truth and the exporter's text."""
    if shutil.which("prometheus") is None:
        pytest.skip("Debian's prometheus is not installed (scripts/system-packages.txt)")
    root = tmp_path_factory.mktemp("farm")
    feeds = root / "feeds"
    feeds.mkdir()
    (feeds / "live.json").write_text("{}")
    old = time.time() - 800
    os.utime(feeds / "live.json", (old, old))
    scraped = tmp_path_factory.mktemp("prometheus")
    with (
        harness.running(root) as farm,
        run.exporting(farm) as port,
        run.gpu_exporters() as gpu,
        run.scraping(scraped, port, gpu) as prometheus,
    ):
        run.play(farm, lambda: prometheus.query("farm_game_ply > 0"))
        farm.ledger.set_vitals("gpu-box", run.gpu_host(farm.ledger.now_ms()).encode())
        with harness.frozen(harness.engines(farm)):
            yield prometheus, *settled(farm, prometheus, port)


def settled(farm: harness.Farm, prometheus: run.Prometheus, port: int) -> tuple[Truth, str]:
    """Return the truth once Prometheus has seen the last of it, and the exporter's text."""
    slot = farm.ledger.slot(harness.HALL)
    assert slot is not None
    state, now_ms = farm.state(run.SEASON), farm.ledger.now_ms()
    plies = [contract.PlyRecord.decode(text) for _, text in farm.ledger.plies(slot.attempt)]
    order = orders.game_order(state, slot.game)

    def caught_up() -> bool:
        since = f"(timestamp(farm_game_ply) > {now_ms / 1000 + 1})"
        rules = f"timestamp(gpu:util:ratio{{source='farm'}}) > {now_ms / 1000 + 1}"
        hosts = f"timestamp(farm_host_cpu_ratio) > {now_ms / 1000}"
        return all(prometheus.query(query) for query in (since, rules, hosts))

    run.wait_for(caught_up, 120)
    text = run.get(f"http://127.0.0.1:{port}/metrics")
    return Truth(state, plies, order, state.seq, now_ms / 1000), text


def test_every_panel_shows_what_happened(seen: Seen) -> None:
    """Each query of each panel has data, and the numbers are the journal's and the ledger's.

    A scrape that a busy machine has missed leaves a gap for its second: wrong is what stays so.
    """
    prometheus, truth, _ = seen
    asked = [
        (panel["title"], expr)
        for path in BOARDS
        for panel in panels(path)
        for expr in expressions(panel)
    ]
    new = {title for title, _ in asked} - {*EXPECTED, *RARE, *PARTLY}
    assert not new, f"what a panel has to show: a row in EXPECTED for {new}"
    wrong: dict[tuple[str, str], Samples] = {}

    def right() -> bool:
        found = {one: prometheus.query(one[1]) for one in wrong or asked}
        wrong.clear()
        wrong.update(
            (one, samples)
            for one, samples in found.items()
            if not (
                EXPECTED[one[0]](samples, truth) if samples else one[0] in RARE or one[0] in PARTLY
            )
        )
        return not wrong

    with contextlib.suppress(TimeoutError):
        run.wait_for(right, 20)
    assert not wrong, "\n".join(f"{name}: {expr}\n  {told}" for (name, expr), told in wrong.items())


def test_every_variable_lists_something(seen: Seen) -> None:
    """The variables' queries find labels in a running farm."""
    for path in BOARDS:
        for one in json.loads(path.read_text())["templating"]["list"]:
            if one["type"] == "query":
                found = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]["query"])
                assert found is not None, one["name"]
                series = re.sub(r"\$job", ".+", found[1])
                labels = [sample["metric"].get(found[2]) for sample in seen[0].query(series)]
                assert all(labels), one["name"]
                assert labels, one["name"]


def test_the_exposed_metrics_pass_promtools_lint(
    seen: Seen,
) -> None:
    """Names, types, help and units are as Prometheus' conventions want them."""
    promtool = shutil.which("promtool") or "promtool"
    done = subprocess.run(
        [promtool, "check", "metrics"], input=seen[2], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert "game_id" not in seen[2]
    games = [game for game in seen[1].state.games if f'"{game}"' in seen[2]]
    assert not games, "no label names a game"


def test_no_alert_of_a_healthy_part_fires(seen: Seen) -> None:
    """Of the critical alerts none is on while the farm plays."""
    firing = seen[0].query('ALERTS{alertstate="firing",severity="critical"}')
    assert firing == []
