"""The contract of attempts: who has the hall, what he may write, how it ends; for both twins."""

from __future__ import annotations

import pytest
import scene

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api

Twin = scene.Twin


# -- halls and claims --------------------------------------------------------------------


def test_the_first_host_keeps_the_hall(ledger: Twin) -> None:
    """Other hosts may neither open nor claim it; further workers of the host may."""
    assert ledger.open_hall("main", "h1", "w1") == api.Opened()
    assert ledger.open_hall("main", "h1", "w1") == api.Opened()
    assert ledger.open_hall("main", "h1", "w2") == api.Opened()
    assert ledger.open_hall("main", "h2", "w3") == api.Foreign("h1")
    scene.launch(ledger)
    scene.offer(ledger)
    assert ledger.claim(scene.a_claim(host="h2")) == api.Foreign("h1")
    assert ledger.open_hall("aside", "h2", "w3") == api.Opened()
    assert ledger.halls() == ("aside", "main")


def test_a_claim_opens_a_hall_that_nobody_opened(ledger: Twin) -> None:
    """After a restore the first claim makes the hall its host's."""
    scene.launch(ledger)
    assert ledger.halls() == ()
    scene.offer(ledger)
    assert ledger.halls() == ("main",)
    scene.claimed(ledger)
    assert ledger.open_hall("main", "h2", "w9") == api.Foreign("h1")


def test_a_claim_takes_the_slot(ledger: Twin) -> None:
    """The reply carries token and order; slot and journal say who plays, and until when."""
    scene.launch(ledger)
    scene.offer(ledger)
    before = ledger.now_ms()
    reply = ledger.claim(scene.a_claim(lane="l1"))
    assert reply == api.Claimed(contract.Token(1, 1), '{"game":"g1"}')
    slot = ledger.slot("main")
    assert slot is not None
    assert before + scene.LONG <= slot.deadline_ms <= ledger.now_ms() + scene.LONG
    assert slot == api.Slot(
        hall="main",
        season="s1",
        game="g1",
        attempt="a1",
        token=contract.Token(1, 1),
        worker="w1",
        host="h1",
        lane="l1",
        ttl_ms=scene.LONG,
        deadline_ms=slot.deadline_ms,
        ply=0,
        last_move_ms=0,
        overdue=False,
        suspect="",
        abort="",
    )
    entry = ledger.read("s1")[-1]
    assert (entry.kind, entry.by, entry.token) == ("attempt_started", "w1", "1.1")
    assert contract.AttemptStarted.model_validate(entry.data) == contract.AttemptStarted(
        game="g1", attempt="a1", hall="main", lane="l1", host="h1", worker="w1"
    )


def test_a_repeated_claim_is_the_same_claim(ledger: Twin) -> None:
    """The same attempt gets the same token and order, even when the offer has changed."""
    token = scene.playing(ledger)
    scene.offer(ledger, "g2")
    assert ledger.claim(scene.a_claim()) == api.Claimed(token, '{"game":"g1"}')
    assert scene.kinds(ledger).count("attempt_started") == 1


def test_a_taken_hall_is_busy(ledger: Twin) -> None:
    """A second attempt, of the same or of another season, is told who plays."""
    scene.playing(ledger)
    assert ledger.claim(scene.a_claim("a2")) == api.Busy("a1")
    scene.launch(ledger, "s2")
    scene.offer(ledger, "x1", "s2")
    assert ledger.claim(scene.a_claim("a3", "x1", season="s2")) == api.Busy("a1")
    scene.offer(ledger, "x1", "s2", "aside")
    assert scene.claimed(ledger, "a4", "x1", season="s2", hall="aside").n == 1


def test_a_claim_for_what_is_not_ready_is_refused(ledger: Twin) -> None:
    """No offer, another game, or a result that is there: nothing is claimed."""
    scene.launch(ledger)
    assert ledger.claim(scene.a_claim()) == api.NotReady()
    scene.offer(ledger, "g2")
    assert ledger.claim(scene.a_claim()) == api.NotReady()
    assert ledger.claim(scene.a_claim(game="g9")) == api.NotReady()
    assert ledger.slot("main") is None
    assert scene.kinds(ledger) == ["launched"]


