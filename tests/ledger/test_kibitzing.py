"""The contract of kibitzers: one suite for the twin in memory and for Redis."""

from __future__ import annotations

import pytest
import scene
from twins import kibitz_memory, memory

from orchestrator.ledger import keys, kibitz_store, kibitzing, store


@pytest.fixture
def desks(ledger: scene.Twin) -> kibitz_store.RedisKibitzing:
    """Give desks at which nobody sits."""
    if isinstance(ledger, memory.MemoryLedger):
        return kibitz_memory.MemoryKibitzing(ledger)
    return kibitz_store.RedisKibitzing(ledger.server)


def test_a_desk_is_ones_until_it_is_left(desks: kibitz_store.RedisKibitzing) -> None:
    """Who has it keeps it, another is told who that is, and only its holder frees it."""
    assert desks.take_desk(0, "a") == "a"
    assert desks.take_desk(0, "a") == "a"
    assert desks.take_desk(0, "b") == "a"
    assert desks.take_desk(1, "b") == "b"
    assert desks.kibitzers() == {0: "a", 1: "b"}
    desks.leave_desk(0, "b")
    assert desks.kibitzers() == {0: "a", 1: "b"}
    assert desks.left() == frozenset()
    desks.leave_desk(0, "a")
    assert desks.left() == {0}, "on purpose, until somebody takes it"
    assert desks.take_desk(0, "b") == "b"
    assert desks.left() == frozenset()


def test_the_last_word_on_a_position_stands(desks: kibitz_store.RedisKibitzing) -> None:
    """Words are kept by desk, attempt and ply; each write changes the desk's mark alone."""
    assert desks.marks("a1") == (0, 0)
    desks.tell(0, "a1", 4, "first")
    desks.tell(0, "a1", 5, "next")
    before = desks.marks("a1")
    desks.tell(0, "a1", 4, "last")
    assert desks.comments(0, "a1") == {4: "last", 5: "next"}
    after = desks.marks("a1")
    assert after[0] != before[0]
    assert after[1] == before[1] == 0
    assert desks.comments(1, "a1") == {}
    assert desks.marks("a2") == (0, 0)


def test_the_order_of_the_game_in_flight_is_told_with_its_slot(ledger: scene.Twin) -> None:
    """A kibitzer learns from the slot alone what is played."""
    scene.playing(ledger)
    slot = ledger.slot("main")
    assert slot is not None
    assert slot.order == '{"game":"g1"}'


def test_all_of_it_ends_by_time(redis_ledger: store.RedisLedger) -> None:
    """Every key that a kibitzer writes expires: nothing of it stays in the farm's Redis."""
    desks = kibitz_store.RedisKibitzing(redis_ledger.server)
    desks.take_desk(0, "a")
    desks.take_desk(1, "b")
    desks.leave_desk(1, "b")
    desks.tell(0, "a1", 4, "word")
    client = redis_ledger.server.client
    found = list(client.scan_iter(match=f"{keys.PREFIX}kibitz:*"))
    assert len(found) == 3
    assert all(0 < client.pttl(key) <= kibitzing.KEPT_MS for key in found)
