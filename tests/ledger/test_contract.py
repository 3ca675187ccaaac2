"""The contract of the ledger: one suite for the twin in memory and for real Redis."""

from __future__ import annotations

import threading
import time

import pytest
import scene

from orchestrator import contract
from orchestrator.ledger import api, memory, store

Twin = scene.Twin


# -- journal -----------------------------------------------------------------------------


def test_entries_are_numbered_from_one_without_gaps(ledger: Twin) -> None:
    """Appends of several drafts give contiguous numbers, kinds, authors and data as given."""
    ledger.append("s1", 0, [scene.draft("a"), scene.draft("b")], by="anna")
    ledger.append("s1", 2, [scene.draft("é ♞")], by="bob")
    entries = ledger.read("s1")
    assert [(e.seq, e.by, e.data["text"], e.token) for e in entries] == [
        (1, "anna", "a", ""),
        (2, "anna", "b", ""),
        (3, "bob", "é ♞", ""),
    ]
    assert ledger.last("s1") == 3
    assert {e.schema_version for e in entries} == {contract.SCHEMA}


def test_read_pages_through_a_journal(ledger: Twin) -> None:
    """``after`` and ``limit`` cut the journal into pages that add up to the whole."""
    ledger.append("s1", 0, [scene.draft(str(n)) for n in range(7)], by="op")
    pages = [ledger.read("s1", after, limit=3) for after in (0, 3, 6, 7)]
    assert [[e.seq for e in page] for page in pages] == [[1, 2, 3], [4, 5, 6], [7], []]
    assert ledger.read("none") == []
    assert ledger.last("none") == 0


def test_a_stale_append_writes_nothing(ledger: Twin) -> None:
    """An append at the wrong place leaves journal, seasons and holds as they were."""
    scene.launch(ledger)
    for expected in (0, 2, 7):
        reply = ledger.append(
            "s1", expected, [scene.draft()], by="op", effects=[api.Hold("s1", "pause", "x")]
        )
        assert reply == api.Stale(1)
    assert (scene.kinds(ledger), ledger.holds("s1"), ledger.seasons()) == (
        ["launched"],
        {},
        ("s1",),
    )
    assert ledger.append("s2", 1, [scene.draft()], by="op") == api.Stale(0)
    assert ledger.seasons() == ("s1",)


def test_a_repeated_append_is_the_same_append(ledger: Twin) -> None:
    """A repeat with the same arguments answers as before and writes nothing more."""
    scene.launch(ledger)
    drafts = [scene.draft("a"), scene.draft("b")]
    effects = [api.Hold("s1", "pause", "tea")]
    assert ledger.append("s1", 1, drafts, "op", effects) == api.Appended(3)
    ledger.append("s1", 3, [scene.draft("c")], "op", [api.Release("s1", "pause")])
    assert ledger.append("s1", 1, drafts, "op", effects) == api.Appended(3)
    assert ledger.last("s1") == 4
    assert ledger.holds("s1") == {}
    assert ledger.append("s1", 1, drafts, "somebody else", effects) == api.Stale(4)
    assert ledger.append("s1", 1, drafts, "op") == api.Stale(4)
    assert ledger.append("s1", 1, drafts[:1], "op", effects) == api.Stale(4)


def test_an_append_needs_drafts_and_a_place(ledger: Twin) -> None:
    """Effects without an entry that tells of them, and negative places, are refused."""
    with pytest.raises(ValueError, match="draft"):
        ledger.append("s1", 0, [], by="op", effects=[api.Hold("s1", "pause", "x")])
    with pytest.raises(ValueError, match="end at -1"):
        ledger.append("s1", -1, [scene.draft()], by="op")
    with pytest.raises(ValueError, match="at most"):
        ledger.append("s1", 0, [scene.draft()] * 10_001, by="op")


def test_seasons_are_listed_in_the_order_of_their_launch(ledger: Twin) -> None:
    """The first entry of a journal lists its season once; the farm's own is no season."""
    ledger.append(api.FARM, 0, [scene.draft()], by="op")
    for season in ("zeta", "alpha", "mid"):
        scene.launch(ledger, season)
        scene.launch(ledger, season)
    assert ledger.seasons() == ("zeta", "alpha", "mid")


