"""A season as files: all that the API answers, and nothing that other folders hold is touched."""

from __future__ import annotations

import gzip
import json
import pathlib
import re

import described
import driver
import pytest
import theatre
from click import testing
from test_between_games import Scene

from orchestrator import commands, contract
from orchestrator.arbiter import game_zip
from orchestrator.broadcast.content import answers
from orchestrator.forecast import season_simulation
from orchestrator.season.amend import operations
from orchestrator.season.fold import corrections, orders

FARM = testing.CliRunner()


def export(*words: str) -> testing.Result:
    """Run the command; what it refuses is its exception."""
    return FARM.invoke(commands.farm, ["export-site", *words])


def archived(root: pathlib.Path) -> tuple[pathlib.Path, Scene]:
    """Return an archive with a season of one played game, which goes on."""
    scene = Scene(root)
    game, attempt = scene.begin(moves=False)
    scene.end(game, attempt, orders.game_order(scene.season.state, game))
    archive = root / "archive"
    folder = archive / "test" / "games" / game
    folder.mkdir(parents=True)
    for name, content in game_zip.unpack(scene.reel.records[attempt]).items():
        (folder / name).write_bytes(content)
    journal = season_simulation.journal_bytes(scene.season.journal)
    (archive / "test" / "journal.jsonl").write_bytes(journal)
    return archive, scene


def test_an_archived_season_is_written_whole(tmp_path: pathlib.Path) -> None:
    """Documents are the API's, games have their plies and PGN, and no secret is told."""
    archive, scene = archived(tmp_path)
    site = tmp_path / "site"
    done = export("test", "--to", str(site), "--archive", str(archive), "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output) == {
        "season": "test",
        "games": 1,
        "replays": 1,
        "annulled": 0,
        "folder": str(site),
    }
    api = site / "api" / "v1"
    for path in api.rglob("*.json"):
        place = str(path.relative_to(api).with_suffix(""))
        if place != "snapshot":
            described.check(described.typed(place), path.read_bytes(), place)
    told = json.loads((api / "snapshot.json").read_bytes())
    described.check_event("snapshot", told | {"now_ms": 1, "viewers": 0})
    packed = (api / "seasons/test/games/league.1/plies.bin").read_bytes()
    plies = gzip.decompress(packed)
    described.check(tuple[answers.Ply, ...], plies, "plies")
    assert [ply["san"] for ply in json.loads(plies)] == ["Nc3", "Nc6", "Nh3"]
    pgn = (archive / "test/games/league.1/game.pgn").read_bytes()
    for name in ("test", "test/league", "test/games/league.1"):
        assert (site / f"pgn/{name}.pgn").read_bytes().strip() == pgn.strip()
    assert json.loads((site / "tcec/crosstable.json").read_bytes())["Order"]
    page = (site / "index.html").read_text()
    named = re.findall(r'(?:href|src|content)="([\w./-]+\.[a-z]+)"', page)
    assert {"archive.js", "pgn/test.pgn"} < set(named)
    assert not [one for one in named if not (site / one).exists()]
    files = theatre.tree(site)
    assert all(driver.SEED.encode() not in content for content in files.values())
    again = export("test", "--to", str(site), "--archive", str(archive))
    assert again.exit_code == 0
    assert "1 games, 1 with moves" in again.output
    assert theatre.tree(site) == files
    assert scene.season.state.launched.id == "test"


def test_a_simulated_season_takes_no_moves_of_a_real_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its journal lies beside the farm whose archive has a season of that id, with records."""
    archive, _ = archived(tmp_path)
    monkeypatch.setenv("FARM_DATA", str(tmp_path))
    journal = (archive / "test" / "journal.jsonl").read_bytes()
    (tmp_path / "away").mkdir()
    for place, moves in ((archive / "test" / "journal.jsonl", 1), (tmp_path / "away/sim.jsonl", 0)):
        place.write_bytes(journal)
        done = export(str(place), "--to", str(tmp_path / f"site-{moves}"), "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.output)["replays"] == moves


def test_a_game_that_is_played_again_is_found_under_its_own_id(tmp_path: pathlib.Path) -> None:
    """As on the live page: its document and its PGN; those of event and season have the new one."""
    archive, scene = archived(tmp_path)
    season = scene.season
    season.append(operations.pause(season.state, "ann", "a fault"))
    season.append(corrections.replay(season.state, "league.1", "ann", "a fault"))
    journal = archive / "test" / "journal.jsonl"
    journal.write_bytes(season_simulation.journal_bytes(season.journal))
    site = tmp_path / "site"
    done = export("test", "--to", str(site), "--archive", str(archive))
    assert done.exit_code == 0, done.output
    assert (site / "pgn/test/games/league.1.pgn").is_file()
    told = json.loads((site / "api/v1/seasons/test/games/league.1.json").read_bytes())
    assert told["annulled"]
    assert "1 games (1 of them annulled), 1 with moves" in done.output
    assert (site / "pgn/test.pgn").read_bytes() == b""


def test_a_simulated_journal_is_written_too(tmp_path: pathlib.Path) -> None:
    """By its path; its games have results and no moves."""
    journal = tmp_path / "demo.jsonl"
    tape = theatre.simulated("demo")
    journal.write_bytes(season_simulation.journal_bytes(tape.journal))
    done = export(str(journal), "--to", str(tmp_path / "site"), "--archive", str(tmp_path))
    assert done.exit_code == 0, done.output
    live = json.loads((tmp_path / "site/api/v1/seasons/demo/live.json").read_bytes())
    assert (live["status"], live["recorded"]) == ("finished", False)


def test_a_strangers_journal_writes_nothing_elsewhere(tmp_path: pathlib.Path) -> None:
    """The season's id is in names of files: one that leads out of the folder is refused."""
    archive, _ = archived(tmp_path)
    lines = (archive / "test" / "journal.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["data"]["id"] = str(tmp_path / "elsewhere" / "x")
    forged = tmp_path / "forged.jsonl"
    forged.write_text("\n".join([json.dumps(first), *lines[1:], ""]))
    refused = export(str(forged), "--to", str(tmp_path / "site"), "--archive", str(archive))
    assert "is not one of the farm's" in str(refused.exception) + refused.output
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["other", "farm"])
def test_what_is_not_there_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    """An unknown season names those there are; a folder with other files is left alone."""
    archive, _ = archived(tmp_path)
    refused = export(name, "--to", str(tmp_path / "site"), "--archive", str(archive))
    assert refused.exit_code != 0
    assert "there: test" in str(refused.exception) + refused.output
    other = tmp_path / "other"
    other.mkdir()
    (other / "index.html").write_text("mine")
    refused = export("test", "--to", str(other), "--archive", str(archive))
    assert "holds other files" in str(refused.exception) + refused.output
    assert [path.name for path in other.iterdir()] == ["index.html"]


