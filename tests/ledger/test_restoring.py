"""Restored ledgers, both twins: what stands beside a journal follows from it; old tokens die."""

from __future__ import annotations

import pytest
import scene
from twins import memory

from orchestrator import contract
from orchestrator.common import errors
from orchestrator.ledger import api, keys, restoring, store


def played(ledger: scene.Twin) -> contract.Token:
    """Play one game, leave a second one in flight; return the second one's token."""
    token = scene.playing(ledger)
    done = ledger.complete("main", token, "s1", scene.finished(), b"record")
    assert isinstance(done, api.Recorded)
    scene.offer(ledger, "g2")
    return scene.claimed(ledger, "a2", "g2")


def restored(entries: list[contract.Entry], into: scene.Twin, epoch: int = 2) -> None:
    """Restore a season's journal into another ledger, as ``farm restore`` does."""
    assert into.raise_epoch(epoch) == epoch
    assert into.load("s1", entries) == api.Appended(len(entries))
    into.reindex(restoring.index("s1", entries, {"pause": "thunder"}, 2))
    assert into.set_checked("s1", into.run_id())  # by ``serve``, when it has compared them


def test_a_restored_ledger_goes_on(ledger: scene.Twin) -> None:
    """Journal, season list, host, holds and mirror's place are back; tokens grow on."""
    lost = memory.MemoryLedger()
    old = played(lost)
    entries = lost.read("s1")
    restored(entries, ledger)
    assert ledger.read("s1") == entries
    assert ledger.seasons() == ("s1",)
    assert ledger.mirrored("s1") == 2
    assert ledger.holds("s1") == {"pause": "thunder"}
    assert ledger.open_hall("main", "h2", "w2") == api.Foreign("h1")
    ledger.append("s1", len(entries), [scene.draft()], "op", [api.Release("s1", "pause")])
    assert ledger.offer("main", "s1", "g1", "{}", ledger.last("s1")) == api.NotReady()
    scene.offer(ledger, "g2")
    assert ledger.claim(scene.a_claim("a2", "g2")) == api.NotReady(), "an attempt is never two"
    token = scene.claimed(ledger, "a3", "g2")
    assert token > old
    assert (token.epoch, token.n) == (2, old.n + 1)


def test_a_restore_from_a_lagging_copy_lets_no_old_worker_write(ledger: scene.Twin) -> None:
    """What a worker of before still holds opens nothing: no ply, no renewal, no result, no end."""
    lost = memory.MemoryLedger()
    token = played(lost)
    restored(lost.read("s1")[:2], ledger)  # the copy knows neither result nor second attempt
    refused = ledger.complete("main", token, "s1", scene.finished("a2", "g2"), b"r")
    assert isinstance(refused, api.Refused)
    assert "epoch is 2" in refused.reason
    late = ledger.complete("main", contract.Token(1, 1), "s1", scene.finished(), b"r")
    assert isinstance(late, api.Refused)
    assert ledger.write_ply("main", token, "a2", 1, "p") == api.Fenced()
    assert ledger.renew("main", token, "a2", 1, 0) == api.Fenced()
    assert ledger.give_up("main", token, "s1", scene.ended("a2", "g2")) == api.Fenced()
    assert ledger.last("s1") == 2


def test_a_restore_over_a_living_ledger_frees_the_halls(ledger: scene.Twin) -> None:
    """The slot and the offers of before are gone, and the old holder is fenced."""
    token = played(ledger)
    entries = ledger.read("s1")
    assert ledger.raise_epoch(7) == 7
    assert ledger.slot("main") is None
    assert ledger.offered("main") == {}
    assert ledger.renew("main", token, "a2", 0, 0) == api.Fenced()
    ledger.reindex(restoring.index("s1", entries, {}, len(entries)))
    assert ledger.seasons() == ("s1",), "it is listed once"
    scene.offer(ledger, "g2")
    with pytest.raises(errors.LedgerUncheckedError):
        scene.claimed(ledger, "a3", "g2")
    assert ledger.set_checked("s1", ledger.run_id())
    assert scene.claimed(ledger, "a3", "g2") == contract.Token(7, token.n + 1)


def test_the_epoch_never_goes_back(ledger: scene.Twin) -> None:
    """A lower or equal wish changes nothing, the slot stays."""
    token = played(ledger)
    assert ledger.raise_epoch(1) == 1
    assert ledger.present_epoch() == 1
    assert ledger.renew("main", token, "a2", 0, 0) == api.Renewed()


