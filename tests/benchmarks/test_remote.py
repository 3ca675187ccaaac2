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
    """On loopback, over real SSH: the way there and back, and what is charged in error.

    Overhead is the referee's time from its ``go`` to the answer, less the engine's own.
    """
    with bed.loopback(tmp_path) as box:
        played = remote_games.play(tmp_path, box, "0", MOVES, patience=120)
    remote = played.remote
    local = [ply for ply in played.game.plies if ply.side == "black"]
    network = sorted((ply.network_ns or 0) / 1e6 for ply in remote)
    far = played.excess_ms()
    near = remote_games.excess_ms(local, remote_games.stamps(tmp_path / "near.log"))
    whole = sorted(
        (ply.think_ns + (ply.network_ns or 0) - (wrote - read)) / 1e6
        for ply, (read, wrote) in zip(remote, played.own, strict=True)
    )

    def percentiles(values: list[float]) -> str:
        return f"p50 {statistics.median(values):.3f}, p99 {values[int(len(values) * 0.99) - 1]:.3f}"

    more = statistics.median(whole) - statistics.median(near)
    print(f"\n{len(remote)} moves each, ms a move")
    print(f"remote engine, way there and back (not charged): {percentiles(network)}")
    print(f"remote engine, charged beyond its own log:       {percentiles(far)}")
    print(f"remote engine, both together:                    {percentiles(whole)}")
    print(f"local engine, charged beyond its own log:        {percentiles(near)}")
    print(f"overhead of a remote move over a local one:      p50 {more:.3f}")
    assert remote
    assert local
