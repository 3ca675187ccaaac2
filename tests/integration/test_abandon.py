"""``farm abandon``: refused, confirmed, journaled; and a real hall that gives its game up."""

from __future__ import annotations

import io
import json
import pathlib
import signal
from collections.abc import Iterator

import click.testing
import driver
import harness
import interrupted
import on_paper
import pytest

from orchestrator import commands
from orchestrator.commands import launch
from orchestrator.common import errors
from orchestrator.ledger import address, api, store
from orchestrator.season import views
from orchestrator.season.fold import orders, state

farm, play = harness.farm, on_paper.play
SHORT = "{ max_moves = 4 }"
WHY = ("--by", "ann", "--reason", "wrong roster")


@pytest.fixture(name="ledger")
def _ledger(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[store.RedisLedger]:
    """A ledger in real Redis with a launched season, which the commands find."""
    with on_paper.launched(tmp_path, monkeypatch, driver.season_text()) as opened:
        yield opened


def typed(text: str, *words: str) -> click.testing.Result:
    """Run a command of the farm, with what its operator types."""
    return click.testing.CliRunner().invoke(commands.farm, words, input=text)


def test_a_season_is_abandoned_by_typing_its_id(ledger: store.RedisLedger) -> None:
    """Nothing else confirms it; it is told with how far it came, and journaled with who and why."""
    play(ledger, 3)
    before = ledger.last("test")
    for text in ("", "\n", "yes\n", "tset\n"):
        done = typed(text, "abandon", "test", *WHY)
        assert done.exit_code == 2, done.output
        assert "cannot be taken back" in done.output
        assert "give --yes" in done.output
    assert "(nothing was changed)" in farm("abandon", "test", *WHY, "--dry-run")
    assert ledger.last("test") == before
    done = typed("test\n", "abandon", "test", *WHY)
    assert done.exit_code == 0, done.output
    assert "test is abandoned: 3 of 16 games were played" in done.output
    last = ledger.read("test", before)[0]
    assert (last.kind, last.data["reason"]) == ("season_abandoned", "wrong roster")
    assert last.by.startswith("ann@")
    assert ledger.holds("test") == {"abandoned": "the season was abandoned: wrong roster"}


def test_it_is_told_wherever_the_season_is(ledger: store.RedisLedger) -> None:
    """Status, log, schedule and their JSON say so; the outcome and the forecast do not exist."""
    play(ledger, 3)
    facts = json.loads(farm("abandon", "test", *WHY, "--yes", "--json"))
    assert facts["games"] == {"played": 3, "total": 16}
    assert (facts["abandoned"], facts["given_up"]) == (True, None)
    for shown in (farm("status"), farm("log"), farm("watch", "--once")):
        assert "abandoned" in shown
        assert "wrong roster" in shown
    (seen,) = json.loads(farm("status", "--json"))["seasons"]
    assert (seen["status"], seen["waits"]) == ("abandoned", [])
    assert farm("schedule", "--event", "league").count("cancelled") == 9
    assert "Season abandoned" in farm("graph")
    assert len(json.loads(farm("games", "--json"))) == 3
    assert sum(row["played"] for row in json.loads(farm("ratings", "--json"))["ratings"]) == 6
    for refused in ("outcome", "forecast"):
        assert "was abandoned" in farm(refused, code=3)
    assert "draw" in farm("verify-draws", "test")


def test_farm_up_tells_it_and_waits_no_longer(ledger: store.RedisLedger) -> None:
    """Its line says who and why; who waits for the season's end is refused with the reason."""
    said = io.StringIO()
    screen = harness.up_screen_of(ledger, said)
    screen.look()
    farm("abandon", "test", *WHY, "--yes")
    screen.look()
    assert said.getvalue().startswith("the season is abandoned by ann: wrong roster\n")
    with pytest.raises(errors.RefusedError, match="wrong roster"):
        screen.finished("test")


def test_what_cannot_be_abandoned_is_refused(ledger: store.RedisLedger) -> None:
    """Unknown, unnamed, without a reason, abandoned already, finished: by exit codes."""
    assert "nosuch" in farm("abandon", "nosuch", *WHY, "--yes", code=3)
    farm("abandon", *WHY, "--yes", code=2)
    assert "--reason" in farm("abandon", "test", "--yes", code=2)
    farm("abandon", "test", *WHY, "--yes")
    assert "the season is over" in farm("abandon", "test", *WHY, "--yes", code=3)
    for words in (("pause",), ("resume",), ("abort",), ("open-gate", "final")):
        assert "abandoned (wrong roster)" in farm(*words, code=3)
    for words in (("void", "league.1"), ("dismiss", "e1", "--event", "league")):
        assert "abandoned (wrong roster)" in farm(*words, "--reason", "r", code=3)


def test_another_season_is_launched_at_once(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is taken, another one is not; from then on commands mean the other season."""
    play(ledger, 1)
    file = str(tmp_path / "season.toml")
    farm("launch", file, "--id", "right")
    assert "several seasons are open" in farm("pause", code=2)
    refused = farm("launch", file, code=3)
    at_work = "is not over (1 of 16 games): it goes on where a farm is at work"
    assert f"{at_work}; to begin another one, give another id" in refused
    with monkeypatch.context() as here:
        here.setattr(address, "url", lambda: "")  # the farm of this machine
        told = str(launch._taken(ledger, "test"))
    assert f"{at_work}: here by `farm up` without --launch; to begin another one" in told
    farm("abandon", "test", *WHY, "--yes")
    assert "has been launched already and is over; give another id" in farm("launch", file, code=3)
    assert "right is paused" in farm("pause")
    assert ledger.holds("right").keys() == {"pause"}


def test_no_hall_can_begin_a_game_of_it(ledger: store.RedisLedger, tmp_path: pathlib.Path) -> None:
    """Its offer is taken back; one that comes back all the same is held, after a restore too."""
    folded = play(ledger, 2)
    game = folded.ready_game() or ""
    order = orders.game_order(folded, game).encode()
    ledger.offer(driver.HALL, "test", game, order, folded.seq)
    farm("abandon", "test", *WHY, "--yes")
    assert ledger.offered(driver.HALL) == {}
    for attempt in ("late", "later"):
        ledger.offer(driver.HALL, "test", game, order, ledger.last("test"))
        claim = api.Claim(driver.HALL, "test", game, attempt, "worker", "host", "", 60_000)
        assert isinstance(ledger.claim(claim), api.Held)
        farm("restore", "--archive", str(tmp_path / "archive"), "--reason", "test", *WHY[:2],
             "--without-games")  # fmt: skip
        assert ledger.set_checked("test", ledger.run_id())  # `serve` has compared them
    assert ledger.holds("test").keys() == {"abandoned"}


def test_a_hall_gives_its_game_up_and_plays_the_next_season(tmp_path: pathlib.Path) -> None:
    """Whatever becomes of link and serve meanwhile: no game more, and fsck finds nothing.

    The first season is abandoned while a game is in flight, the second one too, and its link is
    killed at the same moment; the third is played to its end.
    """
    with harness.running(tmp_path) as made:
        slow = [harness.scripted(made.life, strength, "--delay-ms", "150") for strength in (1, 2)]
        quick = [harness.scripted(made.life, strength) for strength in (1, 2)]
        for name, kill in (("first", False), ("second", True)):
            made.launch(harness.league(tmp_path / f"{name}.toml", slow, final_games=2), name)
            interrupted.reached(made, name)
            farm("abandon", name, *WHY, "--yes", env=made.environment(harness.OPERATOR))
            if kill:
                harness.kill(harness.link_pid(made), signal.SIGKILL)
                made.serve.kill()
            made.wait(lambda name=name: over(made, name), 60, f"{name}'s attempt to end")  # type: ignore[misc]
        file = harness.league(tmp_path / "right.toml", quick, final_games=2, adjudication=SHORT)
        made.launch(file, "right")
        made.wait(lambda: bool(results(made, "right")), 60, "a game of the right season")
        for name in ("first", "second"):
            folded = made.state(name)
            ends = [entry.kind for entry in made.ledger.read(name)]
            assert ends[-2:] == ["season_abandoned", "attempt_ended"]
            assert ends.count("attempt_started") == 1
            assert results(made, name) == []
            mirrored = state.fold(harness.journal(made, name))
            assert views.season(mirrored) == views.season(folded)
            checked = farm("fsck", name, "--json", env=made.environment(harness.OPERATOR))
            assert json.loads(checked)["findings"] == []


def results(made: harness.Farm, season: str) -> list[str]:
    """Return the finished games of a season."""
    games = made.state(season).games.values()
    return [game.id for game in games if game.finished is not None]


def over(made: harness.Farm, season: str) -> bool:
    """Say whether nothing of an abandoned season is in flight, and all of it is in the mirror."""
    folded = made.state(season)
    return folded.over and folded.running is None and made.ledger.mirrored(season) == folded.seq