PGN = """[Event "Gauntlet"]
[Site "Here"]
[Round "1"]
[White "{white}"]
[Black "{black}"]
[Result "{result}"]

1. e4 {{ d=9, mt=120, wv=0.25, }} e5 {{ d=8, mt=90, wv=0.10, }} {result}

"""


def match_files(folder: pathlib.Path, *, about: bool = True) -> pathlib.Path:
    """Write a match of two games, and its PGN with an older game; return its journal."""
    engines = [{"id": name, "name": name, "command": ["x"]} for name in "AB"]
    told = {
        "event": "Gauntlet",
        "site": "Here",
        "engines": engines,
        "time_control": {"base_ms": 1000},
        "clocks": "1 s",
        "games": 2,
    }
    head = {"kind": "match", "v": 1, "arguments": [], "seed": 1} | (
        {"about": told} if about else {}
    )
    lines, texts = [head], [PGN.format(white="X", black="Y", result="1-0")]
    for number, (white, black, result) in enumerate([("A", "B", "1-0"), ("B", "A", "1/2-1/2")], 1):
        lines.append(
            {
                "kind": "game",
                "number": number,
                "round": 1,
                "white": white,
                "black": black,
                "opening": 0,
                "result": result,
                "ending": "checkmate",
                "loser": None,
                "details": "",
                "note": "",
                "plies": 2,
                "started_ms": 1,
                "ended_ms": 2001,
                "pair": 0,
            }
        )
        texts.append(PGN.format(white=white, black=black, result=result))
    (folder / "g.pgn").write_text("".join(texts))
    journal = folder / "g.pgn.jsonl"
    journal.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return journal


def test_a_match_is_written_with_the_moves_of_its_pgn(tmp_path: pathlib.Path) -> None:
    """A journal of ``farm match``: documents of their types, and the match's own games alone."""
    journal = match_files(tmp_path)
    done = export(str(journal), "--to", str(tmp_path / "site"), "--json")
    assert done.exit_code == 0, done.output
    assert (json.loads(done.output)["games"], json.loads(done.output)["replays"]) == (2, 2)
    api = tmp_path / "site" / "api" / "v1"
    for path in api.rglob("*.json"):
        place = str(path.relative_to(api).with_suffix(""))
        if place != "snapshot":
            described.check(described.typed(place), path.read_bytes(), place)
    told = json.loads((api / "snapshot.json").read_bytes())
    described.check_event("snapshot", told | {"now_ms": 1, "viewers": 0})
    game = json.loads((api / "seasons/match/games/1.json").read_bytes())
    assert [(ply["san"], ply["eval"]) for ply in game["plies"]] == [("e4", "0.25"), ("e5", "0.10")]
    assert (tmp_path / "site/pgn/match.pgn").read_text().count("[Event ") == 2


def test_journals_that_are_no_seasons_say_so(tmp_path: pathlib.Path) -> None:
    """One of a match before journals told of engines, one of ``farm test``: each is refused."""
    old = export(str(match_files(tmp_path, about=False)), "--to", str(tmp_path / "a"))
    assert "whose journals lack its settings" in str(old.exception) + old.output
    other = tmp_path / "test.jsonl"
    other.write_text(f"{contract.Entry(1, 1, 'test_game', 'lane', {'game': 1}).line()}\n")
    refused = export(str(other), "--to", str(tmp_path / "b"))
    assert "no season's journal" in str(refused.exception) + refused.output


def test_a_file_that_is_no_journal_is_not_called_a_damaged_one(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A season's file may have the name of its id; one with an ending is refused for what it is."""
    archive, _ = archived(tmp_path)
    words = ["--to", str(tmp_path / "site"), "--archive", str(archive), "--json"]
    monkeypatch.chdir(tmp_path)
    for name in ("test", "test.toml"):
        pathlib.Path(name).write_text("# A season. Check this file: farm season check test\n")
    assert json.loads(export("test", *words).output)["games"] == 1
    for command in (["export-site", "test.toml", *words], ["verify-draws", "test.toml"]):
        refused = FARM.invoke(commands.farm, command)
        assert refused.exit_code == 2, refused.output
        assert "test.toml is no journal" in refused.output
