"""The five season files: the tables of docs/rules, played to the end, and what they leave."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import driver
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.common import errors
from orchestrator.season import final_standings, verify_seed
from orchestrator.season.file import describe, load
from orchestrator.season.fold import entries, events, plan, state

RULES = driver.SEASONS.parents[1] / "docs" / "rules"
ROW = re.compile(r"\| (\S+) \| (\d+) \| (\d+) \| (\S+) \| (.*?) ?\| (\d+) \|")


def _table(name: str) -> list[tuple[str, int, int, str, list[str], int]]:
    """Read a page's table: event, engines, games, time control, who goes on, relegated."""
    rows = ROW.findall((RULES / f"{name}.md").read_text(encoding="utf-8"))
    return [
        (event, int(engines), int(games), control, goes.split("; ") if goes else [], int(down))
        for event, engines, games, control, goes, down in rows
    ]


TABLE = {name: _table(name) for name in ("season16", "season17", "cup", "frc", "ntcec1")}


def results(game: events.Game) -> driver.Verdict:
    """Invent results with draws and decisive games; a crash is rare."""
    digest = hashlib.sha256(f"{game.id}/{game.white}".encode()).digest()
    result: contract.Result = "1-0" if digest[1] < 140 else "0-1"
    if digest[0] < 2:
        return result, driver.Ending.DISCONNECT
    drawn: driver.Verdict = ("1/2-1/2", driver.Ending.THREEFOLD)
    return drawn if digest[0] < 160 else (result, driver.Ending.CHECKMATE)


@functools.cache
def played(name: str) -> driver.Driver:
    """Play a season file to its end, once."""
    return driver.Driver.launched(driver.shipped(name), results).play()


@pytest.mark.parametrize("name", TABLE)
def test_the_file_is_the_table_of_its_page(name: str) -> None:
    """Fields, games, time controls, promotions and relegations are those of the texts."""
    facts = describe.explain(driver.shipped(name))
    found = [
        (
            row["event"],
            row["engines"],
            row["games"],
            row["time_control"],
            row["promotions"],
            row["relegated"],
        )
        for row in facts["events"]
    ]
    assert found == TABLE[name]
    assert facts["games"] == sum(row[2] for row in TABLE[name])


@pytest.mark.parametrize("name", TABLE)
def test_the_file_explains_itself(name: str) -> None:
    """``farm check`` names every event; every event names the clauses it comes from."""
    done = testing.CliRunner().invoke(commands.farm, ["check", name])
    assert done.exit_code == 0, done.output
    for event in driver.shipped(name).season.events:
        assert f"{event.id}: {event.name}" in done.output
    blocks = (driver.SEASONS / f"{name}.toml").read_text().split("[[event]]")[1:]
    clause = {"season16": "S16-", "season17": "S17-", "cup": "CUP-", "frc": "FRC-", "ntcec1": "N1 "}
    assert all(clause[name] in block for block in blocks)


@pytest.mark.parametrize("name", TABLE)
def test_the_season_is_played_to_its_champion(name: str) -> None:
    """Every event is ranked, in the order of the file, with its number of games."""
    season = played(name)
    assert season.state.finished
    ranked = [e.data["event"] for e in season.journal if e.kind == entries.EVENT_RANKED]
    assert ranked == [row[0] for row in TABLE[name]]
    for event_id, engines, games, *_ in TABLE[name]:
        event = season.state.events[event_id]
        assert len(event.entrants) == len(set(event.entrants)) == engines
        cancelled = sum(season.state.games[game].cancelled for game in event.order)
        if event.spec.format.kind in {"round-robin", "swiss"}:
            assert len(event.order) == games
        assert event.tally.games == len(event.order) - cancelled
    assert season.state.champion == season.state.events[TABLE[name][-1][0]].rows[0].engine
    assert state.fold(season.journal).games == season.state.games


@pytest.mark.parametrize("name", TABLE)
def test_promotions_follow_from_the_final_tables(name: str) -> None:
    """Who plays an event is who was listed, and who stood at the promoted places."""
    season = played(name)
    by_id = {event.id: event for event in season.state.events.values()}
    for event in by_id.values():
        coming = [
            by_id[row[0]].rows[place - 1].engine
            for row in TABLE[name]
            for place in _places(row[4], event.id)
        ]
        own = plan.listed(event.spec, tuple(season.state.engines))
        assert sorted(event.entrants) == sorted([*own, *coming])


def _places(promotions: list[str], to: str) -> list[int]:
    """Read the promoted places out of the table's words."""
    for words in promotions:
        what, _, where = words.partition(" to ")
        if where == to:
            kind, _, numbers = what.partition(" ")
            listed = [int(number) for number in numbers.split(", ")]
            return list(range(1, listed[0] + 1)) if kind == "first" else listed
    return []


