"""What a box answers a hall: seats, or the reason why there are none."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import shutil
import sys
import threading
from collections.abc import Iterator

import harness
import pytest
import structlog

from orchestrator import contract
from orchestrator.ledger import api, connection, keys, seat_store, seats, store
from worker_gpu import seats as box
from worker_gpu import settings, tasks

WISH = seats.Seating("box-1", "main", "trial-1", None)


@dataclasses.dataclass
class Wishing:
    """A box without GPUs, and a hall that wants seats on it."""

    box: box.Box
    directory: pathlib.Path
    seats: seat_store.RedisSeats
    server: connection.Server

    def answer(self, **engines: contract.EngineSpec) -> contract.SeatAnswer:
        """Want seats for engines by their side, and return what the box says."""
        request = contract.SeatRequest(
            hall="main",
            attempt="trial-1",
            token="trial",
            game="game-1",
            engines=engines,
            grace_ms=1_000,
            beat_ms=100,
        )
        assert self.seats.want_seats(WISH, request.encode()) == api.Written()
        self.box.look()
        told = self.seats.seat_answer("box-1", "trial-1")
        assert told is not None
        return contract.SeatAnswer.decode(told)


@pytest.fixture
def wishing(tmp_path: pathlib.Path) -> Iterator[Wishing]:
    """Give a box on a Redis of its own; its engines have one core."""
    directory = tmp_path / "box"
    with harness.Redis(tmp_path / "redis") as server:
        configured = settings.from_environment(
            {
                "FARM_REDIS_URL": server.url_of("worker"),
                "FARM_BOX": "box-1",
                "FARM_BOX_DIR": str(directory),
                "FARM_BOX_GPUS": "none",
                "FARM_BOX_CPUS": str(harness.CORES[0]),
            }
        )
        with store.connect(server.url) as ledger:
            wishes = seat_store.RedisSeats(ledger.server)
            yield Wishing(box.Box(configured), directory, wishes, ledger.server)


def engine(name: str, *command: str) -> contract.EngineSpec:
    """Describe an engine of the box."""
    return contract.EngineSpec(id=name, name=name, command=command, box="box-1")


def test_a_seat_is_an_order_for_the_agent(wishing: Wishing) -> None:
    """Program and checksum, cores, limits and an environment of its own stand in it."""
    answer = wishing.answer(white=engine("one", sys.executable, "-V"))
    assert answer.state == "ready"
    order = json.loads((wishing.directory / "seats" / f"{answer.seats['white']}.json").read_text())
    assert order["argv"] == [sys.executable, "-V"]
    assert list(order["checksums"]) == [sys.executable]
    assert order["cpus"] == harness.CORES[:1]
    assert order["limits"] == {"CORE": 0, "RTPRIO": 0}
    assert order["env"]["CUDA_VISIBLE_DEVICES"] == "", "no GPU was given"
    assert order["env"]["FARM_GAME"] == "game-1"
    assert "FARM_REDIS_URL" not in order["env"]


def test_its_log_names_season_game_and_attempt(wishing: Wishing) -> None:
    """As the hall's lines do, so that one search finds what both did for a game."""
    ids = {"season": "s", "game": "league.1", "attempt": "a-1", "hall": "main"}
    token, numbers = contract.Token(1, 1), ("ttl", "deadline", "ply", "last_move")
    slot = dict.fromkeys(("worker", "host", "lane", "suspect", "abort"), "") | ids
    slot |= dict.fromkeys(numbers, str(2**40)) | {"token": str(token)}
    wishing.server.client.hset(keys.Keys().slot("main"), mapping=slot)
    request = contract.SeatRequest(
        hall="main",
        attempt="a-1",
        token=str(token),
        game="league.1",
        engines={"white": engine("one", sys.executable, "-V")},
        grace_ms=1_000,
        beat_ms=100,
    )
    seating = seats.Seating("box-1", "main", "a-1", token)
    assert wishing.seats.want_seats(seating, request.encode()) == api.Written()
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        wishing.box.look()
    (line,) = [one for one in lines if one["event"] == "seats.answered"]
    assert line.items() >= (ids | {"state": "ready"}).items()


def test_what_a_box_lacks_is_a_refusal_with_its_reason(wishing: Wishing) -> None:
    """A program that is not there, and a disk that takes nothing, are the host's faults."""
    answer = wishing.answer(white=engine("one", "/nowhere/engine"))
    assert answer.state == "refused"
    assert "/nowhere/engine) is not on this box" in answer.reason
    shutil.rmtree(wishing.directory / "seats")
    (wishing.directory / "seats").write_text("no directory: nothing can be written")
    answer = wishing.answer(white=engine("one", sys.executable))
    assert answer.state == "refused"
    assert "no seat can be prepared" in answer.reason


def test_what_nobody_waits_for_any_more_is_dropped(wishing: Wishing) -> None:
    """The wish of a trial that died is not served again and again beside its hall's game."""
    request = contract.SeatRequest(
        hall="main",
        attempt="trial-1",
        token="trial",
        game="bench",
        engines={},
        grace_ms=1_000,
        beat_ms=100,
    )
    assert wishing.seats.want_seats(WISH, request.encode()) == api.Written()
    wishing.server.client.hset(keys.Keys().slot("main"), "attempt", "a-1")
    wishing.box.look()
    assert wishing.seats.wanted_seats("box-1") == {}
    assert wishing.seats.seat_answer("box-1", "trial-1") is None


def test_a_look_that_fails_is_followed_by_the_next() -> None:
    """No error ends the beat by which a box sees what is wanted of it."""
    stop, looks = threading.Event(), []

    def look() -> None:
        looks.append(1)
        if len(looks) == 1:
            raise OSError(28, "No space left on device")
        stop.set()

    tasks.beat(0.001, look, stop)
    assert len(looks) == 2
