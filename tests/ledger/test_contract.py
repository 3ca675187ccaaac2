"""The contract of the ledger: one suite for the twin in memory and for real Redis.

Journal, effects, offers and what is shown; attempts have a module of their own.
"""

from __future__ import annotations

import threading
import time

import pytest
import scene
from twins import memory

from orchestrator import contract
from orchestrator.ledger import api, services, store

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


def test_a_drain_is_taken_back(ledger: Twin) -> None:
    """The worker may claim again."""
    token = scene.playing(ledger)
    for wish in (api.Drain("main", "w1", "update"), api.Undrain("main", "w1")):
        ledger.append("s1", ledger.last("s1"), [scene.draft()], "op", [wish])
    assert ledger.drained("main", "w1") == ""
    assert ledger.renew("main", token, "a1", 0, 0) == api.Renewed()


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
    """A host's heartbeat replaces the one before, until it is forgotten."""
    assert ledger.vitals() == {}
    for payload in ("one", "two ♞"):
        ledger.set_vitals("cpu", payload)
    ledger.set_vitals("gpu", "three")
    assert ledger.vitals() == {"cpu": "two ♞", "gpu": "three"}
    ledger.forget_host("gpu")
    ledger.forget_host("gpu")
    assert ledger.vitals() == {"cpu": "two ♞"}


def test_a_service_is_known_by_its_last_report(ledger: Twin) -> None:
    """A report replaces the one before; one that cannot be read is none."""
    assert ledger.services() == {}
    assert services.read(ledger, services.SERVE, services.Serve) is None
    for at_ms in (1, 2):
        ledger.set_service(services.SERVE, services.Serve(at_ms=at_ms).encode())
    ledger.set_service(services.BACKUP, "nonsense")
    told = services.read(ledger, services.SERVE, services.Serve)
    assert told is not None
    assert told.at_ms == 2
    assert services.read(ledger, services.BACKUP, services.Backup) is None


def test_the_farm_knows_its_user(ledger: Twin) -> None:
    """``whoami`` names somebody for ``by``."""
    assert ledger.whoami() in {"default", "memory"}
