"""The contract of GPU seats: one suite for the twin in memory and for Redis."""

from __future__ import annotations

import dataclasses

import pytest
import scene
from twins import memory, seat_memory

from orchestrator import contract
from orchestrator.ledger import api, seat_store, seats

BOX = "box-1"


@dataclasses.dataclass
class Table:
    """A ledger with a game in flight, and the seats on it."""

    ledger: scene.Twin
    seats: seat_store.RedisSeats
    token: contract.Token

    @property
    def seating(self) -> seats.Seating:
        """Return the playing attempt's."""
        return seats.Seating(BOX, "main", "a1", self.token)


@pytest.fixture
def table(ledger: scene.Twin) -> Table:
    """Give a hall that plays, and no seat."""
    kept: seat_store.RedisSeats
    if isinstance(ledger, memory.MemoryLedger):
        kept = seat_memory.MemorySeats(ledger)
    else:
        kept = seat_store.RedisSeats(ledger.server)
    return Table(ledger, kept, scene.playing(ledger))


def test_a_wish_is_answered_once_and_then_forgotten(table: Table) -> None:
    """What a hall wants is seen by the box, and the answer by the hall, until all is freed."""
    assert table.seats.want_seats(table.seating, "request") == api.Written()
    assert table.seats.wanted_seats(BOX) == {"a1": "request"}
    assert table.seats.seat_answer(BOX, "a1") is None
    for _ in range(2):
        assert table.seats.take_seats(table.seating, ["G1", "G2"], "answer") == api.Written()
    assert table.seats.wanted_seats(BOX) == {}
    assert table.seats.seat_answer(BOX, "a1") == "answer"
    held = table.seats.gpu_holders()
    assert {uuid: holder.attempt for uuid, holder in held.items()} == {"G1": "a1", "G2": "a1"}
    table.seats.free_seats(BOX, "a1")
    assert table.seats.seat_answer(BOX, "a1") is None
    assert table.seats.gpu_holders() == {}


def test_each_box_answers_for_itself(table: Table) -> None:
    """Of an attempt with engines on two boxes each box's answer is known, and freed, alone."""
    other = dataclasses.replace(table.seating, box="box-2")
    for seating in (table.seating, other):
        assert table.seats.want_seats(seating, "request") == api.Written()
    assert table.seats.take_seats(table.seating, ["G1"], "one") == api.Written()
    assert table.seats.seat_answer("box-2", "a1") is None
    assert table.seats.wanted_seats("box-2") == {"a1": "request"}
    assert table.seats.take_seats(other, ["G2"], "two") == api.Written()
    assert table.seats.tell_seats(table.seating, "three") == api.Written()
    assert [table.seats.seat_answer(box, "a1") for box in (BOX, "box-2")] == ["three", "two"]
    table.seats.free_seats(BOX, "a1")
    assert table.seats.seat_answer(BOX, "a1") is None
    assert table.seats.seat_answer("box-2", "a1") == "two"


def test_gpus_are_taken_before_the_wish_is_answered(table: Table) -> None:
    """A box that dies between taking and answering finds the wish again."""
    table.seats.want_seats(table.seating, "request")
    assert table.seats.take_seats(table.seating, ["G1"], "") == api.Written()
    assert table.seats.gpu_holders()["G1"].attempt == "a1"
    assert table.seats.seat_answer(BOX, "a1") is None
    assert table.seats.wanted_seats(BOX) == {"a1": "request"}


def test_only_an_answer_that_stands_is_told_anew(table: Table) -> None:
    """What is freed, or whose game is over, is not brought back by a box's next look."""
    assert table.seats.tell_seats(table.seating, "again") == api.Fenced(), "none was given"
    table.seats.take_seats(table.seating, ["G1"], "answer")
    assert table.seats.tell_seats(table.seating, "again") == api.Written()
    assert table.seats.seat_answer(BOX, "a1") == "again"
    table.ledger.give_up("main", table.token, "s1", scene.ended())
    assert table.seats.tell_seats(table.seating, "late") == api.Fenced()
    trial = seats.Seating(BOX, "main", "trial-1", None)
    table.seats.take_seats(trial, ["G1"], "answer")
    assert table.seats.tell_seats(trial, "again") == api.Written()
    table.seats.free_seats(BOX, "trial-1")
    assert table.seats.tell_seats(trial, "late") == api.Fenced()
    assert table.seats.gpu_holders() == {}


