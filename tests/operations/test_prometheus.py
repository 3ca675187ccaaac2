"""Prometheus' configuration and rules: checked and tested by promtool itself."""

from __future__ import annotations

import functools
import pathlib
import re
import shutil
import subprocess
from typing import Any

import pytest
import watched_run
import yaml

from orchestrator.metrics import families


def _rules(name: str) -> list[dict[str, Any]]:
    told = yaml.safe_load((watched_run.PROMETHEUS / "rules" / f"{name}.yml").read_text())
    return [rule for group in told["groups"] for rule in group["rules"]]


RULES, RECORDING = _rules("alerts"), _rules("recording")
RUNBOOKS = watched_run.ROOT / "docs" / "runbooks"


def promtool(*words: str) -> str:
    """Run promtool in the rules' directory; fail with what it prints."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("Debian's prometheus is not installed (scripts/system-packages.txt)")
    done = subprocess.run(
        [program, *words], cwd=watched_run.PROMETHEUS, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_configuration_and_rules_are_valid() -> None:
    """``promtool check config`` and ``check rules`` find nothing."""
    promtool("check", "config", "prometheus.yml")
    assert "FAILED" not in promtool("check", "rules", "rules/alerts.yml", "rules/recording.yml")


TESTS = ("alerts.yml", "slow_alerts.yml")


@functools.cache
def rule_tests(name: str) -> list[dict[str, Any]]:
    """Return promtool's tests of one file: thousands of lines, read once."""
    read: dict[str, list[dict[str, Any]]] = yaml.safe_load(
        (watched_run.PROMETHEUS / "tests" / name).read_text()
    )
    return read["tests"]


ALWAYS = "FarmWatchdog"
ONLY_WHEN_WRONG = {"FarmSeasonOutOfService"}  # its series is there while it fires, and then alone


def test_each_alert_fires_and_stays_quiet() -> None:
    """``promtool test rules`` passes, and tests both ways of every alert."""
    promtool("test", "rules", *(f"tests/{name}" for name in TESTS))
    fires, quiet, healthy = set[str](), set[str](), set[str]()
    for name in TESTS:
        for test in rule_tests(name):
            for case in test["alert_rule_test"]:
                (fires if case.get("exp_alerts") else quiet).add(case["alertname"])
            if "a healthy farm" in test["name"]:
                healthy = {case["alertname"] for case in test["alert_rule_test"]}
    alerts = {rule["alert"] for rule in RULES}
    missing = {
        "a test in which it fires": alerts - fires,
        "a time at which it is silent": alerts - quiet - {ALWAYS},
        "its line in the first test, the healthy farm": alerts - healthy - {ALWAYS},
        "a rule: it is only tested": (fires | quiet | healthy) - alerts,
    }
    assert {what: names for what, names in missing.items() if names} == {}, "deploy/prometheus"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_the_healthy_farm_has_what_an_alert_asks_for(rule: dict[str, Any]) -> None:
    """Without its series an alert is silent there whatever its rule says."""
    if rule["alert"] in {ALWAYS, *ONLY_WHEN_WRONG}:
        return
    healthy = rule_tests(TESTS[0])[0]
    series = {one["series"].partition("{")[0] for one in healthy["input_series"]}
    asked = set(re.findall(r"\b(?:farm|node|alertmanager|prometheus)_\w+", rule["expr"]))
    assert asked <= series, f"add to the first test of tests/alerts.yml: {asked - series}"


def test_alerts_are_tried_in_a_farm_of_two_halls_and_three_seasons() -> None:
    """What fires for one fires for that one: its siblings' series are there, and healthy."""
    cases = [test for name in TESTS for test in rule_tests(name) if "fires" in test["name"]]
    rare = ("FarmSeasonOutOfService", "FarmFeedStale")  # one season alone has such a series
    for label in ("hall", "season", "host"):
        for test in cases:
            told = " ".join(one["series"] for one in test["input_series"])
            values = set(re.findall(rf'\b{label}="([^"]*)"', told))
            alone = len(values) == 1 and not test["name"].startswith(rare)
            assert not alone, f"{test['name']}: add a healthy {label} beside {values}"