def test_of_racing_appends_one_wins(ledger: Twin) -> None:
    """Of eight writers at one place exactly one is accepted; no number is given twice."""
    replies: list[object] = []

    def write(number: int) -> None:
        replies.append(ledger.append("s1", 0, [scene.draft(str(number))], by=f"op{number}"))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, replies)) == ["Appended(last=1)"] + ["Stale(last=1)"] * 7
    assert ledger.last("s1") == 1


def test_times_never_go_back_in_a_journal() -> None:
    """When the clock is stepped back, entries keep the time of the one before."""
    now = [1_000]
    ledger = memory.MemoryLedger(clock=lambda: now[0])
    scene.launch(ledger)
    now[0] = 400
    ledger.append("s1", 1, [scene.draft()], by="op")
    now[0] = 1_500
    ledger.append("s1", 2, [scene.draft()], by="op")
    assert [e.at_ms for e in ledger.read("s1")] == [1_000, 1_000, 1_500]


def test_times_never_go_back_in_redis(redis_ledger: store.RedisLedger) -> None:
    """An entry after one from the future is given that one's time."""
    future = redis_ledger.now_ms() + 10_000_000
    fields = {"v": 1, "kind": "noted", "at": future, "by": "op", "token": "", "data": "{}"}
    redis_ledger.server.client.xadd("farm:ledger:journal:s1", {**fields, "op": ""}, id="1-0")
    redis_ledger.append("s1", 1, [scene.draft()], by="op")
    assert [e.at_ms for e in redis_ledger.read("s1")] == [future, future]


def test_entries_carry_the_ledgers_time(ledger: Twin) -> None:
    """``at_ms`` lies between the ledger's times before and after the append."""
    before = ledger.now_ms()
    scene.launch(ledger)
    assert before <= ledger.read("s1")[0].at_ms <= ledger.now_ms()


def test_wait_wakes_for_an_append(ledger: Twin) -> None:
    """A reader that waits on several journals is told when one of them grows."""
    scene.launch(ledger)
    answers: list[bool] = []
    reader = threading.Thread(
        target=lambda: answers.append(ledger.wait({"s1": 1, api.FARM: 0}, 20_000))
    )
    reader.start()
    ledger.append(api.FARM, 0, [scene.draft()], by="op")
    reader.join(timeout=60)
    assert answers == [True]


def test_wait_sees_what_is_there_and_ends_without_news(ledger: Twin) -> None:
    """Growth from before the call counts; without any the answer is False."""
    scene.launch(ledger)
    assert ledger.wait({"s1": 0}, 0) is True
    assert ledger.wait({"s1": 1}, 0) is False
    assert ledger.wait({"s1": 1, "s2": 0}, 5) is False
    assert ledger.wait({}, 1) is False


def test_the_mirror_number_never_goes_back(ledger: Twin) -> None:
    """``set_mirrored`` only raises."""
    assert ledger.mirrored("s1") == 0
    ledger.set_mirrored("s1", 5)
    ledger.set_mirrored("s1", 3)
    assert (ledger.mirrored("s1"), ledger.mirrored("s2")) == (5, 0)


# -- effects -----------------------------------------------------------------------------


def test_holds_come_and_go_with_their_entries(ledger: Twin) -> None:
    """Hold and release act with the append, by scope and name; a release may be idle."""
    scene.launch(ledger)
    hold = [api.Hold("s1", "pause", "tea"), api.Hold("hall:main", "sick", "hot")]
    ledger.append("s1", 1, [scene.draft()], "op", hold)
    assert (ledger.holds("s1"), ledger.holds("hall:main")) == ({"pause": "tea"}, {"sick": "hot"})
    free = [api.Release("s1", "pause"), api.Release("s1", "nothing")]
    ledger.append("s1", 2, [scene.draft()], "op", free)
    assert (ledger.holds("s1"), ledger.holds("hall:main")) == ({}, {"sick": "hot"})


