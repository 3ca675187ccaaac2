"""Whose GPUs they are, and what a box tells its halls of them while games run."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import harness
import pytest

from orchestrator import contract
from orchestrator.ledger import seat_store, seats, store
from worker_gpu import seats as box
from worker_gpu import settings

TWO = "GPU-a RTX-2080-Ti 45 1545 120 0 0\nGPU-b RTX-2080 50 1800 90 4 0\n"
ENGINE = contract.EngineSpec(id="e", name="E", command=(sys.executable, "-V"), box="box-1")


@dataclasses.dataclass
class Halls:
    """Halls that want seats of one box with two GPUs."""

    configured: settings.BoxSettings
    box: box.Box
    seats: seat_store.RedisSeats
    told: pathlib.Path

    def answer(self, hall: str, sides: tuple[contract.Side, ...] = ("white",), **more: Any) -> Any:
        """Want seats for a hall's trial, and return what the box says."""
        attempt = f"trial-of-{hall}"
        request = contract.SeatRequest(
            hall=hall,
            attempt=attempt,
            token="trial",
            game="game-1",
            engines=dict.fromkeys(sides, ENGINE),
            grace_ms=1_000,
            beat_ms=100,
            **more,
        )
        self.seats.want_seats(seats.Seating("box-1", hall, attempt, None), request.encode())
        self.box.look()
        return self.now(hall)

    def now(self, hall: str) -> contract.SeatAnswer:
        """Return the box's last word to a hall."""
        text = self.seats.seat_answer("box-1", f"trial-of-{hall}")
        assert text is not None
        return contract.SeatAnswer.decode(text)


@pytest.fixture
def halls(tmp_path: pathlib.Path, told: pathlib.Path) -> Iterator[Halls]:
    """Give the box on a Redis of its own."""
    told.write_text(TWO)
    with harness.Redis(tmp_path / "redis") as server, store.connect(server.url) as ledger:
        environment = {
            "FARM_REDIS_URL": server.url_of("worker"),
            "FARM_BOX": "box-1",
            "FARM_BOX_DIR": str(tmp_path / "box"),
        }
        configured = settings.from_environment(environment)
        one = box.Box(configured)
        yield Halls(configured, one, seat_store.RedisSeats(ledger.server), told)


def test_two_halls_never_share_a_gpu(halls: Halls) -> None:
    """The second one is refused, with who has it, until the first one lets go."""
    assert halls.answer("one").gpus == {"white": ("RTX-2080-Ti GPU-a", "RTX-2080 GPU-b")}
    refused = halls.answer("two")
    assert (refused.state, refused.reason) == ("refused", "GPU GPU-a is one's, for trial-of-one")
    halls.seats.free_seats("box-1", "trial-of-one")
    assert halls.answer("two").state == "ready"


def test_each_engine_gets_a_gpu_of_its_own_where_the_event_says_so(halls: Halls) -> None:
    """White the first, Black the second; a box that lacks one refuses both."""
    answer = halls.answer("one", ("white", "black"), gpus="each")
    assert answer.gpus == {"white": ("RTX-2080-Ti GPU-a",), "black": ("RTX-2080 GPU-b",)}
    halls.told.write_text(TWO.splitlines()[0] + "\n")
    again = halls.answer("one", ("white", "black"), gpus="each")
    assert (again.state, again.reason[:24]) == ("refused", "GPU GPU-b is missing; th")


def test_a_gpu_that_is_lost_in_a_game_is_told_and_its_samples_stay(halls: Halls) -> None:
    """One that the driver shows no more, or all when it falls silent; the next look may mend it."""
    halls.answer("one")
    halls.box.sample()
    seen = halls.now("one")
    assert [(use.samples, use.lost) for use in seen.use] == [(1, ""), (1, "")]
    halls.told.write_text(TWO.splitlines()[0] + "\n")
    halls.box.sample()
    assert [use.lost for use in halls.now("one").use] == ["", "the driver shows it no more"]
    halls.told.unlink()
    halls.box.sample()
    assert all("Driver Not Loaded" in use.lost for use in halls.now("one").use)
    halls.told.write_text(TWO)
    halls.box.sample()
    last = halls.now("one")
    assert [(use.samples, use.lost) for use in last.use] == [(3, ""), (2, "")]
    assert last.use[1].throttled == ("sw power cap",)
    assert last.looks == seen.looks + 3


def test_a_worker_that_is_started_anew_looks_on(halls: Halls) -> None:
    """The samples of a game in flight go on where the last worker's have ended."""
    halls.answer("one")
    halls.box.sample()
    anew = box.Box(halls.configured)
    anew.look()
    anew.sample()
    assert [use.samples for use in halls.now("one").use] == [2, 2]
    halls.seats.free_seats("box-1", "trial-of-one")
    anew.sample()
    assert halls.seats.seat_answer("box-1", "trial-of-one") is None


def test_a_worker_that_finds_an_unreadable_answer_serves_all_the_same(halls: Halls) -> None:
    """What an earlier worker left is not looked on at; the next wish is answered."""
    halls.answer("one")
    halls.seats.tell_seats(seats.Seating("box-1", "one", "trial-of-one", None), '{"state": "odd"}')
    halls.box = box.Box(halls.configured)
    assert halls.answer("two").reason == "GPU GPU-a is one's, for trial-of-one"


def test_a_bench_tells_which_gpus_there_are(halls: Halls) -> None:
    """Name, UUID and driver of each: another one is out of the recorded band."""
    answer = halls.answer("one", ())
    assert answer.bench is not None
    assert answer.bench.gpus == (
        "RTX-2080-Ti GPU-a, driver 535.0-fake",
        "RTX-2080 GPU-b, driver 535.0-fake",
    )