@pytest.mark.parametrize(
    "rule", [*RULES, *RECORDING], ids=lambda rule: rule.get("alert") or rule["record"]
)
def test_each_rule_asks_for_metrics_that_there_are(rule: dict[str, Any]) -> None:
    """The exporter tells them, or a rule records them; promtool's own tests make up theirs."""
    for name in re.findall(r"\bfarm_\w+", rule["expr"]):
        whole = re.sub(r"_(bucket|sum|count)$", "", name)
        assert {name, whole} & families.FAMILIES.keys(), name
    recorded = {other["record"] for other in RECORDING}
    assert set(re.findall(r"\b[a-z]+:[\w:]+", rule["expr"])) <= recorded


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_what_is_born_with_its_season_counts_from_nothing(rule: dict[str, Any]) -> None:
    """An increase alone misses what a new season or event had before the first scrape."""
    for name in re.findall(r"\bincrease\((farm_\w+)", rule["expr"]):
        if "season" in families.FAMILIES[name].labels:
            assert f"{name} > 0 and on (job, instance, season) farm_season_launch" in rule["expr"]
            assert f"{name} > 0 unless {name} offset" in rule["expr"]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_each_alert_has_a_runbook_and_its_words(rule: dict[str, Any]) -> None:
    """Its runbook and its row of the index tell what the rule says; the runbook shows its query."""
    name, notes = str(rule["alert"]), rule["annotations"]
    assert rule["labels"]["severity"] in {"critical", "warning", "info", "none"}
    assert re.fullmatch(r"\d+[smh]", str(rule["for"]))
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert notes["runbook_url"] == f"{{{{ $externalLabels.farm_docs }}}}/runbooks/{name}/"
    page = RUNBOOKS / f"{name}.md"
    assert page.is_file(), f"an alert needs a runbook: docs/runbooks/{page.name}"
    text = page.read_text()
    lasting = f"; after {rule['for']}" if rule["for"] != "0s" else ""
    head = f"*{notes['summary']}* Severity: {rule['labels']['severity']}{lasting}."
    assert text.splitlines()[2] == head, f"the third line of {page.name} is not the rule's"
    row = f"| [{name}]({name}.md) | {rule['labels']['severity']} | {notes['summary']} |"
    assert row in (RUNBOOKS / "index.md").read_text(), f"index.md lacks the row: {row}"
    assert str(rule["expr"]) in text, f"not the rule's query, on one line: {name}.md"
    for part in ("What it means", "Where to look", "What to do", "When it ends"):
        assert text.count(f"**{part}.**") == 1, f"{name}.md has no part or two: **{part}.**"


def test_no_runbook_is_without_an_alert() -> None:
    """The runbooks' index and files are those of the rules."""
    names = {rule["alert"] for rule in RULES}
    pages = {path.stem for path in RUNBOOKS.glob("Farm*.md")}
    rows = set(re.findall(r"\]\((\w+)\.md\)", (RUNBOOKS / "index.md").read_text()))
    assert pages ^ names == set(), "alerts without a page in docs/runbooks, or pages without one"
    assert rows ^ names == set(), "alerts without a row in docs/runbooks/index.md, or rows without"


@pytest.mark.parametrize(
    "path",
    [
        watched_run.PROMETHEUS / "prometheus.yml",
        watched_run.ROOT / "ansible/roles/monitoring/templates/prometheus.yml.j2",
    ],
    ids=lambda path: path.name,
)
def test_where_the_documents_are_is_said_in_one_place(path: pathlib.Path) -> None:
    """The configuration names it for the runbooks' links, and no alert is sent with it."""
    text = path.read_text().replace("{{", "'").replace("}}", "'")
    told = yaml.safe_load(text)
    assert told["global"]["external_labels"]["farm_docs"]
    assert {"action": "labeldrop", "regex": "farm_docs"} in told["alerting"][
        "alert_relabel_configs"
    ]
    rules = (watched_run.PROMETHEUS / "rules" / "alerts.yml").read_text()
    assert "http" not in rules, "an address in a rule would have to be changed in each of them"
