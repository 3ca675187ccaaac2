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
from hypothesis import given
from hypothesis import strategies as st

from orchestrator import celery
from orchestrator.contract import bells, rings
from orchestrator.serve import doorbell

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
    (("headers", "expires"), "soon"),
    (("headers", "expires"), "0001-01-01T00:00:00+00:00"),
    (("headers", "expires"), "2020-01-01T00:00:00+00:00"),  # long ago by every clock
    (("headers", "expires"), 1),
    (("properties", "delivery_info"), {"routing_key": "elsewhere"}),
    (("properties", "reply_to"), 5),
]
NO_MESSAGES = (
    *(b"garbage", b"", b"[]", b"5", b"null", b"{}", b"[" * 100_000, b"\xff\xfe\x00"),
    # Each of these ended a worker: kombu's decoder makes objects of them, or Python an integer.
    *(b'{"__type__":"x","__value__":1}', b'{"__type__":"decimal","__value__":"x"}'),
    *(b'{"__type__":"uuid","__value__":"x"}', b'{"__type__":"datetime","__value__":"x"}'),
    *(b'{"body": %s}' % (b"9" * 5_000), b'{"a":1e999,"b":NaN}'),
)
OTHER_KEYS = (  # a key of another type than Celery's
    ("SET", "{key}", "x"),
    ("HSET", "{key}", "a", "b"),
    ("SADD", "{key}", "a"),
    ("ZADD", "{key}", "1", "a"),
    ("XADD", "{key}", "*", "a", "b"),
)


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
    with harness.Redis(tmp_path_factory.mktemp("ring") / "redis") as server:
        doorbell.at(server.url_of("orchestrator"))("nobody")
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


def plain(message: Any, queue: str = "farm.play.nobody") -> dict[str, Any] | None:
    """Return the ring that a message is."""
    made = rings.plain(json.dumps(message).encode(), queue)
    return None if made is None else json.loads(made)


def test_a_ring_is_a_ring(ring: dict[str, Any]) -> None:
    """What `serve` writes passes, and so does again what an outage has put back into the queue."""
    made = plain(ring)
    assert made is not None
    for name in ("task", "id", "eta", "timelimit", "retries", "root_id"):
        assert made["headers"][name] == ring["headers"][name], name
    assert made["properties"]["delivery_info"] == ring["properties"]["delivery_info"]
    again = changed(made, ("headers", "redelivered"), value=True)
    again = changed(again, ("properties", "delivery_info", "redelivered"), value=True)
    assert plain(again) == made


@pytest.mark.parametrize(("path", "value"), STRANGE, ids=lambda one: str(one)[:40])
def test_a_ring_is_made_again(ring: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Of what else stands in a ring nothing reaches Celery; no ring expires by anybody's clock."""
    made = plain(changed(ring, path, value))
    assert made is not None
    assert made == plain(ring)
    assert made["headers"]["expires"] is None


@pytest.mark.parametrize(("path", "value"), CHANGES, ids=lambda one: str(one)[:40])
def test_what_says_more_than_look_is_no_ring(
    ring: dict[str, Any], path: tuple[str, ...], value: Any
) -> None:
    """Another task, arguments, tasks to be called behind, a time limit, another encoding."""
    assert plain(changed(ring, path, value)) is None
    missing = changed(ring, path, value)
    place = missing if len(path) == 1 else missing[path[0]]
    del place[path[-1]]
    assert plain(missing) is None


NAMES = (
    *("body", "headers", "properties", "content-type", "content-encoding", "task", "id", "eta"),
    *("expires", "delivery_tag", "clock", "delivery_info", "body_encoding", "timelimit"),
    *("__type__", "__value__", "exchange", "routing_key"),
)
WORDS = st.sampled_from(NAMES)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | WORDS
    | st.sampled_from(["base64", "utf-8", "application/json", "farm.play", "W10=", "e30="]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | WORDS, inner),
    max_leaves=20,
)


@given(raw=st.binary() | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_are_more_than_a_message(raw: bytes) -> None:
    """Whatever arrives is a message that Celery can read, or none; nothing is raised."""
    for made in (rings.plain(raw, "farm.play.x"), rings.plain_message(raw)):
        assert made is None or json.loads(made)["properties"]["delivery_tag"]


@given(data=st.data())
def test_no_part_of_a_message_is_trusted(ring: dict[str, Any], data: st.DataObject) -> None:
    """Any part of a ring may be anything: what passes is the ring, made again."""
    spoilt = copy.deepcopy(ring)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(_paths(spoilt)))
        place = spoilt
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = data.draw(VALUES)
    made = rings.plain(json.dumps(spoilt).encode(), "farm.play.x")
    if made is not None:
        told = json.loads(made)
        assert told["body"] == plain(ring)["body"]  # type: ignore[index]
        assert told["headers"]["task"] in (bells.PLAY, bells.PREPARE)
        assert told["headers"]["expires"] is None