def test_an_attempt_that_is_over_never_comes_back(ledger: Twin) -> None:
    """A late repeat of its claim, on the way since before its end, takes nothing."""
    token = scene.playing(ledger)
    ledger.give_up("main", token, "s1", scene.ended())
    assert ledger.claim(scene.a_claim()) == api.NotReady()
    assert ledger.slot("main") is None


def test_tokens_grow_with_each_claim_and_each_restore(ledger: Twin) -> None:
    """Every token of a hall is greater than all before it."""
    tokens = [scene.playing(ledger)]
    ledger.give_up("main", tokens[-1], "s1", scene.ended())
    tokens.append(scene.again(ledger, "a2"))
    ledger.give_up("main", tokens[-1], "s1", scene.ended("a2"))
    scene.raise_epoch(ledger, 2)
    tokens.append(scene.again(ledger, "a3"))
    assert tokens == sorted(set(tokens))
    assert [token.epoch for token in tokens] == [1, 1, 2]


# -- plies and renewals ------------------------------------------------------------------


def test_plies_are_written_in_order_and_repeats_are_success(ledger: Twin) -> None:
    """The first ply may have any number; then each follows, or repeats the same bytes."""
    token = scene.playing(ledger)
    write = ledger.write_ply
    assert write("main", token, "a1", 9, "nine") == api.Written()
    assert write("main", token, "a1", 10, "zehn ♞") == api.Written()
    assert write("main", token, "a1", 10, "zehn ♞") == api.Written()
    assert write("main", token, "a1", 9, "nine") == api.Written()
    assert write("main", token, "a1", 9, "changed") == api.Gap(10)
    assert write("main", token, "a1", 10, "changed") == api.Gap(10)
    assert write("main", token, "a1", 12, "far") == api.Gap(10)
    assert write("main", token, "a1", 3, "before") == api.Gap(10)
    assert write("main", token, "a1", 11, "eleven") == api.Written()
    assert ledger.plies("a1") == [(9, "nine"), (10, "zehn ♞"), (11, "eleven")]
    assert ledger.plies("a1", after=9) == [(10, "zehn ♞"), (11, "eleven")]
    assert ledger.plies("a2") == []
    with pytest.raises(ValueError, match="from 1"):
        write("main", token, "a1", 0, "zero")


@pytest.mark.parametrize(
    ("hall", "attempt", "token"),
    [
        ("main", "a1", (1, 2)),
        ("main", "a2", (1, 1)),
        ("aside", "a1", (1, 1)),
        ("main", "a1", (2, 1)),
    ],
)
def test_the_fence_needs_hall_attempt_and_token(
    ledger: Twin, hall: str, attempt: str, token: tuple[int, int]
) -> None:
    """Whoever lacks one of the three writes nothing, extends nothing and ends nothing."""
    scene.playing(ledger)
    before = ledger.slot("main")
    wrong = contract.Token(*token)
    assert ledger.write_ply(hall, wrong, attempt, 1, "p") == api.Fenced()
    assert ledger.renew(hall, wrong, attempt, 1, 1) == api.Fenced()
    assert ledger.give_up(hall, wrong, "s1", scene.ended(attempt)) == api.Fenced()
    assert ledger.plies(attempt) == []
    assert ledger.slot("main") == before
    assert scene.kinds(ledger) == ["launched", "attempt_started"]


def test_a_restore_fences_every_older_token(ledger: Twin) -> None:
    """After the epoch is raised the holder is refused everywhere, a new attempt is not."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.raise_epoch(ledger, 2)
    assert ledger.write_ply("main", token, "a1", 1, "p") == api.Fenced()
    assert ledger.renew("main", token, "a1", 1, 1) == api.Fenced()
    assert ledger.give_up("main", token, "s1", scene.ended()) == api.Fenced()
    refused = ledger.complete("main", token, "s1", scene.finished(), b"r")
    assert isinstance(refused, api.Refused)
    assert "epoch is 2" in refused.reason
    scene.lapse()
    ledger.suspect("main", token, "look")
    assert isinstance(ledger.revoke("main", token, "look", scene.ended()), api.Recorded)
    assert scene.again(ledger, "a2") == contract.Token(2, 2)


def test_a_suspended_seasons_attempt_goes_from_its_hall(ledger: Twin) -> None:
    """Where its journal was not compared it stays as it was, and others have the hall."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.restart(ledger)
    scene.lapse()
    ledger.suspect("main", token, "look")
    with pytest.raises(errors.LedgerUncheckedError):
        ledger.revoke("main", token, "look", scene.ended())
    assert ledger.slot("main") is not None
    wrong = ledger.revoke("main", token, "another", scene.ended(), suspended=True)
    assert wrong == api.Alive()
    freed = ledger.revoke("main", token, "look", scene.ended(), suspended=True)
    assert freed == api.Freed()
    assert ledger.slot("main") is None
    assert ledger.offered("main") == {}
    assert scene.kinds(ledger) == ["launched", "attempt_started"]


