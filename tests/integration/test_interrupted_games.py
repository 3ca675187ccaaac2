"""``serve`` judges revoked and given-up attempts: ledger in memory, real archive, no engines."""

from __future__ import annotations

import pathlib
from typing import Any

import chess
import harness
import pytest
from twins import memory

from orchestrator import contract
from orchestrator.arbiter import board as boards
from orchestrator.commands import launch
from orchestrator.ledger import api, attempts
from orchestrator.season.file import load
from orchestrator.serve import archive


class Hall:
    """A hall that plays some plies and is lost: only the ledger's verbs."""

    def __init__(self, root: pathlib.Path, rule: str) -> None:
        self.now_ms = 1_000_000
        self.ledger = memory.MemoryLedger(lambda: self.now_ms)
        self.archive = root / "archive"
        engines = [harness.scripted(root / "life", strength) for strength in range(2)]
        file = harness.league(root / "season.toml", engines)
        file.write_text(
            file.read_text().replace('book = "b"', f'book = "b"\ninterruptions = {rule}')
        )
        launch.start(self.ledger, load.load(file), "s", harness.HALL, "00", "test")
        self.serve()

    def serve(self) -> None:
        """Make one pass, by a server that remembers nothing."""
        harness.serve_once(self.ledger, self.archive)

    def begin(self, attempt: str) -> tuple[api.Claim, contract.Token, contract.GameOrder]:
        """Claim the offered game."""
        (game,) = self.ledger.offered(harness.HALL).values()
        claim = harness.claim("s", game, attempt)
        claimed = self.ledger.claim(claim)
        assert isinstance(claimed, api.Claimed)
        return claim, claimed.token, contract.GameOrder.decode(claimed.order)

    def play(self, token: contract.Token, order: contract.GameOrder, attempt: str, cp: int) -> int:
        """Journal four plies; return the last one's number."""
        game = boards.GameBoard(order.opening)
        for _ in range(4):
            side, move = game.turn, next(iter(game.position().legal_moves))
            ply = contract.PlyRecord(
                ply=game.ply + 1,
                side=side,
                move=chess.Move.uci(move),
                san=game.push(move),
                think_ns=5,
                margin_ns=0,
                overhead_ns=0,
                white_clock_ns=100,
                black_clock_ns=200,
                score=contract.Score(cp=cp if side == "white" else -cp),
            )
            reply = self.ledger.write_ply(harness.HALL, token, attempt, ply.ply, ply.encode())
            assert isinstance(reply, api.Written)
        return game.ply

    def revoke(self) -> None:
        """Let the lease run out and revoke it, as the lookout does."""
        slot = self.ledger.slot(harness.HALL)
        assert slot is not None
        self.now_ms += 2 * slot.ttl_ms
        self.ledger.suspect(harness.HALL, slot.token, "look")
        end = attempts.ended(slot, self.ledger, "host lost", "no renewal")
        reply = self.ledger.revoke(harness.HALL, slot.token, "look", end)
        assert isinstance(reply, api.Recorded)


def test_a_revoked_lease_leads_to_a_resumed_game(tmp_path: pathlib.Path) -> None:
    """Nothing is offered before the verdict; then the game is, with plies and clocks."""
    hall = Hall(tmp_path, '"s16"')
    claim, token, order = hall.begin("a1")
    last = hall.play(token, order, "a1", cp=50)
    hall.revoke()
    assert hall.ledger.offered(harness.HALL) == {}
    assert isinstance(hall.ledger.claim(harness.claim("s", claim.game, "early")), api.NotReady)
    hall.serve()
    _, _, resumed = hall.begin("a2")
    assert resumed.progress is not None
    assert (resumed.progress.ply, resumed.progress.white_clock_ns) == (last, 105)
    kept = hall.archive / "s" / "games" / claim.game / "given-up" / "a1.jsonl"
    assert len(kept.read_text().splitlines()) == 4


