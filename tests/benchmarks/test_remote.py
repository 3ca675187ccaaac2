"""What a move of a remote engine costs beside one of a local engine: prints, asserts no time."""

from __future__ import annotations

import os
import pathlib
import statistics

import bed
import pytest
import remote_games

MOVES = 100 if os.environ.get("FARM_BENCH") == "long" else 12


@pytest.mark.benchmark
def test_a_remote_move_beside_a_local_one(tmp_path: pathlib.Path) -> None:
    """On loopback, over real SSH: the way there and back, and what is charged in error."""
    with bed.loopback(tmp_path) as box:
        played = remote_games.play(tmp_path, box, "0", MOVES, patience=120)
    remote = played.remote
    local = [ply for ply in played.game.plies if ply.side == "black"]
    network = sorted((ply.network_ns or 0) / 1e6 for ply in remote)
    excess = played.excess_ms()
    own = [int(word) / 1e6 for word in (tmp_path / "near.log").read_text().split()]
    near = sorted(ply.think_ns / 1e6 - it for ply, it in zip(local, own, strict=True))

    def told(values: list[float]) -> str:
        return f"p50 {statistics.median(values):.3f}, p99 {values[int(len(values) * 0.99) - 1]:.3f}"

    print(f"\n{len(remote)} moves each, ms a move")
    print(f"remote engine, way there and back (not charged): {told(network)}")
    print(f"remote engine, charged beyond its own log:       {told(excess)}")
    print(f"local engine, charged beyond its own log:        {told(near)}")
    assert remote
    assert local