def test_a_suspended_season_that_was_compared_is_told_of_its_attempts_end(ledger: Twin) -> None:
    """Its journal has lost nothing: the end of the attempt is a fact like others."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.lapse()
    ledger.suspect("main", token, "look")
    reply = ledger.revoke("main", token, "look", scene.ended(), suspended=True)
    assert reply == api.Recorded(3)


def test_a_renewal_extends_the_lease_and_carries_progress(ledger: Twin) -> None:
    """Each renewal, repeated or not, sets the deadline anew and shows ply and last move."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.lapse()
    first = ledger.slot("main")
    assert ledger.renew("main", token, "a1", 17, 12_345) == api.Renewed()
    assert ledger.renew("main", token, "a1", 17, 12_345) == api.Renewed()
    second = ledger.slot("main")
    assert first is not None
    assert second is not None
    assert first.overdue
    assert second.deadline_ms > first.deadline_ms
    assert (second.ply, second.last_move_ms) == (17, 12_345)


# -- the end of an attempt ---------------------------------------------------------------


def test_a_finished_game_is_recorded_once(ledger: Twin) -> None:
    """Complete journals, keeps the record, frees slot and offer; a repeat says the same."""
    token = scene.playing(ledger)
    first = ledger.complete("main", token, "s1", scene.finished(), b"\x00record\xff")
    assert first == api.Recorded(3)
    assert ledger.complete("main", token, "s1", scene.finished(), b"\x00record\xff") == first
    assert scene.kinds(ledger) == ["launched", "attempt_started", "game_finished"]
    entry = ledger.read("s1")[-1]
    assert (entry.by, entry.token) == ("w1", "1.1")
    assert contract.GameFinished.model_validate(entry.data) == scene.finished()
    assert (ledger.slot("main"), ledger.offered("main")) == (None, {})
    assert ledger.record("a1") == b"\x00record\xff"
    assert ledger.record("a2") is None


def _completed(ledger: Twin) -> contract.Token:
    """Play a game of one ply to its end; return the token it was played under."""
    token = scene.playing(ledger)
    ledger.write_ply("main", token, "a1", 1, "p")
    ledger.complete("main", token, "s1", scene.finished(), b"r")
    return token


def test_the_archive_takes_record_and_plies(ledger: Twin) -> None:
    """``archived`` forgets both, may be repeated, and a repeated complete restores nothing."""
    token = _completed(ledger)
    ledger.archived("a1")
    ledger.archived("a1")
    assert ledger.complete("main", token, "s1", scene.finished(), b"r") == api.Recorded(3)
    assert (ledger.record("a1"), ledger.plies("a1")) == (None, [])


def test_the_archive_takes_the_plies_alone_of_an_attempt_that_was_given_up(ledger: Twin) -> None:
    """``plies_archived`` leaves the record, which may have come since."""
    _completed(ledger)
    ledger.plies_archived("a1")
    ledger.plies_archived("a1")
    assert (ledger.record("a1"), ledger.plies("a1")) == (b"r", [])


def test_completing_keeps_what_was_offered_since(ledger: Twin) -> None:
    """An offer of another game of the season stands when the running one ends."""
    token = scene.playing(ledger)
    scene.offer(ledger, "g2")
    ledger.complete("main", token, "s1", scene.finished(), b"r")
    assert ledger.offered("main") == {"s1": "g2"}


