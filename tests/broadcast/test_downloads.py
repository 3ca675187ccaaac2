"""PGN for Lichess: what a poll costs, counted in games rendered."""

from __future__ import annotations

import pathlib

import harness
import httpx
import made
import pytest
import theatre

from orchestrator import contract
from orchestrator.arbiter import verdict
from orchestrator.broadcast.content import games
from orchestrator.broadcast.content import variations as content_variations
from orchestrator.season.fold import events


def keep_record(archive: pathlib.Path, season: str, game: events.Game) -> None:
    """Write the record of a finished game of one move, with a long variation."""
    assert game.finished is not None
    order = made.order(season=season, event=game.event, game=game.id, round=game.round)
    plies = (made.ply(1, "e2e4", "e4", pv=("e4", "e5", "Nf3", "Nc6"), score={"cp": 20}),)
    record = contract.GameRecord(
        order=order,
        attempt=game.finished.attempt,
        started_ms=1,
        ended_ms=2,
        white=contract.EngineReport(),
        black=contract.EngineReport(),
        plies=plies,
        outcome=verdict.disconnect("black"),
        final_fen="",
    )
    folder = archive / season / "games" / game.id
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(record.model_dump_json())


def test_a_finished_game_is_rendered_once_however_often_lichess_polls(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another poll nor another address renders it again, and no variation is played."""
    tape = theatre.simulated("demo")
    tape.shown = len(tape.journal)
    state = tape.folded()
    finished = [game for game in state.games.values() if game.finished is not None][:3]
    for game in finished:
        keep_record(tmp_path / "archive", tape.season, game)
    rendered, variations = [], []
    of_record, steps = games.of_record, content_variations.steps

    def counted(record: contract.GameRecord) -> games.GameLine:
        rendered.append(record.order.game)
        return of_record(record)

    with theatre.served(tape, tmp_path) as url:
        harness.wait(lambda: httpx.get(f"{url}/healthz").json()["season"], "the season")
        monkeypatch.setattr(games, "of_record", counted)
        monkeypatch.setattr(
            content_variations, "steps", lambda *a: variations.append(a) or steps(*a)
        )
        first, second = (
            [
                httpx.get(
                    f"{url}/lichess/{tape.season}/games/{game.id}.pgn", headers={"Host": host}
                ).text
                for game in finished
            ]
            for host in ("a.example", "b.example")
        )
    assert sorted(rendered) == sorted(game.id for game in finished)
    assert not variations
    assert all("[%eval 0.20]" in text for text in first)
    assert all('[GameURL "http://a.example/#/' in text for text in first)
    assert [text.replace("a.example", "b.example") for text in first] == second
