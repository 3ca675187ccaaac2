"""The doorbell: how soon a worker hears again, and what it does not listen to."""

from __future__ import annotations

import base64
import copy
import json
import pathlib
import pickle
from typing import Any

import harness
import kombu.exceptions
import pytest
import redis

from orchestrator import celery, doorbell, embedded
from orchestrator.contract import bells, rings

JSON_ARGUMENTS = b'[["/bin/sh"], {}, {}]'
JSON_CALLBACK = b'[[], {}, {"chain": [{"task": "farm.play"}]}]'
CHANGES: list[tuple[tuple[str, ...], Any]] = [
    (("body",), ""),
    (("body",), None),
    (("body",), "!!!"),
    (("body",), base64.b64encode(JSON_ARGUMENTS).decode()),
    (("body",), base64.b64encode(JSON_CALLBACK).decode()),
    (("body",), base64.b64encode(pickle.dumps("x")).decode()),
    (("content-type",), "application/x-python-serialize"),
    (("content-encoding",), "binary"),
    (("headers",), []),
    (("headers",), None),
    (("headers", "task"), "os.system"),
    (("headers", "task"), ["farm.play"]),
    (("headers", "id"), None),
    (("headers", "eta"), "2030-01-01T00:00:00"),
    (("headers", "expires"), "soon"),
    (("headers", "timelimit"), [1, 1]),
    (("properties",), None),
    (("properties", "body_encoding"), "none"),
    (("properties", "delivery_tag"), None),
    (("properties", "delivery_info"), {}),
]
NO_MESSAGES = (b"garbage", b"", b"[]", b"5", b"null", b"{}", b"[" * 100_000, b"\xff\xfe\x00")


def test_a_worker_connects_again_within_a_restart_of_redis(tmp_path: pathlib.Path) -> None:
    """The first waits for a server that is not there are shorter than a restart takes."""
    waits: list[float] = []
    connection = celery.app.connection_for_read(f"redis+socket://{tmp_path / 'nobody.sock'}")
    with connection, pytest.raises(kombu.exceptions.OperationalError):
        connection.ensure_connection(lambda _, seconds: waits.append(seconds), max_retries=2)
    assert waits == pytest.approx([0.2, 0.5])


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a ring as ``serve`` writes it into a hall's queue."""
    with embedded.EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        doorbell.at(server.url)("nobody")
        with redis.Redis.from_url(server.url) as client:
            (raw,) = client.lrange(f"{bells.KEYS}{bells.queue('nobody')}", 0, -1)
    told: dict[str, Any] = json.loads(raw)
    return told


def changed(ring: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """Return a ring with one part of it exchanged."""
    made = copy.deepcopy(ring)
    place = made
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return made


def test_a_ring_is_a_ring(ring: dict[str, Any]) -> None:
    """What `serve` writes passes, and what was put back into the queue after an outage."""
    assert rings.is_ring(ring)
    again = changed(ring, ("headers", "redelivered"), value=True)
    assert rings.is_ring(changed(again, ("properties", "delivery_info", "redelivered"), value=True))


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda one: str(one)[:40])
def test_what_says_more_than_look_is_no_ring(
    ring: dict[str, Any], path: tuple[str, ...], value: Any
) -> None:
    """Another task, arguments, tasks to be called behind, a time limit, another encoding."""
    assert not rings.is_ring(changed(ring, path, value))
    missing = changed(ring, path, value)
    place = missing if len(path) == 1 else missing[path[0]]
    del place[path[-1]]
    assert not rings.is_ring(missing)


def test_a_worker_outlives_whatever_is_in_its_queue(
    ring: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """What is no ring is dropped by the same process, which then hears a ring and plays."""
    foreign = [json.dumps(changed(ring, path, value)) for path, value in CHANGES]
    with harness.running(tmp_path) as farm:
        queue = f"{bells.KEYS}{bells.queue(harness.HALL)}"
        farm.wait(lambda: harness.HALL in farm.ledger.halls(), 30, "the hall")
        worker = farm.worker.pid
        client = farm.ledger.server.client
        assert client.pubsub_numpat() == 0, "a subscription is read without a time-out"
        client.lpush(queue, *NO_MESSAGES, *foreign)
        farm.wait(lambda: not client.exists(queue), 30, "an empty queue")
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(farm.root / "s.toml", engines, double_rounds=1), "s")
        begun = "attempt_started"
        farm.wait(lambda: any(e.kind == begun for e in farm.ledger.read("s")), 30, "a game")
        assert farm.worker.pid == worker