def test_a_withdrawn_game_may_still_finish(ledger: Twin) -> None:
    """Withdrawal stops new claims, not the attempt that runs."""
    token = scene.playing(ledger)
    ledger.withdraw("main", "s1")
    assert isinstance(ledger.complete("main", token, "s1", scene.finished(), b"r"), api.Recorded)


def test_a_late_spool_is_accepted_when_nobody_else_played(ledger: Twin) -> None:
    """A game finished under a revoked lease counts while there is no newer token."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.lapse()
    ledger.suspect("main", token, "look")
    ledger.revoke("main", token, "look", scene.ended())
    late = ledger.complete("main", token, "s1", scene.finished(), b"spool")
    assert late == api.Recorded(4)
    assert ledger.complete("main", token, "s1", scene.finished(), b"spool") == late
    assert (ledger.offered("main"), ledger.record("a1")) == ({}, b"spool")
    assert ledger.claim(scene.a_claim("a2")) == api.NotReady()


def test_a_late_spool_leaves_the_slot_of_another_game_alone(ledger: Twin) -> None:
    """The hall may play something else by the time a spool arrives."""
    token = scene.playing(ledger)
    ledger.give_up("main", token, "s1", scene.ended())
    scene.offer(ledger, "g2")
    other = scene.claimed(ledger, "a2", "g2")
    assert isinstance(ledger.complete("main", token, "s1", scene.finished(), b"r"), api.Recorded)
    assert ledger.renew("main", other, "a2", 0, 0) == api.Renewed()


def test_a_spool_is_refused_after_a_newer_token(ledger: Twin) -> None:
    """Once the game was given to another attempt only that one may finish it."""
    old = scene.playing(ledger)
    ledger.give_up("main", old, "s1", scene.ended())
    new = scene.again(ledger, "a2")
    refused = ledger.complete("main", old, "s1", scene.finished(), b"r")
    assert isinstance(refused, api.Refused)
    assert "a2" in refused.reason
    ledger.complete("main", new, "s1", scene.finished("a2"), b"r2")
    refused = ledger.complete("main", old, "s1", scene.finished(), b"r")
    assert isinstance(refused, api.Refused)
    assert "already has its result from attempt a2" in refused.reason
    assert scene.kinds(ledger).count("game_finished") == 1
    assert ledger.record("a1") is None


def test_a_spool_is_refused_after_a_verdict(ledger: Twin) -> None:
    """A game that has its result by a verdict is not offered, and no hall tells it again."""
    token = scene.playing(ledger)
    ledger.give_up("main", token, "s1", scene.ended())
    settle = [api.Settle("s1", "g1")]
    ledger.append("s1", ledger.last("s1"), [scene.draft()], "op", settle)
    refused = ledger.complete("main", token, "s1", scene.finished(), b"r")
    assert isinstance(refused, api.Refused)
    assert "verdict" in refused.reason
    assert ledger.offer("main", "s1", "g1", "{}", ledger.last("s1")) == api.NotReady()


def test_giving_up_leaves_the_offer_of_another_game(ledger: Twin) -> None:
    """Only the game that was given up is taken back."""
    token = scene.playing(ledger)
    scene.offer(ledger, "g2")
    ledger.give_up("main", token, "s1", scene.ended())
    assert ledger.offered("main") == {"s1": "g2"}


def test_a_token_that_was_never_given_finishes_nothing(ledger: Twin) -> None:
    """An unknown attempt, another token, another game or season are refused."""
    token = scene.playing(ledger)
    scene.launch(ledger, "s9")
    wrong = [
        (token, "s1", scene.finished("a9")),
        (contract.Token(1, 9), "s1", scene.finished()),
        (token, "s1", scene.finished(game="g9")),
        (token, "s9", scene.finished()),
    ]
    for given, season, result in wrong:
        refused = ledger.complete("main", given, season, result, b"r")
        assert isinstance(refused, api.Refused)
        assert "never given" in refused.reason
    assert scene.kinds(ledger) == ["launched", "attempt_started"]


def test_giving_up_frees_the_slot_and_takes_the_offer_back(ledger: Twin) -> None:
    """The end is journaled once, under its token; the game waits for its verdict."""
    token = scene.playing(ledger)
    first = ledger.give_up("main", token, "s1", scene.ended())
    assert first == api.Recorded(3)
    assert ledger.give_up("main", token, "s1", scene.ended()) == first
    entry = ledger.read("s1")[-1]
    assert (entry.kind, entry.by, entry.token) == ("attempt_ended", "w1", "1.1")
    assert contract.AttemptEnded.model_validate(entry.data) == scene.ended()
    assert (ledger.slot("main"), ledger.offered("main")) == (None, {})
    assert ledger.claim(scene.a_claim("a2")) == api.NotReady()
    assert scene.again(ledger, "a3") > token
    assert ledger.give_up("main", token, "s1", scene.ended()) == first
    scene.launch(ledger, "s9")
    assert ledger.give_up("main", token, "s9", scene.ended("a2")) == api.Fenced()


def test_giving_up_names_the_right_season(ledger: Twin) -> None:
    """The end of an attempt cannot be journaled in another season's journal."""
    token = scene.playing(ledger)
    scene.launch(ledger, "s2")
    assert ledger.give_up("main", token, "s2", scene.ended()) == api.Fenced()
    assert ledger.last("s2") == 1


