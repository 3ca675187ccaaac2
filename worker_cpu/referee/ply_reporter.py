"""What the link is told of the plies of one game, and when.

A journaled order's plies go out one by one, and the link is waited for with both clocks
stopped. Those of any other order are kept as they are, and written down when the game has
ended (decision 021); of those that only a PGN is wanted of nothing but the PGN is sent. Where
somebody looks on (``shown``) they are queued as they come, while no clock runs, and sent when
the channel is tried next: nobody waits for them.
Invariant: the content of a ply does not depend on when it is told.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeAlias

from orchestrator import contract
from orchestrator.arbiter import board
from worker_cpu.protocols import base
from worker_cpu.referee import io_loop, plies, result
from worker_cpu.wire import frames

PIECE_BYTES = 1 << 20  # bytes of a PGN in a frame: far below the limit of one

Search: TypeAlias = Callable[[contract.Side, bytes], base.Search]  # reads a search's output


class Telling:
    """Tells one game's link of its plies; ``waited_ns`` is how long it was waited for last."""

    def __init__(self, table: io_loop.Desk, order: contract.GameOrder) -> None:
        self._table, self._order = table, order
        self._kept: list[plies.Played] = []
        self._sent_ns = 0
        self.waited_ns = 0

    def take(self, ply: plies.Played, san: str, search: base.Search | None) -> None:
        """Send a journaled ply at once; keep any other, queued first where somebody looks on."""
        if self._order.journaled:
            assert search is not None
            payload = plies.payload(ply, san, search)
            self._sent_ns = time.monotonic_ns()
            self._table.send_ply(payload)
            return
        if self._order.shown:
            assert search is not None
            self._table.show_ply(plies.payload(ply, san, search))
        self._kept.append(ply.kept())

    def wait_for_link(self) -> None:
        """Wait for GO_ON with both clocks stopped; the young garbage goes meanwhile."""
        gc.collect(0)
        self._table.wait_for_go_on()
        self.waited_ns = time.monotonic_ns() - self._sent_ns

    def tell_kept(self, game: board.GameBoard, search: Search) -> None:
        """Write down the plies that were kept, and send them."""
        if not self._order.recorded or self._order.shown:
            return
        sans = game.sans
        for ply in self._kept:
            info = search(ply.side, ply.output)
            self._table.send(frames.Kind.PLY, plies.payload(ply, sans[ply.ply - 1], info))

    def tell_pgn(
        self,
        outcome: contract.Outcome,
        reports: result.Reports,
        game: board.GameBoard,
        search: Search,
        started_ms: int,
    ) -> None:
        """Write the game as PGN, and send it in pieces."""
        bare = self._order.pgn is not None and self._order.pgn.minimal
        records = [
            plies.record(ply, base.SAID_NOTHING if bare else search(ply.side, ply.output))
            for ply in self._kept
        ]
        sans = game.sans[game.ply - len(records) :]
        text = result.pgn(self._order, outcome, reports, records, sans, started_ms)
        data = text.encode(errors="replace")
        for at in range(0, len(data), PIECE_BYTES):
            self._table.send(frames.Kind.PGN, data[at : at + PIECE_BYTES])