def test_no_two_attempts_have_one_gpu(table: Table) -> None:
    """A GPU of a running game is refused to another hall; its other GPUs are not."""
    table.seats.take_seats(table.seating, ["G1"], "answer")
    rival = seats.Seating("box-2", "other", "trial-1", None)
    expected = seats.Taken("G1", "main", "a1")
    assert table.seats.take_seats(rival, ["G2", "G1"], "answer") == expected
    assert "G2" not in table.seats.gpu_holders()
    assert table.seats.take_seats(rival, ["G2"], "answer") == api.Written()


def test_an_official_game_takes_the_gpus_of_another_halls_test(table: Table) -> None:
    """A test or a rehearsal keeps its GPUs from other tests alone."""
    test = seats.Seating("box-2", "other", "lane-1", None)
    assert table.seats.take_seats(test, ["G1"], "answer") == api.Written()
    rival = seats.Seating("box-2", "third", "trial-1", None)
    assert table.seats.take_seats(rival, ["G1"], "answer") == seats.Taken("G1", "other", "lane-1")
    assert table.seats.take_seats(table.seating, ["G1"], "answer") == api.Written()
    assert table.seats.gpu_holders()["G1"].attempt == "a1"
    table.seats.free_seats("box-2", "lane-1")
    assert table.seats.gpu_holders()["G1"].attempt == "a1", "not its own any more"


def test_a_gpu_of_a_game_that_is_over_is_free(table: Table) -> None:
    """An attempt that ended without freeing its GPUs holds nobody up."""
    table.seats.take_seats(table.seating, ["G1"], "answer")
    table.ledger.give_up("main", table.token, "s1", scene.ended())
    rival = seats.Seating(BOX, "other", "trial-1", None)
    assert table.seats.take_seats(rival, ["G1"], "answer") == api.Written()
    table.seats.free_seats(BOX, "a1")
    assert table.seats.gpu_holders()["G1"].attempt == "trial-1", "not its own any more"


@pytest.mark.parametrize("verb", ["want", "take"])
def test_only_the_holder_of_the_slot_gets_a_seat(table: Table, verb: str) -> None:
    """A token that is not the slot's, or of an older epoch, gets nothing."""

    def ask(seating: seats.Seating) -> object:
        if verb == "want":
            return table.seats.want_seats(seating, "request")
        return table.seats.take_seats(seating, ["G1"], "answer")

    false = contract.Token(table.token.epoch, table.token.n + 1)
    assert ask(dataclasses.replace(table.seating, token=false)) == api.Fenced()
    assert ask(dataclasses.replace(table.seating, attempt="a2")) == api.Fenced()
    assert ask(table.seating) == api.Written()
    scene.raise_epoch(table.ledger, 9)
    assert ask(table.seating) == api.Fenced()


def test_a_trial_gives_way_to_a_game(table: Table) -> None:
    """A trial wants nothing while its hall plays, and loses its GPUs when it begins to."""
    trial = seats.Seating(BOX, "main", "trial-1", None)
    assert table.seats.want_seats(trial, "request") == api.Fenced()
    table.ledger.give_up("main", table.token, "s1", scene.ended())
    assert table.seats.take_seats(trial, ["G1"], "answer") == api.Written()
    scene.offer(table.ledger)
    token = scene.again(table.ledger, "a2")
    game = seats.Seating(BOX, "main", "a2", token)
    assert table.seats.take_seats(game, ["G1"], "answer") == api.Written()