def test_only_an_overdue_lease_is_suspected(ledger: Twin) -> None:
    """A lease in time, an empty hall or another token is alive; no mark is left."""
    assert ledger.suspect("main", contract.Token(1, 1), "look") == api.Alive()
    token = scene.playing(ledger)
    assert ledger.suspect("main", token, "look") == api.Alive()
    slot = ledger.slot("main")
    assert slot is not None
    assert slot.suspect == ""
    with pytest.raises(ValueError, match="chain"):
        ledger.suspect("main", token, "")


def test_a_mark_is_replaced_by_a_newer_chain(ledger: Twin) -> None:
    """The last chain of looks is the one that can revoke."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.lapse()
    assert ledger.suspect("main", contract.Token(1, 2), "one") == api.Alive()
    assert ledger.suspect("main", token, "one") == api.Suspected()
    assert ledger.suspect("main", token, "one") == api.Suspected()
    assert ledger.suspect("main", token, "two") == api.Suspected()
    slot = ledger.slot("main")
    assert slot is not None
    assert (slot.overdue, slot.suspect) == (True, "two")
    assert ledger.revoke("main", token, "one", scene.ended()) == api.Alive()
    assert ledger.revoke("main", token, "two", scene.ended()) == api.Recorded(3)


def test_a_renewal_clears_the_mark(ledger: Twin) -> None:
    """A worker that comes back in time keeps its game: the old chain revokes nothing."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.lapse()
    ledger.suspect("main", token, "look")
    assert ledger.renew("main", token, "a1", 4, 4) == api.Renewed()
    slot = ledger.slot("main")
    assert slot is not None
    assert slot.suspect == ""
    scene.lapse()
    assert ledger.revoke("main", token, "look", scene.ended()) == api.Alive()


def test_a_revocation_frees_the_slot_once(ledger: Twin) -> None:
    """It journals the end for the farm, may be repeated, and fences the old holder."""
    token = scene.playing(ledger, ttl_ms=scene.SHORT)
    scene.lapse()
    assert ledger.revoke("main", token, "look", scene.ended()) == api.Alive()
    ledger.suspect("main", token, "look")
    assert ledger.revoke("main", token, "look", scene.ended("a9")) == api.Alive()
    first = ledger.revoke("main", token, "look", scene.ended())
    assert first == api.Recorded(3)
    assert ledger.revoke("main", token, "look", scene.ended()) == first
    entry = ledger.read("s1")[-1]
    assert (entry.kind, entry.by, entry.token) == ("attempt_ended", api.FARM, "1.1")
    assert ledger.renew("main", token, "a1", 1, 1) == api.Fenced()
    assert ledger.write_ply("main", token, "a1", 1, "p") == api.Fenced()
    fresh = scene.again(ledger, "a2")
    assert ledger.revoke("main", token, "look", scene.ended()) == first
    assert ledger.revoke("main", fresh, "look", scene.ended("a2")) == api.Alive()
    assert scene.kinds(ledger).count("attempt_ended") == 1