def test_entries_are_loaded_only_where_they_follow(ledger: scene.Twin) -> None:
    """A gap or an overlap writes nothing; pieces of a journal add up."""
    lost = memory.MemoryLedger()
    played(lost)
    entries = lost.read("s1")
    assert ledger.load("s1", entries[1:]) == api.Stale(0)
    assert ledger.load("s1", entries[:2]) == api.Appended(2)
    assert ledger.load("s1", entries[:2]) == api.Stale(2)
    assert ledger.load("s1", entries[2:]) == api.Appended(len(entries))
    with pytest.raises(ValueError, match="follow"):
        ledger.load("s1", [entries[0], entries[2]])


@pytest.mark.parametrize("left", [0, 2])
def test_what_somebody_has_cut_off_a_journal_is_loaded_again(
    redis_ledger: store.RedisLedger, left: int
) -> None:
    """A stream remembers the numbers of entries that were deleted; they are loaded all the same."""
    played(redis_ledger)
    entries = redis_ledger.read("s1")
    key = keys.Keys().journal("s1")
    redis_ledger.server.client.xdel(key, *(f"{entry.seq}-0" for entry in entries[left:]))
    with pytest.raises(errors.LedgerForeignError):
        redis_ledger.append("s1", left, [scene.draft()], "op")
    assert redis_ledger.load("s1", entries[left:]) == api.Appended(len(entries))
    assert redis_ledger.read("s1") == entries


def test_a_key_of_another_type_is_no_outage(redis_ledger: store.RedisLedger) -> None:
    """It is one journal's trouble: what waits for Redis to come back would wait for ever."""
    redis_ledger.server.client.hset(keys.Keys().journal("odd"), "a", "b")
    with pytest.raises(errors.LedgerForeignError, match="WRONGTYPE"):
        redis_ledger.last("odd")


def test_record_and_plies_are_given_back(ledger: scene.Twin) -> None:
    """What a copy had of an attempt stands where ``serve`` and the verdict look for it."""
    ledger.give_back("a", b"record", [(5, "five"), (6, "six")])
    ledger.give_back("a", None, ())
    assert ledger.record("a") == b"record"
    assert ledger.plies("a") == [(5, "five"), (6, "six")]


def copy(place: str, entries: list[contract.Entry]) -> restoring.Copy:
    """Make a copy of a journal."""
    return restoring.Copy(place, entries)


def test_copies_must_be_prefixes_of_each_other() -> None:
    """The longest is the truth; where two part, both places and lines are shown."""
    lost = memory.MemoryLedger(lambda: 5)
    played(lost)
    whole = lost.read("s1")
    for shorter in (0, 1, len(whole)):
        copies = [copy("disk", whole[:shorter]), copy("Redis", whole)]
        assert restoring.longest("s1", copies).entries == whole
        assert restoring.longest("s1", copies[::-1]).entries == whole
    other = memory.MemoryLedger(lambda: 6)
    played(other)
    parted = [*whole[:1], *other.read("s1")[1:2]]
    with pytest.raises(errors.LedgerDamagedError, match=r"differ from entry 2:\n  Redis.*\n  disk"):
        restoring.longest("s1", [copy("disk", parted), copy("Redis", whole)])


def test_an_epoch_is_above_every_token_and_every_earlier_restore() -> None:
    """Two restores from the same old copy get different epochs."""
    lost = memory.MemoryLedger()
    played(lost)
    entries = lost.read("s1")
    first = restoring.next_epoch(1, 1_700_000_000_000, [entries])
    assert first == 1_700_000_000
    assert restoring.next_epoch(1, 1_700_000_009_000, [entries]) > first
    assert restoring.next_epoch(first, 0, [entries]) == first + 1
    assert restoring.next_epoch(1, 0, [entries]) == 2


def test_a_reply_of_another_version_is_told(redis_ledger: store.RedisLedger) -> None:
    """A slot that this version cannot read is an error for the operator, and changes nothing."""
    scene.playing(redis_ledger)
    client = redis_ledger.server.client
    client.hset("farm:ledger:hall:main:slot", "token", "of another kind")
    before = client.hgetall("farm:ledger:hall:main:slot")
    with pytest.raises(errors.LedgerForeignError, match="another version"):
        redis_ledger.slot("main")
    assert client.hgetall("farm:ledger:hall:main:slot") == before
