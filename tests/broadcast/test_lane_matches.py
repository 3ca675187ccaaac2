"""Test matches on the farm's page: list, tables, games, while they are played and after."""

from __future__ import annotations

import json
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import described
import httpx
import pytest
import theatre
from twins import lane_memory, memory

from orchestrator import contract
from orchestrator.arbiter import record as pgn_record
from orchestrator.broadcast import test_matches
from orchestrator.broadcast.content import answers, documents, match_games, match_view, replays
from orchestrator.ledger import lanes
from orchestrator.rating import sprt
from orchestrator.testmatch import match_journal, orders, sprt_match, spsa

HALL, MOVES = "main", ("e2e4", "e7e5", "g1f3")
ID = "test:dev-1"
PLACES = (
    *("tests", f"seasons/{ID}", f"seasons/{ID}/test", f"seasons/{ID}/events/match"),
    *(f"seasons/{ID}/events/match/schedule", f"seasons/{ID}/statistics", f"seasons/{ID}/live"),
    *(f"seasons/{ID}/games/2", f"seasons/{ID}/games/2/plies/3"),
)


def text(order: contract.GameOrder, result: match_journal.Result) -> str:
    """Return the PGN of a game of three plies."""
    plies = tuple(
        contract.PlyRecord(
            ply=number,
            side="white" if number % 2 else "black",
            move=move,
            san=san,
            think_ns=1_000_000,
            margin_ns=0,
            overhead_ns=0,
            white_clock_ns=1_000_000_000,
            black_clock_ns=1_000_000_000,
        )
        for number, (move, san) in enumerate(zip(MOVES, ("e4", "e5", "Nf3"), strict=True), start=1)
    )
    return pgn_record.pgn(replays.record_of(order, match_view.result_told(result), plies)[0])


def result(number: int, white: str, black: str, said: contract.Result) -> match_journal.Result:
    """Return a finished game."""
    return match_journal.Result(
        number=number,
        round=number,
        white=white,
        black=black,
        opening=0,
        result=said,
        ending=contract.Ending.CHECKMATE,
        loser=None,
        details="",
        note="",
        plies=3,
        started_ms=0,
        ended_ms=5_000,
    )


class Stage:
    """A farm in memory with one lane, and the keeper of a match of an engine with itself."""

    def __init__(self, root: pathlib.Path, **other: object) -> None:
        self.claims = 0
        self.ledger = memory.MemoryLedger()
        self.lanes = lane_memory.MemoryLanes(self.ledger)
        self.lanes.open_lane(lanes.Lane(HALL, "a", "h1", frozenset({0}), 4096))
        engine = contract.EngineSpec(id="dev", name="Dev", command=("none",))
        control = contract.TimeControl(base_ms=1000)
        facts = {"id": "dev-1", "engines": (engine, engine), "time_control": control, "games": 10}
        self.spec = orders.Spec.model_validate(facts | other)
        terms = sprt_match.Terms(test=sprt.Test(0, 5), halls=(HALL,))
        self.keeper = sprt_match.Keeper(self.ledger, self.lanes, root / "dev-1", self.spec, terms)
        self.keeper.open("test")

    def open(self) -> Sequence[str]:
        """Return the open matches, as the ledger knows them."""
        return list(self.lanes.matches())

    def leases(self) -> Sequence[lanes.Lease]:
        """Return what is played."""
        return self.lanes.leases(HALL)

    def play(self, *results: contract.Result) -> None:
        """Play games in the lane, and let the keeper mirror them; one more is begun."""
        for said in results:
            lease = self.lease()
            number = lease.game
            ended = result(number, "Dev", "Dev", said)
            facts = {"game": number, "host": "h1", "result": said, "ending": ended.ending}
            facts |= {"loser": None, "details": "", "note": "", "plies": 3}
            told = contract.dumps(facts | {"pgn": text(self.spec.order(number), ended)})
            self.lanes.complete_lane(lease, told, goes_on=False)
        self.keeper.step(lambda _: None, 0)
        self.lease()

    def lease(self) -> lanes.Lease:
        """Claim the lane's next game unless it has one."""
        if not self.leases():
            self.claims += 1
            claim = lanes.LaneClaim(HALL, "a", f"a-{self.claims}", "w", "h1", 3_600_000)
            assert isinstance(self.lanes.claim_lane(claim), lanes.Dealt)
        return self.leases()[0]


def matches(root: pathlib.Path, stage: Stage) -> test_matches.TestMatches:
    """Return what a page that has just been started knows of test matches."""
    place = test_matches.Place(root, stage)
    return test_matches.TestMatches(place, documents.Library(), lambda _: None)


