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

from orchestrator import celery, doorbell
from orchestrator.contract import bells, rings

JSON_ARGUMENTS = b'[["/bin/sh"], {}, {}]'
JSON_CALLBACK = b'[[], {}, {"chain": [{"task": "farm.play"}]}]'
CHANGES: list[tuple[tuple[str, ...], Any]] = [
    (("body",), ""),
    (("body",), None),
    (("body",), "!!!"),
    (("body",), base64.b64encode(JSON_ARGUMENTS).decode()),
    (("body",), base64.b64encode(JSON_CALLBACK).decode()),
    (("body",), base64.b64encode(b"[[], {}, null]").decode()),
    (("body",), base64.b64encode(b'[[], {}, "x"]').decode()),
    (("body",), base64.b64encode(pickle.dumps("x")).decode()),
    (("content-type",), "application/x-python-serialize"),
    (("content-encoding",), "binary"),
    (("headers",), []),
    (("headers",), None),
    (("headers", "task"), "os.system"),
    (("headers", "task"), ["farm.play"]),
    (("headers", "id"), None),
    (("headers", "eta"), "2030-01-01T00:00:00"),
    (("headers", "id"), "\ud800"),
    (("headers", "expires"), "soon"),
    (("headers", "expires"), "0001-01-01T00:00:00+00:00"),
    (("headers", "timelimit"), [1, 1]),
    (("properties",), None),
    (("properties", "body_encoding"), "none"),
    (("properties", "delivery_tag"), None),
    (("properties", "delivery_tag"), "\ud800"),
]
# Celery reads these too; what of them ends a worker, or leads elsewhere, must not pass.
STRANGE: list[tuple[tuple[str, ...], Any]] = [
    (("headers", "stamps"), 5),
    (("headers", "compression"), "gzip"),
    (("headers", "retries"), "x"),
    (("headers", "shadow"), 5),
    (("headers", "group"), {}),
    (("headers", "expires"), "2999-01-01T00:00:00+00:00:01"),
    (("properties", "delivery_info"), {"routing_key": "elsewhere"}),
    (("properties", "reply_to"), 5),
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
    with harness.Redis(tmp_path_factory.mktemp("redis")) as server:
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
    """What `serve` writes passes, and so does again what an outage has put back into the queue."""
    made = rings.plain(ring, "farm.play.nobody")
    assert made is not None
    for name in ("task", "id", "expires", "eta", "timelimit", "retries", "root_id"):
        assert made["headers"][name] == ring["headers"][name], name
    assert made["properties"]["delivery_info"] == ring["properties"]["delivery_info"]
    again = changed(made, ("headers", "redelivered"), value=True)
    again = changed(again, ("properties", "delivery_info", "redelivered"), value=True)
    assert rings.plain(again, "farm.play.nobody") == made


@pytest.mark.parametrize(("path", "value"), STRANGE, ids=lambda one: str(one)[:40])
def test_a_ring_is_made_anew(ring: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Of what else stands in a ring nothing reaches Celery."""
    known, made = rings.plain(ring, "q"), rings.plain(changed(ring, path, value), "q")
    assert known is not None
    assert made is not None
    known["headers"].pop("expires")
    assert made["headers"].pop("expires").endswith("+00:00")
    assert made == known


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda one: str(one)[:40])
def test_what_says_more_than_look_is_no_ring(
    ring: dict[str, Any], path: tuple[str, ...], value: Any
) -> None:
    """Another task, arguments, tasks to be called behind, a time limit, another encoding."""
    assert rings.plain(changed(ring, path, value), "q") is None
    missing = changed(ring, path, value)
    place = missing if len(path) == 1 else missing[path[0]]
    del place[path[-1]]
    assert rings.plain(missing, "q") is None


def test_a_worker_outlives_whatever_is_in_its_queue(
    ring: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """What is no ring is dropped by the same process, which then hears a ring and plays."""
    fresh = changed(ring, ("headers", "expires"), None)  # an old one is not even looked at
    foreign = [json.dumps(changed(fresh, path, value)) for path, value in (*CHANGES, *STRANGE)]
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