def test_a_result_that_comes_while_the_end_is_archived_keeps_its_record(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worst moment: between the plies' way to the disk and their end in Redis."""
    hall = Hall(tmp_path, '"s16"')
    claim, token, order = hall.begin("a1")
    hall.play(token, order, "a1", cp=50)
    hall.revoke()
    finished, packed = harness.invented(order, claim, token)
    told: list[object] = []
    keep = archive.SeasonArchive.keep_given_up

    def kept(*words: Any) -> None:
        keep(*words)
        told.append(hall.ledger.complete(harness.HALL, token, "s", finished, packed))

    with monkeypatch.context() as late:
        late.setattr(archive.SeasonArchive, "keep_given_up", kept)
        hall.serve()
    hall.serve()
    folder = hall.archive / "s" / "games" / claim.game
    assert isinstance(told[0], api.Recorded), "the verdict was to play on: it is in time"
    assert contract.GameRecord.decode((folder / "record.json").read_bytes()).attempt == "a1"


def test_a_verdict_is_found_again_when_redis_has_forgotten_the_plies(
    tmp_path: pathlib.Path,
) -> None:
    """The plies of the archive are as good."""
    hall = Hall(tmp_path, '"s16"')
    claim, token, order = hall.begin("a1")
    hall.play(token, order, "a1", cp=50)
    payloads = hall.ledger.plies("a1")
    hall.revoke()
    folder = hall.archive / "s" / "games" / claim.game / "given-up"
    folder.mkdir(parents=True)
    (folder / "a1.jsonl").write_text("".join(f"{text}\n" for _, text in payloads))
    hall.ledger.archived("a1")
    hall.serve()
    _, _, resumed = hall.begin("a2")
    assert resumed.progress is not None
    assert len(resumed.progress.plies) == 4


@pytest.mark.parametrize("broken", [1, 3, 4])
def test_plies_that_cannot_be_read_are_left_to_the_organizers(
    tmp_path: pathlib.Path, broken: int
) -> None:
    """A ply of a later version is no reason to forget the game: nobody begins it again unasked."""
    hall = Hall(tmp_path, '"s16"')
    claim, token, order = hall.begin("a1")
    last = hall.play(token, order, "a1", cp=50)
    payloads = list(hall.ledger.plies("a1"))
    number, text = payloads[broken - 1]
    payloads[broken - 1] = (number, text.replace("{", '{"new":1,', 1))
    hall.ledger.give_back("a1", None, payloads)
    hall.revoke()
    hall.serve()
    (fact,) = [e.data for e in hall.ledger.read("s") if e.kind == "attempt_judged"]
    assert fact["asks"]
    assert f"of {last} plies {number - 1 if broken > 1 else 0} are left" in fact["evidence"]
    assert len(fact["progress"]["plies"]) == broken - 1
    assert hall.ledger.offered(harness.HALL).values() != {claim.game}


def test_lost_plies_are_left_to_the_organizers(tmp_path: pathlib.Path) -> None:
    """The end of the attempt tells how far it was; its plies are in no copy."""
    hall = Hall(tmp_path, '"s16"')
    claim, token, order = hall.begin("a1")
    last = hall.play(token, order, "a1", cp=50)
    hall.ledger.renew(harness.HALL, token, "a1", last, 0)
    hall.revoke()
    hall.ledger.archived("a1")
    hall.serve()
    (fact,) = [e.data for e in hall.ledger.read("s") if e.kind == "attempt_judged"]
    assert (fact["game"], fact["asks"], fact["progress"]["plies"]) == (claim.game, True, [])


def test_a_result_that_comes_between_revocation_and_verdict_is_archived(
    tmp_path: pathlib.Path,
) -> None:
    """The end of the attempt and its late result reach the archive in one pass: both are kept."""
    hall = Hall(tmp_path, '"cup"')
    claim, token, order = hall.begin("a1")
    hall.play(token, order, "a1", cp=50)
    hall.revoke()
    finished, packed = harness.invented(order, claim, token)
    reply = hall.ledger.complete(harness.HALL, token, "s", finished, packed)
    assert isinstance(reply, api.Recorded)
    hall.serve()
    folder = hall.archive / "s" / "games" / claim.game
    made = contract.GameRecord.decode((folder / "record.json").read_bytes())
    assert made.attempt == "a1"
    assert len((folder / "given-up" / "a1.jsonl").read_text().splitlines()) == 4
    assert (hall.ledger.record("a1"), hall.ledger.plies("a1")) == (None, [])


@pytest.mark.parametrize("cp", [1500, -1500])
def test_a_decided_game_is_archived_and_a_late_spool_refused(
    tmp_path: pathlib.Path, cp: int
) -> None:
    """The record is made of the journal; the lost host comes too late with another result."""
    hall = Hall(tmp_path, '"cup"')
    claim, token, order = hall.begin("a1")
    hall.play(token, order, "a1", cp=cp)
    hall.revoke()
    hall.serve()
    finished, packed = harness.invented(order, claim, token)
    assert isinstance(hall.ledger.complete(harness.HALL, token, "s", finished, packed), api.Refused)
    folder = hall.archive / "s" / "games" / claim.game
    made = contract.GameRecord.decode((folder / "record.json").read_bytes())
    assert made.outcome.result == ("1-0" if cp > 0 else "0-1")
    assert len(made.plies) == 4
    facts = [e.data for e in hall.ledger.read("s") if e.kind == "game_finished"]
    assert [fact["result"] for fact in facts] == [made.outcome.result]
    pgn = (hall.archive / "s" / "league.pgn").read_text()
    hall.serve()
    assert (hall.archive / "s" / "league.pgn").read_text() == pgn
