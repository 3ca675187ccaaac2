"""What spectators see of a running game: the clocks of the early ends among it."""

from __future__ import annotations

import json

import chess
import hall
import made
import pytest
from twins import memory

from orchestrator import contract
from orchestrator.commands import watch
from orchestrator.ledger import api
from worker_cpu.link import live_status


def test_the_clocks_of_a_ply_are_published_with_the_next_thought() -> None:
    """Plies to draw and win and moves to fifty are part of the public picture."""
    ledger, spec = memory.MemoryLedger(), hall.scripted()
    claim = api.Claim("hall", "s", "g", "a", "worker", "host", "whole", 1_000)
    board = live_status.LiveStatus(ledger, hall.order(spec, spec), claim, now_ms=0)
    counters = contract.Counters(plies_to_draw=9, plies_to_win=10, moves_to_fifty=49, rd=9, rr=-11)
    ply = made.ply(1, "g1f3", "Nf3", counters=counters)
    board.ply(ply)
    board.think(b'{"side":"black","white_clock_ns":61000000,"black_clock_ns":59000000}')
    shown = json.loads(ledger.live("hall") or "{}")
    assert (shown["thinking"], shown["white"]["clock_ms"], shown["black"]["clock_ms"]) == (
        "black",
        61,
        59,
    )
    assert contract.Counters.model_validate(shown["counters"]) == counters
    board.ply(ply.model_copy(update={"counters": None}))


def test_watchers_read_how_near_the_end_is() -> None:
    """A rule that is not played is not shown."""
    counters = contract.Counters(plies_to_win=3, moves_to_fifty=49, rr=3)
    shown = watch._counters(counters)
    assert shown == "fifty-move rule in 49 moves\nwin rule in 3 plies"


@pytest.mark.parametrize(("inked", "king"), [(True, "♚"), (False, "♔")])
def test_the_sides_can_be_told_apart_without_colours(*, inked: bool, king: str) -> None:
    """White's pieces are outlines where no ink tells them from Black's."""
    drawn = watch._draw(chess.STARTING_FEN, "", inked=inked).plain.splitlines()
    assert "♚" in drawn[0]
    assert king in drawn[7]
