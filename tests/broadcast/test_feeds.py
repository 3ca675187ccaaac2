"""TCEC's files and our documents: what follows from a journal, and only from it."""

from __future__ import annotations

import json
import pathlib
import random

import jsonschema
import pytest
import schemas
import theatre
from twins import memory

from orchestrator.broadcast.feeds import files as feeds_files
from orchestrator.broadcast.feeds.tcec import index, names
from orchestrator.commands import launch
from orchestrator.season import views
from orchestrator.season.file import load as files
from orchestrator.season.fold import state as season_state

SEASONS = ("demo", "cup", "frc")


@pytest.mark.parametrize("name", SEASONS)
def test_a_rebuild_writes_the_same_bytes(name: str, tmp_path: pathlib.Path) -> None:
    """A projector that saw a season grow leaves what one leaves that reads it whole."""
    tape = theatre.simulated(name)
    growing = theatre.projected(tape, tmp_path / "growing")
    steps = random.Random(name)
    while tape.shown < len(tape.journal):
        tape.shown = min(len(tape.journal), tape.shown + steps.randint(1, len(tape.journal) // 12))
        growing.projector.look()
    whole = theatre.projected(tape, tmp_path / "whole")
    whole.projector.look()
    assert theatre.tree(tmp_path / "growing") == theatre.tree(tmp_path / "whole")
    assert growing.shelf.places() == whole.shelf.places()
    for place in whole.shelf.places():
        assert growing.shelf.get(place) == whole.shelf.get(place), place


@pytest.mark.parametrize("name", SEASONS)
def test_every_file_is_as_viewers_read_it(name: str, tmp_path: pathlib.Path) -> None:
    """At any moment of a season every file fits its schema and its link leads somewhere."""
    tape = theatre.simulated(name)
    made = theatre.projected(tape, tmp_path)
    for share in (0.02, 0.3, 0.71, 1.0):
        tape.shown = max(5, round(len(tape.journal) * share))
        made.projector.look()
        files = {path.name: path for path in (tmp_path / "feeds").glob("*.json")}
        for file, path in files.items():
            jsonschema.validate(json.loads(path.read_bytes()), schemas.FILES[file])
        tournament = json.loads(files["tournament.json"].read_bytes())
        listed = json.loads(files["gamelist.json"].read_bytes())["Seasons"].values()
        archived = tmp_path / "feeds" / "archive" / "gamelist.json"
        assert archived.read_bytes() == files["gamelist.json"].read_bytes()
        urls = {sub["url"] for season in listed for sub in season["sub"]}
        assert tournament["link"] in urls


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"plies": 3}', b"\0\0\0", b"\xff"])
def test_a_damaged_record_takes_no_table_away(content: bytes, tmp_path: pathlib.Path) -> None:
    """One game's file on a bad disk: its line is there without an opening, all others whole."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    folder = tmp_path / "archive" / "demo" / "games" / "league.1"
    folder.mkdir(parents=True)
    (folder / "record.json").write_bytes(content)
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    schedule = made.shelf.get("seasons/demo/events/league/schedule")
    assert schedule is not None
    rows = json.loads(schedule.body)
    assert all(row["result"] for row in rows)
    assert (rows[0]["game"], rows[0].get("eco")) == ("league.1", None)


def test_a_file_launched_again_has_files_of_its_own() -> None:
    """``farm launch demo --id demo-2``: neither season replaces or hides what the other has."""
    loaded = files.load(launch.season_file("demo"))
    ledger = memory.MemoryLedger()
    launched = []
    for season in ("demo", "demo-2"):
        launch.start(ledger, loaded, season, "hall-1", "00", "test")
        launched.append(season_state.fold(ledger.read(season, 0, 10)))
    stems = [names.stem(one, one.events["league"]) for one in launched]
    assert stems == ["Demo_Season_-_Demo_League", "Demo_Season_demo-2_-_Demo_League"]
    seasons = index.Seasons()
    seasons.update(launched)
    assert len(seasons.gamelist()["Seasons"]) == 2


@pytest.mark.parametrize("out", [False, True], ids=["all count", "some annulled"])
def test_a_crosstable_says_what_the_standings_say(tmp_path: pathlib.Path, *, out: bool) -> None:
    """Scores, order and cells of crosstable.json are the event's."""
    tape = theatre.one_out(tmp_path) if out else theatre.simulated("demo")
    tape.shown = len(tape.journal)
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    state = made.projector.seasons[tape.season].state
    event = state.events["league"]
    path = tmp_path / "feeds" / "archive" / f"{names.stem(state, event)}_Crosstable.cjson"
    told = json.loads(path.read_bytes())
    assert bool(event.excluded) == out
    rows = views.standings(state, "league")["rows"]
    assert told["Order"] == [row["name"] for row in rows]
    for row in rows:
        line = told["Table"][row["name"]]
        assert line["Score"] == row["points"]
        assert line["Neustadtl"] == row["tiebreaks"]["sonneborn-berger"]
        assert sum(cell["H2h"] for cell in line["Results"].values()) == row["points"]
        wins = line["WinsAsWhite"] + line["WinsAsBlack"]
        losses = line["LossAsWhite"] + line["LossAsBlack"]
        assert (wins, losses) == (row["wins"], row["losses"])


def test_a_cup_is_drawn_from_its_file_as_it_was_played(tmp_path: pathlib.Path) -> None:
    """The bracket that a viewer derives from the file leads to the champion."""
    tape = theatre.simulated("cup")
    tape.shown = len(tape.journal)
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    state = made.projector.seasons["cup"].state
    told = json.loads((tmp_path / "feeds" / "Eventcrosstable.json").read_bytes())
    scores = {frozenset((a["name"], b["name"])): (a, b) for a, b in told["matchresults"]}
    sides = [team["name"] for pair in told["teams"] for team in pair]
    while len(sides) > 2:
        pairs = [scores[frozenset(pair)] for pair in zip(sides[::2], sides[1::2], strict=True)]
        sides = [max(pair, key=lambda side: side["origscore"])["name"] for pair in pairs]
    final = told["results"][0][-1]
    assert [len(each) for each in told["results"][0]] == [16, 8, 4, 2, 2]
    assert views.name(state, state.champion) in sides
    assert max(final[0]) > min(final[0])


def test_nothing_tells_the_seed_or_a_coming_opening(tmp_path: pathlib.Path) -> None:
    """Before the end no file, document or message holds the seed or an opening unplayed."""
    tape = theatre.simulated("demo", seed=923847561)
    books = tape.journal[0].data["books"].values()
    openings = {exit_["name"] for book in books for exit_ in book if exit_["name"]}
    made = theatre.projected(tape, tmp_path)
    tape.shown = next(e.seq for e in tape.journal if e.kind == "game_finished") - 1
    made.projector.look()
    texts = [content.decode() for content in theatre.tree(tmp_path).values()]
    places = made.shelf.places()
    texts += [document.body.decode() for p in places if (document := made.shelf.get(p))]
    running = made.projector.seasons["demo"].game
    assert running is not None
    played = running.line.opening().name
    for text in (*texts, *map(str, made.told)):
        assert "923847561" not in text
        for opening in openings - {played}:
            assert opening not in text, opening
    tape.shown = len(tape.journal)
    made.projector.look()
    document = made.shelf.get("seasons/demo")
    assert document is not None
    assert json.loads(document.body)["seed"] == "923847561"


def test_a_journal_of_a_newer_farm_hides_no_other_season(tmp_path: pathlib.Path) -> None:
    """An unknown kind of entry stops one season's documents, not the projector."""
    tape = theatre.simulated("demo")
    tape.shown = 10
    made = theatre.projected(tape, tmp_path)
    made.projector.look()
    before = made.shelf.get("seasons/demo")
    strange = tape.journal[10].__class__(11, tape.journal[10].at_ms, "from the future", "x", {})
    tape.journal = [*tape.journal[:10], strange]
    tape.shown = 11
    made.projector.look()
    assert made.projector.seasons["demo"].damaged
    assert made.shelf.get("seasons/demo") == before


def test_equal_files_are_written_once(tmp_path: pathlib.Path) -> None:
    """A content of several names is one file, until one of them gets another content."""
    directory, content = feeds_files.Directory(tmp_path), b"x" * 1000
    assert directory.write({"a": content, "archive/b": content}, 5_000) == ["a", "archive/b"]
    one, other = tmp_path / "a", tmp_path / "archive" / "b"
    assert one.samefile(other)
    assert other.stat().st_mtime == 5
    directory.write({"a": b"y"})
    assert (one.read_bytes(), other.read_bytes()) == (b"y", content)
    directory.write({"a": content, "archive/b": b"z"})
    assert (one.read_bytes(), other.read_bytes()) == (content, b"z")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "archive", "b"]
