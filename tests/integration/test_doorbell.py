"""The doorbell's connection to Redis: how soon a worker hears again."""

from __future__ import annotations

import pathlib

import kombu.exceptions
import pytest

from orchestrator import celery


def test_a_worker_connects_again_within_a_restart_of_redis(tmp_path: pathlib.Path) -> None:
    """The first waits for a server that is not there are shorter than a restart takes."""
    waits: list[float] = []
    connection = celery.app.connection_for_read(f"redis+socket://{tmp_path / 'nobody.sock'}")
    with connection, pytest.raises(kombu.exceptions.OperationalError):
        connection.ensure_connection(lambda _, seconds: waits.append(seconds), max_retries=2)
    assert waits == pytest.approx([0.2, 0.5])
