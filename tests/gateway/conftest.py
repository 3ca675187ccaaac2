"""A real Redis with the farm's users for this folder, emptied for each test; a stage on it."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Iterator

import harness
import pytest
import remote_stage

from orchestrator.ledger import store


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[harness.Redis]:
    """Run one real server for all tests of this folder."""
    directory = tmp_path_factory.mktemp("redis")
    with harness.Redis(directory) as running:
        yield running
    shutil.rmtree(directory)


@pytest.fixture
def redis(server: harness.Redis) -> harness.Redis:
    """Give the server, emptied."""
    with store.connect(server.url) as ledger:
        ledger.server.client.flushall()
    return server


@pytest.fixture
def stage(tmp_path: pathlib.Path, redis: harness.Redis) -> Iterator[remote_stage.Stage]:
    """Give a stage; leave no process behind."""
    made = remote_stage.Stage(tmp_path, redis)
    try:
        yield made
    finally:
        made.end()
