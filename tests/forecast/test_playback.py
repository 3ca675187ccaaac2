"""``farm simulate --serve``: a simulated season that happens again, on the live page."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys

import driver
import harness
import httpx
import pytest
import theatre
from click import testing

from orchestrator import commands
from orchestrator.broadcast.content import season_view
from orchestrator.commands import launch
from orchestrator.forecast import game_model, season_simulation
from orchestrator.season.file import load

FARM = [sys.executable, "-m", "celery", "-A", "orchestrator", "farm"]


class Clock:
    """A clock that is set by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 500.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def test_entries_happen_at_their_times_so_many_times_as_fast() -> None:
    """Each entry is there when its time has come, none before; at the end time stands still."""
    journal = theatre.simulated("demo").journal
    clock = Clock()
    playback: season_view.Source = season_simulation.Playback(journal, 60, clock)
    (season,) = playback.seasons()
    assert playback.last(season) == sum(one.at_ms == journal[0].at_ms for one in journal)
    passed_seconds = (journal[-1].at_ms - journal[0].at_ms) / 1000
    for share in (0.25, 0.5, 0.9):
        clock.now = 500 + share * passed_seconds / 60
        due = [one for one in journal if one.at_ms <= playback.now_ms()]
        assert playback.read(season, limit=10_000) == due
        assert playback.last(season) == len(due)
        assert playback.read(season, len(due) - 2, 1) == [due[-2]]
    clock.now += passed_seconds
    assert playback.read(season, limit=10_000) == list(journal)
    assert playback.now_ms() == journal[-1].at_ms
    assert playback.read("another") == []


def test_what_people_are_waited_for_is_jumped_over(tmp_path: pathlib.Path) -> None:
    """A gate that an operator opens takes no time of the page's; games take all of it."""
    text = driver.season_text()
    shown_seconds = []
    for gate in ("", 'break = "operator"\n'):
        file = tmp_path / "season.toml"
        driver.load(tmp_path, text)  # its books
        file.write_text(text.replace('break = "10m"\n', gate))
        chances = game_model.Chances(interruption=0.1)
        loaded = load.load(file)
        played = season_simulation.Simulation.launched(loaded, 3, chances).run()
        assert played.waited_ms > 0, "hosts were lost, too"
        clock = Clock()
        playback = season_simulation.Playback(played.journal, 1.0, clock)
        (season,) = playback.seasons()
        took_ms = played.state.at_ms - played.state.launched_ms - played.waited_ms
        clock.now += took_ms / 1000 - 0.01
        assert playback.last(season) < len(played.journal)
        clock.now += 0.02
        assert playback.last(season) == len(played.journal)
        assert playback.now_ms() == played.journal[-1].at_ms
        shown_seconds.append(took_ms / 1000)
    assert shown_seconds[0] == shown_seconds[1]


def test_it_is_shown_as_simulated_and_plays_the_same() -> None:
    """The name says so; games and champion are those of the season without the word."""
    loaded = load.load(launch.season_file("demo"))
    plain, shown = (
        season_simulation.Simulation.launched(one, 7).run()
        for one in (loaded, season_simulation.marked(loaded))
    )
    assert shown.state.launched.season.name == "Demo Season (simulated)"
    results = [
        {name: game.finished and game.finished.result for name, game in one.state.games.items()}
        for one in (plain, shown)
    ]
    assert results[0] == results[1]


def test_the_season_is_played_on_the_live_page(tmp_path: pathlib.Path) -> None:
    """The page has it from launch to champion, TCEC's files too; Ctrl-C ends it, nothing stays."""
    words = ["simulate", "demo", "--seed", "7", "--serve", "--speed", "1000000", "--port", "0"]
    environment = {key: text for key, text in os.environ.items() if not key.startswith("FARM_")}
    process = subprocess.Popen(
        [*FARM, *words],
        stderr=subprocess.PIPE,
        text=True,
        env=environment | {"TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "live page is at" in line, line + process.stderr.read()
        url = line.rstrip().rpartition(" ")[2]

        def over() -> bool:
            seasons = httpx.get(f"{url}api/v1/seasons", timeout=60)
            return seasons.status_code == 200 and seasons.json()[0]["status"] == "finished"

        harness.wait(over, "the end of the season", 60)
        (told,) = httpx.get(f"{url}api/v1/seasons", timeout=60).json()
        assert httpx.get(f"{url}tcec/crosstable.json", timeout=60).json()["Order"]
        assert "Tournament Farm" in httpx.get(url, timeout=60).text
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0
    assert not list(tmp_path.glob("farm-simulate.*"))
    result = testing.CliRunner().invoke(
        commands.farm, ["simulate", "demo", "--seed", "7", "--json"]
    )
    assert told["champion"] == json.loads(result.output)["champion"]
    assert told["name"] == "Demo Season (simulated)"


@pytest.mark.parametrize("words", [["--speed", "2"], ["--serve", "--speed", "0"]])
def test_a_speed_that_makes_no_sense_is_refused(words: list[str]) -> None:
    """Without --serve nothing has a speed, and time does not stand still."""
    told = testing.CliRunner().invoke(commands.farm, ["simulate", "demo", "--seed", "7", *words])
    assert told.exit_code != 0
    assert "--speed" in str(told.output) + str(told.exception)