def test_a_test_match_is_shown_on_the_farms_page(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """List, tables, LLR, games and what is played now; who names no season sees the match."""
    monkeypatch.setattr(test_matches, "LOOK_SECONDS", 0.05)
    stage = Stage(tmp_path / "tests")
    stage.play("1-0", "1/2-1/2", "0-1", "1-0")
    tape = theatre.simulated("demo")  # of which nothing was played yet
    place = test_matches.Place(tmp_path / "tests", stage)
    with theatre.served(tape, tmp_path, tests=place) as url, httpx.Client(base_url=url) as web:
        told = json.loads(awaited(web, "api/v1/tests", '"played":4'))
        assert [(one["season"], one["status"], one["running"]) for one in told] == [
            (ID, "running", 1)
        ]
        for where in PLACES:
            answer = web.get(f"api/v1/{where}")
            described.check(described.typed(where), answer.content, where)
        test = web.get(f"api/v1/seasons/{ID}/test").json()
        assert test["score"]["pentanomial"] == [1, 0, 0, 1, 0]
        assert test["history"]["llr"][-1] == pytest.approx(test["sprt"]["llr"])
        (now,) = test["running"]
        assert (now["game"], now["place"], now["white"]) == ("5", "main.a", "Dev")
        game = web.get(f"api/v1/seasons/{ID}/games/2").json()
        assert [ply["uci"] for ply in game["plies"]] == list(MOVES)
        assert (game["white"]["name"], game["result"]) == ("Dev (2)", "1/2-1/2")
        assert '[Result "0-1"]' in web.get(f"pgn/{ID}/games/3.pgn").text
        assert web.get(f"pgn/{ID}.pgn").text.count("[Result ") == 4
        page = web.get(f"api/v1/seasons/{ID}/events/match/schedule?offset=1&limit=2")
        assert [row["number"] for row in page.json()] == [2, 3]
        assert snapshot(web, "")["season"]["season"] == ID
        for none in (f"seasons/{ID}/games/9", f"seasons/{ID}x", f"seasons/{ID}/games/{'9' * 5000}"):
            assert web.get(f"api/v1/{none}").status_code == 404, none
        stage.keeper.finish()
        over = awaited(web, f"api/v1/seasons/{ID}", '"status":"finished"')
        assert json.loads(over)["reason"] == "stopped"
        assert snapshot(web, ID)["tests"] == 1
    stage.keeper.close()


def awaited(web: httpx.Client, place: str, words: str) -> str:
    """Ask until an answer holds these words."""
    while words not in (answer := web.get(place).text):
        time.sleep(0.05)
    return answer


def snapshot(web: httpx.Client, season: str) -> dict[str, Any]:
    """Return what the stream says first."""
    with web.stream("GET", f"api/v1/live?season={season}") as stream:
        told = next(theatre.events(stream))
    described.check_event(told.kind, told.data)
    data: dict[str, Any] = told.data
    return data


def test_the_page_counts_what_the_keeper_counts(tmp_path: pathlib.Path) -> None:
    """No check, nothing that was set aside, but what was played in its place; also read later."""
    stage = Stage(tmp_path)
    stage.play("1-0", "1-0", "1-0")
    seen = matches(tmp_path, stage)
    seen.look()
    first = seen.find(ID)
    assert first is not None
    path = tmp_path / "dev-1" / "journal.jsonl"
    read = path.read_text().count("\n")
    with path.open("a") as mirror:
        whole = first.text(2)
        game = {"host": "t/box", "attempt": "t/b", "hall": "", "loser": None, "details": ""}
        game |= {"note": "", "plies": 3, "ending": "checkmate", "pgn": whole}
        words = [
            (lanes.GAME, {**game, "game": orders.LAST_GAME + 1, "result": "1-0"}),
            (lanes.GAME, {**game, "game": 4, "result": "1-0"}),
            (lanes.GAME, {**game, "game": 5, "result": "1-0"}),
            (lanes.ASIDE, {"games": [1]}),
            (lanes.GAME, {**game, "game": 1, "host": "h2", "hall": HALL, "result": "0-1"}),
            (lanes.GAME, {**game, "game": 3, "result": "0-1"}),  # it has a result
            (lanes.CONDEMNED, {"games": [4], "token": "t", "rule": "score", "reason": "x"}),
            (lanes.GAME, {**game, "game": 6, "result": "1-0"}),  # it came too late
            (lanes.GAME, {**game, "game": 4, "hall": HALL, "result": "1/2-1/2"}),
        ]
        for seq, (kind, data) in enumerate(words, start=read + 1):
            entry = contract.Entry(seq=seq, at_ms=1, kind=kind, by="w", data=data)
            mirror.write(f"{entry.line()}\n")
    kept = sprt_match.folded(tmp_path / "dev-1", stage.spec).tally
    for one in (seen, matches(tmp_path, stage)):
        one.look()
        shown = one.find(ID)
        assert shown is not None
        results = {number: shown.view.results[number].result for number in shown.view.results}
        assert results == {1: "0-1", 2: "1-0", 3: "1-0", 4: "1/2-1/2"}
        assert kept.games == len(results)
        assert shown.view.test()["score"]["pentanomial"] == list(kept.counts().pairs)
    stage.keeper.close()


def test_a_tuning_is_shown_with_the_way_of_its_parameters(tmp_path: pathlib.Path) -> None:
    """Where each one stands, where it began, and what was dealt between."""
    facts = {"name": "Razor", "whole": True, "start": 300, "least": 100, "most": 600}
    one = spsa.Parameter.model_validate({**facts, "c_end": 20, "r_end": 0.002})
    stage = Stage(tmp_path, tuning=spsa.Tuning(parameters=(one,), iterations=5))
    for _ in range(3):
        stage.play("1-0", "0-1")  # the tested engine wins both, with either colour
    seen = matches(tmp_path, stage)
    seen.look()
    (line,) = json.loads(seen.shelf.get("tests").body)  # type: ignore[union-attr] # it is there
    assert line["tuned"] == ["Razor"]
    test = seen.shelf.get(f"seasons/{ID}/test").body  # type: ignore[union-attr] # likewise
    described.check(answers.MatchTest, test, "test")
    tuning = json.loads(test)["tuning"]
    assert (tuning["done"], tuning["iterations"], tuning["parameters"][0]["start"]) == (3, 5, 300)
    way = tuning["course"]
    assert way["done"][0] == 0 < way["done"][-1] == 3
    assert way["values"][0] == [300] != way["values"][-1] == [tuning["parameters"][0]["value"]]
    stage.keeper.close()


def test_a_match_that_is_over_keeps_its_line_alone(tmp_path: pathlib.Path) -> None:
    """Its mirror is read for the list, and again for who looks at it; a damaged one is left out."""
    stage = Stage(tmp_path)
    stage.play("1-0", "0-1")
    stage.keeper.finish()
    stage.keeper.close()
    (tmp_path / "worse").mkdir()
    (tmp_path / "worse" / "match.json").write_text("{")
    seen = matches(tmp_path, stage)
    for _ in range(2):
        seen.look()
    shelf = seen.shelf
    (line,) = json.loads(shelf.get("tests").body)  # type: ignore[union-attr] # it is there
    described.check(tuple[answers.TestMatchOverview, ...], json.dumps([line]), "tests")
    assert (line["status"], line["games"]["played"]) == ("finished", 2)
    assert shelf.get(f"seasons/{ID}") is None
    match = seen.find(ID)
    assert match is not None
    assert len(match.view.results) == 2
    assert shelf.get(f"seasons/{ID}/test") is not None


def test_a_game_is_found_in_a_pgn_file_that_grows(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older matches stand before it, blocks end anywhere, the last game may not be written yet."""
    monkeypatch.setattr(match_games, "BLOCK", 301)
    names = ("Ängine", 'B "x"')
    control = contract.TimeControl(base_ms=1000)
    engines = tuple(contract.EngineSpec(id=n, name=n, command=("x",)) for n in names)
    spec = orders.Spec(id="m", engines=engines, time_control=control, games=100)
    results, texts = [], []
    for number in range(1, 8):
        white, black = names if number % 2 else names[::-1]
        said: contract.Result = "1-0" if number % 3 else "0-1"
        results.append(result(number, white, black, said))
        texts.append(text(spec.order(number), results[-1]).strip())
    path = tmp_path / "games.pgn"
    file = match_games.PgnFile(path)
    assert file.text(1) is None
    path.write_text("\n\n".join([*texts[:2], *texts[:4]]) + "\n\n")  # two are an older match's
    for one in results[:5]:
        file.take(one)
    assert [file.text(number) for number in range(1, 6)] == [*texts[:4], None]
    with path.open("a") as more:
        more.write("\n\n".join(texts[4:]) + "\n")
    for one in results[5:]:
        file.take(one)
    assert [file.text(number) for number in range(1, 8)] == texts
    assert file.text(8) is None
    path.write_text("\n\n".join(texts))  # it was written again, without the older match
    assert [file.text(number) for number in range(1, 8)] == texts
