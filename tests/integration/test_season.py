"""A whole season through real Redis, a real Celery worker and real engine processes."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil

import checker
import harness
import pytest

from orchestrator.season import views

ENGINES = ("stockfish", "ethereal-chess", "toga2")


def _installed(name: str) -> str:
    path = shutil.which(name, path="/usr/games:/usr/bin:/usr/local/bin")
    if path is None:
        pytest.skip(f"package {name} is not installed")
    return path


def test_a_league_of_real_engines_and_its_final(tmp_path: pathlib.Path) -> None:
    """Six games and a final match are played, archived, readable, and give the table."""
    engines = [{"id": name, "name": name, "command": [_installed(name)]} for name in ENGINES]
    with harness.running(tmp_path) as farm:
        path = tmp_path / "season.toml"
        file = harness.league(path, engines, control="300ms+10ms", final_games=2)
        farm.launch(file, "real")
        over = farm.finish("real")
        aof = list((tmp_path / "redis").rglob("*.aof"))
    folded = checker.check_season(farm.archive, "real")
    assert aof, "Redis ran without its append-only file"
    assert len(folded.games) == 6 + 2
    league = views.standings(folded, "league")
    assert sum(row["points"] for row in league["rows"]) == 6
    first_two = {row["engine"] for row in league["rows"][:2]}
    assert set(folded.events["final"].entrants) == first_two
    assert checker.table(folded) == checker.table(over)


def test_engines_of_different_games_never_live_together(tmp_path: pathlib.Path) -> None:
    """The engines' own records of their lives show one game after the other."""
    with harness.running(tmp_path) as farm:
        engines = [harness.scripted(farm.life, strength) for strength in range(3)]
        farm.launch(harness.league(tmp_path / "season.toml", engines, final_games=2), "calm")
        farm.finish("calm")
    checker.check_season(farm.archive, "calm")
    assert checker.check_lives(farm.life) == 8


def test_a_fault_of_an_engine_never_ends_the_season(tmp_path: pathlib.Path) -> None:
    """A crash, an illegal move and a program that does not start lose games, nothing else."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF of another machine")
    broken.chmod(0o755)
    with harness.running(tmp_path) as farm:
        engines = [
            harness.scripted(farm.life, 3),
            harness.scripted(farm.life, 0, "--fault", "crash@20"),
            harness.scripted(farm.life, 1, "--fault", "illegal@16"),
            {"id": "broken", "name": "Broken", "command": [str(broken)]},
        ]
        farm.launch(harness.league(tmp_path / "season.toml", engines, final_games=2), "faulty")
        farm.finish("faulty")
    folded = checker.check_season(farm.archive, "faulty")
    endings = {game.finished.ending.value for game in folded.games.values() if game.finished}
    assert {"disconnect", "illegal"} <= endings
    crashes = {row["engine"]: row["tiebreaks"]["crashes"] for row in _league(folded)}
    assert crashes["broken"] == 6
    assert crashes["scripted-3"] == 0


def test_a_program_that_is_not_there_loses_nothing(tmp_path: pathlib.Path) -> None:
    """A typo holds the season and names the path; put right, the same game is played."""
    program = tmp_path / "tpyo"
    with harness.running(tmp_path) as farm:
        real = harness.scripted(farm.life, 3)
        engines = [{**real, "command": [str(program)]}]
        engines += [harness.scripted(farm.life, strength) for strength in range(3)]
        farm.launch(harness.league(tmp_path / "season.toml", engines), "typo")
        farm.wait(lambda: bool(farm.state("typo").held), 60, "the hold")
        held = farm.state("typo")
        assert str(program) in held.held
        league = held.events["league"]
        asked = league.order[league.cursor]
        assert not any(score.crashes for score in league.tally.scores.values())
        program.write_text(f"#!/bin/sh\nexec {shlex.join(real['command'])}\n")
        program.chmod(0o755)
        farm.operate("resume", "--reason", "the program is there")
        farm.wait(lambda: farm.state("typo").games[asked].finished is not None, 60, "the game")
        assert not any(
            score.crashes for score in farm.state("typo").events["league"].tally.scores.values()
        )


def _league(folded: object) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = views.standings(folded, "league")["rows"]  # type: ignore[arg-type]
    return rows


def test_wishes_of_the_operator_are_kept(tmp_path: pathlib.Path) -> None:
    """Pause starts no game, abort replays one, a drained worker ends, unless it is undrained."""
    gate = tmp_path / "gate"
    with harness.running(tmp_path) as farm:

        def play_begins() -> None:
            farm.wait(lambda: farm.state("wishes").running is not None, 20, "a game in flight")

        with harness.held(gate) as hold:
            engines = [harness.scripted(farm.life, n, *hold) for n in range(4)]
            file = harness.league(tmp_path / "season.toml", engines, control="90s+1s")
            farm.launch(file, "wishes")
            play_begins()
            farm.operate("abort", "--reason", "test")
            farm.wait(lambda: _causes(farm) == ["operator"], 20, "the interruption")
            play_begins()
            farm.operate("pause", "--reason", "lunch")
        farm.wait(lambda: farm.state("wishes").running is None, 60, "the end of the game")
        farm.wait(lambda: not farm.ledger.offered(harness.HALL), 20, "the end of its offer")
        paused = farm.state("wishes")
        assert (paused.events["league"].tally.games, paused.running) == (1, None)
        assert farm.ledger.holds("wishes") == {"pause": "lunch"}

        with harness.held(gate):
            farm.operate("resume")
            play_begins()
            drained = farm.worker.pid
            farm.operate("drain", "hall-1")
            assert "its worker ends after its game" in farm.operate("status")
            farm.operate("undrain", "hall-1")
        counted = farm.state("wishes").events["league"].tally.games
        farm.wait(
            lambda: farm.state("wishes").events["league"].tally.games > counted, 60, "the game"
        )
        with harness.held(gate):
            play_begins()
            assert farm.worker.pid == drained, "a drain that was taken back ends nobody"
            farm.operate("drain", "hall-1")
        farm.wait(lambda: farm.worker.pid != drained, 60, "a new worker")
        counted = farm.state("wishes").events["league"].tally.games
        assert _causes(farm) == ["operator"], "the drained worker finished its game"
        farm.wait(
            lambda: farm.state("wishes").events["league"].tally.games > counted, 60, "a game after"
        )


def _causes(farm: harness.Farm) -> list[str]:
    entries = farm.ledger.read("wishes")
    return [entry.data["cause"] for entry in entries if entry.kind == "attempt_ended"]


def test_engines_and_referee_stay_on_their_cores(tmp_path: pathlib.Path) -> None:
    """The core sets of the hall's settings hold for the running processes."""
    cores = harness.CORES
    if len(cores) < 2:
        pytest.skip("hardware: one core only")
    with (
        harness.running(tmp_path, harness.pinned(1)) as farm,
        harness.held(tmp_path / "gate") as hold,
    ):
        engines = [harness.scripted(farm.life, n, *hold) for n in range(4)]
        farm.launch(harness.league(tmp_path / "season.toml", engines, control="90s+1s"), "bound")
        farm.wait(lambda: len(harness.engines(farm)) == 2, 30, "two engines")
        for pid in harness.engines(farm):
            assert os.sched_getaffinity(pid) == {cores[1]}
        referee = harness.referee_pid(farm)
        assert referee is not None
        assert os.sched_getaffinity(referee) == {cores[0]}