def test_the_superfinal_has_fifty_openings_and_the_start_once() -> None:
    """S16-8a: 50 different openings in pairs, among them once the start position."""
    games = list(played("season16").state.events["sufi"].order)[:100]
    found = [played("season16").state.games[game].opening for game in games]
    assert found[::2] == found[1::2]
    assert len(set(found)) == 50
    assert found.count(None) == 2


def _shared(first: str) -> list[str]:
    """Return the cells behind the first of a row of the page that all texts share."""
    page = (RULES / "index.md").read_text(encoding="utf-8")
    (row,) = re.findall(rf"^\| {first} \| (.*) \|$", page, re.MULTILINE)
    return [cell.strip() for cell in row.split("|")]


@pytest.mark.parametrize(
    ("row", "name"),
    [("S16, S17", "season16"), ("S16, S17", "season17"), ("CUP, FRC", "cup"), ("CUP, FRC", "frc")],
)
def test_the_bounds_of_interruptions_are_those_of_the_page(row: str, name: str) -> None:
    """S16-15b, CUP-7b: evals that decide an interrupted game, bounds included or not."""
    win, draw, _ = _shared(row)
    for event in driver.shipped(name).season.events:
        rules = event.interruptions
        assert rules is not None
        assert rules.win_cp is not None
        assert rules.draw_cp is not None
        above, below = f"{rules.win_cp / 100:.2f}", f"{rules.draw_cp / 100:.2f}"
        bounds = (f"{above} or more", f"{below} or less")
        assert (win, draw) == (
            bounds if rules.inclusive else (f"more than {above}", f"less than {below}")
        )


def test_the_limits_of_engines_are_those_of_the_page() -> None:
    """S16, N1 engine configuration: threads, hash and minor hash of every event."""
    threads, hash_mb, minor = (_shared(row) for row in ("threads", "hash", "minor hashes together"))
    for name in TABLE:
        column = 1 if name == "ntcec1" else 0
        for event in driver.shipped(name).season.events:
            limits = event.limits
            assert threads[column].startswith(str(limits.threads))
            assert hash_mb[column] == f"{limits.hash_mb} MB"
            found = limits.minor_hash_mb
            assert f"{found} MB" in minor[column] or minor[column] == f"{(found or 0) // 1024} GB"


# -- what a season leaves ------------------------------------------------------------


def test_the_outcome_of_season_16() -> None:
    """S16-3 to 7: six stay in the Premier Division, twelve and ten are League 1 and 2."""
    season = played("season16").state
    left = final_standings.outcome(season)
    assert {event: len(field) for event, field in left["next"].items()} == {
        "ql": 16,
        "l2": 10,
        "l1": 12,
        "divp": 6,
    }
    places = left["standings"]
    assert [row["place"] for row in places] == list(range(1, 45))
    assert len({row["engine"] for row in places}) == 44
    assert [row["event"] for row in places[:3]] == ["sufi", "sufi", "divp"]
    relegated = {(row["from"], row["to"]) for row in left["relegations"]}
    assert relegated == {("divp", "l1"), ("l1", "l2"), ("l2", "ql")}
    last = {row.engine for row in season.events["divp"].rows[-2:]}
    assert last <= set(left["next"]["l1"])


def test_the_outcome_of_season_17_keeps_the_competitions_apart() -> None:
    """S17-7c: the relegated of the Premier Division go to the League 1 of their own kind."""
    season = played("season17").state
    left = final_standings.outcome(season)
    gpu = {engine for engine in season.engines if engine.startswith("gpu")}
    assert gpu.isdisjoint(left["next"]["l1-cpu"])
    assert set(left["next"]["l1-gpu"]) <= gpu
    tier = [row for row in left["standings"] if row["event"].startswith("l1")]
    assert [row["rank"] for row in tier] == sorted(row["rank"] for row in tier)
    assert {row["event"] for row in tier} == {"l1-cpu", "l1-gpu"}
    dropped = left["standings"][0]["engine"]
    again = final_standings.outcome(season, [dropped])
    assert again["standings"][0]["engine"] == left["standings"][1]["engine"]
    assert [row["place"] for row in again["standings"]] == list(range(1, 60))


def test_an_outcome_needs_the_end() -> None:
    """A running season has none, and its seed is sealed."""
    season = driver.Driver.launched(driver.shipped("cup"), results).play(3)
    with pytest.raises(errors.RefusedError, match="not over"):
        final_standings.outcome(season.state)
    with pytest.raises(errors.RefusedError, match="sealed"):
        verify_seed.verify(season.journal)