@pytest.mark.parametrize("scope", ["s1", "hall:main"])
def test_a_hold_forbids_claims(ledger: Twin, scope: str) -> None:
    """While a hold of season or hall stands no game is claimed; after it, it is."""
    last = scene.launch(ledger)
    scene.offer(ledger)
    holds = [api.Hold(scope, "pause", "tea"), api.Hold(scope, "b", "late " * 30)]
    ledger.append("s1", last, [scene.draft()], "op", holds)
    assert ledger.claim(scene.a_claim()) == api.Held(f"b: {'late ' * 30}")
    ledger.append("s1", last + 1, [scene.draft()], "op", [api.Release(scope, "b")])
    assert ledger.claim(scene.a_claim()) == api.Held("pause: tea")
    ledger.append("s1", last + 2, [scene.draft()], "op", [api.Release(scope, "pause")])
    assert isinstance(ledger.claim(scene.a_claim()), api.Claimed)


def test_a_hold_lets_the_running_game_go_on(ledger: Twin) -> None:
    """A pause forbids new claims only: plies, renewals, replays and results go through."""
    token = scene.playing(ledger)
    ledger.append("s1", ledger.last("s1"), [scene.draft()], "op", [api.Hold("s1", "pause", "")])
    assert ledger.holds("s1") == {"pause": "no reason given"}
    assert scene.claimed(ledger) == token
    assert ledger.write_ply("main", token, "a1", 1, "p") == api.Written()
    assert ledger.renew("main", token, "a1", 1, 5) == api.Renewed()
    assert isinstance(ledger.complete("main", token, "s1", scene.finished(), b"r"), api.Recorded)


def test_a_drain_concerns_one_worker(ledger: Twin) -> None:
    """The wish reaches the worker by renewal and by asking; others may claim."""
    token = scene.playing(ledger)
    wish = [api.Drain("main", "w1", "update")]
    ledger.append("s1", ledger.last("s1"), [scene.draft()], "op", wish)
    assert ledger.renew("main", token, "a1", 0, 0) == api.Renewed(drain="update")
    assert (ledger.drained("main", "w1"), ledger.drained("main", "w2")) == ("update", "")
    assert (ledger.drained("other", "w1"), ledger.drained("main", "w3")) == ("", "")
    ledger.give_up("main", token, "s1", scene.ended())
    scene.offer(ledger)
    assert ledger.claim(scene.a_claim("a2")) == api.Held("drain: update")
    assert isinstance(ledger.claim(scene.a_claim("a3", worker="w2")), api.Claimed)


def test_an_abort_reaches_its_attempt_only(ledger: Twin) -> None:
    """The wish comes with the renewal of the attempt it names, and with no other."""
    token = scene.playing(ledger)
    other = [api.Abort("main", "a0", "wrong"), api.Abort("empty", "a1", "wrong hall")]
    ledger.append("s1", ledger.last("s1"), [scene.draft()], "op", other)
    assert ledger.renew("main", token, "a1", 0, 0) == api.Renewed()
    abort = [api.Abort("main", "a1", "power")]
    ledger.append("s1", ledger.last("s1"), [scene.draft()], "op", abort)
    assert ledger.renew("main", token, "a1", 0, 0) == api.Renewed(abort="power")
    slot = ledger.slot("main")
    assert slot is not None
    assert slot.abort == "power"
    assert ledger.slot("empty") is None
    ledger.give_up("main", token, "s1", scene.ended())
    fresh = scene.again(ledger, "a2")
    assert ledger.renew("main", fresh, "a2", 0, 0) == api.Renewed()


# -- offers ------------------------------------------------------------------------------


def test_an_offer_replaces_the_seasons_last_one(ledger: Twin) -> None:
    """Each season has one ready game in a hall; seasons do not disturb each other."""
    scene.launch(ledger)
    scene.launch(ledger, "s2")
    scene.offer(ledger, "g1")
    scene.offer(ledger, "x1", "s2")
    scene.offer(ledger, "g2")
    assert ledger.offered("main") == {"s1": "g2", "s2": "x1"}
    assert ledger.claim(scene.a_claim(game="g1")) == api.NotReady()
    ledger.withdraw("main", "s1")
    ledger.withdraw("main", "s1")
    assert ledger.offered("main") == {"s2": "x1"}
    assert ledger.claim(scene.a_claim(game="g2")) == api.NotReady()


