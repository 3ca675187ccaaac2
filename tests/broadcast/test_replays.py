"""Replays of games that have no record: imported with their PGN, simulated, set by organizers."""

from __future__ import annotations

import json
import pathlib

import driver
import harness
import httpx
import pytest
import theatre

from orchestrator import contract
from orchestrator.audit import reading
from orchestrator.broadcast.content import game_store, replays
from orchestrator.ops import import_games
from orchestrator.season.amend import operations

MOVES = ["e4", "e5", "Nf3", "Nc6", "Bb5", "a6"]
TCEC = """1. e4 {{book, mb=+0+0+0+0+0,}}
e5 {{d=20, sd=30, mt={first}, tl={left}, s=1000, n=2000, pv=e5 Nf3, tb=null, wv=0.25,}}
2. Nf3 {{d=21, sd=31, mt=1000, tl=59000, s=1000, n=1000, pv=Nf3 Nc6, tb=3, wv=0.30,}}
Nc6 Bb5 a6 {{d=22, sd=32, mt=500, tl=58500, pv=a6, wv=-0.10,}} 1-0"""
CUTECHESS = (
    """1. e4 {book} e5 {-0.25/20 1.5s} 2. Nf3 {+0.30/21 1.0s} Nc6 Bb5 a6 {+0.10/22 0.5s} 1-0"""
)
LICHESS = """1. e4 {book} e5 { [%eval 0.25] [%clk 0:00:58] } 2. Nf3 { [%eval 0.3] [%clk 0:00:59] }
Nc6 Bb5 a6 { [%eval -0.1] } 1-0"""


def imported(root: pathlib.Path, body: str, **tags: str) -> driver.Driver:
    """Return a season whose first game was played elsewhere; its PGN is archived."""
    played = driver.Driver.launched(driver.load(root, driver.season_text()))
    played.settle()
    played.append(operations.pause(played.state, "ann", "an import"))
    event = played.state.current
    assert event is not None
    first = played.state.game(event.order[0])
    names = {
        "White": played.state.engines[first.white].name,
        "Black": played.state.engines[first.black].name,
    }
    head = "\n".join(f'[{k} "{v}"]' for k, v in (names | {"Result": "1-0"} | tags).items())
    text = f"{head}\n\n{body}"
    source = import_games.Source("old.pgn", "0" * 64, "the hall has moved", "ann")
    read = list(zip(reading.games(text), [text], strict=True))
    plan = import_games.plan(played.state, read, source, played.now_ms)
    assert not plan.problems
    played.append(plan.drafts)
    folder = root / "archive" / "test" / "games" / first.id
    folder.mkdir(parents=True)
    (folder / "game.pgn").write_text(text)
    return played


def replayed(season: driver.Driver, root: pathlib.Path) -> replays.Replay:
    """Return the replay of a season's first game."""
    album = game_store.Album(root / "archive", theatre.Kept(season.journal))
    replay = replays.of_game(season.state, season.state.game("league.1"), album)
    assert replay is not None
    return replay


@pytest.mark.parametrize(
    ("body", "clocks"),
    [
        (TCEC.format(first="1500", left="58500"), [58500, 59000, 59000, 58500]),
        (TCEC.format(first="00:00:01", left="00:00:58"), [58000, 59000, 59000, 58500]),
        (LICHESS, [58000, 59000, 59000, 58000]),
        (CUTECHESS, [None, None, None, None]),
    ],
)
def test_an_imported_game_is_replayed(
    tmp_path: pathlib.Path, body: str, clocks: list[int | None]
) -> None:
    """Moves, evals and clocks are those of its PGN; a clock that is not told is none."""
    replay = replayed(imported(tmp_path, body), tmp_path)
    told = replay.document()
    assert (told["result"], told["recorded"], told["status"]) == ("1-0", True, "finished")
    assert [ply["san"] for ply in told["plies"]] == MOVES
    assert [ply["book"] for ply in told["plies"]] == [True, *[False] * 5]
    assert [told["plies"][n]["cp"] for n in (1, 2, 3, 5)] == [25, 30, None, -10]
    assert [told["plies"][n]["depth"] for n in (1, 2, 3)][:2] in ([20, 21], [None, None])
    shown = [told["plies"][1]["black_clock_ms"], told["plies"][2]["white_clock_ms"]]
    shown += [told["plies"][4]["white_clock_ms"], told["plies"][5]["black_clock_ms"]]
    assert shown == clocks
    assert replay.ply(3)["white_clock_ms"] == clocks[1]


def test_a_pgn_that_does_not_fit_leaves_the_result(tmp_path: pathlib.Path) -> None:
    """The page is told that the moves are not known; the drawn opening stays hidden."""
    season = imported(tmp_path, "1. e4 e5 1-0")
    kept = tmp_path / "archive/test/games/league.1/game.pgn"
    for text in (b"nothing", b'[White "a"]\n\n1. e4 \xff', b""):
        kept.write_bytes(text)
        told = replayed(season, tmp_path).document()
        assert (told["result"], told["recorded"], told["plies"]) == ("1-0", False, [])
        assert told["opening"] == {"eco": "", "name": ""}


def test_every_finished_game_that_tables_link_to_is_there(tmp_path: pathlib.Path) -> None:
    """Simulated games answer with their results; imported ones are on the board, too."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        place = f"{url}/api/v1/seasons/{tape.season}"
        for game in list(tape.folded().games.values())[:3]:
            answer = httpx.get(f"{place}/games/{game.id}")
            assert (answer.status_code, answer.json()["recorded"]) == (200, False)
            assert answer.json()["result"] == (game.finished and game.finished.result)
        assert httpx.get(f"{place}/games/nothing.1").status_code == 404
        assert httpx.get(f"{place}/games/{game.id}/plies/999").status_code == 404
    season = imported(tmp_path, CUTECHESS)
    kept = theatre.Kept(season.journal)
    kept.shown = len(season.journal)
    stage = theatre.projected(kept, tmp_path)
    stage.projector.look()
    live = stage.shelf.get("seasons/test/live")
    assert live is not None
    told = json.loads(live.body)
    assert (told["game"], [ply["san"] for ply in told["plies"]]) == ("league.1", MOVES)


def test_the_side_of_a_score_is_whites_view(tmp_path: pathlib.Path) -> None:
    """The record that is made keeps the mover's view, as a hall's does."""
    record = replayed(imported(tmp_path, CUTECHESS), tmp_path).record
    assert [ply.score and ply.score.cp for ply in record.plies] == [-25, 30, None, None, 10]
    assert contract.GameRecord.decode(record.encode()) == record