# -- draws ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cup", "frc"])
def test_draws_can_be_verified_by_anyone(name: str, tmp_path: Path) -> None:
    """The honest journal verifies, with its books; the command says so by its exit code."""
    journal = played(name).journal
    found = verify_seed.verify(journal, driver.shipped(name))
    assert found.mismatches == ()
    assert found.draws == sum(e.kind in {"event_started", "games_paired"} for e in journal)
    path = tmp_path / "journal.jsonl"
    path.write_text("".join(f"{entry.line()}\n" for entry in journal))
    arguments = ["verify-draws", str(path), "--file", name, "--json"]
    done = testing.CliRunner().invoke(commands.farm, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["mismatches"] == []


def test_a_forged_draw_is_found() -> None:
    """A swapped bracket, another opening, another seed or book do not pass."""
    journal = played("cup").journal
    first = next(n for n, e in enumerate(journal) if e.kind == "games_paired")
    forged = list(journal)
    data: dict[str, Any] = json.loads(json.dumps(dict(journal[first].data)))
    data["games"][0]["opening"] = (data["games"][0]["opening"] + 1) % 5
    forged[first] = dataclasses.replace(journal[first], data=data)
    assert "does not follow" in verify_seed.verify(forged).mismatches[0]
    launch = json.loads(json.dumps(dict(journal[0].data)))
    sealed = [dataclasses.replace(journal[0], data={**launch, "seed_sha256": "00"}), *journal[1:]]
    assert any("hash" in found for found in verify_seed.verify(sealed).mismatches)
    turned = launch["books"]["book32"][::-1]
    other = {**launch, "books": {**launch["books"], "book32": turned}}
    mixed = [dataclasses.replace(journal[0], data=other), *journal[1:]]
    found = verify_seed.verify(mixed, driver.shipped("cup")).mismatches
    assert any("book book32" in one for one in found)


# -- contradictions and schema -------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "old", "new", "match"),
    [
        ("season16", "relegate = 6", "relegate = 13", "relegate: found 13 below place 4"),
        ("season17", 'competition = "gpu"   #', 'competition = "cpu"   #', r"gpu-1.*\(S17-2\)"),
        ("ntcec1", "[1, 4, 5,", "[1, 2, 5,", "'n1-1', who may also come from stage-2b"),
        ("cup", "top = 16, to", "top = 17, to", "an even number of engines"),
        ("frc", '"wins", "organizers"', '"organizers", "wins"', "tiebreaks"),
    ],
)
def test_contradictions_are_found(
    tmp_path: Path, name: str, old: str, new: str, match: str
) -> None:
    """A file that breaks its own rules is refused with the place and the clause."""
    text = (driver.SEASONS / f"{name}.toml").read_text()
    assert old in text
    (tmp_path / "books").symlink_to(driver.SEASONS / "books")
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(errors.SeasonFileError, match=match):
        load.load(path)


def test_the_schema_describes_the_files() -> None:
    """Each key of the five files stands in the published JSON Schema."""
    done = testing.CliRunner().invoke(commands.farm, ["schema"])
    schema = json.loads(done.output)
    event = set(schema["$defs"]["Event"]["properties"])
    engine = set(schema["$defs"]["EngineEntry"]["properties"])
    assert schema["$defs"]["Event"]["properties"]["time_control"]["type"] == "string"
    for name in TABLE:
        raw = tomllib.loads((driver.SEASONS / f"{name}.toml").read_text())
        assert raw.keys() <= schema["properties"].keys()
        assert all(table.keys() <= event for table in raw["event"])
        assert all(entry.keys() <= engine for entry in raw["roster"]["engine"])


NEURAL = 'neural = { training = "Zero", network = "N1", engine = "Lc0" }'


@pytest.mark.parametrize(
    ("other", "refused"),
    [
        ('{ training = "zero", network = "N2", engine = "LC0" }', "training and engine"),
        (
            '{ training = "Zero", network = "N1", engine = "Lc0" }',
            "training and network and engine",
        ),
        ('{ training = "Own", network = "N1", engine = "Ceres" }', None),
        ('{ training = "Own", network = "N1", engine = "Lc0" }\nexception = "agreed"', None),
    ],
)
def test_a_neural_engine_is_unlike_every_other(
    tmp_path: Path, other: str, refused: str | None
) -> None:
    """S16-16: two of three parts must differ from every other entry; the clash is named."""
    text = driver.season_text()
    text = text.replace('command = ["engine-1"]', f'command = ["engine-1"]\n{NEURAL}')
    text = text.replace('command = ["engine-3"]', f'command = ["engine-3"]\nneural = {other}')
    if refused is None:
        assert len(driver.load(tmp_path, text).engines) == 4
        return
    clash = rf"\[roster.engine e3\] neural: found the same {refused} as Engine 1.*\(S16-16\)"
    with pytest.raises(errors.SeasonFileError, match=clash):
        driver.load(tmp_path, text)
