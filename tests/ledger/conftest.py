"""Ledgers to test: a real Redis for the session, emptied for each test, and the twin."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
from twins import memory

from orchestrator.ledger import embedded_redis, store


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[embedded_redis.EmbeddedRedis]:
    """Run one real server with AOF always for all tests of this folder."""
    directory = tmp_path_factory.mktemp("redis")
    with embedded_redis.EmbeddedRedis(directory) as running:
        yield running
    shutil.rmtree(directory)


@pytest.fixture
def redis_ledger(server: embedded_redis.EmbeddedRedis) -> Iterator[store.RedisLedger]:
    """Give an empty ledger on the real server."""
    with store.connect(server.url) as ledger:
        ledger.server.client.flushall()
        yield ledger


@pytest.fixture(params=["memory", "redis"])
def ledger(request: pytest.FixtureRequest) -> memory.MemoryLedger | store.RedisLedger:
    """Give each of the twins in turn, empty."""
    if request.param == "memory":
        return memory.MemoryLedger()
    redis_one: store.RedisLedger = request.getfixturevalue("redis_ledger")
    return redis_one
