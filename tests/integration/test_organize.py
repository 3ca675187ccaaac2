"""The organizers' commands on a real ledger: journaled, refused, and safe against a claim."""

from __future__ import annotations

import io
import json
import pathlib
from collections.abc import Iterator

import driver
import harness
import on_paper
import pytest

from orchestrator import contract
from orchestrator.ledger import api, services, store, vitals
from orchestrator.season.fold import entries, orders

farm, play = harness.farm, on_paper.play


@pytest.fixture(name="ledger")
def _ledger(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[store.RedisLedger]:
    """A ledger in real Redis with a launched season whose league ends with its organizers."""
    with on_paper.launched(tmp_path, monkeypatch, on_paper.ORGANIZED) as opened:
        yield opened


def test_a_decision_is_asked_and_taken(ledger: store.RedisLedger) -> None:
    """The question is shown with its choices and command; the answer is journaled with who and why.

    No engine stands in the command: pasted unread it decides nothing.
    """
    assert "no decision is waiting" in farm("decisions")
    play(ledger, 12)
    shown = farm("decisions")
    assert "choose 2 of e1, e2, e3, e4, best first" in shown
    assert "farm season decide league:place-1 --choose ENGINE,ENGINE" in shown
    assert "--season test" not in shown
    assert "--reason WHY --season test" in farm("decisions", "test")
    assert "(`farm season decisions --season test`)" in " ".join(farm("status", code=3).split())
    assert json.loads(farm("decisions", "--json"))[0]["choose"] == 2
    why = ("--by", "ann", "--reason", "lots were drawn")
    farm("decide", "league:place-1", "--choose", "e3", *why, code=2)
    farm("decide", "league:place-9", "--choose", "e3,e1", *why, code=3)
    farm("decide", "league:place-1", "--choose", "e3,e1", "--dry-run", *why)
    assert "waits" not in farm("decisions")
    farm("decide", "league:place-1", "--choose", "e3,e1", *why)
    assert "no decision is waiting" in farm("decisions")
    last = ledger.read("test")[-1]
    assert (last.kind, last.data["reason"]) == ("decided", "lots were drawn")
    assert last.by.startswith("ann@")
    assert play(ledger, 0).events["final"].arrivals["league"].engines == ("e3", "e1")


def test_every_open_season_is_asked(ledger: store.RedisLedger, tmp_path: pathlib.Path) -> None:
    """A question waits in one season while another one is played: it is not passed over."""
    play(ledger, 12)
    file = tmp_path / "second.toml"
    file.write_text(driver.season_text().replace('id = "test"', 'id = "second"'))
    farm("launch", str(file), "--by", "ann")
    shown = farm("decisions")
    assert "second: no decision is waiting" in shown
    assert "--choose ENGINE,ENGINE --by NAME --reason WHY --season test" in shown
    assert [each["season"] for each in json.loads(farm("decisions", "--json"))] == ["test"]
    assert "league:place-1" not in farm("decisions", "second")


def test_a_gate_that_waits_for_its_director_is_named(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No decision by the rules, but the season waits all the same: the command that opens it."""
    season = driver.season_text().replace('id = "league"', 'id = "league"\nbreak = "operator"')
    with on_paper.launched(tmp_path, monkeypatch, season) as ledger:
        play(ledger, 0)
        assert "league waits for you: farm season open-gate league" in farm("decisions")
        farm("open-gate", "league", "--by", "ann")
        assert "waits for you" not in farm("decisions")


def test_a_long_reason_widens_no_table(ledger: store.RedisLedger) -> None:
    """How a game ended is cut there, and says once that it is annulled; ``--json`` has it whole."""
    play(ledger, 1)
    farm("pause")
    why = "the engine's author asked for it, and the arbiters have agreed " * 5
    farm("adjudicate", "league.1", "--result", "1-0", "--by", "ann", "--reason", why)
    farm("void", "league.1", "--by", "ann", "--reason", why)
    for words in (("schedule",), ("game", "list")):
        said = farm(*words)
        assert max(map(len, said.splitlines())) < 200
        assert why.strip() not in " ".join(said.split())
        assert said.count("annulled") == 1
    rows = json.loads(farm("game", "list", "--json"))
    assert rows[0]["note"].count(why.strip()) == 2


def test_a_farm_that_is_dead_is_an_alarm(ledger: store.RedisLedger) -> None:
    """Redis outlives ``farm serve``: status, the check and the console say so, until the end.

    One that has never reported is no alarm: nothing was started yet.
    """
    assert "ALARM" not in farm("status")
    report = services.Serve(at_ms=ledger.now_ms(), host="tower")
    ledger.set_service(services.SERVE, report.encode())
    assert "a farm is at work on tower" in " ".join(farm("up", "--no-web", code=3).split())
    ledger.set_service(services.SERVE, report.encode())
    assert "ALARM" not in farm("status", "test")
    old = report.model_copy(update={"at_ms": report.at_ms - 3_600_000})
    ledger.set_service(services.SERVE, old.encode())
    silent = "no `farm serve` has been at work for 1h"
    for words in (("status",), ("status", "test"), ("serve", "--check")):
        said = " ".join(farm(*words, code=3).split())
        assert silent in said
        assert "ran on tower; start `farm up` there again" in said
    assert silent in json.loads(farm("status", "--json", code=3))["alarms"]["farm serve"]
    assert f"ALARM: {silent}" in " ".join(farm("console", "--once").split())
    farm("abandon", "test", "--yes", "--by", "ann", "--reason", "over")
    assert "ALARM" not in farm("status")


def test_what_waits_for_a_person_is_an_alarm_unless_somebody_wished_it(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hold of season or hall ends with 3, for scripts that watch; a pause and gates do not.

    The console lists the same.
    """

    def status(code: int) -> str:
        said = " ".join(farm("status", code=code).split())
        alarms = json.loads(farm("status", "--json", code=code))["alarms"]
        assert all(f"ALARM, {name}: {reason}" in said for name, reason in alarms.items())
        assert said.count("ALARM") == len(alarms)
        return said

    season = driver.season_text().replace('id = "league"', 'id = "league"\nbreak = "operator"')
    with on_paper.launched(tmp_path, monkeypatch, season) as ledger:
        play(ledger, 0)
        gate = "the gate before League opens when you open it"
        opens = "`farm season open-gate league --season test`"
        assert f"test waits for you: {gate} ({opens})" in status(0)
        farm("season", "pause", "--reason", "lunch")
        assert "lunch" in status(0)
        why = entries.Held(reason="no move")
        ledger.append("test", ledger.last("test"), [contract.Draft.of(entries.HELD, why)], "serve")
        assert "ALARM, test: held: no move (`farm season resume --season test`)" in status(3)
        assert status(3).count("no move") == 1
        assert {"waits: held: no move", f"waits: {gate}"} <= {
            line.strip() for line in farm("console", "--once").splitlines()
        }
        farm("season", "resume")
        farm("season", "amend", "gate", "league", "--at", "+1h", "--reason", "late")
        assert "waits for you" not in status(0)
        ledger.open_hall(driver.HALL, "host", "worker")
        hall = f"hall:{driver.HALL}"
        fact = contract.Draft("hall_held", {"hall": driver.HALL, "reason": "memory"})
        last = ledger.last(api.FARM)
        ledger.append(api.FARM, last, [fact], "hall", [api.Hold(hall, "sick", "memory")])
        released = f"(`farm host release {driver.HALL}`)"
        assert f"ALARM, hall {driver.HALL}: {driver.HALL} is held: memory {released}" in status(3)


def test_farm_up_tells_what_is_asked_and_decided(ledger: store.RedisLedger) -> None:
    """Its lines name the question with the command that shows it, the answer, and who gave it."""
    told = io.StringIO()
    screen = harness.up_screen_of(ledger, told)
    screen.look()
    assert not told.getvalue()
    assert "no operator has changed" in farm("log")
    play(ledger, 12)
    screen.look()
    assert "league:place-1: the organizers are asked (`farm season decisions`)\n" in told.getvalue()
    farm("decide", "league:place-1", "--choose", "e3,e1", "--by", "ann", "--reason", "lots")
    screen.look()
    assert told.getvalue().endswith("league:place-1: decided by ann: e3, e1\n")


def test_farm_up_tells_at_its_start_what_waits(ledger: store.RedisLedger) -> None:
    """What was there before is not told again, but what needs somebody is."""
    play(ledger, 12)
    farm("season", "pause", "--reason", "lunch")
    told = io.StringIO()
    screen = harness.up_screen_of(ledger, told)
    for _ in range(2):
        screen.look()
    pause, question = told.getvalue().splitlines()
    assert pause == "test waits: paused: lunch (`FARM_DATA=/x farm season resume --season test`)"
    assert question.startswith("test waits: league:place-1: place 1: to final;")
    assert question.endswith("(`FARM_DATA=/x farm season decisions --season test`)")


def test_a_hall_that_no_worker_has_opened_is_told(ledger: store.RedisLedger) -> None:
    """A season that was launched for a hall that is none (``--hall``) waits, and it is seen why."""
    folded = play(ledger, 0)
    game = folded.ready_game() or ""
    ledger.offer(driver.HALL, "test", game, orders.game_order(folded, game).encode(), folded.seq)
    assert "no worker has been started there yet" in " ".join(farm("status").split())
    assert f"systemctl start farm-hall@{driver.HALL}" in " ".join(farm("status").split())
    ledger.open_hall(driver.HALL, "host", "worker")
    assert "no worker" not in farm("status")


def test_an_unknown_hall_is_forgotten_with_its_season(ledger: store.RedisLedger) -> None:
    """Abandoned, a season that was launched for a mistyped hall leaves no line of it."""
    folded = play(ledger, 0)
    game = folded.ready_game() or ""
    ledger.offer(driver.HALL, "test", game, orders.game_order(folded, game).encode(), folded.seq)
    farm("abandon", "test", "--yes", "--reason", "mistyped")
    assert "no worker has been started" not in farm("status")


def test_a_launch_warns_of_a_hall_that_plays_nothing(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """One that no worker has opened, while others are, and one that is drained; else nothing."""
    file = tmp_path / "again.toml"
    file.write_text(driver.season_text())

    def warned(hall: str) -> str:
        said = farm("launch", str(file), "--id", "again", "--hall", hall, "--dry-run")
        lines = [line for line in said.splitlines() if line.startswith("Warning: ")]
        return " ".join(line for line in lines if "on this machine" not in line)

    assert warned("hall-7") == "", "of a farm that has no hall yet"
    ledger.open_hall("hall-1", "host", "worker")
    assert "no worker has opened hall-7" in warned("hall-7")
    assert "halls: hall-1" in warned("hall-7")
    assert warned("hall-1") == ""
    farm("drain", "hall-1", "--reason", "kernel")
    assert "hall-1 is drained (kernel)" in warned("hall-1")


def test_a_launch_warns_of_a_name_that_another_season_has(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Viewers' files are named by it, with the id only where ``--id`` gave another."""
    for name in ("one", "two"):
        text = driver.season_text().replace('id = "test"', f'id = "{name}"')
        (tmp_path / f"{name}.toml").write_text(text)
    farm("launch", str(tmp_path / "one.toml"), "--by", "ann")
    two = str(tmp_path / "two.toml")
    said = " ".join(farm("launch", two, "--dry-run").split())
    assert "Warning: one has the name 'Test Season', too" in said
    assert "has the name" not in farm("launch", two, "--id", "three", "--dry-run")


def test_a_hall_is_named_where_there_are_several(ledger: store.RedisLedger) -> None:
    """Drain, undrain and release take the only hall, and refuse to choose one of two."""
    ledger.open_hall("one", "a", "a/one")
    assert "a/one ends after its running game" in farm("drain", "--reason", "upgrade")
    assert ledger.drained("one", "a/one") == "upgrade"
    assert "a/one goes on" in farm("undrain")
    ledger.open_hall("two", "b", "b/two")
    for command in ("drain", "undrain", "release-hall"):
        assert "name one: one, two" in farm(command, code=2)
    assert ledger.drained("one", "a/one") == ""


def test_a_hall_whose_host_is_not_heard_is_an_alarm(ledger: store.RedisLedger) -> None:
    """While a season is open there, and no other host of that hall is heard."""

    def heard(host: str, seconds_ago: int) -> None:
        at_ms = ledger.now_ms() - seconds_ago * 1000
        ledger.set_vitals(host, vitals.Vitals(host=host, at_ms=at_ms, hall=driver.HALL).encode())

    play(ledger, 0)
    ledger.open_hall(driver.HALL, "cpu2", "cpu2/first")
    heard("cpu2", 30)
    assert "silent" not in farm("status")
    assert "SILENT" not in farm("hosts", "list")
    heard("cpu2", 125)
    told = " ".join(farm("status", code=3).split())
    assert f"{driver.HALL}: no game, cpu2 silent for 2m 0" in told
    assert f"ALARM, hall {driver.HALL}: cpu2 silent for 2m 0" in told
    assert "SILENT" in farm("hosts", "list")
    heard("cpu3", 5)
    assert "silent" not in farm("status")
    heard("cpu3", 100)
    assert "cpu2, cpu3 silent for 1m 4" in " ".join(farm("status", code=3).split())
    last, hold = ledger.last(api.FARM), api.Hold(f"hall:{driver.HALL}", "sick", "memory")
    fact = contract.Draft("hall_held", {"hall": driver.HALL, "reason": "memory"})
    ledger.append(api.FARM, last, [fact], "hall", [hold])
    told = " ".join(farm("status", code=3).split())
    alarm = f"ALARM, hall {driver.HALL}: {driver.HALL} is held: memory"
    assert f"{alarm} (`farm host release {driver.HALL}`); cpu2, cpu3 silent for" in told
    farm("host", "release", driver.HALL)
    farm("abandon", "test", "--yes", "--reason", "sold")
    assert "ALARM" not in farm("status")


def test_a_drained_hall_says_how_it_goes_on(ledger: store.RedisLedger) -> None:
    """With no game its worker has ended: who starts it, where, and which season waits for it."""
    play(ledger, 0)
    ledger.open_hall(driver.HALL, "cpu2", "cpu2/first")
    seen = vitals.Vitals(host="cpu2", at_ms=ledger.now_ms(), hall=driver.HALL)
    ledger.set_vitals("cpu2", seen.encode())
    farm("drain", driver.HALL, "--reason", "upgrade")
    told = " ".join(farm("status").split())
    assert "its worker ends after its game" not in told
    unit = f"`systemctl start farm-hall@{driver.HALL}` on cpu2 starts it again"
    assert f"its worker has ended; test waits for it; {unit}" in told
    farm("hosts", "forget", "cpu2", "--by", "ann", "--reason", "sold", "--dry-run")
    assert "cpu2" in ledger.vitals()
    farm("hosts", "forget", "cpu2", "--by", "ann", "--reason", "sold")
    fact = ledger.read(api.FARM)[-1]
    assert (fact.kind, fact.data["reason"]) == ("host_forgotten", "sold")
    assert fact.by.startswith("ann@")
    told = " ".join(farm("status").split())
    assert "its host was forgotten; test waits for it: make a host of that name again" in told
    farm("abandon", "test", "--yes", "--reason", "its hall is gone")
    assert "was forgotten" not in farm("status")


def test_what_is_said_below_a_season_has_the_whole_line(
    ledger: store.RedisLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not folded to the width of the table above it."""
    monkeypatch.setenv("COLUMNS", "200")
    play(ledger, 0)
    reason = "the power of the whole room is off until the electrician has been here [twice]"
    farm("pause", "--reason", reason)
    (below,) = (line for line in farm("status").splitlines() if "0 of" in line)
    assert below.endswith(reason)


def test_corrections_take_the_offer_back_first(ledger: store.RedisLedger) -> None:
    """After a correction the hall cannot claim what was on offer before it."""
    folded = play(ledger, 3)
    game = folded.ready_game() or ""
    order = orders.game_order(folded, game).encode()
    ledger.offer(driver.HALL, "test", game, order, folded.seq)
    assert "farm season pause" in farm("void", game, "--reason", "wrong list", code=3)
    farm("pause", "--reason", "a question")
    farm("adjudicate", game, "--result", "1-0", "--reason", "power cut", "--dry-run")
    assert ledger.offered(driver.HALL) == {"test": game}
    farm("adjudicate", game, "--result", "1-0", "--reason", "power cut", "--by", "ann")
    farm("replay", "league.1", "--reason", "wrong network")
    assert "game to be replayed" in " ".join(farm("log").split())
    farm("void", "league.2", "--reason", "wrong list")
    farm("withdraw", "e4", "--event", "league", "--reason", "its author asked")
    assert ledger.offered(driver.HALL) == {}
    farm("resume")
    claim = api.Claim(driver.HALL, "test", game, "late", "worker", "host", "", 60_000)
    assert isinstance(ledger.claim(claim), api.NotReady)
    kinds = [entry.kind for entry in ledger.read("test")][-5:]
    assert kinds == [
        "game_adjudicated",
        "game_voided",
        "game_voided",
        "engine_excluded",
        "resumed",
    ]
    assert "excluded" in farm("standings")
    assert "annulled" in farm("games")


def test_a_cascade_is_taken_by_name_only(ledger: store.RedisLedger) -> None:
    """A result under a ranking is refused with what hangs on it, then changed by that list."""
    play(ledger, 12)
    farm("pause")
    wrong = ("adjudicate", "league.1", "--result", "1-0", "--reason", "a book was found")
    assert "--cascade league" in farm(*wrong, code=3)
    farm(*wrong, "--cascade", "league")
    assert play(ledger, 0).events["league"].rows[0].half_points == 7


def test_an_outcome_needs_a_finished_season(ledger: store.RedisLedger) -> None:
    """``farm outcome`` and ``farm verify-draws`` refuse while the season runs."""
    assert "not over" in farm("outcome", code=3)
    assert "sealed" in farm("verify-draws", "test", code=3)
    farm("outcome", "--drop", "nobody", code=2)
