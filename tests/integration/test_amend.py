"""Amending a running season on a real ledger: journaled, shown, refused, safe against a claim."""

from __future__ import annotations

import json
import pathlib
import threading
from collections.abc import Iterator

import driver
import harness
import on_paper
import pytest
from click import testing

from orchestrator import commands, contract
from orchestrator.commands import common
from orchestrator.ledger import api, store
from orchestrator.season.fold import entries, orders, state
from orchestrator.serve import loop

farm, play = harness.farm, on_paper.play
WHY = ("--by", "ann", "--reason", "an amendment")
ENTRY = """
schema = 1
[[engine]]
id = "new"
name = "Newcomer"
version = "3"
rating = 2700
command = ["farm-engine"]
neural = { training = "T", network = "N", engine = "E" }
"""


@pytest.fixture(name="ledger")
def _ledger(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[store.RedisLedger]:
    """A ledger in real Redis with a launched season."""
    with on_paper.launched(tmp_path, monkeypatch, driver.season_text()) as opened:
        yield opened


def offered(ledger: store.RedisLedger) -> state.SeasonState:
    """Play two games, offer the hall the next one as ``serve`` does, and pause."""
    folded = play(ledger, 2)
    game = folded.ready_game() or ""
    ledger.offer(driver.HALL, "test", game, orders.game_order(folded, game).encode(), folded.seq)
    farm("pause", *WHY)
    return folded


def test_an_engine_is_replaced_under_audit(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """The offer with the old engine is taken back; who, why and what follows are told."""
    offered(ledger)
    path = tmp_path / "engines.toml"
    path.write_text(ENTRY)
    words = ("amend", "engine", "e1", "--event", "league", "--with", "new", "--played", "replay")
    assert "--entry" in farm(*words, *WHY, code=2)
    told = farm(*words, "--entry", str(path), *WHY, "--dry-run")
    assert "games change hands" in told
    assert ledger.offered(driver.HALL) != {}
    farm(*words, "--entry", str(path), *WHY)
    assert ledger.offered(driver.HALL) == {}
    folded = common.fold(ledger, "test")
    assert folded.engines["new"].name == "Newcomer"
    assert folded.events["league"].substitutes == {"e1": "new"}
    assert json.loads(farm("status", "--json"))["seasons"][0]["events"][0]["substitutes"]
    listed = {row["engine"]: row for row in json.loads(farm("engine", "list", "--json"))}
    assert (listed["new"]["version"], listed["new"]["rating"]) == ("3", 2700)
    assert "rating: 2700" in farm("engine", "show", "new")
    acts = json.loads(farm("log", "--json"))
    assert (acts[-1]["kind"], acts[-1]["name"]) == ("engine_replaced", "ann")
    assert acts[-1]["by"].startswith("ann@")
    assert "an amendment" in farm("log")
    assert "plays league already" in farm(*words, "--entry", str(path), *WHY, code=3)


@pytest.mark.parametrize(
    "words",
    [
        ("amend", "engine", "e1", "--event", "league", "--with", "new", "--played", "replay"),
        ("disqualify", "e1", "--event", "league", "--with", "new", "--played", "replay"),
        ("engine", "add", "new"),
    ],
)
def test_a_newcomer_that_cannot_play_as_written_is_warned_of(
    ledger: store.RedisLedger, tmp_path: pathlib.Path, words: tuple[str, ...]
) -> None:
    """As at a launch: before it is done, too, since a seat is not given back."""
    offered(ledger)
    path = tmp_path / "engines.toml"
    path.write_text(ENTRY.replace('command = ["farm-engine"]', 'command = ["/nowhere/fairymax"]'))
    arguments = [*words, "--file" if "add" in words else "--entry", str(path), *WHY]
    for more in (["--dry-run"], []):
        done = testing.CliRunner().invoke(commands.farm, [*arguments, *more])
        assert done.exit_code == 0, done.output
        assert "no program on this machine, or none that can be executed: new" in done.stderr
        assert 'speak XBoard: protocol = "xboard" belongs into its entry' in done.stderr


def test_a_disqualified_engine_is_replaced_or_not(ledger: store.RedisLedger) -> None:
    """The director names the replacement and what happens to the games played."""
    offered(ledger)
    words = ("disqualify", "e1", "--event", "league", "--by", "ann", "--reason", "hidden book")
    assert "--with" in farm(*words, "--played", "keep", code=2)
    assert "nobody takes its seat" in farm(*words)
    excluded = common.fold(ledger, "test").events["league"].excluded["e1"]
    assert (excluded.cause, excluded.reason) == ("disqualification", "hidden book")
    assert "no engine is flagged" in farm("flags")
    assert "not flagged" in farm("dismiss", "e2", "--event", "league", *WHY, code=3)


def test_a_disqualification_with_a_substitute_is_told_as_one(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """The log says that the engine was disqualified, and by whom it is replaced."""
    offered(ledger)
    path = tmp_path / "engines.toml"
    path.write_text(ENTRY)
    words = ("disqualify", "e1", "--event", "league", "--by", "ann", "--reason", "hidden book")
    farm(*words, "--with", "new", "--entry", str(path), "--played", "keep")
    told = " ".join(farm("log").split())
    assert "disqualified, replaced" in told
    about = json.loads(farm("log", "--json"))[-1]["about"]
    assert (about["cause"], about["engine"], about["substitute"]) == (
        "disqualification",
        "e1",
        "new",
    )


def test_a_seat_in_an_event_to_come_changes_hands_from_its_beginning(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """No games are counted that nobody has played yet; no pause is needed."""
    play(ledger, 2)
    path = tmp_path / "engines.toml"
    path.write_text(ENTRY)
    words = ("amend", "engine", "e1", "--event", "final", "--with", "new", "--entry", str(path))
    told = farm(*words, "--dry-run", *WHY)
    assert told.startswith("new will play final in the seat of e1, from its beginning on\n")
    assert told.endswith("(nothing was changed)\n")
    farm(*words, *WHY)
    back = farm("amend", "engine", "new", "--event", "final", "--with", "e1", *WHY)
    assert "e1 plays final in the seat of new" in back, "it can be taken back, as was said"


def test_a_held_season_is_amended_as_it_stands(ledger: store.RedisLedger) -> None:
    """Nothing is in flight and none is offered: no pause is asked for, and it stays held."""
    folded = play(ledger, 2)
    game = folded.ready_game() or ""
    ledger.offer(driver.HALL, "test", game, orders.game_order(folded, game).encode(), folded.seq)
    words = ("disqualify", "e1", "--event", "league", *WHY)
    assert "pause the season first" in farm(*words, code=3)
    fact = contract.Draft.of(entries.HELD, entries.Held(reason="a program is missing"))
    ledger.append("test", folded.seq, [fact], "serve")
    farm(*words)
    assert ledger.offered(driver.HALL) == {}
    after = common.fold(ledger, "test")
    assert "e1" in after.events["league"].excluded
    assert (after.held, after.ready_game()) == ("a program is missing", None)
    farm("resume", *WHY)
    assert common.fold(ledger, "test").ready_game() is not None


def test_a_book_is_mended_without_telling_openings(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """The file's checksum stands in the journal; what is printed tells no opening."""
    offered(ledger)
    path = tmp_path / "new.epd"
    path.write_text("".join(driver.book_text(48).splitlines(keepends=True)[32:]))
    told = farm("amend", "book", "short", "--file", str(path), *WHY, "--json")
    facts = json.loads(told)
    assert (facts["exits"], len(facts["games"])) == (6, 8)  # two exits and their games stay
    assert "rnbq" not in told
    assert "rnbq" not in farm("log", "--json")
    assert ledger.read("test")[-1].data["sha256"] == facts["sha256"]
    assert "no book" in farm("amend", "book", "long", "--file", str(path), *WHY, code=3)
    assert "missing" in farm("amend", "book", "short", "--file", "missing.pgn", *WHY, code=2)


def test_a_planned_pause_forbids_claims_when_it_comes(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """``serve`` journals it at its time and the hall can claim nothing from then on."""
    assert "past" in farm("pause", "--at", "2020-01-01T00:00", *WHY, code=2)
    for word in ("soon", "0001-01-01", "+1y"):
        assert "no time" in farm("pause", "--at", word, *WHY, code=2)
    for word in ("9999-12-31T23:59", "+9999999d"):  # nobody could show it
        assert "ten years" in farm("pause", "--at", word, *WHY, code=2)
    farm("pause", "--at", "+1ms", *WHY, "--dry-run")
    farm("pause", "--at", "+200ms", *WHY)
    stop = threading.Event()
    server = loop.Server(ledger, tmp_path / "archive", ring=lambda hall: None)
    deadline = ledger.now_ms() + 60_000
    try:
        while not ledger.holds("test") and ledger.now_ms() < deadline:
            server.once()
            stop.wait(0.05)
    finally:
        server.close()
    assert ledger.holds("test") == {"pause": "an amendment"}
    folded = common.fold(ledger, "test")
    assert folded.paused == "an amendment"
    game = folded.events["league"].order[0]
    claim = api.Claim(driver.HALL, "test", game, "late", "worker", "host", "", 60_000)
    assert isinstance(ledger.claim(claim), api.NotReady | api.Held)
    farm("resume", *WHY)
    assert ledger.holds("test") == {}


def test_gates_hosts_and_policies_are_amended(ledger: store.RedisLedger) -> None:
    """Each is shown in the status and refused where nothing is to be changed."""
    play(ledger, 0)
    farm("amend", "gate", "final", "--at", "+2d", *WHY)
    assert "no gate before it" in farm("amend", "gate", "league", "--at", "+2d", *WHY, code=3)
    farm("amend", "away-policy", "others", *WHY)
    assert "already" in farm("amend", "away-policy", "others", *WHY, code=3)
    assert "--engine says who runs on box" in farm("amend", "host", "box", "--away", *WHY, code=2)
    farm("amend", "host", "box", "--away", "--engine", "e1", *WHY)
    told = json.loads(farm("status", "--json"))["seasons"][0]
    assert (told["away"], told["away_policy"]) == ({"box": ["e1"]}, "others")
    assert "away: box (policy: others)" in " ".join(farm("status").split())
    farm("amend", "host", "box", "--back", *WHY)
    assert "not away" in farm("amend", "host", "box", "--back", *WHY, code=3)
    kinds = [act["kind"] for act in json.loads(farm("log", "--json"))]
    assert kinds == ["launched", "gate_moved", "away_policy_set", "host_away", "host_back"]


def old_pgn(folded: state.SeasonState, game: str, path: pathlib.Path) -> str:
    """Write a game of the schedule as played elsewhere, won by Black; return where it is."""
    found = folded.game(game)
    white, black = (folded.engines[one].name for one in (found.white, found.black))
    text = f'[Event "x"]\n[White "{white}"]\n[Black "{black}"]\n[Result "0-1"]\n\n'
    path.write_text(text + "1. f3 e5 2. g4 Qh4# 0-1\n")
    return str(path)


def test_games_are_imported_and_archived(ledger: store.RedisLedger, tmp_path: pathlib.Path) -> None:
    """The preview changes nothing; the PGN reaches the archive; a second import is refused."""
    path = old_pgn(offered(ledger), "league.3", tmp_path / "old.pgn")
    preview = farm("import", path, "--dry-run")
    assert "would be imported" in preview
    assert "points: " in preview
    assert "it can be taken back: `farm game replay`" in preview
    assert common.fold(ledger, "test").game("league.3").open
    farm("import", path, code=2)
    farm("resume")
    early = farm("import", path, "--dry-run", code=3)
    assert "would be imported" in early, "the preview needs no pause"
    assert "pause the season first" in early
    farm("pause")
    told = json.loads(farm("import", path, *WHY, "--json"))
    assert [line["game"] for line in told["games"]] == ["league.3"]
    assert ledger.offered(driver.HALL) == {}
    assert "result already" in farm("import", path, *WHY, code=3)
    harness.serve_once(ledger, tmp_path / "archive")
    kept = tmp_path / "archive" / "test"
    assert "Qh4#" in (kept / "games" / "league.3" / "game.pgn").read_text()
    assert "Qh4#" in (kept / "league.pgn").read_text()


def test_an_imported_game_is_published_as_it_counts(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Annulled games of the file are passed over; a corrected one has the result that was set."""
    path = pathlib.Path(old_pgn(offered(ledger), "league.3", tmp_path / "old.pgn"))
    annulled = (
        '[Event "x"]\n[White "A"]\n[Black "B"]\n[Result "*"]\n[Termination "annulled"]\n\n*\n'
    )
    path.write_text(f"{annulled}\n{path.read_text()}")
    told = json.loads(farm("import", str(path), *WHY, "--json"))
    assert [line["game"] for line in told["games"]] == ["league.3"]
    farm("adjudicate", "league.3", "--result", "1/2-1/2", *WHY)
    harness.serve_once(ledger, tmp_path / "archive")
    kept = tmp_path / "archive" / "test"
    assert "0-1" in (kept / "games" / "league.3" / "game.pgn").read_text()
    told = " ".join((kept / "league.pgn").read_text().split())
    assert '[Result "1/2-1/2"]' in told
    assert "Qh4# {the organizers set 1/2-1/2 instead of 0-1" in told
    assert told.endswith("played: 0-1} 1/2-1/2")


def test_a_hall_that_was_away_tells_nothing_of_an_imported_game(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Its game was imported meanwhile: what it has is refused, not a second result."""
    folded = play(ledger, 2)
    game = folded.ready_game() or ""
    ledger.offer(driver.HALL, "test", game, orders.game_order(folded, game).encode(), folded.seq)
    claim = api.Claim(driver.HALL, "test", game, "away", "worker", "host", "", 60_000)
    claimed = ledger.claim(claim)
    assert isinstance(claimed, api.Claimed)
    ended = contract.AttemptEnded(
        game=game, attempt="away", hall=driver.HALL, lane="", host="host", cause="host lost"
    )
    ledger.give_up(driver.HALL, claimed.token, "test", ended)
    harness.serve_once(ledger, tmp_path / "archive")
    farm("pause", *WHY)
    farm("import", old_pgn(folded, game, tmp_path / "old.pgn"), *WHY)
    told = driver.finished(game, "away", ("1-0", driver.Ending.CHECKMATE))
    reply = ledger.complete(driver.HALL, claimed.token, "test", told, b"")
    assert isinstance(reply, api.Refused)
    done = common.fold(ledger, "test").game(game).finished
    assert done is not None
    assert (done.result, done.imported) == ("0-1", True)


def test_a_season_launched_paused_begins_with_the_resume(
    ledger: store.RedisLedger, tmp_path: pathlib.Path
) -> None:
    """Neither an event nor a game: what was played elsewhere can be imported first."""
    file = str(tmp_path / "season.toml")
    assert "farm season resume" in farm("launch", file, "--id", "again", "--paused", "--by", "ann")
    server = loop.Server(ledger, tmp_path / "archive", ring=lambda hall: None)
    server.once()
    folded = common.fold(ledger, "again")
    assert (folded.paused, folded.current) == ("launched paused", None)
    assert ledger.holds("again") == {"pause": "launched paused"}
    farm("resume", "again", "--by", "ann")
    server.once()
    server.close()
    assert common.fold(ledger, "again").ready_game() == "league.1"
    assert not ledger.holds("again")
