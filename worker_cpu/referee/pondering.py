"""Pondering: an engine thinks in its opponent's turn, on the reply that it expects.

UCI's letter: ``go ponder`` with the reply that ``bestmove … ponder …`` named, then ``ponderhit``
when it is played, or ``stop`` and a ``bestmove`` that counts for nothing. Invariants:

* what an engine does in its opponent's turn is never charged. Its clock starts with the write of
  ``ponderhit``, or of ``stop``, and from then on all that it does counts: until its answer, or
  until the ``bestmove`` of the search in vain and again from ``go`` to its answer. What the
  referee does between those two is the referee's time;
* a search begins before the opponent's clock does, and while that clock runs its output is kept
  and not read;
* a search that ends by itself (the protocol forbids it) is no answer: the engine's turn begins as
  if it had not pondered, and the record says so (as with cutechess, cutechess/cutechess#180);
* when the game ends both engines are at rest, or do not stay for another.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from worker_cpu.engines import local
from worker_cpu.protocols import base


class Pondered(NamedTuple):
    """What an engine's turn has of its search in the opponent's turn.

    ``output`` is that of the search which goes on, ``finder`` looks for its end. ``spent_ns`` is
    what the end of a search in vain took off its clock, ``network_ns`` the network's part of it.
    """

    kind: Literal["", "hit", "miss", "early"] = ""
    started_ns: int = 0
    output: bytes = b""
    finder: base.Finder | None = None
    spent_ns: int = 0
    network_ns: int = 0
    start_ns: int | None = None  # monotonic: when the turn began, where ``go`` came later

    def lasted_ns(self, turn_ns: int) -> int | None:
        """Return how long the engine pondered until its turn began; unknown of an early end."""
        if self.kind not in ("hit", "miss"):
            return None
        return (turn_ns if self.start_ns is None else self.start_ns) - self.started_ns


NOT = Pondered()


class Search:
    """A search in the opponent's turn: what it expects, and what the engine wrote."""

    def __init__(self, seat: local.LocalSeat, player: base.Player, move: str) -> None:
        """Keep what the engine writes from now on."""
        self.started_ns = 0
        self._seat, self._player, self._move = seat, player, move
        self._finder = player.finder(fresh=seat.at_line_start)
        self._tail = seat.pondered = local.Tail()

    def end(self, played: str) -> Pondered:
        """Stop keeping the output; say what the opponent's reply makes of the search."""
        self._seat.pondered = None
        output = self._tail.text()
        if self._tail.cut:
            self._finder = self._player.finder(fresh=False)
        if self._finder.feed(output) is not None:
            return Pondered("early", self.started_ns)
        if played == self._move:
            return Pondered("hit", self.started_ns, output, self._finder)
        return Pondered("miss", self.started_ns, finder=self._finder)
