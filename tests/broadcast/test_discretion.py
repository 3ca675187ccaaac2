"""What nobody outside shall read: the hosts' folders, and who is logged in there."""

from __future__ import annotations

import pathlib

import driver
import harness
import theatre

from orchestrator import contract
from orchestrator.arbiter import game_zip
from orchestrator.arbiter import record as pgn_record
from orchestrator.season import views
from orchestrator.season.amend import operations
from orchestrator.season.fold import entries, orders

SECRET = "/srv/secret-place"
LOGIN = "login-of-somebody"


def fail(season: driver.Driver, game: str) -> None:
    """Let an attempt end as by a file that is not the pinned one."""
    ended = contract.AttemptEnded(
        game=game,
        attempt=season.start(game),
        hall=driver.HALL,
        lane="",
        host="host",
        cause="not as pinned",
        evidence=f"Engine 1: net ({SECRET}/net.nn) is not the pinned file; by {LOGIN}@box",
    )
    season.append([contract.Draft.of("attempt_ended", ended)])
    season.settle()


def crash(season: driver.Driver, tape: theatre.Kept, game: str) -> None:
    """Let an engine crash whose options and last words hold the host's paths."""
    order = orders.game_order(season.state, game)
    attempt = season.start(game)
    taken = harness.claim("test", game, attempt)
    fact, packed = harness.invented(order, taken, contract.Token(1, 1))
    note = f"cannot be started: '{SECRET}/engines/one'"
    record = contract.GameRecord.decode(game_zip.unpack(packed)["record.json"])
    option = contract.OptionSetting(
        name="SyzygyPath", asked=SECRET, offered="<empty>", set=f"{SECRET}/six:{SECRET}/seven"
    )
    outcome = record.outcome.model_copy(update={"note": note})
    report = contract.EngineReport(options=(option,))
    whole = record.model_copy(update={"outcome": outcome, "white": report, "black": report})
    tape.records[attempt] = game_zip.pack(whole, pgn_record.pgn(whole), b"")
    told = fact.model_copy(update={"note": note, "record_sha256": "ab" * 32})
    season.append([contract.Draft.of(entries.GAME_FINISHED, told)])
    season.settle()


def test_no_path_and_no_login_is_public(tmp_path: pathlib.Path) -> None:
    """Documents, feeds, PGN: what a host said has no folders there; operators read it whole."""
    season = driver.Driver.launched(driver.load(tmp_path, driver.season_text()))
    season.settle()
    tape = theatre.Kept(season.journal)
    stage = theatre.projected(tape, tmp_path)

    def look() -> str:
        tape.shown = len(season.journal)
        stage.projector.look()
        found = [stage.shelf.get(place) for place in stage.shelf.places()]
        texts = [one.body for one in found if one is not None]
        return b"\n".join([*texts, *theatre.tree(tmp_path / "feeds").values()]).decode()

    first = str(season.state.ready_game())
    crash(season, tape, first)
    assert '"six:seven"' in look()
    assert "cannot be started: 'one'" in look()
    season.append(operations.pause(season.state, LOGIN, f"disk of {SECRET} is full"))
    assert "disk of secret-place is full" in look()
    season.append(operations.resume(season.state, LOGIN, ""))
    second = str(season.state.ready_game())
    while not season.state.held:
        fail(season, second)
    public = look()
    assert f"3 attempts at {second} in a row ended without a journaled ply" in public
    for word in (SECRET, "/srv", LOGIN, "net.nn"):
        assert word not in public, word
    told = views.season(season.state)
    assert f"{SECRET}/net.nn" in told["reason"]
    assert f"{SECRET}/net.nn" in told["waits"][0]["reason"]
    line = pathlib.Path(tmp_path / "feeds" / "live.pgn").read_text()
    assert "SyzygyPath=six:seven" in line