def _paths(value: Any) -> list[tuple[str, ...]]:
    """Return the ways to all parts of nested tables."""
    if not isinstance(value, dict):
        return []
    return [
        path
        for name in value
        for path in ((name,), *((name, *rest) for rest in _paths(value[name])))
    ]


def test_a_hall_away_finds_one_ring(tmp_path: pathlib.Path) -> None:
    """However often it was rung, and whatever lay there before: rings do not pile up."""
    with harness.Redis(tmp_path / "redis") as server:
        ring = doorbell.at(server.url_of("orchestrator"))
        with redis.Redis.from_url(server.url) as client:
            key = f"{bells.KEYS}{bells.queue('away')}"
            for _ in range(5):
                ring("away")
            assert client.llen(key) == 1
            for words in OTHER_KEYS:
                client.delete(key)
                client.execute_command(*(word.format(key=key) for word in words))
                ring("away")
                assert client.lrange(key, 0, -1), words


def test_a_worker_outlives_whatever_arrives(ring: dict[str, Any], tmp_path: pathlib.Path) -> None:
    """What is no message is dropped, counted and logged once; the same process plays then."""
    foreign = [json.dumps(changed(ring, path, value)) for path, value in CHANGES]
    strange = [json.dumps(changed(ring, path, value)) for path, value in STRANGE]
    queue = f"{bells.KEYS}{bells.queue(harness.HALL)}"
    with harness.running(tmp_path) as farm:
        farm.wait(lambda: harness.HALL in farm.ledger.halls(), 30, "the hall")
        worker, client = farm.worker.pid, farm.ledger.server.client
        control = f"{bells.KEYS}/0.celery.pidbox"
        farm.wait(lambda: client.pubsub_numpat() > 0, 30, "the worker's remote control")
        client.lpush(queue, *NO_MESSAGES, *foreign, *strange)
        for message in (*NO_MESSAGES, *foreign, *strange):
            client.publish(control, message)
        farm.wait(lambda: not client.exists(queue), 30, "an empty queue")
        for words in OTHER_KEYS:
            client.execute_command(*(word.format(key=queue) for word in words))
            farm.wait(lambda: not client.exists(queue), 30, f"no key made by {words[0]}")

        def counted() -> int:
            told: dict[bytes, bytes] = client.hgetall(bells.DROPPED)
            return int(told.get(bells.queue(harness.HALL).encode(), b"0"))

        expected = len(NO_MESSAGES) + len(foreign) + len(OTHER_KEYS)
        farm.wait(lambda: counted() == expected, 30, "all dropped messages counted")
        operator = farm.environment(harness.OPERATOR)
        assert "pong" in harness.answered(operator, "inspect", "ping").stdout
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(farm.root / "s.toml", engines, double_rounds=1), "s")
        begun = "attempt_started"
        farm.wait(lambda: any(e.kind == begun for e in farm.ledger.read("s")), 30, "a game")
        assert farm.worker.pid == worker
        lines = farm.worker.log.read_text().count("message.dropped")
        assert 0 < lines <= 3, "a flood of garbage is no flood of lines"


def test_a_worker_starts_on_spoilt_keys(tmp_path: pathlib.Path) -> None:
    """Every key that Celery keeps may have another type before a worker starts: it plays."""
    names = (
        *(bells.queue(harness.HALL), "_kombu.binding_deadlines", "unacked", "unacked_index"),
        *(f"_kombu.binding.{one}" for one in (bells.queue(harness.HALL), "celery.pidbox")),
        *(f"_kombu.binding_permanent.{one}" for one in ("celery.pidbox", "celeryev")),
    )
    with harness.running(tmp_path) as farm:
        farm.worker.kill()
        client = farm.ledger.server.client
        for name in names:
            client.delete(bells.KEYS + name)
            client.set(bells.KEYS + name, "x")
        farm.worker.start()
        worker = farm.worker.pid
        engines = [harness.scripted(farm.life, strength) for strength in (1, 2)]
        farm.launch(harness.league(farm.root / "s.toml", engines, double_rounds=1), "s")
        begun = "attempt_started"
        farm.wait(lambda: any(e.kind == begun for e in farm.ledger.read("s")), 30, "a game")
        assert farm.worker.pid == worker