def test_an_offer_is_made_on_the_journal_it_was_decided_on(ledger: Twin) -> None:
    """A stale offer does nothing; a repeat of one that stands is an offer; so says the reply."""
    scene.launch(ledger)
    assert ledger.offer("main", "s1", "g1", "o", 0) == api.Stale(1)
    assert ledger.offered("main") == {}
    assert ledger.offer("main", "s1", "g1", "o", 1) == api.Offered()
    ledger.append("s1", 1, [scene.draft()], by="op")
    assert ledger.offer("main", "s1", "g1", "o", 1) == api.Offered()
    assert ledger.offer("main", "s1", "g1", "another order", 1) == api.Stale(2)
    assert ledger.offer("main", "s1", "g2", "o", 1) == api.Stale(2)


def test_what_cannot_be_played_is_not_offered(ledger: Twin) -> None:
    """A finished game, and a game of a season never launched, are not ready."""
    token = scene.playing(ledger)
    ledger.complete("main", token, "s1", scene.finished(), b"r")
    assert ledger.offer("main", "s1", "g1", "o", ledger.last("s1")) == api.NotReady()
    assert ledger.offer("main", "nowhere", "g1", "o", 0) == api.NotReady()
    assert ledger.offered("main") == {}


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
    assert ledger.claim(scene.a_claim(game="")) == api.NotReady()
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


def test_the_archive_takes_record_and_plies(ledger: Twin) -> None:
    """``archived`` forgets both, may be repeated, and a repeated complete restores nothing."""
    token = scene.playing(ledger)
    ledger.write_ply("main", token, "a1", 1, "p")
    ledger.complete("main", token, "s1", scene.finished(), b"r")
    ledger.archived("a1")
    ledger.archived("a1")
    assert ledger.complete("main", token, "s1", scene.finished(), b"r") == api.Recorded(3)
    assert (ledger.record("a1"), ledger.plies("a1")) == (None, [])


def test_the_archive_takes_the_plies_alone_of_an_attempt_that_was_given_up(ledger: Twin) -> None:
    """``plies_archived`` leaves the record, which may have come since."""
    token = scene.playing(ledger)
    ledger.write_ply("main", token, "a1", 1, "p")
    ledger.complete("main", token, "s1", scene.finished(), b"r")
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
    assert ledger.give_up("main", token, "s9", scene.ended("a2")) == api.Fenced()


def test_giving_up_names_the_right_season(ledger: Twin) -> None:
    """The end of an attempt cannot be journaled in another season's journal."""
    token = scene.playing(ledger)
    assert ledger.give_up("main", token, "s2", scene.ended()) == api.Fenced()
    assert ledger.last("s2") == 0


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


# -- what is shown -----------------------------------------------------------------------


def test_what_is_live_fades(ledger: Twin) -> None:
    """The last publication is shown while it is fresh, and then nothing."""
    assert ledger.live("main") is None
    ledger.set_live("main", "one ♞", scene.LONG)
    ledger.set_live("main", "two ♞", scene.LONG)
    assert (ledger.live("main"), ledger.live("aside")) == ("two ♞", None)
    ledger.set_live("main", "three", 1)
    time.sleep(0.005)
    assert ledger.live("main") is None


def test_a_host_is_known_by_what_it_told_last(ledger: Twin) -> None:
    """What a host tells of itself replaces what it told before, until it is forgotten."""
    assert ledger.vitals() == {}
    for payload in ("one", "two ♞"):
        ledger.set_vitals("cpu", payload)
    ledger.set_vitals("gpu", "three")
    assert ledger.vitals() == {"cpu": "two ♞", "gpu": "three"}
    ledger.forget_host("gpu")
    ledger.forget_host("gpu")
    assert ledger.vitals() == {"cpu": "two ♞"}


def test_the_farm_knows_its_user(ledger: Twin) -> None:
    """``whoami`` names somebody for ``by``."""
    assert ledger.whoami() in {"default", "memory"}
