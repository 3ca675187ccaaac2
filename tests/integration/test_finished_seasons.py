"""What a farm's processes ask of Redis for seasons that are over and archived: nothing."""

from __future__ import annotations

import pathlib

import resting

from orchestrator import contract
from orchestrator.ledger import embedded_redis, store

FEW, MANY = 6, 9  # seasons; the exporter shows the latest five


def test_finished_seasons_cost_no_process_a_command(tmp_path: pathlib.Path) -> None:
    """Page, notices, exporter and ``farm status``, beside few and beside many finished seasons."""
    counted = []
    with (
        embedded_redis.EmbeddedRedis(tmp_path / "redis") as server,
        store.connect(server.url) as ledger,
    ):
        for seasons in (FEW, MANY):
            for number in range(len(ledger.seasons()), seasons):
                resting.finished(ledger, f"s{number}")
            assert len(ledger.resting()) == seasons
            counted.append(resting.commands_of_a_pass(ledger, tmp_path / str(seasons)))
        assert counted[0] == counted[1]
        draft = contract.Draft("paused", {"name": "ann", "reason": "too late"})
        ledger.append("s1", ledger.last("s1"), [draft], "test")
        assert "s1" not in ledger.resting(), "it has grown"
        ledger.raise_epoch(2)
        assert not ledger.resting(), "a restore compares all of them again"
